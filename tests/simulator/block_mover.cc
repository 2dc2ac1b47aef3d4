// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// block_mover.cc -- what must hold in example 15: no client ever takes a wrong block, and
// nothing but its own end keeps it from moving all of them

#include "world.hh"

#include <algorithm>
#include <cstring>

namespace {

constexpr unsigned STORE_BLOCKS = 32, PASSES = 3;

// The sum that the client makes of all blocks.
uint32_t whole_sum() {
    static const uint32_t sum = [] {
        uint32_t made = 0;
        for (unsigned block = 0; block < STORE_BLOCKS; block++) {
            uint32_t checksum = 2166136261U;
            for (const char *byte = block_of(block); byte < block_of(block) + BLOCK_SIZE;
                 byte++)
                checksum = (checksum ^ static_cast<unsigned char>(*byte)) * 16777619U;
            made += checksum * (block + 1);
        }
        return made;
    }();
    return sum;
}

Arguments arguments_of(const Process &process) {
    if (process.is_server)
        return {process.machine->name, "7471"};
    Arguments arguments;
    for (unsigned i = 0; i < world.configuration->servers; i++)
        arguments.insert(arguments.end(), {world.machines[i]->name, "7471"});
    arguments.push_back(process.name.substr(strlen("client")));
    return arguments;
}

void said(Process &process, const char *line) {
    unsigned number, pass, sum;
    if (sscanf(line, "client %u: pass %u: the sum is %x", &number, &pass, &sum) == 3) {
        process.committed++;
        if (sum != whole_sum() || pass != process.committed)
            world.found("takes wrong blocks: %s", line);
    } else if (strstr(line, "is wrong")) {
        world.found("a block comes wrong: %s", line);
    }
}

// Whatever happens to the others, a client goes on, and a server too.
void ended(Process &process) {
    bool may_fail = process.errors.find("no RDMA device for the address") != std::string::npos;
    if (process.status && !(may_fail && world.faulted))
        world.found("ends with status %d: %s", process.status, process.first_error().c_str());
    if (process.is_server && !process.told_to_stop)
        world.found("ends, and nobody has stopped it");
    if (!process.is_server && !process.status && process.committed != PASSES)
        world.found("ends well after %u passes", process.committed);
}

// A port that is up again is used at once: when the client waits next, it has a connection to
// each server, or has begun to make one since then.
void waits(Process &process) {
    bool more = std::ranges::any_of(world.peers, [&process](const rpma_peer *peer) {
        return peer->alive && peer->owner == &process && (peer->gone || !peer->events.empty());
    });
    if (process.is_server || !process.links_at_up || process.machine->port_down || more)
        return;
    unsigned begun = 0;
    for (uint16_t i : world.open_links) {
        const Link &link = *world.links[i];
        const rpma_conn *conn = link.conns[0];
        begun += conn && conn->owner == &process && (conn->up || i >= process.links_at_up);
    }
    if (begun < world.configuration->servers)
        world.found("waits after its port came up, with %u connections", begun);
}

} // namespace

const Oracle block_mover = {.heeds_device = true,
                            .hurries = 30, // its clients begin anew each time
                            .arguments = arguments_of,
                            .said = said,
                            .ended = ended,
                            .waits = waits};
