// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.cc -- commands for memory, its content and its registration

#include "call.hh"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr size_t PATTERN_WORD = 8;

uint64_t pattern_word(uint64_t seed, uint64_t index) {
    uint64_t mixed = (seed + 1) * 0x9e3779b97f4a7c15ULL + index * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 29)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 32);
}

// With sync, a regular file is mapped with MAP_SYNC, which the kernel refuses outside of DAX
// file systems.
void *map_file(const char *path, size_t size, bool sync) {
    struct stat status;
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    require_system(fd >= 0 && fstat(fd, &status) == 0, "open");
    const bool is_file = S_ISREG(status.st_mode);
    if (is_file && static_cast<size_t>(status.st_size) < size)
        require_system(ftruncate(fd, static_cast<off_t>(size)) == 0, "ftruncate");
    const int flags = sync && is_file ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
    void *base = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    close(fd);
    return base;
}

void map(const Args &args) {
    const size_t size = args.number("size");
    void *base =
        args.has("file")
            ? map_file(args.text("file").c_str(), size, args.number("sync", 1) != 0)
            : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require_system(base != MAP_FAILED, "mmap");
    args.in(fixture.memory, "mr") = {static_cast<char *>(base), size};
}

area range_of(const Args &args) {
    return bytes_of(args,
                    {args.below(MAX_REGIONS, "mr"), args.number("off", 0), args.number("len")});
}

// With size= it maps the memory first.
void register_memory(const Args &args) {
    if (args.has("size"))
        map(args);
    const area memory = args.in(fixture.memory, "mr");
    must(rpma_mr_reg(fixture.peer, memory.data() + args.number("off", 0),
                     args.number("len", memory.size()), args.number<int>("usage"),
                     &args.in(fixture.mr, "mr")));
    const std::vector<unsigned char> descriptor = descriptor_of(object_of<rpma_mr_local>(args));
    reply_bytes("desc", descriptor.data(), descriptor.size());
}

void import_descriptor(const Args &args) {
    const std::vector<unsigned char> descriptor = args.bytes("desc");
    rpma_mr_remote *&remote = args.in(fixture.remote, "rmr");
    must(rpma_mr_remote_from_descriptor(descriptor.data(), descriptor.size(), &remote));
}

void expect_all(area range, size_t equal) {
    if (equal == range.size())
        return;
    reply("at", equal);
    reply("byte", unsigned{static_cast<unsigned char>(range[equal])});
    throw Failed{ERR_MISMATCH};
}

// Waits until the other side's atomic write has stored the bytes= at flag=.
void await_flag(const Args &args) {
    const memory_range place = {args.below(MAX_REGIONS, "mr"), args.number("flag"),
                                sizeof(uint64_t)};
    const std::atomic_ref flag(*reinterpret_cast<uint64_t *>(bytes_of(args, place).data()));
    uint64_t wanted = 0;
    memcpy(&wanted, args.bytes("bytes").data(), sizeof(wanted));
    for (const Clock clock; flag.load(std::memory_order_acquire) != wanted;) {
        require(clock.ms() < 10 * TIMEOUT_MS, ERR_TIMEOUT);
        std::this_thread::yield();
    }
}

void check(const Args &args) {
    if (args.has("flag"))
        await_flag(args);
    pattern_check(range_of(args), args.number("seed"));
}

// Checks that all bytes have this value, so that nothing was written around the target.
void check_set(const Args &args) {
    const area range = range_of(args);
    const char byte = args.number<char>("byte");
    const auto other = std::ranges::find_if(range, [=](char found) { return found != byte; });
    expect_all(range, static_cast<size_t>(other - range.begin()));
}

// The number of heap bytes in use.
void heap(const Args &) {
    malloc_trim(0);
    const struct mallinfo2 info = mallinfo2();
    reply("bytes", info.uordblks + info.hblkhd);
}

const Commands here{
    {"memory", map},
    {"reg", register_memory},
    {"dereg", call(rpma_mr_dereg)},
    {"remote", import_descriptor},
    {"remote-delete", call(rpma_mr_remote_delete)},
    {"fill", [](const Args &args) { pattern_fill(range_of(args), args.number("seed")); }},
    {"set",
     [](const Args &args) { std::ranges::fill(range_of(args), args.number<char>("byte")); }},
    {"check", check},
    {"check-set", check_set},
    {"bytes",
     [](const Args &args) {
         const area range = range_of(args);
         reply_bytes("bytes", range.data(), range.size());
     }},
    {"heap", heap},
};

} // namespace

area bytes_of(const Args &args, const memory_range &range) {
    if (range.memory >= MAX_REGIONS ||
        range.offset + range.len > fixture.memory[range.memory].size())
        args.refuse("outside the memory");
    return fixture.memory[range.memory].subspan(range.offset, range.len);
}

std::vector<unsigned char> descriptor_of(const rpma_mr_local *mr) {
    std::vector<unsigned char> descriptor(get(rpma_mr_get_descriptor_size, mr));
    must(rpma_mr_get_descriptor(mr, descriptor.data()));
    return descriptor;
}

void pattern_fill(area bytes, uint64_t seed) {
    for (size_t done = 0; done < bytes.size(); done += PATTERN_WORD) {
        const uint64_t word = pattern_word(seed, done / PATTERN_WORD);
        memcpy(&bytes[done], &word, std::min(bytes.size() - done, PATTERN_WORD));
    }
}

// Compares each word as soon as it is computed, to detect data that arrives after its flag.
void pattern_check(area bytes, uint64_t seed) {
    for (size_t done = 0; done < bytes.size(); done += PATTERN_WORD) {
        const uint64_t word = pattern_word(seed, done / PATTERN_WORD);
        const area part = bytes.subspan(done, std::min(bytes.size() - done, PATTERN_WORD));
        const auto *wanted = reinterpret_cast<const char *>(&word);
        const auto other = std::mismatch(part.begin(), part.end(), wanted).first;
        if (other != part.end())
            expect_all(bytes, done + static_cast<size_t>(other - part.begin()));
    }
}
