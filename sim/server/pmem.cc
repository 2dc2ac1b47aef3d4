// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// pmem.cc -- files that lose unflushed data when their host loses power

#include "pmem.hh"
#include "mappings.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sim {

namespace {

constexpr size_t WORD = 8;
constexpr size_t MAX_STORES = size_t{1} << 22; // of a history

} // namespace

template <class T> void SparseArray<T>::resize(size_t count) {
    if (count < size_)
        clear(count, size_);
    const size_t before = size_ * sizeof(T), after = count * sizeof(T);
    void *changed = nullptr;
    if (after == 0 && before != 0)
        munmap(data_, before);
    else if (before == 0 && after != 0)
        changed = mmap(nullptr, after, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    else if (after != 0)
        changed = mremap(data_, before, after, MREMAP_MAYMOVE);
    if (changed == MAP_FAILED)
        throw std::bad_alloc();
    data_ = static_cast<T *>(changed);
    size_ = count;
}

template <class T> void SparseArray<T>::clear(size_t first, size_t end) {
    constexpr uintptr_t PAGE = 4096;
    const auto from = reinterpret_cast<uintptr_t>(data_ + first),
               to = reinterpret_cast<uintptr_t>(data_ + end);
    const uintptr_t begin = (from + PAGE - 1) / PAGE * PAGE, last = to / PAGE * PAGE;
    if (begin >= last ||
        madvise(reinterpret_cast<void *>(begin), last - begin, MADV_DONTNEED)) {
        memset(data_ + first, 0, to - from);
        return;
    }
    memset(data_ + first, 0, begin - from);
    memset(reinterpret_cast<void *>(last), 0, to - last);
}

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
            file->persist(0, file->mapped_, 0);
        return file;
    }
    return nullptr;
}

PmemFile::PmemFile(void *memory, size_t size, bool tears)
    : fd_(-1), live_(static_cast<char *>(memory)), mapped_(size), tears_(tears) {
    resize();
    keep_history();
    persist(0, mapped_, 0);
}

PmemFile::~PmemFile() {
    free(stores_.all);
    if (fd_ < 0)
        return;
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
    if (fd_ < 0)
        return true;
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
    resize();
    return true;
}

void PmemFile::resize() {
    persistent_.resize((mapped_ + WORD - 1) / WORD); // new bytes are zero until made persistent
    is_used_.resize((mapped_ + BLOCK - 1) / BLOCK);
    stores_.persistent = persistent_.data();
    if (has_history_)
        keep_history();
    sim_remove_stores(&stores_, persistent_.size(), SIZE_MAX);
}

void PmemFile::keep_history() {
    has_history_ = true;
    settled_.resize(persistent_.size());
    stores_.settled = settled_.data();
}

uint64_t PmemFile::live_word(size_t word) const {
    uint64_t value = 0;
    memcpy(&value, live_ + word * WORD, std::min(WORD, mapped_ - word * WORD));
    return value;
}

void PmemFile::record(uint64_t offset, uint64_t length, uint32_t writer) {
    if (!has_history_ || !map_all())
        return;
    const size_t end =
        std::min<size_t>((offset + length + WORD - 1) / WORD, persistent_.size());
    for (size_t word = offset / WORD; word < end; word++) {
        is_used_[word * WORD / BLOCK] = true;
        sim_add_store(&stores_, {static_cast<uint32_t>(word), writer, live_word(word)});
    }
    if (stores_.count <= MAX_STORES)
        return;
    forget_history();
    has_history_ = false;
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

// Reads holes of a large range only where the copy may not be zero: a file of 64 MiB with a
// record costs no more than one of 64 KiB.
void PmemFile::copy(uint64_t begin, uint64_t end) {
    char *const to = reinterpret_cast<char *>(persistent_.data());
    const auto copy_all = [&](uint64_t from, uint64_t until) {
        memcpy(to + from, live_ + from, until - from);
        for (uint64_t block = from / BLOCK; block * BLOCK < until; block++)
            is_used_[block] = true;
    };
    if (end - begin <= BLOCK)
        return copy_all(begin, end);
    uint64_t copied = begin;
    const auto clear = [&](uint64_t until) {
        for (uint64_t block = copied / BLOCK; block * BLOCK < until; block++)
            if (is_used_[block])
                memset(to + std::max(copied, block * BLOCK), 0,
                       std::min(until, (block + 1) * BLOCK) - std::max(copied, block * BLOCK));
    };
    for_each_data(fd_, begin, end, [&](uint64_t from, uint64_t until) {
        clear(from);
        copy_all(from, until);
        copied = until;
    });
    clear(end);
}

uint64_t PmemFile::next_used(uint64_t offset) const {
    uint64_t block = offset / BLOCK;
    while (block < is_used_.size() && !is_used_[block])
        block++;
    uint64_t next = std::min<uint64_t>(block * BLOCK, mapped_);
    const off_t data = lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
    if (data >= 0)
        next = std::min(next, static_cast<uint64_t>(data) / BLOCK * BLOCK);
    else if (errno != ENXIO)
        next = offset;
    return std::max(next, offset);
}

// Whole words become persistent, because a flush writes whole cache lines.
void PmemFile::persist(uint64_t offset, uint64_t length, uint32_t writer) {
    if (!map_all() || offset >= mapped_ || length == 0)
        return;
    const size_t first = offset / WORD,
                 end =
                     std::min<size_t>((offset + length + WORD - 1) / WORD, persistent_.size());
    if (has_history_ && writer != 0)
        return sim_flush_stores(&stores_, writer, first, end);
    copy(first * WORD, std::min(end * WORD, mapped_));
    sim_remove_stores(&stores_, first, end);
}

uint64_t PmemFile::persistent_length(uint64_t offset, uint64_t length) const {
    for (size_t word = offset / WORD; word * WORD < offset + length; word++) {
        const uint64_t persistent = persistent_[word];
        if (live_word(word) != persistent ||
            std::any_of(stores_.all, stores_.all + stores_.count, [&](const sim_store &store) {
                return store.word == word && store.value != persistent;
            }))
            return std::max(word * WORD, offset) - offset;
    }
    return length;
}

std::optional<uint64_t> PmemFile::possible_value(uint64_t offset, unsigned number) const {
    const size_t word = offset / WORD;
    if (number == 0)
        return persistent_[word];
    for (const sim_store *store = stores_.all; store != stores_.all + stores_.count; store++)
        if (store->word == word && --number == 0)
            return store->value;
    return --number == 0 ? std::optional(live_word(word)) : std::nullopt;
}

uint64_t PmemFile::survivors(std::mt19937_64 &generator) const {
    const uint64_t random = generator();
    if (!tears_)
        return -(random & 1);
    uint64_t mask = 0;
    for (size_t byte = 0; byte < WORD; byte++)
        mask |= (random >> byte & 1) * (uint64_t{0xff} << 8 * byte);
    return mask;
}

uint64_t PmemFile::lose_block(uint64_t block, std::mt19937_64 *generator,
                              std::vector<FileRange> *ranges) {
    uint64_t lost = 0;
    const uint64_t end = std::min<uint64_t>(block + BLOCK, mapped_);
    if (memcmp(live_ + block, persistent_.data() + block / WORD, end - block) == 0)
        return 0;
    for (size_t word = block / WORD; word * WORD < end; word++) {
        uint64_t &persistent = persistent_[word];
        if (persistent == live_word(word))
            continue;
        const uint64_t mask = generator == nullptr ? 0 : survivors(*generator);
        persistent = (persistent & ~mask) | (live_word(word) & mask);
        if (persistent != live_word(word)) {
            const size_t offset = word * WORD, length = std::min(WORD, mapped_ - offset);
            memcpy(live_ + offset, &persistent, length);
            lost++;
            if (ranges == nullptr)
                continue;
            if (FileRange *const last = ranges->empty() ? nullptr : &ranges->back();
                last != nullptr && last->path == path_ && last->offset + last->length == offset)
                last->length += length;
            else
                ranges->push_back({path_, offset, length});
        }
    }
    return lost;
}

uint64_t PmemFile::lose_power(std::mt19937_64 *generator, std::vector<FileRange> *ranges) {
    uint64_t lost = 0;
    if (!map_all())
        return 0;
    if (generator != nullptr) {
        struct Survival {
            const PmemFile &file;
            std::mt19937_64 &random;
        } survival{*this, *generator};
        sim_lose_power(
            &stores_, persistent_.data(),
            [](void *argument) {
                const auto &[file, random] = *static_cast<Survival *>(argument);
                return file.survivors(random);
            },
            &survival);
    }
    forget_history();
    for (uint64_t block = 0; (block = next_used(block)) < mapped_; block += BLOCK)
        lost += lose_block(block, generator, ranges);
    return lost;
}

} // namespace sim
