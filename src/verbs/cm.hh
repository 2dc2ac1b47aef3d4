// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.hh -- owners of the objects of librdmacm: event channels, events, CM IDs, queue pairs
//
// Unless a declaration says otherwise, false or an empty owner means RPMA_E_PROVIDER.

#pragma once

#include <rdma/rdma_cma.h>

#include "verbs/causes.hh"
#include "verbs/owner.hh"

namespace rpma {

struct EventChannelTraits {
    using Object = rdma_event_channel;
    static constexpr const char *NAME = "rdma_destroy_event_channel";
    static int destroy(rdma_event_channel *channel) {
        rdma_destroy_event_channel(channel);
        return 0;
    }
};
using EventChannel = Owner<EventChannelTraits>;

[[gnu::cold]] void report_no_event_channel(Call &call, int error);
inline EventChannel create_event_channel(Call &call) {
    EventChannel channel(rdma_create_event_channel());
    if (!channel)
        report_no_event_channel(call, errno);
    return channel;
}
// Afterwards next_event() no longer blocks.
void make_nonblocking(const rdma_event_channel &channel);

struct CmEventTraits {
    using Object = rdma_cm_event;
    static constexpr const char *NAME = "rdma_ack_cm_event";
    static int destroy(rdma_cm_event *event) { return error_of(rdma_ack_cm_event(event)); }
};
// Releasing an event acknowledges it and invalidates its pointers.
using CmEvent = Owner<CmEventTraits>;

[[gnu::cold]] void report_no_event(Call &call, int error, int code_if_empty);
// Blocks unless the descriptor of the channel is O_NONBLOCK. Returns an empty owner on failure:
// code_if_empty if the channel is empty (0: not a failure), or RPMA_E_PROVIDER, with EINTR if a
// signal ended the wait.
inline CmEvent next_event(Call &call, rdma_event_channel &channel,
                          int code_if_empty = RPMA_E_NO_EVENT) {
    rdma_cm_event *event = nullptr;
    if (rdma_get_cm_event(&channel, &event) == 0)
        return CmEvent(event);
    report_no_event(call, errno, code_if_empty);
    return {};
}

// RDMA_CM_EVENT_ADDR_CHANGE ends neither an endpoint nor a request nor a connection: Linux
// sends it to each of them that uses a bond when the active interface of the bond changes.
void log_addr_change(const Call &call);
// Acknowledges the event. RPMA_E_NO_EVENT, even if the descriptor blocks: a program that has
// polled the descriptor must not block until the next event.
void skip_addr_change(Call &call, CmEvent &&event);

// A CM ID. The ID of a connection request is rejected before it is destroyed, unless it was
// accepted.
class CmId {
  public:
    CmId() = default;
    static CmId incoming(rdma_cm_id *id) { return CmId(id, SERVER, true); }
    // Without a channel, the calls on the ID are synchronous; with one, events report the
    // result of resolving an address or a route.
    static CmId create(Call &call, rdma_event_channel *channel, Role role) {
        rdma_cm_id *id = nullptr;
        if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) == 0)
            return CmId(id, role, false);
        report_no_id(call, errno, channel != nullptr);
        return {};
    }

    CmId(CmId &&other) noexcept
        : id_(std::exchange(other.id_, nullptr)), role_(other.role_),
          is_pending_(other.is_pending_) {}
    CmId &operator=(CmId other) noexcept {
        std::swap(id_, other.id_);
        std::swap(role_, other.role_);
        std::swap(is_pending_, other.is_pending_);
        return *this;
    }
    ~CmId() {
        if (id_ != nullptr)
            destroy();
    }

    explicit operator bool() const { return id_ != nullptr; }
    // Is true for an incoming request that is neither accepted nor rejected.
    bool is_pending() const { return is_pending_; }
    rdma_cm_id *get() const { return id_; }
    rdma_cm_id *operator->() const { return id_; }
    // A failure of this step; its cause depends on side and transport.
    Failure failure(Step step, int error) const {
        return {.step = step, .error = error, .role = role_, .transport = transport_of(*id_)};
    }

    // Binding or resolving an address lets librdmacm choose a device: id->verbs, or NULL.
    bool bind(Call &call, sockaddr *address);
    bool listen(Call &call, uint32_t backlog);
    bool resolve_addr(Call &call, sockaddr *source, sockaddr *destination, int timeout_ms) {
        if (rdma_resolve_addr(id_, source, destination, timeout_ms) == 0 && await_step())
            return true;
        report_addr_failure(call, errno, source, destination, timeout_ms);
        return false;
    }
    bool resolve_route(Call &call, int timeout_ms) {
        if (rdma_resolve_route(id_, timeout_ms) == 0 && await_step())
            return true;
        report_route_failure(call, errno, timeout_ms);
        return false;
    }
    // Reports that resolving failed, in a call or by an event.
    [[gnu::cold]] void report_addr_failure(Call &call, int error, const sockaddr *source,
                                           const sockaddr *destination, int timeout_ms) const;
    [[gnu::cold]] void report_route_failure(Call &call, int error, int timeout_ms) const;

    // Sets the time after which the connected queue pair retries an unacknowledged operation.
    bool set_ack_timeout(Call &call, int timeout_ms);
    // For an ID that connects. Call it before its address is resolved.
    bool set_tos(Call &call, uint8_t tos);
    // For an ID that listens: IPv6 addresses only. Call it before the ID is bound.
    bool set_ipv6_only(Call &call);

    // The local address and port; known once the ID is bound or its address is resolved.
    const sockaddr_storage &local_addr() const { return id_->route.addr.src_storage; }
    const sockaddr_storage &peer_addr() const { return id_->route.addr.dst_storage; }

    bool migrate(Call &call, const EventChannel &channel) {
        if (rdma_migrate_id(id_, channel.get()) == 0)
            return true;
        report_failure(call, errno, "rdma_migrate_id");
        return false;
    }
    bool connect(Call &call, rdma_conn_param &param) {
        if (rdma_connect(id_, &param) == 0)
            return true;
        report_failure(call, errno, CONNECT, "rdma_connect", param.private_data_len);
        return false;
    }
    bool accept(Call &call, rdma_conn_param &param) {
        if (rdma_accept(id_, &param) == 0) {
            is_pending_ = false;
            return true;
        }
        report_failure(call, errno, ACCEPT, "rdma_accept", param.private_data_len);
        return false;
    }
    // Rejects a pending request, with private data for the other side. If the data is too long,
    // the ID stays pending.
    void reject(Call &call, const void *data, uint8_t len);
    // was_connected: an event has reported that the connection was established or has ended.
    void disconnect(Call &call, bool was_connected);

    // Sets how long the other side waits before it retries a message that found no receive.
    // Call it once the queue pair is ready to send. A failure is only logged.
    void set_rnr_timer(const Call &call, int timeout_ms);

    // Rejects a pending request, destroys the ID and drops it even if the provider fails.
    void release(Call &call) {
        if (is_pending_)
            reject_pending(call);
        if (rdma_destroy_id(id_) != 0)
            report_failure(call, errno, "rdma_destroy_id");
        id_ = nullptr;
    }
    // Destroys the ID. Returns false if the provider refuses; the ID is still owned.
    bool try_release(Call &call);

  private:
    CmId(rdma_cm_id *id, Role role, bool is_pending)
        : id_(id), role_(role), is_pending_(is_pending) {}

    // For an ID without a channel of the program, librdmacm waits for the event that ends a
    // step, and accepts a changed link address as that event (rdma-core 56, librdmacm/cma.c,
    // ucma_complete()). Returns false, with errno, if the step failed.
    bool await_step() {
        const rdma_cm_event *event = id_->event;
        return event == nullptr || event->event != RDMA_CM_EVENT_ADDR_CHANGE ||
               skip_addr_changes();
    }
    bool skip_addr_changes();
    void destroy();
    void reject_pending(Call &call);

    [[gnu::cold]] static void report_no_id(Call &call, int error, bool has_channel);
    [[gnu::cold]] static void report_failure(Call &call, int error, const char *function);
    // The same for a call with private data.
    [[gnu::cold]] void report_failure(Call &call, int error, Step step, const char *function,
                                      uint8_t data_len) const;

    rdma_cm_id *id_ = nullptr;
    Role role_ = CLIENT;
    bool is_pending_ = false;
};

struct QueuePairTraits {
    using Object = rdma_cm_id;
    static constexpr const char *NAME = "rdma_destroy_qp";
    static int destroy(rdma_cm_id *id) {
        rdma_destroy_qp(id);
        return 0;
    }
};
// The queue pair of a CM ID; it must be released before the ID.
using QueuePair = Owner<QueuePairTraits>;

// device is that of the protection domain.
[[gnu::cold]] void report_no_qp(Call &call, int error, const CmId &id,
                                const ibv_context *device, const ibv_qp_cap &requested,
                                uint32_t max_wr, uint32_t objects);
// Creates a queue pair for id. In attributes.cap: in, the requested sizes; out, the actual
// ones. The limits of the device, for the log: max_wr entries per queue, and objects queue
// pairs for all programs.
inline QueuePair create_qp(Call &call, const CmId &id, ibv_qp_init_attr_ex &attributes,
                           uint32_t max_wr, uint32_t objects) {
    const ibv_qp_cap requested = attributes.cap;
    if (rdma_create_qp_ex(id.get(), &attributes) == 0)
        return QueuePair(id.get());
    report_no_qp(call, errno, id, attributes.pd->context, requested, max_wr, objects);
    return {};
}

} // namespace rpma
