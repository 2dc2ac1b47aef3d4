// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// atomic.c -- remote atomics: the request for each, what is refused, and their execution over
// memory of a target; and which operations are solicited

#include "operation.h"
#include "target.h"

#include <stdio.h>

static struct rpma_mr_remote *words; // states that it takes remote atomics

static void begin(void) {
    world_conn(&w, &(const struct shape){.max_sge = 2});
    MUST(rpma_batch_new(w.h.conn, 3, &w.h.batch));
    words = packed_remote(WORLD_REMOTE_ADDR + 4, WORLD_REMOTE_SIZE, 78, WORLD_EVERY_USAGE, 1);
}

static void end(void) {
    MUST(rpma_mr_remote_delete(&words));
    world_drop(&w);
}

static const enum rpma_work_type kinds[] = {RPMA_WORK_FETCH_ADD, RPMA_WORK_COMPARE_SWAP};

// To the word at 0x10018. Members that no remote atomic reads have wrong values.
static struct rpma_work atomic(enum rpma_work_type kind, int flags) {
    return (struct rpma_work){.type = kind,
                              .imm = 0x12345678,
                              .remote = words,
                              .remote_offset = 20,
                              .local = {w.h.mr, 24, 8},
                              .flush_type = (enum rpma_flush_type)77,
                              .flush_len = SIZE_MAX,
                              .value = 0x1122334455667788,
                              .compare = 0x99aabbccddeeff00,
                              .flags = flags,
                              .op_context = &w};
}

static struct fake_post expected(const struct rpma_work *o) {
    const bool swaps = o->type == RPMA_WORK_COMPARE_SWAP;
    const bool always = o->flags == RPMA_F_COMPLETION_ALWAYS;
    return (struct fake_post){
        .wr_id = (uintptr_t)&w,
        .opcode = swaps ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
        .flags = IBV_SEND_FENCE | (always ? IBV_SEND_SIGNALED : 0U),
        .remote_addr = WORLD_REMOTE_ADDR + 4 + 20,
        .rkey = 78,
        .elements = {.num_sge = 1, .sge = {(uintptr_t)w.memory + 24, 8, fake_lkey(w.memory)}},
        .compare_add = swaps ? o->compare : o->value,
        .swap = o->value,
    };
}

TEST_THAT(requests_have_the_operands) {
    for (int native = 0; native <= BUILD_FLUSHES; native++) {
        world_anew();
        fake_device()->native_flush = native;
        begin();
        for (size_t i = 0; i < 2 * LENGTH(kinds); i++)
            for (enum operation_way way = 0; way < OPERATION_WAYS; way++) {
                const struct rpma_work o =
                    atomic(kinds[i / 2],
                           i % 2 ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR);
                const struct fake_post wanted = expected(&o);
                MUST(operation_by(way, &o, &w));
                const struct fake_post got = operation_got(way);
                operation_compare(&got, &wanted, operation_names[way].function);
            }
        end();
    }
}

// Beside a native flush they go to the extended queue pair, in their order.
TEST_THAT(native_lists_have_them) {
    fake_device()->native_flush = true;
    begin();
    struct rpma_work work[] = {operation_of(&w, RPMA_WORK_FLUSH),
                               atomic(RPMA_WORK_FETCH_ADD, RPMA_F_COMPLETION_ALWAYS),
                               atomic(RPMA_WORK_COMPARE_SWAP, RPMA_F_COMPLETION_ON_ERROR)};
    MUST(rpma_post(w.h.conn, work, LENGTH(work), NULL));
    assert_int_equal(fake_count("ibv_wr_complete"), BUILD_FLUSHES);
    for (unsigned i = 1; i < LENGTH(work); i++) {
        const struct fake_post wanted = expected(&work[i]), got = operation_posted(i);
        operation_compare(&got, &wanted, "in a native list");
    }
    end();
}

// Not even asked for where the device has none: an extended queue pair could be refused.
TEST_THAT(extended_queue_pairs_have_what_the_device_has) {
    const uint64_t both =
        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
    for (int has = 0; has < 2; has++) {
        world_anew();
        fake_device()->native_flush = true;
        fake_device()->atomic_cap = has ? IBV_ATOMIC_GLOB : IBV_ATOMIC_NONE;
        world_peer(&w);
        MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req));
        const uint64_t asked = fake_last("rdma_create_qp_ex")->qp.send_ops_flags & both;
        assert_int_equal(asked, has && BUILD_FLUSHES ? both : 0);
        world_drop(&w);
    }
}

// ---- what is refused; work_refused.c has the members ----------------------------------------

static void expect_refused(const struct rpma_work *o, int code, const char *condition,
                           const char *cause, const char *logs) {
    for (enum operation_way way = 0; way < OPERATION_WAYS; way++) {
        MUST(rpma_batch_reset(w.h.batch));
        unit_begin();
        unit_expect_error(operation_by(way, o, &w), operation_names[way].function,
                          &(struct expected_error){code, condition, cause, .logs = logs,
                                                   .before = operation_names[way].element,
                                                   .any_calls = true},
                          __FILE__, __LINE__);
        assert_int_equal(fake_posted_count(), way == OPERATION_ARRAY);
    }
}

// A descriptor has no place for the statement, and packed data of 1.4 does not make it.
TEST_THAT(regions_have_to_state_it) {
    static const char condition[] = "the remote region does not state RPMA_MR_USAGE_ATOMIC";
    begin();
    struct rpma_mr_remote *silent =
        packed_remote(WORLD_REMOTE_ADDR, WORLD_REMOTE_SIZE, 79, WORLD_EVERY_USAGE, 0xfe);
    const struct rpma_mr_remote *const regions[] = {w.h.remote, silent};
    for (size_t i = 0; i < LENGTH(kinds) * LENGTH(regions); i++) {
        struct rpma_work o = atomic(kinds[i % LENGTH(kinds)], RPMA_F_COMPLETION_ALWAYS);
        o.remote = regions[i / LENGTH(kinds)];
        o.remote_offset = 16;
        expect_refused(&o, RPMA_E_NOSUPP, condition, condition,
                       "does not state RPMA_MR_USAGE_ATOMIC of the remote region: register it "
                       "there with that");
    }
    MUST(rpma_mr_remote_delete(&silent));
    end();
}

TEST_THAT(the_device_has_to_have_them) {
    static const char condition[] = "the device has no remote atomics";
    fake_device()->atomic_cap = IBV_ATOMIC_NONE;
    begin();
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        const struct rpma_work o = atomic(kinds[i], RPMA_F_COMPLETION_ALWAYS);
        expect_refused(&o, RPMA_E_NOSUPP, condition, condition,
                       "fake0 has no remote atomics (IBV_ATOMIC_NONE)");
    }
    assert_int_equal(fake_count("ibv_query_device_ex"), 0); // asked once, with the peer
    end();
}

TEST_THAT(queues_without_room_are_an_answer) {
    begin();
    fake_device()->fast = false;
    const struct rpma_work o = atomic(RPMA_WORK_FETCH_ADD, RPMA_F_COMPLETION_ALWAYS);
    uint32_t posted = 77;
    int ret;
    unit_begin();
    while ((ret = rpma_post(w.h.conn, &o, 1, &posted)) == 0)
        assert_int_equal(posted, 1);
    assert_int_equal(ret, RPMA_E_AGAIN);
    assert_int_equal(posted, 0);
    MUST(rpma_post(w.h.conn, &o, 1, NULL)); // MUST() gives the device the time
    end();
}

// Who has the key may use the memory: it stands in a line for debugging, and so does not stand
// what lies in its place in other requests.
TEST_THAT(log_lines_name_the_request) {
    static const char *const logs[] = {
        "opcode=IBV_WR_ATOMIC_FETCH_AND_ADD, remote_addr=0x10018, ",
        "opcode=IBV_WR_ATOMIC_CMP_AND_SWP, remote_addr=0x10018, "};
    begin();
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        const struct rpma_work o = atomic(kinds[i], RPMA_F_COMPLETION_ALWAYS);
        uint32_t posted = 77;
        fake_fail("ibv_post_send", 1, EIO);
        EXPECT_ERROR(rpma_post(w.h.conn, &o, 1, &posted), RPMA_E_PROVIDER,
                     "ibv_post_send() failed", "ibv_post_send()", EIO, "ibv_post_send", logs[i],
                     .before = "work[0]: ");
        assert_int_equal(posted, 0);
        assert_non_null(strstr(logged_text(), "rkey=0x4e, "));
        assert_non_null(strstr(logged_text(), "send_flags=IBV_SEND_FENCE|IBV_SEND_SIGNALED"));
        fake_faults_off();
    }
    end();
}

// ---- execution -----------------------------------------------------------------------------

// To a word of a target region, of which the newest content is found after a power failure that
// spares everything.
static struct rpma_work target_atomic(enum rpma_work_type kind, unsigned conn, size_t offset,
                                      uint64_t compare, uint64_t value) {
    return (struct rpma_work){.type = kind,
                              .remote = target_remotes[0],
                              .remote_offset = offset,
                              .local = {target_worlds[conn].h.mr, 32, 8},
                              .value = value,
                              .compare = compare,
                              .flags = RPMA_F_COMPLETION_ALWAYS};
}

static uint64_t found(size_t offset) {
    uint64_t word;
    fake_power_failure(UINT64_MAX);
    memcpy(&word, target_found[0] + offset, sizeof(word));
    return word;
}

static uint64_t result(unsigned conn) {
    uint64_t word;
    memcpy(&word, target_worlds[conn].memory + 32, sizeof(word));
    return word;
}

static void expect_result(enum target_way way, struct rpma_work o, uint64_t before,
                          uint64_t after) {
    target_run(&(const struct step){o, 0}, 1, way);
    assert_int_equal(result(0), before);
    assert_int_equal(found(o.remote_offset), after);
}

TEST_THAT(words_change_as_the_operands_say) {
    const uint64_t big = UINT64_MAX - 1;
    for (enum target_way way = 0; way < TARGET_WAYS; way++) {
        world_anew();
        target_begin(false);
#define ADD(value, before, after) \
    expect_result(way, target_atomic(RPMA_WORK_FETCH_ADD, 0, 8, 77, value), before, after)
#define SWAP(compare, value, before, after)                                                 \
    expect_result(way, target_atomic(RPMA_WORK_COMPARE_SWAP, 0, 8, compare, value), before, \
                  after)
        ADD(5, 0, 5);
        ADD(0, 5, 5);
        ADD(big, 5, 3); // modulo 2^64
        SWAP(4, 9, 3, 3);
        SWAP(3, 0x0102030405060708, 3, 0x0102030405060708);
        SWAP(0x0102030405060708, 0, 0x0102030405060708, 0);
        SWAP(0, 0, 0, 0);
        assert_int_equal(found(0), 0); // its neighbours are as they were
        assert_int_equal(found(16), 0);
        target_end();
    }
}

TEST_THAT(they_stand_in_the_order_of_posting) {
    target_begin(false);
    uint64_t first = 40;
    memcpy(target_worlds[0].memory + TARGET_SOURCE, &first, sizeof(first));
    const struct step steps[] = {
        {target_write(0, 0, 8, 8), 0}, // 40
        {target_atomic(RPMA_WORK_FETCH_ADD, 0, 8, 0, 2), 0},
        {target_atomic(RPMA_WORK_FETCH_ADD, 1, 8, 0, 100), 1},
        {target_atomic(RPMA_WORK_COMPARE_SWAP, 0, 8, 142, 7), 0},
    };
    target_run(steps, LENGTH(steps), TARGET_ONE_BY_ONE);
    assert_int_equal(result(0), 142);
    assert_int_equal(result(1), 42);
    assert_int_equal(found(8), 7);
    target_end();
}

// The connection is broken then, and nothing behind it is executed.
TEST_THAT(targets_refuse_what_they_do_not_serve) {
    for (int i = 0; i < 3; i++) {
        world_anew();
        target_begin(false);
        struct rpma_work o = target_atomic(RPMA_WORK_FETCH_ADD, 0, 8, 0, 1);
        if (i == 0)
            o.remote_offset = (TARGET_SIZE | 7) - 7; // three bytes of the word are there
        else if (i == 1)
            fake_target_without_atomics(target_regions[0].rkey);
        target_run(&(const struct step){o, 0}, 1, TARGET_ONE_BY_ONE);
        target_run(&(const struct step){target_write(0, 0, 16, 8), 0}, 1, TARGET_ONE_BY_ONE);
        assert_int_equal(found(8), i == 2);
        assert_int_equal(found(16) != 0, i == 2);
        target_end();
    }
}

// A prepared batch: the operands are those of the last rpma_batch_set().
TEST_THAT(batches_count) {
    target_begin(false);
    struct rpma_batch *const batch = target_worlds[0].h.batch;
    struct rpma_work o = target_atomic(RPMA_WORK_FETCH_ADD, 0, 8, 0, 1);
    MUST(rpma_batch_add(batch, &o));
    MUST(rpma_batch_post(batch, NULL));
    MUST(rpma_batch_post(batch, NULL));
    assert_int_equal(found(8), 2);
    o.value = 10;
    MUST(rpma_batch_set(batch, 0, &o));
    o.value = 1000; // was copied
    MUST(rpma_batch_post(batch, NULL));
    assert_int_equal(found(8), 12);
    target_end();
}

// ---- solicited -----------------------------------------------------------------------------

TEST_THAT(messages_and_immediate_data_can_be_solicited) {
    begin();
    for
        OPERATION_EACH_KIND(kind) {
            const bool can = kind == RPMA_WORK_WRITE_WITH_IMM || kind == RPMA_WORK_SEND ||
                             kind == RPMA_WORK_SEND_WITH_IMM;
            for (int solicits = 0; solicits < 2; solicits++) {
                struct rpma_work o = operation_of(&w, kind);
                o.flags |= solicits ? RPMA_F_SOLICITED : 0;
                const unsigned wanted = can && solicits ? IBV_SEND_SOLICITED : 0;
                fake_forget();
                assert_int_equal(operation_plain(&o, w.h.conn), 0); // others ignore it
                assert_int_equal(operation_posted(0).flags & IBV_SEND_SOLICITED, wanted);
                for (enum operation_way way = 0; can && way < OPERATION_WAYS; way++) {
                    MUST(operation_by(way, &o, &w));
                    assert_int_equal(operation_got(way).flags & IBV_SEND_SOLICITED, wanted);
                }
            }
        }
    // Without memory on either side, too.
    MUST(rpma_send(w.h.conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS | RPMA_F_SOLICITED, NULL));
    assert_int_equal(operation_posted(0).flags, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
    MUST(rpma_write_with_imm(w.h.conn, NULL, 0, NULL, 0, 0,
                             RPMA_F_COMPLETION_ON_ERROR | RPMA_F_SOLICITED, 1, NULL));
    assert_int_equal(operation_posted(0).flags, IBV_SEND_SOLICITED);
    MUST(rpma_write(w.h.conn, NULL, 0, NULL, 0, 0,
                    RPMA_F_COMPLETION_ON_ERROR | RPMA_F_SOLICITED, NULL));
    assert_int_equal(operation_posted(0).flags, 0);
    end();
}
