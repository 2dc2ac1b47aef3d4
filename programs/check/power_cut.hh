// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// power_cut.hh -- the records of a power cut, and the ledger, which lists the flushed ones
//
// The client writes and flushes numbered records into the server's persistent memory, on
// several connections, and lists in a file which of them are flushed. After the power cut, the
// server compares its memory with that file.

#pragma once

#include "check.hh"

#include <span>

constexpr size_t RECORD_SIZE = 4096; // more than a cache line: a power cut can tear a record
constexpr uint64_t STREAMS = 4;      // connections of a client
constexpr uint64_t STREAMS_MAX = 64; // of another version
constexpr uint64_t DEPTH = 64;       // records of a stream that are not acknowledged yet
constexpr uint64_t PLACES_MIN = 4 * DEPTH;

// Each stream has a ring of places in the memory: record N is at place N modulo their number.
struct Rings {
    uint64_t run = 0; // random: a record of an earlier run must not pass the comparison
    uint64_t streams = STREAMS;
    uint64_t places = 0; // of a stream

    size_t size() const { return streams * places * RECORD_SIZE; }
    size_t offset_of(uint64_t stream, uint64_t number) const;
    // Each word depends on the run, the stream and the number: all words of two records differ.
    void write_record(std::span<std::byte, RECORD_SIZE> record, uint64_t stream,
                      uint64_t number) const;
};

// The records 0 to done - 1 of the stream are flushed, and before the next line of this stream
// is durable, no record from bound on is posted: those from bound - places on are not
// overwritten.
struct Progress {
    uint64_t stream = 0, done = 0, bound = 0;
};

// The file while it is written. All functions throw a Failure.
class Ledger {
  public:
    // Creates the file, which must not exist, with its first line.
    Ledger(std::string path, const Rings &rings);
    Ledger(Ledger &&) = delete;
    ~Ledger();

    void add(const Progress &line);
    void sync(); // makes all added lines durable

  private:
    std::string path_, text_; // text_: lines that are not yet written
    int fd_;
};

struct LedgerContent {
    Rings rings;
    std::vector<Progress> last; // the last line of each stream
    bool is_cut = false;        // an incomplete last line was ignored
};
LedgerContent read_ledger(const std::string &path);
