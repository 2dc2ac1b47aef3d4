// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// tuned.hh -- the few places where the code bends to the compiler, and what each of them buys
//
// Measured with bench/check.py in the packaged build, each taken out alone.

#pragma once

// An exported post writes its work request and nothing else into the addresses that it takes,
// and the provider only reads there. Without the stack protector, which distributions switch
// on, a write takes 6 instructions fewer, and a native flush 8. GCC 11 and clang 11 know it.
#define RPMA_POST [[gnu::no_stack_protector]]
