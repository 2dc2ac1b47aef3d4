// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// pmem.hh -- files that lose unflushed data when their host loses power.

#pragma once

#include "../model/objects.hh"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace sim {

// A file that programs and this process map, and its copy that survives a power failure.
class PmemFile {
  public:
    enum Content : bool { NOT_PERSISTENT, PERSISTENT }; // of the file when it is opened
    // Creates the file if it is missing and `content` is PERSISTENT. On failure, `error` holds
    // the reason.
    static std::unique_ptr<PmemFile> open(const std::string &path, std::string &error,
                                          Content content = PERSISTENT);
    ~PmemFile();
    PmemFile(const PmemFile &) = delete;
    PmemFile &operator=(const PmemFile &) = delete;

    // Compares with /proc/PID/maps, whose numbers differ from stat() on overlayfs and btrfs.
    bool is_mapped_as(dev_t device, ino_t inode);
    bool is_same(const struct stat &other) const;
    bool is_deleted() const;
    const std::string &path() const { return path_; }
    void persist(uint64_t offset, uint64_t length);
    // Reverts each word that is not persistent; with a generator, a random half of them keeps
    // the new value. Returns the number of reverted words.
    uint64_t lose_power(std::mt19937_64 *generator);

  private:
    PmemFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
    bool map_all(); // maps the file again if its size has changed
    int fd_;
    std::string path_;
    dev_t mapped_device_ = 0;
    ino_t mapped_inode_ = 0;
    char *live_ = nullptr;
    size_t mapped_ = 0;
    std::vector<char> persistent_;
};

// All files of a fabric, and their mappings in its processes.
class PmemFiles : public Persistence {
  public:
    void add(unsigned host, std::unique_ptr<PmemFile> file);
    // For RDMA_SIM_PMEM: absolute paths, each with "//" at its end.
    std::string ids(unsigned host) const;
    uint64_t lose_power(unsigned host, std::mt19937_64 *generator);

    void registered(int pid, const Region &region) override;
    void deregistered(int pid, const Region &region) override;
    void persist(int pid, uint64_t address, size_t length) override;
    bool is_persistent(int pid, uint64_t address, size_t length) override;

  private:
    struct Mapping {
        uint64_t begin, end, offset;
        PmemFile *file;
    };
    struct Process {
        std::vector<Mapping> mappings;
        std::map<uint32_t, std::pair<uint64_t, uint64_t>>
            regions; // by key: ranges whose mappings are kept
    };
    Process &refreshed(int pid);
    void find_replaced();
    bool has_region(const PmemFile &file) const;
    std::multimap<unsigned, std::string> paths_;               // by host
    std::multimap<unsigned, std::unique_ptr<PmemFile>> files_; // by host, also replaced ones
    std::map<int, Process> processes_; // processes with regions in files
};

} // namespace sim
