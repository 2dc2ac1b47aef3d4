// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sweeps.c -- lifecycles of objects in which every provider call and every allocation fails
// once, alone and with all later ones.

#include "arguments.h"
#include "operation.h"
#include "sweep.h"

#include <stdio.h>

// The capabilities of the device.
enum { DAX = 1, NATIVE = 2, DRAM = 4, TWO_ADDRESSES = 8, THREE_ADDRESSES = 16 };

#define LEAVE "rpma_conn_disconnect rpma_conn_next_event"
#define CONNECTION "peer request early conn transfer complete " LEAVE
#define REJECTION "peer request rpma_ep_shutdown rpma_conn_req_delete"
#define REGIONS "peer rpma_mr_get_descriptor rpma_mr_advise"
#define PACKED "rpma_peer_new rpma_mr_reg rpma_peer_cfg_new pack rpma_peer_cfg_delete unpack"
#define IN_STEPS                                                        \
    "peer cfg rpma_conn_cfg_set_source_addr start rpma_conn_req_setup " \
    "rpma_conn_req_get_local_addr early conn rpma_conn_get_local_addr " LEAVE
#define LISTS "peer request receives conn receives posts batch"
#define OPTIONS "peer cfg rpma_conn_cfg_set_ack_timeout rpma_conn_cfg_set_tos req conn " LEAVE
#define EVENTS                                                                        \
    "peer rpma_srq_new rpma_cq_new events rpma_srq_set_limit rpma_cq_set_moderation " \
    "rpma_cq_take_event rpma_cq_arm rpma_peer_next_event rpma_peer_next_event"
#define DEVICES "rpma_utils_get_ibv_context remote rpma_utils_ibv_context_is_odp_capable"

// calls is the number of calls that can fail. It is the same on devices with native operations
// if the build has none.
static const struct row {
    const char *name;
    unsigned calls;
    const char *steps; // functions of the library, with valid arguments, and parts[]
    struct shape shape;
    int device;
} rows[] = {
    {"peer and regions", 10, REGIONS},
    {"peer and regions, DAX", 11, REGIONS, .device = DAX},
    {"peer and regions, DRAM", 10, REGIONS, .device = NATIVE | DRAM},
    {"packed data", 10, PACKED},
    {"packed data, DRAM", 10, PACKED, .device = NATIVE | DRAM},
    {"configurations", 4,
     "rpma_peer_cfg_from_descriptor rpma_conn_cfg_new rpma_srq_cfg_new rpma_cq_cfg_new"},
    {"events", 29, EVENTS},
    {"outgoing in steps", 44, IN_STEPS},
    {"outgoing in steps, three addresses", 44, IN_STEPS, .device = THREE_ADDRESSES},
    {"incoming in steps, rcq", 48, IN_STEPS, {.incoming = true, .rcq_size = 4}},
    {"incoming in steps, two addresses", 43, IN_STEPS, {.incoming = true}, TWO_ADDRESSES},
    {"refusal in steps", 26, "peer cfg start rpma_conn_req_reject", {.incoming = true}},
    {"devices", 10, DEVICES},
    {"devices, two addresses", 10, DEVICES, .device = TWO_ADDRESSES},
    {"outgoing on DAX memory", 62, CONNECTION, .device = DAX},
    {"incoming on DAX memory", 66, CONNECTION, {.incoming = true}, DAX},
    {"outgoing, native", 60, CONNECTION, .device = NATIVE},
    {"outgoing, native flush on DRAM", 60, CONNECTION, .device = NATIVE | DRAM},
    {"incoming, data, native", 64, CONNECTION, {.incoming = true, .private_data = 56}, NATIVE},
    {"lists", 67, LISTS, {.max_sge = 3}},
    {"lists, srq", 71, LISTS, {.srq = true, .max_sge = 3}},
    {"lists, native", 67, LISTS, {.max_sge = 3}, NATIVE},
    {"outgoing, options", 38, OPTIONS},
    {"incoming, options", 41, OPTIONS, {.incoming = true}},
    {"outgoing, options, two addresses", 38, OPTIONS, .device = TWO_ADDRESSES},
    {"outgoing, two addresses", 60, CONNECTION, .device = TWO_ADDRESSES},
    {"incoming, two addresses", 64, CONNECTION, {.incoming = true}, TWO_ADDRESSES},
};

// Each shape is tested as outgoing, incoming and rejected connection. calls are the numbers of
// calls that can fail; 0: not tested.
static const struct {
    const char *name;
    unsigned calls[3];
    struct shape shape;
} shapes[] = {
    {"plain", {60, 64, 31}, {0}},
    {"data", {60, 64, 31}, {.private_data = 56}},
    {"rcq", {69, 73, 36}, {.rcq_size = 4}},
    {"shared", {60, 64, 31}, {.shared = true}},
    {"shared, rcq", {67, 71, 34}, {.shared = true, .rcq_size = 4, .private_data = 1}},
    {"srq", {63, 67, 35}, {.srq = true}},
    {"srq, shared, rcq", {70, 0, 0}, {.srq = true, .shared = true, .rcq_size = 4}},
    {"srq with rcq", {68, 72, 40}, {.srq = true, .srq_rcq_size = 4}},
    {"shared cq and rcq", {72, 0, 0}, {.shared_cq = 8, .shared_rcq = 8}},
    {"shared cq", {0, 75, 38}, {.shared_cq = 8, .rcq_size = 4}},
    {"srq, shared rcq", {0, 78, 42}, {.srq = true, .shared_rcq = 8}},
};

// ---- steps ---------------------------------------------------------------------------------

#define PART(name) \
    static bool name(struct fixture *w, __attribute__((unused)) const struct shape *shape)

PART(peer) {
    return fixture_peer(w);
}

static bool steps(struct fixture *w, const struct shape *shape, const char *names);

PART(early) {
    return steps(w, shape, shape->srq ? "rpma_srq_recv" : "rpma_conn_req_recv");
}

PART(flush_visibly) {
    return STEP(w, rpma_flush(w->h.conn, w->h.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
                              RPMA_F_COMPLETION_ALWAYS, NULL));
}

PART(transfer) {
    return (shape->srq || steps(w, shape, "rpma_recv")) &&
           steps(w, shape,
                 "rpma_read rpma_write rpma_write_with_imm rpma_atomic_write rpma_write_atomic "
                 "rpma_flush visibly rpma_send rpma_send_with_imm");
}

PART(complete) {
    const struct ibv_wc sent = {.wr_id = 1, .status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND};
    struct rpma_cq *const cqs[] = {fixture_cq(w), fixture_rcq(w)};
    struct ibv_cq *const queues[] = {fixture_qp(w)->send_cq, fixture_qp(w)->recv_cq};
    for (size_t i = 0; i < LENGTH(cqs) && cqs[i]; i++) {
        fake_complete(queues[i], &sent);
        fake_complete(queues[i], &sent);
        if (!(shape->shared ? STEP(w, rpma_conn_wait(w->h.conn, 0, &w->h.fired, NULL))
                            : STEP(w, rpma_cq_wait(cqs[i]))) ||
            !STEP(w, rpma_cq_get_wc(cqs[i], 1, &w->h.wc, NULL)) ||
            !STEP(w, rpma_cq_get_completion(cqs[i], &w->h.completion)))
            return false;
    }
    return true;
}

static const enum rpma_work_type kinds[] = {
    RPMA_WORK_READ,  RPMA_WORK_WRITE, RPMA_WORK_WRITE_WITH_IMM, RPMA_WORK_ATOMIC_WRITE,
    RPMA_WORK_FLUSH, RPMA_WORK_SEND,  RPMA_WORK_SEND_WITH_IMM};

PART(receives) {
    const struct rpma_sge sgl[] = {{w->h.mr, 0, 8}, {NULL, 0, 0}, {w->h.mr, 16, 8}};
    const struct rpma_receive receives[] = {{.local = {w->h.mr, 0, 8}},
                                            {.sgl = sgl, .nsge = 3}};
    if (shape->srq)
        return STEP(w, rpma_srq_recv_many(w->h.srq, receives, 2, NULL));
    return w->h.conn ? STEP(w, rpma_recv_many(w->h.conn, receives, 2, NULL))
                     : STEP(w, rpma_conn_req_recv_many(w->h.req, receives, 2, NULL));
}

// Posts each type of operation with one SGE and with several.
PART(posts) {
    struct rpma_work work[2 * LENGTH(kinds)];
    const uint32_t half = LENGTH(kinds);
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        work[2 * i] = operation_of(w, kinds[i]);
        work[2 * i + 1] = operation_of_sges(w, kinds[i], 3);
    }
    return STEP(w, rpma_post(w->h.conn, work, half, NULL)) &&
           STEP(w, rpma_post(w->h.conn, work + half, half, NULL));
}

PART(batch) {
    const struct rpma_work write = operation_of_sges(w, RPMA_WORK_WRITE, 3);
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

static unsigned char bytes[64];
static struct rpma_conn_private_data pdata;

PART(pack) {
    pdata = (struct rpma_conn_private_data){bytes, sizeof(bytes)};
    return STEP(w, rpma_conn_private_data_pack((const struct rpma_mr_local *const *)&w->h.mr, 1,
                                               w->h.pcfg, "bytes", 5, &pdata));
}

PART(unpack) {
    uint32_t count = 1;
    return STEP(
        w, rpma_conn_private_data_unpack(&pdata, &w->h.remote, &count, &w->h.pcfg, NULL, NULL));
}

PART(start) {
    return steps(w, shape,
                 shape->incoming ? "rpma_ep_cfg_new rpma_ep_cfg_set_ipv6_only "
                                   "rpma_ep_listen_with rpma_ep_next_incoming"
                                 : "rpma_conn_req_start rpma_conn_req_resolve");
}

PART(events) {
    const struct ibv_wc sent = {.wr_id = 1, .status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND};
    struct ibv_cq *queue = fake_cq_on(fixture_cq_fd(w->h.shared_cq), 0);
    fake_complete(queue, &sent);
    fake_async_event(fake_context(0), IBV_EVENT_CQ_ERR, queue, 0);
    fake_async_event(fake_context(0), IBV_EVENT_SRQ_LIMIT_REACHED, fake_srq(), 0);
    return true;
}

PART(remote) {
    return STEP(w, rpma_utils_get_ibv_context(FIXTURE_ADDRESS, RPMA_UTIL_IBV_CONTEXT_REMOTE,
                                              &w->h.context));
}

static const struct part {
    const char *name;
    bool (*run)(struct fixture *w, const struct shape *shape);
} parts[] = {{"peer", peer},         {"cfg", fixture_cfg},      {"request", fixture_request},
             {"early", early},       {"conn", fixture_connect}, {"req", fixture_make_req},
             {"transfer", transfer}, {"complete", complete},    {"visibly", flush_visibly},
             {"receives", receives}, {"posts", posts},          {"batch", batch},
             {"pack", pack},         {"unpack", unpack},        {"start", start},
             {"events", events},     {"remote", remote}};

// Calls the function with valid arguments; a failed call must not write outputs.
static bool call_function(struct fixture *w, const char *function) {
    static struct arguments a, good;
    (void)arguments_trigger(function, w, false);
    arguments_good(&a, function, w);
    (void)arguments_set(&a, "pdata", 0);
    good = a;
    fixture_begin(w);
    const int ret = arguments_call(&a);
    if (ret != 0 && memcmp(good.scratch, a.scratch, sizeof(a.scratch)) != 0)
        fail_msg("%s failed and wrote an output", function);
    return fixture_step(w, ret, function, __FILE__, __LINE__);
}

// Stops at the first step that fails.
static bool steps(struct fixture *w, const struct shape *shape, const char *names) {
    char text[512], *rest = text;
    bool good = true;
    snprintf(text, sizeof(text), "%s", names);
    for (char *name; good && (name = strsep(&rest, " "));) {
        const struct part *part = parts;
        while (part < parts + LENGTH(parts) && strcmp(part->name, name) != 0)
            part++;
        good = part < parts + LENGTH(parts) ? part->run(w, shape) : call_function(w, name);
    }
    return good;
}

// ---- sweeps --------------------------------------------------------------------------------

static int preparing;

static void prepare(void) {
    fake_profile()->has_odp = fake_device()->dax = preparing & DAX;
    fake_profile()->has_native_flush = fake_profile()->has_native_atomic_write =
        preparing & NATIVE;
    fake_device()->pmem = !(preparing & DRAM);
    if (preparing & (TWO_ADDRESSES | THREE_ADDRESSES))
        fake_device()->addresses = preparing & TWO_ADDRESSES ? 2 : 3;
}

static bool run_row(struct fixture *w, const void *argument) {
    const struct row *row = argument;
    return steps(w, &row->shape, row->steps);
}

static void releases_everything(void **state) {
    const struct row *row = *state;
    preparing = row->device;
    sweep(row->name, row->calls, run_row, row, prepare);
}

static struct CMUnitTest tests[LENGTH(rows) + 3 * LENGTH(shapes)];
static size_t count;

static void add_row(const struct row *row) {
    tests[count++] = (struct CMUnitTest){row->name, releases_everything, unit_setup,
                                         unit_teardown, (void *)(uintptr_t)row};
}

int main(void) {
    static const char *const roles[] = {"outgoing", "incoming", "rejected"};
    static struct row of_shapes[3 * LENGTH(shapes)];
    static char names[3 * LENGTH(shapes)][32];
    for (size_t i = 0; i < LENGTH(rows); i++)
        add_row(&rows[i]);
    for (size_t i = 0; i < LENGTH(of_shapes); i++) {
        const unsigned role = i % 3;
        of_shapes[i] = (struct row){names[i], shapes[i / 3].calls[role],
                                    role == 2 ? REJECTION : CONNECTION, shapes[i / 3].shape};
        of_shapes[i].shape.incoming = role > 0;
        snprintf(names[i], sizeof(names[i]), "%s, %s", roles[role], shapes[i / 3].name);
        if (of_shapes[i].calls > 0)
            add_row(&of_shapes[i]);
    }
    return unit_run("sweeps", tests, count);
}
