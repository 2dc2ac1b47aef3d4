// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// library.cc -- the functions of librpma that act: the calls at which anything may happen. A
// call that a manual page forbids is a finding. So is a function that is missing here and in
// configurations.cc, because the module cannot be loaded.

#include "library.hh"

#include <algorithm>
#include <bit>
#include <cstring>

struct rpma_batch : Object {
    rpma_conn *conn;
    size_t max_ops;
    std::vector<rpma_work> work;
};

namespace {

constexpr size_t REQUEST_DATA = 56, ANSWER_DATA = 196; // bytes on InfiniBand and RoCE

// Returns false where a read of the descriptor would return EAGAIN.
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

Channel *make_channel() {
    auto *channel = world.make_object<Channel>();
    channel->fd = world.open_descriptor(Descriptor::COMPLETIONS, channel, world.current);
    return channel;
}

rpma_cq *make_cq(size_t size, const rpma_conn *of = nullptr, Channel *shared = nullptr) {
    auto *cq = world.make_object<rpma_cq>();
    cq->of = of;
    cq->size = size;
    cq->channel = shared ? shared : make_channel();
    cq->shares_channel = shared;
    return cq;
}

rpma_conn *make_conn(Link *link, int side) {
    auto *conn = world.make_object<rpma_conn>();
    conn->link = link;
    conn->side = side;
    return conn;
}

// Makes the queues of a connection.
void set_up(rpma_conn *conn, const rpma_conn_cfg &cfg) {
    Channel *shared = cfg.compl_channel ? make_channel() : nullptr;
    conn->sq_size = cfg.sq_size;
    conn->srq = cfg.srq ? &use(cfg.srq, "rpma_conn_cfg_set_srq") : nullptr;
    conn->cq =
        cfg.cq ? &use(cfg.cq, "rpma_conn_cfg_set_cq") : make_cq(cfg.cq_size, conn, shared);
    if (conn->srq && conn->srq->rcq)
        conn->rcq = conn->srq->rcq;
    else if (cfg.rcq_size)
        conn->rcq = make_cq(cfg.rcq_size, conn, shared);
    if (conn->srq)
        conn->srq->users++;
    uint64_t &used = world.current->qp_nums;
    conn->qp_num = static_cast<uint32_t>(std::countr_one(used));
    used |= uint64_t{1} << conn->qp_num;
}

void offer(Link &link, int side, const rpma_conn_private_data *pdata) {
    std::string &offer = link.private_data[side];
    size_t room = side == 0 ? REQUEST_DATA : ANSWER_DATA;
    offer.clear();
    if (pdata) {
        if (pdata->len > room)
            world.found("%u bytes of private data, %zu fit", pdata->len, room);
        offer.assign(static_cast<const char *>(pdata->ptr), pdata->len);
    }
    offer.resize(room);
}

rpma_conn_private_data data_of(const std::string &data) {
    return {const_cast<char *>(data.data()), static_cast<uint8_t>(data.size())};
}

// The two sides agree on the connection, or one of them hopes that they will.
rpma_conn *open_conn(rpma_conn_req &req, const rpma_conn_private_data *pdata) {
    rpma_conn *conn = req.conn;
    if (!conn->qp_num)
        world.found("connects a request that was not set up");
    req.link->conns[conn->side] = conn;
    offer(*req.link, conn->side, pdata);
    return conn;
}

// With the queues that are its own.
void forget_conn(rpma_conn &conn) {
    if (conn.srq)
        conn.srq->users--;
    for (rpma_cq *cq : {conn.cq, conn.rcq})
        if (cq && cq->of == &conn)
            cq->alive = cq->channel->alive = false;
    world.current->qp_nums &= ~(uint64_t{1} << conn.qp_num) | 1;
    conn.alive = false;
}

rpma_conn_req *make_request(Link *link, int side) {
    auto *req = world.make_object<rpma_conn_req>();
    req->link = link;
    req->incoming = side == 1;
    req->conn = make_conn(link, side);
    req->conn->event_fd = world.open_descriptor(Descriptor::EVENTS, req->conn, world.current);
    world.descriptor(req->conn->event_fd).nonblocking = true;
    return req;
}

bool may_flush(const rpma_conn &conn, const rpma_mr_local &region, rpma_flush_type type) {
    if (type == RPMA_FLUSH_TYPE_VISIBILITY)
        return region.usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    return conn.may_be_persistent && region.usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
}

Piece piece_of(const rpma_sge &local, bool has_list, int usage) {
    if (has_list)
        world.found("not simulated: several pieces of local memory");
    if (!local.mr && !local.offset && !local.len)
        return {};
    const rpma_mr_local &region = use(local.mr, "rpma_post");
    if (local.offset + local.len > region.size || !(region.usage & usage))
        world.found("an operation uses local memory that was not registered for it");
    return {region.ptr + local.offset, local.len};
}

struct Shape {
    Operation::Kind kind;
    int usage; // of local memory, or 0: it has none
    bool is_remote, takes_receive, has_imm;
};

// By rpma_work_type.
constexpr Shape shapes[] = {{},
                            {Operation::READ, RPMA_MR_USAGE_READ_DST, true, false, false},
                            {Operation::WRITE, RPMA_MR_USAGE_WRITE_SRC, true, false, false},
                            {Operation::WRITE, RPMA_MR_USAGE_WRITE_SRC, true, true, true},
                            {Operation::ATOMIC_WRITE, 0, true, false, false},
                            {Operation::FLUSH, 0, true, false, false},
                            {Operation::SEND, RPMA_MR_USAGE_SEND, false, true, false},
                            {Operation::SEND, RPMA_MR_USAGE_SEND, false, true, true}};

// Returns false for a flush that was not allowed.
bool make(const rpma_conn &conn, const rpma_work &work, Operation &operation) {
    if (work.reserved0 || work.reserved1)
        world.found("an operation has reserved members that are not 0");
    if (work.flags != RPMA_F_COMPLETION_ON_ERROR && work.flags != RPMA_F_COMPLETION_ALWAYS)
        world.found("an operation has other flags than one of RPMA_F_COMPLETION_*");
    if (work.type < RPMA_WORK_READ || work.type >= std::size(shapes))
        world.found("an operation is of no kind");
    const Shape &shape = shapes[work.type];
    operation.kind = shape.kind;
    operation.takes_receive = shape.takes_receive;
    operation.has_imm = shape.has_imm;
    operation.imm = work.imm;
    operation.always = work.flags == RPMA_F_COMPLETION_ALWAYS;
    operation.wr_id = reinterpret_cast<uint64_t>(work.op_context);
    if (shape.is_remote) {
        operation.region = use(work.remote, "rpma_post").region;
        operation.target = operation.region->ptr + work.remote_offset;
    }
    if (shape.usage) {
        operation.piece = piece_of(work.local, work.sgl || work.nsge, shape.usage);
        operation.size = operation.piece.size;
    }
    if (shape.kind == Operation::ATOMIC_WRITE) {
        if (work.remote_offset % WORD)
            world.found("an atomic write to an offset that is no multiple of 8");
        operation.data.assign(reinterpret_cast<const char *>(&work.value), WORD);
        operation.has_data = true;
        operation.size = WORD;
    }
    if (shape.kind != Operation::FLUSH)
        return true;
    operation.persistent = work.flush_type == RPMA_FLUSH_TYPE_PERSISTENT;
    operation.size = work.flush_len;
    return may_flush(conn, *operation.region, work.flush_type);
}

// Adds receives to a queue.
int receive(std::deque<Receive> &queue, size_t size, const rpma_receive *receives,
            uint32_t count, uint32_t *posted) {
    uint32_t taken = 0;
    for (; taken < count && queue.size() < size; taken++)
        queue.push_back(
            {piece_of(receives[taken].local, receives[taken].nsge, RPMA_MR_USAGE_RECV),
             reinterpret_cast<uint64_t>(receives[taken].op_context)});
    if (posted)
        *posted = taken;
    return taken < count ? RPMA_E_AGAIN : 0;
}

rpma_work work_of(rpma_work_type type, const rpma_mr_remote *remote, size_t offset, int flags,
                  const void *op_context) {
    rpma_work work{};
    work.type = type;
    work.remote = remote;
    work.remote_offset = offset;
    work.flags = flags;
    work.op_context = op_context;
    return work;
}

// The functions of older releases have no code of their own for a full queue.
int of_older_release(int ret) {
    return ret == RPMA_E_AGAIN ? RPMA_E_PROVIDER : ret;
}

int post_one(rpma_conn *conn, const rpma_work &work) {
    return of_older_release(rpma_post(conn, &work, 1, nullptr));
}

int post_local(rpma_conn *conn, rpma_work work, const rpma_mr_local *src, size_t offset,
               size_t len, uint32_t imm = 0) {
    work.local = {src, offset, len};
    work.imm = imm;
    return post_one(conn, work);
}

rpma_receive receive_of(rpma_mr_local *dst, size_t offset, size_t len, const void *op_context) {
    rpma_receive receive{};
    receive.local = {dst, offset, len};
    receive.op_context = op_context;
    return receive;
}

ibv_context device;

// Messages about connections share a queue pair, which soft-RoCE loses when one cannot leave.
void connect_anybody() {
    if (world.current->spoke_in_vain && world.configuration->example->heeds_device)
        world.found("connects after a message to a port that was down, where soft-RoCE "
                    "connects nobody any more");
}

// A message about a connection leaves. The port may go down before it has left; a program that
// has not asked, or did not wait for the port, is to blame.
void speak() {
    world.current->spoke_in_vain |=
        world.current->machine->port_down && !world.current->port_was_up;
    world.current->port_was_up = false;
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
    if (!machine || !machine->on || world.current->machine->no_device ||
        (remote && (machine->cut_off || world.current->machine->cut_off)))
        return RPMA_E_PROVIDER;
    *context = &device;
    return 0;
}

int rpma_peer_new(ibv_context *context, rpma_peer **peer) {
    *peer = world.make_object<rpma_peer>();
    (*peer)->pd.context = context;
    (*peer)->gone = world.current->machine->no_device;
    if ((*peer)->gone)
        (*peer)->events.push_back(RPMA_PEER_EVENT_DEVICE_GONE);
    world.current->spoke_in_vain = false;
    (*peer)->event_fd = world.open_descriptor(Descriptor::DEVICE, *peer, world.current);
    world.peers.push_back(*peer);
    return 0;
}

int rpma_peer_delete(rpma_peer **peer) {
    if (*peer && USE(*peer).users)
        world.found("deletes a peer that still has regions");
    return forget(peer, __func__);
}

int rpma_peer_get_ibv_pd(const rpma_peer *peer, ibv_pd **pd) {
    *pd = &const_cast<rpma_peer *>(&USE(peer))->pd;
    return 0;
}

#undef ibv_query_port
int ibv_query_port(ibv_context *, uint8_t, _compat_ibv_port_attr *attr) {
    world.point();
    const Machine &machine = *world.current->machine;
    world.current->port_was_up = !machine.port_down && !machine.no_device;
    reinterpret_cast<ibv_port_attr *>(attr)->state =
        world.current->port_was_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    return machine.no_device ? EIO : 0;
}

int rpma_peer_next_event(rpma_peer *peer, rpma_peer_event *event) {
    if (!wait_for(USE(peer).event_fd))
        return RPMA_E_NO_EVENT;
    *event = {};
    event->type = peer->events.front();
    event->port = 1;
    if (event->type == RPMA_PEER_EVENT_PORT_UP)
        world.current->links_at_up = world.links.size();
    peer->events.pop_front();
    return 0;
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
    auto check = [mr](const Piece &piece) {
        if (*mr && piece.size && piece.ptr >= (*mr)->ptr &&
            piece.ptr < (*mr)->ptr + (*mr)->size)
            world.found("deregisters a region that an operation or a receive still uses");
    };
    for (auto &link : world.links)
        for (const Flow &flow : link->flows)
            if (const rpma_conn *conn = link->conns[flow.side];
                conn && conn->owner == world.current) {
                for (size_t i = flow.completed; i < flow.posted.size(); i++)
                    check(flow.posted[i].piece);
                for (const Receive &receive : conn->receives)
                    check(receive.piece);
            }
    if (*mr)
        USE(*mr).peer->users--;
    return forget(mr, __func__);
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

int rpma_ep_next_incoming(rpma_ep *ep, rpma_conn_req **req) {
    if (!wait_for(USE(ep).fd))
        return RPMA_E_NO_EVENT;
    connect_anybody();
    *req = make_request(ep->requests.front(), 1);
    ep->requests.pop_front();
    return 0;
}

int rpma_ep_next_conn_req(rpma_ep *ep, const rpma_conn_cfg *cfg, rpma_conn_req **req) {
    int ret = rpma_ep_next_incoming(ep, req);
    if (ret)
        return ret;
    set_up((*req)->conn, (*req)->cfg = cfg ? USE(cfg) : rpma_conn_cfg{});
    world.descriptor((*req)->conn->event_fd).nonblocking = false;
    return 0;
}

int rpma_conn_req_start(rpma_peer *peer, const char *addr, const char *port,
                        const rpma_conn_cfg *cfg, rpma_conn_req **req) {
    Machine *there = world.machine(addr);
    USE(peer);
    if (cfg)
        USE(cfg);
    world.point();
    if (!there || peer->gone)
        return RPMA_E_PROVIDER;
    connect_anybody();
    world.links.push_back(std::make_unique<Link>());
    Link *link = world.links.back().get();
    link->number = static_cast<Writer>(world.links.size());
    link->port = port;
    link->machines[0] = world.current->machine;
    link->machines[1] = there;
    *req = make_request(link, 0);
    link->conns[0] = (*req)->conn;
    world.open_links.push_back(static_cast<uint16_t>(link->number - 1));
    return 0;
}

int rpma_conn_req_resolve(rpma_conn_req *req) {
    world.point();
    return USE(req).link->state == Link::RESOLVING ? RPMA_E_AGAIN : 0;
}

int rpma_conn_req_setup(rpma_conn_req *req, const rpma_conn_cfg *cfg) {
    world.point();
    if (USE(req).link->state == Link::RESOLVING || req->conn->qp_num)
        world.found("sets a request up that is not resolved, or is set up");
    set_up(req->conn, req->cfg = cfg ? USE(cfg) : rpma_conn_cfg{});
    return 0;
}

// The way is found at once, or not within the timeout.
int rpma_conn_req_new(rpma_peer *peer, const char *addr, const char *port,
                      const rpma_conn_cfg *cfg, rpma_conn_req **req) {
    int ret = rpma_conn_req_start(peer, addr, port, cfg, req);
    if (ret)
        return ret;
    Link &link = *(*req)->link;
    if (link.state == Link::RESOLVING && !link.can_resolve()) {
        int64_t until = world.now + (cfg ? cfg->timeout : RPMA_DEFAULT_TIMEOUT_MS);
        link.state = Link::OVER;
        link.conns[0] = nullptr;
        while (world.now < until)
            world.current->wait_until(nullptr, 0, until);
        forget_conn(*(*req)->conn);
        (void)forget(req, __func__);
        return RPMA_E_PROVIDER;
    }
    link.state = Link::OVER; // until the program connects it
    world.descriptor((*req)->conn->event_fd).nonblocking = false;
    set_up((*req)->conn, (*req)->cfg = cfg ? USE(cfg) : rpma_conn_cfg{});
    return 0;
}

int rpma_conn_req_delete(rpma_conn_req **req) {
    world.point();
    if (*req) {
        Link &link = *USE(*req).link;
        if ((*req)->incoming)
            link.news[0].push_back(RPMA_CONN_REJECTED);
        else
            link.conns[0] = nullptr;
        link.state = Link::OVER;
        forget_conn(*(*req)->conn);
    }
    return forget(req, __func__);
}

int rpma_conn_req_reject(rpma_conn_req **req, const rpma_conn_private_data *pdata) {
    offer(*USE(*req).link, 1, pdata);
    if (!(*req)->incoming)
        world.found("rejects a request of its own");
    return rpma_conn_req_delete(req);
}

int rpma_conn_req_recv_many(rpma_conn_req *req, const rpma_receive *receives, uint32_t count,
                            uint32_t *posted) {
    return receive(USE(req).conn->receives, req->cfg.rq_size, receives, count, posted);
}

int rpma_conn_req_recv(rpma_conn_req *req, rpma_mr_local *dst, size_t offset, size_t len,
                       const void *op_context) {
    const rpma_receive receive = receive_of(dst, offset, len, op_context);
    return of_older_release(rpma_conn_req_recv_many(req, &receive, 1, nullptr));
}

int rpma_conn_req_get_private_data(const rpma_conn_req *req, rpma_conn_private_data *pdata) {
    *pdata = data_of(USE(req).link->private_data[0]);
    return 0;
}

int rpma_conn_req_connect(rpma_conn_req **req_ptr, const rpma_conn_private_data *pdata,
                          rpma_conn **conn) {
    rpma_conn_req &req = USE(*req_ptr);
    Link &link = *req.link;
    world.point();
    forget(req_ptr, __func__);
    if (!req.incoming) {
        speak();
        link.state = Link::REQUESTED;
        *conn = open_conn(req, pdata);
        return 0;
    }
    // If the client has given up, this side may learn that now or later.
    if (!link.conns[0] && world.chance()) {
        forget_conn(*req.conn);
        return RPMA_E_PROVIDER;
    }
    link.state = Link::ANSWERED;
    *conn = open_conn(req, pdata);
    (*conn)->private_data = link.private_data[0];
    link.news[0].push_back(RPMA_CONN_ESTABLISHED);
    return 0;
}

int rpma_conn_next_event(rpma_conn *conn, rpma_conn_event *event) {
    Link &link = *USE(conn).link;
    if (!wait_for(conn->event_fd))
        return RPMA_E_NO_EVENT;
    *event = conn->events.front();
    conn->events.pop_front();
    if (*event == RPMA_CONN_ESTABLISHED || *event == RPMA_CONN_REJECTED)
        conn->private_data = link.private_data[1 - conn->side];
    if (*event == RPMA_CONN_ESTABLISHED) {
        conn->up = true;
        if (conn->side == 0) {
            link.state = Link::UP;
            link.news[1].push_front(RPMA_CONN_ESTABLISHED);
        }
    }
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
        speak();
        world.point();
        (*conn)->link->end((*conn)->side, true);
        forget_conn(**conn);
        (*conn)->alive = true; // until forget()
    }
    return forget(conn, __func__);
}

// ---- operations

// A queue posts the operations that it has room for and refuses the rest.
int rpma_post(rpma_conn *conn, const rpma_work *work, uint32_t count, uint32_t *posted) {
    Flow &flow = USE(conn).link->flows[conn->side];
    if (!conn->up && conn->link->state != Link::UP)
        world.found("posts to a connection that is not up");
    world.point();
    size_t room = conn->sq_size - (flow.posted.size() - flow.released);
    uint32_t taken = 0;
    int ret = 0;
    for (; !ret && taken < count; taken += !ret) {
        Operation operation{};
        if (taken == room)
            ret = RPMA_E_AGAIN;
        else if (!make(*conn, work[taken], operation))
            ret = RPMA_E_NOSUPP;
        else
            flow.posted.push_back(operation);
    }
    if (posted)
        *posted = taken;
    return ret;
}

int rpma_batch_new(rpma_conn *conn, uint32_t max_ops, rpma_batch **batch) {
    USE(conn);
    *batch = world.make_object<rpma_batch>();
    (*batch)->conn = conn;
    (*batch)->max_ops = max_ops;
    return 0;
}

int rpma_batch_delete(rpma_batch **batch) {
    return forget(batch, __func__);
}

// rpma_batch_post() judges the operations, so a refusal comes later than in the library.
int rpma_batch_add(rpma_batch *batch, const rpma_work *work) {
    USE(USE(batch).conn);
    if (batch->work.size() == batch->max_ops)
        world.found("adds an operation to a batch that is full");
    batch->work.push_back(*work);
    return 0;
}

int rpma_batch_set(rpma_batch *batch, uint32_t index, const rpma_work *work) {
    USE(USE(batch).conn);
    if (index >= batch->work.size())
        world.found("replaces an operation that the batch does not have");
    batch->work[index] = *work;
    return 0;
}

// The device takes a batch with a flush as a whole or refuses it (a batch without one, too).
int rpma_batch_post(rpma_batch *batch, uint32_t *posted) {
    const Flow &flow = USE(USE(batch).conn).link->flows[batch->conn->side];
    auto count = static_cast<uint32_t>(batch->work.size());
    if (posted)
        *posted = 0;
    if (count > batch->conn->sq_size - (flow.posted.size() - flow.released))
        return RPMA_E_AGAIN;
    return rpma_post(batch->conn, batch->work.data(), count, posted);
}

int rpma_read(rpma_conn *conn, rpma_mr_local *dst, size_t dst_offset, const rpma_mr_remote *src,
              size_t src_offset, size_t len, int flags, const void *op_context) {
    return post_local(conn, work_of(RPMA_WORK_READ, src, src_offset, flags, op_context), dst,
                      dst_offset, len);
}

int rpma_write(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
               const rpma_mr_local *src, size_t src_offset, size_t len, int flags,
               const void *op_context) {
    return post_local(conn, work_of(RPMA_WORK_WRITE, dst, dst_offset, flags, op_context), src,
                      src_offset, len);
}

int rpma_write_with_imm(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
                        const rpma_mr_local *src, size_t src_offset, size_t len, int flags,
                        uint32_t imm, const void *op_context) {
    return post_local(conn,
                      work_of(RPMA_WORK_WRITE_WITH_IMM, dst, dst_offset, flags, op_context),
                      src, src_offset, len, imm);
}

int rpma_send(rpma_conn *conn, const rpma_mr_local *src, size_t offset, size_t len, int flags,
              const void *op_context) {
    return post_local(conn, work_of(RPMA_WORK_SEND, nullptr, 0, flags, op_context), src, offset,
                      len);
}

int rpma_send_with_imm(rpma_conn *conn, const rpma_mr_local *src, size_t offset, size_t len,
                       int flags, uint32_t imm, const void *op_context) {
    return post_local(conn, work_of(RPMA_WORK_SEND_WITH_IMM, nullptr, 0, flags, op_context),
                      src, offset, len, imm);
}

int rpma_atomic_write(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
                      const char src[8], int flags, const void *op_context) {
    rpma_work work = work_of(RPMA_WORK_ATOMIC_WRITE, dst, dst_offset, flags, op_context);
    memcpy(&work.value, src, sizeof(work.value));
    return post_one(conn, work);
}

int rpma_flush(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset, size_t len,
               rpma_flush_type type, int flags, const void *op_context) {
    rpma_work work = work_of(RPMA_WORK_FLUSH, dst, dst_offset, flags, op_context);
    work.flush_type = type;
    work.flush_len = len;
    return post_one(conn, work);
}

// ---- receives

int rpma_recv(rpma_conn *conn, rpma_mr_local *dst, size_t offset, size_t len,
              const void *op_context) {
    const rpma_receive one = receive_of(dst, offset, len, op_context);
    world.point();
    return of_older_release(receive(USE(conn).receives, 10, &one, 1, nullptr));
}

int rpma_srq_new(rpma_peer *peer, rpma_srq_cfg *cfg, rpma_srq **srq) {
    USE(peer);
    const rpma_srq_cfg used = cfg ? USE(cfg) : rpma_srq_cfg{};
    *srq = world.make_object<rpma_srq>();
    (*srq)->size = used.rq_size;
    (*srq)->rcq = used.rcq_size ? make_cq(used.rcq_size) : nullptr;
    return 0;
}

int rpma_srq_delete(rpma_srq **srq) {
    if (*srq && USE(*srq).users)
        world.found("deletes a shared receive queue that connections still use");
    return forget(srq, __func__);
}

int rpma_srq_recv(rpma_srq *srq, rpma_mr_local *dst, size_t offset, size_t len,
                  const void *op_context) {
    const rpma_receive one = receive_of(dst, offset, len, op_context);
    world.point();
    return of_older_release(receive(USE(srq).receives, srq->size, &one, 1, nullptr));
}

// ---- completions

int rpma_cq_new(rpma_peer *peer, const rpma_cq_cfg *cfg, rpma_cq **cq) {
    USE(peer);
    *cq = make_cq((cfg ? USE(cfg) : rpma_cq_cfg{}).size);
    return 0;
}

int rpma_cq_delete(rpma_cq **cq) {
    for (auto &link : world.links)
        for (const rpma_conn *conn : link->conns)
            if (*cq && conn && (conn->cq == *cq || conn->rcq == *cq))
                world.found("deletes a queue that a connection still uses");
    if (*cq)
        USE(*cq).channel->alive = false;
    return forget(cq, __func__);
}

int rpma_cq_take_event(rpma_cq *cq) {
    if (USE(cq).shares_channel)
        return RPMA_E_SHARED_CHANNEL;
    if (!wait_for(cq->channel->fd))
        return RPMA_E_NO_COMPLETION;
    cq->channel->events.pop_front();
    return 0;
}

int rpma_cq_arm(rpma_cq *cq, bool solicited_only) {
    if (solicited_only)
        world.found("not simulated: solicited events");
    world.point();
    USE(cq).armed = true;
    return 0;
}

int rpma_cq_wait(rpma_cq *cq) {
    int ret = rpma_cq_take_event(cq);
    cq->armed |= ret == 0;
    return ret;
}

int rpma_conn_wait(rpma_conn *conn, int, rpma_cq **cq, bool *is_rcq) {
    Channel &channel = *USE(conn).cq->channel;
    if (!conn->cq->shares_channel)
        return RPMA_E_NOT_SHARED_CHNL;
    if (!wait_for(channel.fd))
        return RPMA_E_NO_COMPLETION;
    *cq = channel.events.front();
    channel.events.pop_front();
    (*cq)->armed = true;
    if (is_rcq)
        *is_rcq = *cq == conn->rcq;
    return 0;
}

int rpma_cq_get_wc(rpma_cq *cq, int num_entries, ibv_wc *wc, int *num_entries_got) {
    if (USE(cq).entries.empty())
        return RPMA_E_NO_COMPLETION;
    world.point();
    int got = 0;
    for (; got < num_entries && !cq->entries.empty(); got++) {
        const rpma_cq::Entry &entry = cq->entries.front();
        wc[got] = entry.wc;
        if (entry.flow)
            entry.flow->released = entry.operation + 1;
        cq->entries.pop_front();
        world.current->completions++;
    }
    if (num_entries_got)
        *num_entries_got = got;
    if (wc->status == IBV_WC_SUCCESS && world.configuration->example->completed)
        world.configuration->example->completed(*world.current);
    return 0;
}

} // extern "C"
#pragma GCC visibility pop
