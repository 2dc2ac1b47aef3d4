// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.cc -- checks the programs in operations/ by a plain model of memory: a word that a
// client reported as safe has that value after each power failure, until the client changes it,
// and the server receives the messages of a client, each once, in their order

#include "operations/operations.h"

#include <cinttypes>
#include <cstring>
#include <optional>

#include "simulation.hh"

namespace {

std::optional<uint64_t> words[AREAS * WORDS_OF_AREA]; // the safe ones
std::vector<std::string> sent[AREAS];                 // the messages of each client
size_t serves, received; // the client of the server, and how many it has received

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
    for (std::vector<std::string> &messages : sent)
        messages.clear();
    for (int bit = 0; bit < 32; bit++)
        simulation.random_numbers = 2 * simulation.random_numbers + simulation.random_bit();
    simulation.random_numbers <<= 16;
}

void check() {
    const Memory &memory = server().memory;
    for (size_t i = 0; i < AREAS * WORDS_OF_AREA; i++)
        if (words[i] && (memcmp(memory.image(true) + i * WORD, &*words[i], WORD) != 0 ||
                         !memory.is_certain(i * WORD, (i + 1) * WORD)))
            return simulation.fail("word %zu was reported as safe, and is not", i);
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
    uint64_t value;
    std::optional<uint64_t> *const area = words + client.index * WORDS_OF_AREA;
    if (strstr(line, "reads other words"))
        return simulation.fail("%s", line);
    if (std::string_view(line).starts_with(SENDS))
        sent[client.index].emplace_back(line + SENDS.size());
    else if (sscanf(line, "client: changes %u %u", &first, &count) == 2) {
        for (unsigned i = 0; i < count; i++)
            area[first + i].reset();
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
