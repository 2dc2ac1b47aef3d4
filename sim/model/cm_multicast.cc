// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cm_multicast.cc -- multicast groups that CM IDs join: Linux, drivers/infiniband/core/cma.c.

#include "fabric.hh"

#include <cerrno>

namespace sim {

namespace {

constexpr int NOT_SUPPORTED = 524; // ENOTSUPP of the kernel

// ip_ib_mc_map() and ipv6_ib_mc_map() of Linux, include/net, and cma_set_mgid(): scope 2, the
// default P_Key, and the signature of the connection manager or of IP over InfiniBand.
ibv_gid infiniband_group(const CmId &id, const CmAddress &address) {
    const bool is_v6 = address.any.sa_family == AF_INET6;
    const bool is_udp = id.port_space == RDMA_PS_UDP;
    ibv_gid gid = {{0xff, 0x12, static_cast<uint8_t>(is_v6 ? 0x60 : 0x40),
                    static_cast<uint8_t>(is_udp ? 0x01 : 0x1b), 0xff, 0xff}};
    if (is_v6) {
        memcpy(gid.raw + 6, address.v6.sin6_addr.s6_addr + 6, 10);
    } else {
        memcpy(gid.raw + 12, &address.v4.sin_addr, 4);
        gid.raw[12] &= 0x0f;
    }
    return gid;
}

// cma_iboe_set_mgid(), RoCE v2
ibv_gid roce_group(const CmAddress &address) {
    ibv_gid gid = {{}};
    gid.raw[10] = gid.raw[11] = 0xff;
    memcpy(gid.raw + 12, &address.v4.sin_addr, 4);
    return gid;
}

} // namespace

// ib_init_ah_from_mcmember(). A subnet manager assigns the LID of a group of InfiniBand.
ibv_ah_attr Cm::group_attr(const CmId &id, const CmAddress &address) {
    ibv_ah_attr attr = path_attr(id);
    attr.is_global = 1;
    if (id.device->profile->transport == SIM_ROCE) {
        attr.grh.dgid = roce_group(address);
        return attr;
    }
    attr.grh.dgid = infiniband_group(id, address);
    const auto next = static_cast<uint16_t>(SIM_MULTICAST_LID + lids_.size());
    const auto &gid = attr.grh.dgid.global;
    attr.dlid = lids_.try_emplace({gid.subnet_prefix, gid.interface_id}, next).first->second;
    return attr;
}

// rdma_join_multicast(), cma_iboe_join_multicast() and cma_make_mc_event()
int Cm::join(CmId &id, const CmJoin &request, CmJoin::Reply &reply) {
    const sim_transport transport = id.device->profile->transport;
    if (!sim_address_length(&request.address.any) ||
        request.flags > RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER ||
        (id.state != SIM_CM_BOUND && id.state != SIM_CM_RESOLVED) || id.qp_type != IBV_QPT_UD)
        return EINVAL;
    if (transport == SIM_IWARP)
        return ENOSYS;
    if (transport == SIM_ROCE && sim_is_wildcard(&request.address.any))
        return EINVAL;
    if (transport == SIM_ROCE && request.address.any.sa_family == AF_INET6)
        return NOT_SUPPORTED;
    CmMulticast &made = *fabric_.create<CmMulticast>(id.session);
    made.id = &id;
    made.cookie = request.cookie;
    id.multicasts.push_back(made.handle);
    reply.multicast = made.handle;
    CmEvent event{};
    event.id = id.handle;
    event.type = RDMA_CM_EVENT_MULTICAST_JOIN;
    event.param.qp_num = SIM_MULTICAST_QP;
    event.path = group_attr(id, request.address);
    event.qkey = RDMA_UDP_QKEY;
    push(id, made, event);
    return 0;
}

void Cm::leave(CmMulticast &multicast) {
    std::erase(multicast.id->multicasts, multicast.handle);
    fabric_.destroy(multicast);
}

} // namespace sim
