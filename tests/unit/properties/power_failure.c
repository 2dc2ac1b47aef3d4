// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// power_failure.c -- the bytes that survive a power failure of the target: bytes that were
// flushed after a write, in the range and on the connection of the flush, and no others;
// operations after a rejected one; remote atomics

#include "operation_plain.h"
#include "packed.h"
#include "target.h"

#include <stdio.h>

// ---- a target and two connections to it ----------------------------------------------------

enum { WORD = 8, TARGET_MAX_STEPS = 8, TARGET_SGES = 8 };
enum { TARGET_SOURCE = 16 }; // offset of the bytes of target_write()

static struct {
    struct rpma_conn *conn;
    struct rpma_batch *batch;
    struct rpma_mr_local *mr; // of memory without zero bytes
    unsigned char memory[4096];
} initiators[2];
static struct rpma_peer *peer;
static const struct target_region *regions;
static struct rpma_mr_remote *target_remotes[TARGET_REGIONS], *unknown;
static unsigned char target_expected[TARGET_REGIONS][TARGET_SIZE];

// MUST() without the fakes.
void unit_begin(void) {}

void unit_must(int ret, const char *text, const char *file, int line) {
    if (ret)
        print_error("%s:%d: %s returns %d\n", file, line, text, ret);
    assert_int_equal(ret, 0);
}

static struct rpma_mr_remote *target_remote(int region, uint32_t rkey) {
    // Permits native flushes of every type and remote atomics.
    return packed_remote(regions[region].addr, TARGET_SIZE, rkey, FIXTURE_EVERY_USAGE, 0x31);
}

static void connect_initiator(size_t i) {
    enum rpma_conn_event event;
    struct rpma_conn_cfg *cfg;
    struct rpma_conn_req *req;
    struct rpma_peer_cfg *pcfg;
    MUST(rpma_conn_cfg_new(&cfg));
    MUST(rpma_conn_cfg_set_max_sge(cfg, TARGET_SGES));
    MUST(rpma_conn_req_new(peer, TARGET_ADDRESS, TARGET_PORT, cfg, &req));
    MUST(rpma_conn_cfg_delete(&cfg));
    MUST(rpma_conn_req_connect(&req, NULL, &initiators[i].conn));
    regions = target_accept();
    MUST(rpma_conn_next_event(initiators[i].conn, &event));
    assert_int_equal(event, RPMA_CONN_ESTABLISHED);
    MUST(rpma_peer_cfg_new(&pcfg));
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
    MUST(rpma_conn_apply_remote_peer_cfg(initiators[i].conn, pcfg));
    MUST(rpma_peer_cfg_delete(&pcfg));
    MUST(rpma_batch_new(initiators[i].conn, TARGET_MAX_STEPS, &initiators[i].batch));
    MUST(rpma_mr_reg(peer, initiators[i].memory, sizeof(initiators[i].memory),
                     FIXTURE_EVERY_USAGE, &initiators[i].mr));
}

static void target_begin(bool native) {
    struct ibv_context *context;
    target_start(native && BUILD_FLUSHES, native && BUILD_WRITES_ATOMICALLY);
    MUST(rpma_utils_get_ibv_context(TARGET_ADDRESS, RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
    MUST(rpma_peer_new(context, &peer));
    for (size_t i = 0; i < LENGTH(initiators); i++)
        connect_initiator(i);
    for (int r = 0; r < TARGET_REGIONS; r++)
        target_remotes[r] = target_remote(r, regions[r].rkey);
    unknown = target_remote(0, 79);
}

// Prepares a sequence on the same connections.
static void target_reset(void) {
    memset(target_expected, 0, sizeof(target_expected));
    target_clear();
    for (size_t c = 0; c < LENGTH(initiators); c++)
        for (size_t i = 0; i < sizeof(initiators[c].memory); i++)
            initiators[c].memory[i] = (unsigned char)(1 + i % 251);
}

static void target_finish(void) {
    MUST(rpma_mr_remote_delete(&unknown));
    for (int r = 0; r < TARGET_REGIONS; r++)
        MUST(rpma_mr_remote_delete(&target_remotes[r]));
    for (size_t i = 0; i < LENGTH(initiators); i++) {
        MUST(rpma_batch_delete(&initiators[i].batch));
        MUST(rpma_conn_delete(&initiators[i].conn));
        MUST(rpma_mr_dereg(&initiators[i].mr));
    }
    MUST(rpma_peer_delete(&peer));
    target_end();
}

// Takes all completions. Returns whether a connection failed.
static bool take_completions(void) {
    bool failed = false;
    for (size_t i = 0; i < LENGTH(initiators); i++) {
        struct rpma_cq *cq;
        struct ibv_wc wc;
        MUST(rpma_conn_get_cq(initiators[i].conn, &cq));
        while (rpma_cq_get_wc(cq, 1, &wc, NULL) == 0)
            failed |= wc.status != IBV_WC_SUCCESS;
    }
    return failed;
}

struct step {
    struct rpma_work o;
    unsigned conn;
};
enum target_method { TARGET_SINGLY, TARGET_IN_AN_ARRAY, TARGET_BATCHED, TARGET_METHODS };

// The number of leading steps that use the same connection.
static size_t batch_length(const struct step *steps, size_t count) {
    size_t row = 1;
    while (row < count && row < TARGET_MAX_STEPS && steps[row].conn == steps[0].conn)
        row++;
    return row;
}

// Posts each step alone, or successive steps of one connection as an array or a batch.
static void target_run(const struct step *steps, size_t count, enum target_method method) {
    for (size_t row; count > 0; steps += row, count -= row) {
        struct rpma_work work[TARGET_MAX_STEPS];
        struct rpma_conn *const conn = initiators[steps->conn].conn;
        struct rpma_batch *const batch = initiators[steps->conn].batch;
        row = method == TARGET_SINGLY ? 1 : batch_length(steps, count);
        for (size_t i = 0; i < row; i++)
            work[i] = steps[i].o;
        if (method == TARGET_SINGLY && work[0].nsge == 0) {
            MUST(operation_plain(&work[0], conn));
        } else if (method != TARGET_BATCHED) {
            MUST(rpma_post(conn, work, (uint32_t)row, NULL));
        } else {
            for (size_t i = 0; i < row; i++)
                MUST(rpma_batch_add(batch, &work[i]));
            MUST(rpma_batch_post(batch, NULL));
            MUST(rpma_batch_reset(batch));
        }
    }
}

static struct rpma_work target_flush(int region, size_t from, size_t to) {
    return (struct rpma_work){.type = RPMA_WORK_FLUSH,
                              .remote = target_remotes[region],
                              .remote_offset = from,
                              .flush_len = to - from,
                              .flush_type = RPMA_FLUSH_TYPE_PERSISTENT,
                              .flags = RPMA_F_COMPLETION_ALWAYS};
}

static struct rpma_work target_write(unsigned conn, int region, size_t offset, size_t len) {
    return (struct rpma_work){.type = RPMA_WORK_WRITE,
                              .local = {initiators[conn].mr, TARGET_SOURCE, len},
                              .remote = target_remotes[region],
                              .remote_offset = offset,
                              .flags = RPMA_F_COMPLETION_ON_ERROR};
}

// ---- sequences -----------------------------------------------------------------------------

enum { NO_MEMORY = TARGET_REGIONS }; // a region with an invalid key

// W: write, I: with immediate data, N: inline, S: from several SGEs, A: atomic write, P: fetch
// and add, C: compare and swap, F: persistent flush, V: visibility flush, R: read, L: into
// several SGEs.
struct op {
    char what;
    unsigned conn;
    int region;
    size_t at, len;
};
static const struct sequence {
    struct op ops[4];
    // Bit mask of the operations whose bytes are found if no unflushed word survives, and the
    // number of unflushed words; at [1] with native flushes.
    unsigned found[2], lost[2];
    bool stops; // the target stops before the last operation
} sequences[] = {
// clang-format off
#define FIRST(n) {(1 << (n)) - 1, (1 << (n)) - 1}
    // Words with at least one byte in the range survive. An emulated flush has no end of the
    // range: see sim/model/memory_rule.h.
#define WORDS {'W', 0, 0, 24, 8}, {'W', 0, 0, 32, 8}
    {{WORDS, {'F', 0, 0, 24, 16}}, FIRST(2), {0, 0}},
    {{WORDS, {'F', 0, 0, 24, 1}}, {3, 1}, {0, 1}},
    {{WORDS, {'F', 0, 0, 31, 1}}, {3, 1}, {0, 1}},
    {{WORDS, {'F', 0, 0, 31, 2}}, FIRST(2), {0, 0}},
    {{WORDS, {'F', 0, 0, 32, 1}}, {2, 2}, {1, 1}},
    {{WORDS, {'F', 0, 0, 0, 24}}, {3, 0}, {0, 2}},
    {{WORDS, {'F', 0, 0, 40, 8}}, FIRST(0), {2, 2}},
    {{WORDS, {'F', 0, 0, 24, 0}}, {3, 0}, {0, 2}},
    {{WORDS, {'F', 0, 0, 0, TARGET_SIZE}}, FIRST(2), {0, 0}},
    {{WORDS, {'F', 1, 0, 24, 16}}, FIRST(0), {2, 2}},
    {{WORDS, {'F', 0, 1, 24, 16}}, FIRST(0), {2, 2}},
    {{WORDS, {'V', 0, 0, 24, 16}}, {3, 0}, {0, 2}},
    {{{'F', 0, 0, 24, 16}, WORDS}, FIRST(0), {2, 2}},
    // Every operation that writes, and every part of a word.
    {{{'W', 0, 0, 0, 0}, {'W', 0, 1, 3, 1}, {'F', 0, 1, 3, 1}}, FIRST(2), {0, 0}},
    {{{'W', 0, 1, 3, 9}, {'W', 0, 1, TARGET_SIZE - 9, 9}, {'F', 0, 1, 0, TARGET_SIZE}},
     FIRST(2), {0, 0}},
    {{{'I', 0, 1, 3, 7}, {'N', 0, 1, 24, 9}, {'F', 0, 1, 0, 40}}, FIRST(2), {0, 0}},
    {{{'S', 0, 0, 3, 2000}, {'P', 0, 0, 2048, 8}, {'C', 0, 0, 2064, 8}, {'F', 0, 0, 0, 2072}},
     FIRST(3), {0, 0}},
    // Each flush covers its own region.
#define WRITES {'W', 0, 0, 40, 9}, {'W', 0, 1, 200, 9}
    {{WRITES}, FIRST(0), {4, 4}},
    {{WRITES, {'F', 0, 0, 40, 9}}, FIRST(1), {2, 2}},
    {{WRITES, {'F', 0, 1, 200, 9}}, {2, 2}, {2, 2}},
    {{WRITES, {'F', 0, 0, 40, 9}, {'F', 0, 1, 200, 9}}, FIRST(2), {0, 0}},
    // A flush persists half a word of another connection only if that half was written
    // earlier.
    {{{'W', 0, 0, 16, 4}, {'W', 1, 0, 20, 4}, {'F', 0, 0, 16, 8}}, FIRST(1), {1, 1}},
    {{{'W', 1, 0, 20, 4}, {'W', 0, 0, 16, 4}, {'F', 0, 0, 16, 8}}, FIRST(2), {0, 0}},
    // A record, then the tail of its log: the tail never survives without the record.
#define RECORD {'W', 0, 0, 64, 20}, {'F', 0, 0, 64, 20}
#define TAIL {'A', 0, 0, 0, WORD}
    {{RECORD}, FIRST(0), {3, 3}, .stops = true},
    {{RECORD, TAIL}, FIRST(1), {0, 0}, .stops = true},
    {{RECORD, TAIL}, FIRST(1), {1, 1}},
    {{RECORD, TAIL, {'F', 0, 0, 0, WORD}}, FIRST(3), {0, 0}},
    // A read returns unflushed data. One of up to 8 bytes persists it like an emulated flush, of
    // which it is one; no program may rely on longer ones.
    {{{'W', 0, 1, 33, 100}, {'R', 0, 1, 33, 100}}, FIRST(0), {14, 14}},
    {{{'W', 0, 1, 33, 100}, {'L', 0, 1, 33, 100}}, FIRST(0), {14, 14}},
    {{WORDS, {'R', 0, 0, 24, 9}}, FIRST(0), {2, 2}},
    {{WORDS, {'R', 0, 0, 24, 8}}, {3, 0}, {0, 2}},
    {{WORDS, {'R', 0, 0, 31, 1}}, {3, 0}, {0, 2}},
    {{WORDS, {'R', 0, 0, 32, 8}}, {2, 0}, {1, 2}},
    {{WORDS, {'R', 1, 0, 24, 8}}, FIRST(0), {2, 2}},
    {{WORDS, {'R', 0, 0, 24, 0}}, FIRST(0), {2, 2}},
    // A rejected operation breaks the connection, so later operations are not executed. An
    // emulated flush does not read beyond the end of the region.
#define WRITTEN {'W', 0, 0, 40, 16}
#define FLUSHED {'F', 0, 0, 40, 16}
    {{WRITTEN, {'W', 0, NO_MEMORY, 0, 8}, FLUSHED}, FIRST(0), {2, 2}},
    {{WRITTEN, {'W', 0, 0, TARGET_SIZE - 7, 8}, FLUSHED}, FIRST(0), {2, 2}},
    {{WRITTEN, {'F', 0, NO_MEMORY, 0, 8}, FLUSHED}, FIRST(0), {2, 2}},
    {{WRITTEN, {'F', 0, 0, TARGET_SIZE - 7, 8}, FLUSHED}, {1, 0}, {0, 2}},
    {{WRITTEN, {'P', 0, 0, (TARGET_SIZE | 7) - 7, 8}, FLUSHED}, FIRST(0), {2, 2}},
    {{WRITTEN, {'P', 0, 0, 8, 8}, FLUSHED}, FIRST(1), {1, 1}},
    // clang-format on
};

static unsigned char *const memory = initiators[0].memory;
enum { READ_AT = 1500 }; // offset of the bytes that were read

static struct rpma_work work_of(const struct op *op) {
    static const enum rpma_work_type types[] = {
        ['W'] = RPMA_WORK_WRITE,        ['N'] = RPMA_WORK_WRITE,
        ['S'] = RPMA_WORK_WRITE,        ['I'] = RPMA_WORK_WRITE_WITH_IMM,
        ['A'] = RPMA_WORK_ATOMIC_WRITE, ['P'] = RPMA_WORK_FETCH_ADD,
        ['C'] = RPMA_WORK_COMPARE_SWAP, ['F'] = RPMA_WORK_FLUSH,
        ['V'] = RPMA_WORK_FLUSH,        ['R'] = RPMA_WORK_READ,
        ['L'] = RPMA_WORK_READ};
    static struct rpma_sge sgl[2][2];
    const int region = op->region % TARGET_REGIONS, reads = op->what == 'R' || op->what == 'L';
    struct rpma_work o = target_write(op->conn, region, op->at, op->len);
    if (types[(int)op->what] == RPMA_WORK_FLUSH)
        o = target_flush(region, op->at, op->at + op->len);
    o.type = types[(int)op->what];
    if (op->region == NO_MEMORY)
        o.remote = unknown;
    if (op->what == 'V')
        o.flush_type = RPMA_FLUSH_TYPE_VISIBILITY;
    if (op->what == 'N')
        o.flags |= RPMA_F_INLINE;
    memcpy(&o.value, memory + TARGET_SOURCE, sizeof(o.value));
    if (o.type == RPMA_WORK_FETCH_ADD || o.type == RPMA_WORK_COMPARE_SWAP)
        o.local.offset = 3000; // for the previous value, which is 0
    if (reads)
        o.local.offset = READ_AT;
    if (op->what != 'S' && op->what != 'L')
        return o;
    sgl[reads][0] = (struct rpma_sge){o.local.mr, reads ? 2000 : TARGET_SOURCE, 10};
    sgl[reads][1] = (struct rpma_sge){o.local.mr, o.local.offset + 10, op->len - 10};
    o.sgl = sgl[reads];
    o.nsge = 2;
    return o;
}

// Returns whether the connections are unusable.
static bool run_sequence(const struct sequence *sequence, bool native,
                         enum target_method method) {
    struct step steps[LENGTH(sequence->ops)];
    size_t count = 0;
    target_reset();
    for (; count < LENGTH(steps) && sequence->ops[count].what; count++) {
        const struct op *op = &sequence->ops[count];
        steps[count] = (struct step){work_of(op), op->conn};
        if (sequence->found[native && BUILD_FLUSHES] >> count & 1 &&
            steps[count].o.type != RPMA_WORK_FLUSH)
            memcpy(target_expected[op->region] + op->at,
                   initiators[op->conn].memory + TARGET_SOURCE, op->len);
    }
    if (sequence->stops) {
        target_run(steps, count - 1, method);
        target_stop();
        target_run(&steps[count - 1], 1, method);
    } else {
        target_run(steps, count, method);
    }
    assert_int_equal(target_lose_power(0), sequence->lost[native && BUILD_FLUSHES]);
    for (int r = 0; r < TARGET_REGIONS; r++)
        assert_memory_equal(target_found(r), target_expected[r], TARGET_SIZE);
    if (sequence->ops[1].what == 'L')
        memcpy(memory + READ_AT, memory + 2000, 10);
    if (steps[1].o.type == RPMA_WORK_READ)
        assert_memory_equal(memory + READ_AT, memory + TARGET_SOURCE, 100);
    return take_completions() || sequence->stops;
}

static void writes_after_a_flush_may_be_lost(void **state) {
    (void)state;
    for (int native = 0; native < 2; native++) {
        target_begin(native);
        for (size_t i = 0; i < LENGTH(sequences) * TARGET_METHODS; i++) {
            if (!run_sequence(&sequences[i / TARGET_METHODS], native, i % TARGET_METHODS))
                continue;
            target_finish();
            target_begin(native);
        }
        target_finish();
    }
}

// Each unflushed word survives or is lost independently.
static void any_unflushed_words_may_survive(void **state) {
    (void)state;
    target_begin(false);
    target_reset();
    const struct step step = {target_write(0, 0, 64, 24), 0};
    target_run(&step, 1, TARGET_SINGLY);
    for (unsigned survivors = 0; survivors < 8; survivors++) {
        memset(target_expected[0], 0, TARGET_SIZE);
        for (unsigned word = 0; word < 3; word++)
            if (survivors >> word & 1)
                memcpy(target_expected[0] + 64 + WORD * word,
                       memory + TARGET_SOURCE + WORD * word, WORD);
        assert_int_equal(target_lose_power(survivors), 3);
        assert_memory_equal(target_found(0), target_expected[0], TARGET_SIZE);
    }
    target_finish();
}

// ---- remote atomics ------------------------------------------------------------------------

// Successive operations on two connections. The words next to the changed one are unchanged.
static void atomic_changes_the_word_as_its_operands_require(void **state) {
    static const struct {
        enum rpma_work_type kind;
        uint64_t compare, value, before, after;
    } cases[] = {
        {RPMA_WORK_FETCH_ADD, 77, 5, 0, 5},
        {RPMA_WORK_FETCH_ADD, 77, UINT64_MAX - 1, 5, 3}, // modulo 2^64
        {RPMA_WORK_COMPARE_SWAP, 4, 9, 3, 3},
        {RPMA_WORK_COMPARE_SWAP, 3, 0x0102030405060708, 3, 0x0102030405060708},
        {RPMA_WORK_COMPARE_SWAP, 0x0102030405060708, 0, 0x0102030405060708, 0},
    };
    (void)state;
    target_begin(false);
    target_reset();
    for (unsigned i = 0; i < LENGTH(cases); i++) {
        const unsigned conn = i % 2;
        uint64_t words[3], result;
        struct step step = {target_write(conn, 0, 8, 8), conn};
        step.o.type = cases[i].kind;
        step.o.compare = cases[i].compare;
        step.o.value = cases[i].value;
        target_run(&step, 1, TARGET_SINGLY);
        memcpy(&result, initiators[conn].memory + TARGET_SOURCE, sizeof(result));
        assert_int_equal(result, cases[i].before);
        (void)target_lose_power(UINT64_MAX); // all words survive
        memcpy(words, target_found(0), sizeof(words));
        assert_true(words[0] == 0 && words[1] == cases[i].after && words[2] == 0);
    }
    target_finish();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_after_a_flush_may_be_lost),
        cmocka_unit_test(any_unflushed_words_may_survive),
        cmocka_unit_test(atomic_changes_the_word_as_its_operands_require),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
