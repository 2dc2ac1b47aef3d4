// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// word_order.cc -- words of executed writes that become visible one by one, and words of reads
// that the target reads one by one.
//
// A device may write packets and cache lines in any order: InfiniBand Architecture
// Specification, volume 1, o9-20, and PCI Express with relaxed ordering
// (IBV_ACCESS_RELAXED_ORDERING). Only later requests order them (memory_rule.h).

#include "word_order.hh"
#include "resp_parts.hh"

#include <algorithm>
#include <cstring>

namespace sim {

namespace {

constexpr uint64_t WORD = 8;
constexpr size_t MAX_PARTS = 8; // of a write, whose words a schedule chooses together
constexpr uint64_t WORD_DELAY = 100'000'000; // until a late word is visible

size_t count_words(const MemoryRange &to) {
    return static_cast<size_t>((to.address % WORD + to.length + WORD - 1) / WORD);
}

// Adds the chosen words of a write to `late`. Writes the others if `writes` is true.
Copied write_chosen(Fabric &fabric, const Qp &qp, const Qp &peer, const MemoryRange &to,
                    const std::vector<std::byte> &data, const std::vector<bool> &late,
                    bool writes) {
    const uint64_t first = to.address - to.address % WORD, end = to.address + to.length;
    const auto write = [&](uint64_t from, uint64_t until) {
        return from >= until || !writes ||
               to.program->write(from, data.data() + (from - to.address), until - from,
                                 to.writer) ||
               !to.may_fail;
    };
    uint64_t written = to.address; // the words before it are written, or late
    for (size_t word = 0; word < late.size(); word++) {
        if (!late[word])
            continue;
        LateWord added{.writer = qp.handle,
                       .target = peer.handle,
                       .write = fabric.next_late_write,
                       .program = to.program,
                       .address = std::max(first + word * WORD, to.address)};
        const uint64_t next = std::min(first + (word + 1) * WORD, end);
        added.length = static_cast<uint8_t>(next - added.address);
        memcpy(added.bytes, data.data() + (added.address - to.address), added.length);
        if (!write(written, added.address))
            return NO_TARGET;
        written = next;
        fabric.late_words.push_back(std::move(added));
    }
    fabric.next_late_write++;
    return write(written, end) ? COPIED : NO_TARGET;
}

// Words that follow each other in the memory are written at once.
void write_now(const std::vector<LateWord> &words) {
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < words.size();) {
        const LateWord &first = words[i];
        bytes.clear();
        for (; i < words.size() && words[i].program == first.program &&
               words[i].writer == first.writer &&
               words[i].address == first.address + bytes.size();
             i++)
            bytes.insert(bytes.end(), words[i].bytes, words[i].bytes + words[i].length);
        try {
            (void)first.program->write(first.address, bytes.data(), bytes.size(), first.writer);
        } catch (const ProgramEnded &) {
            // its memory is gone
        }
    }
}

template <class Matches> void show(Fabric &fabric, Matches matches) {
    if (fabric.late_words.empty())
        return;
    std::vector<LateWord> shown;
    std::erase_if(fabric.late_words, [&](LateWord &word) {
        const bool is_shown = matches(word);
        if (is_shown)
            shown.push_back(std::move(word));
        return is_shown;
    });
    write_now(shown);
}

bool overlaps(const LateWord &word, const Program *program, uint64_t address, uint64_t length) {
    return word.program.get() == program && word.address < address + length &&
           address < word.address + word.length;
}

} // namespace

// Returns which words are late; empty: none. `may_be_all`: all words may be late.
static std::vector<bool> choose_words(Fabric &fabric, Weakness weakness, size_t count,
                                      bool may_be_all) {
    const size_t parts = std::min(count, MAX_PARTS);
    const unsigned chosen = fabric.choose(weakness, (1U << parts) - (may_be_all ? 1 : 2));
    std::vector<bool> late;
    if (chosen == 0)
        return late;
    late.reserve(count);
    // The first and the last word are parts of their own.
    for (size_t word = 0; word < count; word++) {
        const size_t part = count <= MAX_PARTS ? word
                            : word == 0        ? 0
                            : word == count - 1
                                ? MAX_PARTS - 1
                                : 1 + (word - 1) * (MAX_PARTS - 2) / (count - 2);
        late.push_back(chosen >> part & 1);
    }
    return late;
}

// Returns which words of a write become visible later; empty: none.
static std::vector<bool> choose_late_words(Fabric &fabric, const MemoryRange &to) {
    return choose_words(fabric, Weakness::WORD_ORDER, count_words(to), true);
}

void tear_read(Fabric &fabric, Send &send, const MemoryRange &from) {
    const size_t count = count_words(from);
    std::vector<bool> late;
    if (count > 1)
        late = choose_words(fabric, Weakness::TORN_READ, count, false);
    if (!late.empty())
        send.torn = std::make_shared<TornRead>(TornRead{from, late});
}

void read_late_words(Send &send) try {
    const std::shared_ptr<TornRead> torn = std::move(send.torn);
    if (!torn)
        return;
    const MemoryRange &from = torn->from;
    for (size_t word = 0; word < torn->late.size(); word++) {
        if (!torn->late[word])
            continue;
        const uint64_t begin = from.address - from.address % WORD + word * WORD,
                       first = std::max(begin, from.address),
                       end = std::min(begin + WORD, from.address + from.length);
        std::byte bytes[WORD];
        if (read_range(from, first - from.address, bytes, end - first))
            memcpy(send.inlined.data() + (first - from.address), bytes, end - first);
    }
} catch (const ProgramEnded &) {
    // the words before its end stay
}

// Writes of a queue pair to one word become visible in their order.
Copied write_words(Fabric &fabric, const Qp &qp, const Qp &peer, const MemoryRange &to,
                   const std::vector<std::byte> &data) {
    show_written(fabric, qp, to);
    const std::vector<bool> late = choose_late_words(fabric, to);
    const uint64_t number = fabric.next_late_write;
    if (!late.empty())
        fabric.at(fabric.now() + WORD_DELAY, [&fabric, number] {
            show(fabric, [number](const LateWord &word) { return word.write == number; });
        });
    return write_chosen(fabric, qp, peer, to, data, late, true);
}

void write_part(Fabric &fabric, const Qp &qp, const Qp &peer, const MemoryRange &to,
                const std::vector<std::byte> &data) {
    show_written(fabric, qp, to);
    (void)write_chosen(fabric, qp, peer, to, data, choose_late_words(fabric, to), false);
}

void show_written(Fabric &fabric, const Qp &qp) {
    show(fabric, [&](const LateWord &word) { return word.writer == qp.handle; });
}

void show_written(Fabric &fabric, const Qp &qp, const MemoryRange &place) {
    show(fabric, [&](const LateWord &word) {
        return word.writer == qp.handle &&
               overlaps(word, place.program.get(), place.address, place.length);
    });
}

void show_received(Fabric &fabric, const Qp &qp) {
    show(fabric, [&](const LateWord &word) { return word.target == qp.handle; });
}

void show_words(Fabric &fabric, const Region &region) {
    show(fabric, [&](const LateWord &word) {
        return overlaps(word, region.program.get(), region.address, region.length);
    });
    for (const auto &[number, qp] : fabric.qps)
        for (Send &send : qp->sends)
            if (send.torn && send.torn->from.program == region.program)
                read_late_words(send);
}

void Fabric::interrupt_writes(int pid) {
    for (const auto &[number, qp] : qps)
        if (const Qp *const peer = peer_of(*qp);
            peer && peer->pid == pid && reachable(*qp->context->device, *peer->context->device))
            execute_part(*this, *qp);
    for (const auto &[number, qp] : qps) // also those whose peer has ended
        if (qp->pid == pid)
            show_received(*this, *qp);
}

} // namespace sim
