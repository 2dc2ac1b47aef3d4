// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// script.h -- parts of steps: values by name, members of the device by name, operations

#ifndef SCRIPT_H
#define SCRIPT_H 1

#include "fixture.h"

#define SCRIPT_REMOTE_ADDR 0x123456780u
#define SCRIPT_REMOTE_SIZE 64u
#define SCRIPT_RKEY 0x5ec4e7e4u

// A number, or names of enumerators, separated by '|'.
uint64_t value_of(const char *text);

// Sets members of the fake device: "NAME=VALUE NAME=VALUE".
void script_set_device(const char *text);

// Adds an operation to the next call: "KIND" or "KIND LEN". Each has other offsets.
extern struct rpma_work script_work[4];
extern unsigned script_work_count;
void script_add_work(const char *text);

#endif // SCRIPT_H
