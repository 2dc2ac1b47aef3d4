// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sweeps.c -- lives of objects in which every provider call and every allocation fails once,
// alone and with all that come later.

#include "operation.h"
#include "sweep.h"

static const struct shape shapes[] = {
    {.name = "outgoing"},
    {.name = "outgoing, data", .private_data = 56},
    {.name = "outgoing, rcq", .rcq_size = 4},
    {.name = "outgoing, shared", .shared = true},
    {.name = "outgoing, shared, rcq", .shared = true, .rcq_size = 4, .private_data = 1},
    {.name = "outgoing, srq", .srq = true},
    {.name = "outgoing, srq, shared, rcq", .srq = true, .shared = true, .rcq_size = 4},
    {.name = "outgoing, srq with rcq", .srq = true, .srq_rcq_size = 4, .rcq_size = 4},
    {.name = "outgoing, lent cq and rcq", .lent_cq = 8, .lent_rcq = 8},
    {.name = "incoming", .incoming = true},
    {.name = "incoming, data", .incoming = true, .private_data = 56},
    {.name = "incoming, rcq", .incoming = true, .rcq_size = 4},
    {.name = "incoming, shared", .incoming = true, .shared = true},
    {.name = "incoming, shared, rcq",
     .incoming = true,
     .shared = true,
     .rcq_size = 4,
     .private_data = 1},
    {.name = "incoming, srq", .incoming = true, .srq = true},
    {.name = "incoming, srq with rcq", .incoming = true, .srq = true, .srq_rcq_size = 4},
    {.name = "incoming, lent cq", .incoming = true, .lent_cq = 8, .rcq_size = 4},
    {.name = "incoming, srq, lent rcq", .incoming = true, .srq = true, .lent_rcq = 8},
};

enum { FIRST_INCOMING = 9 };

// By shape: the calls that can fail in the life of a connection, and of a rejection.
static const unsigned calls_of_life[] = {61, 61, 70, 61, 68, 64, 71, 69, 73,
                                         65, 65, 74, 65, 72, 68, 73, 76, 79};
static const unsigned calls_of_rejection[] = {0,  0,  0,  0,  0,  0,  0,  0,  0,
                                              32, 32, 37, 32, 35, 36, 41, 39, 43};

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

// ---- sweeps --------------------------------------------------------------------------------

static void connections(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(shapes); i++)
        sweep(shapes[i].name, calls_of_life[i], connection, &shapes[i], NULL);
}

static void connections_on_dax(void **state) {
    (void)state;
    sweep("outgoing on DAX memory", 63, connection, &shapes[0], on_dax);
    sweep("incoming on DAX memory", 67, connection, &shapes[FIRST_INCOMING], on_dax);
}

// A build without native operations does not use those of the device.
static void connections_with_native_operations(void **state) {
    (void)state;
    sweep("outgoing, native", 61, connection, &shapes[0], with_native_operations);
    sweep("outgoing, native flush on DRAM", 61, connection, &shapes[0],
          with_native_flush_and_dram);
    sweep("incoming, native", 65, connection, &shapes[FIRST_INCOMING + 1],
          with_native_operations);
}

static void lists_and_batches(void **state) {
    (void)state;
    static const struct shape own = {.name = "lists", .max_sge = 3};
    static const struct shape shared = {.name = "lists, srq", .srq = true, .max_sge = 3};
    sweep(own.name, 68, lists, &own, NULL);
    sweep(shared.name, 72, lists, &shared, NULL);
    sweep("lists, native", 68, lists, &own, with_native_operations);
}

static void connections_with_options(void **state) {
    (void)state;
    sweep("outgoing, options", 39, options, &shapes[0], NULL);
    sweep("incoming, options", 47, options, &shapes[8], NULL);
    sweep("outgoing, options, two addresses", 39, options, &shapes[0], with_two_addresses);
}

static void connections_to_two_addresses(void **state) {
    (void)state;
    sweep("outgoing, two addresses", 61, connection, &shapes[0], with_two_addresses);
    sweep("incoming, two addresses", 65, connection, &shapes[FIRST_INCOMING],
          with_two_addresses);
    sweep("devices, two addresses", 10, devices, NULL, with_two_addresses);
}

static void rejections(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(shapes); i++)
        if (shapes[i].incoming)
            sweep(shapes[i].name, calls_of_rejection[i], rejection, &shapes[i], NULL);
}

static void objects(void **state) {
    (void)state;
    sweep("peer and regions", 10, peer_and_regions, NULL, NULL);
    sweep("peer and regions, DAX", 11, peer_and_regions, NULL, on_dax);
    sweep("peer and regions, DRAM", 10, peer_and_regions, NULL, with_native_flush_and_dram);
    sweep("packed data", 10, packed_data, NULL, NULL);
    sweep("packed data, DRAM", 10, packed_data, NULL, with_native_flush_and_dram);
    sweep("configurations", 4, configurations, NULL, NULL);
    sweep("devices", 10, devices, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(objects),
        TEST(connections),
        TEST(connections_on_dax),
        TEST(connections_with_native_operations),
        TEST(lists_and_batches),
        TEST(connections_with_options),
        TEST(connections_to_two_addresses),
        TEST(rejections),
    };
    return UNIT_RUN("sweeps", tests);
}
