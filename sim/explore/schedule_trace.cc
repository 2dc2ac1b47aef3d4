// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// schedule_trace.cc -- what a schedule adds to its trace

#include "schedule.hh"

#include <algorithm>
#include <unistd.h>

void Schedule::completed(const sim::Cq &cq, const ibv_wc &wc) {
    changes_++;
    coverage.statuses.set(wc.status % coverage.statuses.size());
    coverage.add_to_digest(uint64_t{wc.status} << 32 | wc.qp_num);
    if (!trace_ || cq.session == nullptr)
        return;
    const unsigned host = cq.session->host->number;
    trace_.add({Step::COMPLETION, host, "host" + std::to_string(host), describe(cq, wc)});
}

void Schedule::written(int pid, uint64_t address, size_t length, uint32_t writer) {
    pmem_.written(pid, address, length, writer);
    has_unpersisted_ |= !settings_.pmem.empty() && pmem_.is_persistent(pid, address, length);
    if (trace_)
        trace_.written(host_of(pid), pid, address, length, writer,
                       pmem_.file_range(pid, address, length));
}

void Schedule::persist(int pid, uint64_t address, size_t length, uint32_t writer) {
    pmem_.persist(pid, address, length, writer);
    has_unpersisted_ = false;
    if (trace_)
        trace_.persisted(host_of(pid), pid, address, length, writer);
}

unsigned Schedule::host_of(int pid) const {
    const auto found = std::ranges::find(processes_, pid, &Process::pid);
    return found == processes_.end() ? 0 : found->command->host;
}

void Schedule::add_step(Step::Kind kind, const std::string &what, const Process *process) {
    if (trace_)
        trace_.add({kind, process == nullptr ? 0 : process->command->host,
                    process == nullptr ? "" : process->name, what});
}

// Before its effects, which follow `before`.
void Schedule::add_call(Process &process, Step step, size_t before) {
    if (step.what.empty())
        return;
    step.kind = Step::CALL;
    step.host = process.command->host;
    step.who = process.name;
    step.place = process.place;
    trace_.add(std::move(step));
    trace_.move_last_to(before);
}

void Schedule::add_waiting(const Process &process) {
    if (trace_)
        trace_.add({.kind = Step::PROCESS,
                    .host = process.command->host,
                    .who = process.name,
                    .what = std::string("waits in ") + process.wait.function,
                    .place = process.place});
}

void Schedule::add_output_steps(Process &process) {
    if (!trace_)
        return;
    for (auto [fd, shown] : {std::pair{process.out, &process.out_shown},
                             std::pair{process.err, &process.err_shown}}) {
        std::string text;
        char part[4096];
        for (ssize_t length; (length = pread(fd, part, sizeof(part), *shown)) > 0;
             *shown += length)
            text.append(part, static_cast<size_t>(length));
        for (size_t begin = 0; begin < text.size();) {
            const size_t end = std::min(text.find('\n', begin), text.size());
            add_step(Step::OUTPUT, "prints: " + printable(text.substr(begin, end - begin)),
                     &process);
            begin = end + 1;
        }
    }
}
