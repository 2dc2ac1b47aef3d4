// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// interfaces.cc -- functions and ioctl() requests about network interfaces

#include "interfaces.hh"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <initializer_list>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "preload.hh"

namespace {

// Reads a file of at most `size` bytes with the end of a string; false: it does not exist.
bool read_file(const char *path, char *to, size_t size) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, to, size - 1);
    if (fd >= 0)
        close(fd);
    to[length < 0 ? 0 : length] = '\0';
    return length >= 0;
}

// A file of an interface.
struct Text {
    char bytes[128];
    Text(const char *interface, const char *file) {
        char path[128];
        snprintf(path, sizeof(path), "/sys/class/net/%s/%s", interface, file);
        (void)read_file(path, bytes, sizeof(bytes));
    }
    unsigned number() const { return static_cast<unsigned>(strtoul(bytes, nullptr, 0)); }
    bool is(const char *word) const { return strncmp(bytes, word, strlen(word)) == 0; }
};

size_t read_bytes(const char *text, uint8_t (&to)[32]) {
    size_t count = 0;
    unsigned byte;
    for (int used; count < sizeof(to) && sscanf(text, "%2x%n", &byte, &used) == 1;
         text += used + (text[used] == ':'))
        to[count++] = static_cast<uint8_t>(byte);
    return count;
}

void read_interface(const char *name, Interface &to) {
    to = {};
    snprintf(to.name, sizeof(to.name), "%s", name);
    to.index = Text(name, "ifindex").number();
    to.mtu = Text(name, "mtu").number();
    to.type = Text(name, "type").number();
    to.tx_queue_len = Text(name, "tx_queue_len").number();
    to.has_carrier = Text(name, "carrier").number() != 0;
    to.carrier_changes = Text(name, "carrier_changes").number();
    const Text state(name, "operstate");
    to.operstate = state.is("up")     ? IF_OPER_UP
                   : state.is("down") ? IF_OPER_DOWN
                                      : IF_OPER_UNKNOWN;
    to.flags = Text(name, "flags").number();
    if (to.has_carrier)
        to.flags |= unsigned{IFF_RUNNING} | unsigned{IFF_LOWER_UP};
    to.address_length =
        static_cast<uint8_t>(read_bytes(Text(name, "address").bytes, to.address));
    (void)read_bytes(Text(name, "broadcast").bytes, to.broadcast);
}

} // namespace

Interfaces::Interfaces() {
    const int error = errno;
    DIR *const directory = opendir("/sys/class/net");
    while (const dirent *const entry = directory == nullptr ? nullptr : readdir(directory))
        if (entry->d_name[0] != '.' && count_ < sizeof(all_) / sizeof(all_[0]))
            read_interface(entry->d_name, all_[count_++]);
    if (directory != nullptr)
        closedir(directory);
    qsort(all_, count_, sizeof(all_[0]), [](const void *one, const void *other) {
        return static_cast<int>(static_cast<const Interface *>(one)->index) -
               static_cast<int>(static_cast<const Interface *>(other)->index);
    });
    errno = error;
}

const Interface *Interfaces::find(const char *name) const {
    for (const Interface &each : *this)
        if (strncmp(each.name, name, IFNAMSIZ) == 0)
            return &each;
    return nullptr;
}

const Interface *Interfaces::find(unsigned index) const {
    for (const Interface &each : *this)
        if (each.index == index)
            return &each;
    return nullptr;
}

InterfaceAddress address_of(const Interface &interface, int family) {
    const bool is_loopback = (interface.flags & IFF_LOOPBACK) != 0;
    InterfaceAddress address = {};
    address.family = family;
    address.scope = is_loopback ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
    if (family == AF_INET) {
        address.prefix = is_loopback ? 8 : 16;
        (void)inet_pton(AF_INET, is_loopback ? "127.0.0.1" : "10.77.0.0", address.bytes);
    } else {
        address.prefix = is_loopback ? 128 : 64;
        (void)inet_pton(AF_INET6, is_loopback ? "::1" : "fd77::", address.bytes);
    }
    if (!is_loopback) {
        address.bytes[address.size() - 2] = static_cast<uint8_t>(settings().host >> 8);
        address.bytes[address.size() - 1] = static_cast<uint8_t>(settings().host);
    }
    return address;
}

bool InterfaceAddress::is_in_network(const void *other) const {
    // Each prefix is a multiple of 8 bits.
    return memcmp(bytes, other, prefix / 8) == 0;
}

uint32_t mask_of(const InterfaceAddress &address) {
    return htonl(UINT32_MAX << (32 - address.prefix));
}

uint32_t broadcast_of(const InterfaceAddress &address) {
    uint32_t ip;
    memcpy(&ip, address.bytes, sizeof(ip));
    return ip | ~mask_of(address);
}

size_t hardware_address_of(unsigned host, const Interface &interface, uint8_t (&to)[32]) {
    char path[512], text[128];
    snprintf(path, sizeof(path), "%s/../host%u/sys/class/net/%s/address", settings().root, host,
             interface.name);
    return read_file(path, text, sizeof(text)) ? read_bytes(text, to) : 0;
}

// ---- functions of the C library ------------------------------------------------------------

EXPORTED unsigned if_nametoindex(const char *name) noexcept {
    if (settings().host == 0)
        return REAL(if_nametoindex)(name);
    const Interfaces all;
    const Interface *const found = all.find(name);
    if (found != nullptr)
        return found->index;
    errno = ENODEV;
    return 0;
}

EXPORTED char *if_indextoname(unsigned index, char *name) noexcept {
    if (settings().host == 0)
        return REAL(if_indextoname)(index, name);
    const Interfaces all;
    const Interface *const found = all.find(index);
    if (found != nullptr)
        return strcpy(name, found->name);
    errno = ENXIO;
    return nullptr;
}

// if_freenameindex() of glibc frees each name and the array.
EXPORTED struct if_nameindex *if_nameindex() noexcept {
    if (settings().host == 0)
        return REAL(if_nameindex)();
    const Interfaces all;
    const auto count = static_cast<size_t>(all.end() - all.begin());
    auto *const list =
        static_cast<struct if_nameindex *>(calloc(count + 1, sizeof(struct if_nameindex)));
    for (size_t i = 0; list != nullptr && i < count; i++) {
        list[i] = {all.begin()[i].index, strdup(all.begin()[i].name)};
        if (list[i].if_name == nullptr) {
            if_freenameindex(list);
            errno = ENOBUFS;
            return nullptr;
        }
    }
    return list;
}

namespace {

union Address {
    sockaddr any;
    sockaddr_in ip4;
    sockaddr_in6 ip6;
    sockaddr_ll link;
    uint8_t room[sizeof(sockaddr_ll) + 16]; // InfiniBand addresses are longer
};

void set_address(Address &to, int family, const void *bytes) {
    to.any.sa_family = static_cast<sa_family_t>(family);
    if (family == AF_INET)
        memcpy(&to.ip4.sin_addr, bytes, sizeof(in_addr));
    else
        memcpy(&to.ip6.sin6_addr, bytes, sizeof(in6_addr));
}

void set_link(Address &to, const Interface &interface, const uint8_t *bytes) {
    to.link.sll_family = AF_PACKET;
    to.link.sll_ifindex = static_cast<int>(interface.index);
    to.link.sll_hatype = static_cast<uint16_t>(interface.type);
    to.link.sll_halen = interface.address_length;
    memcpy(to.link.sll_addr, bytes, interface.address_length);
}

// An entry of getifaddrs(), with its data. The list is in one allocation, because
// freeifaddrs() of glibc is free().
struct Entry {
    ifaddrs head;
    char name[IFNAMSIZ];
    Address address, mask, broadcast;
    rtnl_link_stats statistics;
};

void fill_entry(Entry &entry, const Interface &interface, int family) {
    snprintf(entry.name, sizeof(entry.name), "%s", interface.name);
    entry.head.ifa_name = entry.name;
    entry.head.ifa_flags = interface.flags;
    entry.head.ifa_addr = &entry.address.any;
    if (family == AF_PACKET) {
        set_link(entry.address, interface, interface.address);
        set_link(entry.broadcast, interface, interface.broadcast);
        entry.head.ifa_broadaddr = &entry.broadcast.any;
        entry.head.ifa_data = &entry.statistics;
        return;
    }
    const InterfaceAddress own = address_of(interface, family);
    uint8_t mask[16] = {};
    memset(mask, 0xff, own.prefix / 8);
    set_address(entry.address, family, own.bytes);
    set_address(entry.mask, family, mask);
    entry.head.ifa_netmask = &entry.mask.any;
    if (family == AF_INET && (interface.flags & IFF_BROADCAST) != 0) {
        const uint32_t broadcast = broadcast_of(own);
        set_address(entry.broadcast, family, &broadcast);
        entry.head.ifa_broadaddr = &entry.broadcast.any;
    }
}

} // namespace

EXPORTED int getifaddrs(ifaddrs **list) noexcept {
    if (settings().host == 0)
        return REAL(getifaddrs)(list);
    const Interfaces all;
    const auto count = static_cast<size_t>(all.end() - all.begin());
    auto *const entries = static_cast<Entry *>(calloc(3 * count + 1, sizeof(Entry)));
    if (entries == nullptr)
        return -1;
    Entry *entry = entries;
    for (const int family : {AF_PACKET, AF_INET, AF_INET6})
        for (const Interface &each : all) {
            fill_entry(*entry, each, family);
            entry->head.ifa_next = &entry[1].head;
            entry++;
        }
    if (entry != entries)
        entry[-1].head.ifa_next = nullptr;
    *list = entry == entries ? nullptr : &entries->head;
    if (*list == nullptr)
        free(entries);
    return 0;
}

// ---- ioctl() -------------------------------------------------------------------------------

namespace {

int get_configuration(ifconf &configuration) {
    const Interfaces all;
    int used = 0;
    for (const Interface &each : all) {
        if (configuration.ifc_buf != nullptr) {
            if (configuration.ifc_len - used < static_cast<int>(sizeof(ifreq)))
                break;
            ifreq entry = {};
            memcpy(entry.ifr_name, each.name, sizeof(each.name));
            Address address = {};
            set_address(address, AF_INET, address_of(each, AF_INET).bytes);
            memcpy(&entry.ifr_addr, &address, sizeof(entry.ifr_addr));
            memcpy(configuration.ifc_buf + used, &entry, sizeof(entry));
        }
        used += static_cast<int>(sizeof(ifreq));
    }
    configuration.ifc_len = used;
    return 0;
}

// Linux, net/ethtool/ioctl.c. Returns an error number.
int get_ethtool(const Interface &interface, void *data) {
    uint32_t command;
    if (data == nullptr)
        return EFAULT;
    memcpy(&command, data, sizeof(command));
    if (command == ETHTOOL_GLINK) {
        static_cast<ethtool_value *>(data)->data = interface.has_carrier;
        return 0;
    }
    if (command != ETHTOOL_GSET || (interface.flags & IFF_LOOPBACK) != 0)
        return EOPNOTSUPP;
    auto *const settings = static_cast<ethtool_cmd *>(data);
    const Text speed(interface.name, "speed"), duplex(interface.name, "duplex");
    *settings = {};
    settings->cmd = command;
    ethtool_cmd_speed_set(settings, speed.number());
    settings->duplex = duplex.is("full") ? DUPLEX_FULL : DUPLEX_UNKNOWN;
    settings->port = PORT_OTHER;
    return 0;
}

// Linux, net/ipv4/devinet.c: devinet_ioctl(); net/core/dev_ioctl.c: dev_ifsioc_locked().
// Returns an error number, or -1 for another request.
int get_property(unsigned long request, const Interface &interface, ifreq &to) {
    const InterfaceAddress own = address_of(interface, AF_INET);
    const uint32_t mask = mask_of(own),
                   broadcast = (interface.flags & IFF_BROADCAST) != 0 ? broadcast_of(own) : 0;
    const void *ip = nullptr;
    switch (request) {
    case SIOCGIFADDR:
    case SIOCGIFDSTADDR:
        ip = own.bytes;
        break;
    case SIOCGIFNETMASK:
        ip = &mask;
        break;
    case SIOCGIFBRDADDR:
        ip = &broadcast;
        break;
    case SIOCGIFINDEX:
        to.ifr_ifindex = static_cast<int>(interface.index);
        return 0;
    case SIOCGIFFLAGS:
        to.ifr_flags = static_cast<short>(interface.flags);
        return 0;
    case SIOCGIFMTU:
        to.ifr_mtu = static_cast<int>(interface.mtu);
        return 0;
    case SIOCGIFTXQLEN:
        to.ifr_qlen = static_cast<int>(interface.tx_queue_len);
        return 0;
    case SIOCGIFMETRIC:
        to.ifr_metric = 0;
        return 0;
    case SIOCGIFMAP:
        to.ifr_map = {};
        return 0;
    case SIOCGIFHWADDR:
        to.ifr_hwaddr = {};
        to.ifr_hwaddr.sa_family = static_cast<sa_family_t>(interface.type);
        memcpy(to.ifr_hwaddr.sa_data, interface.address,
               interface.address_length < 14 ? interface.address_length : 14U);
        return 0;
    case SIOCETHTOOL:
        return get_ethtool(interface, to.ifr_data);
    default:
        return EPERM; // a change
    }
    Address address = {};
    set_address(address, AF_INET, ip);
    memcpy(&to.ifr_addr, &address, sizeof(to.ifr_addr));
    return 0;
}

constexpr unsigned long OF_INTERFACE[] = {
    SIOCGIFADDR,    SIOCGIFDSTADDR, SIOCGIFNETMASK,     SIOCGIFBRDADDR, SIOCGIFINDEX,
    SIOCGIFFLAGS,   SIOCGIFMTU,     SIOCGIFTXQLEN,      SIOCGIFMETRIC,  SIOCGIFMAP,
    SIOCGIFHWADDR,  SIOCETHTOOL,    SIOCSIFADDR,        SIOCSIFDSTADDR, SIOCSIFNETMASK,
    SIOCSIFBRDADDR, SIOCSIFFLAGS,   SIOCSIFMTU,         SIOCSIFTXQLEN,  SIOCSIFMETRIC,
    SIOCSIFMAP,     SIOCSIFHWADDR,  SIOCSIFHWBROADCAST, SIOCSIFNAME,
};

// Returns an error number, or -1 for another request.
int execute(unsigned long request, void *argument) {
    if (request == SIOCGIFCONF)
        return argument == nullptr ? EFAULT
                                   : get_configuration(*static_cast<ifconf *>(argument));
    bool is_one = request == SIOCGIFNAME;
    for (const unsigned long each : OF_INTERFACE)
        is_one = is_one || each == request;
    if (!is_one)
        return -1;
    if (argument == nullptr)
        return EFAULT;
    auto &to = *static_cast<ifreq *>(argument);
    const Interfaces all;
    const Interface *found;
    if (request == SIOCGIFNAME) {
        found = all.find(static_cast<unsigned>(to.ifr_ifindex));
        if (found != nullptr)
            memcpy(to.ifr_name, found->name, sizeof(to.ifr_name));
        return found != nullptr ? 0 : ENODEV;
    }
    // The name of an alias begins with that of its interface and ':'.
    char name[IFNAMSIZ + 1] = {};
    memcpy(name, to.ifr_name, IFNAMSIZ);
    const bool is_alias = strchr(name, ':') != nullptr;
    name[strcspn(name, ":")] = '\0';
    found = all.find(name);
    if (found == nullptr)
        return ENODEV;
    if (is_alias && (request == SIOCGIFADDR || request == SIOCGIFDSTADDR ||
                     request == SIOCGIFNETMASK || request == SIOCGIFBRDADDR))
        return EADDRNOTAVAIL;
    return get_property(request, *found, to);
}

} // namespace

EXPORTED int ioctl(int fd, unsigned long request, ...) noexcept {
    va_list arguments;
    va_start(arguments, request);
    void *const argument = va_arg(arguments, void *);
    va_end(arguments);
    int type, error = -1;
    socklen_t length = sizeof(type);
    if (settings().host != 0 && request >> 8 == SIOCGIFNAME >> 8 &&
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0)
        error = execute(request, argument);
    if (error < 0)
        return REAL(ioctl)(fd, request, argument);
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}
