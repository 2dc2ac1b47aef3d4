// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// library.cc -- the functions of librpma that the examples call. What a manual page forbids is
// a finding, and so is a function that is missing here: the module cannot be loaded.

#include "world.hh"

#include <cstring>

struct rpma_peer : Object {
    int users = 0;
};

struct rpma_peer_cfg : Object {
    bool direct_write = false;
};

struct rpma_mr_remote : Object {
    const rpma_mr_local *region;
};

struct rpma_conn_cfg : Object {
    int timeout_ms = RPMA_DEFAULT_TIMEOUT_MS;
    size_t cq_size = 20, sq_size = 10;
    unsigned max_sge = 1;
};

struct rpma_conn_req : Object {
    rpma_peer *peer;
    Link *link;
    bool incoming;
    rpma_conn_cfg cfg;
};

struct rpma_batch : Object {
    rpma_conn *conn;
    std::vector<Operation> operations;
    size_t size;
};

namespace {

constexpr size_t REQUEST_DATA = 56, ANSWER_DATA = 196; // what arrives, of InfiniBand and RoCE

struct Packed {
    char signature[8];
    const rpma_mr_local *region;
    bool has_cfg, direct_write;
};
constexpr char SIGNATURE[] = "packed!";

template <typename T> T &use(T *object, const char *function) {
    if (!object || !object->alive || object->owner != world.current)
        world.found("%s: there is no such object (any more)", function);
    return *object;
}
#define USE(object) use(object, __func__)

template <typename T> int forget(T **object, const char *function) {
    if (*object)
        use(*object, function).alive = false;
    *object = nullptr;
    return 0;
}

// Fails like the descriptor it waits for.
bool wait_for(int fd) {
    while (!world.is_readable(fd)) {
        if (world.descriptor(fd).nonblocking)
            return false;
        const pollfd fds{fd, POLLIN, 0};
        world.current->wait_until(&fds, 1, NEVER);
    }
    world.point();
    return true;
}

rpma_conn *make_conn(rpma_conn_req &req, const rpma_conn_private_data *pdata, int side) {
    auto *conn = world.make_object<rpma_conn>();
    conn->link = req.link;
    conn->side = side;
    conn->sq_size = req.cfg.sq_size;
    conn->max_sge = req.cfg.max_sge;
    conn->event_fd = world.open_descriptor(Descriptor::EVENTS, conn, world.current);
    conn->cq.owner = world.current;
    conn->cq.conn = conn;
    conn->cq.size = req.cfg.cq_size;
    conn->cq.fd = world.open_descriptor(Descriptor::COMPLETIONS, &conn->cq, world.current);
    req.link->conns[side] = conn;
    std::string &offer = req.link->private_data[side];
    size_t room = side == 0 ? REQUEST_DATA : ANSWER_DATA;
    offer.clear();
    if (pdata) {
        if (pdata->len > room)
            world.found("%u bytes of private data, %zu fit", pdata->len, room);
        offer.assign(static_cast<const char *>(pdata->ptr), pdata->len);
    }
    offer.resize(room);
    return conn;
}

Operation make(Operation::Kind kind, const rpma_mr_remote *remote, size_t offset, size_t size,
               int flags, const void *context) {
    const rpma_mr_local *region = USE(remote).region;
    if (!(flags & RPMA_F_COMPLETION_ON_ERROR))
        world.found("an operation that would not even tell of its failure");
    Operation operation{};
    operation.kind = kind;
    operation.region = region;
    operation.target = region->ptr + offset;
    operation.size = size;
    operation.always = (flags & RPMA_F_COMPLETION_ALWAYS) == RPMA_F_COMPLETION_ALWAYS;
    operation.wr_id = reinterpret_cast<uint64_t>(context);
    return operation;
}

void add_piece(Operation &operation, int index, const rpma_mr_local *region, size_t offset,
               size_t size, int usage) {
    if (offset + size > USE(region).size || !(region->usage & usage))
        world.found("an operation uses local memory that was not registered for it");
    operation.pieces[index] = {region->ptr + offset, size};
}

int check_flush(const rpma_conn &conn, const rpma_mr_remote *remote, rpma_flush_type type) {
    bool persistent = type == RPMA_FLUSH_TYPE_PERSISTENT;
    int needed =
        persistent ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    bool allowed = USE(remote).region->usage & needed;
    return allowed && (!persistent || conn.may_be_persistent) ? 0 : RPMA_E_NOSUPP;
}

// The sides of an operation, whether it is posted or added to a batch.
Operation make_write(const rpma_mr_remote *dst, size_t dst_offset, const rpma_sge *sgl,
                     int nsge, int flags, const void *context) {
    Operation operation = make(Operation::WRITE, dst, dst_offset, 0, flags, context);
    if (nsge > 2 || flags & RPMA_F_INLINE)
        world.found("not simulated: more than two elements, or inline data");
    for (int i = 0; i < nsge; i++) {
        add_piece(operation, i, sgl[i].mr, sgl[i].offset, sgl[i].len, RPMA_MR_USAGE_WRITE_SRC);
        operation.size += sgl[i].len;
    }
    return operation;
}

Operation make_atomic_write(const rpma_mr_remote *dst, size_t offset, const char *src,
                            int flags, const void *context) {
    Operation operation = make(Operation::ATOMIC_WRITE, dst, offset, WORD, flags, context);
    if (offset % WORD)
        world.found("an atomic write to an offset that is no multiple of 8");
    operation.data.assign(src, WORD);
    operation.has_data = true;
    return operation;
}

Operation make_flush(const rpma_mr_remote *dst, size_t offset, size_t size,
                     rpma_flush_type type, int flags, const void *context) {
    Operation operation = make(Operation::FLUSH, dst, offset, size, flags, context);
    operation.persistent = type == RPMA_FLUSH_TYPE_PERSISTENT;
    return operation;
}

// A full queue refuses what has no room in it, and takes what comes before that.
int post(rpma_conn &conn, const Operation *operations, size_t count, uint32_t *taken) {
    Link &link = *conn.link;
    if (!conn.up || conn.side != 0)
        world.found("posts to a connection that is not up, or (not simulated) as a server");
    world.point();
    size_t room = conn.sq_size - (link.posted.size() - link.released);
    size_t part = count < room ? count : room;
    link.posted.insert(link.posted.end(), operations, operations + part);
    if (taken)
        *taken = static_cast<uint32_t>(part);
    return part == count ? 0 : RPMA_E_PROVIDER;
}

int post(rpma_conn &conn, const Operation &operation) {
    return post(conn, &operation, 1, nullptr);
}

int add(rpma_batch &batch, const Operation &operation) {
    USE(batch.conn);
    if (batch.operations.size() == batch.size)
        world.found("adds to a batch that is full");
    batch.operations.push_back(operation);
    return 0;
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

// ---- devices, peers, regions

int rpma_utils_get_ibv_context(const char *addr, rpma_util_ibv_context_type type,
                               ibv_context **context) {
    Machine *machine = world.machine(addr);
    world.point();
    bool remote = type == RPMA_UTIL_IBV_CONTEXT_REMOTE;
    if (!machine || !machine->on ||
        (remote && (machine->cut_off || world.current->machine->cut_off)))
        return RPMA_E_PROVIDER;
    static ibv_context device;
    *context = &device;
    return 0;
}

int rpma_peer_new(ibv_context *, rpma_peer **peer) {
    *peer = world.make_object<rpma_peer>();
    return 0;
}

int rpma_peer_delete(rpma_peer **peer) {
    if (*peer && USE(*peer).users)
        world.found("deletes a peer that still has regions");
    return forget(peer, __func__);
}

int rpma_mr_reg(rpma_peer *peer, void *ptr, size_t size, int usage, rpma_mr_local **mr) {
    USE(peer).users++;
    world.point();
    *mr = world.make_object<rpma_mr_local>();
    (*mr)->peer = peer;
    (*mr)->ptr = static_cast<char *>(ptr);
    (*mr)->size = size;
    (*mr)->usage = usage;
    return 0;
}

int rpma_mr_dereg(rpma_mr_local **mr) {
    world.point();
    for (auto &link : world.links)
        if (link->conns[0] && link->conns[0]->owner == world.current)
            for (size_t i = link->completed; i < link->posted.size(); i++)
                for (const Piece &piece : link->posted[i].pieces)
                    if (*mr && piece.size && piece.ptr >= (*mr)->ptr &&
                        piece.ptr < (*mr)->ptr + (*mr)->size)
                        world.found("deregisters a region that an operation still uses");
    if (*mr)
        USE(*mr).peer->users--;
    return forget(mr, __func__);
}

int rpma_mr_remote_delete(rpma_mr_remote **mr) {
    return forget(mr, __func__);
}

// ---- configurations and private data

int rpma_peer_cfg_new(rpma_peer_cfg **pcfg) {
    *pcfg = world.make_object<rpma_peer_cfg>();
    return 0;
}

int rpma_peer_cfg_delete(rpma_peer_cfg **pcfg) {
    return forget(pcfg, __func__);
}

int rpma_peer_cfg_set_direct_write_to_pmem(rpma_peer_cfg *pcfg, bool supported) {
    USE(pcfg).direct_write = supported;
    return 0;
}

int rpma_peer_cfg_get_direct_write_to_pmem(const rpma_peer_cfg *pcfg, bool *supported) {
    *supported = USE(pcfg).direct_write;
    return 0;
}

int rpma_peer_cfg_set_native(rpma_peer_cfg *pcfg, const rpma_peer *peer) {
    USE(pcfg);
    USE(peer);
    return 0;
}

int rpma_conn_private_data_pack(const rpma_mr_local *mr, const rpma_peer_cfg *pcfg,
                                rpma_conn_private_data *pdata) {
    Packed packed{{}, mr ? &USE(mr) : nullptr, pcfg != nullptr, pcfg && USE(pcfg).direct_write};
    memcpy(packed.signature, SIGNATURE, sizeof(SIGNATURE));
    if (pdata->len < sizeof(packed))
        return RPMA_E_INVAL;
    memcpy(pdata->ptr, &packed, sizeof(packed));
    pdata->len = sizeof(packed);
    return 0;
}

int rpma_conn_private_data_unpack(const rpma_conn_private_data *pdata, rpma_mr_remote **mr,
                                  rpma_peer_cfg **pcfg, rpma_conn_private_data *rest) {
    Packed packed;
    if (pdata->len < sizeof(packed))
        return RPMA_E_INVAL;
    memcpy(&packed, pdata->ptr, sizeof(packed));
    if (memcmp(packed.signature, SIGNATURE, sizeof(SIGNATURE)))
        return RPMA_E_INVAL;
    if (mr) {
        *mr = packed.region ? world.make_object<rpma_mr_remote>() : nullptr;
        if (*mr)
            (*mr)->region = packed.region;
    }
    if (pcfg) {
        *pcfg = packed.has_cfg ? world.make_object<rpma_peer_cfg>() : nullptr;
        if (*pcfg)
            (*pcfg)->direct_write = packed.direct_write;
    }
    if (rest)
        *rest = {static_cast<char *>(pdata->ptr) + sizeof(packed),
                 static_cast<uint8_t>(pdata->len - sizeof(packed))};
    return 0;
}

int rpma_conn_cfg_new(rpma_conn_cfg **cfg) {
    *cfg = world.make_object<rpma_conn_cfg>();
    return 0;
}

int rpma_conn_cfg_delete(rpma_conn_cfg **cfg) {
    return forget(cfg, __func__);
}

int rpma_conn_cfg_set_timeout(rpma_conn_cfg *cfg, int timeout_ms) {
    USE(cfg).timeout_ms = timeout_ms;
    return 0;
}

int rpma_conn_cfg_set_cq_size(rpma_conn_cfg *cfg, uint32_t size) {
    USE(cfg).cq_size = size;
    return 0;
}

int rpma_conn_cfg_set_sq_size(rpma_conn_cfg *cfg, uint32_t size) {
    USE(cfg).sq_size = size;
    return 0;
}

int rpma_conn_cfg_set_max_sge(rpma_conn_cfg *cfg, uint32_t max_sge) {
    USE(cfg).max_sge = max_sge;
    return 0;
}

int rpma_conn_cfg_set_rcq_size(rpma_conn_cfg *cfg, uint32_t size) {
    USE(cfg);
    if (size)
        world.found("not simulated: a receive CQ");
    return 0;
}

int rpma_conn_cfg_set_compl_channel(rpma_conn_cfg *cfg, bool shared) {
    USE(cfg);
    if (shared)
        world.found("not simulated: a shared completion channel");
    return 0;
}

// ---- connecting

int rpma_ep_listen(rpma_peer *peer, const char *addr, const char *port, rpma_ep **ep) {
    USE(peer);
    world.point();
    *ep = world.make_object<rpma_ep>();
    (*ep)->port = port;
    (*ep)->fd = world.open_descriptor(Descriptor::ENDPOINT, *ep, world.current);
    world.endpoints.push_back(*ep);
    if (world.machine(addr) != world.current->machine)
        world.found("listens on the address of another machine");
    return 0;
}

int rpma_ep_shutdown(rpma_ep **ep) {
    world.point();
    if (*ep)
        USE(*ep).close(true);
    *ep = nullptr;
    return 0;
}

int rpma_ep_get_fd(const rpma_ep *ep, int *fd) {
    *fd = USE(ep).fd;
    return 0;
}

int rpma_ep_next_conn_req(rpma_ep *ep, const rpma_conn_cfg *cfg, rpma_conn_req **req) {
    if (!wait_for(USE(ep).fd))
        return RPMA_E_NO_EVENT;
    *req = world.make_object<rpma_conn_req>();
    (*req)->link = ep->requests.front();
    (*req)->incoming = true;
    if (cfg)
        (*req)->cfg = USE(cfg);
    ep->requests.pop_front();
    return 0;
}

int rpma_conn_req_new(rpma_peer *peer, const char *addr, const char *port,
                      const rpma_conn_cfg *cfg, rpma_conn_req **req) {
    Machine *here = world.current->machine, *there = world.machine(addr);
    rpma_conn_cfg defaults;
    USE(peer);
    world.point();
    if (!there || !there->on || there->cut_off || here->cut_off) {
        int64_t until = world.now + (cfg ? USE(cfg) : defaults).timeout_ms;
        while (world.now < until)
            world.current->wait_until(nullptr, 0, until);
        return RPMA_E_PROVIDER;
    }
    world.links.push_back(std::make_unique<Link>());
    Link *link = world.links.back().get();
    link->number = static_cast<Writer>(world.links.size());
    link->state = Link::OVER; // until it connects
    link->port = port;
    link->machines[0] = here;
    link->machines[1] = there;
    *req = world.make_object<rpma_conn_req>();
    (*req)->link = link;
    (*req)->incoming = false;
    (*req)->cfg = cfg ? USE(cfg) : defaults;
    return 0;
}

int rpma_conn_req_delete(rpma_conn_req **req) {
    world.point();
    if (*req && (*req)->incoming) {
        (*req)->link->state = Link::OVER;
        (*req)->link->news[0].push_back(RPMA_CONN_REJECTED);
    }
    return forget(req, __func__);
}

int rpma_conn_req_connect(rpma_conn_req **req_ptr, const rpma_conn_private_data *pdata,
                          rpma_conn **conn) {
    rpma_conn_req &req = USE(*req_ptr);
    Link &link = *req.link;
    world.point();
    forget(req_ptr, __func__);
    if (!req.incoming) {
        link.state = Link::REQUESTED;
        world.open_links.push_back(static_cast<uint16_t>(link.number - 1));
        *conn = make_conn(req, pdata, 0);
        return 0;
    }
    // The client may have given up; its side may hear of that now or later.
    if (!link.conns[0] && world.chance())
        return RPMA_E_PROVIDER;
    link.state = Link::ANSWERED;
    *conn = make_conn(req, pdata, 1);
    link.news[0].push_back(RPMA_CONN_ESTABLISHED);
    return 0;
}

int rpma_conn_next_event(rpma_conn *conn, rpma_conn_event *event) {
    Link &link = *USE(conn).link;
    if (!wait_for(conn->event_fd))
        return RPMA_E_NO_EVENT;
    *event = conn->events.front();
    conn->events.pop_front();
    if (*event == RPMA_CONN_ESTABLISHED) {
        conn->up = true;
        conn->private_data = link.private_data[1 - conn->side];
        if (conn->side == 0) {
            link.state = Link::UP;
            link.news[1].push_front(RPMA_CONN_ESTABLISHED);
        }
    }
    return 0;
}

int rpma_conn_get_event_fd(const rpma_conn *conn, int *fd) {
    *fd = USE(conn).event_fd;
    return 0;
}

int rpma_conn_get_private_data(const rpma_conn *conn, rpma_conn_private_data *pdata) {
    const std::string &data = USE(conn).private_data;
    *pdata = {const_cast<char *>(data.data()), static_cast<uint8_t>(data.size())};
    return 0;
}

int rpma_conn_apply_remote_peer_cfg(rpma_conn *conn, const rpma_peer_cfg *pcfg) {
    USE(conn).may_be_persistent = USE(pcfg).direct_write;
    return 0;
}

int rpma_conn_get_cq(const rpma_conn *conn, rpma_cq **cq) {
    *cq = const_cast<rpma_cq *>(&USE(conn).cq);
    return 0;
}

int rpma_conn_disconnect(rpma_conn *conn) {
    Link &link = *USE(conn).link;
    world.point();
    if (!link.broken)
        link.break_up(Link::NOT_EXECUTED, false);
    return 0;
}

int rpma_conn_delete(rpma_conn **conn) {
    if (*conn) {
        USE(*conn);
        world.point();
        (*conn)->cq.alive = false;
        (*conn)->link->end((*conn)->side, true);
    }
    return forget(conn, __func__);
}

// ---- operations

int rpma_read(rpma_conn *conn, rpma_mr_local *dst, size_t dst_offset, const rpma_mr_remote *src,
              size_t src_offset, size_t len, int flags, const void *op_context) {
    Operation operation = make(Operation::READ, src, src_offset, len, flags, op_context);
    add_piece(operation, 0, dst, dst_offset, len, RPMA_MR_USAGE_READ_DST);
    return post(USE(conn), operation);
}

int rpma_write(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
               const rpma_mr_local *src, size_t src_offset, size_t len, int flags,
               const void *op_context) {
    const rpma_sge sge{src, src_offset, len};
    return post(USE(conn), make_write(dst, dst_offset, &sge, 1, flags, op_context));
}

int rpma_writev(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset, const rpma_sge *sgl,
                int nsge, int flags, const void *op_context) {
    if (nsge > static_cast<int>(USE(conn).max_sge))
        return RPMA_E_INVAL;
    return post(*conn, make_write(dst, dst_offset, sgl, nsge, flags, op_context));
}

int rpma_atomic_write(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
                      const char src[8], int flags, const void *op_context) {
    return post(USE(conn), make_atomic_write(dst, dst_offset, src, flags, op_context));
}

int rpma_flush(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset, size_t len,
               rpma_flush_type type, int flags, const void *op_context) {
    int ret = check_flush(USE(conn), dst, type);
    return ret ? ret : post(*conn, make_flush(dst, dst_offset, len, type, flags, op_context));
}

int rpma_batch_new(rpma_conn *conn, uint32_t max_ops, rpma_batch **batch) {
    USE(conn);
    *batch = world.make_object<rpma_batch>();
    (*batch)->conn = conn;
    (*batch)->size = max_ops;
    return 0;
}

int rpma_batch_delete(rpma_batch **batch) {
    return forget(batch, __func__);
}

int rpma_batch_reset(rpma_batch *batch) {
    USE(batch).operations.clear();
    return 0;
}

int rpma_batch_read(rpma_batch *batch, rpma_mr_local *dst, size_t dst_offset,
                    const rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
                    const void *op_context) {
    Operation operation = make(Operation::READ, src, src_offset, len, flags, op_context);
    add_piece(operation, 0, dst, dst_offset, len, RPMA_MR_USAGE_READ_DST);
    return add(USE(batch), operation);
}

int rpma_batch_write(rpma_batch *batch, rpma_mr_remote *dst, size_t dst_offset,
                     const rpma_mr_local *src, size_t src_offset, size_t len, int flags,
                     const void *op_context) {
    const rpma_sge sge{src, src_offset, len};
    return add(USE(batch), make_write(dst, dst_offset, &sge, 1, flags, op_context));
}

int rpma_batch_writev(rpma_batch *batch, rpma_mr_remote *dst, size_t dst_offset,
                      const rpma_sge *sgl, int nsge, int flags, const void *op_context) {
    if (nsge > static_cast<int>(USE(batch).conn->max_sge))
        return RPMA_E_INVAL;
    return add(*batch, make_write(dst, dst_offset, sgl, nsge, flags, op_context));
}

int rpma_batch_atomic_write(rpma_batch *batch, rpma_mr_remote *dst, size_t dst_offset,
                            const char src[8], int flags, const void *op_context) {
    return add(USE(batch), make_atomic_write(dst, dst_offset, src, flags, op_context));
}

int rpma_batch_flush(rpma_batch *batch, rpma_mr_remote *dst, size_t dst_offset, size_t len,
                     rpma_flush_type type, int flags, const void *op_context) {
    int ret = check_flush(*USE(batch).conn, dst, type);
    return ret ? ret : add(*batch, make_flush(dst, dst_offset, len, type, flags, op_context));
}

int rpma_batch_post(rpma_batch *batch, uint32_t *posted) {
    const std::vector<Operation> &operations = USE(batch).operations;
    return post(USE(batch->conn), operations.data(), operations.size(), posted);
}

// ---- completions

int rpma_cq_get_fd(const rpma_cq *cq, int *fd) {
    *fd = USE(cq).fd;
    return 0;
}

int rpma_cq_wait(rpma_cq *cq) {
    if (!wait_for(USE(cq).fd))
        return RPMA_E_NO_COMPLETION;
    cq->notified = false;
    cq->armed = true;
    return 0;
}

int rpma_cq_get_wc(rpma_cq *cq, int num_entries, ibv_wc *wc, int *num_entries_got) {
    if (USE(cq).entries.empty())
        return RPMA_E_NO_COMPLETION;
    world.point();
    int got = 0;
    for (; got < num_entries && !cq->entries.empty(); got++) {
        wc[got] = cq->entries.front().wc;
        cq->conn->link->released = cq->entries.front().operation + 1;
        cq->entries.pop_front();
        world.current->completions++;
    }
    if (num_entries_got)
        *num_entries_got = got;
    if (wc->status == IBV_WC_SUCCESS && world.configuration->example->completed)
        world.configuration->example->completed(*world.current);
    return 0;
}

// ---- what completion.c names and none of these examples calls

int rpma_conn_get_rcq(const rpma_conn *conn, rpma_cq **rcq) {
    USE(conn);
    *rcq = nullptr;
    return 0;
}

int rpma_srq_get_rcq(const rpma_srq *, rpma_cq **) {
    world.found("not simulated: %s", __func__);
    return RPMA_E_INVAL;
}

int rpma_conn_wait(rpma_conn *, int, rpma_cq **, bool *) {
    world.found("not simulated: %s", __func__);
    return RPMA_E_INVAL;
}

// ---- texts

int rpma_log_set_threshold(rpma_log_threshold, rpma_log_level) {
    return 0;
}

const char *rpma_err_2str(int ret) {
    switch (ret) {
    case RPMA_E_PROVIDER:
        return "the provider failed";
    case RPMA_E_NOSUPP:
        return "not supported";
    case RPMA_E_INVAL:
        return "an argument is not valid";
    default:
        return "another failure";
    }
}

const char *rpma_utils_conn_event_2str(rpma_conn_event event) {
    static const char *const texts[] = {"established", "closed", "lost", "rejected",
                                        "unreachable"};
    return texts[event];
}

const char *ibv_wc_status_str(ibv_wc_status status) {
    return status == IBV_WC_WR_FLUSH_ERR ? "flushed with an error" : "retries exceeded";
}

} // extern "C"
#pragma GCC visibility pop
