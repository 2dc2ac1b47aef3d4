// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// block_mover.cc -- checks example 15: no client accepts a wrong block, and each client moves
// all blocks unless it is stopped

#include "simulation.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

namespace {

constexpr unsigned STORE_BLOCKS = 32, PASSES = 3, DEPTH = 8, PATIENCE_MS = 500, MISSED_MAX = 4;
constexpr size_t BLOCK_SIZE = 4096;

// Returns the block that fill_block() of the examples generates for a number.
const char *example_block(unsigned number) {
    static std::string blocks[STORE_BLOCKS];
    std::string &block = blocks[number];
    for (char line[33]; block.size() < BLOCK_SIZE; block += line)
        snprintf(line, sizeof(line), "librpma example %02u, line %06zu\n", number,
                 block.size() / 32 + 1);
    return block.data();
}

// Is true for a client of another example or of rogue/.
bool is_rogue(const Process &process) {
    return simulation.configuration->first_client &&
           process.index == simulation.configuration->servers;
}

// The number at the end of the configuration's name, or 0. It selects the fault of a client of
// rogue/, or of the replies of a server.
int fault_number() {
    const std::string &name = simulation.configuration->name;
    return atoi(name.c_str() + name.rfind('-') + 1);
}

// The client's sum of all blocks.
uint32_t expected_sum() {
    static const uint32_t sum = [] {
        uint32_t made = 0;
        for (unsigned block = 0; block < STORE_BLOCKS; block++) {
            uint32_t checksum = 2166136261U;
            for (const char *byte = example_block(block);
                 byte < example_block(block) + BLOCK_SIZE; byte++)
                checksum = (checksum ^ static_cast<unsigned char>(*byte)) * 16777619U;
            made += checksum * (block + 1);
        }
        return made;
    }();
    return sum;
}

// In mover-damaged, the first server has its store in a file, and a block of it changes while
// the client is connected to both servers.
constexpr unsigned DAMAGED_BLOCK = 4;

bool is_damaged(const Process &process) {
    return simulation.configuration->name == "mover-damaged" && process.index == 0;
}

char &damaged_byte() {
    return simulation.machines[0]->memory.visible()[DAMAGED_BLOCK * BLOCK_SIZE];
}

Arguments mover_arguments(const Process &process) {
    Arguments arguments;
    if (process.is_server) {
        arguments = {process.machine->name, "7471"};
        if (is_damaged(process))
            arguments.push_back(process.machine->name);
        return arguments;
    }
    if (is_rogue(process)) {
        arguments = {simulation.machines[0]->name, "7471"};
        if (fault_number())
            arguments.push_back(std::to_string(fault_number()));
        return arguments;
    }
    if (simulation.configuration->option)
        arguments.push_back(simulation.configuration->option);
    for (unsigned i = 0; i < simulation.configuration->servers; i++)
        arguments.insert(arguments.end(), {simulation.machines[i]->name, "7471"});
    arguments.push_back(process.name.substr(strlen("client")));
    return arguments;
}

// A client must not report a longer time than has passed.
void check_times(Process &process, const char *line) {
    const char *up = strstr(line, "has a block "), *gap = strstr(line, "continues after ");
    const char *setup = strstr(line, "connected in ");
    if (!up && !gap && !setup)
        return;
    const char *number = strpbrk(up ? up : gap ? gap : setup, "0123456789");
    int64_t ms = number ? atoll(number) : -1;
    int64_t most = simulation.now - (up ? process.port_up_at : START);
    if (ms < (gap ? 200 : 0) || ms > most)
        simulation.fail("reports a time that is not possible: %s", line);
    if (up)
        process.port_up_at = NEVER;
}

// A client must wait PATIENCE_MS for a reply, and twice as long after each missing reply.
void check_patience(Process &process, const char *line) {
    const End *lost = lost_end(process, line);
    if (!lost)
        return;
    unsigned &missed = process.missed_replies[lost->server];
    if (lost->has_completion)
        missed = 0;
    if (!strstr(line, "it does not reply"))
        return;
    // Ignores completions that the client takes after it has abandoned the server.
    const int64_t received_at =
        lost->received_at == simulation.now ? lost->previous_received_at : lost->received_at;
    if (simulation.now <= received_at + (int64_t{PATIENCE_MS} << missed))
        simulation.fail("abandons a server too early: %s", line);
    missed = std::min(missed + 1, MISSED_MAX);
}

// Which kind of wrong replies the first server sends; 0: none.
int reply_fault() {
    return simulation.configuration->name.starts_with("mover-bad-reply-") ? fault_number() : 0;
}

bool rogue_accepted;
std::string last_reply; // on the connection last_link
const Link *last_link;

void mover_on_send(const Link &link, int side, std::string &message) {
    if (!reply_fault() || link.machines[side] != simulation.machines[0].get())
        return;
    struct {
        uint32_t ticket, block, slot, checksum;
    } reply;
    const std::string correct = message;
    memcpy(&reply, correct.data(), sizeof(reply));
    if (reply_fault() == 1)
        reply.slot = htonl(DEPTH);
    else if (reply_fault() == 2)
        reply.slot = htonl(ntohl(reply.slot) + 0x10000); // its lower half is a valid slot
    else if (reply_fault() == 3)
        reply.block = htonl((ntohl(reply.block) + 1) % STORE_BLOCKS);
    else if (reply_fault() == 4)
        reply.ticket = htonl(ntohl(reply.ticket) + 1);
    else if (std::exchange(last_link, &link) == &link)
        memcpy(&reply, last_reply.data(), sizeof(reply));
    last_reply = correct;
    memcpy(message.data(), &reply, sizeof(reply));
}

void mover_on_line(Process &process, const char *line) {
    unsigned number, pass, sum;
    check_times(process, line);
    check_patience(process, line);
    rogue_accepted |= process.is_server && strstr(line, " is connected");
    if (strstr(line, "the send was rejected") && !process.machine->refuses_post)
        simulation.fail("posts more than a queue holds: %s", line);
    if (strstr(line, "it sent an invalid request") && !simulation.configuration->first_client)
        simulation.fail("rejects a valid request: %s", line);
    if (sscanf(line, "client %u: pass %u: the sum is %x", &number, &pass, &sum) == 3) {
        process.committed++;
        if (sum != expected_sum() || pass != process.committed)
            simulation.fail("accepts wrong blocks: %s", line);
        if (process.port_up_at != NEVER)
            simulation.fail("receives blocks without reporting how long its port was down");
        process.stop_requested = simulation.configuration->option && pass > PASSES;
    } else if (sscanf(line, "client %*u: moved %u blocks", &number) == 1) {
        if (number / STORE_BLOCKS != process.committed)
            simulation.fail("reports a wrong number of blocks: %s", line);
    } else if (sscanf(line, "server: served %u blocks", &number) == 1) {
        // The last client has requested all blocks. If one of its connections has ended, the
        // server lacks the completions of the last replies.
        const auto of_last =
            std::ranges::count_if(simulation.network.links, [](const auto &link) {
                return link->machines[0] == simulation.processes.back()->machine &&
                       link->ends[0].established;
            });
        if (simulation.configuration->servers == 1 &&
            number + DEPTH * of_last < PASSES * STORE_BLOCKS)
            simulation.fail("reports too few blocks: %s", line);
    } else if (strstr(line, "it sent an unexpected reply")) {
        if (!reply_fault() || !strstr(line, "server machine-of-server1 "))
            simulation.fail("reports a bad reply that no server sent: %s", line);
        process.has_reported_bad_reply = true;
    } else if (strstr(line, "machine-of-server2 is connected") &&
               is_damaged(*simulation.processes[0])) {
        damaged_byte() = '?';
    } else if (strstr(line, "is wrong")) {
        std::string damaged = "client " + process.name.substr(strlen("client")) + ": block " +
                              std::to_string(DAMAGED_BLOCK) + " of server machine-of-server1 ";
        if (!is_damaged(*simulation.processes[0]) || !strstr(line, damaged.c_str()))
            simulation.fail("a block arrives damaged: %s", line);
    } else if (strstr(line, " is lost: ") && !strstr(line, "it does not reply") &&
               !simulation.faulted && !simulation.repaired) {
        simulation.fail("abandons a connection without a fault: %s", line);
    }
}

// Clients and servers continue after any failure of other programs.
void mover_on_end(Process &process) {
    if (is_damaged(*simulation.processes[0]))
        damaged_byte() = *example_block(DAMAGED_BLOCK);
    // A program ends if its device is removed while it opens the device.
    const bool can_fail =
        process.lost_device ||
        process.errors.find("no RDMA device for the address") != std::string::npos;
    if (process.is_server && process.status && !simulation.repaired)
        process.restart_at = simulation.now + 1000; // ended because of a removed device
    if (is_rogue(process)) {
        // The connection of an accepted client may end before it is established.
        if (rogue_accepted != (fault_number() >= 3) || (!rogue_accepted && !process.status))
            simulation.fail("should have been %s", rogue_accepted ? "refused" : "accepted");
        return;
    }
    if (process.status && !(can_fail && simulation.faulted))
        simulation.fail("ends with status %d: %s", process.status,
                        process.first_error().c_str());
    if (process.is_server && !process.stop_requested && !process.status)
        simulation.fail("ends without a stop request");
    if (!process.is_server && reply_fault() && !process.has_reported_bad_reply)
        simulation.fail("does not report the bad reply");
    if (!process.is_server && !process.status &&
        process.committed != PASSES + (simulation.configuration->option ? 1 : 0))
        simulation.fail("succeeds after %u passes", process.committed);
}

// A client must use a port at once when it is up again: at its next wait, it has a connection
// to each server or has started one.
void mover_on_wait(Process &process) {
    // A server without a connection must have posted all of its shared receives.
    const Network &network = simulation.network;
    for (const auto &[handle, object] : network.fabric().objects())
        if (object->kind == sim::Object::SRQ && object->session == process.caller.session &&
            !network.queue_pairs(process))
            if (const auto &srq = static_cast<const sim::Srq &>(*object);
                srq.receives.size() < srq.attr.max_wr)
                simulation.fail("has %zu receives, not %u", srq.receives.size(),
                                srq.attr.max_wr);
    std::map<const Machine *, unsigned> connections; // their number by the client's machine
    for (const uint16_t i : network.open_links)
        if (const Link &link = *network.links[i];
            link.ends[1].owner == &process && link.ends[1].id && link.ends[1].qp)
            connections[link.machines[0]]++;
    if (process.is_server && !process.machine->disconnected &&
        std::ranges::any_of(connections, [](const auto &entry) { return entry.second > 1; }))
        simulation.fail("keeps two connections of one client");
    if (process.is_server || !process.links_at_port_up ||
        simulation.now - PATIENCE_MS > process.port_up_at || process.machine->port_down ||
        network.has_device_event(process))
        return;
    unsigned begun = 0;
    for (const uint16_t i : network.open_links) {
        const End &end = network.links[i]->ends[0];
        begun += end.owner == &process && end.id &&
                 (end.established || i >= process.links_at_port_up);
    }
    if (begun < simulation.configuration->servers)
        simulation.fail("waits after its port came up, with %u connections", begun);
}

} // namespace

const Oracle block_mover = {.example = "15-block-mover",
                            .handles_device_events = true,
                            .early_timeouts_max = 30, // after each, its clients connect again
                            .resolve_ms = PATIENCE_MS,
                            .arguments = mover_arguments,
                            .begin =
                                [] {
                                    last_link = nullptr;
                                    rogue_accepted = false;
                                },
                            .on_line = mover_on_line,
                            .on_send = mover_on_send,
                            .on_end = mover_on_end,
                            .on_wait = mover_on_wait};
