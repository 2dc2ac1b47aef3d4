// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// world.c -- makes and releases the objects that tests need.

#include "world.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>

#include "sweep.h"

struct world w;

static unsigned char private_data[255] = "from here to there";

void world_begin(struct world *w) {
    unit_begin();
    if (w->sweep)
        sweep_begin(w->sweep, w);
}

bool world_step(struct world *w, int ret, const char *text, const char *file, int line) {
    if (w->sweep)
        return sweep_step(w->sweep, w, ret, text);
    unit_must(ret, text, file, line);
    return true;
}

void world_descriptor(unsigned char desc[21], uint64_t addr, uint64_t size, uint32_t rkey,
                      uint8_t usage) {
    for (int i = 0; i < 8; i++) {
        desc[i] = (unsigned char)(addr >> 8 * i);
        desc[8 + i] = (unsigned char)(size >> 8 * i);
    }
    for (int i = 0; i < 4; i++)
        desc[16 + i] = (unsigned char)(rkey >> 8 * i);
    desc[20] = usage;
}

bool world_peer(struct world *w) {
    unsigned char desc[21];
    if (!w->sweep)
        world_drop(w);
    w->h = (struct handles){0};
    world_descriptor(desc, WORLD_REMOTE_ADDR, WORLD_REMOTE_SIZE, WORLD_REMOTE_RKEY,
                     WORLD_EVERY_USAGE);
    return STEP(w, rpma_peer_new(fake_context(0), &w->h.peer)) &&
           STEP(w, rpma_mr_reg(w->h.peer, w->memory, sizeof(w->memory), WORLD_EVERY_USAGE,
                               &w->h.mr)) &&
           STEP(w, rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w->h.remote)) &&
           STEP(w, rpma_peer_cfg_new(&w->h.pcfg)) &&
           STEP(w, rpma_peer_cfg_set_direct_write_to_pmem(w->h.pcfg, true));
}

// The tests of decisions also run over older releases, so they must not link to newer
// functions: these are looked up by name when a test uses them.
static bool set_number(struct world *w, const char *setter, void *cfg, uint32_t value) {
    int (*set)(void *, uint32_t);
    if (value == 0)
        return true;
    *(void **)&set = dlsym(RTLD_DEFAULT, setter);
    world_begin(w);
    return world_step(w, set(cfg, value), setter, __FILE__, __LINE__);
}

static bool lend(struct world *w, uint32_t size, struct rpma_cq **cq, const char *setter) {
    static const char cfg_maker[] = "rpma_cq_cfg_new", maker[] = "rpma_cq_new";
    int (*make_cfg)(struct rpma_cq_cfg **);
    int (*make)(struct rpma_peer *, const struct rpma_cq_cfg *, struct rpma_cq **);
    int (*set)(struct rpma_conn_cfg *, struct rpma_cq *);
    if (size == 0)
        return true;
    *(void **)&make_cfg = dlsym(RTLD_DEFAULT, cfg_maker);
    *(void **)&make = dlsym(RTLD_DEFAULT, maker);
    *(void **)&set = dlsym(RTLD_DEFAULT, setter);
    world_begin(w);
    if (!w->h.cq_cfg && !world_step(w, make_cfg(&w->h.cq_cfg), cfg_maker, __FILE__, __LINE__))
        return false;
    if (!set_number(w, "rpma_cq_cfg_set_size", w->h.cq_cfg, size))
        return false;
    world_begin(w);
    if (!world_step(w, make(w->h.peer, w->h.cq_cfg, cq), maker, __FILE__, __LINE__))
        return false;
    world_begin(w);
    return world_step(w, set(w->h.cfg, *cq), setter, __FILE__, __LINE__);
}

static bool drop_newer(struct world *w, void *handle, const char *name) {
    void **object = handle;
    int (*drop)(void **);
    if (!*object)
        return true;
    *(void **)&drop = dlsym(RTLD_DEFAULT, name);
    world_begin(w);
    return world_step(w, drop(object), name, __FILE__, __LINE__) && !*object;
}

static bool make_srq(struct world *w, const struct shape *shape) {
    return STEP(w, rpma_srq_cfg_new(&w->h.srq_cfg)) &&
           STEP(w, rpma_srq_cfg_set_rcq_size(w->h.srq_cfg, shape->srq_rcq_size)) &&
           set_number(w, "rpma_srq_cfg_set_max_sge", w->h.srq_cfg, shape->max_sge) &&
           STEP(w, rpma_srq_new(w->h.peer, w->h.srq_cfg, &w->h.srq)) &&
           STEP(w, rpma_conn_cfg_set_srq(w->h.cfg, w->h.srq));
}

bool world_cfg(struct world *w, const struct shape *shape) {
    return STEP(w, rpma_conn_cfg_new(&w->h.cfg)) &&
           STEP(w, rpma_conn_cfg_set_compl_channel(w->h.cfg, shape->shared)) &&
           STEP(w, rpma_conn_cfg_set_rcq_size(w->h.cfg, shape->rcq_size)) &&
           lend(w, shape->lent_cq, &w->h.lent_cq, "rpma_conn_cfg_set_cq") &&
           lend(w, shape->lent_rcq, &w->h.lent_rcq, "rpma_conn_cfg_set_rcq") &&
           set_number(w, "rpma_conn_cfg_set_max_sge", w->h.cfg, shape->max_sge) &&
           set_number(w, "rpma_conn_cfg_set_flush_mode", w->h.cfg, shape->flush_mode) &&
           (!shape->srq || make_srq(w, shape));
}

bool world_listen(struct world *w) {
    return STEP(w, rpma_ep_listen(w->h.peer, WORLD_ADDRESS, WORLD_PORT, &w->h.ep));
}

bool world_request(struct world *w, const struct shape *shape) {
    return world_cfg(w, shape) && world_ask(w, shape);
}

bool world_ask(struct world *w, const struct shape *shape) {
    if (!shape->incoming)
        return STEP(
            w, rpma_conn_req_new(w->h.peer, WORLD_ADDRESS, WORLD_PORT, w->h.cfg, &w->h.req));
    if (!world_listen(w))
        return false;
    fake_cm_event(world_ep_fd(w), RDMA_CM_EVENT_CONNECT_REQUEST, private_data,
                  shape->private_data);
    return STEP(w, rpma_ep_next_conn_req(w->h.ep, w->h.cfg, &w->h.req));
}

bool world_up(struct world *w, const struct shape *shape) {
    const struct rpma_conn_private_data pdata = {private_data, shape->private_data};
    if (!STEP(w, rpma_conn_req_connect(&w->h.req, pdata.len ? &pdata : NULL, &w->h.conn)))
        return false;
    fake_cm_event(world_event_fd(w), RDMA_CM_EVENT_ESTABLISHED, private_data,
                  shape->incoming ? 0 : shape->private_data);
    return STEP(w, rpma_conn_next_event(w->h.conn, &w->h.event));
}

bool world_connect(struct world *w, const struct shape *shape) {
    return world_up(w, shape) && STEP(w, rpma_conn_apply_remote_peer_cfg(w->h.conn, w->h.pcfg));
}

bool world_conn(struct world *w, const struct shape *shape) {
    return world_peer(w) && world_request(w, shape) && world_connect(w, shape);
}

#define DROP(w, member, function) \
    (!(w)->h.member || (STEP(w, function(&(w)->h.member)) && !(w)->h.member))

bool world_apply(struct world *w, uint8_t statement) {
    return DROP(w, pcfg, rpma_peer_cfg_delete) &&
           STEP(w, rpma_peer_cfg_from_descriptor(&statement, 1, &w->h.pcfg)) &&
           STEP(w, rpma_conn_apply_remote_peer_cfg(w->h.conn, w->h.pcfg));
}

bool world_drop(struct world *w) {
    bool ok = drop_newer(w, &w->h.batch, "rpma_batch_delete");
    ok &= DROP(w, conn, rpma_conn_delete);
    ok &= DROP(w, req, rpma_conn_req_delete);
    ok &= DROP(w, ep, rpma_ep_shutdown);
    ok &= DROP(w, cfg, rpma_conn_cfg_delete);
    ok &= drop_newer(w, &w->h.cq_cfg, "rpma_cq_cfg_delete");
    ok &= drop_newer(w, &w->h.ep_cfg, "rpma_ep_cfg_delete");
    ok &= drop_newer(w, &w->h.lent_cq, "rpma_cq_delete");
    ok &= drop_newer(w, &w->h.lent_rcq, "rpma_cq_delete");
    ok &= DROP(w, srq, rpma_srq_delete);
    ok &= DROP(w, srq_cfg, rpma_srq_cfg_delete);
    ok &= DROP(w, pcfg, rpma_peer_cfg_delete);
    ok &= DROP(w, remote, rpma_mr_remote_delete);
    ok &= DROP(w, mr, rpma_mr_dereg);
    ok &= DROP(w, peer, rpma_peer_delete);
    return ok;
}

void world_anew(void) {
    fake_faults_off();
    world_drop(&w);
    unit_nothing_left("after a case");
    fake_reset();
}

int world_event_fd(const struct world *w) {
    int fd = -1;
    (void)rpma_conn_get_event_fd(w->h.conn, &fd);
    return fd;
}

int world_req_fd(const struct world *w) {
    int (*get)(const struct rpma_conn_req *, int *);
    int fd = -1;
    *(void **)&get = dlsym(RTLD_DEFAULT, "rpma_conn_req_get_event_fd");
    (void)get(w->h.req, &fd);
    return fd;
}

int world_ep_fd(const struct world *w) {
    int fd = -1;
    (void)rpma_ep_get_fd(w->h.ep, &fd);
    return fd;
}

struct rpma_cq *world_cq(const struct world *w) {
    struct rpma_cq *cq = NULL;
    (void)rpma_conn_get_cq(w->h.conn, &cq);
    return cq;
}

struct rpma_cq *world_rcq(const struct world *w) {
    struct rpma_cq *cq = NULL;
    (void)rpma_conn_get_rcq(w->h.conn, &cq);
    return cq;
}

int world_cq_fd(struct rpma_cq *cq) {
    int fd;
    return rpma_cq_get_fd(cq, &fd) == 0 ? fd : -1;
}

struct ibv_qp *world_qp(const struct world *w) {
    uint32_t number = 0;
    (void)rpma_conn_get_qp_num(w->h.conn, &number);
    return fake_qp(number);
}

void world_expect_name(const char *node, const char *service, int flags) {
    const struct fake_call *name = fake_last("getaddrinfo");
    assert_string_equal(name->getaddrinfo.node, node);
    assert_string_equal(name->getaddrinfo.service, service);
    assert_int_equal(name->getaddrinfo.flags, flags);
    assert_int_equal(name->getaddrinfo.family, AF_UNSPEC);
    assert_int_equal(name->getaddrinfo.socktype, SOCK_STREAM);
    assert_int_equal(name->getaddrinfo.protocol, IPPROTO_TCP);
}

void world_nonblocking(int fd) {
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}
