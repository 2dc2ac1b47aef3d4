// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr_remote.c -- remote regions, which come from the network as 21 bytes

#include "world.h"

static struct rpma_mr_remote *remote;

static void from_descriptor_reads_every_field(void **state) {
    (void)state;
    static const uint64_t sizes[] = {0,         1, 64, UINT32_MAX, (uint64_t)UINT32_MAX + 1,
                                     UINT64_MAX};
    for (size_t i = 0; i < LENGTH(sizes); i++) // each ends at the last address that there is
        for (unsigned usage = 1; usage <= UINT8_MAX; usage++) {
            unsigned char unaligned[1 + 21];
            size_t size = 1;
            int flush_type = -1;
            world_descriptor(unaligned + 1, UINT64_MAX - sizes[i], sizes[i], UINT32_MAX,
                             (uint8_t)usage);
            MUST(rpma_mr_remote_from_descriptor(unaligned + 1, 21, &remote));
            EXPECT_CALLS("");
            MUST(rpma_mr_remote_get_size(remote, &size));
            assert_int_equal(size, sizes[i]);
            MUST(rpma_mr_remote_get_flush_type(remote, &flush_type));
            assert_int_equal(flush_type, usage & (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                                                  RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT));
            MUST(rpma_mr_remote_delete(&remote));
            assert_null(remote);
        }
}

// The work request of an operation shows the address and the key.
static void address_and_key_reach_the_work_request(void **state) {
    (void)state;
    static struct world w;
    const struct shape shape = {.name = "plain"};
    unsigned char desc[21];
    world_conn(&w, &shape);
    world_descriptor(desc, 0x1122334455667788u, 64, 0x99aabbccu, RPMA_MR_USAGE_WRITE_DST);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote));
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_DEBUG, 0)->message,
                        "remote region: addr=0x1122334455667788, size=64, rkey=0x99aabbcc, "
                        "usage=0x8");
    MUST(rpma_write(w.h.conn, remote, 8, w.h.mr, 0, 1, RPMA_F_COMPLETION_ALWAYS, NULL));
    const struct fake_post *post = &fake_last("ibv_post_send")->send;
    assert_int_equal(post->remote_addr, 0x1122334455667790u);
    assert_int_equal(post->rkey, 0x99aabbccu);
    MUST(rpma_mr_remote_delete(&remote));
    world_drop(&w);
}

static void from_descriptor_refuses_every_shorter_input(void **state) {
    (void)state;
    unsigned char desc[21];
    world_descriptor(desc, 1, 2, 3, WORLD_EVERY_USAGE);
    for (size_t size = 0; size < sizeof(desc); size++) {
        unsigned char *exact =
            test_malloc(size ? size : 1); // so that sanitizers see an access beyond it
        memcpy(exact, desc, size);
        remote = NULL;
        WATCH(remote);
        EXPECT_ERROR(rpma_mr_remote_from_descriptor(exact, size, &remote), RPMA_E_INVAL,
                     "desc_size < 21", "desc_size < 21", .logs = "desc_size",
                     .level = RPMA_LOG_LEVEL_INFO);
        test_free(exact);
    }
}

static void from_descriptor_ignores_what_follows(void **state) {
    (void)state;
    unsigned char desc[64] = {0};
    size_t size = 0;
    world_descriptor(desc, 1, 2, 3, RPMA_MR_USAGE_READ_SRC);
    memset(desc + 21, 0xff, sizeof(desc) - 21);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote));
    MUST(rpma_mr_remote_get_size(remote, &size));
    assert_int_equal(size, 2);
    MUST(rpma_mr_remote_delete(&remote));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(from_descriptor_reads_every_field),
        TEST(address_and_key_reach_the_work_request),
        TEST(from_descriptor_refuses_every_shorter_input),
        TEST(from_descriptor_ignores_what_follows),
    };
    return UNIT_RUN("mr_remote", tests);
}
