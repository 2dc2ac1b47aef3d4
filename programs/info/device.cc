// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// device.cc -- each RDMA device: whether it is usable, and the results of the other parts

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <endian.h>
#include <unistd.h>

#include "info.hh"

namespace {

using DeviceList = Owned<ibv_device *, ibv_free_device_list>; // ends with nullptr

Json addresses(const std::vector<Address> &all, const std::string &device) {
    Json found = Json::array();
    for (const Address &each : all)
        if (each.device == device)
            found.push_back(
                {{"address", each.text},
                 {"netdev", each.netdev},
                 {"netdev_mtu", read_number("/sys/class/net/" + each.netdev + "/mtu")}});
    return found;
}

Json driver(const std::string &device, const ibv_device_attr &limits) {
    const std::string found = real_path("/sys/class/infiniband/" + device + "/device/driver");
    return !found.empty()                   ? Json(base_name(found))
           : limits.vendor_id == VENDOR_RXE ? Json("rdma_rxe")
           : limits.vendor_id == VENDOR_SIW ? Json("siw")
                                            : Json();
}

Json guid(uint64_t number) {
    if (number == 0)
        return nullptr;
    return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", number >> 48, number >> 32 & 0xffff,
                       number >> 16 & 0xffff, number & 0xffff);
}

// sysfs has no file for software devices, and -1 if the machine does not report the node.
Json numa_node(const std::string &device) {
    const std::string path = "/sys/class/infiniband/" + device + "/device/numa_node";
    const std::string line = read_line(path);
    return line.empty() || line[0] == '-' ? Json() : Json(read_number(path));
}

// An address of the device's GID table that belongs to no network device of this namespace.
std::string foreign_address(const Json &device, const std::vector<Address> &all) {
    for (const Json &port : device.at("ports"))
        for (const Json &gid : port.at("gids"))
            if (const std::string address = text_at(gid, "address");
                !address.empty() && !address.starts_with("fe80:") &&
                !is_own_address(all, address))
                return address;
    return "";
}

Json no_address(const Json &device, const std::vector<Address> &all) {
    const std::string foreign = foreign_address(device, all);
    if (access_error("/dev/infiniband/rdma_cm", R_OK | W_OK) != 0)
        return no("librdmacm cannot report the addresses of the device",
                  "see the result of the connection manager");
    if (!foreign.empty())
        return no(fmt::format("its address {} belongs to no network device of this network "
                              "namespace",
                              foreign),
                  "run the program in the namespace that has it: ip netns exec");
    return no(
        "the device has no IP address",
        fmt::format("add one to its network device: ip address add ADDRESS/LENGTH dev {}; or "
                    "run the program in the network namespace that has one: ip netns exec",
                    netdev_of(text_at(device, "name"))));
}

Json usable(const Json &device, const std::vector<Address> &all) {
    const Json &ports = device.at("ports");
    const bool is_active = std::any_of(
        ports.begin(), ports.end(), [](const Json &port) { return is_yes(port.at("active")); });
    if (!is_active && !ports.empty())
        return ports.back().at("active");
    return device.at("addresses").empty() ? no_address(device, all) : yes();
}

void add_properties(Json &device, ibv_context *context, const Search &search) {
    ibv_device_attr_ex attributes = {};
    rpma::peer peer;
    try {
        peer = rpma::peer(context);
        if (const int error = ibv_query_device_ex(context, nullptr, &attributes); error != 0)
            throw std::system_error(error, std::generic_category(), "ibv_query_device_ex");
    } catch (const std::system_error &error) {
        device["usable"] =
            no(fmt::format("rpma_peer_new() fails for the device: {}", error.what()),
               "rpma_troubleshooting(7) of librpma explains the line");
        return;
    }
    const ibv_device_attr &limits = attributes.orig_attr;
    const std::string name = text_at(device, "name");
    device["driver"] = driver(name, limits);
    device["transport"] =
        context->device->transport_type == IBV_TRANSPORT_IWARP ? "iWARP" : "InfiniBand";
    add_driver(device);
    device["vendor_id"] = limits.vendor_id;
    device["vendor_part_id"] = limits.vendor_part_id;
    device["firmware"] = limits.fw_ver;
    device["node_guid"] = guid(be64toh(limits.node_guid));
    device["numa_node"] = numa_node(name);
    device["ports"] = ports(context, limits);
    device["addresses"] = addresses(search.addresses, name);
    device["usable"] = usable(device, search.addresses);
    device["operations"] = capabilities(context, peer, attributes);
    device["limits"] = device_limits(context, limits);
    if (search.tried != nullptr)
        device["registration"] = registration(device, peer, *search.tried);
}

// What open(2) of a file with sufficient permissions returns. Linux, security/device_cgroup.c,
// devcgroup_check_permission(): EPERM; drivers/infiniband/core/cgroup.c: EAGAIN.
std::string remedy_of_open(int error) {
    static constexpr struct {
        int error;
        const char *remedy;
    } remedies[] = {
        {EPERM, "in a container: add the devices of /dev/infiniband to its list of devices"},
        {EAGAIN, "let the rdma cgroup open more devices: hca_handle in rdma.max"},
        {ENOENT, "in a container: add the devices of /dev/infiniband; otherwise: modprobe "
                 "ib_uverbs"},
        {EMFILE, "let this process open more files: ulimit -n, or LimitNOFILE= of systemd"},
        {ENFILE, "let this machine open more files: sysctl fs.file-max"},
    };
    for (const auto &known : remedies)
        if (known.error == error)
            return known.remedy;
    return "see the driver's lines in the kernel log: dmesg";
}

Json open_failure(const std::string &node, int error) {
    const int refused = access_error(node, R_OK | W_OK);
    if (refused == EACCES)
        return no(node + ": " + std::strerror(refused), GRANT_ACCESS);
    return no(fmt::format("the device cannot be opened: {}", std::strerror(error)),
              remedy_of_open(refused != 0 ? refused : error));
}

Json describe(ibv_device *listed, const Search &search) {
    const std::string node = fmt::format("/dev/infiniband/{}", listed->dev_name);
    Json device = {{"name", ibv_get_device_name(listed)}, {"node", node}};
    const Owned<ibv_context, ibv_close_device> context(ibv_open_device(listed));
    if (context)
        add_properties(device, context.get(), search);
    else
        device["usable"] = open_failure(node, errno);
    return device;
}

} // namespace

Json devices(Search &search) {
    const DeviceList list(ibv_get_device_list(nullptr));
    std::vector<std::string> listed;
    Json found = Json::array();
    const auto is_selected = [&](const std::string &name) {
        return search.device.value_or(name) == name;
    };
    for (ibv_device **each = list.get(); each != nullptr && *each != nullptr; each++) {
        listed.push_back(ibv_get_device_name(*each));
        if (is_selected(listed.back()))
            found.push_back(describe(*each, search));
    }
    // The kernel may have devices that libibverbs does not list.
    const std::vector<std::string> names = list_directory("/sys/class/infiniband");
    for (const std::string &name : names)
        if (is_selected(name) && std::find(listed.begin(), listed.end(), name) == listed.end())
            found.push_back(
                {{"name", name},
                 {"node", nullptr},
                 {"usable", no("the kernel has the device, but libibverbs does not list it",
                               "modprobe ib_uverbs, and install the providers "
                               "(Debian: ibverbs-providers)")}});
    search.has_any = !names.empty();
    return found;
}
