// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// one_client.cc -- the invariant of examples 05 and 07, whose server serves one client: data
// that were said to be persistent survive every later power failure.

#include "world.hh"

#include <algorithm>
#include <cstring>
#include <map>

namespace {

constexpr size_t BLOCK_SIZE = 4096;

const Process &server() {
    return *world.processes[0];
}

const Memory &memory() {
    return server().machine->memory;
}

// The block that fill_block() makes of a number.
const char *block_of(unsigned number) {
    static std::string blocks[100];
    std::string &block = blocks[number];
    for (char line[33]; block.size() < BLOCK_SIZE; block += line)
        snprintf(line, sizeof(line), "librpma example %02u, line %06zu\n", number,
                 block.size() / 32 + 1);
    return block.data();
}

// Whether the block survives a power failure.
bool keeps_block(size_t offset, unsigned number) {
    return !memcmp(memory().image(true) + offset, block_of(number), BLOCK_SIZE) &&
           memory().is_certain(offset, offset + BLOCK_SIZE);
}

Arguments server_arguments(const Process &process) {
    return {"--direct-write", process.machine->name, "7471", process.machine->name};
}

Arguments client_arguments() {
    return {server().machine->name, "7471"};
}

void ended(const Process &process) {
    if (process.status && process.errors.empty())
        world.found("ends with status %d and does not say why", process.status);
}

// ---- example 05

unsigned promised; // the run of the server whose block was promised, or 0

void begin_block() {
    promised = 0;
}

// A starting server fills the memory anew, so the promise is about this run of it.
void check_block() {
    if (promised && promised == server().starts && !keeps_block(0, 5))
        world.found("the client said that the data is persistent, but it is not");
}

// The client speaks of the run that it is connected to; another run may have begun by now.
void said_block(Process &client, const char *line) {
    bool connected = std::any_of(world.links.begin(), world.links.end(), [&](auto &link) {
        return link->conns[0] && link->conns[0]->owner == &client && link->conns[1];
    });
    bool says_so = strstr(line, "they are persistent");
    promised = connected && says_so ? server().starts : 0;
    check_block();
}

// ---- example 07

constexpr size_t TAIL_PLACE = 0, SIGNATURE_PLACE = 8, LOG_ENTRIES = 64;
constexpr uint64_t OLD_TAIL = 2;
uint64_t appended; // entries whose last flush a client has seen complete
std::map<const Process *, uint64_t> read_tails;
uint64_t changes;

// The memory held other data before, which look like a tail and have no entries.
void begin_log() {
    appended = changes = 0;
    read_tails.clear();
    auto *tail = reinterpret_cast<uint64_t *>(memory().visible() + TAIL_PLACE);
    server().machine->memory.store({tail, OLD_TAIL, UINT64_MAX}, OWN);
    server().machine->memory.persist(TAIL_PLACE, TAIL_PLACE + WORD);
}

void check_log() {
    if (changes == memory().changes())
        return;
    server().machine->memory.find_own_stores();
    changes = memory().changes();
    bool valid = !memcmp(memory().image(true) + SIGNATURE_PLACE, "RPMALOG1", WORD) &&
                 memory().is_certain(SIGNATURE_PLACE, SIGNATURE_PLACE + WORD);
    uint64_t first = UINT64_MAX, last = 0;
    memory().each_outcome(true, TAIL_PLACE, [&](uint64_t tail) {
        first = std::min(first, tail);
        last = std::max(last, tail);
    });
    if (appended && (!valid || first < appended))
        world.found("%zu entries were appended, a power failure may leave %s %zu",
                    static_cast<size_t>(appended), valid ? "only" : "no signature and",
                    static_cast<size_t>(first));
    for (uint64_t i = 0; valid && i < std::min<uint64_t>(last, LOG_ENTRIES); i++)
        if (!keeps_block((i + 1) * BLOCK_SIZE, static_cast<unsigned>(i % 100)))
            return world.found(
                "entry %zu is before the tail, but a power failure may damage it",
                static_cast<size_t>(i));
}

// A client's first completion is of reading the header, each later one of an entry.
void completed(Process &client) {
    if (client.completions == 1)
        read_tails[&client] =
            *reinterpret_cast<const uint64_t *>(memory().visible() + TAIL_PLACE);
    else
        appended = std::max(appended, read_tails[&client] + client.completions - 1);
    changes = 0;
    check_log();
}

} // namespace

const Example flush_to_persistent = {"05-flush-to-persistent",
                                     false,
                                     true,
                                     server_arguments,
                                     client_arguments,
                                     begin_block,
                                     said_block,
                                     nullptr,
                                     ended,
                                     check_block,
                                     nullptr};
const Example atomic_write = {
    "07-atomic-write", false,     true,  server_arguments, client_arguments, begin_log,
    nullptr,           completed, ended, check_log,        nullptr};
