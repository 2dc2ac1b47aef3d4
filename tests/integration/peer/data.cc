// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// data.cc -- commands for operations and receives (single, in arrays, in batches) and for loads
// of writes

#include "call.hh"

#include <algorithm>
#include <cstring>
#include <infiniband/verbs.h>
#include <poll.h>

namespace {

const std::map<std::string, rpma_work_type> kinds = {
    {"read", RPMA_WORK_READ},
    {"write", RPMA_WORK_WRITE},
    {"write-imm", RPMA_WORK_WRITE_WITH_IMM},
    {"atomic", RPMA_WORK_ATOMIC_WRITE},
    {"flush", RPMA_WORK_FLUSH},
    {"send", RPMA_WORK_SEND},
    {"send-imm", RPMA_WORK_SEND_WITH_IMM},
    {"add", RPMA_WORK_FETCH_ADD},
    {"swap", RPMA_WORK_COMPARE_SWAP},
};

// An operation with its scatter/gather list.
struct Operation {
    rpma_work work;
    std::vector<rpma_sge> sgl;
};
std::vector<Operation> held; // operations that "post" will post

// The SGEs of the argument sgl=.
std::vector<rpma_sge> sgl_of(const Args &args) {
    std::vector<rpma_sge> sgl;
    for (const memory_range &range : parse_sgl(args))
        sgl.push_back({range.memory < MAX_REGIONS ? fixture.mr[range.memory] : nullptr,
                       range.offset, range.len});
    return sgl;
}

// The SGE of mr=, off=, len=. Without mr= its region is NULL.
rpma_sge sge_of(const Args &args) {
    return {args.has("mr") ? args.in(fixture.mr, "mr") : nullptr, args.number("off", 0),
            args.number("len", 0)};
}

void copy_value(const Args &args, const char *key, uint64_t *value) {
    const std::vector<unsigned char> bytes = args.bytes(key);
    memcpy(value, bytes.data(), std::min(bytes.size(), sizeof(*value)));
}

// Also sets members of other types, which the library must not read.
Operation operation_of(const Args &args) {
    Operation operation = {.work = {}, .sgl = sgl_of(args)};
    rpma_work &work = operation.work;
    work.type = kinds.at(args.verb());
    work.imm = args.number<uint32_t>("imm", 0);
    work.remote = args.has("rmr") ? args.in(fixture.remote, "rmr") : nullptr;
    work.remote_offset = args.number("roff", 0);
    work.local = sge_of(args);
    work.sgl = operation.sgl.empty() ? nullptr : operation.sgl.data();
    work.nsge = static_cast<uint32_t>(operation.sgl.size());
    work.flush_type = work.type == RPMA_WORK_FLUSH && args.number<bool>("persistent")
                          ? RPMA_FLUSH_TYPE_PERSISTENT
                          : RPMA_FLUSH_TYPE_VISIBILITY;
    work.flush_len = args.number("len", 0);
    work.flags = args.number<int>("flags", RPMA_F_COMPLETION_ALWAYS);
    work.op_context = context_of(args.number("ctx", 0));
    copy_value(args, "bytes", &work.value);
    copy_value(args, "compare", &work.compare);
    return operation;
}

// Uses the operation's own function, which every release has.
int post_plain(rpma_conn *conn, const rpma_work &w) {
    auto *local = const_cast<rpma_mr_local *>(w.local.mr);
    auto *remote = const_cast<rpma_mr_remote *>(w.remote);
    const auto [mr, offset, len] = w.local;
    const size_t roff = w.remote_offset;
    const void *context = w.op_context;
    const char *value = reinterpret_cast<const char *>(&w.value);
    switch (w.type) {
    case RPMA_WORK_READ:
        return rpma_read(conn, local, offset, remote, roff, len, w.flags, context);
    case RPMA_WORK_WRITE:
        return rpma_write(conn, remote, roff, local, offset, len, w.flags, context);
    case RPMA_WORK_WRITE_WITH_IMM:
        return rpma_write_with_imm(conn, remote, roff, local, offset, len, w.flags, w.imm,
                                   context);
    case RPMA_WORK_ATOMIC_WRITE:
        return rpma_atomic_write(conn, remote, roff, value, w.flags, context);
    case RPMA_WORK_FLUSH:
        return rpma_flush(conn, remote, roff, w.flush_len, w.flush_type, w.flags, context);
    case RPMA_WORK_SEND:
        return rpma_send(conn, local, offset, len, w.flags, context);
    case RPMA_WORK_SEND_WITH_IMM:
        return rpma_send_with_imm(conn, local, offset, len, w.flags, w.imm, context);
    default: // other types have no function of their own
        return rpma_post(conn, &w, 1, nullptr);
    }
}

// batch=: adds to the batch. method=hold: keeps the operation for "post". method=post, or with
// sgl=: rpma_post().
void execute(const Args &args) {
    Operation operation = operation_of(args);
    const rpma_work &work = operation.work;
    const std::string method = args.text("method", "");
    if (method == "hold")
        held.push_back(std::move(operation));
    else if (args.has("batch"))
        must(rpma_batch_add(object_of<rpma_batch>(args), &work));
    else if (method == "post" || work.sgl != nullptr)
        must(rpma_post(object_of<rpma_conn>(args), &work, 1, nullptr));
    else
        must(post_plain(object_of<rpma_conn>(args), work));
}

// Posts the held operations and keeps those that the device did not accept.
void post(const Args &args) {
    std::vector<rpma_work> works;
    uint32_t posted = UINT32_MAX;
    for (const Operation &operation : held)
        works.push_back(operation.work);
    const ScopeExit report{[&] {
        reply("posted", posted);
        if (posted <= held.size())
            held.erase(held.begin(), held.begin() + posted);
    }};
    must(rpma_post(object_of<rpma_conn>(args), works.data(),
                   static_cast<uint32_t>(works.size()), &posted));
}

// Posts count= receives, in adjacent memory and with consecutive contexts. With method=many or
// sgl= it uses one call of many(), and the reply has the number that the queue accepted.
template <class Queue>
Command receive(int one(Queue *, rpma_mr_local *, size_t, size_t, const void *),
                int many(Queue *, const rpma_receive *, uint32_t, uint32_t *)) {
    return [=](const Args &args) {
        const std::vector<rpma_sge> sgl = sgl_of(args);
        std::vector<rpma_receive> receives(args.number("count", 1));
        rpma_sge sge = sge_of(args);
        uint64_t context = args.number("ctx", 0);
        uint32_t posted = UINT32_MAX;
        for (rpma_receive &next : receives) {
            next.local = sge;
            next.sgl = sgl.empty() ? nullptr : sgl.data();
            next.nsge = static_cast<uint32_t>(sgl.size());
            next.op_context = context_of(context++);
            sge.offset += sge.len;
        }
        if (args.text("method", "") == "many" || !sgl.empty()) {
            const ScopeExit report{[&] { reply("posted", posted); }};
            must(many(object_of<Queue>(args), receives.data(),
                      static_cast<uint32_t>(receives.size()), &posted));
            return;
        }
        for (const rpma_receive &next : receives)
            must(one(object_of<Queue>(args), const_cast<rpma_mr_local *>(next.local.mr),
                     next.local.offset, next.local.len, next.op_context));
    };
}

// Posts a write by libibverbs, to the queue pair of a connection.
void raw_write(const Args &args) {
    const ibv_mr *mr = get(rpma_mr_get_ibv_mr, object_of<rpma_mr_local>(args));
    ibv_send_wr *bad = nullptr, wr = {};
    must(rpma_mr_remote_get_key(object_of<rpma_mr_remote>(args), &wr.wr.rdma.remote_addr,
                                &wr.wr.rdma.rkey));
    ibv_sge sge = {reinterpret_cast<uintptr_t>(mr->addr) + args.number("off", 0),
                   args.number<uint32_t>("len"), mr->lkey};
    wr.wr_id = args.number("ctx", 0);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr += args.number("roff", 0);
    errno = ibv_post_send(get(rpma_conn_get_ibv_qp, object_of<rpma_conn>(args)), &wr, &bad);
    require_system(errno == 0, "ibv_post_send");
}

// ---- loads -------------------------------------------------------------------------------

// Waits for a completion. If the other side disconnects meanwhile, reports the event and
// disconnects as well, because a device that retries flushes its operations only after this.
// event_is_last: throws ERR_CLOSED instead of waiting for the flushed operations.
ibv_wc await_either(rpma_conn *conn, bool event_is_last) {
    rpma_cq *cq = queue_of(conn);
    pollfd fds[] = {{.fd = get(rpma_cq_get_fd, cq), .events = POLLIN, .revents = 0},
                    {.fd = get(rpma_conn_get_event_fd, conn), .events = POLLIN, .revents = 0}};
    ibv_wc wc = {};
    int code;
    while ((code = rpma_cq_get_wc(cq, 1, &wc, nullptr)) == RPMA_E_NO_COMPLETION) {
        poll(fds, 2, -1);
        if ((fds[0].revents & POLLIN) == 0 && (fds[1].revents & POLLIN) != 0) {
            const bool is_closed = get(rpma_conn_next_event, conn) == RPMA_CONN_CLOSED;
            reply("event", is_closed ? "CLOSED" : "another");
            must(rpma_conn_disconnect(conn));
            require(!event_is_last, ERR_CLOSED);
        } else if ((code = rpma_cq_wait(cq)) != RPMA_E_NO_COMPLETION) {
            must(code);
        }
    }
    must(code);
    return wc;
}

// Writes count= blocks to consecutive ranges, with at most window= of them outstanding. With
// last=1 an event of the connection ends the load, because a completion may not follow.
void write_blocks(const Args &args) {
    rpma_conn *conn = object_of<rpma_conn>(args);
    const uint64_t count = args.number("count"), window = args.number("window");
    const size_t len = args.number("len");
    ibv_wc wc = {};
    uint64_t posted = 0, done = 0;
    const ScopeExit report{[&] {
        reply("done", done);
        reply("status", int{wc.status});
    }};
    while (done < count) {
        if (posted < count && posted - done < window) {
            must(rpma_write(conn, object_of<rpma_mr_remote>(args), posted * len,
                            object_of<rpma_mr_local>(args), posted * len, len,
                            RPMA_F_COMPLETION_ALWAYS, context_of(posted)));
            posted++;
            continue;
        }
        wc = await_either(conn, args.is("last"));
        require(wc.status == IBV_WC_SUCCESS, RPMA_E_PROVIDER);
        require(wc.wr_id == done, ERR_MISMATCH);
        done++;
    }
}

const Commands here{
    {"read", execute},
    {"write", execute},
    {"write-imm", execute},
    {"atomic", execute},
    {"flush", execute},
    {"send", execute},
    {"send-imm", execute},
    {"add", execute},
    {"swap", execute},
    {"post", post},
    {"recv", receive(rpma_recv, rpma_recv_many)},
    {"req-recv", receive(rpma_conn_req_recv, rpma_conn_req_recv_many)},
    {"srq-recv", receive(rpma_srq_recv, rpma_srq_recv_many)},
    {"raw-write", raw_write},
    {"write-blocks", write_blocks},
    {"batch-new", call(rpma_batch_new, {"ops"})},
    {"batch-post", call(rpma_batch_post, {"posted"})},
    {"batch-reset", call(rpma_batch_reset)},
    {"batch-delete", call(rpma_batch_delete)},
};

} // namespace

std::vector<memory_range> parse_sgl(const Args &args) {
    std::istringstream list(args.text("sgl", ""));
    std::vector<memory_range> ranges;
    for (std::string text; std::getline(list, text, ',');) {
        memory_range range = {MAX_REGIONS, 0, 0};
        char memory[3], end;
        if (sscanf(text.c_str(), "%2[0-9-]:%zu:%zu%c", memory, &range.offset, &range.len,
                   &end) != 3)
            args.refuse("sgl= is no list of memory:offset:length");
        if (strcmp(memory, "-") != 0)
            range.memory = strtoul(memory, nullptr, 10);
        if (range.memory > MAX_REGIONS)
            args.refuse("no such memory in sgl=");
        ranges.push_back(range);
    }
    return ranges;
}
