// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// protocol_cm.hh -- the requests of librdmacm to the connection manager of the fabric.
//
// On an event channel, a CmEvent follows TakeEvent::Reply. The cookie of the reply belongs to
// the ID, for a connect request to the listening ID, and for a multicast group to CmJoin.

#pragma once

#include "protocol.hh"

#include <netinet/in.h>

namespace sim {

enum CmOp : uint32_t {
    OP_CM_CREATE = OP_CM_FIRST,
    OP_CM_DESTROY,
    OP_CM_BIND,
    OP_CM_RESOLVE_ADDR,
    OP_CM_RESOLVE_ROUTE,
    OP_CM_INIT_QP_ATTR,
    OP_CM_LISTEN,
    OP_CM_CONNECT,
    OP_CM_ACCEPT,
    OP_CM_REJECT,
    OP_CM_DISCONNECT,
    OP_CM_NOTIFY,
    OP_CM_SET_OPTION,
    OP_CM_MIGRATE,
    OP_CM_CREATE_CHANNEL,
    OP_CM_DESTROY_CHANNEL,
    OP_CM_JOIN,
    OP_CM_LEAVE,
};

// An IPv4 or IPv6 address with its port, or family 0.
union CmAddress {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
};

// Content of struct rdma_cm_id: the addresses, and the device once it is known.
struct CmRoute {
    CmAddress source, destination;
    uint32_t has_device, port;
    uint64_t node_guid; // in network byte order
    ibv_gid sgid, dgid;
    uint16_t pkey; // in network byte order
    uint8_t traffic_class, mtu, rate, packet_life_time, has_path, unused;
};

// struct rdma_conn_param without pointers.
struct CmParam {
    uint32_t qp_num;
    uint8_t responder_resources, initiator_depth, flow_control, retry_count;
    uint8_t rnr_retry_count, srq, valid, private_data_len;
    uint8_t private_data[256];
};

struct CmEvent {
    uint32_t id; // for a connect request, the new ID
    uint32_t type;
    int32_t status;
    ibv_ece ece;
    CmParam param;
    CmRoute route;    // of the ID
    ibv_ah_attr path; // of UD, as qkey
    uint32_t qkey;
};

struct CmCreate : Request<OP_CM_CREATE> {
    uint32_t channel;
    uint64_t cookie;
    uint32_t port_space, qp_type;
    struct Reply {
        uint32_t id;
    };
};

// A request that has only the ID.
template <uint32_t NUMBER, class REPLY = Empty> struct CmSimple : Request<NUMBER> {
    uint32_t id;
    using Reply = REPLY;
};
// The number of taken events, which the program must acknowledge.
struct CmEventsTaken {
    uint32_t events;
};
using CmDestroy = CmSimple<OP_CM_DESTROY, CmEventsTaken>;
using CmDisconnect = CmSimple<OP_CM_DISCONNECT>;

struct CmBind {
    static constexpr uint32_t OP = OP_CM_BIND;
    uint32_t op = OP, id, privileged; // privileged: may use the ports below 1024
    CmAddress address;
    using Reply = CmRoute;
};

struct CmResolveAddr : Request<OP_CM_RESOLVE_ADDR> {
    uint32_t id, timeout_ms, privileged;
    CmAddress source, destination;
    using Reply = Empty;
};

struct CmResolveRoute : Request<OP_CM_RESOLVE_ROUTE> {
    uint32_t id, timeout_ms;
    using Reply = Empty;
};

struct CmInitQpAttr : Request<OP_CM_INIT_QP_ATTR> {
    uint32_t id, state;
    struct Reply {
        ibv_qp_attr attr;
        uint32_t mask;
    };
};

struct CmListen : Request<OP_CM_LISTEN> {
    uint32_t id;
    int32_t backlog;
    using Reply = CmRoute;
};

struct CmConnect : Request<OP_CM_CONNECT> {
    uint32_t id;
    ibv_ece ece;
    CmParam param;
    using Reply = Empty;
};

// Accepts a request, or (param.valid = 0) the response of the other side.
struct CmAccept : Request<OP_CM_ACCEPT> {
    uint32_t id;
    uint64_t cookie;
    ibv_ece ece;
    CmParam param;
    using Reply = Empty;
};

struct CmReject : Request<OP_CM_REJECT> {
    uint32_t id, reason;
    uint8_t private_data_len, unused[3];
    uint8_t private_data[256];
    using Reply = Empty;
};

struct CmNotify {
    static constexpr uint32_t OP = OP_CM_NOTIFY;
    uint32_t op = OP, id, event; // enum ibv_event_type
    using Reply = Empty;
};

struct CmSetOption : Request<OP_CM_SET_OPTION> {
    uint32_t id, level, name, length;
    int32_t value; // a byte, or an int
    using Reply = Empty;
};

struct CmMigrate : Request<OP_CM_MIGRATE> {
    uint32_t id, channel;
    using Reply = CmEventsTaken;
};

struct CmCreateChannel : Request<OP_CM_CREATE_CHANNEL> {
    struct Reply {
        uint32_t channel;
    };
};

// Also destroys the IDs of the channel.
struct CmDestroyChannel : Request<OP_CM_DESTROY_CHANNEL> {
    uint32_t channel;
    using Reply = Empty;
};

// Joins the multicast group of the address.
struct CmJoin : Request<OP_CM_JOIN> {
    uint32_t id, flags; // flags: RDMA_MC_JOIN_FLAG_*
    uint64_t cookie;
    CmAddress address;
    struct Reply {
        uint32_t multicast;
    };
};

struct CmLeave {
    static constexpr uint32_t OP = OP_CM_LEAVE;
    uint32_t op = OP, multicast;
    using Reply = CmEventsTaken;
};

} // namespace sim
