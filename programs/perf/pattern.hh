// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pattern.hh -- test data that depends on the connection, the operation and the position

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Fills the memory with the data of an operation of a connection.
void pattern_fill(std::span<char> memory, uint64_t connection, uint64_t number);

// The position of the first wrong byte, or the size.
size_t pattern_check(std::span<const char> memory, uint64_t connection, uint64_t number);

// The position of the first byte that differs, or the size; both have the same size.
size_t first_difference(std::span<const char> memory, const void *expected);
