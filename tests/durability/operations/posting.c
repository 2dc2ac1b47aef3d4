// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// posting.c -- posts the operations of the client in each possible way, and takes their
// completions

#include "client.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

struct rpma_conn *conn;
struct rpma_mr_local *mr;
char *local;
size_t area;
struct rpma_mr_remote *targets[TARGETS];
bool is_emulated;
struct rpma_work work[WORK_MAX];
unsigned work_count;
bool may_repeat;

static struct completions queue;
static struct rpma_batch *batch;
static unsigned batch_max; // operations
static unsigned sq_size;
static unsigned refusals; // of posts
// polled is the number of the last completion.
static uintptr_t numbered, posted_number, polled;

// This program may have run before, and was killed.
void start_posting(const struct completions *completions, unsigned send_queue_size) {
    queue = *completions;
    sq_size = send_queue_size;
    refusals = 0;
    numbered = posted_number = polled = 0;
    batch = NULL;
}

void stop_posting(void) {
    CALL(rpma_batch_delete(&batch));
}

void *next_number(void) {
    return (void *)++numbered;
}

// ---- completions -------------------------------------------------------------------

// Takes a completion, which must be that of the operation with this number; 0: of none.
static void take(uintptr_t number, uint64_t wr_id, enum ibv_wc_status status) {
    if (status != IBV_WC_SUCCESS)
        fail("an operation failed: %s", ibv_wc_status_str(status));
    if (wr_id != number)
        report_broken("the completion is that of another operation");
    polled = number ? number : wr_id;
}

static int get_completion(bool by_old, struct rpma_completion *completion) {
    struct ibv_wc wc;
    if (by_old)
        return rpma_cq_get_completion(queue.cq[OPERATION], completion);
    const int ret = rpma_cq_get_wc(queue.cq[OPERATION], 1, &wc, NULL);
    if (ret == 0)
        *completion = (struct rpma_completion){.op_context = (void *)(uintptr_t)wc.wr_id,
                                               .op_status = wc.status};
    return ret;
}

// Waits for a completion, which may be a failure.
static struct rpma_completion await_any(bool by_old) {
    struct rpma_cq *const cq = queue.cq[OPERATION];
    struct rpma_completion completion = {.op_status = IBV_WC_SUCCESS};
    int ret;
    while ((ret = get_completion(by_old, &completion)) == RPMA_E_NO_COMPLETION)
        (void)await_queue(&queue, cq);
    if (ret == RPMA_E_NOSUPP)
        report_broken("a completion is lost");
    check_call(ret, "rpma_cq_get_completion");
    return completion;
}

// Waits for the completion of an operation, which is the next one. The function of older
// releases has no code for atomic operations that succeed.
static void await_number(uintptr_t number, enum rpma_work_type type) {
    const bool is_atomic = type == RPMA_WORK_FETCH_ADD || type == RPMA_WORK_COMPARE_SWAP;
    if (!queue.waiting[OPERATION] && below(2)) {
        const struct rpma_completion got = await_any(!is_atomic && below(2));
        take(number, (uintptr_t)got.op_context, got.op_status);
    } else {
        const struct ibv_wc wc = await_operation(&queue);
        take(number, wc.wr_id, wc.status);
    }
}

// The next posted operation with a completion, or NULL.
static const struct rpma_work *next_signaled(void) {
    for (const struct rpma_work *one = work; one < work + work_count; one++) {
        const uintptr_t number = (uintptr_t)one->op_context;
        if (number > polled && number <= posted_number &&
            (one->flags & RPMA_F_COMPLETION_ALWAYS) == RPMA_F_COMPLETION_ALWAYS)
            return one;
    }
    return NULL;
}

// Returns false if no completion of the posted operations is left.
static bool await_next(void) {
    const struct rpma_work *const next = next_signaled();
    if (next)
        await_number((uintptr_t)next->op_context, next->type);
    return next != NULL;
}

// Takes completions that have arrived, several by one call.
static void take_several(void) {
    enum { SEVERAL = 4 };
    struct ibv_wc wcs[SEVERAL];
    int got = 0;
    if (queue.waiting[OPERATION])
        return;
    const int ret = rpma_cq_get_wc(queue.cq[OPERATION], 1 + (int)below(SEVERAL), wcs, &got);
    if (ret == RPMA_E_NO_COMPLETION)
        return;
    check_call(ret, "rpma_cq_get_wc");
    for (const struct ibv_wc *wc = wcs; wc < wcs + got; wc++) {
        const struct rpma_work *const next = next_signaled();
        take(next ? (uintptr_t)next->op_context : 0, wc->wr_id, wc->status);
    }
}

// ---- posting -----------------------------------------------------------------------

// A single operation that was refused may be executed, so the client fails.
static int post_one(const struct rpma_work *one) {
    const size_t offset = one->remote_offset;
    const struct rpma_sge *const from = &one->local;
    struct rpma_mr_remote *const to = (struct rpma_mr_remote *)one->remote;
    const void *const context = one->op_context;
    if (one->nsge > 0 || one->type == RPMA_WORK_FETCH_ADD ||
        one->type == RPMA_WORK_COMPARE_SWAP)
        return rpma_post(conn, one, 1, NULL);
    if (one->type == RPMA_WORK_FLUSH)
        return rpma_flush(conn, to, offset, one->flush_len, one->flush_type, one->flags,
                          context);
    if (one->type == RPMA_WORK_READ)
        return rpma_read(conn, mr, from->offset, to, offset, from->len, one->flags, context);
    if (one->type == RPMA_WORK_WRITE)
        return rpma_write(conn, to, offset, from->mr, from->offset, from->len, one->flags,
                          context);
    if (one->type == RPMA_WORK_WRITE_WITH_IMM)
        return rpma_write_with_imm(conn, to, offset, from->mr, from->offset, from->len,
                                   one->flags, one->imm, context);
    if (one->type == RPMA_WORK_SEND)
        return rpma_send(conn, from->mr, from->offset, from->len, one->flags, context);
    if (one->type == RPMA_WORK_SEND_WITH_IMM)
        return rpma_send_with_imm(conn, from->mr, from->offset, from->len, one->flags, one->imm,
                                  context);
    if (below(2))
        return rpma_atomic_write(conn, to, offset, (const char *)&one->value, one->flags,
                                 context);
    const size_t source = RESULT + 64 + 8 * (size_t)(one - work);
    memcpy(local + source, &one->value, sizeof(one->value));
    return rpma_write_atomic(conn, to, offset, mr, source, one->flags, context);
}

static void post_alone(const struct rpma_work *one) {
    while (posted_number - polled >= sq_size)
        if (!await_next())
            fail("the send queue holds no operation with a completion");
    CALL(post_one(one));
    posted_number++;
}

// Operations that do not count as posted do not complete.
static void check_unposted(void) {
    struct ibv_wc wc;
    (void)rdma_sim_advance(1000000000);
    while (rpma_cq_get_wc(queue.cq[OPERATION], 1, &wc, NULL) == 0)
        if (wc.status == IBV_WC_SUCCESS && wc.wr_id > posted_number)
            report_broken("an operation that does not count as posted completes");
}

// If the queue has no room, the client waits for a completion. A device may refuse a post, also
// in part: the client continues with the rest. Operations that may be queued count as posted,
// so the client does not after a native post.
static void check_posted(int ret, uint32_t posted, unsigned count, const char *call) {
    const bool is_refused = ret == RPMA_E_PROVIDER || ret == RPMA_E_AGAIN;
    if (posted > count || (ret == 0 && posted < count) ||
        (ret == RPMA_E_AGAIN && posted == count))
        report_broken("a post returns another number of operations than it has posted");
    if (posted > count)
        fail("%s has posted %u of %u operations", call, posted, count);
    posted_number += posted;
    if (ret == RPMA_E_AGAIN && await_next())
        return;
    if (ret == RPMA_E_PROVIDER && !is_emulated)
        check_unposted();
    if (!is_refused || !is_emulated || ++refusals > REFUSALS_MAX)
        check_call(ret, call);
}

static void post_array(unsigned first, unsigned count) {
    uint32_t posted = 0;
    for (; count > 0; first += posted, count -= posted) {
        const int ret = rpma_post(conn, &work[first], count, &posted);
        check_posted(ret, posted, count, "rpma_post");
    }
}

static const struct rpma_work invalid = {.type = RPMA_WORK_FLUSH, .flags = -1};

// The operations before an invalid one are posted, those after it are not.
static void post_with_invalid(void) {
    struct rpma_work list[WORK_MAX + 1];
    const unsigned place = below(work_count + 1);
    uint32_t posted = 0;
    memcpy(list, work, place * sizeof(*list));
    list[place] = invalid;
    memcpy(&list[place + 1], &work[place], (work_count - place) * sizeof(*list));
    const int ret = rpma_post(conn, list, work_count + 1, &posted);
    if (ret != RPMA_E_INVAL)
        check_posted(ret, posted, place, "rpma_post");
    else if (posted != place)
        fail("rpma_post has posted %u operations before number %u", posted, place);
    posted_number += ret == RPMA_E_INVAL ? posted : 0;
    post_array(posted, work_count - posted);
}

// The batch has a persistent flush, which is refused also when it is posted again.
static void check_batch_refused(void) {
    forbid_persistent();
    for (unsigned i = 0; i < 2; i++) {
        uint32_t posted = 1;
        if (rpma_batch_post(batch, &posted) != RPMA_E_NOSUPP || posted > 0)
            report_broken("a batch posts a persistent flush that is no longer permitted");
    }
    permit_persistent();
}

static bool has_persistent(unsigned count) {
    for (const struct rpma_work *one = work; one < work + count; one++)
        if (one->type == RPMA_WORK_FLUSH && one->flush_type == RPMA_FLUSH_TYPE_PERSISTENT)
            return true;
    return false;
}

static void add_to_batch(unsigned first, unsigned end) {
    for (unsigned i = first; i < end; i++)
        CALL(rpma_batch_add(batch, &work[i]));
}

// Changes a batch that is posted in part: the rest stays the same, perhaps with the last
// operations, which are added now. Returns the number of operations.
static unsigned change_rest(unsigned count) {
    if (has_persistent(count) && below(2))
        check_batch_refused();
    const unsigned replaced = below(count);
    CALL(rpma_batch_set(batch, replaced, &work[below(count)]));
    CALL(rpma_batch_set(batch, replaced, &work[replaced]));
    if (below(2))
        permit_persistent();
    if (below(2) == 0)
        return count;
    add_to_batch(count, work_count);
    return work_count;
}

// Posts the first `count` operations of the round, which are in the batch, and then the others.
static void post_whole_batch(unsigned count) {
    uint32_t posted = 0;
    for (unsigned done = 0; done < count; done += posted) {
        const int ret = rpma_batch_post(batch, &posted);
        check_posted(ret, posted, count - done, "rpma_batch_post");
        if (posted > 0 && done + posted < count)
            count = change_rest(count);
    }
    post_array(count, work_count - count);
}

static void change_sources(void) {
    for (char *byte = local + SOURCE; byte < local + RESULT; byte++)
        *byte = (char)~*byte;
}

// A batch that is posted again has the data that the memory contains then.
static void post_with_other_data(void) {
    change_sources();
    post_whole_batch(work_count);
    await_all();
    change_sources();
    posted_number -= work_count;
    polled = posted_number;
}

// Makes an empty batch with room for `count` operations.
static void empty_batch(unsigned count) {
    if (batch_max < count || below(8) == 0)
        CALL(rpma_batch_delete(&batch));
    if (!batch) {
        batch_max = below(2) ? count : WORK_MAX;
        CALL(rpma_batch_new(conn, batch_max, &batch));
    }
    CALL(rpma_batch_reset(batch));
}

// A refused operation does not change the batch.
static void check_size(unsigned count) {
    uint32_t size, room;
    if (below(4) == 0 && (rpma_batch_set(batch, below(count), &invalid) != RPMA_E_INVAL ||
                          rpma_batch_set(batch, count, work) != RPMA_E_INVAL))
        report_broken("a batch replaces an operation that it refuses");
    CALL(rpma_batch_get_size(batch, &size, &room));
    if (size != count || room != batch_max - count ||
        (room == 0 && rpma_batch_add(batch, work) != RPMA_E_INVAL))
        report_broken("a batch has another size than its operations");
}

// Prepares another operation at times, and replaces it. The batch is used again.
static void post_batch(void) {
    const struct rpma_work other = {.type = below(2) ? RPMA_WORK_FLUSH : RPMA_WORK_READ,
                                    .remote = targets[0],
                                    .remote_offset = area,
                                    .local = {mr, READ, sizeof(uint64_t)},
                                    .flush_len = sizeof(uint64_t),
                                    .flush_type = RPMA_FLUSH_TYPE_VISIBILITY,
                                    .flags = RPMA_F_COMPLETION_ON_ERROR};
    const unsigned count = below(3) ? work_count : 1 + below(work_count);
    const unsigned replaced = below(2) ? below(count) : count;
    empty_batch(work_count);
    for (unsigned i = 0; i < count; i++) {
        if (below(8) == 0 && rpma_batch_add(batch, &invalid) != RPMA_E_INVAL)
            fail("a batch has an invalid operation");
        CALL(rpma_batch_add(batch, i == replaced ? &other : &work[i]));
    }
    if (replaced < count)
        CALL(rpma_batch_set(batch, replaced, &work[replaced]));
    check_size(count);
    if (below(3) == 0)
        below(2) || !has_persistent(count) ? permit_persistent() : check_batch_refused();
    if (may_repeat && count == work_count && below(2))
        post_with_other_data();
    post_whole_batch(count);
}

void post_all(void) {
    switch (below(5)) {
    case 0:
        for (unsigned i = 0; i < work_count; i++) {
            if (below(16) == 0)
                change_peer_cfg();
            if (below(2))
                post_array(i, 1);
            else
                post_alone(&work[i]);
        }
        break;
    case 1:
    case 2: {
        const unsigned first = below(2) ? work_count : 1 + below(work_count);
        post_array(0, first);
        if (below(4) == 0)
            change_peer_cfg();
        post_array(first, work_count - first);
        break;
    }
    case 3:
        post_with_invalid();
        break;
    default:
        post_batch();
    }
}

void await_all(void) {
    do
        if (below(4) == 0)
            take_several();
    while (await_next());
}

void read_now(size_t to, size_t from, size_t size) {
    CALL(rpma_read(conn, mr, to, targets[0], from, size, RPMA_F_COMPLETION_ALWAYS,
                   next_number()));
    posted_number++;
    await_number(numbered, RPMA_WORK_READ);
}

// Each call refuses the operation.
static void expect_refused(const struct rpma_work *one) {
    empty_batch(1);
    if (post_one(one) != RPMA_E_NOSUPP || rpma_post(conn, one, 1, NULL) != RPMA_E_NOSUPP ||
        rpma_batch_add(batch, one) != RPMA_E_NOSUPP)
        report_broken("an operation that is not permitted is not refused");
}

void check_refused(struct rpma_mr_remote *target, enum rpma_flush_type type) {
    expect_refused(&(struct rpma_work){.type = RPMA_WORK_FLUSH,
                                       .flags = RPMA_F_COMPLETION_ALWAYS,
                                       .remote = target,
                                       .remote_offset = SECOND_REGION,
                                       .flush_len = sizeof(uint64_t),
                                       .flush_type = type});
}

void check_usage(struct rpma_mr_remote *target, unsigned usage) {
    const struct rpma_sge result = {mr, RESULT, sizeof(uint64_t)};
    if ((usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY) == 0)
        check_refused(target, RPMA_FLUSH_TYPE_VISIBILITY);
    if ((usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) == 0)
        check_refused(target, RPMA_FLUSH_TYPE_PERSISTENT);
    for (unsigned type = RPMA_WORK_FETCH_ADD; type <= RPMA_WORK_COMPARE_SWAP; type++)
        if ((usage & RPMA_MR_USAGE_ATOMIC) == 0)
            expect_refused(&(struct rpma_work){.type = (enum rpma_work_type)type,
                                               .flags = RPMA_F_COMPLETION_ALWAYS,
                                               .remote = target,
                                               .local = result});
    if (usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY) {
        CALL(rpma_flush(conn, target, 0, VOLATILE_SIZE, RPMA_FLUSH_TYPE_VISIBILITY,
                        RPMA_F_COMPLETION_ALWAYS, next_number()));
        posted_number++;
        await_number(numbered, RPMA_WORK_FLUSH);
    }
}

// The first one is beyond the region, the others fail because of it.
void check_failures(void) {
    enum { FAILURES = 3 };
    for (unsigned i = 0; i < FAILURES; i++) {
        const struct rpma_work failing = {.type =
                                              below(2) ? RPMA_WORK_READ : RPMA_WORK_FETCH_ADD,
                                          .remote = targets[0],
                                          .remote_offset = i ? area : OWN + DESCRIPTION_SIZE,
                                          .local = {mr, READ, sizeof(uint64_t)},
                                          .flags = RPMA_F_COMPLETION_ALWAYS,
                                          .op_context = next_number()};
        CALL(rpma_post(conn, &failing, 1, NULL));
    }
    for (unsigned left = FAILURES; left-- > 0;) {
        const struct rpma_completion failed = await_any(below(2));
        if (failed.op_status == IBV_WC_SUCCESS ||
            (uintptr_t)failed.op_context != numbered - left)
            report_broken("a failed operation has another context, or no failure");
    }
}
