// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// coroutine.hh -- a coroutine, and one side of a connection whose completions it awaits

#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <librpma_coroutine.hpp>
#include <vector>

extern "C" {
#include "fixture.h"
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_OPERATOR_NEW // of the sanitizer, which cannot be replaced
#endif
#endif

#ifndef HAS_OPERATOR_NEW
// The nth allocation of a C++ object from now fails; 0: none.
extern thread_local unsigned failing_allocation;
#endif

inline std::array<std::byte, FIXTURE_MEMORY_SIZE> memory;

// A coroutine that begins at once, and is destroyed with its owner.
class coroutine {
  public:
    struct promise_type {
        coroutine get_return_object() {
            return coroutine(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() {
            if (passes_on)
                throw;
            failure = std::current_exception();
        }
        std::exception_ptr failure;
    };
    // An exception leaves the call that resumed the coroutine.
    static inline bool passes_on = false;

    explicit coroutine(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    coroutine(coroutine &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    ~coroutine() { destroy(); }
    void destroy() {
        if (const auto handle = std::exchange(handle_, nullptr))
            handle.destroy();
    }
    bool is_done() const { return handle_.done(); }
    // The code of the rpma::error that ended the coroutine, or 0.
    int error() const {
        try {
            if (handle_.promise().failure)
                std::rethrow_exception(handle_.promise().failure);
        } catch (const rpma::error &error) {
            return error.code().value();
        }
        return 0;
    }

  private:
    std::coroutine_handle<promise_type> handle_;
};

struct side {
    rpma::peer peer{fake_context(0)};
    rpma::mr_local mr{peer, memory, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV};
    rpma::conn conn =
        rpma::conn_req(peer, FIXTURE_ADDRESS, FIXTURE_PORT, rpma::conn_cfg().set_cq_size(64))
            .connect();
    std::vector<uint64_t> others;
    std::function<void(const ibv_wc &)> other = [this](const ibv_wc &wc) {
        others.push_back(wc.wr_id);
    };
    std::optional<rpma::completion_source> queue{std::in_place, conn.get_cq(),
                                                 [this](const ibv_wc &wc) { other(wc); }};
    std::vector<ibv_wc_status> seen;

    side() {
        fake_cm_event(conn.get_event_fd(), RDMA_CM_EVENT_ESTABLISHED, nullptr, 0);
        if (conn.next_event() != RPMA_CONN_ESTABLISHED)
            std::abort();
        fake_forget();
    }
    rpma::operation send(std::shared_ptr<void> buffer = nullptr,
                         int flags = RPMA_F_COMPLETION_ALWAYS) {
        return queue->post(std::move(buffer), [&, flags](const void *context) {
            return conn.send(mr, 0, 8, flags, context);
        });
    }
    // The provider completes the nth operation, and the descriptor of the queue becomes
    // readable.
    void complete(unsigned nth, ibv_wc_status status = IBV_WC_SUCCESS) {
        complete_id(fake_posted(nth)->wr_id, status);
    }
    void complete_id(uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS) {
        const ibv_wc wc = {.wr_id = wr_id, .status = status};
        fake_complete(fake_qp(conn.get_qp_num())->send_cq, &wc);
    }
    // An operation of the program; its completion is passed to the function of the source.
    void send_other(std::size_t number) {
        rpma::check(conn.send(mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, &memory[number]));
    }
    coroutine send_twice(std::shared_ptr<void> buffer = nullptr) {
        seen.push_back((co_await send(buffer)).status);
        seen.push_back((co_await send(buffer)).status);
    }
};

// Calls each(chosen) for all ordered choices of at most length numbers below count.
template <class Function>
void each_order(unsigned count, std::size_t length, const Function &each,
                std::vector<unsigned> chosen = {}) {
    each(chosen);
    for (unsigned next = 0; next < count && chosen.size() < length; next++)
        if (std::ranges::find(chosen, next) == chosen.end()) {
            chosen.push_back(next);
            each_order(count, length, each, chosen);
            chosen.pop_back();
        }
}
