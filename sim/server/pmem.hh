// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// pmem.hh -- files that lose unflushed data when their host loses power.

#pragma once

#include "../model/objects.hh"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sim {

// A part of a file of --pmem.
struct FileRange {
    std::string path;
    uint64_t offset, length;
};

// Words for each word of a file, which are 0 and take no memory until they are written: a file
// may be large, and its programs use little of it.
template <class T> class SparseArray {
  public:
    SparseArray() = default;
    ~SparseArray() { resize(0); }
    SparseArray(const SparseArray &) = delete;
    SparseArray &operator=(const SparseArray &) = delete;
    void resize(size_t count); // new words are 0
    // Sets words to 0, and frees their memory.
    void clear(size_t first, size_t end);
    T *data() { return data_; }
    T &operator[](size_t at) { return data_[at]; }
    const T &operator[](size_t at) const { return data_[at]; }
    size_t size() const { return size_; }

  private:
    T *data_ = nullptr;
    size_t size_ = 0;
};

// Calls use(offset, end) for each range of the file in which its file system stores data. The
// others are zero.
template <class Use> void for_each_data(int fd, uint64_t begin, uint64_t end, Use use) {
    while (begin < end) {
        const off_t data = lseek(fd, static_cast<off_t>(begin), SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return;
        const off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        // Without this function of the file system, all is data.
        const uint64_t from = data < 0 ? begin : static_cast<uint64_t>(data),
                       to = hole < 0 ? end : std::min(end, static_cast<uint64_t>(hole));
        if (from < to)
            use(from, to);
        begin = std::max(to, from);
    }
}

// A file that programs and this process map, and its copy that survives a power failure.
class PmemFile {
  public:
    enum Content : bool { NOT_PERSISTENT, PERSISTENT }; // of the file when it is opened
    // Creates the file if it is missing and `content` is PERSISTENT. On failure, `error` holds
    // the reason.
    static std::unique_ptr<PmemFile> open(const std::string &path, std::string &error,
                                          Content content = PERSISTENT);
    // Memory of this process, instead of a file. `tears`: a word can survive in part.
    PmemFile(void *memory, size_t size, bool tears);
    ~PmemFile();
    PmemFile(const PmemFile &) = delete;
    PmemFile &operator=(const PmemFile &) = delete;

    // Compares with /proc/PID/maps, whose numbers differ from stat() on overlayfs and btrfs.
    bool is_mapped_as(dev_t device, ino_t inode);
    bool is_same(const struct stat &other) const;
    bool is_deleted() const;
    const std::string &path() const { return path_; }
    void set_path(const std::string &path) { path_ = path; }
    // Records the words that the writer has written, if the file has a history.
    void record(uint64_t offset, uint64_t length, uint32_t writer);
    // Makes the writes of the writer persistent; without a history, or if it is 0, the present
    // content.
    void persist(uint64_t offset, uint64_t length, uint32_t writer);
    void keep_history();
    // Reverts each word that is not persistent; with a generator, each keeps one of its values
    // at random. Returns the number of words that lost the newest. Adds their ranges, unless
    // `ranges` is NULL.
    uint64_t lose_power(std::mt19937_64 *generator, std::vector<FileRange> *ranges = nullptr);
    // How much of the range, from its begin, each power failure leaves as it is.
    uint64_t persistent_length(uint64_t offset, uint64_t length) const;
    // Value `number` of those that a power failure can leave in the word: the persistent one,
    // later ones, and the present one.
    std::optional<uint64_t> possible_value(uint64_t offset, unsigned number) const;
    // Returns true if the history has a write that is not persistent.
    bool has_unpersisted() const { return stores_.count != 0; }

  private:
    PmemFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
    bool map_all(); // maps the file again if its size has changed
    void resize();  // the state of its words
    uint64_t survivors(std::mt19937_64 &generator) const; // of the bits of a word
    int fd_;                                              // -1: memory
    std::string path_;
    dev_t mapped_device_ = 0;
    ino_t mapped_inode_ = 0;
    char *live_ = nullptr;
    size_t mapped_ = 0;
    static constexpr uint64_t BLOCK = 65536; // bytes
    SparseArray<uint64_t> persistent_;
    SparseArray<uint32_t> settled_;
    std::vector<bool> is_used_; // blocks in which a word of persistent_ may not be 0
    sim_stores stores_{};
    bool has_history_ = false, tears_ = false;
    uint64_t live_word(size_t word) const;
    uint64_t lose_block(uint64_t block, std::mt19937_64 *generator,
                        std::vector<FileRange> *ranges);
    void copy(uint64_t begin, uint64_t end);   // to persistent_
    uint64_t next_used(uint64_t offset) const; // the next block that may not be zero
    void forget_history() { sim_remove_stores(&stores_, 0, SIZE_MAX); }
};

// All files of a fabric, and their mappings in its processes.
class PmemFiles : public Persistence {
  public:
    void add(unsigned host, std::unique_ptr<PmemFile> file);
    // For RDMA_SIM_PMEM: absolute paths, each with "//" at its end.
    std::string ids(unsigned host) const;
    // From now on, a power failure can also leave values that were overwritten, and a read or
    // flush makes only the writes of its own connection persistent.
    void keep_history();
    uint64_t lose_power(unsigned host, std::mt19937_64 *generator,
                        std::vector<FileRange> *ranges = nullptr);
    // Returns the part of a file that the process has mapped at the address.
    std::optional<FileRange> file_range(int pid, uint64_t address, size_t length);

    void registered(int pid, const Region &region) override;
    void deregistered(int pid, const Region &region) override;
    void written(int pid, uint64_t address, size_t length, uint32_t writer) override;
    bool has_history() const override { return has_history_; }
    void persist(int pid, uint64_t address, size_t length, uint32_t writer) override;
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
    const std::vector<Mapping> &mappings_of(int pid, uint64_t address, size_t length);
    template <class Use> void for_each_part(int pid, uint64_t address, size_t length, Use use);
    void find_replaced();
    std::unique_ptr<PmemFile> open_later(const std::string &path, std::string &error) const;
    void persist_candidates(int pid, uint64_t address, size_t length);
    bool has_history_ = false;
    bool has_region(const PmemFile &file) const;
    std::multimap<unsigned, std::string> paths_;               // by host
    std::multimap<unsigned, std::unique_ptr<PmemFile>> files_; // by host, also replaced ones
    // Other files, parts of which programs have made persistent: one may get a path of --pmem.
    std::vector<std::unique_ptr<PmemFile>> candidates_;
    std::map<int, Process> processes_; // processes with regions in files
};

} // namespace sim
