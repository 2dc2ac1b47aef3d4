// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// info_machine.cc -- a recorded machine that replaces this one for rpma-info: the directory
// $MACHINE has the files of the kernel, and a file "machine" with the results of the kernel and
// the providers, one "key value" per line (info_recorded.py)
//
// Definitions here precede libibverbs, librdmacm and the C library.

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <ifaddrs.h>
#include <map>
#include <rdma/rdma_cma.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "info.hh"

#undef ibv_reg_mr
#undef ibv_query_port

std::string kernel_root() {
    static const std::string directory = std::getenv("MACHINE");
    return directory;
}

namespace {

const std::multimap<std::string, std::string> &settings() {
    static const auto all = [] {
        std::multimap<std::string, std::string> found;
        std::ifstream file(kernel_root() + "/machine");
        for (std::string key, value; std::getline(file, key, ' ') && std::getline(file, value);)
            found.emplace(key, value);
        return found;
    }();
    return all;
}

std::string text(const char *key) {
    const auto found = settings().find(key);
    return found == settings().end() ? "" : found->second;
}

uint64_t number(const char *key) {
    return std::strtoull(text(key).c_str(), nullptr, 0);
}
int count(const char *key) {
    return static_cast<int>(number(key));
}

// True if the setting "NETDEV ADDRESS leads" exists for the address, so that it belongs to the
// recorded device.
bool leads(const sockaddr *to, const char *key) {
    char digits[INET6_ADDRSTRLEN] = "";
    if (to->sa_family == AF_INET)
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in *>(to)->sin_addr, digits,
                  sizeof(digits));
    else
        inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6 *>(to)->sin6_addr, digits,
                  sizeof(digits));
    const auto [begin, end] = settings().equal_range(key);
    for (auto each = begin; each != end; ++each)
        if (each->second.find(std::string(" ") + digits + " leads") != std::string::npos)
            return true;
    return false;
}

int query_device(ibv_context *, const ibv_query_device_ex_input *, ibv_device_attr_ex *to,
                 size_t size) {
    ibv_device_attr_ex full = {};
    ibv_device_attr &attr = full.orig_attr;
    if (number("query_error") != 0)
        return count("query_error");
    std::strncpy(attr.fw_ver, text("fw_ver").c_str(), sizeof(attr.fw_ver) - 1);
    attr.node_guid = htobe64(number("node_guid"));
    attr.vendor_id = static_cast<uint32_t>(number("vendor_id"));
    attr.vendor_part_id = static_cast<uint32_t>(number("vendor_part_id"));
    attr.atomic_cap = static_cast<ibv_atomic_cap>(number("atomic_cap"));
    attr.max_qp_init_rd_atom = count("max_qp_init_rd_atom");
    attr.max_qp_rd_atom = count("max_qp_rd_atom");
    attr.phys_port_cnt = static_cast<uint8_t>(std::max<uint64_t>(number("ports"), 1));
    attr.max_cqe = count("max_cqe");
    attr.max_qp_wr = count("max_qp_wr");
    attr.max_srq_wr = count("max_srq_wr");
    attr.max_sge = count("max_sge");
    attr.max_sge_rd = count("max_sge_rd");
    attr.max_srq_sge = count("max_srq_sge");
    attr.max_qp = count("max_qp");
    attr.max_cq = count("max_cq");
    attr.max_mr = count("max_mr");
    attr.max_mr_size = number("max_mr_size");
    full.device_cap_flags_ex = number("device_cap_flags_ex");
    if (number("odp") != 0) {
        full.odp_caps.general_caps = IBV_ODP_SUPPORT;
        full.odp_caps.per_transport_caps.rc_odp_caps =
            IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    }
    std::memset(to, 0, size);
    std::memcpy(to, &full, std::min(size, sizeof(full)));
    return 0;
}

// The second port is broken, and the third one reports few values.
int query_port(ibv_context *, uint8_t asked, ibv_port_attr *to, size_t size) {
    ibv_port_attr port = {};
    if (asked == 2)
        return EINVAL;
    port.state = IBV_PORT_ACTIVE;
    port.active_speed = 8;
    if (asked == 1) {
        port.state = static_cast<ibv_port_state>(number("state"));
        port.active_mtu = static_cast<ibv_mtu>(number("active_mtu"));
        port.max_mtu = static_cast<ibv_mtu>(number("max_mtu"));
        port.lid = static_cast<uint16_t>(number("lid"));
        port.active_speed = static_cast<uint8_t>(number("active_speed"));
        port.link_layer = static_cast<uint8_t>(number("link_layer"));
    }
    std::memset(to, 0, size);
    std::memcpy(to, &port, std::min(size, sizeof(port)));
    return 0;
}

ibv_device *recorded_device() {
    static ibv_device device;
    std::strncpy(device.name, text("name").c_str(), sizeof(device.name) - 1);
    std::strncpy(device.dev_name, "uverbs0", sizeof(device.dev_name) - 1);
    device.transport_type =
        text("transport") == "iWARP" ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
    return &device;
}

ibv_context *the_context() {
    static verbs_context verbs;
    verbs.sz = sizeof(verbs);
    verbs.query_device_ex = query_device;
    verbs.query_port = query_port;
    verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    verbs.context.device = recorded_device();
    verbs.context.num_comp_vectors = count("num_comp_vectors");
    return &verbs.context;
}

// The errno of the kernel or the device for the registration, or 0.
int access_error(unsigned access) {
    constexpr unsigned FLUSH_GLOBAL = 1U << 8, FLUSH_PERSISTENT = 1U << 9;
    // rpma-info requests each kind of access.
    constexpr unsigned ALL =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    if ((access & ALL) != ALL)
        return EPERM;
    if (number("reg_error") != 0)
        return count("reg_error");
    const bool on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
    const std::string kind = text("memory");
    if ((on_demand && number("odp") == 0) ||
        // Linux 7.3, include/rdma/ib_verbs.h, ib_check_mr_access()
        ((access & (FLUSH_GLOBAL | FLUSH_PERSISTENT)) != 0 &&
         number("device_cap_flags_ex") == 0) ||
        // Linux 7.3, mm/gup.c, check_vma_flags(): FS-DAX pages cannot be pinned for long.
        (kind == "fsdax" && !on_demand))
        return EOPNOTSUPP;
    // Linux 7.3, mm/gup.c, writable_file_mapping_allowed(): nor can pages of the page cache.
    if (kind == "file" && !on_demand)
        return EFAULT;
    // Linux 7.3, drivers/infiniband/sw/rxe/rxe_mr.c, rxe_mr_fill_pages_from_sgt()
    if ((access & FLUSH_PERSISTENT) != 0 && !on_demand && kind != "devdax")
        return EINVAL;
    return 0;
}

template <class Object> Object *made(int error) {
    errno = error;
    return error == 0 ? static_cast<Object *>(std::calloc(1, sizeof(Object))) : nullptr;
}

} // namespace

rpma::peer_cfg::served served_by(const rpma::peer &) {
    return {number("served") != 0, number("served") != 0};
}

extern "C" {

ibv_device **ibv_get_device_list(int *number_of) {
    (void)std::fputs("libibverbs: Warning: not for the report\n", stderr);
    static ibv_device *list[2];
    list[0] = text("listed") == "no" ? nullptr : recorded_device();
    if (number_of != nullptr) // librdmacm passes a pointer
        *number_of = list[0] == nullptr ? 0 : 1;
    return list;
}
void ibv_free_device_list(ibv_device **) {}
const char *ibv_get_device_name(ibv_device *device) {
    return device->name;
}
ibv_context *ibv_open_device(ibv_device *) {
    errno = count("open_error");
    return errno == 0 ? the_context() : nullptr;
}
int ibv_close_device(ibv_context *) {
    return 0;
}

ssize_t _ibv_query_gid_table(ibv_context *, ibv_gid_entry *entries, size_t room, uint32_t flags,
                             size_t) {
    ssize_t found = 0;
    if (room < settings().count("gid") || flags != 0)
        return -EINVAL;
    const auto [begin, end] = settings().equal_range("gid");
    for (auto each = begin; each != end; ++each) {
        std::istringstream words(each->second);
        std::string address;
        words >> entries[found].gid_type >> address;
        entries[found].gid_index = static_cast<uint32_t>(found);
        if (!(words >> entries[found].port_num))
            entries[found].port_num = 1;
        inet_pton(AF_INET6, address.c_str(), entries[found].gid.raw);
        found++;
    }
    return found;
}

ibv_pd *ibv_alloc_pd(ibv_context *context) {
    auto *pd = made<ibv_pd>(0);
    pd->context = context;
    return pd;
}
int ibv_dealloc_pd(ibv_pd *pd) {
    return std::free(pd), 0;
}
ibv_cq *ibv_create_cq(ibv_context *, int cqe, void *, ibv_comp_channel *, int vector) {
    return made<ibv_cq>(cqe == 20 && vector == 0 ? 0 : EINVAL);
}
int ibv_destroy_cq(ibv_cq *cq) {
    return std::free(cq), 0;
}
ibv_qp *ibv_create_qp(ibv_pd *, ibv_qp_init_attr *attr) {
    const ibv_qp_cap &cap = attr->cap;
    const bool is_default = attr->qp_type == IBV_QPT_RC && cap.max_send_wr == 10 &&
                            cap.max_recv_wr == 10 && cap.max_send_sge == 1 &&
                            cap.max_recv_sge == 1 && attr->send_cq != nullptr &&
                            attr->recv_cq != nullptr;
    return made<ibv_qp>(!is_default || cap.max_inline_data > number("max_inline_data") ||
                                number("no_rc") != 0
                            ? EINVAL
                            : 0);
}
int ibv_destroy_qp(ibv_qp *qp) {
    return std::free(qp), 0;
}
ibv_mr *ibv_reg_mr_iova2(ibv_pd *, void *, size_t, uint64_t, unsigned access) {
    return made<ibv_mr>(access_error(access));
}
ibv_mr *ibv_reg_mr(ibv_pd *, void *, size_t, int access) {
    return made<ibv_mr>(access_error(static_cast<unsigned>(access)));
}
int ibv_dereg_mr(ibv_mr *mr) {
    return std::free(mr), 0;
}

int rdma_create_id(rdma_event_channel *, rdma_cm_id **id, void *, rdma_port_space) {
    *id = made<rdma_cm_id>(0);
    return 0;
}
int rdma_destroy_id(rdma_cm_id *id) {
    return std::free(id), 0;
}
int rdma_bind_addr(rdma_cm_id *id, sockaddr *address) {
    errno = leads(address, "address") ? 0 : ENODEV;
    id->verbs = errno == 0 ? the_context() : nullptr;
    return errno == 0 ? 0 : -1;
}
int rdma_resolve_addr(rdma_cm_id *id, sockaddr *, sockaddr *address, int) {
    errno = leads(address, "remote") ? 0 : ENODEV;
    id->verbs = errno == 0 ? the_context() : nullptr;
    return errno == 0 ? 0 : -1;
}

// "closed" is a file that this user may neither read nor write. A file mode would not deny
// access to root.
int access(const char *path, int mode) noexcept {
    if (mode == (R_OK | W_OK) && kernel_root() + text("closed") == path) {
        errno = EACCES;
        return -1;
    }
    return static_cast<int>(syscall(SYS_faccessat, AT_FDCWD, path, mode));
}

int uname(utsname *to) noexcept {
    *to = {};
    std::strcpy(to->release, "7.3.0");
    return 0;
}

// The settings are "NETDEV ADDRESS" or "NETDEV ADDRESS leads". An invalid address stands for
// one of another family, "none" for a missing one.
int getifaddrs(ifaddrs **list) noexcept {
    *list = nullptr;
    if (text("address") == "fails")
        return -1;
    const auto [begin, end] = settings().equal_range("address");
    for (auto each = begin; each != end; ++each) {
        std::istringstream words(each->second);
        std::string netdev, digits;
        words >> netdev >> digits;
        auto *entry = made<ifaddrs>(0);
        auto *ip6 = made<sockaddr_in6>(0);
        auto *ip4 = reinterpret_cast<sockaddr_in *>(ip6);
        entry->ifa_name = strdup(netdev.c_str());
        entry->ifa_addr = reinterpret_cast<sockaddr *>(ip6);
        if (inet_pton(AF_INET, digits.c_str(), &ip4->sin_addr) == 1)
            ip4->sin_family = AF_INET;
        else if (inet_pton(AF_INET6, digits.c_str(), &ip6->sin6_addr) == 1)
            ip6->sin6_family = AF_INET6;
        else if (digits == "none")
            std::free(std::exchange(entry->ifa_addr, nullptr));
        entry->ifa_next = *list;
        *list = entry;
    }
    return 0;
}
void freeifaddrs(ifaddrs *list) noexcept {
    while (list != nullptr) {
        ifaddrs *next = list->ifa_next;
        std::free(list->ifa_addr);
        std::free(list->ifa_name);
        std::free(list);
        list = next;
    }
}

// The file that --memory names, as a file or as a device DAX.
int stat(const char *path, struct stat *to) noexcept {
    if (syscall(SYS_newfstatat, AT_FDCWD, path, to, 0) != 0)
        return -1;
    to->st_dev = makedev(259, 0);
    if (text("memory") == "devdax") {
        to->st_mode = S_IFCHR | 0600;
        to->st_rdev = makedev(251, 0);
    }
    return 0;
}
int fstatfs(int, struct statfs *to) noexcept {
    *to = {};
    to->f_type = static_cast<decltype(to->f_type)>(number("f_type"));
    to->f_bsize = 2 << 20;
    return 0;
}
int statx(int, const char *, int flags, unsigned, struct statx *to) noexcept {
    if (flags != AT_EMPTY_PATH)
        return -1;
    *to = {};
    to->stx_attributes = number("stx_attributes");
    return 0;
}
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t at) noexcept {
    if ((flags & MAP_SYNC) != 0 && number("map_sync") == 0) {
        errno = EOPNOTSUPP;
        return MAP_FAILED;
    }
    if ((flags & MAP_SYNC) != 0)
        flags = MAP_SHARED;
    if (fd >= 0 && number("mmap_error") != 0) {
        errno = count("mmap_error");
        return MAP_FAILED;
    }
    // drivers/dax/device.c of Linux, check_vma()
    if (fd >= 0 && number("align") != 0 && size % number("align") != 0) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    return reinterpret_cast<void *>(
        syscall(SYS_mmap, address, size, protection, flags, fd, at));
}
}
