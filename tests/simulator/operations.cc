// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.cc -- checks the programs in operations/ by a plain model of memory: a word that a
// client reported as safe has that value after each power failure, until the client changes it,
// also one that is safe as soon as a later operation takes effect, and the server receives the
// messages of a client, each once, in their order

#include "operations/operations.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <optional>

#include "simulation.hh"

namespace {

std::optional<uint64_t> words[AREAS * WORDS_OF_AREA]; // the safe ones
// A word is safe as soon as the value of another one may be read, also after a power failure.
struct Condition {
    size_t word;
    uint64_t value;
    size_t other;
    uint64_t other_value;
};
std::vector<Condition> conditions;
std::vector<std::string> sent[AREAS]; // the messages of each client
size_t serves, received;              // the client of the server, and how many it has received

Machine &server() {
    return *simulation.machines[0];
}

Arguments arguments_of(const Process &process) {
    Arguments list;
    if (process.is_server)
        list.push_back("--direct-write");
    else if (simulation.configuration->emulated)
        list.push_back("--emulated");
    list.insert(list.end(), {server().name, "7471"});
    list.push_back(process.is_server ? server().name : std::to_string(process.index));
    return list;
}

// The programs' random numbers differ between schedules.
void begin() {
    for (std::optional<uint64_t> &word : words)
        word.reset();
    conditions.clear();
    for (std::vector<std::string> &messages : sent)
        messages.clear();
    for (int bit = 0; bit < 32; bit++)
        simulation.random_numbers = 2 * simulation.random_numbers + simulation.random_bit();
    simulation.random_numbers <<= 16;
}

bool is_safe(size_t word, uint64_t value) {
    const Memory &memory = server().memory;
    return memcmp(memory.image(true) + word * WORD, &value, WORD) == 0 &&
           memory.is_certain(word * WORD, (word + 1) * WORD);
}

// An older value was checked when it became visible.
bool has_value(size_t word, uint64_t value) {
    const Memory &memory = server().memory;
    return memcmp(memory.image(false) + word * WORD, &value, WORD) == 0 ||
           memcmp(memory.image(true) + word * WORD, &value, WORD) == 0;
}

void check() {
    for (size_t i = 0; i < AREAS * WORDS_OF_AREA; i++)
        if (words[i] && !is_safe(i, *words[i]))
            return simulation.fail("word %zu was reported as safe, and is not", i);
    for (const Condition &each : conditions)
        if (!is_safe(each.word, each.value) && has_value(each.other, each.other_value))
            return simulation.fail("word %zu is not safe before word %zu is changed", each.word,
                                   each.other);
}

void on_server_line(const char *line) {
    constexpr std::string_view RECEIVES = "server: receives ";
    if (sscanf(line, "server: serves %zu", &serves) == 1)
        received = 0;
    else if (std::string_view(line).starts_with(RECEIVES) &&
             (serves >= AREAS || received == sent[serves].size() ||
              sent[serves][received++] != line + RECEIVES.size()))
        simulation.fail("receives another message than the client has sent: %s", line);
}

void on_line(Process &client, const char *line) {
    constexpr std::string_view SENDS = "client: sends ";
    if (client.is_server)
        return on_server_line(line);
    unsigned first, count;
    uint64_t value, other_value;
    const size_t begin = client.index * WORDS_OF_AREA;
    std::optional<uint64_t> *const area = words + begin;
    if (std::string_view(line).starts_with("client: broken"))
        return simulation.fail("%s", line);
    if (std::string_view(line).starts_with(SENDS))
        sent[client.index].emplace_back(line + SENDS.size());
    else if (sscanf(line, "client: changes %u %u", &first, &count) == 2) {
        for (unsigned i = 0; i < count; i++)
            area[first + i].reset();
        std::erase_if(conditions, [&](const Condition &each) {
            return each.word >= begin + first && each.word < begin + first + count;
        });
    } else if (sscanf(line, "client: word %u is %" SCNu64 " once word %u is %" SCNu64, &first,
                      &value, &count, &other_value) == 4) {
        conditions.push_back({begin + first, value, begin + count, other_value});
    } else if (sscanf(line, "client: word %u is safe: %" SCNu64, &first, &value) == 2) {
        area[first] = value;
        check();
    }
}

} // namespace

const Oracle operations = {.serves_one_client = true,
                           .arguments = arguments_of,
                           .begin = begin,
                           .on_line = on_line,
                           .on_end = fail_without_fault,
                           .check = check};
