// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr.c -- local memory regions: registration, on-demand paging, descriptors, advice; remote
// regions from descriptors of 21 bytes

#include "fixture.h"

#include <sys/resource.h>

static void register_with(int usage) {
    MUST(rpma_mr_reg(w.h.peer, w.memory, 64, usage, &w.h.mr));
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
    ATOMIC = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE,
};

TEST_THAT(each_usage_has_its_access_flags) {
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
        {RPMA_MR_USAGE_ATOMIC | RPMA_MR_USAGE_SEND, ATOMIC, ATOMIC},
        {RPMA_MR_USAGE_ATOMIC | RPMA_MR_USAGE_READ_SRC, ATOMIC | REMOTE_READ,
         ATOMIC | REMOTE_READ},
        {FIXTURE_EVERY_USAGE, LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ,
         LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ},
    };
    static const enum ibv_transport_type transports[] = {
        IBV_TRANSPORT_IB, IBV_TRANSPORT_IWARP, IBV_TRANSPORT_UNKNOWN, IBV_TRANSPORT_USNIC_UDP};
    for (size_t t = 0; t < LENGTH(transports); t++) {
        const bool iwarp = transports[t] == IBV_TRANSPORT_IWARP;
        fake_device()->transport_type = transports[t];
        new_peer();
        for (size_t i = 0; i < LENGTH(cases); i++) {
            register_with(cases[i].usage);
            EXPECT_CALLS("ibv_reg_mr");
            const struct fake_call *call = fake_last("ibv_reg_mr");
            assert_int_equal(call->reg_mr.access,
                             iwarp ? cases[i].access_on_iwarp : cases[i].access);
            assert_ptr_equal(call->reg_mr.addr, w.memory);
            assert_int_equal(call->reg_mr.length, 64);
            void *ptr = NULL;
            size_t size = 0, desc_size = 0;
            MUST(rpma_mr_get_ptr(w.h.mr, &ptr));
            MUST(rpma_mr_get_size(w.h.mr, &size));
            MUST(rpma_mr_get_descriptor_size(w.h.mr, &desc_size));
            EXPECT_CALLS("");
            assert_ptr_equal(ptr, w.memory);
            assert_int_equal(size, 64);
            assert_int_equal(desc_size, 21);
            MUST(rpma_mr_dereg(&w.h.mr));
            EXPECT_CALLS("ibv_dereg_mr");
            assert_null(w.h.mr);
        }
        fixture_delete(&w);
    }
}

// The layout is the wire format of every release: it must never change.
TEST_THAT(descriptor_has_the_layout_of_all_releases) {
    new_peer();
    for (int usage = 1; usage <= (FIXTURE_EVERY_USAGE | RPMA_MR_USAGE_ATOMIC); usage++) {
        unsigned char desc[1 + 21 + 1], expected[21];
        if (usage == RPMA_MR_USAGE_ATOMIC) // invalid alone: the descriptor would have no usage
            continue;
        register_with(usage);
        assert_int_equal(fake_last("ibv_reg_mr")->reg_mr.length, 64);
        memset(desc, 0x5a, sizeof(desc));
        assert_int_equal(rpma_mr_get_descriptor(w.h.mr, desc + 1), 0); // unaligned
        fixture_descriptor(expected, (uintptr_t)w.memory, 64, fake_rkey(w.memory),
                           (uint8_t)usage);
        assert_memory_equal(desc + 1, expected, sizeof(expected));
        assert_int_equal(desc[0], 0x5a);
        assert_int_equal(desc[22], 0x5a);
        MUST(rpma_mr_dereg(&w.h.mr));
    }
}

static struct rlimit memlock;

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit) {
    assert_int_equal(resource, RLIMIT_MEMLOCK);
    *limit = memlock;
    return 0;
}

// On-demand paging is tried once if the device supports it. The line names a missing
// capability.
TEST_THAT(reg_fails_with_the_provider) {
    static const char access[] =
        "length=64, access=IBV_ACCESS_LOCAL_WRITE|IBV_ACCESS_REMOTE_READ)";
    static const char lock[] = "may lock 64 KiB (RLIMIT_MEMLOCK)",
                      paging[] = "on-demand paging";
    static const struct {
        bool odp, dax;
        int faults[2], error;
        const char *advice, *absent;
        rlim_t limit;
    } cases[] = {
        {true, false, {EIO}, EIO, access, paging, 65536},
        {true, false, {EINVAL}, EINVAL, access, paging, 65536},
        {true, false, {EACCES}, EACCES, access, paging, 65536},
        {true, false, {ENOMEM}, ENOMEM, access, paging, 65536},
        {false, false, {ENOMEM}, ENOMEM, lock, paging, 65536},
        {false, false, {ENOMEM}, ENOMEM, access, lock, RLIM_INFINITY},
        {false, false, {EIO}, EIO, access, lock, 65536},
        {false, true, {0}, EOPNOTSUPP, "FS-DAX needs on-demand paging", lock, 65536},
        {true, false, {EOPNOTSUPP, EFAULT}, EFAULT, "ON_DEMAND", lock, 65536},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        fixture_reset();
        fake_profile()->has_odp = cases[i].odp;
        fake_device()->dax = cases[i].dax; // memory that needs on-demand paging
        memlock.rlim_cur = cases[i].limit;
        new_peer();
        for (unsigned n = 0; n < 2; n++)
            if (cases[i].faults[n])
                fake_fail("ibv_reg_mr", n + 1, cases[i].faults[n]);
        WATCH(w.h);
        EXPECT_ERROR(rpma_mr_reg(w.h.peer, w.memory, 64,
                                 RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST, &w.h.mr),
                     RPMA_E_PROVIDER, "ibv_reg_mr() failed", "ibv_reg_mr()", cases[i].error,
                     cases[i].faults[1] ? "ibv_reg_mr ibv_reg_mr" : "ibv_reg_mr",
                     .logs = cases[i].advice);
        assert_null(strstr(logged_text(), cases[i].absent));
    }
}

TEST_THAT(advise_passes_the_range) {
    new_peer();
    register_with(RPMA_MR_USAGE_READ_SRC);
    MUST(rpma_mr_advise(w.h.mr, 16, UINT32_MAX, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                        IBV_ADVISE_MR_FLAG_FLUSH));
    EXPECT_CALLS("ibv_advise_mr");
    const struct fake_call *call = fake_last("ibv_advise_mr");
    assert_int_equal(call->advise.advice, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
    assert_int_equal(call->advise.flags, IBV_ADVISE_MR_FLAG_FLUSH);
    assert_int_equal(call->advise.sge.addr, (uintptr_t)w.memory + 16);
    assert_int_equal(call->advise.sge.length, UINT32_MAX);
    assert_int_equal(call->advise.sge.lkey, fake_lkey(w.memory));
}

// ---- remote regions ------------------------------------------------------------------------

static struct rpma_mr_remote *remote;

TEST_THAT(from_descriptor_reads_every_field) {
    static const uint64_t sizes[] = {0,         1, 64, UINT32_MAX, (uint64_t)UINT32_MAX + 1,
                                     UINT64_MAX};
    for (size_t i = 0; i < LENGTH(sizes); i++) // each region ends at the highest address
        for (unsigned usage = 1; usage <= UINT8_MAX; usage++) {
            unsigned char unaligned[1 + 21 + 40];
            uint64_t addr = 1;
            uint32_t rkey = 1;
            size_t size = 1;
            int flush_type = -1;
            memset(unaligned, 0xff, sizeof(unaligned)); // the following bytes are ignored
            fixture_descriptor(unaligned + 1, UINT64_MAX - sizes[i], sizes[i],
                               UINT32_MAX - usage, (uint8_t)usage);
            MUST(rpma_mr_remote_from_descriptor(unaligned + 1, 21 + usage % 41, &remote));
            EXPECT_CALLS("");
            MUST(rpma_mr_remote_get_size(remote, &size));
            assert_int_equal(size, sizes[i]);
            MUST(rpma_mr_remote_get_key(remote, &addr, &rkey));
            assert_true(addr == UINT64_MAX - sizes[i] && rkey == UINT32_MAX - usage);
            MUST(rpma_mr_remote_get_flush_type(remote, &flush_type));
            assert_int_equal(flush_type, usage & (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                                                  RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT));
            MUST(rpma_mr_remote_delete(&remote));
            assert_null(remote);
        }
}
