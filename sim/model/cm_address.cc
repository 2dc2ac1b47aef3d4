// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cm_address.cc -- addresses, ports and routes of CM IDs.

#include "fabric.hh"

#include <arpa/inet.h>
#include <cerrno>

namespace sim {

namespace {

uint16_t port_of(const CmAddress &address) {
    return ntohs(sim_port(&address.any));
}

// cma.c, cma_any_addr(): also the loopback addresses, which no device has.
bool is_any(const CmAddress &address) {
    const in6_addr &v6 = address.v6.sin6_addr;
    return sim_is_wildcard(&address.any) ||
           (address.any.sa_family == AF_INET6
                ? IN6_IS_ADDR_LOOPBACK(&v6)
                : ntohl(address.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET);
}

// Device `device` of host `host`: 10.77.device.host and fd77::device:host.
struct Place {
    unsigned device, host;
};

bool place_of(const CmAddress &address, Place &place) {
    if (address.any.sa_family == AF_INET) {
        const uint32_t number = ntohl(address.v4.sin_addr.s_addr);
        place = {number >> 8 & 0xff, number & 0xff};
        return number >> 16 == (10U << 8 | 77);
    }
    const uint16_t *const words = address.v6.sin6_addr.s6_addr16;
    const uint16_t prefix[6] = {htons(0xfd77)};
    place = {ntohs(words[6]), ntohs(words[7])};
    return memcmp(words, prefix, sizeof(prefix)) == 0;
}

// The entry of the GID table that a connection between such addresses uses.
uint8_t gid_index(const Device &device, const CmAddress &address) {
    if (device.profile->transport != SIM_ROCE)
        return 0;
    return address.any.sa_family == AF_INET6 ? 2 : 1;
}

ibv_gid gid_of(const Device *device, const CmAddress &address) {
    const unsigned index = device ? gid_index(*device, address) : 0;
    return device && index < device->gids.size() ? device->gids[index] : ibv_gid{};
}

// Returns NULL if no device of the host has this number in its addresses.
Device *device_of(const Host &host, unsigned number) {
    for (const auto &device : host.devices)
        if (device->number == number && !device->removed)
            return device.get();
    return nullptr;
}

const unsigned LAST_PRIVILEGED_PORT = 1023, FIRST_ANY_PORT = 32768, LAST_ANY_PORT = 60999;

} // namespace

CmAddress Cm::address_of(const Device &device, int family) {
    CmAddress address{};
    address.any.sa_family = static_cast<sa_family_t>(family);
    const unsigned host = device.host->number, index = device.number;
    if (family == AF_INET) {
        address.v4.sin_addr.s_addr = htonl(10U << 24 | 77U << 16 | index << 8 | host);
    } else {
        address.v6.sin6_addr.s6_addr16[0] = htons(0xfd77);
        address.v6.sin6_addr.s6_addr16[6] = htons(static_cast<uint16_t>(index));
        address.v6.sin6_addr.s6_addr16[7] = htons(static_cast<uint16_t>(host));
    }
    return address;
}

Device *Cm::device_of(const CmAddress &address) const {
    Place place{};
    Host *const host = sim_address_length(&address.any) && place_of(address, place)
                           ? fabric_.host(place.host)
                           : nullptr;
    return host ? sim::device_of(*host, place.device) : nullptr;
}

// cma.c, rdma_bind_addr_dst()
int Cm::bind(CmId &id, const CmAddress &address, bool is_privileged) {
    if (!sim_address_length(&address.any))
        return EAFNOSUPPORT;
    if (const int error = sim_check_cm_call(id.state, SIM_CM_BIND))
        return error;
    Device *const device = is_any(address) ? nullptr : device_of(address);
    if (!is_any(address) && (!device || device->host != id.session->host))
        return EADDRNOTAVAIL;
    id.source = address;
    id.device = device;
    if (!id.family_was_set)
        id.is_of_one_family = address.any.sa_family == AF_INET;
    const int error = port_of(address) ? use_port(id, is_privileged) : use_any_port(id);
    if (error) {
        id.source = {};
        id.device = nullptr;
        return error;
    }
    id.state = SIM_CM_BOUND;
    return 0;
}

// cma.c, cma_resolve_loopback() and addr.c, addr_resolve(): the destination determines the
// address and device of the source.
int Cm::choose_source(CmId &id) {
    if (id.source.any.sa_family != id.destination.any.sa_family)
        return EINVAL;
    const uint16_t source_port = port_of(id.source), port = port_of(id.destination);
    Device *device = id.device;
    Place place{};
    const bool is_multicast = sim_is_multicast(&id.destination.any);
    const bool is_first = is_any(id.destination) || is_multicast;
    if (!device && (is_first || place_of(id.destination, place)))
        device = sim::device_of(*id.session->host, is_first ? 0 : place.device);
    if (!device || device->removed)
        return ENETUNREACH;
    if (is_any(id.destination))
        id.destination = address_of(*device, id.source.any.sa_family);
    sim_set_port(&id.destination.any, htons(port));
    if (!is_multicast && (!place_of(id.destination, place) || place.device != device->number))
        return ENETUNREACH;
    id.source = address_of(*device, id.source.any.sa_family);
    sim_set_port(&id.source.any, htons(source_port));
    id.device = device;
    return 0;
}

// ---- ports: cma.c, cma_get_port() -----------------------------------------------------------

// cma.c, cma_check_port()
int Cm::check_port(const CmId &id, bool reuses_address) const {
    const auto [first, last] =
        ports_.equal_range({id.session->host->number, id.port_space, port_of(id.source)});
    for (auto found = first; found != last; ++found) {
        const CmId &other = *found->second;
        if (&other == &id || (reuses_address && other.reuses_address))
            continue;
        if (id.is_of_one_family && other.is_of_one_family &&
            id.source.any.sa_family != other.source.any.sa_family)
            continue;
        if (is_any(id.source) || is_any(other.source))
            return EADDRNOTAVAIL;
        if (sim_is_same_host(&id.source.any, &other.source.any))
            return EADDRINUSE;
    }
    return 0;
}

void Cm::take_port(CmId &id) {
    port_of_[&id] =
        ports_.emplace(Port{id.session->host->number, id.port_space, port_of(id.source)}, &id);
}

int Cm::use_port(CmId &id, bool is_privileged) {
    if (port_of(id.source) <= LAST_PRIVILEGED_PORT && !is_privileged)
        return EACCES;
    const int error = check_port(id, id.reuses_address);
    if (error == 0)
        take_port(id);
    return error;
}

int Cm::use_any_port(CmId &id) {
    const unsigned count = LAST_ANY_PORT - FIRST_ANY_PORT + 1;
    const unsigned start = static_cast<unsigned>(fabric_.random(count));
    for (unsigned i = 0; i < count; i++) {
        const auto port = static_cast<uint16_t>(FIRST_ANY_PORT + (start + i) % count);
        if (port == last_port_ ||
            ports_.contains({id.session->host->number, id.port_space, port}))
            continue;
        last_port_ = port;
        sim_set_port(&id.source.any, htons(port));
        take_port(id);
        return 0;
    }
    return EADDRNOTAVAIL;
}

void Cm::release_port(CmId &id) {
    const auto found = port_of_.find(&id);
    if (found == port_of_.end())
        return;
    ports_.erase(found->second);
    port_of_.erase(found);
}

// The CM ID that listens for a request of `from`, at the address or at any address.
CmId *Cm::find_listener(const CmId &from, const Device &at) const {
    const auto [first, last] =
        ports_.equal_range({at.host->number, from.port_space, port_of(from.destination)});
    for (auto found = first; found != last; ++found) {
        CmId &id = *found->second;
        const bool is_of_family = id.source.any.sa_family == from.destination.any.sa_family;
        if (id.state == SIM_CM_LISTENING &&
            id.qp_type == sim_peer_type(static_cast<ibv_qp_type>(from.qp_type)) &&
            (sim_is_same_host(&id.source.any, &from.destination.any) ||
             (is_any(id.source) && (is_of_family || !id.is_of_one_family))))
            return &id;
    }
    return nullptr;
}

// ---- routes ---------------------------------------------------------------------------------

CmRoute Cm::route(const CmId &id) const {
    CmRoute route{};
    route.source = id.source;
    route.destination = id.destination;
    if (!id.device)
        return route;
    route.has_device = 1;
    route.port = 1;
    route.node_guid = htobe64(id.device->guid);
    route.pkey = 0xffff;
    route.sgid = gid_of(id.device, id.source);
    route.dgid = gid_of(device_of(id.destination), id.destination);
    route.traffic_class = id.tos;
    route.mtu = IBV_MTU_1024;
    route.rate = IBV_RATE_10_GBPS;
    route.packet_life_time = 16;
    route.has_path = (id.state >= SIM_CM_ROUTED && id.state != SIM_CM_LISTENING) &&
                     id.device->profile->transport != SIM_IWARP;
    return route;
}

// iwcm.c, iwcm_init_qp_init_attr(): the connection manager moves the QP itself.
static void init_iwarp_attr(ibv_qp_state state, ibv_qp_attr &attr, int &mask) {
    mask = IBV_QP_PORT;
    if (state == IBV_QPS_RTS)
        return;
    mask |= IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
    attr.qp_access_flags =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
}

ibv_ah_attr Cm::path_attr(const CmId &id) const {
    const Device *const peer = device_of(id.destination);
    ibv_ah_attr attr{};
    attr.port_num = 1;
    if (id.device->profile->transport == SIM_INFINIBAND && peer)
        attr.dlid = peer->lid;
    attr.is_global = id.device->profile->transport == SIM_ROCE;
    attr.grh.dgid = gid_of(peer, id.destination);
    attr.grh.sgid_index = gid_index(*id.device, id.source);
    attr.grh.hop_limit = 64;
    attr.grh.traffic_class = id.tos;
    return attr;
}

// cm.c, cm_init_qp_rtr_attr()
void Cm::init_rtr_attr(const CmId &id, ibv_qp_attr &attr, int &mask) const {
    mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    attr.ah_attr = path_attr(id);
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = id.remote.qp_num;
    attr.rq_psn = id.peer_psn;
    attr.max_dest_rd_atomic = responder_resources(id);
    attr.min_rnr_timer = 0;
}

// cm.c, cm_init_qp_rts_attr(). The time limit is that of soft-RoCE: 4.096 us * 2^17 was
// measured in the lab.
void Cm::init_rts_attr(const CmId &id, ibv_qp_attr &attr, int &mask) const {
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
           IBV_QP_MAX_QP_RD_ATOMIC;
    attr.sq_psn = id.psn;
    attr.timeout = id.ack_timeout_was_set ? id.ack_timeout : uint8_t{17};
    attr.retry_cnt = id.is_passive ? id.remote.retry_count : id.local.retry_count;
    attr.rnr_retry = id.remote.rnr_retry_count;
    attr.max_rd_atomic = initiator_depth(id);
}

// cma.c, rdma_init_qp_attr(), and cm.c, ib_cm_init_qp_attr()
int Cm::init_qp_attr(const CmId &id, ibv_qp_state state, ibv_qp_attr &attr, int &mask) const {
    if (!id.device)
        return EINVAL;
    attr.qp_state = state;
    attr.port_num = 1;
    const bool is_iwarp = id.device->profile->transport == SIM_IWARP;
    if (!id.connects() || id.qp_type == IBV_QPT_UD) {
        if (state != IBV_QPS_INIT)
            return EINVAL;
        mask = IBV_QP_STATE | IBV_QP_PORT | (is_iwarp ? 0 : IBV_QP_PKEY_INDEX) |
               (id.qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
        attr.qkey = RDMA_UDP_QKEY;
        return 0;
    }
    if (is_iwarp) {
        init_iwarp_attr(state, attr, mask);
        return 0;
    }
    if (id.state > SIM_CM_ESTABLISHED || (id.state == SIM_CM_REQ_SENT && state != IBV_QPS_INIT))
        return EINVAL;
    if (state == IBV_QPS_RTR) {
        init_rtr_attr(id, attr, mask);
    } else if (state == IBV_QPS_RTS) {
        init_rts_attr(id, attr, mask);
    } else if (state == IBV_QPS_INIT) {
        mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        if (responder_resources(id) > 0)
            attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        if (responder_resources(id) > 0 && id.device->profile->has_native_flush)
            attr.qp_access_flags |= SIM_ACCESS_FLUSH_GLOBAL | SIM_ACCESS_FLUSH_PERSISTENT;
    } else {
        return EINVAL;
    }
    return 0;
}

// The passive side's parameters are final. The active side uses them with exchanged roles.
uint8_t Cm::responder_resources(const CmId &id) {
    if (id.state == SIM_CM_REQ_RECEIVED)
        return id.remote.initiator_depth;
    return id.is_passive || id.state == SIM_CM_REQ_SENT ? id.local.responder_resources
                                                        : id.remote.initiator_depth;
}

uint8_t Cm::initiator_depth(const CmId &id) {
    if (id.state == SIM_CM_REQ_RECEIVED)
        return id.remote.responder_resources;
    return id.is_passive || id.state == SIM_CM_REQ_SENT ? id.local.initiator_depth
                                                        : id.remote.responder_resources;
}

} // namespace sim
