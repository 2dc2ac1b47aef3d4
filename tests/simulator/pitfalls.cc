// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pitfalls.cc -- checks the programs in pitfalls/: data that a client reported as safe exists,
// and no pointer exists without its record

#include "pitfalls/pitfalls.h"
#include "simulation.hh"

#include <algorithm>
#include <cstring>

namespace {

unsigned entry; // of rpma_pitfalls(7)
bool wrong;
bool safe;       // a client has reported this
unsigned number; // the last number that a client reported as safe

Machine &target() {
    return *simulation.machines[0];
}

// --direct-write is step 9 of rpma_pmem(7). In entry 1, the operator has skipped it.
Arguments arguments_of(const Process &process) {
    Arguments list;
    if (wrong)
        list.push_back("--wrong");
    if (process.is_server && entry != 1)
        list.push_back("--direct-write");
    list.insert(list.end(), {target().name, "7471", std::to_string(entry)});
    if (process.is_server)
        list.push_back(target().name);
    return list;
}

void begin() {
    char form;
    if (sscanf(simulation.configuration->name.c_str(), "pitfall-%u-%c", &entry, &form) != 2)
        return simulation.fail("the name of a pitfall is like pitfall-3-wrong");
    wrong = form == 'w';
    safe = false;
    number = 0;
    Memory &memory = target().memory;
    memory.direct_write = entry != 1; // in entry 1, DDIO is enabled
    memory.is_pmem = entry != 10;
    memory.tears = entry == 6;
}

// Returns true if the visible data contains the record, or if each state does that a power
// failure can leave.
bool has_record(bool persistent) {
    const Memory &memory = target().memory;
    const char *record = memory.image(persistent) + RECORD;
    return std::all_of(record, record + LEN, [](char byte) { return byte == RECORD_BYTE; }) &&
           (!persistent || memory.is_certain(RECORD, RECORD + LEN));
}

// The number that the program of entry 6 reads after a restart.
unsigned recovered_number() {
    unsigned newest = 0;
    for (size_t place : {POINTER, POINTER_2}) {
        const char *bytes = target().memory.visible() + place;
        if (!memcmp(bytes, bytes + 1, WORD - 1))
            newest = std::max<unsigned>(newest, static_cast<unsigned char>(*bytes));
    }
    return newest;
}

void check() {
    target().memory.find_own_stores();
    if (entry == 6 && recovered_number() < number)
        return simulation.fail("number %u was reported as safe, but %u is found", number,
                               recovered_number());
    if (entry == 4 || entry == 6)
        return;
    for (bool persistent : {false, true}) {
        bool published = false;
        target().memory.each_outcome(persistent, POINTER,
                                     [&](uint64_t word) { published |= word == 1; });
        if (published && !has_record(persistent))
            simulation.fail("a pointer exists without its record");
    }
    // Entry 2 promises only visible data, all others data that survives a power failure.
    if (safe && !has_record(entry != 2))
        simulation.fail("a record reported as safe is lost");
}

// In entry 4, the client reports that the record is visible now.
void on_line(Process &client, const char *line) {
    if (client.is_server)
        return;
    if (entry == 4 && simulation.is_connected(client) && !has_record(false))
        simulation.fail("a record reported as visible is not");
    if (sscanf(line, "client: the number %u is safe", &number) != 1)
        safe = entry != 6;
    check();
}

} // namespace

const Oracle pitfalls = {.serves_one_client = true,
                         .arguments = arguments_of,
                         .begin = begin,
                         .on_line = on_line,
                         .check = check};
