// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.c -- the header, the records, their checksums, and iterating over a log

#include "log.h"

#include <endian.h>
#include <isa-l/crc.h>
#include <string.h>
#include <sys/random.h>

static const struct extent nothing = {.end = LOG_BEGIN};

static uint32_t crc32c(uint32_t crc, const void *data, size_t size) {
    return ~crc32_iscsi((unsigned char *)(uintptr_t)data, (int)size, ~crc);
}

// The checksum includes the position, so that the epoch is not valid as a tail.
uint64_t encode_number(size_t place, uint64_t number) {
    const uint64_t sealed[2] = {htole64(place), htole64(number)};
    return htole64((uint64_t)crc32c(0, sealed, sizeof(sealed)) << 32 | number);
}

static bool decode_number(size_t place, uint64_t word, uint64_t *number) {
    *number = le64toh(word) & UINT32_MAX;
    return encode_number(place, *number) == word;
}

static uint32_t header_checksum(const struct log_header *header) {
    size_t begin = offsetof(struct log_header, signature);
    return crc32c(0, (const char *)header + begin,
                  offsetof(struct log_header, checksum) - begin);
}

uint64_t make_identity(unsigned servers) {
    uint32_t random;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        fail("no random number for a new log");
    return (random & ~UINT32_C(15)) | servers;
}

unsigned servers_of(uint64_t identity) {
    return identity & 15;
}

struct log_header make_header(void) {
    struct log_header header = {
        .tail = encode_number(offsetof(struct log_header, tail), LOG_BEGIN),
        .epoch = encode_number(offsetof(struct log_header, epoch), 0),
        .identity = encode_number(offsetof(struct log_header, identity), 0),
        .signature = LOG_SIGNATURE,
        .version = htole32(LOG_VERSION),
        .size = htole32((uint32_t)LOG_SIZE),
    };
    header.checksum = htole32(header_checksum(&header));
    return header;
}

const char *read_header(const struct log_header *header, struct log_state *state) {
    uint64_t tail;
    if (memcmp(header->signature, LOG_SIGNATURE, sizeof(header->signature)))
        return "there is no log";
    if (le32toh(header->checksum) != header_checksum(header))
        return "the header of the log is damaged";
    if (le32toh(header->version) != LOG_VERSION || le32toh(header->size) != LOG_SIZE)
        return "the log has another format or size";
    if (!decode_number(offsetof(struct log_header, tail), header->tail, &tail) ||
        tail < LOG_BEGIN || tail > LOG_SIZE || tail % 8)
        return "the tail of the log is damaged";
    if (!decode_number(offsetof(struct log_header, epoch), header->epoch, &state->epoch))
        return "the epoch of the log is damaged";
    if (!decode_number(offsetof(struct log_header, identity), header->identity,
                       &state->identity))
        return "the identity of the log is damaged";
    state->tail = (size_t)tail;
    return NULL;
}

static uint32_t record_checksum(const struct record *record, const void *payload) {
    size_t skipped = sizeof(record->checksum);
    uint32_t crc = crc32c(0, (const char *)record + skipped, sizeof(*record) - skipped);
    return crc32c(crc, payload, le32toh(record->size));
}

size_t make_record(char *place, uint64_t number, uint64_t epoch, const void *payload,
                   size_t size) {
    struct record *record = (void *)place;
    size_t space = record_space(size);
    memset(place + space - 8, 0, 8);
    memcpy(record + 1, payload, size);
    *record = (struct record){
        .size = htole32((uint32_t)size), .number = htole64(number), .epoch = htole64(epoch)};
    record->checksum = htole32(record_checksum(record, record + 1));
    return space;
}

size_t record_space(size_t payload_size) {
    return (sizeof(struct record) + payload_size + 7) & ~(size_t)7;
}

bool next_record(const char *log, size_t tail, struct extent *extent) {
    const struct record *record = (const void *)(log + extent->end);
    size_t room = tail - extent->end;
    if (room < sizeof(*record))
        return false;
    size_t size = le32toh(record->size);
    uint64_t epoch = le64toh(record->epoch);
    if (size > PAYLOAD_MAX || record_space(size) > room ||
        le64toh(record->number) != extent->count || epoch < extent->epoch ||
        epoch > EPOCH_MAX || le32toh(record->checksum) != record_checksum(record, record + 1))
        return false;
    *extent = (struct extent){.count = extent->count + 1,
                              .epoch = epoch,
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
