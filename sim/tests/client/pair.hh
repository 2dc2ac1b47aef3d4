// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// pair.hh -- two hosts in the process of a test, each with a queue pair that is connected to
// the other one.

#pragma once

#include "../../direct/direct.hh"
#include "connect_qp.hh"

#include <csetjmp>
#include <cstdarg>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <poll.h>

extern "C" {
#include <cmocka.h>
}

namespace sim {

constexpr uint64_t SECOND = 1'000'000'000;
constexpr size_t BYTES = 4096;
constexpr int ALL_ACCESS =
    IBV_ACCESS_LOCAL_WRITE |
    (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

// Counts the bytes that devices made persistent.
struct Recorded : Persistence {
    uint64_t persisted = 0;
    std::map<uint32_t, uint64_t> regions; // lengths by key
    void registered(int, const Region &region) override {
        assert_int_not_equal(region.key, 0);
        assert_true(regions.emplace(region.key, region.length).second);
    }
    void deregistered(int, const Region &region) override {
        assert_int_equal(regions.erase(region.key), 1);
    }
    void written(int, uint64_t, size_t, uint32_t writer) override {
        assert_int_not_equal(writer, 0);
    }
    void persist(int, uint64_t, size_t length, uint32_t) override { persisted += length; }
    bool is_persistent(int, uint64_t, size_t) override { return true; }
};

inline uint64_t address_of(const void *memory) {
    return reinterpret_cast<uint64_t>(memory);
}

inline Options options_of(const char *device, Scheduler *scheduler = nullptr) {
    Options options;
    options.scheduler = scheduler;
    options.profile = sim_find_profile(device);
    assert_non_null(options.profile);
    return options;
}

struct Side {
    Direct &direct;
    unsigned host;
    ibv_context *context;
    ibv_pd *pd;
    ibv_comp_channel *channel;
    ibv_cq *cq;
    ibv_srq *srq = nullptr;
    ibv_qp *qp;
    ibv_mr *mr;
    ibv_gid gid;
    alignas(BYTES) char memory[BYTES];

    Side(Direct &on, unsigned number, bool has_srq, uint64_t send_ops, int entries,
         ibv_qp_type type = IBV_QPT_RC)
        : direct(on), host(number) {
        direct.use_host(host);
        ibv_device **const list = ibv_get_device_list(nullptr);
        assert_non_null(list[0]);
        context = ibv_open_device(list[0]);
        ibv_free_device_list(list);
        assert_int_equal(ibv_query_gid(context, 1, 0, &gid), 0);
        pd = ibv_alloc_pd(context);
        channel = ibv_create_comp_channel(context);
        fcntl(channel->fd, F_SETFL, O_NONBLOCK);
        cq = ibv_create_cq(context, entries, this, channel, 0);
        memset(memory, static_cast<int>(host), sizeof(memory));
        mr = ibv_reg_mr(pd, memory, sizeof(memory), ALL_ACCESS);
        if (has_srq) {
            ibv_srq_init_attr attr = {};
            attr.attr = {16, 1, 0};
            srq = ibv_create_srq(pd, &attr);
            assert_non_null(srq);
        }
        ibv_qp_init_attr_ex attr = {};
        attr.send_cq = attr.recv_cq = cq;
        attr.srq = srq;
        attr.cap = {8, 8, 2, 1, 64};
        attr.qp_type = type;
        attr.comp_mask = IBV_QP_INIT_ATTR_PD | (send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0);
        attr.pd = pd;
        attr.send_ops_flags = send_ops;
        qp = ibv_create_qp_ex(context, &attr);
        assert_non_null(mr);
        assert_non_null(qp);
    }
    ~Side() {
        direct.use_host(host);
        assert_int_equal(ibv_destroy_qp(qp), 0);
        if (srq)
            assert_int_equal(ibv_destroy_srq(srq), 0);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        assert_int_equal(ibv_destroy_cq(cq), 0);
        assert_int_equal(ibv_destroy_comp_channel(channel), 0);
        assert_int_equal(ibv_dealloc_pd(pd), 0);
        assert_int_equal(ibv_close_device(context), 0);
    }
    Side(const Side &) = delete;
    Side &operator=(const Side &) = delete;

    int modify(ibv_qp_state state, int mask) {
        ibv_qp_attr attr = {};
        direct.use_host(host);
        attr.qp_state = state;
        attr.port_num = 1;
        return ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
    }
    ibv_wc poll() const {
        ibv_wc wc = {};
        assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
        return wc;
    }
    bool is_empty() const {
        ibv_wc wc;
        return ibv_poll_cq(cq, 1, &wc) == 0;
    }
    ibv_qp_state state() const {
        ibv_qp_attr attr;
        ibv_qp_init_attr init;
        direct.use_host(host);
        assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
        return attr.qp_state;
    }
    ibv_async_event event() const {
        assert_true(has_event());
        ibv_async_event event;
        direct.use_host(host);
        assert_int_equal(ibv_get_async_event(context, &event), 0);
        ibv_ack_async_event(&event);
        return event;
    }
    bool has_event() const {
        pollfd ready = {context->async_fd, POLLIN, 0};
        return ::poll(&ready, 1, 0) == 1;
    }
};

struct Setup {
    const char *device = "rxe";
    bool has_srq = false;
    uint64_t send_ops = 0;
    int entries = 32;
    uint8_t retry_cnt = 1, rnr_retry = 7, max_dest_rd_atomic = 1, max_rd_atomic = 1;
    uint8_t timeout = 14;            // 67.1 ms
    ibv_mtu path_mtu = IBV_MTU_1024; // of side a; that of b is 1024
    Persistence *persistence = nullptr;
    ibv_qp_type type = IBV_QPT_RC;
    Scheduler *scheduler = nullptr;
    std::function<void(Options &)> change_options = [](Options &) {};
};

inline Options options_of(const Setup &setup) {
    Options options = options_of(setup.device, setup.scheduler);
    setup.change_options(options);
    return options;
}

// Two hosts, each with a QP that is connected to the other one.
struct Pair {
    Direct direct;
    Side a, b;

    explicit Pair(const Setup &setup = {})
        : direct(options_of(setup), setup.persistence),
          a(direct, 1, setup.has_srq, setup.send_ops, setup.entries, setup.type),
          b(direct, 2, setup.has_srq, setup.send_ops, setup.entries, setup.type) {
        connect(a, b, setup);
        Setup of_b = setup;
        of_b.path_mtu = IBV_MTU_1024;
        connect(b, a, of_b);
        direct.use_host(1);
    }
    static void connect(Side &side, const Side &peer, const Setup &setup) {
        ibv_qp_attr attr = {};
        attr.qp_access_flags = ALL_ACCESS;
        attr.max_dest_rd_atomic = setup.max_dest_rd_atomic;
        attr.max_rd_atomic = setup.max_rd_atomic;
        attr.path_mtu = setup.path_mtu;
        attr.min_rnr_timer = 14; // 1.28 ms
        attr.timeout = setup.timeout;
        attr.retry_cnt = setup.retry_cnt;
        attr.rnr_retry = setup.rnr_retry;
        side.direct.use_host(side.host);
        // Only the connection manager connects queue pairs of iWARP.
        if (side.context->device->transport_type == IBV_TRANSPORT_IWARP)
            return (void)side.modify(IBV_QPS_INIT, 0);
        assert_int_equal(connect_qp(side.qp, attr, peer.gid, peer.qp->qp_num), 0);
    }
    ibv_sge sge(size_t length, size_t offset = 0) const {
        return {address_of(a.memory) + offset, static_cast<uint32_t>(length), a.mr->lkey};
    }
    // Posts a request of side a for the first `length` bytes of both memories.
    int post(ibv_wr_opcode opcode, size_t length,
             const std::function<void(ibv_send_wr &, ibv_sge &)> &change = {},
             ibv_send_wr **bad_wr = nullptr) {
        ibv_sge one = sge(length);
        ibv_send_wr wr = {}, *bad = nullptr;
        wr.wr_id = 11;
        wr.sg_list = &one;
        wr.num_sge = 1;
        wr.opcode = opcode;
        wr.send_flags = IBV_SEND_SIGNALED;
        if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
            wr.wr.atomic.remote_addr = address_of(b.memory);
            wr.wr.atomic.rkey = b.mr->rkey;
        } else {
            wr.wr.rdma.remote_addr = address_of(b.memory);
            wr.wr.rdma.rkey = b.mr->rkey;
        }
        if (change)
            change(wr, one);
        direct.use_host(1);
        return ibv_post_send(a.qp, &wr, bad_wr ? bad_wr : &bad);
    }
    void receive(size_t length, uint32_t lkey = 0) {
        ibv_sge one = {address_of(b.memory), static_cast<uint32_t>(length),
                       lkey ? lkey : b.mr->lkey};
        ibv_recv_wr wr = {}, *bad;
        wr.wr_id = 22;
        wr.sg_list = &one;
        wr.num_sge = 1;
        direct.use_host(2);
        assert_int_equal(
            b.srq ? ibv_post_srq_recv(b.srq, &wr, &bad) : ibv_post_recv(b.qp, &wr, &bad), 0);
        direct.use_host(1);
    }
    void expect(ibv_wc_status status) const {
        const ibv_wc wc = a.poll();
        assert_int_equal(wc.status, status);
        assert_int_equal(wc.wr_id, 11);
    }
};

using Flush = void(ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);

// The flush builder. In headers before rdma-core 45, ibv_qp_ex ends before it.
inline Flush *flush_of(ibv_qp_ex *qp) {
#ifdef RDMA_SIM_HEADERS_HAVE_FLUSH
    return qp->wr_flush;
#else
    return *reinterpret_cast<Flush **>(qp + 1);
#endif
}

inline uint64_t counter_of(const Side &side, const char *name,
                           const char *group = "hw_counters") {
    ReadCounter request = {};
    ReadCounter::Reply reply = {};
    request.host = side.host;
    strncpy(request.group, group, sizeof(request.group) - 1);
    strncpy(request.name, name, sizeof(request.name) - 1);
    assert_int_equal(call(request, reply), 0);
    return reply.value;
}

inline void activate_datagrams(Side &side) {
    assert_int_equal(side.modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
                     0);
    assert_int_equal(side.modify(IBV_QPS_RTR, 0), 0);
    assert_int_equal(side.modify(IBV_QPS_RTS, IBV_QP_SQ_PSN), 0);
}

inline void receive_datagram(Side &side, uint32_t length = 64) {
    ibv_sge sge = {address_of(side.memory), length, side.mr->lkey};
    ibv_recv_wr wr = {}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    side.direct.use_host(side.host);
    assert_int_equal(side.srq ? ibv_post_srq_recv(side.srq, &wr, &bad)
                              : ibv_post_recv(side.qp, &wr, &bad),
                     0);
}

inline void send_datagram(Side &side, ibv_ah_attr attr, uint32_t number, uint32_t length = 8,
                          uint32_t qkey = 0) {
    side.direct.use_host(side.host);
    ibv_ah *const ah = ibv_create_ah(side.pd, &attr);
    assert_non_null(ah);
    ibv_sge sge = {address_of(side.memory) + 64, length, side.mr->lkey};
    ibv_send_wr wr = {}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = number;
    wr.wr.ud.remote_qkey = qkey;
    assert_int_equal(ibv_post_send(side.qp, &wr, &bad), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

inline void send_datagram(Side &side, const ibv_gid &to, uint32_t number, uint32_t length = 8,
                          uint32_t qkey = 0, uint8_t sgid_index = 0) {
    ibv_ah_attr attr = {};
    attr.port_num = 1;
    attr.is_global = 1;
    attr.grh.dgid = to;
    attr.grh.sgid_index = sgid_index;
    send_datagram(side, attr, number, length, qkey);
}

} // namespace sim
