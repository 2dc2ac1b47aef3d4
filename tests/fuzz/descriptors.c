// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// descriptors.c -- fuzzes the decoders of received bytes: descriptors of regions and of peer
// configurations, and private data
//
// A second implementation of the manual's formats: each input is decoded as documented, or
// rejected without writing an output. This is a target of libFuzzer; other builds run it on
// random inputs.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "librpma.h"
#include "random.h"

enum { REGION_SIZE = 21, USAGE_AT = 20, HEADER = 6, PACKED_REGION = 22, CAPABILITIES = 2 };
enum { LONGEST = 255, MAX_REGIONS = 11, LONG_RUN = 10000 };

#define EXPECT(condition) expect(condition, #condition)
static void expect(bool holds, const char *condition) {
    if (holds)
        return;
    fprintf(stderr, "expected: %s\n", condition);
    abort(); // libFuzzer reports the input
}

static unsigned long regions[2], packed[2]; // rejected and accepted

// A run that rejected all inputs, or accepted all, has tested nothing.
static void at_end(void) {
    fprintf(stderr, "descriptors: %lu accepted, %lu refused; private data: %lu and %lu\n",
            regions[1], regions[0], packed[1], packed[0]);
    if (regions[0] + regions[1] >= LONG_RUN &&
        !(regions[0] && regions[1] && packed[0] && packed[1])) {
        fprintf(stderr,
                "all inputs were accepted, or none: run longer, or with another seed\n");
        _exit(1);
    }
}

// Reads all arguments of the message, as a real log function does.
static void read_message(enum rpma_log_level level, const char *file_name, const int line_no,
                         const char *function_name, const char *message_format, ...) {
    char text[1024];
    va_list args;
    va_start(args, message_format);
    int used =
        snprintf(text, sizeof(text), "%d %s %d %s ", level, file_name, line_no, function_name);
    vsnprintf(text + used, sizeof(text) - (size_t)used, message_format, args);
    va_end(args);
}

// ---- the formats ---------------------------------------------------------------------------

static uint64_t number(const uint8_t *bytes, unsigned size) {
    uint64_t value = 0;
    while (size-- > 0)
        value = value << 8 | bytes[size];
    return value;
}

// A valid region has a usage, and ends within the address space.
static bool is_region(const uint8_t *descriptor) {
    return descriptor[USAGE_AT] != 0 &&
           number(descriptor + 8, 8) <= UINT64_MAX - number(descriptor, 8);
}

// The offsets of the parts of private data.
struct parts {
    size_t regions, capabilities, bytes, end;
};

static struct parts parts_of(const uint8_t *data) {
    struct parts p = {.regions = HEADER};
    p.capabilities = p.regions + (size_t)data[2] * data[3];
    p.bytes = p.capabilities + data[4];
    p.end = p.bytes + data[5];
    return p;
}

static bool is_packed(const uint8_t *data, size_t size) {
    if (size < HEADER || data[0] != 0xf5 || data[1] != 1 || size < parts_of(data).end ||
        (data[2] != 0 && data[3] < PACKED_REGION) || (data[4] != 0 && data[4] < CAPABILITIES))
        return false;
    for (size_t i = 0; i < data[2]; i++)
        if (!is_region(data + HEADER + i * data[3]))
            return false;
    return true;
}

// ---- the decoded objects -------------------------------------------------------------------

static void expect_region(const uint8_t *descriptor, struct rpma_mr_remote **mr) {
    const int types = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    uint64_t addr = 0;
    uint32_t rkey = 0;
    size_t size = 0;
    int flush_type = -1;
    EXPECT(rpma_mr_remote_get_key(*mr, &addr, &rkey) == 0);
    EXPECT(addr == number(descriptor, 8) && rkey == number(descriptor + 16, 4));
    EXPECT(rpma_mr_remote_get_size(*mr, &size) == 0 && size == number(descriptor + 8, 8));
    EXPECT(rpma_mr_remote_get_flush_type(*mr, &flush_type) == 0);
    EXPECT(flush_type == (descriptor[USAGE_AT] & types));
    EXPECT(rpma_mr_remote_delete(mr) == 0 && *mr == NULL);
}

// Expects the given direct-write flag, and the capabilities if present.
static void expect_configuration(bool yes, uint8_t capabilities, struct rpma_peer_cfg **pcfg) {
    bool supported = false, is_advertised = false, flush = false, atomic_write = false;
    const bool advertises = (capabilities & ~6) == 0xa0;
    EXPECT(rpma_peer_cfg_get_direct_write_to_pmem(*pcfg, &supported) == 0);
    EXPECT(rpma_peer_cfg_get_served(*pcfg, &is_advertised, &flush, &atomic_write) == 0);
    EXPECT(supported == yes && is_advertised == advertises);
    EXPECT(flush == (advertises && capabilities & 2));
    EXPECT(atomic_write == (advertises && capabilities & 4));
    EXPECT(rpma_peer_cfg_delete(pcfg) == 0);
}

static void check_region(const uint8_t *data, size_t size) {
    struct rpma_mr_remote *const untouched = (struct rpma_mr_remote *)&size, *mr = untouched;
    const bool good = size >= REGION_SIZE && is_region(data);
    EXPECT(rpma_mr_remote_from_descriptor(data, size, &mr) == (good ? 0 : RPMA_E_INVAL));
    regions[good]++;
    if (good)
        expect_region(data, &mr);
    else
        EXPECT(mr == untouched);
}

static void check_configuration(const uint8_t *data, size_t size) {
    struct rpma_peer_cfg *const untouched = (struct rpma_peer_cfg *)&size, *pcfg = untouched;
    uint8_t again = 0xff;
    const int ret = rpma_peer_cfg_from_descriptor(data, size, &pcfg);
    EXPECT(ret == (size > 0 ? 0 : RPMA_E_INVAL));
    if (size == 0) {
        EXPECT(pcfg == untouched);
        return;
    }
    // A byte with capabilities is kept; all others are reduced to 0 or 1.
    const bool advertises = (data[0] & ~6) == 0xa1;
    EXPECT(rpma_peer_cfg_get_descriptor(pcfg, &again) == 0);
    EXPECT(again == (advertises ? data[0] : data[0] != 0));
    expect_configuration(data[0] != 0, advertises ? data[0] & ~1 : 0, &pcfg);
}

static void check_private_data(const uint8_t *data, size_t size) {
    struct rpma_mr_remote *const no_mr = (struct rpma_mr_remote *)&size;
    struct rpma_mr_remote *mrs[MAX_REGIONS] = {no_mr};
    struct rpma_peer_cfg *const no_pcfg = (struct rpma_peer_cfg *)&size, *pcfg = no_pcfg;
    const struct rpma_conn_private_data pdata = {(void *)(uintptr_t)data, (uint8_t)size};
    const void *bytes = &size;
    uint32_t count = MAX_REGIONS, len = LONGEST + 1;
    const bool good = is_packed(data, size);
    const int ret = rpma_conn_private_data_unpack(&pdata, mrs, &count, &pcfg, &bytes, &len);
    EXPECT(ret == (good ? 0 : RPMA_E_INVAL));
    packed[good]++;
    if (!good) {
        EXPECT(mrs[0] == no_mr && pcfg == no_pcfg && bytes == &size);
        EXPECT(count == MAX_REGIONS && len == LONGEST + 1);
        return;
    }
    const struct parts p = parts_of(data);
    EXPECT(count == data[2] && len == data[5]);
    EXPECT(bytes == (len != 0 ? data + p.bytes : NULL));
    for (size_t i = 0; i < count; i++)
        expect_region(data + p.regions + i * data[3], &mrs[i]);
    EXPECT((pcfg != NULL) == (data[4] != 0));
    if (pcfg)
        expect_configuration(data[p.capabilities] != 0, data[p.capabilities + 1], &pcfg);
}

// Decodes the input unchanged, then as private data with a valid header.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_region(data, size);
    check_configuration(data, size);
    check_private_data(data, size);
    if (size < HEADER)
        return 0;
    uint8_t *mended = malloc(size);
    EXPECT(mended != NULL);
    memcpy(mended, data, size);
    mended[0] = 0xf5;
    mended[1] = 1;
    mended[2] %= MAX_REGIONS + 1;
    mended[3] = (uint8_t)(PACKED_REGION - 1 + data[3] % 4);
    mended[4] %= 4;
    mended[5] %= 64;
    check_private_data(mended, size);
    free(mended);
    return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(__attribute__((unused)) int *argc,
                         __attribute__((unused)) char ***argv) {
    (void)rpma_log_set_function(read_message);
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG);
    return atexit(at_end);
}

#ifndef DESCRIPTORS_LIBFUZZER
// Copies the bytes to a block of this exact size, so that sanitizers detect an overrun.
static void unpack_bytes(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    EXPECT(copy != NULL);
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

// Small, large and extreme values, and sometimes a single bit.
static uint64_t random_size(void) {
    const uint64_t value = random_64() >> below(64);
    return now_and_then(50) ? UINT64_MAX : now_and_then(4) ? 1ull << below(64) : value;
}

int main(void) {
    uint8_t bytes[LONGEST];
    LLVMFuzzerInitialize(NULL, NULL);
    for (int i = 0; i < 2 * LONG_RUN; i++) {
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)random_64();
        for (size_t at = now_and_then(2) ? HEADER : 0; at + PACKED_REGION <= sizeof(bytes);
             at += PACKED_REGION) {
            const uint64_t region[] = {random_size(), random_size()};
            memcpy(bytes + at, region, sizeof(region));
        }
        if (now_and_then(2))
            bytes[0] = (uint8_t)i; // every peer configuration
        unpack_bytes(bytes, now_and_then(2) ? below(REGION_SIZE + 5) : below(LONGEST + 1));
    }
    return 0;
}
#endif
