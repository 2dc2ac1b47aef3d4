// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// power_cut_verify.cc -- compares memory with the ledger of a power cut

#include "mapping.hh"
#include "power_cut.hh"

#include <algorithm>
#include <array>
#include <cstring>
#include <sys/mman.h>

namespace {

struct Comparison {
    const Rings &rings;
    const Mapping &memory;
    uint64_t flushed = 0, checked = 0, missing = 0;
    std::string first{}; // describes the first missing record
    std::array<std::byte, RECORD_SIZE> expected{};

    // The position of the first wrong byte of a place, or RECORD_SIZE.
    size_t first_difference(const char *place, uint64_t stream, uint64_t number) {
        rings.write_record(expected, stream, number);
        const auto *bytes = reinterpret_cast<const std::byte *>(place);
        return static_cast<size_t>(
            std::mismatch(expected.begin(), expected.end(), bytes).first - expected.begin());
    }

    std::string describe(const char *place, uint64_t stream, uint64_t number) {
        uint64_t ids[3]; // run, stream and number of the record found
        std::memcpy(ids, place, sizeof(ids));
        std::string content = "has no record of this run";
        if (ids[0] == rings.run && ids[1] == stream && ids[2] != number &&
            ids[2] % rings.places == number % rings.places &&
            first_difference(place, stream, ids[2]) == RECORD_SIZE)
            content = fmt::format("has record {}", ids[2]);
        else if (ids[0] == rings.run)
            content = fmt::format("is torn: its byte {} of {} is wrong",
                                  first_difference(place, stream, number), RECORD_SIZE);
        return fmt::format(", first missing: stream {}, record {}; its place at byte {} {}",
                           stream, number, rings.offset_of(stream, number), content);
    }

    // Compares the flushed records that no later record may have overwritten.
    void compare(const Progress &line) {
        flushed += line.done;
        for (uint64_t number = line.bound - std::min(line.bound, rings.places);
             number < line.done; number++) {
            const char *place = memory.data() + rings.offset_of(line.stream, number);
            checked++;
            if (first_difference(place, line.stream, number) != RECORD_SIZE && missing++ == 0)
                first = describe(place, line.stream, number);
        }
    }
};

} // namespace

int verify_records(const Options &options) {
    const LedgerContent content = read_ledger(options.verify);
    const Mapping memory = Mapping::map(options.memory, PROT_READ);
    if (memory.size() < content.rings.size())
        fail("{} has {} bytes, the records of {} need {}", options.memory, memory.size(),
             options.verify, content.rings.size());
    Comparison comparison{content.rings, memory};
    for (const Progress &line : content.last)
        comparison.compare(line);
    if (comparison.checked == 0)
        fail("{} lists no flushed record that is still in the memory", options.verify);
    fmt::print("{} records flushed, {} checked, {} missing{}{}\n", comparison.flushed,
               comparison.checked, comparison.missing, comparison.first,
               content.is_cut ? fmt::format(" (the last line of {} is incomplete and ignored)",
                                            one_line(options.verify))
                              : "");
    return comparison.missing == 0 ? EXIT_AS_EXPECTED : EXIT_DIFFERENCES;
}
