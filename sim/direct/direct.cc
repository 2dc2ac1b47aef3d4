// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "direct.hh"

#include <unistd.h>

namespace sim {

static Direct *current;
static thread_local unsigned current_host = 1;

Direct::Direct(const Options &options, Persistence *persistence)
    : fabric_(environment_, options),
      memory_(std::make_shared<ProcessMemory>(getpid(), persistence)) {
    current = this;
    rdma_sim_set_handler([](rdma_sim_message *message) { return current->call(*message); });
}

Direct::~Direct() {
    rdma_sim_set_handler(nullptr);
    current = nullptr;
}

void Direct::use_host(unsigned host) {
    current_host = host;
}

void Direct::advance(uint64_t nanoseconds) {
    const std::lock_guard held(lock_);
    fabric_.advance(fabric_.now() + nanoseconds);
}

int Direct::call(rdma_sim_message &message) {
    const std::lock_guard held(lock_);
    Caller &caller = callers_[current_host];
    if (!caller.session) {
        caller.program = memory_;
        Hello hello{};
        hello.host = current_host;
        Reply greeting;
        if (const int error = fabric_.call(caller, &hello, sizeof(hello), greeting))
            return error;
    }
    std::vector<std::byte> request(message.request_size + message.more_size);
    memcpy(request.data(), message.request, message.request_size);
    if (message.more_size > 0)
        memcpy(request.data() + message.request_size, message.more, message.more_size);
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
