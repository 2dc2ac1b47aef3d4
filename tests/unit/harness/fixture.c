// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fixture.c -- makes and releases the objects that tests need.

#include "fixture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>

#include "sweep.h"

struct fixture w;

static unsigned char private_data[255] = "from here to there";

void fixture_begin(struct fixture *w) {
    unit_begin();
    if (w->sweep)
        sweep_begin(w->sweep, w);
}

bool fixture_step(struct fixture *w, int ret, const char *text, const char *file, int line) {
    if (w->sweep)
        return sweep_step(w->sweep, w, ret, text);
    unit_must(ret, text, file, line);
    return true;
}

bool fixture_peer(struct fixture *w) {
    unsigned char desc[21];
    if (!w->sweep)
        fixture_delete(w);
    w->h = (struct handles){0};
    fixture_descriptor(desc, FIXTURE_REMOTE_ADDR, FIXTURE_REMOTE_SIZE, FIXTURE_REMOTE_RKEY,
                       FIXTURE_EVERY_USAGE);
    return STEP(w, rpma_peer_new(fake_context(0), &w->h.peer)) &&
           STEP(w, rpma_mr_reg(w->h.peer, w->memory, sizeof(w->memory), FIXTURE_EVERY_USAGE,
                               &w->h.mr)) &&
           STEP(w, rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w->h.remote)) &&
           STEP(w, rpma_peer_cfg_new(&w->h.pcfg)) &&
           STEP(w, rpma_peer_cfg_set_direct_write_to_pmem(w->h.pcfg, true));
}

// The tests of decisions also run over older releases, so they must not link to newer
// functions: newer ones are looked up by name when a test uses them.
#define NEWER(function) ((__typeof__(&(function)))dlsym(RTLD_DEFAULT, #function))
#define NEWER_STEP(w, function, ...) \
    (fixture_begin(w),               \
     fixture_step(w, NEWER(function)(__VA_ARGS__), #function, __FILE__, __LINE__))

static bool make_shared_cq(struct fixture *w, uint32_t size, struct rpma_cq **cq) {
    return (w->h.cq_cfg || NEWER_STEP(w, rpma_cq_cfg_new, &w->h.cq_cfg)) &&
           NEWER_STEP(w, rpma_cq_cfg_set_size, w->h.cq_cfg, size) &&
           NEWER_STEP(w, rpma_cq_new, w->h.peer, w->h.cq_cfg, cq);
}

static bool make_srq(struct fixture *w, const struct shape *shape) {
    return STEP(w, rpma_srq_cfg_new(&w->h.srq_cfg)) &&
           STEP(w, rpma_srq_cfg_set_rcq_size(w->h.srq_cfg, shape->srq_rcq_size)) &&
           (!shape->max_sge ||
            NEWER_STEP(w, rpma_srq_cfg_set_max_sge, w->h.srq_cfg, shape->max_sge)) &&
           STEP(w, rpma_srq_new(w->h.peer, w->h.srq_cfg, &w->h.srq)) &&
           STEP(w, rpma_conn_cfg_set_srq(w->h.cfg, w->h.srq));
}

bool fixture_cfg(struct fixture *w, const struct shape *shape) {
    return STEP(w, rpma_conn_cfg_new(&w->h.cfg)) &&
           STEP(w, rpma_conn_cfg_set_compl_channel(w->h.cfg, shape->shared)) &&
           STEP(w, rpma_conn_cfg_set_rcq_size(w->h.cfg, shape->rcq_size)) &&
           (!shape->shared_cq ||
            (make_shared_cq(w, shape->shared_cq, &w->h.shared_cq) &&
             NEWER_STEP(w, rpma_conn_cfg_set_cq, w->h.cfg, w->h.shared_cq))) &&
           (!shape->shared_rcq ||
            (make_shared_cq(w, shape->shared_rcq, &w->h.shared_rcq) &&
             NEWER_STEP(w, rpma_conn_cfg_set_rcq, w->h.cfg, w->h.shared_rcq))) &&
           (!shape->max_sge ||
            NEWER_STEP(w, rpma_conn_cfg_set_max_sge, w->h.cfg, shape->max_sge)) &&
           (!shape->flush_mode ||
            NEWER_STEP(w, rpma_conn_cfg_set_flush_mode, w->h.cfg, shape->flush_mode)) &&
           (!shape->srq || make_srq(w, shape));
}

bool fixture_listen(struct fixture *w) {
    return STEP(w, rpma_ep_listen(w->h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, &w->h.ep));
}

bool fixture_request(struct fixture *w, const struct shape *shape) {
    return fixture_cfg(w, shape) && fixture_make_req(w, shape);
}

bool fixture_make_req(struct fixture *w, const struct shape *shape) {
    if (!shape->incoming)
        return STEP(w, rpma_conn_req_new(w->h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, w->h.cfg,
                                         &w->h.req));
    if (!fixture_listen(w))
        return false;
    fake_cm_event(fixture_ep_fd(w), RDMA_CM_EVENT_CONNECT_REQUEST, private_data,
                  shape->private_data);
    return STEP(w, rpma_ep_next_conn_req(w->h.ep, w->h.cfg, &w->h.req));
}

// The contexts of libibverbs objects belong to the program: the library must not use them.
static void use_contexts(const struct fixture *w) {
    struct ibv_qp *qp = fixture_qp(w);
    qp->qp_context = qp->send_cq->cq_context = qp->recv_cq->cq_context = (void *)1;
    if (qp->srq)
        qp->srq->srq_context = (void *)1;
}

bool fixture_establish(struct fixture *w, const struct shape *shape) {
    const struct rpma_conn_private_data pdata = {private_data, shape->private_data};
    if (!STEP(w, rpma_conn_req_connect(&w->h.req, pdata.len ? &pdata : NULL, &w->h.conn)))
        return false;
    use_contexts(w);
    fake_cm_event(fixture_event_fd(w), RDMA_CM_EVENT_ESTABLISHED, private_data,
                  shape->incoming ? 0 : shape->private_data);
    return STEP(w, rpma_conn_next_event(w->h.conn, &w->h.event));
}

bool fixture_connect(struct fixture *w, const struct shape *shape) {
    return fixture_establish(w, shape) &&
           STEP(w, rpma_conn_apply_remote_peer_cfg(w->h.conn, w->h.pcfg));
}

bool fixture_conn(struct fixture *w, const struct shape *shape) {
    return fixture_peer(w) && fixture_request(w, shape) && fixture_connect(w, shape);
}

#define DROP(w, member, function) \
    (!(w)->h.member || (STEP(w, function(&(w)->h.member)) && !(w)->h.member))
#define DROP_NEWER(w, member, function) \
    (!(w)->h.member || (NEWER_STEP(w, function, &(w)->h.member) && !(w)->h.member))

bool fixture_apply(struct fixture *w, uint8_t descriptor) {
    return DROP(w, pcfg, rpma_peer_cfg_delete) &&
           STEP(w, rpma_peer_cfg_from_descriptor(&descriptor, 1, &w->h.pcfg)) &&
           STEP(w, rpma_conn_apply_remote_peer_cfg(w->h.conn, w->h.pcfg));
}

bool fixture_delete(struct fixture *w) {
    bool ok = DROP_NEWER(w, batch, rpma_batch_delete);
    ok &= DROP(w, conn, rpma_conn_delete);
    ok &= DROP(w, req, rpma_conn_req_delete);
    ok &= DROP(w, ep, rpma_ep_shutdown);
    ok &= DROP(w, cfg, rpma_conn_cfg_delete);
    ok &= DROP_NEWER(w, cq_cfg, rpma_cq_cfg_delete);
    ok &= DROP_NEWER(w, ep_cfg, rpma_ep_cfg_delete);
    ok &= DROP_NEWER(w, shared_cq, rpma_cq_delete);
    ok &= DROP_NEWER(w, shared_rcq, rpma_cq_delete);
    ok &= DROP(w, srq, rpma_srq_delete);
    ok &= DROP(w, srq_cfg, rpma_srq_cfg_delete);
    ok &= DROP(w, pcfg, rpma_peer_cfg_delete);
    ok &= DROP(w, remote, rpma_mr_remote_delete);
    ok &= DROP(w, mr, rpma_mr_dereg);
    ok &= DROP(w, peer, rpma_peer_delete);
    return ok;
}

void fixture_reset(void) {
    fake_faults_off();
    fixture_delete(&w);
    unit_nothing_left("after a case");
    fake_reset();
}

// The value that a getter stores, or the initial value if the getter fails.
#define GETTER(type, name, initial, get, from) \
    type name(const struct fixture *w) {       \
        type value = initial;                  \
        (void)get((from), &value);             \
        return value;                          \
    }
GETTER(int, fixture_event_fd, -1, rpma_conn_get_event_fd, w->h.conn)
GETTER(int, fixture_req_fd, -1, NEWER(rpma_conn_req_get_event_fd), w->h.req)
GETTER(int, fixture_ep_fd, -1, rpma_ep_get_fd, w->h.ep)
GETTER(struct rpma_cq *, fixture_cq, NULL, rpma_conn_get_cq, w->h.conn)
GETTER(struct rpma_cq *, fixture_rcq, NULL, rpma_conn_get_rcq, w->h.conn)

int fixture_cq_fd(struct rpma_cq *cq) {
    int fd;
    return rpma_cq_get_fd(cq, &fd) == 0 ? fd : -1;
}

struct ibv_qp *fixture_qp(const struct fixture *w) {
    uint32_t number = 0;
    (void)rpma_conn_get_qp_num(w->h.conn, &number);
    return fake_qp(number);
}

void fixture_expect_name(const char *node, const char *service, int flags) {
    const struct fake_call *name = fake_last("getaddrinfo");
    assert_string_equal(name->getaddrinfo.node, node);
    assert_string_equal(name->getaddrinfo.service, service);
    assert_int_equal(name->getaddrinfo.flags, flags);
    assert_int_equal(name->getaddrinfo.family, AF_UNSPEC);
    assert_int_equal(name->getaddrinfo.socktype, SOCK_STREAM);
    assert_int_equal(name->getaddrinfo.protocol, IPPROTO_TCP);
}

void fixture_nonblocking(int fd) {
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}
