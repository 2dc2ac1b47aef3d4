// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.cc -- commands for memory, its content and its registration

#include "peer.hh"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr size_t PATTERN_WORD = 8;

uint64_t pattern_word(uint64_t seed, uint64_t index) {
    uint64_t mixed = (seed + 1) * 0x9e3779b97f4a7c15ULL + index * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 29)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 32);
}

// Maps a file on a DAX file system with MAP_SYNC, which the kernel refuses for mappings that
// are not DAX.
void *map_file(const char *path, size_t size, bool sync) {
    struct stat status;
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    must_system(fd >= 0 && fstat(fd, &status) == 0, "open");
    const bool is_file = S_ISREG(status.st_mode);
    if (is_file && static_cast<size_t>(status.st_size) < size)
        must_system(ftruncate(fd, static_cast<off_t>(size)) == 0, "ftruncate");
    const int flags = sync && is_file ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
    void *base = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    close(fd);
    return base;
}

void map(const Args &args) {
    const size_t size = args.number("size");
    void *base =
        args.has("file")
            ? map_file(args.text("file").c_str(), size, args.number_or("sync", 1) != 0)
            : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must_system(base != MAP_FAILED, "mmap");
    world.memory[args.slot("mr", MAX_REGIONS)] = {static_cast<char *>(base), size};
}

const area &the_memory(const Args &args) {
    const area &memory = world.memory[args.slot("mr", MAX_REGIONS)];
    if (memory.base == nullptr)
        bad_script(args.verb() + ": no such memory");
    return memory;
}

std::span<char> the_range(const Args &args) {
    const area &memory = the_memory(args);
    const size_t offset = args.number_or("off", 0), len = args.number("len");
    if (offset + len > memory.size)
        bad_script(args.verb() + ": outside the memory");
    return {memory.base + offset, len};
}

void describe(const Args &args) {
    const std::vector<unsigned char> descriptor = descriptor_of(the_mr(args));
    reply_bytes("desc", descriptor.data(), descriptor.size());
}

void register_memory(const Args &args) {
    const area &memory = the_memory(args);
    must(rpma_mr_reg(world.peer, memory.base + args.number_or("off", 0),
                     args.number_or("len", memory.size), static_cast<int>(args.number("usage")),
                     &the_mr(args)));
    describe(args);
}

void advise(const Args &args) {
    must(rpma_mr_advise(the_mr(args), 0, args.number("len"),
                        IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH));
}

void take_remote(const Args &args) {
    const std::vector<unsigned char> descriptor = args.bytes("desc");
    rpma_mr_remote *&remote = the_remote(args);
    size_t size = 0;
    int type = 0;
    must(rpma_mr_remote_from_descriptor(descriptor.data(), descriptor.size(), &remote));
    must(rpma_mr_remote_get_size(remote, &size));
    must(rpma_mr_remote_get_flush_type(remote, &type));
    reply("size", size);
    reply("flush", type);
}

void fill(const Args &args) {
    const std::span<char> range = the_range(args);
    pattern_fill(range.data(), range.size(), args.number("seed"));
}

void set(const Args &args) {
    std::ranges::fill(the_range(args), static_cast<char>(args.number("byte")));
}

void expect_all(std::span<char> range, size_t equal) {
    if (equal == range.size())
        return;
    reply("at", equal);
    reply("byte", unsigned{static_cast<unsigned char>(range[equal])});
    throw Failed{ERR_MISMATCH};
}

void check(const Args &args) {
    const std::span<char> range = the_range(args);
    expect_all(range, pattern_check(range.data(), range.size(), args.number("seed")));
}

// All bytes have one value, so nothing was written around the target.
void check_set(const Args &args) {
    const std::span<char> range = the_range(args);
    const char byte = static_cast<char>(args.number("byte"));
    const auto other =
        std::ranges::find_if(range, [byte](char found) { return found != byte; });
    expect_all(range, static_cast<size_t>(other - range.begin()));
}

void show_bytes(const Args &args) {
    const std::span<char> range = the_range(args);
    reply_bytes("bytes", range.data(), range.size());
}

const Commands here{
    {"memory", map},
    {"reg", register_memory},
    {"describe", describe},
    {"dereg", [](const Args &args) { must(rpma_mr_dereg(&the_mr(args))); }},
    {"advise", advise},
    {"remote", take_remote},
    {"remote-delete", [](const Args &args) { must(rpma_mr_remote_delete(&the_remote(args))); }},
    {"fill", fill},
    {"set", set},
    {"check", check},
    {"check-set", check_set},
    {"bytes", show_bytes},
};

} // namespace

std::vector<unsigned char> descriptor_of(const rpma_mr_local *mr) {
    size_t size = 0;
    must(rpma_mr_get_descriptor_size(mr, &size));
    std::vector<unsigned char> descriptor(size);
    must(rpma_mr_get_descriptor(mr, descriptor.data()));
    return descriptor;
}

void pattern_fill(char *bytes, size_t count, uint64_t seed) {
    for (size_t done = 0; done < count; done += PATTERN_WORD) {
        const uint64_t word = pattern_word(seed, done / PATTERN_WORD);
        memcpy(bytes + done, &word, std::min(count - done, PATTERN_WORD));
    }
}

size_t pattern_check(const char *bytes, size_t count, uint64_t seed) {
    for (size_t done = 0; done < count; done += PATTERN_WORD) {
        const uint64_t word = pattern_word(seed, done / PATTERN_WORD);
        const char *wanted = reinterpret_cast<const char *>(&word);
        const char *end = bytes + std::min(count, done + PATTERN_WORD);
        const char *other = std::mismatch(bytes + done, end, wanted).first;
        if (other != end)
            return static_cast<size_t>(other - bytes);
    }
    return count;
}
