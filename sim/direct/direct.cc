// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "direct.hh"

#include "../model/calls.hh"

#include <unistd.h>

namespace sim {

static Direct *current;
static uint64_t fabrics;
static thread_local struct { uint64_t fabric, place; } chosen;

Direct::Direct(const Options &options, Persistence *persistence)
    : number_(++fabrics), fabric_(environment_, options),
      memory_(std::make_shared<ProcessMemory>(getpid(), persistence)) {
    current = this;
    rdma_sim_set_handler([](rdma_sim_message *message) { return current->call(*message); },
                         [] { return current->number_ << 24 | current->place(); });
}

Direct::~Direct() {
    rdma_sim_set_handler(nullptr, nullptr);
    current = nullptr;
}

void Direct::use_host(unsigned host, unsigned program) {
    chosen = {number_, uint64_t{program} << 8 | host};
}

uint64_t Direct::place() const {
    return chosen.fabric == number_ ? chosen.place : 1;
}

void Direct::end_program(unsigned host, unsigned program) {
    fabric_.interrupt_writes(static_cast<int>(program));
    const auto caller = callers_.extract(uint64_t{program} << 8 | host);
    if (!caller.empty() && caller.mapped().session)
        fabric_.end_session(*caller.mapped().session);
}

const Session *Direct::session_of(unsigned host, unsigned program) const {
    const auto caller = callers_.find(uint64_t{program} << 8 | host);
    return caller == callers_.end() ? nullptr : caller->second.session;
}

void Direct::advance(uint64_t nanoseconds) {
    const std::lock_guard held(lock_);
    fabric_.advance(fabric_.now() + nanoseconds);
}

int Direct::call(rdma_sim_message &message) {
    // Copied first: before_call_() may run another program, which uses the same buffer.
    std::vector<std::byte> request(message.request_size + message.more_size);
    memcpy(request.data(), message.request, message.request_size);
    if (message.more_size > 0)
        memcpy(request.data() + message.request_size, message.more, message.more_size);
    if (before_call_ && rdma_sim_hold(0) == 0)
        if (const CallName *const name =
                name_of_call(fabric_, {request.data(), message.request_size}))
            before_call_(name->name);
    const std::lock_guard held(lock_);
    const uint64_t place = this->place();
    Caller &caller = callers_[place];
    if (!caller.session) {
        caller.program = memory_;
        caller.pid = static_cast<int>(place >> 8);
        Hello hello{};
        hello.host = static_cast<uint32_t>(place & 0xff);
        Reply greeting;
        if (const int error = fabric_.call(caller, &hello, sizeof(hello), greeting))
            return error;
    }
    Reply reply;
    const int error = fabric_.call(caller, request.data(), request.size(), reply);
    message.length = std::min(message.reply_size, reply.bytes.size());
    if (!error && message.length > 0)
        memcpy(message.reply, reply.bytes.data(), message.length);
    if (reply.descriptor >= 0)
        message.fd = reply.closes_descriptor ? reply.descriptor : dup(reply.descriptor);
    return error;
}

} // namespace sim
