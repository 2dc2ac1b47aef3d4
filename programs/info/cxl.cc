// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cxl.cc -- the kernel's data about CXL memory, and the statements that follow from it

#include <fstream>
#include <iterator>
#include <unistd.h>

#include "info.hh"

namespace {

// Where the PCI configuration has the Global Persistent Flush; linux/pci_regs.h of Linux 7.3
// has the last two as PCI_DVSEC_CXL_PORT_GPF and PCI_DVSEC_CXL_DEVICE_GPF.
constexpr unsigned FIRST_EXTENDED = 0x100;
constexpr unsigned CAPABILITY_DVSEC = 0x23;
constexpr unsigned VENDOR_CXL = 0x1e98;
constexpr unsigned GPF_OF_PORT = 4, GPF_OF_DEVICE = 5;

std::string parent_of(const std::string &path) {
    return path.substr(0, path.rfind('/'));
}

// The directory of a device of the CXL bus; "" when there is none.
std::string on_bus(const std::string &name) {
    return real_path("/sys/bus/cxl/devices/" + name);
}

bool has_gpf(const std::string &config, unsigned which) {
    const auto word_at = [&](unsigned place) {
        return static_cast<unsigned char>(config[place]) |
               static_cast<unsigned>(static_cast<unsigned char>(config[place + 1])) << 8;
    };
    unsigned place = FIRST_EXTENDED;
    // Each capability has 4 bytes at least, so that a list that leads in a circle ends, too.
    for (auto left = config.size() / 4;
         left > 0 && place >= FIRST_EXTENDED && place + 12 <= config.size(); left--) {
        if (word_at(place) == CAPABILITY_DVSEC && word_at(place + 4) == VENDOR_CXL &&
            word_at(place + 8) == which)
            return true;
        place = word_at(place + 2) >> 4;
    }
    return false;
}

json gpf(const std::string &directory, unsigned which) {
    std::ifstream file(kernel_files() + directory + "/config", std::ios::binary);
    const std::string config(std::istreambuf_iterator<char>(file), {});
    if (config.size() <= FIRST_EXTENDED)
        return unknown("only root reads all of the PCI configuration", "run rpma-info as root");
    if (has_gpf(config, which))
        return yes();
    return no("its PCI configuration has no Global Persistent Flush",
              "ask its manufacturer whether flushed data survives a power failure");
}

// Nothing when the NVDIMM is no memory device of the CXL bus.
std::optional<json> memdev(const memory &memory, const std::string &dimm) {
    const std::string cxl = memory.region + "/../" + dimm + "/cxl";
    const std::string provider = read_line(cxl + "/provider");
    const std::string nvdimm = provider.empty() ? "" : on_bus(provider);
    if (nvdimm.empty())
        return std::nullopt;
    const std::string directory = parent_of(nvdimm), port = parent_of(directory);
    const std::string dirty = cxl + "/dirty_shutdown";
    return json{{"serial", read_line(directory + "/serial")},
                {"persistent_size", number_in(directory + "/pmem/size")},
                {"volatile_size", number_in(directory + "/ram/size")},
                {"dirty_shutdowns", read_line(dirty).empty() ? json() : json(number_in(dirty))},
                {"poison_list", access_error(directory + "/trigger_poison_list", F_OK) == 0},
                {"memdev", last_of(directory)},
                {"flush_of_device", gpf(port, GPF_OF_DEVICE)},
                {"flush_of_port", gpf(parent_of(port), GPF_OF_PORT)}};
}

} // namespace

json cxl(const memory &memory) {
    if (!memory.behind_cxl)
        return nullptr;
    // cxl_pmem_region_probe() gives the region of the NVDIMM bus the number of the CXL region.
    const std::string name = last_of(memory.region), region = on_bus(name);
    json devices = json::array();
    const auto mappings = number_in(memory.region + "/mappings");
    for (unsigned i = 0; i < mappings; i++) {
        // One mapping of the region is "nmem0,0,268435456,0".
        const std::string line = read_line(fmt::format("{}/mapping{}", memory.region, i));
        if (auto device = memdev(memory, line.substr(0, line.find(','))))
            devices.push_back(*device);
    }
    return {{"region", name},
            {"mode", read_line(region + "/mode")},
            {"size", number_in(region + "/size")},
            {"devices", devices},
            {"direct_write", power_unknown()}};
}

json power_unknown() {
    return unknown("Linux calls the persistence domain of all CXL memory "
                   "memory_controller; no command shows whether the machine saves what was "
                   "flushed",
                   "ask the manufacturers of the memory and of the machine; see step 7 of "
                   "rpma_pmem(7)");
}
