// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pitfalls.h -- where things are in the server's memory

#ifndef PITFALLS_H
#define PITFALLS_H 1

enum {
    POINTER = 0,     // 1: the record is published; entry 6: a number
    POINTER_2 = 8,   // entry 6: another number
    REQUEST = 16,    // the client requests that the server makes the record persistent
    ANSWER = 24,     // the server has done so
    RECORD = 64,     // LEN times RECORD_BYTE, once it is written
    RECORD_2 = 4032, // what the client writes next
    LEN = 64,
    RECORD_BYTE = 'r',
};

#endif // PITFALLS_H
