// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.c -- records, their checksums, and walking over a log

#include "log.h"

#include <endian.h>
#include <isa-l/crc.h>
#include <string.h>

static const struct extent nothing = {.end = LOG_BEGIN};

static uint32_t crc32c(uint32_t crc, const void *data, size_t size) {
    return ~crc32_iscsi((unsigned char *)(uintptr_t)data, (int)size, ~crc);
}

static uint32_t record_checksum(const struct record *record, const void *payload) {
    size_t skipped = sizeof(record->checksum);
    uint32_t crc = crc32c(0, (const char *)record + skipped, sizeof(*record) - skipped);
    return crc32c(crc, payload, le32toh(record->size));
}

void make_record(struct record *record, uint64_t number, uint64_t epoch, const void *payload,
                 size_t size) {
    *record = (struct record){
        .size = htole32((uint32_t)size), .number = htole64(number), .epoch = htole64(epoch)};
    record->checksum = htole32(record_checksum(record, payload));
}

size_t record_space(size_t payload_size) {
    return (sizeof(struct record) + payload_size + 7) & ~(size_t)7;
}

size_t log_tail(const struct log_header *header) {
    size_t tail = (size_t)le64toh(header->tail);
    bool valid = !memcmp(header->signature, LOG_SIGNATURE, sizeof(header->signature)) &&
                 tail >= LOG_BEGIN && tail <= LOG_SIZE && tail % 8 == 0;
    return valid ? tail : 0;
}

bool next_record(const char *log, size_t tail, struct extent *extent) {
    const struct record *record = (const void *)(log + extent->end);
    size_t room = tail - extent->end;
    if (room < sizeof(*record))
        return false;
    size_t size = le32toh(record->size);
    if (size > PAYLOAD_MAX || record_space(size) > room ||
        le64toh(record->number) != extent->count || le64toh(record->epoch) < extent->epoch ||
        le32toh(record->checksum) != record_checksum(record, record + 1))
        return false;
    *extent = (struct extent){.count = extent->count + 1,
                              .epoch = le64toh(record->epoch),
                              .end = extent->end + record_space(size),
                              .checksum = le32toh(record->checksum)};
    return true;
}

struct extent read_log(const char *log, size_t tail) {
    struct extent extent = nothing;
    while (next_record(log, tail, &extent))
        ;
    return extent;
}

struct extent common_part(const char *log, size_t tail, const char *other, size_t other_tail) {
    struct extent common = nothing, mine = nothing, theirs = nothing;
    while (next_record(log, tail, &mine) && next_record(other, other_tail, &theirs) &&
           mine.epoch == theirs.epoch)
        common = mine;
    return common;
}
