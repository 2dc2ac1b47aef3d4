// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pitfalls.h -- the layout of the server's memory, and what the programs use of the test

#ifndef PITFALLS_H
#define PITFALLS_H 1

enum {
    POINTER = 0,     // 1 if the record is published; in entry 6, a number
    POINTER_2 = 8,   // in entry 6, another number
    REQUEST = 16,    // 1: the client requests that the server makes the record persistent
    REPLY = 24,      // 1: the server has made the record persistent
    RECORD = 64,     // after the write, LEN times RECORD_BYTE
    RECORD_2 = 4032, // the second record
    LEN = 64,
    RECORD_BYTE = 'r',
};

// Of pitfalls_test.c.
extern struct memory server_memory;
void report_safe(unsigned number); // the record, or a number of entry 6

#endif // PITFALLS_H
