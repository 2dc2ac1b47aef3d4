// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.cc -- the functions of librpma that post operations and receives, and take
// completions

#include "library.hh"

#include <algorithm>
#include <cstring>

struct rpma_batch : Object {
    rpma_conn *conn;
    size_t max_ops;
    std::vector<rpma_work> work;
};

namespace {

Piece piece_of(const rpma_sge &local, bool has_list, int usage) {
    if (has_list)
        world.found("not simulated: several pieces of local memory");
    if (!local.mr && !local.offset && !local.len)
        return {};
    const rpma_mr_local &region = use(local.mr, "rpma_post");
    if (local.offset + local.len > region.piece.size || !(region.usage & usage))
        world.found("an operation uses local memory that was not registered for it");
    return {region.piece.ptr + local.offset, local.len};
}

// Returns false for a flush that was not allowed.
bool make(const rpma_conn &conn, const rpma_work &work, Operation &operation) {
    if (work.reserved0 || work.reserved1)
        world.found("an operation has reserved members that are not 0");
    if (work.flags != RPMA_F_COMPLETION_ON_ERROR && work.flags != RPMA_F_COMPLETION_ALWAYS)
        world.found("an operation has other flags than one of RPMA_F_COMPLETION_*");
    if (work.type < RPMA_WORK_READ || work.type >= std::size(shapes))
        world.found("an operation is of no kind");
    const Shape &shape = operation.shape = shapes[work.type];
    operation.work = work;
    if (shape.remote_usage) {
        operation.region = use(work.remote, "rpma_post").region;
        operation.target = operation.region->piece.ptr + work.remote_offset;
    }
    if (shape.local_usage)
        operation.piece = piece_of(work.local, work.sgl || work.nsge, shape.local_usage);
    operation.size = operation.piece.size;
    if (shape.kind == Shape::ATOMIC_WRITE) {
        if (work.remote_offset % WORD)
            world.found("an atomic write to an offset that is no multiple of 8");
        operation.data.assign(reinterpret_cast<const char *>(&work.value), WORD);
        operation.has_data = true;
        operation.size = WORD;
    }
    if (shape.kind != Shape::FLUSH)
        return true;
    operation.size = work.flush_len;
    return work.flush_type == RPMA_FLUSH_TYPE_VISIBILITY
               ? operation.region->usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY
               : conn.may_be_persistent &&
                     operation.region->usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
}

// Whether the program has posted no write there before the flush. The wrong forms of the
// pitfalls may do that.
bool flushes_nothing(const Flow &flow, const Operation &flush) {
    return flush.shape.kind == Shape::FLUSH && world.configuration->example != "pitfalls" &&
           std::ranges::none_of(flow.posted, [&](const Operation &other) {
               return (other.shape.kind == Shape::WRITE ||
                       other.shape.kind == Shape::ATOMIC_WRITE) &&
                      other.target < flush.target + flush.size &&
                      flush.target < other.target + other.size;
           });
}

// The connection of the program that runs; NULL if it has deleted that.
rpma_conn *open_conn(uint32_t qp_num) {
    for (uint16_t i : world.open_links)
        for (rpma_conn *conn : world.links[i]->conns)
            if (conn && conn->owner == world.current && conn->qp_num == qp_num)
                return conn;
    return nullptr;
}

// The functions of older releases have no code of their own for a full queue.
int of_older_release(int ret) {
    return ret == RPMA_E_AGAIN ? RPMA_E_PROVIDER : ret;
}

int post(rpma_conn *conn, rpma_work_type type, const rpma_sge &local,
         const rpma_mr_remote *remote, size_t remote_offset, int flags, const void *op_context,
         rpma_work more = {}) {
    more.type = type;
    more.local = local;
    more.remote = remote;
    more.remote_offset = remote_offset;
    more.flags = flags;
    more.op_context = op_context;
    return of_older_release(rpma_post(conn, &more, 1, nullptr));
}

} // namespace

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

int receive_one(std::deque<Receive> &queue, size_t size, rpma_mr_local *dst, size_t offset,
                size_t len, const void *op_context) {
    const rpma_receive one = {.local = {dst, offset, len}, .op_context = op_context};
    return of_older_release(receive(queue, size, &one, 1, nullptr));
}

Channel *make_channel() {
    auto *channel = world.make_object<Channel>();
    channel->fd = world.open_descriptor(channel);
    return channel;
}

rpma_cq *make_cq(size_t size, const rpma_conn *of, Channel *shared) {
    auto *cq = world.make_object<rpma_cq>();
    cq->of = of;
    cq->size = size;
    cq->channel = shared ? shared : make_channel();
    cq->shares_channel = shared;
    cq->is_deleted = false; // but with its connection
    return cq;
}

extern "C" {

// ---- operations

// A queue posts the operations that it has room for and refuses the rest.
int rpma_post(rpma_conn *conn, const rpma_work *work, uint32_t count, uint32_t *posted) {
    Flow &flow = USE(conn).link->flows[conn->side];
    if (!conn->up && conn->link->state != Link::UP)
        world.found("posts to a connection that is not up");
    world.point();
    size_t room = conn->sq_size - (flow.posted.size() - flow.released);
    if (room == conn->sq_size)
        conn->asked_at = world.now;
    uint32_t taken = 0;
    int ret = 0;
    for (; !ret && taken < count; taken += !ret) {
        Operation operation{};
        if (taken == room)
            ret = RPMA_E_AGAIN;
        else if (!make(*conn, work[taken], operation))
            ret = RPMA_E_NOSUPP;
        else if (flushes_nothing(flow, operation))
            world.found("flushes what it has not written");
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

DELETE(rpma_batch)

// rpma_batch_post() judges the operations again, by what holds then.
int rpma_batch_add(rpma_batch *batch, const rpma_work *work) {
    USE(USE(batch).conn);
    if (batch->work.size() == batch->max_ops)
        world.found("adds an operation to a batch that is full");
    batch->work.push_back(*work);
    Operation added{};
    return make(*batch->conn, *work, added) ? 0 : RPMA_E_NOSUPP;
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
    return post(conn, RPMA_WORK_READ, {dst, dst_offset, len}, src, src_offset, flags,
                op_context);
}

int rpma_write(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
               const rpma_mr_local *src, size_t src_offset, size_t len, int flags,
               const void *op_context) {
    return post(conn, RPMA_WORK_WRITE, {src, src_offset, len}, dst, dst_offset, flags,
                op_context);
}

int rpma_write_with_imm(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
                        const rpma_mr_local *src, size_t src_offset, size_t len, int flags,
                        uint32_t imm, const void *op_context) {
    return post(conn, RPMA_WORK_WRITE_WITH_IMM, {src, src_offset, len}, dst, dst_offset, flags,
                op_context, {.imm = imm});
}

int rpma_send(rpma_conn *conn, const rpma_mr_local *src, size_t offset, size_t len, int flags,
              const void *op_context) {
    return post(conn, RPMA_WORK_SEND, {src, offset, len}, nullptr, 0, flags, op_context);
}

int rpma_send_with_imm(rpma_conn *conn, const rpma_mr_local *src, size_t offset, size_t len,
                       int flags, uint32_t imm, const void *op_context) {
    return post(conn, RPMA_WORK_SEND_WITH_IMM, {src, offset, len}, nullptr, 0, flags,
                op_context, {.imm = imm});
}

int rpma_atomic_write(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
                      const char src[8], int flags, const void *op_context) {
    uint64_t value;
    memcpy(&value, src, sizeof(value));
    return post(conn, RPMA_WORK_ATOMIC_WRITE, {}, dst, dst_offset, flags, op_context,
                {.value = value});
}

int rpma_flush(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset, size_t len,
               rpma_flush_type type, int flags, const void *op_context) {
    return post(conn, RPMA_WORK_FLUSH, {}, dst, dst_offset, flags, op_context,
                {.flush_type = type, .flush_len = len});
}

// ---- receives

int rpma_recv(rpma_conn *conn, rpma_mr_local *dst, size_t offset, size_t len,
              const void *op_context) {
    world.point();
    return receive_one(USE(conn).receives, 10, dst, offset, len, op_context);
}

int rpma_srq_new(rpma_peer *peer, rpma_srq_cfg *cfg, rpma_srq **srq) {
    USE(peer);
    const rpma_srq_cfg used = cfg ? USE(cfg) : rpma_srq_cfg{};
    *srq = world.make_object<rpma_srq>();
    (*srq)->size = used.rq_size;
    (*srq)->rcq = used.rcq_size ? make_cq(used.rcq_size) : nullptr;
    return 0;
}

GET(rpma_srq, rcq, rpma_cq *, made.rcq)

int rpma_srq_delete(rpma_srq **srq) {
    if (*srq && USE(*srq).users)
        world.found("deletes a shared receive queue that connections still use");
    if (*srq && (*srq)->rcq)
        (*srq)->rcq->alive = (*srq)->rcq->channel->alive = false;
    return forget(srq, __func__);
}

int rpma_srq_recv(rpma_srq *srq, rpma_mr_local *dst, size_t offset, size_t len,
                  const void *op_context) {
    world.point();
    return receive_one(USE(srq).receives, srq->size, dst, offset, len, op_context);
}

// ---- completions

int rpma_cq_new(rpma_peer *peer, const rpma_cq_cfg *cfg, rpma_cq **cq) {
    USE(peer);
    *cq = make_cq((cfg ? USE(cfg) : rpma_cq_cfg{}).size);
    (*cq)->is_deleted = true;
    return 0;
}

GET(rpma_cq, fd, int, made.channel->fd)

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

int rpma_conn_get_compl_fd(const rpma_conn *conn, int *fd) {
    *fd = USE(conn).cq->channel->fd;
    return conn->cq->shares_channel ? 0 : RPMA_E_NOT_SHARED_CHNL;
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
        rpma_conn *conn = open_conn(entry.wc.qp_num);
        if (conn && entry.wc.status == IBV_WC_SUCCESS && (cq->of || !entry.flow)) {
            conn->heard_at = world.now;
            conn->answered = true;
        }
        cq->entries.pop_front();
        world.current->completions++;
    }
    if (num_entries_got)
        *num_entries_got = got;
    if (wc->status == IBV_WC_SUCCESS)
        world.configuration->oracle->completed(*world.current);
    return 0;
}

} // extern "C"
