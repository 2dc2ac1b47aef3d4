// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// trace.hh -- the steps of a schedule: calls, messages, and their effects on memory

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../model/calls.hh"
#include "../run/source_line.hh"
#include "../server/pmem.hh"

struct Step {
    enum Kind {
        CALL,
        MESSAGE,
        VISIBLE,
        PERSISTENT,
        LOST,
        COMPLETION,
        CHOICE,
        FAULT,
        OUTPUT,
        PROCESS,
        FOUND
    };
    Kind kind;
    unsigned host = 0; // 0: of no host
    std::string who, what;
    unsigned from = 0;            // the host of the other end of a message; 0: no message
    uint64_t time = 0;            // nanoseconds since the start
    size_t place = 0;             // of a call, in SourceLines
    std::string series = {};      // a text without numbers of requests, to fold a run of calls
    uint64_t first = 0, last = 0; // with a series: the numbers of requests
    size_t count = 1;             // of folded steps
    bool is_post = false, has_failed = false; // of a call
    bool is_choice() const { return kind == CHOICE || kind == FAULT; }
    bool operator==(const Step &other) const { // not the time: a delay is no difference
        return who == other.who && what == other.what && place == other.place;
    }
};

// What a request to the fabric was, as text; `series` and the numbers as in Step.
Step describe(const sim::Fabric &fabric, const sim::CallName *call,
              const std::vector<std::byte> &request, int error, const sim::Reply &reply);
std::string describe(const sim::Cq &cq, const ibv_wc &wc);
std::string describe(const sim::SendWr &wr); // operation and number
// A counter, or an address. `next_to`: another number, which is described in the same base.
std::string describe(uint64_t number, uint64_t next_to = 0);
std::string name_of_status(uint32_t status);
std::vector<uint32_t> known_statuses(); // of completions on the fabric
std::string describe(const Step &step); // folded ones as one

class Trace {
  public:
    explicit Trace(bool is_on) : is_on_(is_on) {}
    explicit operator bool() const { return is_on_; }
    void begin(sim::Fabric &fabric) { fabric_ = &fabric, begin_ = fabric.now(); }
    void end() { is_on_ = false; } // adds no further step
    void add(Step step);           // no effect if its text is empty, or the trace is off
    // Moves the last step before the ones that were added since: a call before its effects.
    size_t size() const { return steps_.size(); }
    void move_last_to(size_t position);

    // Reports of the model.
    void arrived(const sim::Cm::Message &message);
    void packet(unsigned from, unsigned to, const std::string &what); // of TCP or UDP
    void executing(const sim::Qp &qp, const sim::Qp &target, const sim::Send &send);
    void posted(const sim::Qp &qp); // new requests
    void replaced(uint64_t before, uint64_t after);
    void landed(const sim::Qp &qp, const sim::Send &send);
    void written(unsigned host, int pid, uint64_t address, uint64_t length, uint32_t writer,
                 const std::optional<sim::FileRange> &file);
    void persisted(unsigned host, int pid, uint64_t address, uint64_t length, uint32_t writer);
    void lost(unsigned host, uint64_t words, const std::vector<sim::FileRange> &ranges);
    void lost(const sim::Qp &qp, const sim::Send &send, const sim::Device *at, const char *why);

    const std::vector<Step> &steps() const { return steps_; }

  private:
    struct Request {
        uint32_t handle, qp; // of the queue pair, and its number
        unsigned host, target;
        sim::SendWr wr;
        uint64_t length;
        std::string values = {}; // of the word of an atomic operation
        std::string text() const;
    };
    // Bytes that a request has written, and that are not persistent.
    struct Written {
        unsigned host;
        int pid;
        uint64_t address, length;
        std::optional<sim::FileRange> file;
        Request request;
    };
    const Request *request_of(uint32_t writer, uint64_t address) const;

    bool is_on_;
    sim::Fabric *fabric_ = nullptr; // its time, and its memory
    uint64_t begin_ = 0;
    std::vector<Step> steps_;
    std::vector<Request> requests_; // in the order of their execution
    // Digests of the data of requests when they were posted, by queue pair and Send::posted.
    std::map<std::pair<uint32_t, uint64_t>, std::string> posted_;
    std::vector<Written> written_;
};

// Replaces the calls of each program before its first post, or the first message that its host
// gets, by one step with their number. Choices, faults and calls that fail stay.
std::vector<Step> without_set_up(const std::vector<Step> &steps);
// Replaces each run of calls that differ only in the numbers of requests by one step.
std::vector<Step> folded(const std::vector<Step> &steps);
// Replaces all but the first and the last ones, and choices and faults, by one step with their
// number.
std::vector<Step> without_middle(const std::vector<Step> &steps);
inline constexpr size_t FIRST_STEPS = 100, LAST_STEPS = 900;
std::string line_of(const Step &step, const SourceLines &lines);
std::string time_of(const Step &step);
