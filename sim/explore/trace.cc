// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// trace.cc -- the steps of a schedule

#include "schedule.hh"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

void Schedule::completed(const sim::Cq &cq, const ibv_wc &wc) {
    changes_++;
    coverage.statuses.set(wc.status % coverage.statuses.size());
    coverage.add_to_digest(uint64_t{wc.status} << 32 | wc.qp_num);
    if (is_traced_ && cq.session != nullptr)
        add_step("  ", "host" + std::to_string(cq.session->host->number), describe(wc));
}

void Schedule::written(int pid, uint64_t address, size_t length, uint32_t writer) {
    pmem_.written(pid, address, length, writer);
    has_unpersisted_ |= !settings_.pmem.empty() && pmem_.is_persistent(pid, address, length);
}

void Schedule::persist(int pid, uint64_t address, size_t length, uint32_t writer) {
    pmem_.persist(pid, address, length, writer);
    has_unpersisted_ = false;
}

void Schedule::add_step(const char *mark, const std::string &who, const std::string &what) {
    if (!is_traced_ || what.empty())
        return;
    char time[64];
    snprintf(time, sizeof(time), "%12.3f ms ",
             static_cast<double>(server_->fabric().now() - BEGIN) / 1e6);
    steps.push_back(time + std::string(mark) + who + (who.empty() ? "" : " ") + what);
}

void Schedule::add_output_steps(Process &process) {
    if (!is_traced_)
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
            add_step("  ", process.name,
                     "prints: " + printable(text.substr(begin, end - begin)));
            begin = end + 1;
        }
    }
}
