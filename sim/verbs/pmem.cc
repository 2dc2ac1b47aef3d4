// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pmem.cc -- files that lose what was not made persistent when their host loses power

#include "pmem.hh"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace sim {

std::unique_ptr<PmemFile> PmemFile::open(const std::string &path, std::string &error) {
    struct stat status;
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &status) != 0) {
        error = strerror(errno);
        return nullptr;
    }
    std::unique_ptr<PmemFile> file(new PmemFile(fd, status.st_dev, status.st_ino));
    if (!S_ISREG(status.st_mode))
        error = "not a regular file";
    else if (!file->map_all())
        error = strerror(errno);
    else {
        file->persist(0, file->mapped_);
        return file;
    }
    return nullptr;
}

PmemFile::~PmemFile() {
    if (live_ != nullptr)
        munmap(live_, mapped_);
    close(fd_);
}

std::string PmemFile::id() const {
    return std::to_string(device_) + ":" + std::to_string(inode_) + " ";
}

bool PmemFile::map_all() {
    struct stat status;
    if (fstat(fd_, &status) != 0)
        return false;
    const auto size = static_cast<size_t>(status.st_size);
    if (size == mapped_)
        return true;
    void *const all =
        size == 0 ? nullptr : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (all == MAP_FAILED)
        return false;
    if (live_ != nullptr)
        munmap(live_, mapped_);
    live_ = static_cast<char *>(all);
    mapped_ = size;
    persistent_.resize(size); // what a file gains is zero until it is made persistent
    return true;
}

void PmemFile::persist(uint64_t offset, uint64_t length) {
    if (!map_all() || offset >= mapped_)
        return;
    // Whole words become persistent, as whole cache lines do.
    const uint64_t begin = offset & ~UINT64_C(7),
                   end = std::min<uint64_t>((offset + length + 7) & ~UINT64_C(7), mapped_);
    memcpy(persistent_.data() + begin, live_ + begin, end - begin);
}

uint64_t PmemFile::lose_power(std::mt19937_64 *generator) {
    uint64_t lost = 0;
    if (!map_all())
        return 0;
    for (size_t at = 0; at < mapped_; at += 8) {
        const size_t size = std::min<size_t>(8, mapped_ - at);
        if (memcmp(persistent_.data() + at, live_ + at, size) == 0)
            continue;
        if (generator != nullptr && ((*generator)() & 1) != 0) {
            memcpy(persistent_.data() + at, live_ + at, size);
        } else {
            memcpy(live_ + at, persistent_.data() + at, size);
            lost++;
        }
    }
    return lost;
}

void PmemMappings::refresh() {
    mappings_.clear();
    if (files_.empty())
        return;
    char path[64], line[512], permissions[8];
    snprintf(path, sizeof(path), "/proc/%d/maps", pid_);
    FILE *const maps = fopen(path, "re");
    Mapping found;
    unsigned major, minor;
    uint64_t inode;
    while (maps != nullptr && fgets(line, sizeof(line), maps) != nullptr) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64, &found.begin,
                   &found.end, permissions, &found.offset, &major, &minor, &inode) != 7 ||
            permissions[3] != 's')
            continue;
        for (const std::unique_ptr<PmemFile> &file : files_)
            if (file->is(makedev(major, minor), inode)) {
                found.file = file.get();
                mappings_.push_back(found);
            }
    }
    if (maps != nullptr)
        fclose(maps);
}

void PmemMappings::persist(uint64_t address, uint64_t length) const {
    for (const Mapping &each : mappings_) {
        const uint64_t begin = std::max(address, each.begin),
                       end = std::min(address + length, each.end);
        if (begin < end)
            each.file->persist(begin - each.begin + each.offset, end - begin);
    }
}

bool PmemMappings::contain(uint64_t address, uint64_t length) const {
    uint64_t covered = 0;
    for (const Mapping &each : mappings_) {
        const uint64_t begin = std::max(address, each.begin),
                       end = std::min(address + length, each.end);
        covered += begin < end ? end - begin : 0;
    }
    return length > 0 && covered == length;
}

} // namespace sim
