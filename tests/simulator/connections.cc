// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connections.cc -- the functions of librpma about devices, memory and connections: the calls
// at which anything may happen

#include "library.hh"

#include <algorithm>
#include <bit>

namespace {

constexpr size_t REQUEST_DATA = 56, ANSWER_DATA = 196; // bytes on InfiniBand and RoCE
constexpr uint32_t FIRST_QP_NUM = 0xa50000;            // they have 24 bits

ibv_context device;

// Makes the queues of a connection.
void set_up(rpma_conn_req &req, const rpma_conn_cfg *given) {
    rpma_conn *conn = req.conn;
    const rpma_conn_cfg &cfg = req.cfg = given ? USE(given) : rpma_conn_cfg{};
    Channel *shared = cfg.compl_channel ? make_channel() : nullptr;
    conn->sq_size = cfg.sq_size;
    conn->cq = cfg.cq ? &USE(cfg.cq) : make_cq(cfg.cq_size, conn, shared);
    if (cfg.srq) {
        conn->srq = &USE(cfg.srq);
        conn->srq->users++;
        conn->rcq = conn->srq->rcq;
    }
    if (!conn->rcq && cfg.rcq_size)
        conn->rcq = make_cq(cfg.rcq_size, conn, shared);
    uint64_t &used = world.current->qp_nums;
    conn->qp_num = FIRST_QP_NUM + static_cast<uint32_t>(std::countr_one(used));
    used |= uint64_t{1} << (conn->qp_num - FIRST_QP_NUM);
    for (const rpma_cq *cq : {conn->cq, conn->rcq})
        if (cq && std::ranges::any_of(cq->entries, [conn](const auto &entry) {
                return entry.wc.qp_num == conn->qp_num;
            }))
            world.found("makes a connection that has the number of one whose completions wait");
}

void offer(Link &link, int side, const rpma_conn_private_data *pdata) {
    size_t room = side == 0 ? REQUEST_DATA : ANSWER_DATA;
    std::string &offer = link.private_data[side] = {};
    if (pdata && pdata->len > room)
        world.found("%u bytes of private data, %zu fit", pdata->len, room);
    if (pdata)
        offer.assign(static_cast<const char *>(pdata->ptr), pdata->len);
    offer.resize(room);
}

rpma_conn_private_data data_of(std::string &data) {
    return {data.data(), static_cast<uint8_t>(data.size())};
}

// With the queues that are its own.
void forget_conn(rpma_conn &conn) {
    if (conn.srq)
        conn.srq->users--;
    for (rpma_cq *cq : {conn.cq, conn.rcq})
        if (cq && cq->of == &conn)
            cq->alive = cq->channel->alive = false;
    if (conn.qp_num)
        world.current->qp_nums &= ~(uint64_t{1} << (conn.qp_num - FIRST_QP_NUM));
    conn.alive = false;
}

rpma_conn_req *make_request(Link *link, int side) {
    auto *req = world.make_object<rpma_conn_req>();
    req->link = link;
    req->incoming = side == 1;
    req->conn = world.make_object<rpma_conn>();
    req->conn->link = link;
    req->conn->side = side;
    req->conn->event_fd = world.open_descriptor(req->conn);
    world.descriptor(req->conn->event_fd).nonblocking = true;
    return req;
}

// The library logs what has failed.
void complain() {
    world.current->logged |= world.current->threshold >= RPMA_LOG_LEVEL_ERROR;
}

// Messages about connections share a queue pair, which soft-RoCE loses when one cannot leave.
void connect_anybody() {
    if (world.current->spoke_in_vain && world.configuration->oracle->heeds_device)
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

extern "C" {

// ---- devices, peers, regions

int rpma_utils_get_ibv_context(const char *addr, rpma_util_ibv_context_type type,
                               ibv_context **context) {
    const Machine *there = world.machine(addr), &here = *world.current->machine;
    world.point();
    bool is_remote = type == RPMA_UTIL_IBV_CONTEXT_REMOTE;
    *context = &device;
    if (there && there->on && !here.no_device &&
        !(is_remote && (there->cut_off || here.cut_off)))
        return 0;
    complain();
    return RPMA_E_PROVIDER;
}

int rpma_peer_new(ibv_context *context, rpma_peer **peer) {
    *peer = world.make_object<rpma_peer>();
    (*peer)->pd.context = context;
    (*peer)->gone = world.current->machine->no_device;
    if ((*peer)->gone)
        (*peer)->events.push_back(RPMA_PEER_EVENT_DEVICE_GONE);
    world.current->spoke_in_vain = false;
    (*peer)->event_fd = world.open_descriptor(*peer);
    world.peers.push_back(*peer);
    return 0;
}

int rpma_peer_delete(rpma_peer **peer) {
    USE(*peer);
    for (auto &object : world.objects)
        if (object->alive && object->owner == world.current && object->is_of_peer())
            world.found("deletes a peer that still has what was made by %s", object->maker);
    return forget(peer, __func__);
}

GET(rpma_peer, event_fd, int, made.event_fd)
GET(rpma_peer, ibv_pd, ibv_pd *, &made.pd)

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
    if (event->type == RPMA_PEER_EVENT_PORT_UP) {
        world.current->links_at_up = world.links.size();
        world.current->up_at = world.now;
    }
    peer->events.pop_front();
    return 0;
}

int rpma_mr_reg(rpma_peer *peer, void *ptr, size_t size, int usage, rpma_mr_local **mr) {
    USE(peer);
    world.point();
    *mr = world.make_object<rpma_mr_local>();
    (*mr)->piece = {static_cast<char *>(ptr), size};
    (*mr)->usage = usage;
    return 0;
}

int rpma_mr_dereg(rpma_mr_local **mr) {
    world.point();
    if (*mr)
        USE(*mr);
    for (auto &link : world.links)
        for (const Flow &flow : link->flows)
            if (*mr && link->conns[flow.side] &&
                link->conns[flow.side]->owner == world.current && flow.uses((*mr)->piece))
                world.found("deregisters a region that an operation or a receive still uses");
    return forget(mr, __func__);
}

GET(rpma_mr_remote, size, size_t, made.region->piece.size)
DELETE(rpma_mr_remote)

// ---- endpoints

int rpma_ep_listen(rpma_peer *peer, const char *addr, const char *port, rpma_ep **ep) {
    USE(peer);
    world.point();
    *ep = world.make_object<rpma_ep>();
    (*ep)->port = port;
    (*ep)->fd = world.open_descriptor(*ep);
    world.endpoints.push_back(*ep);
    if (world.machine(addr) != world.current->machine)
        world.found("listens on the address of another machine");
    return 0;
}

GET(rpma_ep, fd, int, made.fd)

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
    if (ep->address_changes) {
        ep->address_changes--;
        return RPMA_E_NO_EVENT; // also on a descriptor that blocks
    }
    connect_anybody();
    *req = make_request(ep->requests.front(), 1);
    ep->requests.pop_front();
    return 0;
}

int rpma_ep_next_conn_req(rpma_ep *ep, const rpma_conn_cfg *cfg, rpma_conn_req **req) {
    int ret = rpma_ep_next_incoming(ep, req);
    if (ret)
        return ret;
    set_up(**req, cfg);
    world.descriptor((*req)->conn->event_fd).nonblocking = false;
    return 0;
}

// ---- requests

int rpma_conn_req_start(rpma_peer *peer, const char *addr, const char *port,
                        const rpma_conn_cfg *cfg, rpma_conn_req **req) {
    Machine *there = world.machine(addr);
    USE(peer);
    if ((cfg ? USE(cfg).timeout : RPMA_DEFAULT_TIMEOUT_MS) >
            world.configuration->oracle->way_ms &&
        !world.configuration->stranger)
        world.found("looks too long for the way to a server that may not be there");
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

GET(rpma_conn_req, event_fd, int, made.conn->event_fd)
GET(rpma_conn_req, private_data, rpma_conn_private_data, data_of(made.link->private_data[0]))

int rpma_conn_req_resolve(rpma_conn_req *req) {
    world.point();
    USE(req).conn->events.clear(); // the address has changed
    return USE(req).link->state == Link::RESOLVING ? RPMA_E_AGAIN : 0;
}

int rpma_conn_req_setup(rpma_conn_req *req, const rpma_conn_cfg *cfg) {
    world.point();
    if (USE(req).link->state == Link::RESOLVING || req->conn->qp_num)
        world.found("sets a request up that is not resolved, or is set up");
    set_up(*req, cfg);
    return 0;
}

// The way is found at once, or not within the timeout.
int rpma_conn_req_new(rpma_peer *peer, const char *addr, const char *port,
                      const rpma_conn_cfg *cfg, rpma_conn_req **req) {
    int ret = rpma_conn_req_start(peer, addr, port, cfg, req);
    if (ret)
        return ret;
    Link &link = *(*req)->link;
    bool found = link.state != Link::RESOLVING || link.is_open();
    link.state = Link::OVER; // until the program connects it
    if (!found) {
        int64_t until = world.now + (cfg ? cfg->timeout : RPMA_DEFAULT_TIMEOUT_MS);
        link.conns[0] = nullptr;
        while (world.now < until)
            world.current->wait_until(nullptr, 0, until);
        complain();
        forget_conn(*(*req)->conn);
        (void)forget(req, __func__);
        return RPMA_E_PROVIDER;
    }
    world.descriptor((*req)->conn->event_fd).nonblocking = false;
    set_up(**req, cfg);
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
    return receive_one(USE(req).conn->receives, req->cfg.rq_size, dst, offset, len, op_context);
}

int rpma_conn_req_connect(rpma_conn_req **req_ptr, const rpma_conn_private_data *pdata,
                          rpma_conn **conn) {
    rpma_conn_req &req = USE(*req_ptr);
    Link &link = *req.link;
    world.point();
    forget(req_ptr, __func__);
    if (!req.conn->qp_num)
        world.found("connects a request that was not set up");
    // If the client has given up, this side may learn that now or later.
    if (req.incoming && !link.conns[0] && world.chance()) {
        forget_conn(*req.conn);
        world.current->was_left = true;
        return RPMA_E_PROVIDER;
    }
    *conn = link.conns[req.conn->side] = req.conn;
    offer(link, req.conn->side, pdata);
    link.state = req.incoming ? Link::ANSWERED : Link::REQUESTED;
    if (req.incoming) {
        (*conn)->private_data = link.private_data[0];
        link.news[0].push_back(RPMA_CONN_ESTABLISHED);
    } else {
        speak();
    }
    return 0;
}

// ---- connections

GET(rpma_conn, event_fd, int, made.event_fd)
GET(rpma_conn, cq, rpma_cq *, made.cq)
GET(rpma_conn, rcq, rpma_cq *, made.rcq)
GET(rpma_conn, qp_num, uint32_t, made.qp_num)
GET(rpma_conn, private_data, rpma_conn_private_data, data_of(made.private_data))

int rpma_conn_apply_remote_peer_cfg(rpma_conn *conn, const rpma_peer_cfg *pcfg) {
    USE(conn).may_be_persistent = USE(pcfg).direct_write_to_pmem;
    return 0;
}

int rpma_conn_next_event(rpma_conn *conn, rpma_conn_event *event) {
    Link &link = *USE(conn).link;
    if (!wait_for(conn->event_fd))
        return RPMA_E_NO_EVENT;
    const rpma_conn_event next = conn->events.front();
    conn->events.pop_front();
    if (next == ADDRESS_CHANGED)
        return RPMA_E_NO_EVENT; // also on a descriptor that blocks
    *event = next;
    if (*event == RPMA_CONN_ESTABLISHED || *event == RPMA_CONN_REJECTED)
        conn->private_data = link.private_data[1 - conn->side];
    conn->up |= *event == RPMA_CONN_ESTABLISHED;
    conn->over |= *event != RPMA_CONN_ESTABLISHED;
    conn->heard_at = world.now;
    if (*event == RPMA_CONN_ESTABLISHED && conn->side == 0) {
        link.state = Link::UP;
        link.news[1].push_front(RPMA_CONN_ESTABLISHED);
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
    }
    *conn = nullptr;
    return 0;
}

} // extern "C"
