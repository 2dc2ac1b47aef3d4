// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// pmem.cc -- files that lose unflushed data when their host loses power

#include "pmem.hh"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace sim {

namespace {

struct Line { // a line of /proc/PID/maps
    uint64_t begin, end, offset, inode;
    dev_t device;
    bool is_shared;
};

template <class Callback> void for_each_mapping(const std::string &process, Callback callback) {
    char text[512], permissions[8];
    FILE *const maps = fopen(("/proc/" + process + "/maps").c_str(), "re");
    if (maps == nullptr && (errno == ENOENT || errno == ESRCH))
        throw ProgramEnded();
    if (maps == nullptr)
        throw Failure("/proc/" + process + "/maps: " + strerror(errno));
    Line line;
    unsigned major, minor;
    bool is_empty = true; // as of a zombie
    for (; fgets(text, sizeof(text), maps) != nullptr; is_empty = false)
        if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64, &line.begin,
                   &line.end, permissions, &line.offset, &major, &minor, &line.inode) == 7) {
            line.device = makedev(major, minor);
            line.is_shared = permissions[3] == 's';
            callback(line);
        }
    fclose(maps);
    if (is_empty)
        throw ProgramEnded();
}

} // namespace

std::unique_ptr<PmemFile> PmemFile::open(const std::string &path, std::string &error,
                                         Content content) {
    struct stat status;
    const int create = content == PERSISTENT ? O_CREAT : 0;
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | create, 0600);
    if (fd < 0 || fstat(fd, &status) != 0) {
        error = strerror(errno);
        return nullptr;
    }
    std::unique_ptr<PmemFile> file(new PmemFile(fd, path));
    if (!S_ISREG(status.st_mode))
        error = "not a regular file";
    else if (!file->map_all())
        error = strerror(errno);
    else {
        if (content == PERSISTENT)
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

bool PmemFile::is_same(const struct stat &other) const {
    struct stat status;
    return fstat(fd_, &status) == 0 && status.st_dev == other.st_dev &&
           status.st_ino == other.st_ino;
}

bool PmemFile::is_deleted() const {
    struct stat status;
    return fstat(fd_, &status) != 0 || status.st_nlink == 0;
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
    persistent_.resize(size); // new bytes are zero until they are made persistent
    return true;
}

bool PmemFile::is_mapped_as(dev_t device, ino_t inode) {
    if (!map_all() || live_ == nullptr)
        return false;
    if (mapped_inode_ == 0)
        for_each_mapping("self", [&](const Line &line) {
            if (line.begin == reinterpret_cast<uint64_t>(live_)) {
                mapped_device_ = line.device;
                mapped_inode_ = line.inode;
            }
        });
    return device == mapped_device_ && inode == mapped_inode_;
}

void PmemFile::persist(uint64_t offset, uint64_t length) {
    if (!map_all() || offset >= mapped_)
        return;
    // Whole words become persistent, because a flush writes whole cache lines.
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

void PmemFiles::add(unsigned host, std::unique_ptr<PmemFile> file) {
    const std::filesystem::path path = std::filesystem::absolute(file->path());
    paths_.emplace(host, std::filesystem::canonical(path.parent_path()) / path.filename());
    files_.emplace(host, std::move(file));
}

std::string PmemFiles::ids(unsigned host) const {
    std::string all;
    for (auto [each, end] = paths_.equal_range(host); each != end; each++)
        all += each->second + "//";
    return all;
}

// A program may unlink a file and create it again, or rename another one over it. The former
// file is known as long as it has a name, or as long as a region is in it.
void PmemFiles::find_replaced() {
    for (const auto &[host, path] : paths_) {
        struct stat status;
        if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
            std::ranges::any_of(files_,
                                [&](const auto &each) { return each.second->is_same(status); }))
            continue;
        std::string error;
        std::unique_ptr<PmemFile> file = PmemFile::open(path, error, PmemFile::NOT_PERSISTENT);
        if (!file)
            throw Failure("--pmem " + path + ", which a program has replaced: " + error);
        std::erase_if(files_, [&](const auto &each) {
            return each.second->is_deleted() && !has_region(*each.second);
        });
        files_.emplace(host, std::move(file));
    }
}

bool PmemFiles::has_region(const PmemFile &file) const {
    return std::ranges::any_of(processes_, [&](const auto &process) {
        return std::ranges::any_of(process.second.mappings, [&](const Mapping &mapping) {
            return mapping.file == &file;
        });
    });
}

uint64_t PmemFiles::lose_power(unsigned host, std::mt19937_64 *generator) {
    uint64_t lost = 0;
    find_replaced();
    for (auto [each, end] = files_.equal_range(host); each != end; each++)
        lost += each->second->lose_power(generator);
    return lost;
}

PmemFiles::Process &PmemFiles::refreshed(int pid) {
    find_replaced();
    Process &process = processes_[pid];
    process.mappings.clear();
    for_each_mapping(std::to_string(pid), [&](const Line &line) {
        for (const auto &[host, file] : files_)
            if (line.is_shared && file->is_mapped_as(line.device, line.inode))
                process.mappings.push_back({line.begin, line.end, line.offset, file.get()});
    });
    return process;
}

void PmemFiles::registered(int pid, const Region &region) {
    if (!files_.empty())
        refreshed(pid).regions[region.key] = {region.address, region.address + region.length};
}

// A range that stays known would keep mappings that the process has replaced.
void PmemFiles::deregistered(int pid, const Region &region) {
    if (files_.empty())
        return;
    const auto found = processes_.find(pid);
    assert(found != processes_.end() && found->second.regions.contains(region.key));
    found->second.regions.erase(region.key);
    if (found->second.regions.empty())
        processes_.erase(found);
}

void PmemFiles::persist(int pid, uint64_t address, size_t length) {
    if (files_.empty())
        return;
    Process &process = processes_[pid];
    const bool is_known = std::ranges::any_of(process.regions, [&](const auto &region) {
        return region.second.first <= address && address + length <= region.second.second;
    });
    for (const Mapping &each : is_known ? process.mappings : refreshed(pid).mappings) {
        const uint64_t begin = std::max(address, each.begin),
                       end = std::min(address + length, each.end);
        if (begin < end)
            each.file->persist(begin - each.begin + each.offset, end - begin);
    }
    if (process.regions.empty())
        processes_.erase(pid);
}

bool PmemFiles::is_persistent(int pid, uint64_t address, size_t length) {
    if (files_.empty())
        return false;
    uint64_t covered = 0;
    for (const Mapping &each : refreshed(pid).mappings) {
        const uint64_t begin = std::max(address, each.begin),
                       end = std::min(address + length, each.end);
        covered += begin < end ? end - begin : 0;
    }
    return length > 0 && covered == length;
}

} // namespace sim
