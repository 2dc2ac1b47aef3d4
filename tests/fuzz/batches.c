// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batches.c -- random operations, posts, refusals and resets of a batch against a simple model:
// the list that was added, and how much of it the device has taken
//
// What the device gets is held against what the plain function of each operation hands to it.
//
// batches [SEED] takes other random numbers.

#include "operation.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORLDS = 60, STEPS = 400, ROOM = 12, MOST_SGES = 4 };

static uint64_t seed = 1;
static struct world w;
static struct rpma_mr_remote *misaligned;

// What was added and not yet forgotten; taken: of the list, by posts that did not end it.
static struct fake_post list[ROOM];
static unsigned length, taken;
static unsigned long accepted, refused, whole, cut;

// splitmix64
static uint64_t random_64(void) {
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static unsigned below(unsigned limit) {
    return (unsigned)(random_64() % limit);
}

static bool now_and_then(unsigned times) {
    return below(times) == 0;
}

// Small ones, and those at the edges.
static size_t random_size(void) {
    static const size_t edges[] = {0, UINT32_MAX, (size_t)UINT32_MAX + 1, SIZE_MAX};
    return now_and_then(8) ? edges[below(LENGTH(edges))] : below(100);
}

static struct operation random_operation(void) {
    static struct rpma_sge sgl[OPERATION_MOST_SGES];
    static char value[8];
    for (size_t i = 0; i < LENGTH(sgl); i++)
        sgl[i] = (struct rpma_sge){now_and_then(9) ? NULL : w.h.mr,
                                   now_and_then(3) ? 0 : random_size(),
                                   now_and_then(3) ? 0 : random_size()};
    for (size_t i = 0; i < sizeof(value); i++)
        value[i] = (char)random_64();
    return (struct operation){
        .kind = (enum operation_kind)below(OPERATION_KINDS),
        .local = now_and_then(9) ? NULL : w.h.mr,
        .remote = now_and_then(9)   ? NULL
                  : now_and_then(9) ? misaligned
                                    : w.h.remote,
        .local_offset = now_and_then(3) ? 0 : random_size(),
        .remote_offset = now_and_then(3) ? random_size() : 8u * below(8),
        .len = random_size(),
        .sgl = now_and_then(9) ? NULL : sgl,
        .nsge = (int)below(MOST_SGES + 2) - now_and_then(9),
        .value = now_and_then(9) ? NULL : value,
        .type = (enum rpma_flush_type)below(3),
        .flags = (int)below(4),
        .imm = (uint32_t)random_64(),
        .op_context = (void *)(uintptr_t)random_64(),
    };
}

// Taken or refused as by the plain function; a full batch refuses everything.
static void add(void) {
    const struct operation o = random_operation();
    unit_begin();
    const int plain = operation_post(&o, w.h.conn);
    const struct fake_post post = plain == 0 ? operation_posted(0) : (struct fake_post){0};
    unit_begin();
    const int ret = operation_add(&o, w.h.batch);
    EXPECT_CALLS("");
    if (plain != 0 || length == ROOM) {
        assert_int_equal(ret, plain != 0 && length < ROOM ? plain : RPMA_E_INVAL);
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_ERROR), 1);
        refused++;
        return;
    }
    assert_int_equal(ret, 0);
    list[length++] = post;
    accepted++;
}

static void expect_posted(unsigned from, unsigned count) {
    assert_int_equal(fake_posted_count(), count);
    for (unsigned i = 0; i < count; i++) {
        const struct fake_post got = operation_posted(i);
        assert_memory_equal(&got, &list[from + i], sizeof(got));
    }
}

// The nth of the pending operations is refused, or none if there are not as many; then the
// doorbell may fail, or its success hides the refusal.
static void post(void) {
    const unsigned pending = length - taken, nth = 1 + below(2 * ROOM);
    const bool is_refused = nth <= pending, rings = !now_and_then(4);
    uint32_t posted = UINT32_MAX;
    fake_device()->keeps_bad_wr = now_and_then(2);
    fake_device()->hides_refusals = now_and_then(2);
    fake_fail(nth == 1 ? "ibv_post_send" : "send request", nth == 1 ? 1 : nth - 1, ENOMEM);
    // Behind a list that is taken whole, a provider that names no request has no such failure.
    if (!rings && !fake_device()->keeps_bad_wr)
        fake_fail("doorbell", 1, EIO);
    unit_begin();
    const int ret = rpma_batch_post(w.h.batch, now_and_then(5) ? NULL : &posted);
    fake_faults_off();
    const unsigned got = is_refused ? nth - 1 : pending;
    const bool failed = is_refused || (pending > 0 && !rings && !fake_device()->keeps_bad_wr);
    assert_int_equal(ret, failed ? RPMA_E_PROVIDER : 0);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_ERROR), failed);
    assert_true(posted == UINT32_MAX || posted == got);
    assert_int_equal(fake_count("ibv_post_send"), pending > 0);
    expect_posted(taken, got);
    taken = is_refused ? taken + got : 0;
    whole += !is_refused;
    cut += is_refused;
}

static void reset(void) {
    MUST(rpma_batch_reset(w.h.batch));
    EXPECT_CALLS("");
    length = taken = 0;
}

static void live(void) {
    unsigned char desc[21];
    fake_reset();
    length = taken = 0;
    assert_true(world_conn(&w, &(const struct shape){.max_sge = MOST_SGES}));
    world_descriptor(desc, WORLD_REMOTE_ADDR + 4, WORLD_REMOTE_SIZE, 78, WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &misaligned));
    MUST(rpma_batch_new(w.h.conn, ROOM, &w.h.batch));
    for (int i = 0; i < STEPS; i++) {
        const unsigned what = below(10);
        if (what < 6)
            add();
        else if (what < 9)
            post();
        else if (now_and_then(2))
            reset();
    }
    MUST(rpma_mr_remote_delete(&misaligned));
    world_drop(&w);
    unit_nothing_left("after some steps");
}

static void batches_are_as_the_model(void **state) {
    (void)state;
    for (int i = 0; i < WORLDS; i++)
        live();
    print_message("%lu operations added, %lu refused, %lu lists posted whole, %lu cut\n",
                  accepted, refused, whole, cut);
    assert_true(accepted > 1000 && refused > 1000 && whole > 1000 && cut > 1000);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {TEST(batches_are_as_the_model)};
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    printf("seed %#llx\n", (unsigned long long)seed);
    const char *trouble = fake_hook_allocator();
    if (trouble) {
        fprintf(stderr, "batches: %s\n", trouble);
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
