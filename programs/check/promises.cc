// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// promises.cc -- what librpma promises on each device: errors, completions, descriptors

#include "questions.hh"

#include "nonblocking.hh"

#include <climits>
#include <cstring>
#include <filesystem>
#include <set>

namespace {

constexpr size_t HUGE = size_t{UINT32_MAX} + 1;
const rpma_work NOTHING{};

// The objects that a refusal needs.
struct Objects {
    Session &session;
    Connection &c;
    rpma::peer &peer = session.peer;
    rpma::conn_cfg cfg{};
    rpma_mr_remote *remote = c.remote;
    rpma_mr_local *mr = c.memory.mr;
    rpma_conn *conn = c.conn;

    // Posts an operation with a mistake.
    int post(rpma_work_type type, auto change) const {
        rpma_work work = NOTHING;
        work.type = type;
        work.flags = ALWAYS;
        work.remote = type == RPMA_WORK_SEND ? nullptr : remote;
        if (type != RPMA_WORK_FLUSH && type != RPMA_WORK_ATOMIC_WRITE)
            work.local = {mr, 0, 8};
        if (type == RPMA_WORK_FLUSH) {
            work.flush_type = RPMA_FLUSH_TYPE_VISIBILITY;
            work.flush_len = 8;
        }
        change(work);
        return rpma_post(conn, &work, 1, nullptr);
    }
    int receive(auto change) const {
        rpma_receive receive{};
        receive.local = {mr, 0, 8};
        change(receive);
        return rpma_recv_many(conn, &receive, 1, nullptr);
    }
};

struct Refusal {
    const char *name;
    int expected;
    int (*call)(Objects &);
};

// Calls a function with 0 and NULL for all arguments.
template <class... Parameters> int call_with_null(int (*function)(Parameters...)) {
    return function(Parameters{}...);
}

// The rows of contract/errors.tsv for NULL.
const Refusal NULLS[] = {
#define REFUSES_NULL(function) \
    {#function ": NULL", RPMA_E_INVAL, [](Objects &) { return call_with_null(function); }},
#include "refusals.inc"
#undef REFUSES_NULL
};

// A value that the enumeration does not have.
template <class Enumeration> Enumeration unknown() {
    constexpr int VALUE = 99;
    Enumeration made;
    static_assert(sizeof(made) == sizeof(VALUE));
    std::memcpy(&made, &VALUE, sizeof(made));
    return made;
}

int unpack(const char *bytes, uint8_t size) {
    const rpma_conn_private_data data = {const_cast<char *>(bytes), size};
    uint32_t count = 0;
    return rpma_conn_private_data_unpack(&data, nullptr, &count, nullptr, nullptr, nullptr);
}

int listen_at(Objects &o, const char *port) {
    rpma_ep *made = nullptr;
    return rpma_ep_listen(o.peer, "127.0.0.1", port, &made);
}

int remote_from(const char (&bytes)[22], size_t size) {
    rpma_mr_remote *made = nullptr;
    return rpma_mr_remote_from_descriptor(bytes, size, &made);
}

int register_with(Objects &o, size_t size, int usage) {
    rpma_mr_local *made = nullptr;
    return rpma_mr_reg(o.peer, o.c.memory.bytes.get(), size, usage, &made);
}

constexpr char NO_USAGE[22] = {1}; // a descriptor whose usage is 0

const Refusal REFUSALS[] = {
    {"rpma_write: flags == 0", RPMA_E_INVAL,
     [](Objects &o) { return rpma_write(o.conn, o.remote, 0, o.mr, 0, 8, 0, nullptr); }},
    {"rpma_write: len > UINT32_MAX", RPMA_E_INVAL,
     [](Objects &o) {
         return rpma_write(o.conn, o.remote, 0, o.mr, 0, HUGE, ALWAYS, nullptr);
     }},
    {"rpma_write: src == NULL", RPMA_E_INVAL,
     [](Objects &o) {
         return rpma_write(o.conn, o.remote, 0, nullptr, 0, 8, ALWAYS, nullptr);
     }},
    {"rpma_write: dst == NULL", RPMA_E_INVAL,
     [](Objects &o) { return rpma_write(o.conn, nullptr, 0, o.mr, 0, 8, ALWAYS, nullptr); }},
    {"rpma_read: flags == 0", RPMA_E_INVAL,
     [](Objects &o) { return rpma_read(o.conn, o.mr, 0, o.remote, 0, 8, 0, nullptr); }},
    {"rpma_read: len > UINT32_MAX", RPMA_E_INVAL,
     [](Objects &o) { return rpma_read(o.conn, o.mr, 0, o.remote, 0, HUGE, ALWAYS, nullptr); }},
    {"rpma_send: flags == 0", RPMA_E_INVAL,
     [](Objects &o) { return rpma_send(o.conn, o.mr, 0, 8, 0, nullptr); }},
    {"rpma_send: src == NULL with a length", RPMA_E_INVAL,
     [](Objects &o) { return rpma_send(o.conn, nullptr, 0, 8, ALWAYS, nullptr); }},
    {"rpma_recv: len > UINT32_MAX", RPMA_E_INVAL,
     [](Objects &o) { return rpma_recv(o.conn, o.mr, 0, HUGE, nullptr); }},
    {"rpma_recv: dst == NULL with a length", RPMA_E_INVAL,
     [](Objects &o) { return rpma_recv(o.conn, nullptr, 0, 8, nullptr); }},
    {"rpma_flush: flags == 0", RPMA_E_INVAL,
     [](Objects &o) {
         return rpma_flush(o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 0, nullptr);
     }},
    {"rpma_flush: unknown type", RPMA_E_INVAL,
     [](Objects &o) {
         return rpma_flush(o.conn, o.remote, 0, 8, unknown<rpma_flush_type>(), ALWAYS, nullptr);
     }},
    {"rpma_flush: len > UINT32_MAX", RPMA_E_INVAL,
     [](Objects &o) {
         return rpma_flush(o.conn, o.remote, 0, HUGE, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS,
                           nullptr);
     }},
    {"rpma_flush: persistent, not in the usage of the region", RPMA_E_NOSUPP,
     [](Objects &o) {
         return rpma_flush(o.conn, o.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS, nullptr);
     }},
    {"rpma_atomic_write: dst_offset % 8 != 0", RPMA_E_INVAL,
     [](Objects &o) {
         return rpma_atomic_write(o.conn, o.remote, 4, "12345678", ALWAYS, nullptr);
     }},
    {"rpma_post: unknown type", RPMA_E_INVAL,
     [](Objects &o) {
         return o.post(RPMA_WORK_WRITE,
                       [](rpma_work &w) { w.type = unknown<rpma_work_type>(); });
     }},
    {"rpma_post: no completion flag", RPMA_E_INVAL,
     [](Objects &o) { return o.post(RPMA_WORK_WRITE, [](rpma_work &w) { w.flags = 0; }); }},
    {"rpma_post: unknown flag", RPMA_E_INVAL,
     [](Objects &o) {
         return o.post(RPMA_WORK_WRITE, [](rpma_work &w) { w.flags |= 1 << 20; });
     }},
    {"rpma_post: inline read", RPMA_E_INVAL,
     [](Objects &o) {
         return o.post(RPMA_WORK_READ, [](rpma_work &w) { w.flags |= RPMA_F_INLINE; });
     }},
    {"rpma_post: solicited write", RPMA_E_INVAL,
     [](Objects &o) {
         return o.post(RPMA_WORK_WRITE, [](rpma_work &w) { w.flags |= RPMA_F_SOLICITED; });
     }},
    {"rpma_post: reserved0 != 0", RPMA_E_INVAL,
     [](Objects &o) { return o.post(RPMA_WORK_WRITE, [](rpma_work &w) { w.reserved0 = 1; }); }},
    {"rpma_post: reserved1 != 0", RPMA_E_INVAL,
     [](Objects &o) { return o.post(RPMA_WORK_WRITE, [](rpma_work &w) { w.reserved1 = 1; }); }},
    {"rpma_post: more SGEs than the connection has", RPMA_E_INVAL,
     [](Objects &o) {
         static rpma_sge two[2];
         two[0] = two[1] = {o.mr, 0, 8};
         return o.post(RPMA_WORK_WRITE, [](rpma_work &w) {
             w.local = {};
             w.sgl = two;
             w.nsge = 2;
         });
     }},
    {"rpma_post: sgl == NULL with nsge", RPMA_E_INVAL,
     [](Objects &o) { return o.post(RPMA_WORK_WRITE, [](rpma_work &w) { w.nsge = 1; }); }},
    {"rpma_post: local.mr == NULL with a length", RPMA_E_INVAL,
     [](Objects &o) {
         return o.post(RPMA_WORK_WRITE, [](rpma_work &w) { w.local.mr = nullptr; });
     }},
    {"rpma_post: local.len > UINT32_MAX", RPMA_E_INVAL,
     [](Objects &o) {
         return o.post(RPMA_WORK_WRITE, [](rpma_work &w) { w.local.len = HUGE; });
     }},
    {"rpma_post: write without a region", RPMA_E_INVAL,
     [](Objects &o) {
         return o.post(RPMA_WORK_WRITE, [](rpma_work &w) { w.remote = nullptr; });
     }},
    {"rpma_post: flush without a region", RPMA_E_INVAL,
     [](Objects &o) {
         return o.post(RPMA_WORK_FLUSH, [](rpma_work &w) { w.remote = nullptr; });
     }},
    {"rpma_post: flush of more than UINT32_MAX", RPMA_E_INVAL,
     [](Objects &o) {
         return o.post(RPMA_WORK_FLUSH, [](rpma_work &w) { w.flush_len = HUGE; });
     }},
    {"rpma_post: persistent flush, not in the usage", RPMA_E_NOSUPP,
     [](Objects &o) {
         return o.post(RPMA_WORK_FLUSH,
                       [](rpma_work &w) { w.flush_type = RPMA_FLUSH_TYPE_PERSISTENT; });
     }},
    {"rpma_post: unaligned atomic write", RPMA_E_INVAL,
     [](Objects &o) {
         return o.post(RPMA_WORK_ATOMIC_WRITE, [](rpma_work &w) { w.remote_offset = 4; });
     }},
    {"rpma_recv_many: reserved != 0", RPMA_E_INVAL,
     [](Objects &o) { return o.receive([](rpma_receive &r) { r.reserved = 1; }); }},
    {"rpma_recv_many: sgl == NULL with nsge", RPMA_E_INVAL,
     [](Objects &o) { return o.receive([](rpma_receive &r) { r.nsge = 1; }); }},
    {"rpma_recv_many: len > UINT32_MAX", RPMA_E_INVAL,
     [](Objects &o) { return o.receive([](rpma_receive &r) { r.local.len = HUGE; }); }},
    {"rpma_batch_new: max_ops == 0", RPMA_E_INVAL,
     [](Objects &o) {
         rpma_batch *made = nullptr;
         return rpma_batch_new(o.conn, 0, &made);
     }},
    {"rpma_batch_new: max_ops > max_qp_wr of the device", RPMA_E_INVAL,
     [](Objects &o) {
         rpma_batch *made = nullptr;
         return rpma_batch_new(o.conn, UINT32_MAX, &made);
     }},
    {"rpma_mr_reg: size == 0", RPMA_E_INVAL,
     [](Objects &o) { return register_with(o, 0, USAGE); }},
    {"rpma_mr_reg: usage == 0", RPMA_E_INVAL,
     [](Objects &o) { return register_with(o, 8, 0); }},
    {"rpma_mr_reg: unknown usage", RPMA_E_INVAL,
     [](Objects &o) { return register_with(o, 8, USAGE | 1 << 20); }},
    {"rpma_mr_advise: len > UINT32_MAX", RPMA_E_INVAL,
     [](Objects &o) { return rpma_mr_advise(o.mr, 0, HUGE, 0, 0); }},
    {"rpma_mr_remote_from_descriptor: 20 bytes", RPMA_E_INVAL,
     [](Objects &) { return remote_from(NO_USAGE, 20); }},
    {"rpma_mr_remote_from_descriptor: no usage", RPMA_E_INVAL,
     [](Objects &) { return remote_from(NO_USAGE, 21); }},
    {"rpma_peer_cfg_from_descriptor: 0 bytes", RPMA_E_INVAL,
     [](Objects &) {
         rpma_peer_cfg *made = nullptr;
         return rpma_peer_cfg_from_descriptor("", 0, &made);
     }},
    {"rpma_conn_private_data_unpack: other bytes", RPMA_E_INVAL,
     [](Objects &) { return unpack("something else", 14); }},
    {"rpma_ep_listen: port is empty", RPMA_E_INVAL,
     [](Objects &o) { return listen_at(o, ""); }},
    {"rpma_ep_listen: port 65536", RPMA_E_INVAL,
     [](Objects &o) { return listen_at(o, "65536"); }},
    {"rpma_cq_get_wc: 0 entries", RPMA_E_INVAL,
     [](Objects &o) {
         ibv_wc wc;
         return rpma_cq_get_wc(o.c.conn.get_cq(), 0, &wc, nullptr);
     }},
    {"rpma_cq_get_wc: no completion", RPMA_E_NO_COMPLETION,
     [](Objects &o) {
         ibv_wc wc;
         return rpma_cq_get_wc(o.c.conn.get_cq(), 1, &wc, nullptr);
     }},
    {"rpma_conn_wait: no shared channel", RPMA_E_NOT_SHARED_CHNL,
     [](Objects &o) {
         rpma_cq *cq = nullptr;
         return rpma_conn_wait(o.conn, 0, &cq, nullptr);
     }},
    {"rpma_conn_get_compl_fd: no shared channel", RPMA_E_NOT_SHARED_CHNL,
     [](Objects &o) {
         int fd = -1;
         return rpma_conn_get_compl_fd(o.conn, &fd);
     }},
    {"rpma_conn_next_event: no event", RPMA_E_NO_EVENT,
     [](Objects &o) {
         rpma_conn_event event;
         return rpma_conn_next_event(o.conn, &event);
     }},
    {"rpma_cq_set_moderation: count > 65535", RPMA_E_INVAL,
     [](Objects &o) { return rpma_cq_set_moderation(o.c.conn.get_cq(), 65536, 1); }},
    {"rpma_cq_new: comp_vector of the device", RPMA_E_INVAL,
     [](Objects &o) {
         rpma_cq *made = nullptr;
         return rpma_cq_new(o.peer, rpma::cq_cfg().set_comp_vector(INT_MAX).get(), &made);
     }},
    {"rpma_conn_req_new: max_sge of the device", RPMA_E_INVAL,
     [](Objects &o) {
         rpma_conn_req *made = nullptr;
         o.cfg.set_max_sge(129);
         return rpma_conn_req_new(o.peer, address_of(o.c.conn.get_peer_addr()).c_str(), "1",
                                  o.cfg, &made);
     }},
    {"rpma_conn_cfg_set_timeout: negative", RPMA_E_INVAL,
     [](Objects &o) { return rpma_conn_cfg_set_timeout(o.cfg, -1); }},
    {"rpma_conn_cfg_set_ack_timeout: negative", RPMA_E_INVAL,
     [](Objects &o) { return rpma_conn_cfg_set_ack_timeout(o.cfg, -1); }},
    {"rpma_conn_cfg_set_retry_count: 8", RPMA_E_INVAL,
     [](Objects &o) { return rpma_conn_cfg_set_retry_count(o.cfg, 8); }},
    {"rpma_conn_cfg_set_rnr_retry_count: 8", RPMA_E_INVAL,
     [](Objects &o) { return rpma_conn_cfg_set_rnr_retry_count(o.cfg, 8); }},
    {"rpma_conn_cfg_set_rnr_timer: 656 ms", RPMA_E_INVAL,
     [](Objects &o) { return rpma_conn_cfg_set_rnr_timer(o.cfg, 656); }},
    {"rpma_conn_cfg_set_max_sge: 0", RPMA_E_INVAL,
     [](Objects &o) { return rpma_conn_cfg_set_max_sge(o.cfg, 0); }},
    {"rpma_conn_cfg_set_source_port: 65536", RPMA_E_INVAL,
     [](Objects &o) { return rpma_conn_cfg_set_source_port(o.cfg, 65536); }},
    {"rpma_conn_cfg_set_source_addr: a name", RPMA_E_INVAL,
     [](Objects &o) { return rpma_conn_cfg_set_source_addr(o.cfg, "localhost"); }},
    {"rpma_conn_cfg_set_flush_mode: unknown", RPMA_E_INVAL,
     [](Objects &o) {
         return rpma_conn_cfg_set_flush_mode(o.cfg, unknown<rpma_flush_mode>());
     }},
};

rpma_conn_req *start_request(Objects &o) {
    rpma_conn_req *made = nullptr;
    rpma::check(static_cast<rpma::status>(
        rpma_conn_req_start(o.peer, o.session.options.address.c_str(),
                            o.session.options.port.c_str(), o.cfg, &made)));
    return made;
}

// Calls a function with a request that is started and not resolved, and then deletes it.
template <class Call> int with_started(Objects &o, Call call) {
    rpma_conn_req *request = start_request(o);
    const int code = call(&request);
    if (request != nullptr)
        (void)rpma_conn_req_delete(&request);
    return code;
}

// The same with a request that is resolved and set up.
template <class Call> int with_prepared(Objects &o, Call call) {
    return with_started(o, [&](rpma_conn_req **request) {
        int code = RPMA_E_AGAIN;
        for (const Clock clock; code == RPMA_E_AGAIN && clock.wait(5);)
            code = rpma_conn_req_resolve(*request);
        rpma::check(static_cast<rpma::status>(code));
        rpma::check(static_cast<rpma::status>(rpma_conn_req_setup(*request, o.cfg)));
        return call(request);
    });
}

// Calls a function with an empty batch for one operation.
template <class Call> int with_batch(Objects &o, Call call) {
    rpma::batch batch(o.c.conn, 1);
    return call(batch.get());
}

rpma_work write_of(const Objects &o) {
    rpma_work work = NOTHING;
    work.type = RPMA_WORK_WRITE;
    work.flags = ALWAYS;
    work.remote = o.remote;
    work.local = {o.mr, 0, 8};
    return work;
}

int persistent_flush(Objects &o) {
    // No operation reaches the device, so the region may be memory of this side.
    Memory memory(o.peer);
    rpma::mr_local own(o.peer, memory.bytes.get(), MEMORY_SIZE,
                       USAGE | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
    rpma::mr_remote region(own.get_descriptor());
    return rpma_flush(o.conn, region, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS, nullptr);
}

const rpma_conn_private_data EMPTY = {nullptr, 0};

// What the state of an object forbids.
const Refusal STATES[] = {
    {"rpma_conn_req_setup: not resolved", RPMA_E_INVAL,
     [](Objects &o) {
         return with_started(o, [&](auto r) { return rpma_conn_req_setup(*r, o.cfg); });
     }},
    {"rpma_conn_req_recv: not set up", RPMA_E_INVAL,
     [](Objects &o) {
         return with_started(
             o, [&](auto r) { return rpma_conn_req_recv(*r, o.mr, 0, 8, nullptr); });
     }},
    {"rpma_conn_req_get_local_addr: not resolved", RPMA_E_INVAL,
     [](Objects &o) {
         sockaddr_storage address;
         return with_started(
             o, [&](auto r) { return rpma_conn_req_get_local_addr(*r, &address); });
     }},
    {"rpma_conn_req_connect: not set up", RPMA_E_INVAL,
     [](Objects &o) {
         rpma_conn *made = nullptr;
         return with_started(o,
                             [&](auto r) { return rpma_conn_req_connect(r, nullptr, &made); });
     }},
    {"rpma_conn_req_reject: an outgoing request", RPMA_E_INVAL,
     [](Objects &o) {
         return with_started(o, [](auto r) { return rpma_conn_req_reject(r, nullptr); });
     }},
    {"rpma_conn_req_setup: set up already", RPMA_E_INVAL,
     [](Objects &o) {
         return with_prepared(o, [&](auto r) { return rpma_conn_req_setup(*r, o.cfg); });
     }},
    {"rpma_conn_req_connect: empty private data", RPMA_E_INVAL,
     [](Objects &o) {
         rpma_conn *made = nullptr;
         return with_prepared(o,
                              [&](auto r) { return rpma_conn_req_connect(r, &EMPTY, &made); });
     }},
    {"rpma_conn_req_recv_many: more SGEs than the connection has", RPMA_E_INVAL,
     [](Objects &o) {
         rpma_sge two[2] = {{o.mr, 0, 8}, {o.mr, 8, 8}};
         rpma_receive receive{};
         receive.sgl = two;
         receive.nsge = 2;
         return with_prepared(
             o, [&](auto r) { return rpma_conn_req_recv_many(*r, &receive, 1, nullptr); });
     }},
    {"rpma_batch_add: the batch is full", RPMA_E_INVAL,
     [](Objects &o) {
         const rpma_work work = write_of(o);
         return with_batch(o, [&](rpma_batch *batch) {
             (void)rpma_batch_add(batch, &work);
             return rpma_batch_add(batch, &work);
         });
     }},
    {"rpma_batch_set: index beyond the size", RPMA_E_INVAL,
     [](Objects &o) {
         const rpma_work work = write_of(o);
         return with_batch(o,
                           [&](rpma_batch *batch) { return rpma_batch_set(batch, 0, &work); });
     }},
    {"rpma_cq_delete: the CQ of a connection", RPMA_E_INVAL,
     [](Objects &o) {
         rpma_cq *cq = o.c.conn.get_cq().get();
         return rpma_cq_delete(&cq);
     }},
    {"rpma_cq_take_event: no event", RPMA_E_NO_COMPLETION,
     [](Objects &o) {
         rpma::cq own(o.peer);
         const int fd = own.get_fd();
         make_nonblocking(fd);
         return rpma_cq_take_event(own.get());
     }},
    {"rpma_flush: persistent, direct write is not enabled", RPMA_E_NOSUPP, persistent_flush},
};

// These need a shared receive queue, which some devices do not have.
rpma_receive one_receive(const Objects &o) {
    rpma_receive receive{};
    receive.local = {o.mr, 0, 8};
    return receive;
}

int receive_shared(Objects &o, auto change) {
    rpma_receive receive = one_receive(o);
    change(receive);
    return rpma_srq_recv_many(o.c.srq.get(), &receive, 1, nullptr);
}

const Refusal OF_SRQ[] = {
    {"rpma_recv: the connection has an SRQ", RPMA_E_INVAL,
     [](Objects &o) { return rpma_recv(o.conn, o.mr, 0, 8, nullptr); }},
    {"rpma_recv_many: the connection has an SRQ", RPMA_E_INVAL,
     [](Objects &o) {
         const rpma_receive receive = one_receive(o);
         return rpma_recv_many(o.conn, &receive, 1, nullptr);
     }},
    {"rpma_srq_recv: len > UINT32_MAX", RPMA_E_INVAL,
     [](Objects &o) { return rpma_srq_recv(o.c.srq.get(), o.mr, 0, HUGE, nullptr); }},
    {"rpma_srq_recv: dst == NULL with a length", RPMA_E_INVAL,
     [](Objects &o) { return rpma_srq_recv(o.c.srq.get(), nullptr, 0, 8, nullptr); }},
    {"rpma_srq_recv_many: reserved != 0", RPMA_E_INVAL,
     [](Objects &o) { return receive_shared(o, [](rpma_receive &r) { r.reserved = 1; }); }},
    {"rpma_srq_recv_many: sgl == NULL with nsge", RPMA_E_INVAL,
     [](Objects &o) { return receive_shared(o, [](rpma_receive &r) { r.nsge = 1; }); }},
    {"rpma_srq_recv_many: more SGEs than the queue has", RPMA_E_INVAL,
     [](Objects &o) {
         static rpma_sge many[129];
         return receive_shared(o, [](rpma_receive &r) {
             r.local = {};
             r.sgl = many;
             r.nsge = 129;
         });
     }},
    {"rpma_srq_recv_many: the queue is full", RPMA_E_AGAIN,
     [](Objects &o) {
         rpma::srq own(o.peer, rpma::srq_cfg().set_rq_size(4));
         const rpma_receive receive = one_receive(o);
         int code = 0;
         for (unsigned i = 0; i < 4096 && code == 0; i++)
             code = rpma_srq_recv_many(own.get(), &receive, 1, nullptr);
         return code;
     }},
    {"rpma_srq_set_limit: limit > size", RPMA_E_INVAL,
     [](Objects &o) { return rpma_srq_set_limit(o.c.srq.get(), UINT32_MAX); }},
    {"rpma_srq_new: max_sge of the device", RPMA_E_INVAL,
     [](Objects &o) {
         rpma_srq *made = nullptr;
         return rpma_srq_new(o.peer, rpma::srq_cfg().set_max_sge(129).get(), &made);
     }},
    {"rpma_conn_req_new: shared channel, and an SRQ with a receive CQ", RPMA_E_INVAL,
     [](Objects &o) {
         rpma::srq own(o.peer, rpma::srq_cfg().set_rcq_size(4));
         rpma::conn_cfg cfg;
         cfg.set_srq(own).set_compl_channel(true);
         rpma_conn_req *made = nullptr;
         return rpma_conn_req_new(o.peer, o.session.options.address.c_str(),
                                  o.session.options.port.c_str(), cfg, &made);
     }},
};

// These need a connection with a shared completion channel.
const Refusal OF_CHANNEL[] = {
    {"rpma_cq_wait: the CQ belongs to a shared channel", RPMA_E_SHARED_CHANNEL,
     [](Objects &o) { return rpma_cq_wait(o.c.conn.get_cq().get()); }},
    {"rpma_cq_arm: the CQ belongs to a shared channel", RPMA_E_SHARED_CHANNEL,
     [](Objects &o) { return rpma_cq_arm(o.c.conn.get_cq().get(), false); }},
    {"rpma_cq_take_event: the CQ belongs to a shared channel", RPMA_E_SHARED_CHANNEL,
     [](Objects &o) { return rpma_cq_take_event(o.c.conn.get_cq().get()); }},
    {"rpma_conn_wait: no completion", RPMA_E_NO_COMPLETION,
     [](Objects &o) {
         const int fd = o.c.conn.get_compl_fd();
         make_nonblocking(fd);
         rpma_cq *cq = nullptr;
         return rpma_conn_wait(o.conn, 0, &cq, nullptr);
     }},
};

std::string code_text(int code) {
    return code == 0 ? "ok" : rpma_err_2str(code);
}

void ask_refusals(Results &found, Objects objects, std::span<const Refusal> table) {
    for (const Refusal &refusal : table) {
        const int code = refusal.call(objects);
        found.emplace_back(refusal.name, code == refusal.expected
                                             ? "as documented"
                                             : fmt::format("{}, not {}", code_text(code),
                                                           code_text(refusal.expected)));
    }
}

// A refusal must not post anything: the last completion is that of a write that succeeds.
Results refusals(Session &session) {
    Results found;
    const auto made = session.open();
    for (const std::span<const Refusal> table :
         {std::span<const Refusal>(NULLS), std::span<const Refusal>(REFUSALS),
          std::span<const Refusal>(STATES)})
        ask_refusals(found, {session, *made}, table);
    for (const auto &[setting, table] :
         {std::pair("srq", std::span<const Refusal>(OF_SRQ)), {"shared", OF_CHANNEL}})
        try {
            const auto other = session.open({{setting, true}});
            ask_refusals(found, {session, *other}, table);
            session.close(*other);
        } catch (const rpma::error &) { // the device has no SRQ
            if (setting != std::string("srq"))
                throw;
        }
    rpma::check(
        made->conn.write(made->remote, 0, made->memory.mr, 0, 8, ALWAYS, made->memory.at(8)));
    const auto last = made->take(2, 0.3);
    found.emplace_back("nothing is posted",
                       last.size() == 1 && last[0].status == IBV_WC_SUCCESS &&
                               last[0].wr_id == reinterpret_cast<uintptr_t>(made->memory.at(8))
                           ? "as documented"
                           : fmt::format("{} completions", last.size()));
    session.close(*made);
    return found;
}

size_t descriptor_count() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
}

Results leaks(Session &session) {
    Results found;
    session.close(*session.open());
    const auto of_server = [&] { return session.ask({{"do", "descriptors"}}).at("count"); };
    const size_t before = descriptor_count();
    const Json before_server = of_server();
    for (unsigned i = 0; i < 8; i++)
        session.close(*session.open({{"rcq", 4}}, {{"receives", 2}}));
    for (unsigned i = 0; i < 4; i++) {
        Connection refused(session.peer, {});
        const std::string data = session.start_connection({{"how", i % 2 ? "reject" : "drop"}});
        rpma::conn_req request(session.peer, session.options.address, session.options.port,
                               refused.cfg);
        refused.conn = std::move(request).connect(as_data(data));
        (void)refused.event();
        (void)session.finish();
    }
    const auto result = [](bool is_equal) { return is_equal ? "none" : "some"; };
    found.emplace_back("descriptors of this process", result(descriptor_count() == before));
    found.emplace_back("descriptors of the server", result(of_server() == before_server));
    return found;
}

// Each signaled operation has one completion, with its context; the others none. Their order is
// a question: siw completes a write before the read that was posted before it.
Results completions(Session &session) {
    constexpr unsigned ROUNDS = 100, DEPTH = 8;
    const auto made = session.open({{"sq", DEPTH}});
    Connection &c = *made;
    unsigned lost = 0, wrong = 0;
    uintptr_t next = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        std::set<uintptr_t> expected;
        for (unsigned i = 0; i < DEPTH; i++, next++) {
            const bool is_signaled = i + 1 == DEPTH || (round * DEPTH + i) % 3 == 0;
            const auto *context = reinterpret_cast<const void *>(next);
            const int flags = is_signaled ? ALWAYS : RPMA_F_COMPLETION_ON_ERROR;
            rpma::check(i % 2 ? c.conn.write(c.remote, 0, c.memory.mr, 0, 8, flags, context)
                              : c.conn.read(c.memory.mr, 64, c.remote, 0, 8, flags, context));
            if (is_signaled)
                expected.insert(next);
        }
        for (const ibv_wc &wc : c.take(expected.size()))
            wrong += wc.status == IBV_WC_SUCCESS && expected.erase(wc.wr_id) == 1 ? 0 : 1;
        lost += static_cast<unsigned>(expected.size());
    }
    wrong += static_cast<unsigned>(c.take(1, 0.02).size());
    session.close(c);
    const auto result = [](unsigned count) { return count == 0 ? "none" : "some"; };
    return {{"lost", result(lost)}, {"wrong", result(wrong)}};
}

} // namespace

const std::vector<Question> &promises() {
    static const std::vector<Question> ALL = {
        {"refusal", refusals, true}, {"leak", leaks, true}, {"completions", completions, true}};
    return ALL;
}
