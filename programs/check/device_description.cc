// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// device_description.cc -- the device and its description in a report

#include "device_description.hh"

#include "../info/info.hh"
#include "wire.hh"

#include <cstdio>
#include <regex>

namespace {

// The part of a release that is the version: the rest may name the owner of a machine.
std::string version_in(const std::string &release) {
    static const std::regex VERSION(R"(^\d+(\.\d+){1,2}(-\d+(\.\d+){0,2}(?![.\d]*[a-z]))?)");
    std::smatch found;
    return std::regex_search(release, found, VERSION) ? found[0].str() : "0.0";
}

std::string plain(const std::string &text, const char *other) {
    static const std::regex PLAIN("[0-9A-Za-z._-]{1,32}"), SERIAL("[0-9a-fA-F]{12}");
    return std::regex_match(text, PLAIN) && !std::regex_search(text, SERIAL) ? text : other;
}

std::string driver_of(ibv_context *context, const ibv_device_attr &limits) {
    const std::string name = ibv_get_device_name(context->device);
    const std::string found = real_path("/sys/class/infiniband/" + name + "/device/driver");
    return !found.empty()                   ? base_name(found)
           : limits.vendor_id == VENDOR_RXE ? "rdma_rxe"
           : limits.vendor_id == VENDOR_SIW ? "siw"
                                            : "unknown";
}

Json link_of(ibv_context *context, const ibv_device_attr &limits) {
    for (const Json &port : ports(context, limits)) {
        const bool is_iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
        const Json &rate = port.at("rate_gbit");
        if (!is_yes(port.at("active")) && limits.phys_port_cnt > 1)
            continue;
        return {{"transport", is_iwarp                                    ? "iWARP"
                              : text_at(port, "link_layer") == "Ethernet" ? "RoCE"
                                                                          : "IB"},
                {"rate_gbps", rate.is_null() ? Json(0) : rate},
                {"mtu", port.at("active_mtu")}};
    }
    return {{"transport", "IB"}, {"rate_gbps", 0}, {"mtu", 0}};
}

} // namespace

rpma::peer peer_of(const std::string &address, rpma_util_ibv_context_type type) {
    try {
        return rpma::peer(rpma::get_ibv_context(address, type));
    } catch (const rpma::error &error) {
        if (list_directory("/sys/class/infiniband").empty())
            fail(
                "this machine has no RDMA device; rdma-sim runs rpma-check on a simulated one");
        fail("no RDMA device {} {}: {}; rpma-info lists the addresses that reach devices",
             type == RPMA_UTIL_IBV_CONTEXT_LOCAL ? "has the address" : "reaches",
             escaped(address), error.what());
    }
}

Json describe_device(ibv_context *context) {
    ibv_device_attr limits{};
    if (ibv_query_device(context, &limits) != 0)
        fail("the device cannot be queried");
    const Json found = versions();
    const std::string core = text_at(found, "rdma_core");
    return {{"driver", plain(driver_of(context, limits), "unknown")},
            {"model", fmt::format("0x{:04x}/{}", limits.vendor_id, limits.vendor_part_id)},
            {"firmware", plain(limits.fw_ver, "")},
            {"kernel", version_in(text_at(found, "kernel"))},
            {"rdma_core", core.empty() ? "unknown" : core},
            {"link", link_of(context, limits)}};
}
