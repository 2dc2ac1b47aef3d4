// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// info.hh -- the parts of rpma-info: each returns its findings for the report

#pragma once

#include <cstdint>
#include <infiniband/verbs.h>
#include <librpma.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report.hh"

// The connections that a program plans, and the entries of each of their queues.
struct PlanSize {
    uint64_t connections, queue;
};

// options.cc: "" is an option that was not given. Returns nothing after --help and --version.
struct InfoOptions {
    std::string address, device, memory;
    std::optional<PlanSize> plan;
    bool json = false;
};
std::optional<InfoOptions> parse_options(int argc, char **argv);

// system.cc
std::string library_version(); // the version of the loaded library
Json versions();
// The default settings of connections and shared receive queues.
Json defaults();
Json limits();
bool has_cap_ipc_lock();
Json connection_manager();
// The reason why this machine has no device, and a remedy.
Json no_device(const std::string &name);

// root.cc: the directory that contains /sys, /proc and /dev (""), and the operations that
// librpma serves natively on a device. Tests link their own root.cc, so that the installed
// program always reports its own machine.
std::string kernel_root();
rpma::peer_cfg::served served_by(const rpma::peer &peer);

// sysfs.cc: reads files of the kernel
// These return nothing, "" or 0 if the file cannot be read.
std::vector<std::string> read_lines(const std::string &path);
std::string read_line(const std::string &path);
uint64_t read_number(const std::string &path);
// The path with symbolic links resolved; "" if it does not exist.
std::string real_path(const std::string &path);
// The part of a path after the last '/'.
std::string base_name(const std::string &path);
// 0 if this process may access the file, otherwise an error number.
int access_error(const std::string &path, int mode);
std::vector<std::string> list_directory(const std::string &directory);

// address.cc: the addresses of this machine, and the device that librpma finds for each
struct Address {
    std::string text; // a link-local address with its scope
    std::string netdev;
    std::string device; // "" if it belongs to no device
};
std::vector<Address> find_addresses();
// Finds the device for an address. Sets *is_remote if the address is not one of this machine.
// Throws rpma::error.
std::string find_device(const std::string &address, bool *is_remote);
// Returns true if the address of a GID belongs to this process's network namespace.
bool is_own_address(const std::vector<Address> &all, const std::string &text);

class memory;

// device.cc
struct Search {
    std::optional<std::string> device; // nothing: all devices
    const std::vector<Address> &addresses;
    const memory *tried; // nullptr: none
    bool has_any;        // the machine has a device, selected or not
};
Json devices(Search &search);

// driver.cc: adds the driver's name in rpma_devices(7), and its traps on this transport
void add_driver(Json &device);

// port.cc
Json ports(ibv_context *context, const ibv_device_attr &limits);
// The network device of an RDMA device, or the placeholder NETDEV; for messages.
std::string netdev_of(const std::string &device);

// capability.cc
constexpr uint32_t VENDOR_RXE =
    0xffffff; // drivers/infiniband/sw/rxe/rxe_param.h: RXE_VENDOR_ID
constexpr uint32_t VENDOR_SIW = 0x626d74; // drivers/infiniband/sw/siw/siw.h: SIW_VENDOR_ID
Json capabilities(ibv_context *context, const rpma::peer &peer, const ibv_device_attr_ex &has);
Json device_limits(ibv_context *context, const ibv_device_attr &limits);

// memory.cc: the memory of --memory
enum class MemoryKind { file, tmpfs, hugetlbfs, fsdax, devdax };
class memory {
  public:
    memory() = default;
    // Throws a refusal if path cannot be used as memory.
    explicit memory(const std::string &path);
    memory(const memory &) = delete;
    ~memory();

    Json describe() const;
    // The result for the persistence of the memory, which rpma_flush() requires.
    Json persistence() const;
    // Finds the region of the NVDIMM bus above a directory of sysfs; it has the file
    // persistence_domain.
    void find_region(std::string directory);

    std::string path;
    void *base = nullptr;
    size_t size{}, mapped{}, alignment{};
    MemoryKind kind = MemoryKind::file;
    bool map_sync{};    // FS-DAX: the kernel accepts MAP_SYNC
    bool nvdimm{};      // the memory belongs to a region of an NVDIMM bus
    bool is_cxl{};      // the memory belongs to a region of CXL devices
    std::string domain; // the kernel's persistence_domain; may be ""
    std::string region; // the directory of that region; may be ""

  private:
    void map_file(int fd, dev_t device);
    void map_device(int fd, dev_t device);
};

// cxl.cc: the region and the devices of CXL memory; null for other memory
Json cxl(const memory &memory);
// The result for CXL memory: only the manufacturers can state which data survives a power
// failure.
Json unknown_persistence();

// registration.cc: tries to register memory with a device, for each usage
Json registration(const Json &device, rpma::peer &peer, const memory &memory);

// plan.cc: what the connections need, and whether the limits of the report suffice
Json plan(const PlanSize &size, const Json &report);

// text.cc
std::string text_of(const Json &report);

// Owns an object of libibverbs, which the function releases.
template <auto release> struct Releaser {
    template <class Object> void operator()(Object *object) const { (void)release(object); }
};
template <class Object, auto release> using Owned = std::unique_ptr<Object, Releaser<release>>;
