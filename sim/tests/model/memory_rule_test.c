// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// memory_rule_test.c -- sequences of operations, and which words they make visible and
// persistent. All expected values are written by hand, from the sources that
// model/memory_rule.c names.

#include "../../device/rules.h"
#include "../../model/memory_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS = 8, OPERATIONS = 5, WRITERS = 2 }; // of a region

// W: write, I: with immediate data, S: send, A: atomic write, P: fetch-and-add, C:
// compare-and-swap, R: read, F: persistent flush, V: visibility flush
struct operation {
    char what;
    unsigned writer, at, length; // in bytes
};

// Bit n: word n.
static const struct sequence {
    struct operation operations[OPERATIONS];
    unsigned visible, persistent[SIM_PLATFORMS];
} SEQUENCES[] = {
// clang-format off
#define TWO {'W', 0, 0, 8}, {'W', 0, 8, 8}
    // A write alone promises nothing, also after another one.
    {{TWO}, 0, {0, 0, 0}},
    // A read of at least 1 byte, anywhere, follows all earlier writes of its connection.
    {{TWO, {'R', 0, 0, 0}}, 0, {0, 0, 0}},
    {{TWO, {'R', 0, 0, 1}}, 3, {3, 0, 3}},
    {{TWO, {'R', 0, 0, 8}}, 3, {3, 0, 3}},
    {{TWO, {'R', 0, 0, 9}}, 3, {3, 0, 0}},
    {{TWO, {'R', 0, 8, 8}}, 3, {3, 0, 2}},
    {{TWO, {'R', 0, 40, 8}}, 3, {3, 0, 0}},
    {{{'R', 0, 0, 8}, TWO}, 0, {0, 0, 0}},
    {{TWO, {'R', 1, 0, 8}}, 0, {0, 0, 0}},
    {{{'W', 0, 0, 8}, {'R', 0, 0, 8}, {'W', 0, 8, 8}}, 1, {1, 0, 1}},
    {{{'W', 0, 0, 8}, {'W', 1, 8, 8}, {'R', 0, 0, 8}}, 1, {1, 0, 1}},
    // Of a word that two connections write, a read makes the write of its own persistent.
    {{{'W', 0, 0, 8}, {'R', 0, 0, 9}, {'W', 1, 0, 8}}, 1, {1, 0, 0}},
    // Atomic operations read. What they write is not earlier.
    {{TWO, {'P', 0, 16, 8}}, 7, {3, 0, 0}},
    {{TWO, {'C', 0, 16, 8}}, 7, {3, 0, 0}},
    {{TWO, {'P', 0, 16, 8}, {'R', 0, 16, 8}}, 7, {7, 0, 4}},
    // An atomic write, a message and immediate data are visible after the earlier writes.
    {{TWO, {'A', 0, 16, 8}}, 7, {0, 0, 0}},
    {{TWO, {'I', 0, 16, 8}}, 7, {0, 0, 0}},
    {{TWO, {'I', 0, 0, 0}}, 3, {0, 0, 0}},
    {{TWO, {'S', 0, 0, 0}}, 3, {0, 0, 0}},
    {{TWO, {'S', 1, 0, 0}}, 0, {0, 0, 0}},
    // A flush has a range of whole words; only its persistent type makes them persistent.
    {{TWO, {'F', 0, 0, 16}}, 3, {3, 3, 3}},
    {{TWO, {'F', 0, 0, 1}}, 1, {1, 1, 1}},
    {{TWO, {'F', 0, 7, 2}}, 3, {3, 3, 3}},
    {{TWO, {'F', 0, 8, 8}}, 2, {2, 2, 2}},
    {{TWO, {'F', 0, 16, 8}}, 0, {0, 0, 0}},
    {{TWO, {'F', 0, 0, 0}}, 0, {0, 0, 0}},
    {{TWO, {'F', 1, 0, 16}}, 0, {0, 0, 0}},
    {{TWO, {'V', 0, 0, 16}}, 3, {0, 0, 0}},
    {{TWO, {'V', 0, 0, 0}}, 0, {0, 0, 0}},
    {{TWO, {'V', 0, 0, 16}, {'F', 0, 0, 8}}, 3, {1, 1, 1}},
    {{{'F', 0, 0, 16}, TWO}, 0, {0, 0, 0}},
    {{{'A', 0, 0, 8}, {'F', 0, 0, 8}}, 1, {1, 1, 1}},
    {{{'A', 0, 0, 8}, {'R', 0, 0, 8}}, 1, {1, 0, 1}},
    // The flag of a record: it is never persistent before the record.
    {{TWO, {'F', 0, 0, 16}, {'A', 0, 16, 8}}, 7, {3, 3, 3}},
    {{TWO, {'R', 0, 0, 8}, {'A', 0, 16, 8}, {'R', 0, 16, 8}}, 7, {7, 0, 7}},
    // clang-format on
};

static uint32_t opcode_of(char what) {
    static const uint32_t OPCODES[] = {['W'] = IBV_WR_RDMA_WRITE,
                                       ['I'] = IBV_WR_RDMA_WRITE_WITH_IMM,
                                       ['S'] = IBV_WR_SEND,
                                       ['A'] = SIM_WR_ATOMIC_WRITE,
                                       ['P'] = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                       ['C'] = IBV_WR_ATOMIC_CMP_AND_SWP,
                                       ['R'] = IBV_WR_RDMA_READ,
                                       ['F'] = SIM_WR_FLUSH,
                                       ['V'] = SIM_WR_FLUSH};
    return OPCODES[(int)what];
}

struct state {
    unsigned pending[WRITERS], visible; // words
    uint64_t persistent[WORDS];
    uint32_t settled[WORDS];
    struct sim_stores stores;
};

static unsigned words_of(unsigned at, unsigned length, enum sim_reach reach) {
    const unsigned first = at / 8, end = length == 0 ? first : (at + length + 7) / 8;
    switch (reach) {
    case SIM_NO_WRITES:
        return 0;
    case SIM_WRITES_IN_RANGE:
        return (1U << end) - (1U << first);
    case SIM_WRITES_IN_REST:
        return (1U << WORDS) - (1U << first);
    default:
        return (1U << WORDS) - 1;
    }
}

static void show(struct state *state, unsigned writer, unsigned words) {
    state->pending[writer] &= ~words;
    state->visible |= words;
    for (unsigned word = 0; word < WORDS; word++)
        if (words >> word & 1)
            sim_add_store(&state->stores, (struct sim_store){word, writer, 1});
}

static void execute_operation(struct state *state, const struct operation *operation,
                              enum sim_platform platform) {
    const uint32_t opcode = opcode_of(operation->what);
    const unsigned type = operation->what == 'F' ? SIM_FLUSH_PERSISTENT : SIM_FLUSH_GLOBAL,
                   writer = operation->writer, at = operation->at, length = operation->length;
    show(state, writer,
         state->pending[writer] & words_of(at, length, sim_made_visible(opcode, length)));
    const unsigned persistent =
        words_of(at, length, sim_made_persistent(platform, opcode, type, length));
    for (unsigned word = 0; word < WORDS; word++)
        if (persistent >> word & 1)
            sim_flush_stores(&state->stores, writer, word, word + 1);
    const unsigned written = words_of(at, length, SIM_WRITES_IN_RANGE);
    if (operation->what == 'W')
        state->pending[writer] |= written;
    else if (strchr("IAPC", operation->what))
        show(state, writer, written);
}

static void sequences_make_words_visible_and_persistent(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof(SEQUENCES) / sizeof(SEQUENCES[0]); i++)
        for (unsigned platform = 0; platform < SIM_PLATFORMS; platform++) {
            const struct sequence *sequence = &SEQUENCES[i];
            struct state state = {0};
            state.stores.persistent = state.persistent;
            state.stores.settled = state.settled;
            for (size_t k = 0; k < OPERATIONS && sequence->operations[k].what; k++)
                execute_operation(&state, &sequence->operations[k], platform);
            unsigned persistent = 0;
            for (unsigned word = 0; word < WORDS; word++)
                persistent |= (unsigned)state.persistent[word] << word;
            const unsigned expected = sequence->persistent[platform];
            if (state.visible != sequence->visible || persistent != expected)
                fail_msg("sequence %zu, %s: words %#x are visible and %#x persistent, not %#x "
                         "and %#x",
                         i, sim_platform_names[platform], state.visible, persistent,
                         sequence->visible, expected);
            free(state.stores.all);
        }
}

// ---- stores --------------------------------------------------------------------------------

enum { FLUSH = 1, REMOVE }; // what happens to stores

// Four stores of words 1 and 2, in this order: values 10 of writer 0, 20 of writer 1, 30 of
// writer 0, and 40 of writer 0 in word 2.
static const struct loss {
    unsigned what, writer, first, end; // of FLUSH and REMOVE
    unsigned survivors;                // bit n: store n of those that are left
    uint64_t word_1, word_2;           // after a power failure
    size_t left;
} LOSSES[] =
    {
        {0, 0, 0, 0, 0, 1, 2, 4},
        {0, 0, 0, 0, 1, 10, 2, 4},
        {0, 0, 0, 0, 2, 20, 2, 4},
        {0, 0, 0, 0, 3, 20, 2, 4}, // the later one of two survivors
        {0, 0, 0, 0, 15, 30, 40, 4},
        {FLUSH, 0, 1, 3, 0, 30, 40, 0}, // removes older stores of other writers
        {FLUSH, 0, 1, 2, 0, 30, 2, 1},  // only in its range
        {FLUSH, 0, 2, 3, 0, 1, 40, 3},
        {FLUSH, 1, 1, 3, 0, 20, 2, 2}, // newer stores of other writers are not persistent
        {FLUSH, 1, 1, 3, 1, 30, 2, 2},
        {FLUSH, 2, 1, 3, 0, 1, 2, 4}, // of a writer without stores
        {REMOVE, 0, 1, 2, 0, 1, 2, 1},
        {REMOVE, 0, 0, 1, 0, 1, 2, 4},
};

static uint64_t next_mask(void *survivors) {
    unsigned *const bits = survivors;
    const bool survives = *bits & 1;
    *bits >>= 1;
    return survives ? UINT64_MAX : 0;
}

static void power_failure_leaves_each_store_or_not(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof(LOSSES) / sizeof(LOSSES[0]); i++) {
        const struct loss *loss = &LOSSES[i];
        uint64_t persistent[WORDS] = {0, 1, 2};
        uint32_t settled[WORDS] = {0};
        struct sim_stores stores = {persistent, settled, 0, NULL, 0, 0};
        sim_add_store(&stores, (struct sim_store){1, 0, 10});
        sim_add_store(&stores, (struct sim_store){1, 1, 20});
        sim_add_store(&stores, (struct sim_store){1, 0, 30});
        sim_add_store(&stores, (struct sim_store){2, 0, 40});
        if (loss->what == FLUSH)
            sim_flush_stores(&stores, loss->writer, loss->first, loss->end);
        else if (loss->what == REMOVE)
            sim_remove_stores(&stores, loss->first, loss->end);
        unsigned survivors = loss->survivors;
        sim_lose_power(&stores, persistent, next_mask, &survivors);
        if (persistent[1] != loss->word_1 || persistent[2] != loss->word_2 ||
            stores.count != loss->left || persistent[0] != 0 || persistent[3] != 0)
            fail_msg("loss %zu: words 1 and 2 are %lu and %lu, and %zu stores are left", i,
                     persistent[1], persistent[2], stores.count);
        free(stores.all);
    }
}

static uint64_t half_mask(void *unused) {
    (void)unused;
    return 0xffffffff;
}

// A platform that does not write whole words keeps some bytes of a store.
static void power_failure_can_tear_a_word(void **unused) {
    (void)unused;
    uint64_t persistent[1] = {0x1111111111111111};
    uint32_t settled[1] = {0};
    struct sim_stores stores = {persistent, settled, 0, NULL, 0, 0};
    sim_add_store(&stores, (struct sim_store){0, 0, 0x2222222222222222});
    sim_lose_power(&stores, persistent, half_mask, NULL);
    assert_true(persistent[0] == 0x1111111122222222);
    free(stores.all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_make_words_visible_and_persistent),
        cmocka_unit_test(power_failure_leaves_each_store_or_not),
        cmocka_unit_test(power_failure_can_tear_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
