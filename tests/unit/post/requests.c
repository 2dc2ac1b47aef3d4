// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// requests.c -- the request that the device gets for each type of operation, by every post
// method, and the log line of the plain functions when the device rejects it

#include "request.h"

#include <stdio.h>

// ---- every post method ---------------------------------------------------------------------

enum { PLAIN = POST_METHODS, METHODS }; // the function that posts one operation of that type

static int post_by(int method, const struct rpma_work *o) {
    return method == PLAIN ? operation_plain(o, w.h.conn)
                           : operation_by((enum post_method)method, o, &w);
}

static const char *name_of(int method, const struct rpma_work *o) {
    return method == PLAIN ? operation_plain_name(o->type) : operation_names[method].function;
}

// Plain functions have no lists, and ignore flags that other methods reject.
static bool takes(int method, const struct rpma_work *o) {
    const int flags = o->flags;
    if (method == PLAIN)
        return !is(o, ATOMIC_KINDS) && (o->nsge == 0 || !is(o, LOCAL_KINDS));
    return flags & RPMA_F_COMPLETION_ON_ERROR && flags >> 4 == 0 &&
           (!(flags & RPMA_F_INLINE) || is(o, INLINE_KINDS)) &&
           (!(flags & RPMA_F_SOLICITED) || is(o, SOLICITED_KINDS));
}

static void expect(struct rpma_work o) {
    static const int flags[] = {
        RPMA_F_COMPLETION_ON_ERROR,
        RPMA_F_COMPLETION_ALWAYS,
        RPMA_F_COMPLETION_ALWAYS | RPMA_F_SOLICITED,
        RPMA_F_COMPLETION_ON_ERROR | RPMA_F_INLINE,
        RPMA_F_COMPLETION_ALWAYS | RPMA_F_INLINE | RPMA_F_SOLICITED,
        1 << 1,
        1 << 4,
        ~0,
    };
    // Inline data is read during the call, so it has to exist.
    bool fits =
        o.nsge > 0 || (o.local.offset < FIXTURE_REMOTE_SIZE && o.local.len <= INLINE_ROOM);
    size_t length = 0;
    for (uint32_t i = 0; is(&o, LOCAL_KINDS) && i < o.nsge; i++)
        length += o.sgl[i].len;
    fits &= length <= INLINE_ROOM;
    for (size_t i = 0; i < LENGTH(flags); i++) {
        o.flags = flags[i];
        if (o.flags & RPMA_F_INLINE && is(&o, INLINE_KINDS) && !fits)
            continue;
        const struct fake_post expected = request(&o);
        for (int method = 0; method < METHODS; method++) {
            if (!takes(method, &o))
                continue;
            MUST_OF(name_of(method, &o), post_by(method, &o));
            const struct fake_post got =
                operation_posted(method != OPERATION_POST && method != PLAIN);
            operation_compare(&got, &expected, name_of(method, &o));
        }
    }
}

// Returns whether the remote offset is valid; work_refused.c has invalid ones.
static bool is_possible(const struct rpma_work *o) {
    switch (o->type) {
    case RPMA_WORK_FLUSH:
        return o->remote_offset < FIXTURE_REMOTE_SIZE || flushes;
    case RPMA_WORK_ATOMIC_WRITE:
        return o->remote_offset % 8 == 0;
    case RPMA_WORK_FETCH_ADD:
    case RPMA_WORK_COMPARE_SWAP:
        return (FIXTURE_REMOTE_ADDR + 4 + o->remote_offset) % 8 == 0;
    default:
        return true;
    }
}

// The provider checks ranges: lengths and offsets beyond the region are passed on.
static void expect_ranges(struct rpma_work o) {
    static const size_t lengths[] = {0, 1, 8, 20, UINT32_MAX};
    static const size_t offsets[] = {0, 8, 20, FIXTURE_REMOTE_SIZE - 3, SIZE_MAX - 7};
    const bool is_atomic = is(&o, ATOMIC_KINDS);
    o.remote = is_atomic ? misaligned : o.remote;
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (size_t k = 0; k < LENGTH(offsets); k++) {
            o.remote_offset = offsets[k];
            o.flush_len = lengths[i];
            o.flush_type = i % 2 ? RPMA_FLUSH_TYPE_VISIBILITY : RPMA_FLUSH_TYPE_PERSISTENT;
            if (is(&o, LOCAL_KINDS | ATOMIC_KINDS))
                o.local =
                    (struct rpma_sge){list_regions[k % 3], offsets[(i + k) % LENGTH(offsets)],
                                      is_atomic ? 8 : lengths[i]};
            if (is_possible(&o))
                expect(o);
        }
    o.remote_offset = is_atomic ? 20 : 16;
    o.remote = o.remote ? misaligned : NULL;
    expect(o);
}

static void expect_sges(struct rpma_work o) {
    struct rpma_sge sgl[LIST_MAX];
    o.sgl = sgl;
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        o.nsge = make_sges(sgl, pattern);
        expect(o);
    }
}

static void expect_nothing(struct rpma_work o) {
    o.remote = NULL;
    o.remote_offset = 0;
    o.local = (struct rpma_sge){NULL, 0, 0};
    expect(o);
}

TEST_THAT(post_functions_build_the_same_request) {
    for (int on_native = 0; on_native < 2; on_native++) {
        request_begin(on_native, on_native, 3);
        fake_device()->any_range = true;
        for (unsigned kind = RPMA_WORK_READ; kind <= RPMA_WORK_COMPARE_SWAP; kind++) {
            static const struct rpma_sge unread = {NULL, 1, 1};
            struct rpma_work o = operation_of(&w, (enum rpma_work_type)kind);
            if (kind != RPMA_WORK_COMPARE_SWAP)
                o.compare = UINT64_MAX; // members that the type does not use are ignored
            if (!is(&o, LOCAL_KINDS | ATOMIC_KINDS))
                o.sgl = &unread;
            expect_ranges(o);
            if (is(&o, LOCAL_KINDS)) {
                expect_sges(o);
                expect_nothing(o);
            }
        }
        request_end();
    }
}

#define BITS_32 ((uint64_t)1 << 32)
#define TO_THE_END (UINT64_MAX - FIXTURE_REMOTE_ADDR)

// An emulated flush reads 8 bytes, or all bytes up to the end of the region.
TEST_THAT(flush_reads_inside_the_region) {
    static const struct {
        uint64_t size, offset;
    } cases[] = {{64, 0},
                 {64, 56},
                 {64, 57},
                 {64, 63},
                 {8, 0},
                 {8, 1},
                 {1, 0},
                 {7, 0},
                 {(uint64_t)1 << 48, (uint64_t)1 << 40},
                 // Sizes just above 32 bits, and regions up to the highest address.
                 {BITS_32 + 3, 0},
                 {BITS_32 + 3, BITS_32 - 5},
                 {BITS_32 + 3, BITS_32},
                 {BITS_32 + 3, BITS_32 + 2},
                 {TO_THE_END, TO_THE_END - 8},
                 {TO_THE_END, TO_THE_END - 7},
                 {TO_THE_END, TO_THE_END - 1}};
    request_begin(false, false, 3);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rpma_work o = operation_of(&w, RPMA_WORK_FLUSH);
        struct rpma_mr_remote *remote =
            packed_remote(FIXTURE_REMOTE_ADDR, cases[i].size, 9, FIXTURE_EVERY_USAGE, 0);
        o.remote = remote;
        o.remote_offset = cases[i].offset;
        o.flush_len = UINT32_MAX;
        expect(o);
        MUST(rpma_mr_remote_delete(&remote));
    }
    request_end();
}

// rpma_write_atomic(), which has no work type.
TEST_THAT(old_atomic_write_reads_its_bytes_from_a_region) {
    request_begin(true, true, 3);
    for (int flags = 1; flags < 1 << 5; flags++) {
        const struct fake_post expected = {
            .wr_id = 7,
            .opcode = IBV_WR_RDMA_WRITE,
            .flags = IBV_SEND_FENCE | (flags & 1 << 1 ? IBV_SEND_SIGNALED : 0),
            .remote_addr = FIXTURE_REMOTE_ADDR + 8,
            .rkey = FIXTURE_REMOTE_RKEY,
            .sg_list = {1, {{(uintptr_t)w.memory + 16, 8, fake_lkey(w.memory)}}}};
        MUST(rpma_write_atomic(w.h.conn, w.h.remote, 8, w.h.mr, 16, flags, (void *)7));
        const struct fake_post got = operation_posted(0);
        operation_compare(&got, &expected, "rpma_write_atomic");
    }
    fake_fail("ibv_post_send", 1, EINVAL);
    EXPECT_ERROR(rpma_write_atomic(w.h.conn, w.h.remote, 8, w.h.mr, 16, 1, NULL),
                 RPMA_E_PROVIDER, "ibv_post_send() failed", "ibv_post_send()", EINVAL,
                 "ibv_post_send");
    request_end();
}

// A connection logs one warning, whichever method posts the first misaligned write.
TEST_THAT(misaligned_atomic_write_is_logged_once) {
    for (int i = 0; i < 2 * METHODS; i++) {
        const int first = i / 2;
        request_begin(i % 2, i % 2, 3);
        struct rpma_work o = operation_of(&w, RPMA_WORK_ATOMIC_WRITE);
        MUST(post_by(first, &o));
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
        o.remote = misaligned;
        MUST(post_by(first, &o));
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 1);
        assert_string_equal(logged_line(RPMA_LOG_LEVEL_WARNING, 0)->function,
                            name_of(first, &o));
        logged_forget();
        for (int method = 0; method < METHODS; method++)
            assert_int_equal(post_by(method, &o), 0);
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
        fake_fail("ibv_post_send", 1, ENOMEM);
        EXPECT_ERROR_OF("rpma_atomic_write", post_by(PLAIN, &o), RPMA_E_PROVIDER,
                        "ibv_post_send() failed", "ibv_post_send()", ENOMEM, "ibv_post_send");
        fake_faults_off();
        request_end();
    }
}

// ---- log lines of rejected plain operations ------------------------------------------------

#define FULL "the send queue is full, it holds "
// full_queue.hh has the providers that return a negative number. ENOSPC:
// rdma-core 56, providers/rxe/rxe_queue.h, check_qp_queue_full(). When a doorbell fails, the
// operation is already queued.
static const struct refusal {
    const char *fault; // NULL: the call that posts
    int returned, error;
    const char *logs;
} refusals[] = {
    {NULL, ENOMEM, ENOMEM, FULL},
    {NULL, ENOSPC, ENOSPC, FULL},
    {NULL, EINVAL, EINVAL, "wr_id="},
    {"doorbell", EINVAL, EINVAL, "wr_id="},
    {NULL, -ENOMEM, ENOMEM, FULL},
    {NULL, -1, 0, ") failed; the send queue is full, it holds "},
};

static void refuse(const struct rpma_work *o) {
    const bool is_native = o->type == RPMA_WORK_FLUSH
                               ? flushes
                               : o->type == RPMA_WORK_ATOMIC_WRITE && writes_atomically;
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        const struct refusal *r = &refusals[i];
        if (is_native && r->returned < 0) // builders return no such values
            continue;
        fake_fail(r->fault    ? r->fault
                  : is_native ? "ibv_wr_complete"
                              : "ibv_post_send",
                  1, r->returned);
        EXPECT_ERROR_OF(operation_plain_name(o->type), operation_plain(o, w.h.conn),
                        RPMA_E_PROVIDER, "ibv_post_send() failed",
                        is_native ? "ibv_wr_complete()" : "ibv_post_send()", r->error,
                        .logs = r->logs, .any_calls = true);
        assert_int_equal(fake_posted_count(), r->fault != NULL);
        fake_faults_off();
        const char *const key = o->remote ? "rkey=0x4d, lkey=" : "rkey=0x0, lkey=";
        if (!is_native)
            assert_memory_equal(logged_line(RPMA_LOG_LEVEL_DEBUG, 0)->message, key,
                                strlen(key));
    }
}

TEST_THAT(refusals_of_the_device_are_logged) {
    for (int on_native = 0; on_native < 2; on_native++) {
        request_begin(on_native, on_native, 3);
        for
            OPERATION_EACH_KIND(kind) {
                struct rpma_work o = operation_of(&w, kind);
                refuse(&o);
                o.remote = NULL;
                o.remote_offset = 0;
                o.local = (struct rpma_sge){NULL, 0, 0};
                if (is(&o, LOCAL_KINDS))
                    refuse(&o);
            }
        request_end();
    }
}

// The key grants access to the memory: only DEBUG logs it. Other requests have another member
// at its offset, which must not be logged as a key.
TEST_THAT(refused_atomics_are_logged) {
    static const char *const logs[] = {
        "opcode=IBV_WR_ATOMIC_FETCH_AND_ADD, remote_addr=0x10018, ",
        "opcode=IBV_WR_ATOMIC_CMP_AND_SWP, remote_addr=0x10018, "};
    request_begin(false, false, 3);
    for (int i = 0; i < 2; i++) {
        struct rpma_work o = operation_of(&w, i ? RPMA_WORK_COMPARE_SWAP : RPMA_WORK_FETCH_ADD);
        o.remote = misaligned;
        o.remote_offset = 20;
        fake_fail("ibv_post_send", 1, EIO);
        EXPECT_ERROR(rpma_post(w.h.conn, &o, 1, NULL), RPMA_E_PROVIDER,
                     "ibv_post_send() failed", "ibv_post_send()", EIO, "ibv_post_send", logs[i],
                     .before = "work[0]: ");
        assert_non_null(strstr(logged_text(), "rkey=0x4e, "));
        assert_non_null(strstr(logged_text(), "send_flags=IBV_SEND_FENCE|IBV_SEND_SIGNALED"));
        fake_faults_off();
    }
    request_end();
}

// ---- too much inline data ------------------------------------------------------------------

// An inline operation with this many bytes, in one SGE or in two halves.
static struct rpma_work inline_work(enum rpma_work_type kind, bool is_list, size_t length) {
    static struct rpma_sge sgl[2];
    struct rpma_work o = operation_of(&w, kind);
    sgl[0] = (struct rpma_sge){w.h.mr, 4, length / 2};
    sgl[1] = (struct rpma_sge){w.h.mr, 4 + length / 2, length - length / 2};
    o.local = (struct rpma_sge){w.h.mr, 4, length};
    o.sgl = is_list ? sgl : NULL;
    o.nsge = is_list ? 2 : 0;
    o.flags |= RPMA_F_INLINE;
    return o;
}

// Data that fits is rejected only if the queue is full, larger data always: a provider may
// return the same error for both (send_advice() of post/failures.cc).
static void exceed_inline_room(enum rpma_work_type kind, bool is_list, int error) {
    static const char line[] =
        "81 bytes are to be sent inline, the connection allows 80 at most: raise "
        "it with rpma_conn_cfg_set_inline_size()";
    for (int method = 0; method < METHODS; method++) {
        const struct rpma_work fits = inline_work(kind, is_list, INLINE_ROOM);
        const bool of_batch = method == OPERATION_ADD || method == OPERATION_SET;
        const unsigned before = method != OPERATION_POST && method != PLAIN;
        if (!takes(method, &fits))
            continue;
        MUST(post_by(method, &fits));
        fake_fail(before ? "refuse ibv_post_send" : "ibv_post_send", 1, ENOMEM);
        assert_int_equal(post_by(method, &fits),
                         method == PLAIN ? RPMA_E_PROVIDER : RPMA_E_AGAIN);
        fake_faults_off();
        assert_non_null(strstr(logged_text(), "the send queue is full"));
        const struct rpma_work o = inline_work(kind, is_list, INLINE_ROOM + 1);
        EXPECT_ERROR_OF(of_batch ? "rpma_batch_post" : name_of(method, &o), post_by(method, &o),
                        RPMA_E_PROVIDER, "ibv_post_send() failed", "ibv_post_send()", error,
                        .logs = line, .any_calls = true,
                        .before = of_batch          ? "batch[1]: "
                                  : method == PLAIN ? ""
                                                    : operation_names[method].element);
        assert_int_equal(fake_posted_count(), before);
    }
}

TEST_THAT(oversized_inline_data_is_reported_unlike_a_full_queue) {
    static const int errors[] = {EINVAL, ENOMEM};
    for (size_t e = 0; e < LENGTH(errors); e++) {
        request_begin(false, false, 3);
        fake_profile()->inline_error = errors[e];
        for
            OPERATION_EACH_KIND(kind)
        for (int is_list = 0; INLINE_KINDS >> kind & 1 && is_list < 2; is_list++)
            exceed_inline_room(kind, is_list, errors[e]);
        request_end();
    }
}

// ---- posts before the connection -----------------------------------------------------------

// A connection of a device before its RPMA_CONN_ESTABLISHED, and a batch.
static void begin_connecting(const char *device, bool incoming) {
    const struct shape shape = {.incoming = incoming};
    fixture_reset();
    fake_device()->profile = *sim_find_profile(device);
    fixture_peer(&w);
    fixture_request(&w, &shape);
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
    MUST(rpma_batch_new(w.h.conn, 3, &w.h.batch));
}

static void refuse_early(enum rpma_work_type kind, int error, bool is_queued) {
    const struct rpma_work o = operation_of(&w, kind);
    for (int method = 0; method < METHODS; method++) {
        const bool of_batch = method == OPERATION_ADD || method == OPERATION_SET;
        if (!takes(method, &o))
            continue;
        char before[64] = "";
        const char *const array = of_batch ? "batch" : "work";
        if (is_queued && method != PLAIN && method != OPERATION_POST)
            snprintf(before, sizeof(before), "%s[0] to %s[2] (queued): ", array, array);
        else if (method != PLAIN)
            snprintf(before, sizeof(before), "%s[0]%s: ", array, is_queued ? " (queued)" : "");
        EXPECT_ERROR_OF(of_batch ? "rpma_batch_post" : name_of(method, &o), post_by(method, &o),
                        RPMA_E_PROVIDER, "ibv_post_send() failed", "ibv_post_send()", error,
                        .logs = "the connection is not established: post after "
                                "RPMA_CONN_ESTABLISHED",
                        .any_calls = true, .before = before);
        assert_int_equal(fake_posted_count() != 0, is_queued);
    }
}

// mlx5 has the same error number for both: rdma-core 56, providers/mlx5/qp.c,
// _mlx5_post_send().
TEST_THAT(early_post_is_reported_unlike_a_full_queue) {
    static const struct {
        const char *device;
        int error;
        bool is_queued;
    } rows[] = {{"mlx5", ENOMEM}, {"mlx5-ib", ENOMEM}, {"hns", EINVAL}, {"rxe", EINVAL, true}};
    for (size_t i = 0; i < LENGTH(rows); i++)
        for
            OPERATION_EACH_KIND(kind) {
                begin_connecting(rows[i].device, false);
                if (LOCAL_KINDS >> kind & 1)
                    refuse_early(kind, rows[i].error, rows[i].is_queued);
            }
}

// A server may send as soon as it has accepted: rdma-core 56, librdmacm/cma.c, rdma_accept().
// On iWARP the state of the queue pair does not show the connection.
TEST_THAT(full_queue_of_a_server_or_iwarp_is_reported) {
    static const struct {
        const char *device;
        bool incoming;
    } rows[] = {{"mlx5", true}, {"rxe", true}, {"siw", true}, {"siw", false}};
    for (size_t i = 0; i < LENGTH(rows); i++) {
        begin_connecting(rows[i].device, rows[i].incoming);
        if (!rows[i].incoming) {
            fake_cm_event(fixture_event_fd(&w), RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
            MUST(rpma_conn_next_event(w.h.conn, &w.h.event));
        }
        const struct rpma_work o = operation_of(&w, RPMA_WORK_WRITE);
        fake_fail("ibv_post_send", 1, ENOMEM);
        EXPECT_ERROR(rpma_post(w.h.conn, &o, 1, NULL), RPMA_E_AGAIN, "the send queue is full",
                     "the send queue is full", .calls = "ibv_post_send", .before = "work[0]: ");
        fake_fail("ibv_post_send", 1, ENOMEM);
        EXPECT_ERROR_OF("rpma_write", operation_plain(&o, w.h.conn), RPMA_E_PROVIDER,
                        "ibv_post_send() failed", "ibv_post_send()", ENOMEM, "ibv_post_send",
                        FULL);
        fake_faults_off();
        // A failed queue pair was connected: its queue is full as well.
        MUST(rpma_conn_disconnect(w.h.conn));
        fake_fail("ibv_post_send", 1, ENOMEM);
        EXPECT_ERROR(rpma_post(w.h.conn, &o, 1, NULL), RPMA_E_AGAIN, "the send queue is full",
                     "the send queue is full", .calls = "ibv_post_send", .before = "work[0]: ");
        fake_faults_off();
    }
}
