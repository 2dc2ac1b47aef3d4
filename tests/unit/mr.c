// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr.c -- local memory regions: registration, on-demand paging, descriptors, advice

#include "world.h"

#include <sys/resource.h>

static struct world w;
static struct rpma_mr_local *mr;

static void register_with(int usage) {
    mr = NULL;
    MUST(rpma_mr_reg(w.h.peer, w.memory, 64, usage, &mr));
}

static void new_peer(void) {
    memset(&w.h, 0, sizeof(w.h));
    MUST(rpma_peer_new(fake_context(0), &w.h.peer));
}

enum {
    NONE = 0,
    LOCAL_WRITE = IBV_ACCESS_LOCAL_WRITE,
    REMOTE_WRITE = IBV_ACCESS_REMOTE_WRITE,
    REMOTE_READ = IBV_ACCESS_REMOTE_READ,
};

static void usage_becomes_access(void **state) {
    (void)state;
    static const struct {
        int usage;
        unsigned access, access_on_iwarp;
    } cases[] = {
        {RPMA_MR_USAGE_READ_SRC, REMOTE_READ, REMOTE_READ},
        {RPMA_MR_USAGE_READ_DST, LOCAL_WRITE, LOCAL_WRITE | REMOTE_WRITE},
        {RPMA_MR_USAGE_WRITE_SRC, LOCAL_WRITE, LOCAL_WRITE},
        {RPMA_MR_USAGE_WRITE_DST, LOCAL_WRITE | REMOTE_WRITE, LOCAL_WRITE | REMOTE_WRITE},
        {RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, REMOTE_READ, REMOTE_READ},
        {RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, REMOTE_READ, REMOTE_READ},
        {RPMA_MR_USAGE_SEND, NONE, NONE},
        {RPMA_MR_USAGE_RECV, LOCAL_WRITE, LOCAL_WRITE},
        {RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_READ_SRC, REMOTE_READ, REMOTE_READ},
        {WORLD_EVERY_USAGE, LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ,
         LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ},
    };
    for (int iwarp = 0; iwarp < 2; iwarp++) {
        fake_device()->transport = iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
        new_peer();
        for (size_t i = 0; i < LENGTH(cases); i++) {
            register_with(cases[i].usage);
            EXPECT_CALLS("ibv_reg_mr");
            const struct fake_call *call = fake_last("ibv_reg_mr");
            assert_int_equal(call->reg_mr.access,
                             iwarp ? cases[i].access_on_iwarp : cases[i].access);
            assert_ptr_equal(call->reg_mr.addr, w.memory);
            assert_int_equal(call->reg_mr.length, 64);
            MUST(rpma_mr_dereg(&mr));
            EXPECT_CALLS("ibv_dereg_mr");
            assert_null(mr);
        }
        world_drop(&w);
    }
}

static void getters_tell_what_was_registered(void **state) {
    (void)state;
    void *ptr = NULL;
    size_t size = 0, desc_size = 0;
    new_peer();
    register_with(RPMA_MR_USAGE_READ_SRC);
    MUST(rpma_mr_get_ptr(mr, &ptr));
    assert_ptr_equal(ptr, w.memory);
    MUST(rpma_mr_get_size(mr, &size));
    assert_int_equal(size, 64);
    MUST(rpma_mr_get_descriptor_size(mr, &desc_size));
    assert_int_equal(desc_size, 21);
    EXPECT_CALLS("");
    MUST(rpma_mr_dereg(&mr));
    world_drop(&w);
}

// The layout is the wire format of every release: it must never change.
static void descriptor_has_the_layout_of_all_releases(void **state) {
    (void)state;
    new_peer();
    for (int usage = 1; usage <= WORLD_EVERY_USAGE; usage++) {
        unsigned char desc[1 + 21 + 1], expected[21];
        register_with(usage);
        const struct fake_call *call = fake_last("ibv_reg_mr");
        memset(desc, 0x5a, sizeof(desc));
        assert_int_equal(call->reg_mr.length, 64);
        assert_int_equal(rpma_mr_get_descriptor(mr, desc + 1), 0); // not aligned
        // The expected key comes from the provider, not from the library.
        const uint32_t rkey = (uint32_t)desc[17] | (uint32_t)desc[18] << 8 |
                              (uint32_t)desc[19] << 16 | (uint32_t)desc[20] << 24;
        assert_int_equal(rkey, fake_rkey(w.memory));
        world_descriptor(expected, (uintptr_t)w.memory, 64, rkey, (uint8_t)usage);
        assert_memory_equal(desc + 1, expected, sizeof(expected));
        assert_int_equal(desc[0], 0x5a);
        assert_int_equal(desc[22], 0x5a);
        MUST(rpma_mr_dereg(&mr));
    }
    world_drop(&w);
}

// Whether the line of the last failure has that text.
static bool line_says(const char *text) {
    const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_ERROR, 0);
    return line != NULL && strstr(line->message, text) != NULL;
}

static void reg_fails_with_the_provider(void **state) {
    (void)state;
    static const int errors[] = {EIO, ENOMEM, EINVAL, EACCES};
    for (size_t i = 0; i < LENGTH(errors); i++) {
        fake_reset();
        fake_device()->odp = true; // no reason to retry
        new_peer();
        fake_fail("ibv_reg_mr", 1, errors[i]);
        mr = NULL;
        WATCH(mr);
        EXPECT_ERROR(rpma_mr_reg(w.h.peer, w.memory, 64,
                                 RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST, &mr),
                     RPMA_E_PROVIDER, "ibv_reg_mr() failed", "ibv_reg_mr()", errors[i],
                     "ibv_reg_mr");
        assert_true(
            line_says("length=64, access=IBV_ACCESS_LOCAL_WRITE|IBV_ACCESS_REMOTE_READ)"));
        assert_false(line_says("on-demand paging"));
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_INFO), 0);
        world_drop(&w);
    }
}

static void reg_fails_without_on_demand_paging(void **state) {
    (void)state;
    fake_device()->dax = true; // memory that only on-demand paging can register
    new_peer();
    mr = NULL;
    WATCH(mr);
    EXPECT_ERROR(rpma_mr_reg(w.h.peer, w.memory, 64, RPMA_MR_USAGE_SEND, &mr), RPMA_E_PROVIDER,
                 "ibv_reg_mr() failed", "ibv_reg_mr()", EOPNOTSUPP, "ibv_reg_mr");
    assert_true(line_says("FS-DAX needs on-demand paging"));
    world_drop(&w);
}

static void reg_retries_with_on_demand_paging(void **state) {
    (void)state;
    fake_device()->dax = true;
    fake_device()->odp = true;
    new_peer();
    register_with(RPMA_MR_USAGE_READ_DST);
    EXPECT_CALLS("ibv_reg_mr ibv_reg_mr");
    assert_int_equal(fake_nth("ibv_reg_mr", 1)->reg_mr.access, LOCAL_WRITE);
    assert_int_equal(fake_nth("ibv_reg_mr", 2)->reg_mr.access,
                     LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    MUST(rpma_mr_dereg(&mr));
    world_drop(&w);
}

static void reg_retries_once(void **state) {
    (void)state;
    fake_device()->odp = true;
    new_peer();
    fake_fail("ibv_reg_mr", 1, EOPNOTSUPP);
    fake_fail("ibv_reg_mr", 2, EFAULT);
    mr = NULL;
    WATCH(mr);
    EXPECT_ERROR(rpma_mr_reg(w.h.peer, w.memory, 64, RPMA_MR_USAGE_SEND, &mr), RPMA_E_PROVIDER,
                 "ibv_reg_mr() failed", "ibv_reg_mr()", EFAULT, "ibv_reg_mr ibv_reg_mr");
    world_drop(&w);
}

static void advise_hands_the_range_on(void **state) {
    (void)state;
    new_peer();
    register_with(RPMA_MR_USAGE_READ_SRC);
    MUST(rpma_mr_advise(mr, 16, UINT32_MAX, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                        IBV_ADVISE_MR_FLAG_FLUSH));
    EXPECT_CALLS("ibv_advise_mr");
    const struct fake_call *call = fake_last("ibv_advise_mr");
    assert_int_equal(call->advise.advice, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
    assert_int_equal(call->advise.flags, IBV_ADVISE_MR_FLAG_FLUSH);
    assert_int_equal(call->advise.sge.addr, (uintptr_t)w.memory + 16);
    assert_int_equal(call->advise.sge.length, UINT32_MAX);
    assert_int_equal(call->advise.sge.lkey, fake_lkey(w.memory));
    MUST(rpma_mr_dereg(&mr));
    world_drop(&w);
}

static struct rlimit memlock;

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit) {
    assert_int_equal(resource, RLIMIT_MEMLOCK);
    *limit = memlock;
    return 0;
}

static void reg_names_the_limit_of_locked_memory(void **state) {
    (void)state;
    static const struct {
        rlim_t limit;
        int error;
        bool is_told;
    } cases[] = {{65536, ENOMEM, true}, {RLIM_INFINITY, ENOMEM, false}, {65536, EIO, false}};
    new_peer();
    for (size_t i = 0; i < LENGTH(cases); i++) {
        memlock.rlim_cur = cases[i].limit;
        fake_fail("ibv_reg_mr", 1, cases[i].error);
        EXPECT_ERROR(rpma_mr_reg(w.h.peer, w.memory, 64, RPMA_MR_USAGE_SEND, &w.h.mr),
                     RPMA_E_PROVIDER, "ibv_reg_mr() failed", "ibv_reg_mr()", cases[i].error,
                     "ibv_reg_mr");
        fake_faults_off();
        const char *message = logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message;
        assert_int_equal(strstr(message, "may lock 64 KiB (RLIMIT_MEMLOCK)") != NULL,
                         cases[i].is_told);
    }
    world_drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(usage_becomes_access),
        TEST(getters_tell_what_was_registered),
        TEST(descriptor_has_the_layout_of_all_releases),
        TEST(reg_fails_with_the_provider),
        TEST(reg_names_the_limit_of_locked_memory),
        TEST(reg_fails_without_on_demand_paging),
        TEST(reg_retries_with_on_demand_paging),
        TEST(reg_retries_once),
        TEST(advise_hands_the_range_on),
    };
    return UNIT_RUN("mr", tests);
}
