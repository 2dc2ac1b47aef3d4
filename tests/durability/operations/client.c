// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- changes words of its area of the server's memory by random operations, which it
// posts in each possible way, among messages, flushes some of them, and reports which words are
// safe, now or as soon as another word has a value

#include "client.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 6 };
enum { SHIFT = 64 }; // of the second region of the local memory

static const struct program program = {
    .purpose = "Changes its area of the server's memory by every operation.",
    .variant = "--emulated",
    .number = "AREA",
};

static unsigned inline_size, sq_size;
static struct rpma_mr_local *shifted;
static const size_t begins[REGIONS + 1] = {0, 0, SECOND_REGION};
static unsigned first_word;     // of the area
static unsigned messages;       // also writes with immediate data
static bool is_second_volatile; // the second region has no persistent flushes
static enum rpma_flush_mode mode;

// The words as they must be after a flush.
static uint64_t words[WORDS_OF_AREA];
static bool safe[WORDS_OF_AREA];

// ---- a round: changes, and flushes of some of them ---------------------------------

struct change {
    unsigned first, count; // words
    uint64_t value[WORDS_MAX];
    bool is_read; // the first word, by an operation before the change
    uint64_t before;
};

static struct change changes[CHANGES_MAX + 1]; // the last one may be a commit
static struct rpma_sge sges[WORK_MAX][SGES_MAX];
static unsigned change_count;

static void add_work(struct rpma_work one) {
    const bool is_empty = one.nsge == 0 && !one.local.mr && one.type != RPMA_WORK_FLUSH &&
                          one.type != RPMA_WORK_ATOMIC_WRITE;
    unsigned region = below(REGIONS + 1);
    if (is_second_volatile && one.flush_type == RPMA_FLUSH_TYPE_PERSISTENT)
        region %= REGIONS;
    const bool is_atomic =
        one.type == RPMA_WORK_FETCH_ADD || one.type == RPMA_WORK_COMPARE_SWAP;
    if (!is_empty && !one.remote) {
        if (region == 0 && !is_atomic && below(2)) // a descriptor alone permits no atomics
            one.remote = targets[BARE_REGION];
        else
            one.remote = targets[region];
        one.remote_offset -= one.remote_offset > 0 ? begins[region] : 0;
    }
    // The entries of a short queue are free once their completions are polled.
    if (one.flags == 0)
        one.flags = below(3) ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS;
    if (sq_size < WORK_MAX)
        one.flags = RPMA_F_COMPLETION_ALWAYS;
    const bool has_data = one.type == RPMA_WORK_WRITE || one.type == RPMA_WORK_WRITE_WITH_IMM ||
                          one.type == RPMA_WORK_SEND || one.type == RPMA_WORK_SEND_WITH_IMM;
    if (has_data && one.local.len <= inline_size && below(2))
        one.flags |= RPMA_F_INLINE;
    if (has_data && one.type != RPMA_WORK_WRITE)
        one.flags |= RPMA_F_SOLICITED;
    one.op_context = next_number();
    work[work_count++] = one;
}

// A part of the local memory, in one of its regions, or none for no bytes.
static struct rpma_sge sge_of(size_t source, size_t size) {
    if (size == 0 && below(2))
        return (struct rpma_sge){0};
    return source >= SHIFT && below(2) ? (struct rpma_sge){shifted, source - SHIFT, size}
                                       : (struct rpma_sge){mr, source, size};
}

// A size up to this one, at times none or all of it.
static size_t part_of(size_t size) {
    return below(3) ? below((unsigned)size + 1) : below(2) * size;
}

// The next operation: its data have one SGE, or several, of which some are empty.
static struct rpma_work work_of(enum rpma_work_type type, size_t source, size_t size) {
    struct rpma_work one = {.type = type, .local = {mr, source, size}};
    if (below(3) == 0) {
        const size_t first = part_of(size), second = part_of(size - first);
        const struct rpma_sge sgl[SGES_MAX] = {
            sge_of(source, first), sge_of(source + first, second),
            sge_of(source + first + second, size - first - second)};
        memcpy(sges[work_count], sgl, sizeof(sgl));
        one.sgl = sges[work_count];
        one.nsge = SGES_MAX;
    }
    return one;
}

// The server reports the same for the message that it receives.
static void report_message(const struct rpma_work *one) {
    const bool is_write = one->type == RPMA_WORK_WRITE_WITH_IMM;
    const struct message message = {
        is_write, (uint32_t)one->local.len, one->imm,
        is_write ? 0 : checksum(local + one->local.offset, one->local.len)};
    report_sent(first_word / WORDS_OF_AREA, &message);
    messages++;
    may_repeat = false;
}

static bool may_send(void) {
    return messages < MESSAGES - 1 && below(2) == 0;
}

static struct rpma_work write_of(unsigned index, size_t source) {
    struct rpma_work one =
        work_of(RPMA_WORK_WRITE, source, changes[index].count * sizeof(uint64_t));
    if (may_send()) {
        one.type = RPMA_WORK_WRITE_WITH_IMM;
        one.imm = below(1000);
        report_message(&one);
    }
    return one;
}

// One that has no data is a write with immediate data, without memory.
static void add_message(void) {
    const size_t source = MESSAGE + messages * MESSAGE_SIZE, size = 1 + below(MESSAGE_SIZE);
    memset(local + source, (int)below(256), size);
    struct rpma_work one = work_of(RPMA_WORK_SEND, source, size);
    if (below(4) == 0) {
        one = (struct rpma_work){.type = RPMA_WORK_WRITE_WITH_IMM, .imm = below(1000)};
    } else if (below(2)) {
        one.type = RPMA_WORK_SEND_WITH_IMM;
        one.imm = below(1000);
    }
    report_message(&one);
    add_work(one);
}

static size_t place_before(const struct change *change) {
    return BEFORE + (size_t)(change - changes) * sizeof(change->before);
}

// A fenced operation takes effect after the read before it.
static void add_read(struct change *change) {
    change->is_read = safe[change->first] && below(2);
    change->before = words[change->first];
    if (!change->is_read)
        return;
    may_repeat = false;
    add_work((struct rpma_work){.type = RPMA_WORK_READ,
                                .local = {mr, place_before(change), sizeof(change->before)},
                                .remote_offset = area + change->first * sizeof(uint64_t)});
}

static void check_reads(void) {
    for (const struct change *each = changes; each < changes + change_count; each++)
        if (each->is_read &&
            memcmp(local + place_before(each), &each->before, sizeof(each->before)) != 0)
            report_broken("a read returns another word than that before the fenced operation");
}

static void add_operation(struct rpma_work one, struct change *change) {
    const bool is_fenced = one.type == RPMA_WORK_ATOMIC_WRITE ||
                           one.type == RPMA_WORK_FETCH_ADD ||
                           one.type == RPMA_WORK_COMPARE_SWAP;
    change->is_read = false;
    if (is_fenced)
        add_read(change);
    one.remote_offset = area + change->first * sizeof(uint64_t);
    add_work(one);
    report_changed(first_word + change->first, change->count);
    for (unsigned i = 0; i < change->count; i++)
        safe[change->first + i] = false;
}

static void add_change(unsigned index) {
    struct change *const change = &changes[index];
    const size_t source = SOURCE + index * 64 + 8 * below(2);
    const bool counts = safe[COUNTER] && below(4) == 0;
    change->count = 1 + below(WORDS_MAX);
    change->first = counts ? COUNTER : below(COUNTER - WORDS_MAX);
    for (unsigned i = 0; i < WORDS_MAX; i++)
        change->value[i] = 0x0101010101010101 * (1 + below(255)) + (uint64_t)i;
    struct rpma_work one;
    if (counts) { // the first change of a round only, so that the result is known
        change->count = 1;
        may_repeat = false;
        one = (struct rpma_work){
            .type = RPMA_WORK_FETCH_ADD, .local = {mr, RESULT, 8}, .value = change->value[0]};
        if (below(2)) {
            one.type = RPMA_WORK_COMPARE_SWAP;
            one.compare = words[COUNTER] + (below(3) == 0);
            if (one.compare != words[COUNTER])
                change->value[0] = words[COUNTER];
        } else {
            change->value[0] += words[COUNTER];
        }
    } else if (below(3) == 0) {
        change->count = 1;
        if (below(3) == 0)
            change->first = COUNTER;
        one = (struct rpma_work){.type = RPMA_WORK_ATOMIC_WRITE, .value = change->value[0]};
    } else {
        memcpy(local + source, change->value, change->count * sizeof(uint64_t));
        one = write_of(index, source);
    }
    add_operation(one, change);
}

// Returns true if no later change of the round has changed a word of this one again.
static bool is_last(const struct change *change) {
    for (const struct change *later = change + 1; later < changes + change_count; later++)
        if (change->first < later->first + later->count &&
            later->first < change->first + change->count)
            return false;
    return true;
}

// Changes the counter after the flushes, without a wait: once it has the new value, the flushed
// words are safe.
static void add_commit(unsigned flushed) {
    const uint64_t value = 1 + (uint64_t)below(1U << 31) * below(1U << 31);
    struct rpma_work one = {
        .type = RPMA_WORK_ATOMIC_WRITE, .value = value, .flags = RPMA_F_COMPLETION_ALWAYS};
    if (safe[COUNTER] && below(3)) {
        one.type = below(2) ? RPMA_WORK_FETCH_ADD : RPMA_WORK_COMPARE_SWAP;
        one.local = (struct rpma_sge){mr, RESULT, 8};
        one.compare = words[COUNTER];
        if (one.type == RPMA_WORK_FETCH_ADD)
            one.value = value - words[COUNTER];
    }
    may_repeat = false;
    struct change *const commit = &changes[change_count++];
    *commit = (struct change){.first = COUNTER, .count = 1, .value = {value}};
    add_operation(one, commit);
    for (const struct change *each = commit - flushed; each < commit; each++)
        for (unsigned i = 0; i < each->count && is_last(each); i++)
            report_ordered(first_word + each->first + i, each->value[i], first_word + COUNTER,
                           value);
}

// Each flush covers one change, and perhaps words around it.
static void add_flush(const struct change *change, enum rpma_flush_type type) {
    const unsigned before = below(3) == 0 && change->first > 0;
    add_work(
        (struct rpma_work){.type = RPMA_WORK_FLUSH,
                           .flags = RPMA_F_COMPLETION_ALWAYS,
                           .flush_type = type,
                           .remote_offset = area + (change->first - before) * sizeof(uint64_t),
                           .flush_len = (change->count + before) * sizeof(uint64_t)});
}

// ---- reading back ------------------------------------------------------------------

static void read_back(const struct change *change) {
    const size_t size = change->count * sizeof(uint64_t);
    memset(local + READ, 0, size);
    if (below(2)) {
        read_now(READ, area + change->first * sizeof(uint64_t), size);
    } else {
        work_count = 0;
        struct rpma_work one = work_of(RPMA_WORK_READ, READ, size);
        one.remote_offset = area + change->first * sizeof(uint64_t);
        one.flags = RPMA_F_COMPLETION_ALWAYS;
        add_work(one);
        post_all();
        await_all();
    }
    if (memcmp(local + READ, change->value, size) != 0)
        report_broken("a client reads other words than it has written");
}

// A persistent flush of volatile memory is a read, unless the connection must have native ones.
// A flush may have the last bytes of a region.
static void add_padding(void) {
    struct rpma_work one = {.type = RPMA_WORK_FLUSH,
                            .flags = RPMA_F_COMPLETION_ON_ERROR,
                            .flush_type = RPMA_FLUSH_TYPE_VISIBILITY,
                            .remote_offset = area,
                            .flush_len = sizeof(uint64_t)};
    if (below(8) == 0 && mode != RPMA_FLUSH_MODE_NATIVE) {
        one.flush_type = RPMA_FLUSH_TYPE_PERSISTENT;
        one.remote = targets[VOLATILE_REGION];
        one.flush_len = 1 + below(2 * sizeof(uint64_t));
        one.remote_offset = VOLATILE_SIZE - one.flush_len;
    }
    add_work(one);
}

static void run_round(void) {
    const enum rpma_flush_type type = RPMA_FLUSH_TYPE_PERSISTENT;
    if (below(4) == 0)
        change_peer_cfg();
    work_count = 0;
    change_count = 1 + below(CHANGES_MAX);
    may_repeat = true;
    for (unsigned i = 0; i < change_count; i++) {
        if (may_send())
            add_message();
        add_change(i);
    }
    // The last change of a word counts: earlier ones that overlap it are not flushed alone.
    const unsigned flushed = 1 + below(change_count);
    for (unsigned i = below(4) ? 0 : below(PADDING_MAX); i > 0; i--)
        add_padding();
    const struct change *const first = &changes[change_count - flushed];
    const struct change *end = &changes[change_count];
    for (const struct change *each = first; each < end; each++)
        add_flush(each, type);
    if (below(2)) {
        add_commit(flushed);
        if (below(2))
            add_flush(end++, type);
    }
    post_all();
    await_all();
    check_reads();
    for (const struct change *each = first; each < end; each++) {
        for (unsigned i = 0; i < each->count && is_last(each); i++) {
            words[each->first + i] = each->value[i];
            safe[each->first + i] = true;
        }
        if (is_last(each))
            report_safe(first_word + each->first, each->count, each->value);
        if (is_last(each) && below(3) == 0)
            read_back(each);
    }
}

// The server sends descriptions of its regions once it has posted its receives.
static const unsigned char *await_regions(struct completions *queue) {
    struct rpma_cq *const cq = queue->cq[RECEIVE];
    struct ibv_wc wc;
    while (!poll_completion(cq, &wc)) {
        const struct rpma_cq *const ready = await_queue(queue, cq);
        if (ready && ready != cq)
            report_broken("a wait reports another queue than that of the message");
    }
    const struct rpma_conn_private_data data = {local + DESCRIPTION, (uint8_t)wc.byte_len};
    const void *bytes;
    uint32_t count = REGIONS + 2, size;
    CALL(rpma_conn_private_data_unpack(&data, &targets[1], &count, NULL, &bytes, &size));
    if (count != REGIONS + 2 || size != DESCRIPTORS_SIZE)
        fail("the server has %u regions and %u bytes of descriptors", count, size);
    const unsigned char *const descriptors = bytes;
    for (unsigned i = 0; i < 2; i++)
        CALL(rpma_mr_remote_from_descriptor(
            &descriptors[DESCRIPTORS + 1 + i * MR_DESCRIPTOR_SIZE], MR_DESCRIPTOR_SIZE,
            &targets[BARE_REGION + i]));
    return descriptors;
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    CALL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED)); // not to syslog
    is_emulated = args.variant;
    // This program may have run before, and was killed.
    messages = 0;
    memset(safe, 0, sizeof(safe));
    struct side side = open_client_side(&args, LOCAL,
                                        RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST |
                                            RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV);
    const bool shared_channel = below(2), receives = below(2);
    struct rpma_conn_cfg *cfg = make_conn_cfg(receives, shared_channel);
    bool direct_write;
    first_word = args.number * WORDS_OF_AREA;
    area = args.number * AREA;
    mr = side.mr;
    local = side.memory.ptr;
    CALL(rpma_conn_cfg_set_max_sge(cfg, SGES_MAX));
    sq_size = below(2) ? 6 + below(10) : 2 * WORK_MAX;
    CALL(rpma_conn_cfg_set_sq_size(cfg, sq_size));
    if (sq_size < WORK_MAX) // a device may free an entry before its completion is polled
        CALL(rpma_conn_cfg_set_cq_size(cfg, 2 * WORK_MAX));
    CALL(rpma_mr_reg(side.peer, local + SHIFT, LOCAL - SHIFT,
                     RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND,
                     &shifted));
    inline_size = 16 * below(4);
    CALL(rpma_conn_cfg_set_inline_size(cfg, inline_size));
    mode = below(2)       ? RPMA_FLUSH_MODE_AUTO
           : args.variant ? RPMA_FLUSH_MODE_EMULATED
                          : RPMA_FLUSH_MODE_NATIVE;
    CALL(rpma_conn_cfg_set_flush_mode(cfg, mode));
    const struct offer offer = {.number = args.number};
    struct rpma_conn_req *req;
    open_queues(side.peer, cfg, shared_channel);
    if (below(6) == 0)
        send_private_data(side.peer, &args);
    req = make_request(side.peer, &args, cfg);
    CALL(rpma_conn_cfg_delete(&cfg));
    CALL(rpma_conn_req_recv(req, mr, DESCRIPTION, DESCRIPTION_SIZE, NULL));
    conn = establish(&req, &offer);
    struct completions queue = completions_of(conn, NULL, shared_channel);
    const unsigned char *const descriptors = await_regions(&queue);
    start_posting(&queue, sq_size);
    targets[0] = offered_memory(conn, &direct_write);
    start_peer_cfgs(descriptors, direct_write, mode);
    int second_types;
    CALL(rpma_mr_remote_get_flush_type(targets[REGIONS], &second_types));
    is_second_volatile = (second_types & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) == 0;
    if (is_second_volatile)
        check_refused(targets[REGIONS], RPMA_FLUSH_TYPE_PERSISTENT);
    if (mode == RPMA_FLUSH_MODE_NATIVE)
        check_refused(targets[VOLATILE_REGION], RPMA_FLUSH_TYPE_PERSISTENT);
    if (!direct_write) {
        check_refused(targets[0], RPMA_FLUSH_TYPE_PERSISTENT);
        change_peer_cfg();
        check_refused(targets[0], RPMA_FLUSH_TYPE_PERSISTENT);
    }
    check_usage(targets[LIMITED_REGION], descriptors[DESCRIPTORS]);
    check_usage(targets[BARE_LIMITED_REGION], descriptors[DESCRIPTORS]);
    if (below(4) == 0)
        check_objects(side.peer);
    for (int i = 0; direct_write && i < ROUNDS; i++)
        run_round();
    report_message(&(struct rpma_work){.type = RPMA_WORK_SEND});
    CALL(rpma_send(conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS | RPMA_F_SOLICITED, NULL));
    await_operation(&queue);
    if (below(4) == 0)
        check_failures();

    stop_posting();
    for (unsigned i = 0; i < TARGETS; i++)
        CALL(rpma_mr_remote_delete(&targets[i]));
    disconnect(&conn);
    close_queues();
    CALL(rpma_mr_dereg(&shifted));
    close_side(&side);
    return EXIT_SUCCESS;
}
