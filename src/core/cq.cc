// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.cc -- completion queues and their events

#include "core/cq.hh"

#include <algorithm>

#include "core/peer.hh"

using namespace rpma;

namespace {

// Every device has vector 0, even if its driver reports none.
uint32_t number_of_vectors(const ibv_context &device) {
    return static_cast<uint32_t>(std::max(device.num_comp_vectors, 1));
}

} // namespace

bool rpma_cq::create(Call &call, ibv_context &device, const SizeRequest &size,
                     uint32_t comp_vector, ibv_comp_channel *shared) {
    ibv_comp_channel *channel = shared;
    if (channel == nullptr) {
        own_channel_ = create_comp_channel(call, device);
        channel = own_channel_.get();
        if (channel == nullptr)
            return false;
    }
    queue_ = create_cq(call, device, size, comp_vector, channel);
    if (!queue_)
        return false;
    entry_.add(queue_.get(), this);
    return true;
}

std::unique_ptr<rpma_cq> rpma_cq::create_for_program(Call &call, const rpma_peer &peer,
                                                     const CqSettings &cfg) {
    ibv_context &device = *peer.pd().context;
    const uint32_t vector = cfg.comp_vector, vectors = number_of_vectors(device);
    if (vector >= vectors) {
        RPMA_FAIL(call, RPMA_E_INVAL, 0, "comp_vector of cfg is %u, %s has %u, numbered from 0",
                  vector, ibv_get_device_name(device.device), vectors);
        return nullptr;
    }
    const SizeRequest size = {cfg.size, peer.device().max_cqe, "rpma_cq_cfg_set_size",
                              peer.device().max_cq};
    auto cq = make<rpma_cq>(call);
    if (!cq || !cq->create(call, device, size, vector, nullptr))
        return nullptr;
    cq->is_of_program_ = true;
    return cq;
}

int rpma_cq::refuse_wait(const char *function) const {
    Call call(function);
    RPMA_WOULD_BLOCK(call, RPMA_E_SHARED_CHANNEL, 0,
                     "the completion channel is shared: wait with rpma_conn_wait()");
    return call.finish();
}

// The provider blocks the destruction of a queue until each of its events is acknowledged.
void rpma_cq::acknowledge_all() {
    const int events = MAX_UNACKNOWLEDGED - acknowledge_after_.exchange(MAX_UNACKNOWLEDGED);
    if (events > 0)
        ibv_ack_cq_events(queue_.get(), static_cast<unsigned>(events));
}

void rpma_cq::moderate(Call &call, uint16_t count, uint16_t period_us) {
    ibv_modify_cq_attr attributes = {.attr_mask = IBV_CQ_ATTR_MODERATE,
                                     .moderate = {.cq_count = count, .cq_period = period_us}};
    if (const int error = ibv_modify_cq(queue_.get(), &attributes); error != 0)
        RPMA_FAIL(call, code_of_optional_call(error), error,
                  "ibv_modify_cq(cq_count=%u, cq_period=%u)", count, period_us);
}

void rpma_cq::drop() {
    entry_.remove();
    queue_ = {};
    own_channel_ = {};
}

void rpma_cq::release(Call &call) {
    if (!exists())
        return;
    entry_.remove();
    acknowledge_all();
    queue_.release(call);
    own_channel_.release(call);
}

// The provider refuses as well, but too late on siw: it unmaps the queue before it calls
// the kernel (rdma-core 56, providers/siw/siw.c, siw_destroy_cq()), and the next poll of the
// connections would crash.
bool rpma_cq::check_unused(Call &call) const {
    const unsigned users = users_;
    if (users > 0)
        RPMA_FAIL(call, RPMA_E_PROVIDER, EBUSY,
                  "deleting the completion queue before its connections (%u)", users);
    return users == 0;
}

// The provider refuses to destroy a channel on which the program created a queue of its own.
// The handle is deleted even then: its queue is already destroyed, so every other call would
// crash.
bool rpma_cq::try_release(Call &call) {
    if (!check_unused(call))
        return false;
    acknowledge_all();
    entry_.remove();
    if (!queue_.try_release(call)) {
        entry_.add(queue_.get(), this);
        return false;
    }
    own_channel_.release(call);
    return true;
}

void rpma::report_poll(Call &call, int got, int requested) {
    if (got == 0)
        RPMA_WOULD_BLOCK(call, RPMA_E_NO_COMPLETION, 0, "the completion queue is empty");
    else if (got < 0) // mlx4 and mlx5 return -2 for every cause, which is not an error number
        RPMA_FAIL(call, RPMA_E_PROVIDER, 0,
                  "ibv_poll_cq(num_entries=%d) failed, the provider gives no reason",
                  requested);
    else
        RPMA_FAIL(call, RPMA_E_UNKNOWN, 0, "ibv_poll_cq(num_entries=%d) returned %d", requested,
                  got);
}
