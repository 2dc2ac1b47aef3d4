// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load_generator.hh -- the resources of one load: memory, connections and threads

#pragma once

#include "arguments.hh"
#include "cm_link.hh"
#include "failure.hh"
#include "histogram.hh"
#include "mapping.hh"
#include "waiting.hh"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

struct LoadGenerator;
struct Worker;

// A connection of the load. The measurement continues the operation numbers of the warm-up.
struct Connection {
    LoadGenerator *generator = nullptr;
    Worker *worker = nullptr;
    uint64_t index = 0;
    CmLink link;
    // of the side that posts the load:
    size_t base = 0;         // offset of the connection's part of the memory
    size_t receive_base = 0; // offset of the buffers of its receives
    std::vector<rpma::batch> batches;
    std::array<rpma_sge, ELEMENTS_MAX> sges{};
    std::vector<uint64_t> started;  // time of the post of each place's operation
    uint64_t posted = 0, done = 0;  // operations
    uint64_t connect_ns = 0;        // the time until the connection was established
    uint64_t due = 0;               // due time of the next operation; 0: now
    uint64_t limit = 0;             // the greatest value of posted; 0: no limit
    bool is_finished = false;       // no more posts in this phase
    uint64_t allowed = 0;           // messages for which the server has posted receives
    uint64_t outstanding_sends = 0; // sends that no completion covers yet
    uint64_t replies = 0;           // receives that completed at the client
    // of the side that receives the messages:
    std::atomic<uint64_t> received; // messages
    uint64_t sent = 0;
    uint64_t consumed = 0; // reposted receives not yet credited to the client
};

struct Stopped {}; // thrown in a worker to stop it

struct Worker {
    LoadGenerator *generator = nullptr;
    uint64_t first = 0;          // its connections are first, first + plan.threads, …
    std::optional<rpma::cq> cq;  // set once the generator is constructed
    std::optional<rpma::cq> rcq; // nothing: receives complete in cq
    uint64_t outstanding = 0;    // outstanding operations of all its connections
    std::atomic<uint64_t> progress;
    std::atomic<bool> has_ended;
    Histogram histogram;
    std::vector<Interval> intervals;
    uint64_t began_at = 0, ended_at = 0; // times of the measurement
    uint64_t first_at = 0,
             last_at = 0; // when the first and the last operation completed; 0: none
    std::stop_token token;
    std::jthread thread;

    template <class Use> void for_each_connection(Use use);
    // Waits for completions, at most until this time. Returns at once if the plan polls.
    void wait(rpma::cq_ref queue, uint64_t until = UINT64_MAX) const;
    // Takes completions of both CQs and calls handle(connection, wc, now) for each. Returns
    // their number.
    template <class Handle> int take(Handle handle);
    void check_stop() const {
        if (token.stop_requested())
            throw Stopped();
    }
};

struct Queues {
    uint64_t sends, receives; // per connection
};

struct LoadGenerator {
    // Uses the owned memory or, if that is empty, memory borrowed from the caller.
    LoadGenerator(const Plan &plan, rpma::peer &peer, Queues queues, Mapping owned,
                  std::span<char> borrowed, int usage);
    ~LoadGenerator();
    LoadGenerator(LoadGenerator &&) = delete;

    // The configuration of a connection, with the CQs of its worker.
    rpma::conn_cfg cfg_of(const Connection &connection, Queues queues, bool has_sges);

    void start(void (*run)(Worker &worker));
    // Interrupts all waits and joins all threads.
    void stop();
    // Throws the first failure of a worker, if any.
    void check() const;
    bool has_failed() const;
    bool has_ended() const;
    void wake_main() const;

    // Blocks a worker until open_gate().
    void wait_at_gate(const Worker &worker);
    void open_gate();

    // The memory that the peer may access: target() encodes it, the peer's take_target()
    // decodes it.
    std::string target(bool direct_write) const;
    void take_target(const std::string &digits);
    // Applies the peer's configuration to the connection.
    void apply_target(Connection &connection) const;
    uint64_t progress() const; // completed operations of all workers

    const Plan plan;
    const Operation &operation = plan.op();
    rpma::peer &peer;
    // of the side that connects:
    std::string address, port;
    uint64_t session = 0;  // the number of the load at the server
    uint64_t began_at = 0; // start of the measurement; 0: each worker takes its own time
    Limits limits;         // limits of the side that posts the load
    const Mapping owned;
    const std::span<char> memory;
    rpma::mr_local mr;
    std::optional<rpma::mr_remote> remote; // of the side that posts the load
    std::optional<rpma::peer_cfg> remote_cfg;
    std::vector<Worker> workers;
    std::vector<Connection> connections;
    uint64_t connected = 0;        // number of established connections
    const int wake_fd;             // readable when a worker has ended or waits at the gate
    std::atomic<uint64_t> waiting; // workers at the gate

  private:
    void record_failure(const char *why);

    mutable std::mutex lock_;
    std::condition_variable_any gate_;
    bool is_open_ = false;
    std::string failure_; // the first failure of a worker; "": none
};

template <class Use> void Worker::for_each_connection(Use use) {
    for (uint64_t i = first; i < generator->connections.size(); i += generator->workers.size())
        use(generator->connections[i]);
}

template <class Handle> int Worker::take(Handle handle) {
    std::array<ibv_wc, 32> wcs;
    int taken = 0;
    for (rpma::cq *queue : {rcq ? &*rcq : nullptr, &*cq}) {
        if (!queue)
            continue;
        const rpma::completions found = queue->get_wc(wcs);
        if (found.status() == rpma::status::no_completion)
            continue;
        require_ok(found.status(), "cannot read completions");
        const uint64_t now = now_ns();
        for (const ibv_wc &wc : found) {
            if (wc.status != IBV_WC_SUCCESS)
                fail("an operation failed: {}", ibv_wc_status_str(wc.status));
            handle(*reinterpret_cast<Connection *>(wc.wr_id), wc, now);
        }
        taken += static_cast<int>(found.size());
    }
    return taken;
}
