// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// check.cc -- compares memory with a ledger

#include "failure.hh"
#include "ledger.hh"
#include "memory.hh"
#include "pattern.hh"

#include <sys/mman.h>

static constexpr int EXIT_MISSING = 3; // a recorded record is missing

namespace {

struct Check {
    const LedgerHead &head;
    const Memory &memory;
    uint64_t recorded = 0, checked = 0, found = 0;
    std::string first_missing{};
    std::string expected = std::string(head.plan.size, '\0');

    std::span<const char> data_of(uint64_t connection, uint64_t number) const {
        return {memory.data() + head.offset_of(connection, number), head.plan.size};
    }

    size_t first_wrong(std::span<const char> data, uint64_t connection, uint64_t number) {
        head.fill(expected, connection, number);
        return first_difference(data, expected.data());
    }

    std::string describe(uint64_t connection, uint64_t number) {
        const auto data = data_of(connection, number);
        uint64_t ids[3]; // run, connection and number of the record found
        std::memcpy(ids, data.data(), sizeof(ids));
        const size_t wrong = first_wrong(data, connection, number), size = head.plan.size;
        std::string what = "has no record of this run";
        if (ids[0] == head.run && ids[2] != number &&
            first_wrong(data, connection, ids[2]) == size)
            what = fmt::format("has record {}", ids[2]);
        else if (ids[0] == head.run)
            what = fmt::format("is torn: its byte {} of {} is wrong", wrong, size);
        return fmt::format(", first missing: connection {}, record {}; its place at byte {} {}",
                           connection, number, head.offset_of(connection, number), what);
    }

    // Checks the recorded records that no later record may have overwritten.
    void check_line(const LedgerLine &line) {
        const uint64_t ring = head.plan.ring;
        recorded += line.done;
        for (uint64_t number = line.bound > ring ? line.bound - ring : 0; number < line.done;
             number++) {
            checked++;
            if (first_wrong(data_of(line.connection, number), line.connection, number) ==
                head.plan.size)
                found++;
            else if (first_missing.empty())
                first_missing = describe(line.connection, number);
        }
    }
};

} // namespace

int check_ledger(const std::string &ledger, const std::string &path) {
    const LedgerContent content = read_ledger(ledger);
    const Memory memory = Memory::map(path, PROT_READ);
    const Plan &plan = content.head.plan;
    if (memory.size() < plan.target_size())
        fail("{} has {} bytes, the ledger {} needs at least {}", path, memory.size(), ledger,
             plan.target_size());
    Check check{content.head, memory};
    for (const LedgerLine &line : content.lines)
        check.check_line(line);
    if (!check.checked)
        fail("the ledger {} lists no record to check", ledger);
    fmt::print("{}: {} records recorded, {} checked, {} found{}{}\n", plan.op().name,
               check.recorded, check.checked, check.found, check.first_missing,
               content.is_torn ? " (the last line of the ledger is incomplete and ignored)"
                               : "");
    check_output();
    return check.found < check.checked ? EXIT_MISSING : EXIT_SUCCESS;
}
