// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// directory.cc -- the directory of a fabric: its socket, and for each host the files about RDMA
// devices that replace those of the kernel

#include "sim.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ftw.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

constexpr uint64_t MIN_ROOM = 256 << 20; // for 254 hosts
constexpr size_t MAX_PATH_OF_SOCKET = sizeof(sockaddr_un::sun_path) - sizeof("/socket");

std::string parent_directory() {
    for (const char *const name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
        const char *const value = getenv(name);
        if (value != nullptr && *value == '/' && access(value, W_OK) == 0 &&
            strlen(value) + 60 < MAX_PATH_OF_SOCKET)
            return value;
    }
    // Files in memory are created faster; a container may have little room for them.
    struct statvfs room;
    const bool has_room = statvfs("/dev/shm", &room) == 0 &&
                          room.f_bavail * room.f_frsize >= MIN_ROOM && room.f_favail >= 100'000;
    return has_room && access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

int remove_entry(const char *path, const struct stat *, int, FTW *) {
    return remove(path);
}

void remove_tree(const std::string &path) {
    (void)nftw(path.c_str(), remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool has_server(const std::string &directory) {
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = ""};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", directory.c_str());
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        throw sim::Failure(std::string("socket: ") + strerror(errno));
    const bool connected =
        connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0;
    close(fd);
    return connected;
}

// Begins with the last directory, because most of them exist.
void make_parents(const std::string &path) {
    const std::string parent = path.substr(0, path.rfind('/'));
    if (parent.empty() || mkdir(parent.c_str(), 0700) == 0 || errno != ENOENT)
        return;
    make_parents(parent);
    (void)mkdir(parent.c_str(), 0700); // fopen() reports a failure
}

void write_file(const std::string &path, const std::string &content) {
    FILE *file = fopen(path.c_str(), "we");
    if (file == nullptr && errno == ENOENT) {
        make_parents(path);
        file = fopen(path.c_str(), "we");
    }
    if (file == nullptr || fputs(content.c_str(), file) < 0 || fclose(file) != 0)
        refuse("%s: %s", path.c_str(), strerror(errno));
}

// A regular file, which sim/client/preload/files.cc shows as a character device with this
// number.
void write_device_file(const std::string &path, dev_t number) {
    write_file(path, "");
    if (truncate(path.c_str(), static_cast<off_t>(number)) != 0 ||
        chmod(path.c_str(), 01666) != 0)
        refuse("%s: %s", path.c_str(), strerror(errno));
}

// Replaces the link of a removed device.
void make_link(const std::string &path, const std::string &target) {
    (void)unlink(path.c_str());
    if (symlink(target.c_str(), path.c_str()) != 0)
        refuse("%s: %s", path.c_str(), strerror(errno));
}

void write_line(const std::string &path, const std::string &line) {
    write_file(path, line + "\n");
}

// A program that reads the file meanwhile gets the old line or the new one.
void replace_line(const std::string &path, const std::string &line) {
    const std::string aside = path + ".new";
    write_line(aside, line);
    if (rename(aside.c_str(), path.c_str()) != 0)
        refuse("%s: %s", path.c_str(), strerror(errno));
}

// Formats a GUID or GID as the kernel does: in groups of four hexadecimal digits.
std::string hex_groups(const uint8_t *bytes, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; i += 2) {
        char group[8];
        snprintf(group, sizeof(group), "%s%02x%02x", i == 0 ? "" : ":", bytes[i], bytes[i + 1]);
        text += group;
    }
    return text;
}

std::string hex_bytes(const std::vector<uint8_t> &bytes) {
    std::string text;
    for (const uint8_t byte : bytes) {
        char digits[8];
        snprintf(digits, sizeof(digits), "%s%02x", text.empty() ? "" : ":", byte);
        text += digits;
    }
    return text;
}

std::string guid_of(const sim::Device &device) {
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = static_cast<uint8_t>(device.guid >> (56 - 8 * i));
    return hex_groups(bytes, sizeof(bytes));
}

std::string index_of(const sim::Device &device) {
    return std::to_string(device.index);
}

// Linux, drivers/infiniband/core/sysfs.c: the formats of these files.
void write_port(const std::string &port, const sim::Device &device) {
    const bool is_infiniband = device.profile->transport == SIM_INFINIBAND;
    char lid[16];
    snprintf(lid, sizeof(lid), "0x%x", is_infiniband ? device.lid : 0U);
    write_line(port + "rate", "100 Gb/sec (4X EDR)");
    write_line(port + "link_layer", is_infiniband ? "InfiniBand" : "Ethernet");
    write_line(port + "lid", lid);
    write_line(port + "lid_mask_count", "0");
    write_line(port + "sm_lid", is_infiniband ? "0x1" : "0x0");
    write_line(port + "sm_sl", "0");
    write_line(port + "cap_mask", "0x00010000");
    write_line(port + "pkeys/0", "0xffff");
    for (unsigned i = 0; i < device.gid_count(); i++) {
        const std::string index = std::to_string(i);
        const ibv_gid gid = device.reported_gid(i);
        write_line(port + "gids/" + index, hex_groups(gid.raw, sizeof(gid)));
        write_line(port + "gid_attrs/types/" + index, is_infiniband ? "IB/RoCE v1" : "RoCE v2");
        write_line(port + "gid_attrs/ndevs/" + index, device.interface());
    }
}

// sim/client/preload/files.cc replaces the content of files with these permissions when a
// program opens them.
void write_counters(const std::string &port, const sim::Device &device) {
    for (const sim::DriverCounter &counter : sim::counters_of(*device.profile)) {
        const std::string path = port + counter.group + "/" + counter.name;
        write_line(path, "0");
        if (chmod(path.c_str(), 01444) != 0)
            refuse("%s: %s", path.c_str(), strerror(errno));
    }
    if (!sim::counters_of(*device.profile).empty())
        write_line(port + "hw_counters/lifespan", "10");
}

std::string device_base(const std::string &root, const sim::Device &device) {
    return root + "/sys/devices/sim" + index_of(device) + "/infiniband/" + device.name + "/";
}

// The hardware address, from which the kernel derives the GUID: an Ethernet address, or that of
// IP over InfiniBand, which consists of a QP number and the GID. It changes with the interface
// of a bond that is active.
std::string hardware_address(const sim::Device &device) {
    std::vector<uint8_t> bytes;
    if (device.profile->transport == SIM_INFINIBAND) {
        bytes = {0, 0, 0, static_cast<uint8_t>(0x48 + device.address_changes)};
        bytes.insert(bytes.end(), device.gids[0].raw, device.gids[0].raw + sizeof(ibv_gid));
    } else {
        const auto address = device.link_address();
        bytes.assign(address.begin(), address.end());
        bytes[3] = static_cast<uint8_t>(device.address_changes);
    }
    return hex_bytes(bytes);
}

// Linux, net/core/net-sysfs.c: the files of an interface that faults do not change.
void write_interface(const std::string &directory, const std::string &name,
                     std::initializer_list<std::pair<const char *, std::string>> files) {
    for (const auto &[file, line] : files)
        write_line(directory + file, line);
    for (const char *const zero :
         {"addr_assign_type", "dormant", "link_mode", "netdev_group", "proto_down",
          "statistics/rx_bytes", "statistics/rx_dropped", "statistics/rx_errors",
          "statistics/rx_packets", "statistics/tx_bytes", "statistics/tx_dropped",
          "statistics/tx_errors", "statistics/tx_packets"})
        write_line(directory + zero, "0");
    for (const char *const zero : {"dev_id", "dev_port"})
        write_line(directory + zero, "0x0");
    write_line(directory + "tx_queue_len", "1000");
    write_line(directory + "uevent",
               "INTERFACE=" + name + "\nIFINDEX=" + files.begin()->second);
}

void write_loopback(const std::string &root) {
    const std::string directory = root + "/sys/devices/virtual/net/lo/";
    write_interface(directory, "lo",
                    {{"ifindex", "1"},
                     {"iflink", "1"},
                     {"flags", "0x9"},
                     {"type", "772"},
                     {"addr_len", "6"},
                     {"address", "00:00:00:00:00:00"},
                     {"broadcast", "00:00:00:00:00:00"},
                     {"mtu", "65536"},
                     {"operstate", "unknown"},
                     {"carrier", "1"},
                     {"carrier_changes", "0"}});
    make_parents(root + "/sys/class/net/lo");
    make_link(root + "/sys/class/net/lo", "../../devices/virtual/net/lo");
}

void write_netdev(const std::string &root, const sim::Device &device) {
    const bool is_infiniband = device.profile->transport == SIM_INFINIBAND;
    const std::string name = device.interface(),
                      index = std::to_string(device.interface_index()),
                      parent = sim_is_software(device.profile) ? "virtual" : name;
    const std::string directory = root + "/sys/devices/" + parent + "/net/" + name + "/";
    write_interface(
        directory, name,
        {{"ifindex", index},
         {"iflink", index},
         {"flags", "0x1003"}, // IFF_UP, IFF_BROADCAST and IFF_MULTICAST
         {"type", is_infiniband ? "32" : "1"},
         {"addr_len", is_infiniband ? "20" : "6"},
         {"broadcast", is_infiniband
                           ? "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff"
                           : "ff:ff:ff:ff:ff:ff"},
         {"mtu", is_infiniband ? "2044" : "1500"}});
    if (!sim_is_software(device.profile))
        make_link(directory + "device", "../../../" + name);
    make_parents(root + "/sys/class/net/" + name);
    make_link(root + "/sys/class/net/" + name, "../../devices/" + parent + "/net/" + name);
}

// The files that a fault changes. Linux, drivers/infiniband/core/sysfs.c, state_show() and
// phys_state_show(); Verbs::query_port() has the same numbers.
void write_state(const std::string &root, const sim::Device &device) {
    const std::string port = device_base(root, device) + "ports/1/";
    replace_line(port + "state", device.port_is_up ? "4: ACTIVE" : "1: DOWN");
    replace_line(port + "phys_state", device.port_is_up ? "5: LinkUp" : "3: Disabled");
    const std::string netdev = root + "/sys/class/net/" + device.interface() + "/";
    replace_line(netdev + "operstate", device.port_is_up ? "up" : "down");
    replace_line(netdev + "carrier", device.port_is_up ? "1" : "0");
    replace_line(netdev + "carrier_changes", std::to_string(device.port_changes));
    replace_line(netdev + "speed", device.port_is_up ? "100000" : "-1");
    replace_line(netdev + "duplex", device.port_is_up ? "full" : "unknown");
    replace_line(netdev + "address", hardware_address(device));
}

// The files by which programs find a device. The kernel removes them with it.
std::array<std::string, 3> device_entries(const std::string &root, const sim::Device &device) {
    return {root + "/sys/class/infiniband/" + device.name,
            root + "/sys/class/infiniband_verbs/uverbs" + index_of(device),
            root + "/dev/infiniband/uverbs" + index_of(device)};
}

void write_device(const std::string &root, const sim::Device &device) {
    const std::string index = index_of(device);
    const std::string parent = root + "/sys/devices/sim" + index + "/",
                      base = device_base(root, device),
                      verbs = parent + "infiniband_verbs/uverbs" + index + "/";
    const bool is_iwarp = device.profile->transport == SIM_IWARP;
    write_line(base + "node_guid", guid_of(device));
    write_line(base + "sys_image_guid", guid_of(device));
    write_line(base + "node_type", is_iwarp ? "4: RNIC" : "1: CA");
    write_line(base + "node_desc", "simulated");
    write_line(base + "fw_ver", device.profile->attr.fw_ver);
    write_port(base + "ports/1/", device);
    write_counters(base + "ports/1/", device);
    write_line(verbs + "ibdev", device.name);
    write_line(verbs + "abi_version", "1");
    write_line(verbs + "dev", std::to_string(sim::Device::DEVICE_MAJOR) + ":" +
                                  std::to_string(device.device_minor()));
    write_netdev(root, device);
    if (sim_is_software(device.profile)) {
        write_line(base + "parent", device.interface());
    } else {
        write_line(parent + "numa_node", "-1");
        write_file(root + "/sys/bus/drivers/" + device.profile->driver + "/bind", "");
        make_link(parent + "driver", root + "/sys/bus/drivers/" + device.profile->driver);
        make_link(base + "device", "../../../sim" + index);
        make_link(verbs + "device", "../../../sim" + index);
    }
    write_state(root, device);
    const auto [link, verbs_link, device_file] = device_entries(root, device);
    write_device_file(device_file, makedev(sim::Device::DEVICE_MAJOR, device.device_minor()));
    make_parents(link);
    make_parents(verbs_link);
    make_link(link, "../../devices/sim" + index + "/infiniband/" + device.name);
    make_link(verbs_link, "../../devices/sim" + index + "/infiniband_verbs/uverbs" + index);
}

// The files of /proc/net that programs read.
void write_proc(const std::string &root, const sim::Host &host) {
    constexpr const char *ZEROS = ":       0       0    0    0    0     0          0         0 "
                                  "       0       0    0    0 "
                                  "   0     0       0          0\n";
    std::string dev = "Inter-|   Receive                                                |  "
                      "Transmit\n face |bytes    packets errs drop fifo frame compressed "
                      "multicast|bytes    packets errs drop fifo colls carrier compressed\n"
                      "    lo" +
                      std::string(ZEROS),
                route = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU"
                        "\tWindow\tIRTT\n",
                inet6 = "00000000000000000000000000000001 01 80 10 80       lo\n";
    for (const std::unique_ptr<sim::Device> &device : host.devices) {
        char line[128];
        dev += "  " + device->interface() + ZEROS;
        snprintf(line, sizeof(line), "%s\t%08X\t00000000\t0001\t0\t0\t0\t%08X\t0\t0\t0\n",
                 device->interface().c_str(), htonl(0x0a4d0000), htonl(0xffff0000));
        route += line;
        snprintf(line, sizeof(line), "fd77000000000000000000000000%04x %02x 40 00 80 %8s\n",
                 host.number, device->interface_index(), device->interface().c_str());
        inet6 += line;
    }
    write_file(root + "/proc/net/dev", dev);
    write_file(root + "/proc/net/route", route);
    write_file(root + "/proc/net/if_inet6", inet6);
}

// The files may be gone since an earlier fault. A device that replaces this one has its name.
void remove_device(const std::string &root, const sim::Host &host, const sim::Device &device) {
    const auto [link, verbs_link, device_file] = device_entries(root, device);
    const bool is_replaced = std::ranges::any_of(host.devices, [&](const auto &other) {
        return !other->removed && other->name == device.name;
    });
    if (!is_replaced)
        (void)unlink(link.c_str());
    (void)unlink(verbs_link.c_str());
    (void)unlink(device_file.c_str());
}

} // namespace

Directory::Directory(const std::string &name) {
    if (name.empty()) {
        path_ = parent_directory() + "/rdma-sim-XXXXXX";
        if (mkdtemp(path_.data()) == nullptr)
            refuse("%s: %s", path_.c_str(), strerror(errno));
    } else {
        path_ = of_name(name);
        if (has_server(path_))
            refuse("a fabric %s runs already: use another --name, or --join it", name.c_str());
        remove_tree(path_); // left by a killed rdma-sim
        if (mkdir(path_.c_str(), 0700) != 0)
            refuse("%s: %s", path_.c_str(), strerror(errno));
    }
    static std::string created; // exit() runs no destructors
    created = path_;
    atexit([] { remove_tree(created); });
}

Directory::~Directory() {
    remove_tree(path_);
}

std::string Directory::of_name(const std::string &name) {
    return parent_directory() + "/rdma-sim-" + std::to_string(getuid()) + "-" + name;
}

std::string Directory::root_of(const sim::Host &host) const {
    return path_ + "/host" + std::to_string(host.number);
}

void Directory::update_host(const sim::Host &host) const {
    const std::string root = root_of(host);
    for (const std::unique_ptr<sim::Device> &device : host.devices)
        if (!device->removed && access(device_base(root, *device).c_str(), F_OK) != 0)
            write_device(root, *device); // it replaces a removed one
        else if (!device->removed)
            write_state(root, *device);
        else
            remove_device(root, host, *device);
}

void Directory::add_host(const sim::Host &host, const std::string &pmem) const {
    const std::string root = root_of(host);
    write_loopback(root);
    for (const std::unique_ptr<sim::Device> &device : host.devices)
        write_device(root, *device);
    write_proc(root, host);
    write_line(root + "/sys/class/infiniband_verbs/abi_version", "6");
    write_device_file(root + "/dev/infiniband/rdma_cm", makedev(10, 122));
    write_file(root + "/pmem", pmem);
}
