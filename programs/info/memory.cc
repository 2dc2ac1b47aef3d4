// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.cc -- the kind of memory of a path

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "info.hh"

#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x00200000
#endif

namespace {

// Registration without on-demand paging pins memory: only a part of large memory is tried.
constexpr size_t MAPPED_MAX = size_t{64} << 20;
constexpr int PROTECTION = PROT_READ | PROT_WRITE;

std::string number_of(dev_t device) {
    return fmt::format("{}:{}", major(device), minor(device));
}

bool is_devdax(const struct stat &status) {
    return S_ISCHR(status.st_mode) &&
           base_name(real_path("/sys/dev/char/" + number_of(status.st_rdev) + "/subsystem")) ==
               "dax";
}

// Checks the type before the file is opened, because opening some devices has side effects.
// Returns why the file cannot be memory, or "".
std::string type_error(const char *path, struct stat *status) {
    if (stat(path, status) != 0)
        return errno == ENOENT
                   ? "the file does not exist: create it, for example: fallocate -l 1M FILE"
                   : std::strerror(errno);
    if (S_ISDIR(status->st_mode))
        return "this is a directory: name a file in it";
    if (S_ISBLK(status->st_mode))
        return "this is a block device: name a file on it, or a device DAX (/dev/dax*)";
    if (!S_ISREG(status->st_mode) && !is_devdax(*status))
        return "this is neither a file nor a device DAX (/dev/dax*)";
    if (S_ISREG(status->st_mode) && status->st_size == 0)
        return "the file is empty: set its size, for example: fallocate -l 1M FILE";
    return "";
}

MemoryKind kind_of(int fd, const struct statfs &system, bool map_sync) {
    struct statx file;
    if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)
        return MemoryKind::tmpfs;
    if (system.f_type == HUGETLBFS_MAGIC)
        return MemoryKind::hugetlbfs;
    if (map_sync || (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &file) == 0 &&
                     (file.stx_attributes & STATX_ATTR_DAX) != 0))
        return MemoryKind::fsdax;
    return MemoryKind::file;
}

} // namespace

memory::memory(const std::string &name) : path(name) {
    const auto refuse = [&](const std::string &why) {
        throw Refusal(STATUS_NO_MEMORY, path + ": " + why);
    };
    struct stat status;
    if (const std::string why = type_error(path.c_str(), &status); !why.empty())
        refuse(why);
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0)
        refuse(std::string("it cannot be opened for reading and writing: ") +
               std::strerror(errno));
    if (S_ISREG(status.st_mode)) {
        size = static_cast<size_t>(status.st_size);
        map_file(fd, status.st_dev);
    } else {
        map_device(fd, status.st_rdev);
    }
    const int error = errno;
    (void)close(fd);
    if (base == nullptr)
        refuse("the kernel reports no size of this device DAX: is it enabled?");
    if (base == MAP_FAILED)
        refuse(std::string("it cannot be mapped: ") + std::strerror(error));
}

memory::~memory() {
    (void)munmap(base, mapped);
}

void memory::map_file(int fd, dev_t device) {
    struct statfs system = {};
    (void)fstatfs(fd, &system);
    alignment = static_cast<size_t>(system.f_type == HUGETLBFS_MAGIC ? system.f_bsize
                                                                     : sysconf(_SC_PAGESIZE));
    mapped = std::min(size, MAPPED_MAX);
    base = mmap(nullptr, mapped, PROTECTION, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
    map_sync = base != MAP_FAILED;
    if (!map_sync)
        base = mmap(nullptr, mapped, PROTECTION, MAP_SHARED, fd, 0);
    kind = kind_of(fd, system, map_sync);
    if (kind == MemoryKind::fsdax)
        find_region(real_path("/sys/dev/block/" + number_of(device)));
}

void memory::map_device(int fd, dev_t device) {
    kind = MemoryKind::devdax;
    const std::string directory = real_path("/sys/dev/char/" + number_of(device));
    size = read_number(directory + "/size");
    alignment = read_number(directory + "/align");
    if (size == 0 || alignment == 0)
        return;
    find_region(directory);
    mapped = std::min(size, MAPPED_MAX);
    mapped = std::max(mapped - mapped % alignment, alignment);
    base = mmap(nullptr, mapped, PROTECTION, MAP_SHARED, fd, 0);
}

void memory::find_region(std::string directory) {
    nvdimm = directory.find("/ndbus") != std::string::npos;
    for (; !directory.empty() && domain.empty(); directory.resize(directory.rfind('/'))) {
        domain = read_line(directory + "/persistence_domain");
        if (!domain.empty()) {
            region = directory;
            is_cxl = read_line(directory + "/../provider") == "CXL";
        }
        if (read_line(directory + "/devtype") == "nd_volatile")
            nvdimm = false;
    }
}

Json memory::persistence() const {
    static const std::string other = "use a file on FS-DAX or a device DAX";
    switch (kind) {
    case MemoryKind::file:
        return no("arriving data is in the page cache, and a power failure loses it",
                  other + ", or have the target call msync(2)");
    case MemoryKind::tmpfs:
    case MemoryKind::hugetlbfs:
        return no("the file is in DRAM, and a power failure loses it", other);
    case MemoryKind::fsdax:
        if (!map_sync)
            return no("MAP_SYNC is refused, so a power failure may lose which blocks the file "
                      "has",
                      "mount a device of persistent memory (/dev/pmem*) with -o dax");
        return yes();
    default:
        if (!nvdimm)
            return unknown(
                "the device belongs to no region of an NVDIMM; its memory may be DRAM",
                "ask the administrator of the machine; 'daxctl list' and 'cxl list' show more");
        return yes();
    }
}

Json memory::describe() const {
    static constexpr const char *KINDS[] = {"file", "tmpfs", "hugetlbfs", "FS-DAX",
                                            "device DAX"};
    return {{"path", path},
            {"kind", KINDS[static_cast<int>(kind)]},
            {"size", size},
            {"tried_size", mapped},
            {"alignment", alignment},
            {"map_sync", kind == MemoryKind::devdax ? Json() : Json(map_sync)},
            {"persistence_domain", null_if_empty(domain)},
            {"persistent", persistence()},
            {"cxl", cxl(*this)}};
}
