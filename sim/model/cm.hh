// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cm.hh -- the connection manager of the simulated fabric.
//
// It models the kernel: CM IDs and their states, ports, and the messages between two CM IDs.
// States and events are those of Linux, drivers/infiniband/core: cma.c, cm.c, iwcm.c and
// ucma.c.

#pragma once

#include "../protocol/protocol_cm.hh"
#include "objects.hh"

#include <rdma/rdma_cma.h>

#include <functional>
#include <map>
#include <set>

namespace sim {

class Fabric;
struct Caller;
struct Reply;

struct CmId : Object {
    static constexpr Kind KIND = CM_ID;
    sim_cm_state state = SIM_CM_IDLE;
    Channel *channel = nullptr;
    bool reports_events = true; // false until a connect request is accepted
    bool is_disconnected = false;
    unsigned port_space = 0, qp_type = 0;
    Device *device = nullptr;
    CmAddress source{}, destination{};
    CmAddress bound_source{}; // with bound_device: the values before the resolution
    Device *bound_device = nullptr;
    bool reuses_address = false, is_of_one_family = false, family_was_set = false;
    bool is_passive = false, ack_timeout_was_set = false;
    uint8_t tos = 0, ack_timeout = 0;
    int backlog = 0; // how many more requests can wait
    uint32_t events_taken = 0;
    uint32_t peer = 0; // handle of the other side's CM ID
    uint32_t psn = 0, peer_psn = 0;
    CmParam local{}, remote{};
    ibv_ece local_ece{}, remote_ece{};
    uint64_t timer = 0, deadline = 0; // of TIMEWAIT, and of the response of a live program
    std::vector<uint32_t> multicasts; // handles of the groups that it has joined
    CmId() : Object(KIND) {}
    bool connects() const { return state >= SIM_CM_REQ_SENT; }
    // cma.c: after rdma_bind_addr(), or once addr_handler() has resolved the address.
    bool is_attached_to(const Device &at) const {
        return device == &at && (state != SIM_CM_RESOLVING || bound_device);
    }
};

// A multicast group that an ID has joined.
struct CmMulticast : Object {
    static constexpr Kind KIND = CM_MULTICAST;
    CmId *id = nullptr;
    uint32_t events_taken = 0;
    CmMulticast() : Object(KIND) {}
};

class Cm {
  public:
    explicit Cm(Fabric &fabric) : fabric_(fabric) {}
    // A request with a number from OP_CM_FIRST to OP_CM_LAST; returns an error number.
    int call(Caller &caller, const void *request, size_t length, Reply &reply);
    // Called for each event that a process took from an event channel.
    void event_taken(const Event &event);
    // Called by the rest of the fabric.
    void destroy_ids(const std::function<bool(const CmId &)> &which);
    void qp_failed(Qp &qp); // iWARP: the connection is closed
    void qp_destroyed(Qp &qp);
    void links_changed();
    void device_removed(Device &device);
    void address_changed(Device &device);

    // A message from one CM ID to another, or the resolution of an address. While the devices
    // cannot reach each other, it waits until it expires.
    struct Message {
        enum Kind { ARP, REQ, REP, RTU, REJ, DREQ, DREP } kind;
        uint32_t from, to; // handles; a REQ has no receiver yet
        Device *source, *destination;
        int reason = 0; // only of a REJ
        CmParam param{};
        uint64_t timer = 0; // of its expiry
    };
    static CmAddress address_of(const Device &device, int family);

  private:
    struct Requests; // of one process
    // 4.096 us * 2^20 (cma.c, CMA_CM_RESPONSE_TIMEOUT), after which the kernel repeats a
    // message. Over a link that is cut, the fabric does not repeat it.
    static constexpr uint64_t TIMEOUT = uint64_t{4096} << 20;
    static constexpr uint64_t TIMEWAIT = uint64_t{4096} << 18;
    static constexpr int REJ_CONSUMER_DEFINED = 28; // enum ib_cm_rej_reason
    // cm_address.cc
    int bind(CmId &id, const CmAddress &address, bool is_privileged);
    int choose_source(CmId &id);
    int check_port(const CmId &id, bool reuses_address) const;
    void take_port(CmId &id);
    int use_port(CmId &id, bool is_privileged);
    int use_any_port(CmId &id);
    void release_port(CmId &id);
    Device *device_of(const CmAddress &address) const;
    CmId *find_listener(const CmId &from, const Device &at) const;
    int connect_now(const CmId &id) const;
    CmRoute route(const CmId &id) const;
    int init_qp_attr(const CmId &id, ibv_qp_state state, ibv_qp_attr &attr, int &mask) const;
    void init_rtr_attr(const CmId &id, ibv_qp_attr &attr, int &mask) const;
    void init_rts_attr(const CmId &id, ibv_qp_attr &attr, int &mask) const;
    ibv_ah_attr path_attr(const CmId &id) const;
    static uint8_t responder_resources(const CmId &id);
    static uint8_t initiator_depth(const CmId &id);
    // cm_messages.cc
    void send(const Message &message, uint64_t timeout);
    void transmit(const Message &message, uint64_t timeout); // over the link
    void hold(const Message &message, uint64_t timeout);     // until a link changes
    void repeat(const Message &message);                     // which was lost
    void send(const CmId &from, Message::Kind kind, const CmParam &param = {}, int reason = 0);
    void arrive(const Message &message);
    void await_response(CmId &from, const Message &message);
    void deliver(const Message &message, CmId &to);
    void reply_for_missing_id(const Message &message);
    void expire(const Message &message);
    void expire_request(const Message &response);
    void resolve(CmId &id, uint64_t timeout);
    void on_resolved(CmId &id);
    void on_req(CmId &from, Device &at);
    void refuse(CmId &from, Device &at, int reason);
    void on_rep(CmId &id, const CmParam &param);
    void establish_iwarp(CmId &id);
    void on_rej(CmId &id, int reason, const CmParam &param);
    void on_dreq(CmId &id);
    void on_drep(CmId &id, int status);
    void establish(CmId &id);
    void close_iwarp(CmId &id, Qp *qp);
    void enter_timewait(CmId &id);
    int disconnect(CmId &id);
    void notify_peer(CmId &id);
    void report_disconnected(CmId &id, int status);
    struct Report {
        rdma_cm_event_type type;
        int status = 0;
        const CmParam *param = nullptr;
        sim_message message = SIM_REPLY; // contains the parameters
        const CmId *about = nullptr;     // NULL: the ID itself; for a request, the new ID
    };
    void report(CmId &id, const Report &report);
    void push(const CmId &id, Object &owner, const CmEvent &event);
    // cm_multicast.cc
    int join(CmId &id, const CmJoin &request, CmJoin::Reply &reply);
    ibv_ah_attr group_attr(const CmId &id, const CmAddress &address);
    void leave(CmMulticast &multicast);
    // cm.cc
    CmId *id_of(uint32_t handle) const;
    CmId *id_of(const Qp &qp) const;
    Qp *qp_of(const CmId &id) const;
    static void set_channel(CmId &id, Channel &channel);
    void destroy(CmId &id);

    Fabric &fabric_;
    std::map<uint32_t, CmId *> ids_; // by handle
    struct Port {
        unsigned host, port_space;
        uint16_t number;
        auto operator<=>(const Port &) const = default; // NOLINT(modernize-use-nullptr)
    };
    std::multimap<Port, CmId *> ports_;
    std::map<CmId *, std::multimap<Port, CmId *>::iterator> port_of_;
    uint16_t last_port_ = 0;
    std::set<std::pair<Device *, Device *>> neighbours_; // pairs with resolved addresses
    std::map<uint64_t, Message> waiting_;                // by number
    uint64_t next_message_ = 1;
    std::map<std::pair<uint64_t, uint64_t>, uint16_t> lids_; // of InfiniBand's multicast groups
    std::map<std::pair<Device *, Device *>, uint64_t> arrivals_; // times of the last messages
};

} // namespace sim
