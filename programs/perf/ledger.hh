// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ledger.hh -- the file that lists the flushed records of a client

#ifndef RPMA_PERF_LEDGER_HH
#define RPMA_PERF_LEDGER_HH 1

#include "plan.hh"

#include <array>
#include <span>
#include <string>

constexpr uint64_t RECORD_SIZE_MIN =
    128; // more than a cache line: a power cut can tear a record

// The first line of a ledger. It determines the offset and the bytes of each record.
struct LedgerHead {
    uint64_t run = 0; // random: a record of an earlier run must not pass the check
    Plan plan;

    uint64_t offset_of(uint64_t connection, uint64_t number) const;
    void fill(std::span<char> record, uint64_t connection, uint64_t number) const;
};

// A later line: the records 0 to done - 1 of the connection were flushed, and before the next
// line of this connection is durable, no record from bound on was posted.
struct LedgerLine {
    uint64_t connection = 0, done = 0, bound = 0;
};

// The file while it is written. All functions throw a Failure.
class Ledger {
  public:
    // Creates the file, which must not exist, with its first line.
    Ledger(std::string path, const LedgerHead &head);
    Ledger(Ledger &&) = delete;
    ~Ledger();

    void add(const LedgerLine &line);
    void sync(); // makes all added lines durable

  private:
    std::string path, text; // text: lines that are not yet written
    int fd;
};

struct LedgerContent {
    LedgerHead head;
    std::array<LedgerLine, CONNECTIONS_MAX> lines; // the last line of each connection
    bool is_torn = false; // an incomplete last line, left by a client that
                          // crashed, was ignored
};
LedgerContent read_ledger(const std::string &path);

// Compares the memory at path with the ledger, prints the result and returns the exit status.
int check_ledger(const std::string &ledger, const std::string &path);

#endif
