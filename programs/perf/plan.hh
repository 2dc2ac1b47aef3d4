// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// plan.hh -- the operations, and the settings of a load, which the client chooses

#pragma once

#include <cstdint>
#include <librpma.h>
#include <string>
#include <string_view>

constexpr int NO_FLUSH = -1;

struct Operation {
    std::string_view name;
    rpma_work_type type;
    int flush = NO_FLUSH; // type of the flush after each operation
    bool is_message = false, is_echoed = false, has_receive_cq = false;

    bool is_fetching() const {
        return type == RPMA_WORK_FETCH_ADD || type == RPMA_WORK_COMPARE_SWAP;
    }
    bool is_atomic() const { return type == RPMA_WORK_ATOMIC_WRITE || is_fetching(); }
    bool is_connect() const { return type == rpma_work_type{}; }
    bool is_read() const { return type == RPMA_WORK_READ; }
    bool fetches() const { return is_read() || is_fetching(); } // into the client's memory
    bool is_persistent() const { return flush == RPMA_FLUSH_TYPE_PERSISTENT; }
};

inline constexpr Operation operations[] = {
    {"write", RPMA_WORK_WRITE},
    {"read", RPMA_WORK_READ},
    {"flush-visibility", RPMA_WORK_WRITE, RPMA_FLUSH_TYPE_VISIBILITY},
    {"flush-persistent", RPMA_WORK_WRITE, RPMA_FLUSH_TYPE_PERSISTENT},
    {"atomic-write", RPMA_WORK_ATOMIC_WRITE},
    {"send", RPMA_WORK_SEND, NO_FLUSH, true},
    {"ping-pong", RPMA_WORK_SEND, NO_FLUSH, true, true},
    {"ping-pong-rcq", RPMA_WORK_SEND, NO_FLUSH, true, true, true},
    {"fetch-add", RPMA_WORK_FETCH_ADD},
    {"compare-swap", RPMA_WORK_COMPARE_SWAP},
    {"connect", rpma_work_type{}}, // establishes a connection and closes it
};
constexpr uint64_t OPERATION_COUNT = std::size(operations);
// The operation's index in the table, or OPERATION_COUNT.
uint64_t find_operation(std::string_view name);

constexpr uint64_t CONNECTIONS_MAX = 1024, ELEMENTS_MAX = 32;
constexpr uint64_t OPERATION_SIZE_MAX = UINT64_C(1) << 30;
constexpr uint64_t ATOMIC_SIZE = 8;
// Transfers begin at multiples of this value: rdma_rxe misplaces other transfers in memory with
// on-demand paging.
constexpr uint64_t PLACE_ALIGNMENT = 4096;

// The finalizer of splitmix64: each bit of the input changes half of the output.
constexpr uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

constexpr uint64_t aligned(uint64_t size) {
    return (size + PLACE_ALIGNMENT - 1) / PLACE_ALIGNMENT * PLACE_ALIGNMENT;
}

struct Plan {
    uint64_t operation = 0; // index in operations[]
    uint64_t size = 64;
    uint64_t depth = 1; // maximum number of outstanding operations of a connection
    uint64_t batch = 1; // operations posted at once
    uint64_t prepared = 0;
    uint64_t elements = 1;
    uint64_t inline_size = 0;
    uint64_t connections = 1;
    uint64_t threads = 1;
    uint64_t poll = 0;
    uint64_t verify = 0;
    uint64_t region = 0; // bytes of a connection in the server's memory; 0: a place for each
                         // outstanding operation
    uint64_t random = 0; // places in random order
    uint64_t reads = 0;  // percent of the operations that are reads instead
    uint64_t both = 0;   // the server also posts the same load to the client's memory
    uint64_t rate = 0;   // operations per second of all connections at most; 0: no limit

    const Operation &op() const { return operations[operation]; }
    // How many of the first `count` operations of a connection used this place.
    uint64_t times(uint64_t place, uint64_t count) const {
        return count > place ? (count - place - 1) / depth + 1 : 0;
    }
    // Describes a conflict between settings; "": none.
    std::string_view conflict() const;

    // Both sides derive these values from the plan.
    uint64_t stride() const { return aligned(size); } // bytes from one place to the next
    uint64_t receives() const;                        // number per connection, on the server
    uint64_t target_places() const; // number per connection, in the server's memory
    // The offset of an operation's place in the server's memory.
    uint64_t offset_of(uint64_t connection, uint64_t number) const;
    rpma_work_type type(uint64_t number) const; // the type of an operation
    uint64_t target_size() const;               // bytes for all connections
    uint64_t signal_every() const;              // one of this many sends is signaled
    uint64_t sends() const;                     // maximum number of outstanding sends
};

// A setting of the plan: its name in messages, in JSON and as an option, and its range.
struct Setting {
    const char *name;
    uint64_t Plan::*field;
    uint64_t min, max;
};

inline constexpr Setting settings[] = {
    {"operation", &Plan::operation, 0, OPERATION_COUNT - 1},
    {"size", &Plan::size, 0, OPERATION_SIZE_MAX},
    {"depth", &Plan::depth, 1, 4096},
    {"batch", &Plan::batch, 1, 4096},
    {"prepared", &Plan::prepared, 0, 1},
    {"elements", &Plan::elements, 1, ELEMENTS_MAX},
    {"inline", &Plan::inline_size, 0, 4096},
    {"connections", &Plan::connections, 1, CONNECTIONS_MAX},
    {"threads", &Plan::threads, 1, 64},
    {"poll", &Plan::poll, 0, 1},
    {"verify", &Plan::verify, 0, 1},
    {"region", &Plan::region, 0, UINT64_C(1) << 40},
    {"random", &Plan::random, 0, 1},
    {"reads", &Plan::reads, 0, 100},
    {"both", &Plan::both, 0, 1},
    {"rate", &Plan::rate, 0, 1000000000},
};
