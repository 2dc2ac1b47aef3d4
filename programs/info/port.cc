// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// port.cc -- the ports of a device: state, MTU, and the addresses in its GID table

#include <algorithm>
#include <arpa/inet.h>
#include <cstdio>
#include <cstring>

#include "info.hh"

namespace {

constexpr size_t MAX_GIDS = 1024;

unsigned bytes_of(ibv_mtu mtu) {
    return mtu == 0 ? 0 : 128U << mtu;
}

const char *layer_of(uint8_t layer) {
    return layer == IBV_LINK_LAYER_ETHERNET     ? "Ethernet"
           : layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand"
                                                : "unspecified";
}

const char *gid_type_of(uint32_t type) {
    return type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
           : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                          : "IB";
}

std::string address_text(int family, const void *bytes) {
    char digits[INET6_ADDRSTRLEN];
    return inet_ntop(family, bytes, digits, sizeof(digits));
}

Json gid(const ibv_gid_entry &entry, const std::string &port_directory) {
    in6_addr address;
    std::memcpy(&address, entry.gid.raw, sizeof(address));
    const std::string text = address_text(AF_INET6, &address);
    // A GID holds an IPv4 address as an IPv4-mapped IPv6 address, ::ffff:ADDRESS.
    const std::string ip =
        IN6_IS_ADDR_V4MAPPED(&address) ? address_text(AF_INET, entry.gid.raw + 12) : text;
    const bool is_roce = entry.gid_type != IBV_GID_TYPE_IB;
    return {{"index", entry.gid_index},
            {"gid", text},
            {"address", is_roce ? Json(ip) : Json()},
            {"type", gid_type_of(entry.gid_type)},
            {"netdev", null_if_empty(read_line(fmt::format("{}/gid_attrs/ndevs/{}",
                                                           port_directory, entry.gid_index)))}};
}

Json gids(ibv_context *context, uint32_t number, const std::string &directory) {
    std::vector<ibv_gid_entry> entries(MAX_GIDS);
    const ssize_t count = ibv_query_gid_table(context, entries.data(), MAX_GIDS, 0);
    entries.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    Json found = Json::array();
    for (const ibv_gid_entry &entry : entries)
        if (entry.port_num == number)
            found.push_back(gid(entry, directory));
    return found;
}

// Adds the speed as the kernel reports it: "100 Gb/sec (4X EDR)". If the driver reports
// none, the kernel reports that of SDR (drivers/infiniband/core/sysfs.c, rate_show()).
void add_link(Json &port, const std::string &directory, bool known) {
    const std::string line = known ? read_line(directory + "/rate") : "";
    char rate[8], speed[8];
    unsigned width;
    known =
        std::sscanf(line.c_str(), "%7[0-9.] Gb/sec (%uX %7[A-Z0-9])", rate, &width, speed) == 3;
    port["rate_gbit"] = known ? Json::parse(rate) : Json();
    port["width"] = known ? Json(width) : Json();
    port["speed"] = known ? Json(speed) : Json();
}

Json active(const ibv_port_attr &port, const char *device) {
    if (port.state == IBV_PORT_ACTIVE)
        return yes();
    const std::string why =
        fmt::format("the port is not active: {}", ibv_port_state_str(port.state));
    if (port.link_layer == IBV_LINK_LAYER_INFINIBAND)
        return no(why, "check the cable, and that a subnet manager runs (opensm)");
    return no(
        why, fmt::format("bring its network device up (ip link set {} up), and check the cable",
                         netdev_of(device)));
}

} // namespace

// sysfs has the name in a file for rdma_rxe, in a directory for adapters, next to the GID for
// siw.
std::string netdev_of(const std::string &device) {
    const std::string directory = "/sys/class/infiniband/" + device;
    std::string name = read_line(directory + "/parent");
    if (const auto names = list_directory(directory + "/device/net");
        name.empty() && !names.empty())
        name = names.back();
    if (name.empty())
        name = read_line(directory + "/ports/1/gid_attrs/ndevs/0");
    return name.empty() ? "NETDEV" : name;
}

Json ports(ibv_context *context, const ibv_device_attr &limits) {
    Json found = Json::array();
    for (unsigned number = 1; number <= limits.phys_port_cnt; number++) {
        ibv_port_attr port;
        if (ibv_query_port(context, static_cast<uint8_t>(number), &port) != 0)
            continue;
        const char *device = ibv_get_device_name(context->device);
        const std::string directory =
            fmt::format("/sys/class/infiniband/{}/ports/{}", device, number);
        const bool has_lid = port.link_layer == IBV_LINK_LAYER_INFINIBAND && port.lid != 0;
        Json entry = {{"number", number},
                      {"state", ibv_port_state_str(port.state)},
                      {"active", active(port, device)},
                      {"link_layer", layer_of(port.link_layer)},
                      {"active_mtu", bytes_of(port.active_mtu)},
                      {"max_mtu", bytes_of(port.max_mtu)},
                      {"lid", has_lid ? Json(port.lid) : Json()}};
        add_link(entry, directory, port.state == IBV_PORT_ACTIVE && port.active_speed != 0);
        entry["gids"] = gids(context, number, directory);
        found.push_back(entry);
    }
    return found;
}
