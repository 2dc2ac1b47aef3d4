// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log_format.h -- the format of example 14's log, by its description in log.h and independently
// of log.c

#ifndef LOG_FORMAT_H
#define LOG_FORMAT_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_SIZE ((size_t)8 << 20)
#define LOG_BEGIN 64 // of the records
#define PAYLOAD_MAX 65536
#define RECORD_HEADER 24
#define WORD 8

// Places in the header. The part of it that never changes is FIXED: signature, version, size.
enum { TAIL_PLACE = 0, EPOCH_PLACE = 8, FIXED_BEGIN = 16, FIXED_END = 32, IDENTITY_PLACE = 40 };

struct record {
    size_t end;
    uint64_t epoch;
    uint32_t checksum;
};

// Returns true if the part that never changes is right, also its checksum.
bool is_log(const char *log);

uint64_t word_at(const char *log, size_t place);

// Returns the number in a word of the header, or UINT64_MAX if its checksum is wrong.
uint64_t number_of(size_t place, uint64_t word);

// Reads the record at `begin`. Returns false if it is incomplete or damaged.
bool read_record(const char *log, size_t begin, uint64_t number, struct record *record);

// ---- creating logs

void set_number(char *log, size_t place, uint64_t number);

// Returns the size of the log.
size_t make_empty_log(char *log, uint64_t epoch, uint64_t identity);

// Appends a record of `space` bytes to a log of `size` bytes, and moves the tail to its end.
// Returns the new size.
size_t add_record(char *log, size_t size, size_t space, uint64_t number, uint64_t epoch);

#endif // LOG_FORMAT_H
