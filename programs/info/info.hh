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

// options.cc: no value is "". Returns nothing after --help and --version.
struct options {
    std::string address, device, memory;
    bool json = false;
};
std::optional<options> parse_options(int argc, char **argv);

// system.cc
std::string library_version(); // of the one that is loaded
json versions();
// The default settings of connections and shared receive queues.
json defaults();
json limits();
bool may_lock_all();
json connection_manager();
// Why there is no device at all, and how to get one.
json no_device(const std::string &asked);

// root.cc: the directory below which the files of the kernel are: "", and what librpma serves
// natively on a device. The tests link another one, so that nothing makes the installed program
// report of another machine.
std::string kernel_files();
rpma::peer_cfg::served served_by(const rpma::peer &peer);

// sysfs.cc: data from files of the kernel
// Nothing, or "", when the file cannot be read.
std::vector<std::string> lines_of(const std::string &path);
std::string read_line(const std::string &path);
uint64_t number_in(const std::string &path);
// The path without links; "" when there is none.
std::string real_path(const std::string &path);
// The part of a path after the last '/'.
std::string last_of(const std::string &path);
// Why the file is not open to this user: an error number, or 0.
int access_error(const std::string &path, int mode);
std::vector<std::string> names_in(const std::string &directory);

// address.cc: the addresses of this machine, and the device that librpma finds for each
struct address {
    std::string text; // a link-local one with its scope
    std::string netdev;
    std::string device; // "" when there is none
};
std::vector<address> find_addresses();
// Finds the device for an address of this machine or of another, and sets *is_remote for the
// latter. Throws rpma::error.
std::string device_behind(const std::string &address, bool *is_remote);
// Is true if the address of a GID is one of this process's network namespace.
bool is_own_address(const std::vector<address> &all, const std::string &text);

class memory;

// device.cc
struct search {
    std::optional<std::string> device; // else all
    const std::vector<address> &addresses;
    const memory *tried; // nullptr: none
    bool found_any;      // the machine has any device, selected or not
};
json devices(search &search);

// driver.cc: adds the known traps of the device's driver on its transport
void add_traps(json &device);

// port.cc
json ports(ibv_context *context, const ibv_device_attr &limits);
// The network device of an RDMA device, or a placeholder; for messages.
std::string netdev_of(const std::string &device);

// capability.cc
constexpr uint32_t VENDOR_RXE =
    0xffffff; // drivers/infiniband/sw/rxe/rxe_param.h: RXE_VENDOR_ID
constexpr uint32_t VENDOR_SIW = 0x626d74; // drivers/infiniband/sw/siw/siw.h: SIW_VENDOR_ID
json capabilities(ibv_context *context, const rpma::peer &peer, const ibv_device_attr_ex &has);
json device_limits(ibv_context *context, const ibv_device_attr &limits);

// memory.cc: the memory that --memory names
enum class memory_kind { file, tmpfs, hugetlbfs, fsdax, devdax };
class memory {
  public:
    memory() = default;
    // Throws a refusal when path cannot be used as memory.
    explicit memory(const std::string &path);
    memory(const memory &) = delete;
    ~memory();

    json describe() const;
    // The persistence of the memory, which rpma_flush() relies on, or the reason why it has
    // none.
    json persistence() const;
    // Walks up from a directory in sysfs to the region of the NVDIMM bus, whose files describe
    // the persistence domain.
    void look_at_regions(std::string directory);

    std::string path;
    void *base = nullptr;
    size_t size{}, mapped{}, alignment{};
    memory_kind kind = memory_kind::file;
    bool map_sync{};    // FS-DAX: the mapping keeps the file's blocks where they are
    bool nvdimm{};      // the memory belongs to a region of an NVDIMM bus
    bool behind_cxl{};  // the memory belongs to a region of CXL devices
    std::string domain; // the kernel's persistence_domain; may be ""
    std::string region; // the directory of the region that has it; may be ""

  private:
    void map_file(int fd, dev_t device);
    void map_device(int fd, dev_t device);
};

// cxl.cc: the region and the devices of CXL memory; null for other memory
json cxl(const memory &memory);
// The note that only the manufacturers know which data survives a power failure.
json power_unknown();

// registration.cc: tries to register a memory with a device, in all ways
json registration(const json &device, rpma::peer &peer, const memory &memory);

// text.cc
std::string text_of(const json &report);

// An object of libibverbs, which its last function releases.
template <auto release> struct releaser {
    template <class Object> void operator()(Object *object) const { (void)release(object); }
};
template <class Object, auto release> using owned = std::unique_ptr<Object, releaser<release>>;
