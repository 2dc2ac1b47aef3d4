// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lifecycle.c -- random lifecycles of peers, regions, queues, requests, connections and
// batches: calls in any order that the manual allows, with faults anywhere, against a model of
// the contract
//
// The model has the live objects and their users, the pending events and completions in their
// order, and the codes of the contract. A call without an injected fault has the result of the
// model. A call with a fault succeeds, or fails with a documented code and changes nothing. At
// the end all objects are deleted, and no resource remains.

#include "operation.h"
#include "packed.h"
#include "random.h"

enum { LIFECYCLES = 500, STEPS = 400, MAX_OBJECTS = 4, CAPACITY = 8, MEMORY = 256 };

enum kind { PEER, MR, CQ, SRQ, EP, REQ, CONN, BATCH, KINDS };

struct object {
    void *handle; // NULL: unused
    struct object *needs[4];
    unsigned users;
    bool is_up, is_closed;                 // of a connection
    enum rpma_conn_event events[CAPACITY]; // pending
    uint64_t completions[CAPACITY]; // pending, of this queue or of the connection's own one
    unsigned event_count, completion_count;
    bool was_drained, has_new, is_unarmed; // of a completion queue: see wait_for()
};

static uint64_t next_context;
static struct object all[KINDS][MAX_OBJECTS];
static unsigned char memory[MEMORY];
static struct rpma_mr_remote *remote;
static unsigned faults; // number of faults that fired before the call
static unsigned long succeeded, failed, faulted, taken;

static struct object *random_object(enum kind kind) {
    struct object *found = &all[kind][below(MAX_OBJECTS)];
    return found->handle ? found : NULL;
}

static struct object *free_object(enum kind kind) {
    for (unsigned i = 0; i < MAX_OBJECTS; i++)
        if (!all[kind][i].handle)
            return &all[kind][i];
    return NULL;
}

// Injects a fault into one call in five.
static void begin_call(void) {
    static const int errors[] = {EIO, ENOMEM, EAGAIN, EINVAL};
    unit_begin();
    fake_faults_off();
    faults = fake_faults_fired();
    if (below(5) == 0)
        fake_fail(NULL, 1 + below(12), errors[below(LENGTH(errors))]);
}

// Returns whether the call succeeded. allowed: a code that it may return without a fault.
static bool check_result(int ret, const char *text, int allowed) {
    const char *function = unit_function(text);
    const bool fired = fake_faults_fired() > faults;
    fake_faults_off();
    faulted += fired;
    if (ret == 0) {
        succeeded++;
        return true;
    }
    failed++;
    if (!contract_documents(function, ret))
        fail_msg("%s = %s, which is not documented", text, contract_code_name(ret));
    if (ret != allowed && !fired)
        fail_msg("%s = %s without a fault\n%s", text, contract_code_name(ret), logged_text());
    if (logged_count(RPMA_LOG_LEVEL_ERROR) > 1)
        fail_msg("%s logs more than one failure\n%s", text, logged_text());
    return false;
}

#define CALL(call) (begin_call(), check_result((call), #call, 0))
#define CALL_OR(call, allowed) (begin_call(), check_result((call), #call, (allowed)))

static void add_dependency(struct object *user, struct object *used) {
    for (unsigned i = 0; used && i < LENGTH(user->needs); i++)
        if (!user->needs[i]) {
            user->needs[i] = used;
            used->users++;
            return;
        }
}

static void clear_object(struct object *object) {
    for (unsigned i = 0; i < LENGTH(object->needs); i++)
        if (object->needs[i])
            object->needs[i]->users--;
    *object = (struct object){0};
}

// ---- objects -------------------------------------------------------------------------------

// A call that creates an object sets the handle if, and only if, it succeeds.
#define MAKE(object, type, maker, ...)       \
    do {                                     \
        type *made = (type *)&all;           \
        if (CALL(maker(__VA_ARGS__, &made))) \
            (object)->handle = made;         \
        else                                 \
            assert_ptr_equal(made, &all);    \
    } while (0)

static void make_peer(struct object *o) {
    MAKE(o, struct rpma_peer, rpma_peer_new, fake_context(0));
}

// Defines a constructor for an object with a parent.
#define MAKER(name, kind, type, maker, ...)              \
    static void name(struct object *o) {                 \
        struct object *used = random_object(kind);       \
        if (!used)                                       \
            return;                                      \
        MAKE(o, type, maker, used->handle, __VA_ARGS__); \
        if (o->handle)                                   \
            add_dependency(o, used);                     \
    }

MAKER(make_mr, PEER, struct rpma_mr_local, rpma_mr_reg, memory, sizeof(memory),
      FIXTURE_EVERY_USAGE)
MAKER(make_cq, PEER, struct rpma_cq, rpma_cq_new, NULL)
MAKER(make_srq, PEER, struct rpma_srq, rpma_srq_new, NULL)
MAKER(make_listener, PEER, struct rpma_ep, rpma_ep_listen, FIXTURE_ADDRESS, FIXTURE_PORT)
MAKER(make_batch, CONN, struct rpma_batch, rpma_batch_new, CAPACITY)

static void make_ep(struct object *o) {
    int fd;
    make_listener(o);
    if (!o->handle)
        return;
    MUST(rpma_ep_get_fd(o->handle, &fd));
    fixture_nonblocking(fd);
}

// Sets queues of the same peer, if there are any.
static struct rpma_conn_cfg *configuration(struct object *o, struct object *peer) {
    struct rpma_conn_cfg *cfg = NULL;
    struct object *cq = random_object(CQ), *srq = random_object(SRQ);
    MUST(rpma_conn_cfg_new(&cfg));
    if (cq && cq->needs[0] == peer) {
        MUST(rpma_conn_cfg_set_cq(cfg, cq->handle));
        add_dependency(o, cq);
    }
    if (srq && srq->needs[0] == peer) {
        MUST(rpma_conn_cfg_set_srq(cfg, srq->handle));
        add_dependency(o, srq);
    }
    return cfg;
}

static void make_req(struct object *o) {
    struct object *ep = random_object(EP), *peer = ep ? ep->needs[0] : random_object(PEER);
    struct rpma_conn_req *made = (struct rpma_conn_req *)&all;
    int fd = -1;
    if (!peer)
        return;
    add_dependency(o, peer);
    struct rpma_conn_cfg *cfg = configuration(o, peer);
    if (ep) {
        MUST(rpma_ep_get_fd(ep->handle, &fd));
        const bool asks = fake_pending_on(fd) > 0 || below(3) > 0;
        if (asks && fake_pending_on(fd) == 0)
            fake_cm_event(fd, RDMA_CM_EVENT_CONNECT_REQUEST, "hello", 5);
        if (CALL_OR(rpma_ep_next_conn_req(ep->handle, cfg, &made),
                    asks ? 0 : RPMA_E_NO_EVENT)) {
            assert_true(asks);
            o->handle = made;
        }
    } else if (CALL(rpma_conn_req_new(peer->handle, FIXTURE_ADDRESS, FIXTURE_PORT, cfg,
                                      &made))) {
        o->handle = made;
    }
    MUST(rpma_conn_cfg_delete(&cfg));
    if (o->handle)
        return;
    assert_ptr_equal(made, &all);
    clear_object(o);
}

static int event_fd(const struct object *conn) {
    int fd = -1;
    MUST(rpma_conn_get_event_fd(conn->handle, &fd));
    return fd;
}

// The object with the send CQ of a connection: a separate CQ, or the connection itself.
static struct object *queue_of(struct object *conn) {
    for (unsigned i = 0; i < LENGTH(conn->needs); i++)
        if (conn->needs[i] >= all[CQ] && conn->needs[i] < all[CQ] + MAX_OBJECTS)
            return conn->needs[i];
    return conn;
}

static struct rpma_cq *handle_of_queue(struct object *queue) {
    struct rpma_cq *cq = queue->handle;
    if (queue >= all[CONN] && queue < all[CONN] + MAX_OBJECTS)
        MUST(rpma_conn_get_cq(queue->handle, &cq));
    return cq;
}

// Consumes a request, even if connecting it fails.
static void make_conn(struct object *o) {
    struct object *req = random_object(REQ);
    struct rpma_conn *made = (struct rpma_conn *)&all;
    if (!req)
        return;
    struct rpma_conn_req *handle = req->handle;
    const bool is_made = CALL(rpma_conn_req_connect(&handle, NULL, &made));
    assert_null(handle);
    if (is_made) {
        o->handle = made;
        for (unsigned i = 0; i < LENGTH(req->needs); i++)
            add_dependency(o, req->needs[i]);
        fixture_nonblocking(event_fd(o));
        if (queue_of(o) == o)
            fixture_nonblocking(fixture_cq_fd(handle_of_queue(o)));
    } else {
        assert_ptr_equal(made, &all);
    }
    clear_object(req);
}

static void (*const makers[KINDS])(struct object *) = {
    make_peer, make_mr, make_cq, make_srq, make_ep, make_req, make_conn, make_batch,
};

// Deletes an object without users. If the provider fails, the object remains, except for
// requests and connections. An SRQ remains only if its first step fails.
static void delete_object(enum kind kind, struct object *o) {
#define DELETER(function) \
    { #function, (int (*)(void **))function }
    static const struct {
        const char *name;
        int (*function)(void **handle);
    } deleters[KINDS] = {
        [PEER] = DELETER(rpma_peer_delete), [MR] = DELETER(rpma_mr_dereg),
        [CQ] = DELETER(rpma_cq_delete),     [SRQ] = DELETER(rpma_srq_delete),
        [EP] = DELETER(rpma_ep_shutdown),   [REQ] = DELETER(rpma_conn_req_delete),
        [CONN] = DELETER(rpma_conn_delete), [BATCH] = DELETER(rpma_batch_delete)};
    const bool stays = kind != REQ && kind != CONN;
    void *handle = o->handle;
    if (o->users > 0)
        return;
    begin_call();
    const bool is_gone = check_result(deleters[kind].function(&handle), deleters[kind].name, 0);
    assert_true(handle == NULL || (handle == o->handle && !is_gone && stays));
    if (!handle)
        clear_object(o);
}

// ---- events --------------------------------------------------------------------------------

// The first event of a connection establishes it, the second one closes it.
static void deliver_event(struct object *conn) {
    static const struct {
        enum rdma_cm_event_type type;
        enum rpma_conn_event event;
    } events[] = {{RDMA_CM_EVENT_ESTABLISHED, RPMA_CONN_ESTABLISHED},
                  {RDMA_CM_EVENT_DISCONNECTED, RPMA_CONN_CLOSED},
                  {RDMA_CM_EVENT_CONNECT_ERROR, RPMA_CONN_LOST},
                  {RDMA_CM_EVENT_DEVICE_REMOVAL, RPMA_CONN_LOST}};
    const unsigned what = conn->is_up ? 1 + below(LENGTH(events) - 1) : 0;
    if (conn->is_closed || conn->event_count == CAPACITY)
        return;
    conn->is_closed = conn->is_up;
    conn->is_up = !conn->is_closed;
    fake_cm_event(event_fd(conn), events[what].type, NULL, 0);
    conn->events[conn->event_count++] = events[what].event;
}

static void take_event(struct object *conn) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    const int fd = event_fd(conn);
    const bool waits = conn->event_count > 0;
    if (CALL_OR(rpma_conn_next_event(conn->handle, &event), waits ? 0 : RPMA_E_NO_EVENT)) {
        assert_true(waits);
        assert_int_equal(event, conn->events[0]);
        taken++;
    } else {
        assert_int_equal(event, RPMA_CONN_UNDEFINED);
    }
    // A fault after the provider's result consumes the event.
    const unsigned left = fake_pending_on(fd);
    assert_true(left == conn->event_count || left + 1 == conn->event_count);
    memmove(conn->events, conn->events + (conn->event_count - left),
            left * sizeof(conn->events[0]));
    conn->event_count = left;
}

static void disconnect(struct object *conn) {
    if (conn->is_up)
        (void)CALL(rpma_conn_disconnect(conn->handle));
}

// ---- operations and completions ------------------------------------------------------------

static struct rpma_work work_of(enum rpma_work_type kind, const struct object *mr) {
    const bool is_send = kind == RPMA_WORK_SEND || kind == RPMA_WORK_SEND_WITH_IMM;
    return (struct rpma_work){.type = kind,
                              .remote = is_send ? NULL : remote,
                              .local = {mr->handle, below(8), 8},
                              .flush_len = 8,
                              .flush_type = RPMA_FLUSH_TYPE_VISIBILITY,
                              .flags = RPMA_F_COMPLETION_ALWAYS,
                              .op_context = (void *)(uintptr_t)++next_context};
}

static void post_request(struct object *conn) {
    struct object *mr = random_object(MR);
    const enum rpma_work_type kind = (enum rpma_work_type)(1 + below(OPERATION_LAST));
    uint32_t qp_num = 0;
    MUST(rpma_conn_get_qp_num(conn->handle, &qp_num));
    if (!mr || fake_qp(qp_num)->state < IBV_QPS_RTS)
        return;
    const struct rpma_work work = work_of(kind, mr);
    begin_call();
    const bool is_posted =
        check_result(operation_plain(&work, conn->handle), operation_plain_name(kind), 0);
    assert_true(fake_posted_count() == 1 || !is_posted); // the doorbell may fail
    if (is_posted)
        assert_int_equal(fake_posted(0)->wr_id, (uintptr_t)work.op_context);
}

// Adds a completion to the connection's queue.
static void complete_request(struct object *conn) {
    struct object *queue = queue_of(conn);
    uint32_t qp_num = 0;
    if (queue->completion_count == CAPACITY)
        return;
    MUST(rpma_conn_get_qp_num(conn->handle, &qp_num));
    const struct ibv_wc wc = {.wr_id = ++next_context, .qp_num = qp_num};
    fake_complete(fake_qp(qp_num)->send_cq, &wc);
    queue->completions[queue->completion_count++] = wc.wr_id;
    queue->has_new = true;
}

static void take_completions(struct object *conn) {
    struct object *queue = queue_of(conn);
    struct ibv_wc wc[CAPACITY];
    int got = -1;
    const int max = 1 + (int)below(CAPACITY);
    const bool waits = queue->completion_count > 0;
    if (!CALL_OR(rpma_cq_get_wc(handle_of_queue(queue), max, wc, &got),
                 waits ? 0 : RPMA_E_NO_COMPLETION)) {
        queue->was_drained |= !waits && fake_faults_fired() == faults;
        queue->has_new &= waits;
        return;
    }
    assert_true(got > 0 && got <= max && (unsigned)got <= queue->completion_count);
    for (int i = 0; i < got; i++)
        assert_int_equal(wc[i].wr_id, queue->completions[i]);
    queue->completion_count -= (unsigned)got;
    memmove(queue->completions, queue->completions + got,
            queue->completion_count * sizeof(queue->completions[0]));
    queue->has_new &= queue->completion_count > 0;
    taken += (unsigned)got;
}

// After the queue was drained, a later completion must end a wait. A failed wait may leave the
// queue unarmed.
static void wait_for(struct object *conn) {
    struct object *queue = queue_of(conn);
    const bool must_wake = queue->was_drained && queue->has_new && !queue->is_unarmed;
    struct rpma_cq *cq = handle_of_queue(queue);
    fixture_nonblocking(fixture_cq_fd(cq));
    const bool has_event = CALL_OR(rpma_cq_wait(cq), must_wake ? 0 : RPMA_E_NO_COMPLETION);
    queue->is_unarmed |= !has_event && fake_faults_fired() > faults;
    if (has_event || must_wake)
        queue->was_drained = false;
}

// ---- the test ------------------------------------------------------------------------------

static void step(void) {
    static void (*const actions[])(struct object *) = {
        deliver_event, take_event,       take_event,       disconnect, post_request,
        post_request,  complete_request, take_completions, wait_for,
    };
    const enum kind kind = below(KINDS);
    const unsigned what = below(10);
    struct object *o = random_object(kind), *conn = random_object(CONN);
    if (what < 3 && free_object(kind))
        makers[kind](free_object(kind));
    else if (what == 3 && o)
        delete_object(kind, o);
    else if (what > 3 && conn)
        actions[below(LENGTH(actions))](conn);
}

// Deletes users before the objects that they use.
static void delete_all(void) {
    for (enum kind kind = KINDS; kind-- > 0;)
        for (unsigned i = 0; i < MAX_OBJECTS; i++)
            for (unsigned tries = 0; all[kind][i].handle && tries < 100; tries++)
                delete_object(kind, &all[kind][i]);
}

static void run_lifecycle(void) {
    fake_reset();
    fake_device()->any_range = true;
    memset(all, 0, sizeof(all));
    remote = packed_remote(FIXTURE_REMOTE_ADDR, FIXTURE_REMOTE_SIZE, FIXTURE_REMOTE_RKEY,
                           FIXTURE_EVERY_USAGE, 0);
    for (int i = 0; i < STEPS; i++)
        step();
    delete_all();
    fake_faults_off();
    MUST(rpma_mr_remote_delete(&remote));
    unit_nothing_left("after a lifecycle");
}

TEST_THAT(lifecycle_matches_the_model) {
    for (int i = 0; i < LIFECYCLES; i++)
        run_lifecycle();
    print_message("%lu calls succeeded, %lu failed, %lu were disturbed, %lu events and "
                  "completions were taken\n",
                  succeeded, failed, faulted, taken);
    assert_true(succeeded > 10000 && failed > 1000 && faulted > 1000 && taken > 1000);
}
