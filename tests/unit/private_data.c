// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.c -- descriptors in private data

#include "world.h"

enum { HEADER = 3, MR_SIZE = 21, PCFG_SIZE = 1, PACKED_SIZE = HEADER + MR_SIZE + PCFG_SIZE };

static struct world w;

// 0xf5, the sizes, the descriptors as their own functions write them.
static size_t expected(const struct rpma_mr_local *mr, const struct rpma_peer_cfg *pcfg,
                       unsigned char *bytes) {
    size_t size = HEADER;
    bytes[0] = 0xf5;
    bytes[1] = mr ? MR_SIZE : 0;
    bytes[2] = pcfg ? PCFG_SIZE : 0;
    if (mr) {
        MUST(rpma_mr_get_descriptor(mr, bytes + size));
        size += MR_SIZE;
    }
    if (pcfg) {
        MUST(rpma_peer_cfg_get_descriptor(pcfg, bytes + size));
        size += PCFG_SIZE;
    }
    return size;
}

static void expect_region_of_world(struct rpma_mr_remote *mr) {
    unsigned char desc[MR_SIZE];
    size_t size = 0;
    MUST(rpma_mr_get_descriptor(w.h.mr, desc));
    MUST(rpma_mr_remote_get_size(mr, &size));
    assert_int_equal(size, WORLD_MEMORY_SIZE);
    MUST(rpma_read(w.h.conn, w.h.mr, 0, mr, 8, 8, RPMA_F_COMPLETION_ALWAYS, NULL));
    const struct fake_post *post = &fake_last("ibv_post_send")->send;
    assert_int_equal(post->remote_addr, (uintptr_t)w.memory + 8);
    assert_memory_equal(&post->rkey, desc + 16, sizeof(post->rkey));
}

// The bytes alone in a block of their size, so that sanitizers see a step beyond it.
static struct rpma_conn_private_data exactly(const unsigned char *bytes, size_t size) {
    void *copy = test_malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    return (struct rpma_conn_private_data){copy, (uint8_t)size};
}

static void unpack(const unsigned char *bytes, size_t size, bool has_mr, bool has_pcfg) {
    static const unsigned char zeros[255];
    unsigned char sent[255] = {0};
    memcpy(sent, bytes, size);
    for (size_t arrived = size; arrived <= sizeof(sent); arrived++) {
        struct rpma_conn_private_data pdata = exactly(sent, arrived), rest = {NULL, 77};
        struct rpma_mr_remote *mr = (void *)&w;
        struct rpma_peer_cfg *pcfg = (void *)&w;
        bool direct_write = false;
        MUST(rpma_conn_private_data_unpack(&pdata, &mr, &pcfg, &rest));
        EXPECT_CALLS("");
        assert_ptr_equal(rest.ptr, (unsigned char *)pdata.ptr + size);
        assert_int_equal(rest.len, arrived - size);
        assert_memory_equal(rest.ptr, zeros, rest.len);
        memset(pdata.ptr, 0, arrived); // the objects keep nothing of it
        test_free(pdata.ptr);
        assert_int_equal(mr != NULL, has_mr);
        assert_int_equal(pcfg != NULL, has_pcfg);
        if (mr)
            expect_region_of_world(mr);
        if (pcfg)
            MUST(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct_write));
        assert_int_equal(direct_write, has_pcfg);
        MUST(rpma_mr_remote_delete(&mr));
        MUST(rpma_peer_cfg_delete(&pcfg));
    }
}

static void what_is_packed_is_unpacked(void **state) {
    (void)state;
    const struct shape shape = {.name = "plain"};
    world_conn(&w, &shape);
    for (int what = 0; what < 4; what++) {
        const struct rpma_mr_local *mr = what & 1 ? w.h.mr : NULL;
        const struct rpma_peer_cfg *pcfg = what & 2 ? w.h.pcfg : NULL;
        unsigned char wanted[PACKED_SIZE], bytes[PACKED_SIZE];
        const size_t size = expected(mr, pcfg, wanted);
        struct rpma_conn_private_data pdata = {bytes, (uint8_t)size};
        MUST(rpma_conn_private_data_pack(mr, pcfg, &pdata));
        EXPECT_CALLS("");
        assert_ptr_equal(pdata.ptr, bytes);
        assert_int_equal(pdata.len, size);
        assert_memory_equal(bytes, wanted, size);
        unpack(bytes, size, mr, pcfg);
    }
    world_drop(&w);
}

static void packing_leaves_the_room_behind_alone(void **state) {
    (void)state;
    unsigned char bytes[255], before[255];
    struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};
    world_peer(&w);
    memset(bytes, 0x77, sizeof(bytes));
    memcpy(before, bytes, sizeof(bytes));
    MUST(rpma_conn_private_data_pack(w.h.mr, w.h.pcfg, &pdata));
    assert_int_equal(pdata.len, PACKED_SIZE);
    assert_memory_equal(bytes + PACKED_SIZE, before, sizeof(bytes) - PACKED_SIZE);
    world_drop(&w);
}

static void pack_refuses_every_smaller_buffer(void **state) {
    (void)state;
    world_peer(&w);
    for (int what = 0; what < 4; what++) {
        const struct rpma_mr_local *mr = what & 1 ? w.h.mr : NULL;
        const struct rpma_peer_cfg *pcfg = what & 2 ? w.h.pcfg : NULL;
        unsigned char bytes[PACKED_SIZE];
        const size_t needed = expected(mr, pcfg, bytes);
        for (size_t size = 0; size < needed; size++) {
            struct rpma_conn_private_data pdata = {bytes, (uint8_t)size};
            memset(bytes, 0x77, sizeof(bytes));
            WATCH(bytes);
            WATCH(pdata.ptr);
            WATCH(pdata.len);
            EXPECT_ERROR(rpma_conn_private_data_pack(mr, pcfg, &pdata), RPMA_E_INVAL,
                         "pdata->len <", "pdata->len < size of the packed descriptors",
                         .logs = "pdata->len is too small");
        }
    }
    world_drop(&w);
}

static struct rpma_mr_remote *mr;
static struct rpma_peer_cfg *pcfg;
static struct rpma_conn_private_data rest;

static const char ends_behind[] =
    "the region (address at offset 0, size at offset 8) ends behind the last address";

static void expect_refused(const unsigned char *bytes, size_t size, const char *cause,
                           const char *logs) {
    struct rpma_conn_private_data pdata = exactly(bytes, size);
    WATCH(mr);
    WATCH(pcfg);
    WATCH(rest.ptr);
    WATCH(rest.len);
    EXPECT_ERROR(rpma_conn_private_data_unpack(&pdata, &mr, &pcfg, &rest), RPMA_E_INVAL, cause,
                 cause, .logs = logs, .level = RPMA_LOG_LEVEL_INFO);
    // Also when nobody wants the objects, unless it takes a look into a descriptor.
    if (!strstr(cause, "usage") && cause != ends_behind)
        EXPECT_ERROR(rpma_conn_private_data_unpack(&pdata, NULL, NULL, NULL), RPMA_E_INVAL,
                     cause, cause, .logs = logs, .level = RPMA_LOG_LEVEL_INFO);
    test_free(pdata.ptr);
}

static const char not_packed[] = "the data was not packed by rpma_conn_private_data_pack()";

static void packed(unsigned char *bytes) {
    memset(bytes, 0, PACKED_SIZE);
    bytes[0] = 0xf5;
    bytes[1] = MR_SIZE;
    bytes[2] = PCFG_SIZE;
    world_descriptor(bytes + HEADER, 1, 2, 3, WORLD_EVERY_USAGE);
}

static void unpack_refuses_what_is_cut(void **state) {
    (void)state;
    unsigned char bytes[PACKED_SIZE];
    packed(bytes);
    for (size_t size = 0; size < sizeof(bytes); size++) {
        if (size < HEADER)
            expect_refused(bytes, size, not_packed, "not packed");
        else
            expect_refused(bytes, size, "the data is shorter than what was packed", "is cut");
    }
}

static void unpack_refuses_other_data(void **state) {
    (void)state;
    unsigned char bytes[56];
    const struct rpma_conn_private_data none = {NULL, 0}, nowhere = {NULL, 56};
    packed(bytes);
    for (int first = 0; first <= UINT8_MAX; first++) {
        bytes[0] = (unsigned char)first;
        if (first != 0xf5)
            expect_refused(bytes, sizeof(bytes), not_packed, "not packed");
    }
    EXPECT_ERROR(rpma_conn_private_data_unpack(&none, &mr, &pcfg, &rest), RPMA_E_INVAL,
                 not_packed, not_packed, .logs = "not packed", .level = RPMA_LOG_LEVEL_INFO);
    EXPECT_ERROR(rpma_conn_private_data_unpack(&nowhere, &mr, &pcfg, &rest), RPMA_E_INVAL,
                 not_packed, not_packed, .logs = "not packed", .level = RPMA_LOG_LEVEL_INFO);
}

static void unpack_refuses_what_describes_no_region(void **state) {
    (void)state;
    unsigned char bytes[255] = {0};
    packed(bytes);
    for (unsigned char size = 1; size < MR_SIZE; size++) {
        bytes[1] = size;
        expect_refused(bytes, sizeof(bytes),
                       "the descriptor of the region has less than 21 bytes", "too small");
    }
    bytes[1] = MR_SIZE;
    bytes[HEADER + MR_SIZE - 1] = 0;
    expect_refused(bytes, sizeof(bytes), "its usage byte (offset 20) is 0", "usage");
    world_descriptor(bytes + HEADER, 1, UINT64_MAX, 3, WORLD_EVERY_USAGE);
    expect_refused(bytes, sizeof(bytes), ends_behind, "ends behind the last address");
}

// Descriptors of later releases may be longer; what a caller does not want is passed over.
static void unpack_takes_longer_descriptors_and_leaves_out(void **state) {
    (void)state;
    unsigned char bytes[64] = {0xf5, 40, 9};
    size_t size = 0;
    bool direct_write = false;
    world_descriptor(bytes + HEADER, 1, 2, 3, WORLD_EVERY_USAGE);
    bytes[HEADER + 40] = 1;
    bytes[HEADER + 49] = 0x66;
    struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};
    MUST(rpma_conn_private_data_unpack(&pdata, &mr, NULL, NULL));
    MUST(rpma_mr_remote_get_size(mr, &size));
    assert_int_equal(size, 2);
    MUST(rpma_mr_remote_delete(&mr));
    MUST(rpma_conn_private_data_unpack(&pdata, NULL, &pcfg, NULL));
    MUST(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct_write));
    assert_true(direct_write);
    MUST(rpma_peer_cfg_delete(&pcfg));
    MUST(rpma_conn_private_data_unpack(&pdata, NULL, NULL, &pdata));
    assert_ptr_equal(pdata.ptr, bytes + HEADER + 49);
    assert_int_equal(pdata.len, sizeof(bytes) - HEADER - 49);
    assert_int_equal(*(unsigned char *)pdata.ptr, 0x66);
}

static void unpack_fails_when_memory_is_out(void **state) {
    (void)state;
    unsigned char bytes[PACKED_SIZE];
    packed(bytes);
    const struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};
    for (unsigned nth = 1; nth <= 2; nth++) {
        fake_fail("malloc", nth, ENOMEM);
        WATCH(mr);
        WATCH(pcfg);
        WATCH(rest.ptr);
        WATCH(rest.len);
        EXPECT_ERROR(rpma_conn_private_data_unpack(&pdata, &mr, &pcfg, &rest), RPMA_E_NOMEM,
                     "allocation failed", "out of memory");
        fake_faults_off();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_packed_is_unpacked),
        TEST(packing_leaves_the_room_behind_alone),
        TEST(pack_refuses_every_smaller_buffer),
        TEST(unpack_refuses_what_is_cut),
        TEST(unpack_refuses_other_data),
        TEST(unpack_refuses_what_describes_no_region),
        TEST(unpack_takes_longer_descriptors_and_leaves_out),
        TEST(unpack_fails_when_memory_is_out),
    };
    return UNIT_RUN("private_data", tests);
}
