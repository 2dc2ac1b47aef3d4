// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// fault_effects.cc -- the delays, weaknesses and faults of a schedule, and their effects

#include "schedule.hh"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <unistd.h>

uint64_t Schedule::delay(sim::Delayed what) {
    const uint32_t option = chooser_.choose(Chooser::DELAY, std::size(LATE));
    if (option == 0)
        return 0;
    add_step(Step::CHOICE, late_text(what, option));
    return LATE[option - 1];
}

unsigned Schedule::choose(sim::Weakness weakness, unsigned options) {
    const uint32_t option = chooser_.choose(weakness, options);
    if (option != 0)
        add_step(Step::CHOICE, weakness_text(weakness));
    coverage.add_to_digest(option);
    return option;
}

Chooser::Window Schedule::window() const {
    return Chooser::window_of(
        {has_unpersisted_ || std::ranges::any_of(processes_, &Process::persists),
         server_->fabric().next_timer() != NEVER, requests_, posted_at_, restarted_at_});
}

// Returns the first program, in the usual order, that makes a post in its next turn; 0: none,
// or no choice depends on it.
unsigned Schedule::posting_program() const {
    if (!chooser_.precedes_posts())
        return 0;
    for (size_t i = 0; i < processes_.size(); i++) {
        const Process &process = processes_[(current_ + i) % processes_.size()];
        if (process.waits || !is_ready(process))
            continue;
        const std::vector<std::byte> *const request = server_->held(client_of(process));
        uint32_t op = 0;
        if (request != nullptr && request->size() >= sizeof(op))
            memcpy(&op, request->data(), sizeof(op));
        if (op == sim::OP_POST_SEND)
            return process.number;
    }
    return 0;
}

std::vector<Sockets::Owner> Schedule::owners() {
    std::vector<Sockets::Owner> all;
    for (Process &process : processes_)
        if (process.is_alive && process.first == nullptr && process.pidfd >= 0)
            all.push_back(owner_of(process));
    return all;
}

void Schedule::links_changed() {
    if (sockets_)
        sockets_->links_changed();
    descriptors_changed();
}

// A program sends bytes by TCP or UDP.
void Schedule::transmit(Process &process, const std::vector<std::byte> &request) {
    sim::Transmit wanted{};
    sim::Reply reply;
    const size_t head = std::min(request.size(), sizeof(wanted));
    memcpy(&wanted, request.data(), head);
    wanted.function[sizeof(wanted.function) - 1] = '\0';
    wanted.host = std::min(wanted.host, sim::MAX_HOSTS);
    wanted.address_size = std::min<uint32_t>(wanted.address_size, sizeof(wanted.address));
    const std::string data(reinterpret_cast<const char *>(request.data()) + head,
                           request.size() - head);
    const std::string what = wanted.ends != 0 ? "no more data"
                                              : std::to_string(data.size()) + " bytes",
                      protocol = wanted.is_stream != 0 ? "TCP" : "UDP";
    if (trace_)
        add_call(process,
                 {Step::CALL, 0, "",
                  wanted.function + (": " + what) + " by " + protocol + " to host" +
                      std::to_string(wanted.host)},
                 trace_.size());
    const uint64_t late = delay(sim::Delayed::PACKET);
    const auto verdict = sockets_->transmit(owner_of(process), wanted, data, late);
    if (verdict == sim::Transmit::SEND || verdict == sim::Transmit::SEND_TWICE)
        record_progress();
    reply.as<sim::Transmit::Reply>().verdict = verdict;
    server_->release_held(client_of(process), reply);
}

// Calls the function for the program of the fault, or for all programs of its host.
template <class Function>
void Schedule::for_each_process(const sim::Fault &fault, Function function) {
    for (size_t i = 0; i < settings_.commands.size(); i++)
        if (Process &process = processes_[i]; fault.program != 0
                                                  ? process.number == fault.program
                                                  : process.command->host == fault.hosts[0])
            function(process);
}

bool Schedule::has_process(const sim::Fault &fault) const {
    return std::ranges::any_of(processes_, [&](const Process &process) {
        return process.is_alive &&
               (fault.program == 0 ? process.command->host == fault.hosts[0]
                                   : process.number == fault.program && process.is_started);
    });
}

// Records the calls that the programs of the hosts make next, or in which they wait.
void Schedule::cover(const sim::Fault &fault) {
    const auto kind = static_cast<size_t>(fault.kind - sim::fault_kinds().data());
    coverage.faults.set(kind * Coverage::CALLS + Coverage::NO_CALL);
    for (const char byte : fault.text)
        coverage.add_to_digest(static_cast<unsigned char>(byte));
    for (const Process &process : processes_) {
        if (!process.is_alive || !process.is_started || process.spin.is_stopped() ||
            std::ranges::find(fault.hosts, process.command->host) == fault.hosts.end())
            continue;
        const std::vector<std::byte> *const request =
            process.waits ? nullptr : server_->held(client_of(process));
        const sim::CallName *const call = process.waits ? sim::find_call(process.wait.function)
                                          : request == nullptr
                                              ? nullptr
                                              : name_of_call(fabric(), *request);
        if (call != nullptr)
            coverage.faults.set(kind * Coverage::CALLS +
                                static_cast<size_t>(call - sim::call_names().data()));
    }
}

void Schedule::apply(const sim::Fault &fault) {
    faults++;
    std::string text = "fault: " + fault.text;
    if (fault.program != 0)
        if (const std::string &name = processes_[fault.program - 1].name;
            fault.text.find(name) == fault.text.npos)
            text += " (" + name + ")";
    add_step(Step::FAULT, text);
    last_fault_at_ = fabric().now();
    cover(fault);
    sim::apply(*this, fault);
    if (fault.lasts == 0) {
        has_lasting_fault_ |= fault.kind->end != nullptr && !fault.kind->is_noticed;
        return;
    }
    ends_.emplace(fabric().now() + fault.lasts, &fault);
}

void Schedule::end_due_faults() {
    while (next_end() <= fabric().now()) {
        const sim::Fault &fault = *ends_.extract(ends_.begin()).mapped();
        add_step(Step::PROCESS, "the fault ends: " + fault.text);
        last_fault_at_ = fabric().now();
        sim::end(*this, fault);
    }
}

void Schedule::kill(const sim::Fault &fault) {
    for_each_process(fault, [&](Process &process) {
        process.restarts = fault.lasts != 0;
        kill_command(process);
    });
}

// A program that has ended by itself, or has not started yet, is not started.
void Schedule::start(const sim::Fault &fault) {
    for_each_process(fault, [&](Process &process) {
        if (process.is_alive || !std::exchange(process.restarts, false))
            return;
        close(process.pidfd);
        process = {.command = process.command,
                   .number = process.number,
                   .name = process.name,
                   .index = process.index,
                   .out = process.out, // the new output follows the old one
                   .err = process.err,
                   .may_start = true,
                   .out_shown = process.out_shown,
                   .err_shown = process.err_shown};
        restarted_at_ = std::max<uint64_t>(requests_, 1);
        chooser_.add_fault();
        start(process);
    });
}

void Schedule::suspend(const sim::Fault &fault, bool is_suspended) {
    for_each_process(
        fault, [&](Process &process) { process.paused_until = is_suspended ? NEVER : 0; });
}

void Schedule::power_off(const sim::Fault &fault) {
    const unsigned host = fault.hosts[0];
    fabric().set_power(host, false);
    sockets_->lose_power(host);
    kill(fault);
    std::vector<sim::FileRange> ranges;
    const uint64_t words = pmem_.lose_power(host, fault.is_random ? &generator_ : nullptr,
                                            trace_ ? &ranges : nullptr);
    trace_.lost(host, words, ranges);
}
