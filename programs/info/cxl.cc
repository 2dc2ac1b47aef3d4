// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cxl.cc -- the kernel's data about CXL memory, and the results that follow from this data

#include <fstream>
#include <iterator>
#include <unistd.h>

#include "info.hh"

namespace {

// The DVSECs of the Global Persistent Flush in the PCI configuration; linux/pci_regs.h of Linux
// 7.3 defines the last two as PCI_DVSEC_CXL_PORT_GPF and PCI_DVSEC_CXL_DEVICE_GPF.
constexpr unsigned EXTENDED_OFFSET = 0x100;
constexpr unsigned CAPABILITY_DVSEC = 0x23;
constexpr unsigned VENDOR_CXL = 0x1e98;
constexpr unsigned GPF_OF_PORT = 4, GPF_OF_DEVICE = 5;

std::string parent_of(const std::string &path) {
    return path.substr(0, path.rfind('/'));
}

// The directory of a device of the CXL bus; "" if it does not exist.
std::string cxl_device_path(const std::string &name) {
    return real_path("/sys/bus/cxl/devices/" + name);
}

bool has_gpf(const std::string &config, unsigned dvsec_id) {
    const auto read_u16 = [&](unsigned offset) {
        return static_cast<unsigned char>(config[offset]) |
               static_cast<unsigned>(static_cast<unsigned char>(config[offset + 1])) << 8;
    };
    unsigned offset = EXTENDED_OFFSET;
    // A capability has at least 4 bytes, so the limit also ends a circular list.
    for (auto remaining = config.size() / 4;
         remaining > 0 && offset >= EXTENDED_OFFSET && offset + 12 <= config.size();
         remaining--) {
        if (read_u16(offset) == CAPABILITY_DVSEC && read_u16(offset + 4) == VENDOR_CXL &&
            read_u16(offset + 8) == dvsec_id)
            return true;
        offset = read_u16(offset + 2) >> 4;
    }
    return false;
}

Json gpf(const std::string &directory, unsigned dvsec_id) {
    std::ifstream file(kernel_root() + directory + "/config", std::ios::binary);
    const std::string config(std::istreambuf_iterator<char>(file), {});
    if (config.size() <= EXTENDED_OFFSET)
        return unknown("only root can read all of the PCI configuration",
                       "run rpma-info as root");
    if (has_gpf(config, dvsec_id))
        return yes();
    return no("its PCI configuration has no Global Persistent Flush",
              "ask its manufacturer whether flushed data survives a power failure");
}

// Returns nothing if the NVDIMM is not a memory device of the CXL bus.
std::optional<Json> memdev(const memory &memory, const std::string &dimm) {
    const std::string cxl = memory.region + "/../" + dimm + "/cxl";
    const std::string provider = read_line(cxl + "/provider");
    const std::string nvdimm = provider.empty() ? "" : cxl_device_path(provider);
    if (nvdimm.empty())
        return std::nullopt;
    const std::string directory = parent_of(nvdimm), port = parent_of(directory);
    const std::string dirty = cxl + "/dirty_shutdown";
    return Json{
        {"serial", read_line(directory + "/serial")},
        {"persistent_size", read_number(directory + "/pmem/size")},
        {"volatile_size", read_number(directory + "/ram/size")},
        {"dirty_shutdowns", read_line(dirty).empty() ? Json() : Json(read_number(dirty))},
        {"poison_list", access_error(directory + "/trigger_poison_list", F_OK) == 0},
        {"memdev", base_name(directory)},
        {"flush_of_device", gpf(port, GPF_OF_DEVICE)},
        {"flush_of_port", gpf(parent_of(port), GPF_OF_PORT)}};
}

} // namespace

Json cxl(const memory &memory) {
    if (!memory.is_cxl)
        return nullptr;
    // cxl_pmem_region_probe() copies the CXL region's number to the region of the NVDIMM bus.
    const std::string name = base_name(memory.region), region = cxl_device_path(name);
    Json devices = Json::array();
    const auto mappings = read_number(memory.region + "/mappings");
    for (unsigned i = 0; i < mappings; i++) {
        // A mapping of the region is, for example, "nmem0,0,268435456,0".
        const std::string line = read_line(fmt::format("{}/mapping{}", memory.region, i));
        if (auto device = memdev(memory, line.substr(0, line.find(','))))
            devices.push_back(*device);
    }
    return {{"region", name},
            {"mode", read_line(region + "/mode")},
            {"size", read_number(region + "/size")},
            {"devices", devices},
            {"direct_write", unknown_persistence()}};
}

Json unknown_persistence() {
    return unknown("Linux calls the persistence domain of all CXL memory "
                   "memory_controller; no command shows whether the machine saves what was "
                   "flushed",
                   "ask the manufacturers of the memory and of the machine; see step 7 of "
                   "rpma_pmem(7)");
}
