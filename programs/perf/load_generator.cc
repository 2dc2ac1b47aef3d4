// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load_generator.cc -- the resources of one load, and the start and stop of its threads

#include "load_generator.hh"

#include "message.hh"

#include <algorithm>
#include <csignal>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static rpma::cq make_cq(rpma::peer &peer, uint64_t size) {
    return attempt(fmt::format("cannot create a completion queue of {} entries", size), [&] {
        rpma::cq_cfg cfg;
        return rpma::cq(peer, cfg.set_size(static_cast<uint32_t>(size)));
    });
}

LoadGenerator::LoadGenerator(const Plan &load_plan, rpma::peer &of, Queues queues,
                             Mapping own_memory, std::span<char> borrowed, int usage)
    : plan(load_plan), peer(of), owned(std::move(own_memory)),
      memory(owned.size() ? std::span(owned.data(), owned.size()) : borrowed),
      mr(attempt(fmt::format("cannot register {} bytes of memory", memory.size()),
                 [&] { return rpma::mr_local(peer, memory.data(), memory.size(), usage); })),
      workers(plan.threads), connections(plan.connections),
      wake_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_fd < 0)
        fail("eventfd: {}", strerror(errno));
    const uint64_t connections_per_worker =
        (plan.connections + plan.threads - 1) / plan.threads;
    const bool is_split = operation.has_receive_cq;
    for (Worker &worker : workers) {
        worker.generator = this;
        worker.first = static_cast<uint64_t>(&worker - workers.data());
        worker.cq = make_cq(peer, connections_per_worker *
                                      (queues.sends + (is_split ? 0 : queues.receives)));
        if (is_split)
            worker.rcq = make_cq(peer, connections_per_worker * queues.receives);
        worker.for_each_connection([&](Connection &connection) {
            connection.generator = this;
            connection.worker = &worker;
            connection.index = static_cast<uint64_t>(&connection - connections.data());
        });
    }
}

LoadGenerator::~LoadGenerator() {
    stop();
    close(wake_fd);
}

rpma::conn_cfg LoadGenerator::cfg_of(const Connection &connection, Queues queues,
                                     bool has_sges) {
    rpma::conn_cfg cfg = link_cfg();
    Worker &worker = *connection.worker;
    cfg.set_sq_size(static_cast<uint32_t>(queues.sends))
        .set_rq_size(static_cast<uint32_t>(queues.receives))
        .set_cq(*worker.cq);
    if (worker.rcq)
        cfg.set_rcq(*worker.rcq);
    if (has_sges)
        cfg.set_max_sge(static_cast<uint32_t>(plan.elements));
    if (has_sges && plan.inline_size > ATOMIC_SIZE) // every connection accepts this size
        cfg.set_inline_size(static_cast<uint32_t>(plan.inline_size));
    return cfg;
}

void LoadGenerator::start(void (*run)(Worker &worker)) {
    for (Worker &worker : workers)
        worker.thread = std::jthread([this, run, &worker](std::stop_token token) {
            worker.token = std::move(token);
            try {
                run(worker);
            } catch (const Stopped &) {
            } catch (const std::exception &why) {
                record_failure(why.what());
            }
            worker.has_ended = true;
            wake_main();
        });
}

void LoadGenerator::stop() {
    for (Worker &worker : workers)
        worker.thread.request_stop();
    for (Worker &worker : workers) {
        if (!worker.thread.joinable())
            continue;
        while (!worker.has_ended) { // repeated, because a signal just before a wait does not
                                    // interrupt it
            pthread_kill(worker.thread.native_handle(), WAKE_SIGNAL);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        worker.thread.join();
    }
}

void LoadGenerator::record_failure(const char *why) {
    const std::lock_guard guard(lock_);
    if (failure_.empty())
        failure_ = why;
}

bool LoadGenerator::has_failed() const {
    const std::lock_guard guard(lock_);
    return !failure_.empty();
}

void LoadGenerator::check() const {
    if (has_failed())
        throw Failure(failure_);
}

bool LoadGenerator::has_ended() const {
    return std::ranges::all_of(
        workers, [](const Worker &worker) { return static_cast<bool>(worker.has_ended); });
}

void LoadGenerator::wake_main() const {
    eventfd_write(wake_fd, 1);
}

void LoadGenerator::wait_at_gate(const Worker &worker) {
    std::unique_lock guard(lock_);
    waiting++;
    wake_main();
    gate_.wait(guard, worker.token, [this] { return is_open_; });
    worker.check_stop();
}

void LoadGenerator::open_gate() {
    const std::lock_guard guard(lock_);
    is_open_ = true;
    gate_.notify_all();
}

// Returns, in hex: the memory's descriptor, direct write to PMem, native operations.
std::string LoadGenerator::target(bool direct_write) const {
    return attempt("no descriptor", [&] {
        rpma::peer_cfg cfg;
        cfg.set_direct_write_to_pmem(direct_write);
        return to_hex(rpma::packed({mr}, cfg));
    });
}

void LoadGenerator::take_target(const std::string &digits) {
    const auto bytes = from_hex(digits);
    auto found =
        attempt("cannot use the other side's memory", [&] { return rpma::unpack(bytes); });
    if (found.regions.size() != 1 || !found.pcfg)
        fail("the other side sent an incomplete description");
    remote = std::move(found.regions[0]);
    remote_cfg = std::move(found.pcfg);
}

void LoadGenerator::apply_target(Connection &connection) const {
    attempt("cannot apply the other side's configuration",
            [&] { connection.link.conn.apply_remote_peer_cfg(*remote_cfg); });
}

uint64_t LoadGenerator::progress() const {
    uint64_t sum = 0;
    for (const Worker &worker : workers)
        sum += worker.progress.load(std::memory_order_relaxed);
    return sum;
}

void Worker::wait(rpma::cq_ref queue, uint64_t until) const {
    check_stop();
    if (generator->plan.poll)
        return;
    if (until != UINT64_MAX) {
        const uint64_t now = now_ns(), left = until > now ? until - now : 0;
        const timespec time{static_cast<time_t>(left / 1000000000),
                            static_cast<long>(left % 1000000000)};
        pollfd poll{queue.get_fd(), POLLIN, 0};
        if (ppoll(&poll, 1, &time, nullptr) <= 0)
            return check_stop();
    }
    // no_completion: a signal interrupted the wait, perhaps to stop the worker.
    if (const auto status = queue.wait(); status != rpma::status::no_completion)
        require_ok(status, "cannot wait for completions");
    check_stop();
}
