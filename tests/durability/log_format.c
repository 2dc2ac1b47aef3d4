// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log_format.c -- reads and makes logs of example 14

#include "log_format.h"

#include <string.h>

static const char fixed[FIXED_END - FIXED_BEGIN] = "RPMALOG\0\x04\0\0\0\0\0\x80";

static uint32_t crc32c(const char *data, size_t size) {
    static uint32_t table[256];
    for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78 : 0);
    }
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++)
        crc = crc >> 8 ^ table[(crc ^ (unsigned char)data[i]) & 0xff];
    return ~crc;
}

bool is_log(const char *log) {
    uint32_t checksum;
    memcpy(&checksum, log + FIXED_END, sizeof(checksum));
    return !memcmp(log + FIXED_BEGIN, fixed, sizeof(fixed)) &&
           checksum == crc32c(fixed, sizeof(fixed));
}

uint64_t word_at(const char *log, size_t place) {
    uint64_t word;
    memcpy(&word, log + place, sizeof(word));
    return word;
}

uint64_t number_of(size_t place, uint64_t word) {
    const uint64_t sealed[] = {place, word & UINT32_MAX};
    return crc32c((const char *)sealed, sizeof(sealed)) == word >> 32 ? sealed[1] : UINT64_MAX;
}

bool read_record(const char *log, size_t begin, uint64_t number, struct record *record) {
    uint32_t size;
    if (begin + RECORD_HEADER > LOG_SIZE)
        return false;
    memcpy(&record->checksum, log + begin, sizeof(record->checksum));
    memcpy(&size, log + begin + 4, sizeof(size));
    record->epoch = word_at(log, begin + 16);
    record->end = begin + (RECORD_HEADER + size + WORD - 1) / WORD * WORD;
    return size <= PAYLOAD_MAX && record->end <= LOG_SIZE &&
           word_at(log, begin + 8) == number &&
           crc32c(log + begin + 4, RECORD_HEADER - 4 + size) == record->checksum;
}

void set_number(char *log, size_t place, uint64_t number) {
    const uint64_t sealed[] = {place, number};
    const uint64_t word = (uint64_t)crc32c((const char *)sealed, sizeof(sealed)) << 32 | number;
    memcpy(log + place, &word, sizeof(word));
}

size_t make_empty_log(char *log, uint64_t epoch, uint64_t identity) {
    const uint32_t checksum = crc32c(fixed, sizeof(fixed));
    memset(log, 0, LOG_BEGIN);
    memcpy(log + FIXED_BEGIN, fixed, sizeof(fixed));
    memcpy(log + FIXED_END, &checksum, sizeof(checksum));
    set_number(log, TAIL_PLACE, LOG_BEGIN);
    set_number(log, EPOCH_PLACE, epoch);
    set_number(log, IDENTITY_PLACE, identity);
    return LOG_BEGIN;
}

size_t add_record(char *log, size_t size, size_t space, uint64_t number, uint64_t epoch) {
    const uint64_t head[] = {(uint64_t)(space - RECORD_HEADER) << 32, number, epoch};
    char *const record = log + size;
    memcpy(record, head, sizeof(head));
    memset(record + sizeof(head), 'x', space - sizeof(head));
    const uint32_t checksum = crc32c(record + 4, space - 4);
    memcpy(record, &checksum, sizeof(checksum));
    set_number(log, TAIL_PLACE, size + space);
    return size + space;
}
