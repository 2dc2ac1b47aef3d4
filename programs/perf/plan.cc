// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// plan.cc -- the operations, and the settings of a load, which the client chooses

#include "plan.hh"

#include <algorithm>
#include <iterator>

uint64_t find_operation(std::string_view name) {
    const auto *found =
        std::find_if(std::begin(operations), std::end(operations),
                     [name](const Operation &operation) { return operation.name == name; });
    return static_cast<uint64_t>(found - operations);
}

std::string_view Plan::conflict() const {
    const struct {
        bool applies;
        std::string_view text;
    } conflicts[] = {
        {op().is_atomic() && size != ATOMIC_SIZE, "an atomic operation has 8 bytes"},
        {op().is_atomic() && elements > 1, "an atomic operation has one SGE"},
        {op().is_atomic() && prepared && verify,
         "a prepared batch repeats its atomic operations, which cannot be verified"},
        {region && (op().is_message || op().is_fetching()), "--region is for reads and writes"},
        {region && region < size, "the region is smaller than one operation"},
        {random && !region, "--random needs a --region"},
        {reads && (op().type != RPMA_WORK_WRITE || op().flush != NO_FLUSH),
         "--reads applies to writes alone"},
        {(region || reads) && (verify || prepared),
         "--region and --reads exclude --verify and --prepared"},
        {both && (op().is_message || op().is_persistent() || verify),
         "--both is for writes, reads and flushes for visibility, without --verify"},
        {op().is_connect() && (size || depth > 1 || elements > 1 || inline_size || verify ||
                               region || both || rate),
         "connections are established one at a time on each of --connections, without data"},
        {elements > size && !op().is_connect(), "an operation needs a byte for each SGE"},
        {depth % batch != 0, "the depth must be a multiple of the batch"},
        {prepared && batch == 1, "--prepared needs a batch of 2 operations or more"},
        {threads > connections, "each thread needs a connection of its own"},
    };
    for (const auto &conflict : conflicts)
        if (conflict.applies)
            return conflict.text;
    // Without these conflicts, a plan without a size has no places. The product of all factors
    // may exceed 64 bits.
    const bool is_too_large =
        size && connections * target_places() > (UINT64_C(1) << 40) / stride();
    return is_too_large ? "depth or region, size and connections need more than a "
                          "tebibyte of memory"
                        : "";
}

uint64_t Plan::receives() const {
    // Without echoes, the server sends a credit after each half of its receives.
    return op().is_echoed ? depth : std::max(2 * depth, UINT64_C(32));
}

uint64_t Plan::target_places() const {
    if (!op().is_message)
        return region ? region / stride() + (region < stride()) : depth;
    // An echo is sent from the buffer of its message: until it is sent, no receive may
    // overwrite it.
    return op().is_echoed ? 2 * depth : receives();
}

uint64_t Plan::target_size() const {
    return connections * target_places() * stride();
}

uint64_t Plan::offset_of(uint64_t connection, uint64_t number) const {
    const uint64_t next = random ? mix(mix(connection) + number) : number;
    return (connection * target_places() + next % target_places()) * stride();
}

rpma_work_type Plan::type(uint64_t number) const {
    return reads && mix(number) % 100 < reads ? RPMA_WORK_READ : op().type;
}

uint64_t Plan::signal_every() const {
    if (!op().is_echoed)
        return 1;
    return batch > 1 ? batch : std::max(depth, UINT64_C(64));
}

uint64_t Plan::sends() const {
    // The peer has replied to all messages but the last depth ones; completions may be later.
    return 4 * std::max(signal_every(), depth);
}
