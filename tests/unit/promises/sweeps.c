// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sweeps.c -- lives of objects in which every provider call and every allocation fails once,
// alone and with all that come later.

#include "operation.h"
#include "sweep.h"

// With the calls that can fail in the life of a connection, and in that of a rejection.
static const struct life {
    unsigned calls, calls_of_rejection;
    struct shape shape;
} lives[] = {
    {61, 0, {.name = "outgoing"}},
    {61, 0, {.name = "outgoing, data", .private_data = 56}},
    {70, 0, {.name = "outgoing, rcq", .rcq_size = 4}},
    {61, 0, {.name = "outgoing, shared", .shared = true}},
    {68,
     0,
     {.name = "outgoing, shared, rcq", .shared = true, .rcq_size = 4, .private_data = 1}},
    {64, 0, {.name = "outgoing, srq", .srq = true}},
    {71, 0, {.name = "outgoing, srq, shared, rcq", .srq = true, .shared = true, .rcq_size = 4}},
    {69, 0, {.name = "outgoing, srq with rcq", .srq = true, .srq_rcq_size = 4, .rcq_size = 4}},
    {73, 0, {.name = "outgoing, lent cq and rcq", .lent_cq = 8, .lent_rcq = 8}},
#define INCOMING(text) .name = "incoming" text, .incoming = true
    {65, 32, {INCOMING("")}},
    {65, 32, {INCOMING(", data"), .private_data = 56}},
    {74, 37, {INCOMING(", rcq"), .rcq_size = 4}},
    {65, 32, {INCOMING(", shared"), .shared = true}},
    {72, 35, {INCOMING(", shared, rcq"), .shared = true, .rcq_size = 4, .private_data = 1}},
    {68, 36, {INCOMING(", srq"), .srq = true}},
    {73, 41, {INCOMING(", srq with rcq"), .srq = true, .srq_rcq_size = 4}},
    {76, 39, {INCOMING(", lent cq"), .lent_cq = 8, .rcq_size = 4}},
    {79, 43, {INCOMING(", srq, lent rcq"), .srq = true, .lent_rcq = 8}},
};

enum { FIRST_INCOMING = 9 };

// ---- parts of a life -----------------------------------------------------------------------

static bool receive_early(struct world *w, const struct shape *shape) {
    return shape->srq ? STEP(w, rpma_srq_recv(w->h.srq, w->h.mr, 0, 8, NULL))
                      : STEP(w, rpma_conn_req_recv(w->h.req, w->h.mr, 0, 8, NULL));
}

static bool transfer(struct world *w, const struct shape *shape) {
    const int flags = RPMA_F_COMPLETION_ALWAYS;
    struct rpma_conn *conn = w->h.conn;
    struct rpma_mr_local *mr = w->h.mr;
    struct rpma_mr_remote *remote = w->h.remote;
    const char bytes[8] = "8 bytes";
    return (shape->srq || STEP(w, rpma_recv(conn, mr, 0, 8, NULL))) &&
           STEP(w, rpma_read(conn, mr, 0, remote, 0, 8, flags, NULL)) &&
           STEP(w, rpma_write(conn, remote, 0, mr, 0, 8, flags, NULL)) &&
           STEP(w, rpma_write_with_imm(conn, remote, 0, mr, 0, 8, flags, 1, NULL)) &&
           STEP(w, rpma_atomic_write(conn, remote, 8, bytes, flags, NULL)) &&
           STEP(w, rpma_write_atomic(conn, remote, 8, mr, 0, flags, NULL)) &&
           STEP(w, rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, flags, NULL)) &&
           STEP(w, rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, flags, NULL)) &&
           STEP(w, rpma_send(conn, mr, 0, 8, flags, NULL)) &&
           STEP(w, rpma_send_with_imm(conn, mr, 0, 8, flags, 1, NULL));
}

static bool complete(struct world *w, const struct shape *shape, struct rpma_cq *cq,
                     struct ibv_cq *queue) {
    const struct ibv_wc sent = {.wr_id = 1, .status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND};
    fake_complete(queue, &sent);
    fake_complete(queue, &sent);
    if (shape->shared ? !STEP(w, rpma_conn_wait(w->h.conn, 0, &w->h.fired, NULL))
                      : !STEP(w, rpma_cq_wait(cq)))
        return false;
    return STEP(w, rpma_cq_get_wc(cq, 1, &w->h.wc, NULL)) &&
           STEP(w, rpma_cq_get_completion(cq, &w->h.completion));
}

static bool complete_all(struct world *w, const struct shape *shape) {
    struct rpma_cq *rcq = world_rcq(w);
    struct ibv_qp *qp = world_qp(w);
    return complete(w, shape, world_cq(w), qp->send_cq) &&
           (!rcq || complete(w, shape, rcq, qp->recv_cq));
}

static bool leave(struct world *w) {
    if (!STEP(w, rpma_conn_disconnect(w->h.conn)))
        return false;
    fake_cm_event(world_event_fd(w), RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    return STEP(w, rpma_conn_next_event(w->h.conn, &w->h.event));
}

// ---- lives ---------------------------------------------------------------------------------

static bool connection(struct world *w, const void *argument) {
    const struct shape *shape = argument;
    return world_peer(w) && world_request(w, shape) && receive_early(w, shape) &&
           world_connect(w, shape) && transfer(w, shape) && complete_all(w, shape) && leave(w);
}

static const enum rpma_work_type kinds[] = {
    RPMA_WORK_READ,  RPMA_WORK_WRITE, RPMA_WORK_WRITE_WITH_IMM, RPMA_WORK_ATOMIC_WRITE,
    RPMA_WORK_FLUSH, RPMA_WORK_SEND,  RPMA_WORK_SEND_WITH_IMM};

static bool receive_many(struct world *w, const struct shape *shape) {
    const struct rpma_sge sgl[] = {{w->h.mr, 0, 8}, {NULL, 0, 0}, {w->h.mr, 16, 8}};
    const struct rpma_receive receives[] = {{.local = {w->h.mr, 0, 8}},
                                            {.sgl = sgl, .nsge = 3}};
    if (shape->srq)
        return STEP(w, rpma_srq_recv_many(w->h.srq, receives, 2, NULL));
    return w->h.conn ? STEP(w, rpma_recv_many(w->h.conn, receives, 2, NULL))
                     : STEP(w, rpma_conn_req_recv_many(w->h.req, receives, 2, NULL));
}

// Posts each kind, of one piece and of several.
static bool post_all(struct world *w) {
    struct rpma_work work[2 * LENGTH(kinds)];
    const uint32_t most = LENGTH(kinds);
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        work[2 * i] = operation_of(w, kinds[i]);
        work[2 * i + 1] = operation_of_pieces(w, kinds[i], 3);
    }
    return STEP(w, rpma_post(w->h.conn, work, most, NULL)) &&
           STEP(w, rpma_post(w->h.conn, work + most, most, NULL));
}

static bool post_batch(struct world *w) {
    const struct rpma_work write = operation_of_pieces(w, RPMA_WORK_WRITE, 3);
    const struct rpma_work flush = operation_of(w, RPMA_WORK_FLUSH);
    const struct rpma_work publish = operation_of(w, RPMA_WORK_ATOMIC_WRITE);
    return STEP(w, rpma_batch_new(w->h.conn, 4, &w->h.batch)) &&
           STEP(w, rpma_batch_add(w->h.batch, &write)) &&
           STEP(w, rpma_batch_post(w->h.batch, NULL)) &&
           STEP(w, rpma_batch_add(w->h.batch, &flush)) &&
           STEP(w, rpma_batch_add(w->h.batch, &publish)) &&
           STEP(w, rpma_batch_post(w->h.batch, NULL)) &&
           STEP(w, rpma_batch_set(w->h.batch, 0, &flush)) &&
           STEP(w, rpma_batch_post(w->h.batch, NULL)) &&
           STEP(w, rpma_batch_reset(w->h.batch)) &&
           STEP(w, rpma_batch_add(w->h.batch, &write)) &&
           STEP(w, rpma_batch_post(w->h.batch, NULL));
}

static bool lists(struct world *w, const void *argument) {
    const struct shape *shape = argument;
    return world_peer(w) && world_request(w, shape) && receive_many(w, shape) &&
           world_connect(w, shape) && receive_many(w, shape) && post_all(w) && post_batch(w);
}

// Settings that go to the connection manager.
static bool options(struct world *w, const void *argument) {
    const struct shape *shape = argument;
    return world_peer(w) && world_cfg(w, shape) &&
           STEP(w, rpma_conn_cfg_set_ack_timeout(w->h.cfg, 100)) &&
           STEP(w, rpma_conn_cfg_set_tos(w->h.cfg, 0x68)) && world_ask(w, shape) &&
           world_connect(w, shape) && leave(w);
}

static bool peer_and_regions(struct world *w, const void *argument) {
    (void)argument;
    unsigned char desc[21];
    return world_peer(w) && STEP(w, rpma_mr_get_descriptor(w->h.mr, desc)) &&
           STEP(w, rpma_mr_advise(w->h.mr, 0, 8, IBV_ADVISE_MR_ADVICE_PREFETCH, 0));
}

static bool packed_data(struct world *w, const void *argument) {
    (void)argument;
    unsigned char bytes[64];
    struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};
    uint32_t count = 1;
    return STEP(w, rpma_peer_new(fake_context(0), &w->h.peer)) &&
           STEP(w, rpma_mr_reg(w->h.peer, w->memory, sizeof(w->memory), WORLD_EVERY_USAGE,
                               &w->h.mr)) &&
           STEP(w, rpma_peer_cfg_new(&w->h.pcfg)) &&
           STEP(w, rpma_conn_private_data_pack((const struct rpma_mr_local *const *)&w->h.mr, 1,
                                               w->h.pcfg, "bytes", 5, &pdata)) &&
           STEP(w, rpma_peer_cfg_delete(&w->h.pcfg)) &&
           STEP(w, rpma_conn_private_data_unpack(&pdata, &w->h.remote, &count, &w->h.pcfg, NULL,
                                                 NULL));
}

static bool configurations(struct world *w, const void *argument) {
    (void)argument;
    const unsigned char desc[1] = {1};
    return STEP(w, rpma_peer_cfg_from_descriptor(desc, sizeof(desc), &w->h.pcfg)) &&
           STEP(w, rpma_conn_cfg_new(&w->h.cfg)) && STEP(w, rpma_srq_cfg_new(&w->h.srq_cfg)) &&
           STEP(w, rpma_cq_cfg_new(&w->h.cq_cfg));
}

static bool rejection(struct world *w, const void *argument) {
    const struct shape *shape = argument;
    return world_peer(w) && world_request(w, shape) && STEP(w, rpma_ep_shutdown(&w->h.ep)) &&
           STEP(w, rpma_conn_req_delete(&w->h.req));
}

static bool start_in_steps(struct world *w, const struct shape *shape) {
    if (!shape->incoming)
        return STEP(w, rpma_conn_req_start(w->h.peer, WORLD_ADDRESS, WORLD_PORT, w->h.cfg,
                                           &w->h.req)) &&
               STEP(w, rpma_conn_req_resolve(w->h.req));
    if (!STEP(w, rpma_ep_cfg_new(&w->h.ep_cfg)) ||
        !STEP(w, rpma_ep_cfg_set_ipv6_only(w->h.ep_cfg, true)) ||
        !STEP(w,
              rpma_ep_listen_with(w->h.peer, WORLD_ADDRESS, WORLD_PORT, w->h.ep_cfg, &w->h.ep)))
        return false;
    fake_cm_event(world_ep_fd(w), RDMA_CM_EVENT_CONNECT_REQUEST, "hello", 5);
    return STEP(w, rpma_ep_next_incoming(w->h.ep, &w->h.req));
}

static bool connection_in_steps(struct world *w, const void *argument) {
    const struct shape *shape = argument;
    return world_peer(w) && world_cfg(w, shape) &&
           STEP(w, rpma_conn_cfg_set_source_addr(w->h.cfg, "127.0.0.7")) &&
           start_in_steps(w, shape) && STEP(w, rpma_conn_req_setup(w->h.req, w->h.cfg)) &&
           receive_early(w, shape) && world_connect(w, shape) && leave(w);
}

static bool refusal_in_steps(struct world *w, const void *argument) {
    const struct shape *shape = argument;
    const struct rpma_conn_private_data why = {(void *)"why", 4};
    return world_peer(w) && world_cfg(w, shape) && start_in_steps(w, shape) &&
           STEP(w, rpma_conn_req_reject(&w->h.req, &why));
}

static bool events(struct world *w, const void *argument) {
    (void)argument;
    const struct ibv_wc sent = {.wr_id = 1, .status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND};
    if (!world_peer(w) || !STEP(w, rpma_srq_new(w->h.peer, NULL, &w->h.srq)) ||
        !STEP(w, rpma_cq_new(w->h.peer, NULL, &w->h.lent_cq)))
        return false;
    struct ibv_cq *queue = fake_cq_on(world_cq_fd(w->h.lent_cq), 0);
    fake_complete(queue, &sent);
    struct rpma_peer_event event;
    fake_async_event(fake_context(0), IBV_EVENT_CQ_ERR, queue, 0);
    fake_async_event(fake_context(0), IBV_EVENT_SRQ_LIMIT_REACHED, fake_srq(), 0);
    return STEP(w, rpma_srq_set_limit(w->h.srq, 5)) &&
           STEP(w, rpma_cq_set_moderation(w->h.lent_cq, 16, 50)) &&
           STEP(w, rpma_cq_take_event(w->h.lent_cq)) &&
           STEP(w, rpma_cq_arm(w->h.lent_cq, true)) &&
           STEP(w, rpma_peer_next_event(w->h.peer, &event)) &&
           STEP(w, rpma_peer_next_event(w->h.peer, &event));
}

static bool devices(struct world *w, const void *argument) {
    (void)argument;
    return STEP(w, rpma_utils_get_ibv_context(WORLD_ADDRESS, RPMA_UTIL_IBV_CONTEXT_LOCAL,
                                              &w->h.context)) &&
           STEP(w, rpma_utils_get_ibv_context(WORLD_ADDRESS, RPMA_UTIL_IBV_CONTEXT_REMOTE,
                                              &w->h.context)) &&
           STEP(w, rpma_utils_ibv_context_is_odp_capable(w->h.context, &w->h.odp));
}

// ---- devices -------------------------------------------------------------------------------

static void on_dax(void) {
    fake_device()->odp = true;
    fake_device()->dax = true;
}

static void with_native_operations(void) {
    fake_device()->native_flush = true;
    fake_device()->native_atomic_write = true;
}

static void with_native_flush_and_dram(void) {
    with_native_operations();
    fake_device()->pmem = false;
}

static void with_two_addresses(void) {
    fake_device()->addresses = 2;
}

// Two of them are of the family of the source address.
static void with_three_addresses(void) {
    fake_device()->addresses = 3;
}

// ---- sweeps --------------------------------------------------------------------------------

static const struct shape list = {.name = "lists", .max_sge = 3};
static const struct shape list_srq = {.name = "lists, srq", .srq = true, .max_sge = 3};

// A build without native operations does not use those of the device.
static const struct one {
    const char *name;
    unsigned calls;
    scenario *run;
    const struct shape *shape;
    void (*prepare)(void);
} others[] = {
    {"peer and regions", 10, peer_and_regions},
    {"peer and regions, DAX", 11, peer_and_regions, NULL, on_dax},
    {"peer and regions, DRAM", 10, peer_and_regions, NULL, with_native_flush_and_dram},
    {"packed data", 10, packed_data},
    {"packed data, DRAM", 10, packed_data, NULL, with_native_flush_and_dram},
    {"configurations", 4, configurations},
    {"events", 29, events},
    {"outgoing in steps", 44, connection_in_steps, &lives[0].shape},
    {"outgoing in steps, three addresses", 44, connection_in_steps, &lives[0].shape,
     with_three_addresses},
    {"incoming in steps, rcq", 49, connection_in_steps, &lives[FIRST_INCOMING + 2].shape},
    {"incoming in steps, two addresses", 44, connection_in_steps, &lives[FIRST_INCOMING].shape,
     with_two_addresses},
    {"refusal in steps", 27, refusal_in_steps, &lives[FIRST_INCOMING].shape},
    {"devices", 10, devices},
    {"devices, two addresses", 10, devices, NULL, with_two_addresses},
    {"outgoing on DAX memory", 63, connection, &lives[0].shape, on_dax},
    {"incoming on DAX memory", 67, connection, &lives[FIRST_INCOMING].shape, on_dax},
    {"outgoing, native", 61, connection, &lives[0].shape, with_native_operations},
    {"outgoing, native flush on DRAM", 61, connection, &lives[0].shape,
     with_native_flush_and_dram},
    {"incoming, data, native", 65, connection, &lives[FIRST_INCOMING + 1].shape,
     with_native_operations},
    {"lists", 68, lists, &list},
    {"lists, srq", 72, lists, &list_srq},
    {"lists, native", 68, lists, &list, with_native_operations},
    {"outgoing, options", 39, options, &lives[0].shape},
    {"incoming, options", 42, options, &lives[FIRST_INCOMING].shape},
    {"outgoing, options, two addresses", 39, options, &lives[0].shape, with_two_addresses},
    {"outgoing, two addresses", 61, connection, &lives[0].shape, with_two_addresses},
    {"incoming, two addresses", 65, connection, &lives[FIRST_INCOMING].shape,
     with_two_addresses},
};

static void passes_and_leaves_nothing(void **state) {
    const struct one *one = *state;
    sweep(one->name, one->calls, one->run, one->shape, one->prepare);
}

int main(void) {
    enum { COUNT = LENGTH(others) + 2 * LENGTH(lives) };
    static struct one ones[COUNT];
    static struct CMUnitTest tests[COUNT];
    size_t count = 0;
    for (; count < LENGTH(others); count++)
        ones[count] = others[count];
    for (const struct life *life = lives; life < lives + LENGTH(lives); life++) {
        const struct shape *shape = &life->shape;
        ones[count++] = (struct one){shape->name, life->calls, connection, shape, NULL};
        if (shape->incoming)
            ones[count++] =
                (struct one){shape->name, life->calls_of_rejection, rejection, shape, NULL};
    }
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){ones[i].name, passes_and_leaves_nothing, unit_setup,
                                       unit_teardown, &ones[i]};
    return unit_run("sweeps", tests, count);
}
