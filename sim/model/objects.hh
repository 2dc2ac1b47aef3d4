// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// objects.hh -- the objects that processes create on their devices.

#pragma once

#include "../device/rules.h"
#include "../protocol/ring.hh"
#include "counters.hh"
#include "memory.hh"
#include "memory_rule.h"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sim {

struct Host;
struct Device;
struct Session;
struct Context;
struct Caller;

struct Object {
    enum Kind {
        CONTEXT,
        CHANNEL,
        PD,
        MR,
        MW,
        CQ,
        SRQ,
        QP,
        AH,
        XRCD,
        CM_ID,
        CM_MULTICAST,
        KINDS
    };
    const Kind kind;
    uint32_t handle = 0;
    Session *session = nullptr;
    int pid = 0; // of the process that created it
    uint64_t cookie = 0;
    unsigned users = 0;         // objects that depend on this one
    uint32_t async_events = 0;  // asynchronous events that were taken
    uint32_t queued_events = 0; // events about this object
    int *count = nullptr;       // of its kind on its device; NULL: it is not counted
    explicit Object(Kind object_kind) : kind(object_kind) {}
    virtual ~Object() {
        if (count)
            --*count;
    }
    Object(const Object &) = delete;
    Object &operator=(const Object &) = delete;
};

struct Event {
    Object *about; // its destruction removes the event; NULL: no object
    uint64_t cookie;
    uint32_t type, port;
    std::vector<std::byte> data; // of events of the connection manager
};

// A completion channel, event channel, or channel of asynchronous events.
struct Channel : Object {
    static constexpr Kind KIND = CHANNEL;
    enum Purpose { COMPLETIONS, ASYNC, CONNECTIONS } purpose;
    Context *context = nullptr; // only of a completion channel
    unsigned ids = 0;           // how many CM IDs report events here
    const Caller *creator = nullptr;
    std::deque<Event> queue;
    bool raised = false; // the descriptor is readable, or the process has read the byte
    explicit Channel(Purpose of) : Object(KIND), purpose(of) {}
};

struct Context : Object {
    static constexpr Kind KIND = CONTEXT;
    Device *device = nullptr;
    Channel *async = nullptr;
    unsigned objects = 0; // its PDs, CQs and completion channels
    Context() : Object(KIND) {}
};

struct Pd : Object {
    static constexpr Kind KIND = PD;
    Context *context = nullptr;
    Pd() : Object(KIND) {}
};

struct Region {
    Pd *pd = nullptr;
    std::shared_ptr<Program> program;
    uint64_t address = 0, length = 0, iova = 0;
    unsigned access = 0;
    uint32_t key = 0;           // both lkey and rkey
    bool is_persistent = false; // at least parts of the memory are persistent
    sim_region checked() const { return {pd, iova, length, access}; }
};

struct Mr : Object, Region {
    static constexpr Kind KIND = MR;
    Mr() : Object(KIND) {}
};

// A memory window. A window of type 1 is bound again; one of type 2 is bound by one QP and
// invalidated.
struct Mw : Object {
    static constexpr Kind KIND = MW;
    Pd *pd = nullptr;
    ibv_mw_type type = IBV_MW_TYPE_1;
    uint32_t key = 0;
    Mr *mr = nullptr;   // NULL: not bound
    uint32_t qp = 0;    // type 2: the number of the QP that bound it
    uint64_t start = 0; // of the range in the region
    uint64_t length = 0;
    unsigned access = 0;
    bool is_zero_based() const { return access & IBV_ACCESS_ZERO_BASED; }
    sim_region checked() const { return {pd, is_zero_based() ? 0 : start, length, access}; }
    // Binds it to the region, or, with NULL, unbinds it.
    void use(Mr *region) {
        if (mr)
            mr->users--;
        mr = region;
        if (mr)
            mr->users++;
    }
    Mw() : Object(KIND) {}
};

// A completion whose poll frees entries (sim_profile::frees_entries_in_poll).
struct Unpolled {
    uint32_t qp;    // its number; 0: it was reset
    uint32_t srq;   // the handle of the SRQ of a receive, or 0
    uint64_t sends; // units that were posted up to this request; 0: a receive
};

// How much was posted to a queue, and freed.
struct Usage {
    uint64_t posted = 0, freed = 0;
    std::map<int, size_t> copies; // used in the copies of children of fork(), by process
};

struct Cq : Object {
    static constexpr Kind KIND = CQ;
    Context *context = nullptr;
    Channel *channel = nullptr;
    Ring *ring = nullptr;
    uint32_t added = 0, entries = 0; // of the ring, where the process can change them
    bool is_published = true;        // the ring has `added`, too
    sim_armed armed = SIM_NOT_ARMED;
    uint32_t completion_events = 0; // completion events that were taken
    bool ignores_overrun = false;
    std::deque<Unpolled> unpolled; // one for each completion in the ring
    // The first completion that the process has not taken, and that is still in the ring.
    uint32_t taken() const {
        const uint32_t value = __atomic_load_n(&ring->taken, __ATOMIC_ACQUIRE);
        return added - value > entries ? added - entries : value;
    }
    Cq() : Object(KIND) {}
};

struct Xrcd : Object {
    static constexpr Kind KIND = XRCD;
    Context *context = nullptr;
    uint32_t domain = 0; // equal in all that opened the file: the handle of the first one
    bool has_file = false;
    uint64_t file_device = 0, inode = 0;
    Xrcd() : Object(KIND) {}
};

struct Receive {
    uint64_t wr_id;
    std::vector<ibv_sge> sges;
};

struct Srq : Object {
    static constexpr Kind KIND = SRQ;
    Pd *pd = nullptr;
    Xrcd *xrcd = nullptr; // with cq: NULL unless it is of XRC
    Cq *cq = nullptr;
    ibv_srq_attr attr{};
    std::deque<Receive> receives;
    Usage received;
    Srq() : Object(KIND) {}
};

struct Ah : Object {
    static constexpr Kind KIND = AH;
    Pd *pd = nullptr;
    ibv_ah_attr attr{};
    Ah() : Object(KIND) {}
};

struct TornRead; // word_order.hh

struct Send {
    SendWr wr;
    std::vector<ibv_sge> sges;
    std::vector<std::byte> inlined;
    uint64_t sent_at = 0, done_at = 0;
    bool executed = false;
    bool lacks_response = false; // it was executed, but its response was lost
    bool is_landing = false;     // its data, `inlined`, arrives with the response at done_at
    ibv_wc_status status = IBV_WC_SUCCESS;
    uint32_t byte_len = 0;
    uint64_t length = 0;              // of the data of the request
    uint64_t posted = 0;              // units that were posted to the queue up to this request
    std::shared_ptr<TornRead> torn{}; // NULL: no words are left to read
};

struct UnflushedWrite {
    std::shared_ptr<Program> program;
    uint64_t address, length;
};

// A word of an executed write, or a part of it, that is not visible yet.
struct LateWord {
    uint32_t writer, target; // the handles of the queue pairs
    uint64_t write;          // the number of the write
    std::shared_ptr<Program> program;
    uint64_t address;
    uint8_t length = 0;
    std::byte bytes[8]{};
};

// An unsignaled send that succeeded (sim_profile::fails_oldest).
struct Unreported {
    ibv_wc wc;
    Unpolled unpolled;
};

// The attempts of the first unexecuted send, which has no response or no receive.
struct Attempts {
    const Send *send = nullptr;
    bool lacks_receive = false;
    uint64_t began = 0, period = 0, limit = 0; // period 0: it does not wait
    uint64_t timeouts = 0, counted = 0;        // how many were counted
};

struct Qp : Object {
    static constexpr Kind KIND = QP;
    Context *context = nullptr;
    Pd *pd = nullptr;
    Cq *send_cq = nullptr, *recv_cq = nullptr;
    Srq *srq = nullptr;
    Xrcd *xrcd = nullptr; // of IBV_QPT_XRC_RECV, whose requests name the SRQ
    ibv_qp_type type = IBV_QPT_RC;
    bool signals_all = false;
    uint64_t send_ops = 0;
    uint32_t number = 0;
    ibv_qp_attr attr{}; // qp_state is the current state
    std::deque<Send> sends;
    unsigned landing = 0;               // sends with is_landing
    std::vector<Unreported> unreported; // since the last signaled one
    std::deque<Receive> receives;
    Usage sent, received;
    Credit *credit = nullptr; // of the process that created it; NULL: each send has a reply
    uint32_t unanswered = 0;  // units that were posted without a reply
    std::vector<UnflushedWrite>
        written; // since the last read of this QP: may not be persistent
    unsigned rnr_retries_left = 0;
    // The first unexecuted send waits for a response or for a receive, and at these times its
    // retries end, or the next attempt follows; 0: it does not wait for it, or has no limit.
    uint64_t retries_end_at = 0, rnr_retry_at = 0;
    uint64_t timer = 0, timer_time = 0;
    Attempts attempts;
    // iWARP: set by the connection manager. InfiniBand and RoCE find the peer by attr.
    uint32_t iwarp_peer = 0;
    std::vector<ibv_gid> groups; // multicast groups that it is attached to
    uint32_t cm_id = 0;          // handle of the CM ID that connects it
    bool is_idle = false;        // siw: the connection was closed
    bool was_reset = false;
    Qp() : Object(KIND) {}
};

struct Device {
    Host *host = nullptr;
    const sim_profile *profile = nullptr;
    std::string name;
    unsigned index = 0, number = 0; // index in Host::devices; number in its addresses
    uint64_t guid = 0;              // in host byte order
    uint16_t lid = 0;
    bool port_is_up = true, removed = false;
    unsigned port_changes = 0, address_changes = 0;
    int counts[Object::KINDS] = {}; // objects by kind
    std::vector<ibv_gid> gids;      // [0] link-local or of the subnet, [1] IPv4, [2] IPv6
    Counters counters{};
    // The GID table that programs see; iWARP has one GID.
    unsigned gid_count() const {
        return profile->transport == SIM_IWARP ? 1 : static_cast<unsigned>(gids.size());
    }
    ibv_gid reported_gid(unsigned i) const; // i < gid_count()
    int check_path(const ibv_ah_attr &path) const {
        return sim_check_path(profile, gids.data(), gids.size(), &path);
    }
    // Its network interface.
    std::string interface() const { return "sim" + std::to_string(number); }
    unsigned interface_index() const { return number + 2; } // lo is 1
    std::array<uint8_t, 6> link_address() const;
    // Of its character device, as in include/rdma/ib.h and core/uverbs_main.c of Linux.
    static constexpr unsigned DEVICE_MAJOR = 231;
    unsigned device_minor() const { return 192 + index; }
};

// The addresses of device D (from 0) of host N (from 1) are 10.77.D.N and fd77::D:N.
struct Host {
    unsigned number = 0;
    bool has_power = true;
    std::vector<std::unique_ptr<Device>> devices;
};

// The processes that share their objects: one and the children that it forked.
struct Session {
    uint32_t number = 0;
    Host *host = nullptr;
};

} // namespace sim
