// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// exchange.hpp -- shared by both sides: the memory of a connection, the type of coroutine, the
// loop

#ifndef EXCHANGE_HPP
#define EXCHANGE_HPP 1

#include <array>
#include <cstddef>
#include <librpma_coroutine.hpp>
#include <stdexcept>
#include <sys/epoll.h>
#include <system_error>
#include <vector>

extern "C" {
#include "common.h"
}

// The memory of one connection on one side.
struct slot {
    char block[BLOCK_SIZE];
    uint32_t request, reply; // checksums of the block
};

// The slots of a side as one region. A slot is free once nothing uses it: no coroutine, and no
// operation that has not completed.
class slots {
  public:
    slots(rpma::peer &peer, std::size_t count, int usage)
        : memory_(count), mr(peer, std::as_writable_bytes(std::span(memory_)), usage) {
        for (slot &each : memory_)
            free_.push_back(&each);
    }
    // nullptr: none is free
    std::shared_ptr<slot> take() {
        if (free_.empty())
            return nullptr;
        slot *const taken = free_.back();
        free_.pop_back();
        return {taken, [this](slot *freed) { free_.push_back(freed); }};
    }
    // The region offset of a member of a slot.
    std::size_t offset_of(const void *member) const {
        return static_cast<std::size_t>(static_cast<const char *>(member) -
                                        reinterpret_cast<const char *>(memory_.data()));
    }

    // The number of a slot, from 1 on: the client sends it, and the server finds the block.
    unsigned char number_of(const slot *one) const {
        return static_cast<unsigned char>(one - memory_.data() + 1);
    }
    static std::size_t block_of(unsigned number) {
        return (number - 1) * sizeof(slot) + offsetof(slot, block);
    }

  private:
    std::vector<slot> memory_;
    std::vector<slot *> free_;

  public:
    rpma::mr_local mr;
};

// A coroutine that starts at once. It is destroyed with its owner, or when it ends.
class task {
  public:
    struct promise_type {
        bool is_detached = false;

        struct last {
            bool is_detached;
            bool await_ready() const noexcept { return is_detached; } // true: destroyed
            void await_suspend(std::coroutine_handle<>) const noexcept {}
            void await_resume() const noexcept {}
        };
        task get_return_object() {
            return task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        last final_suspend() const noexcept { return {is_detached}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() const {
            try {
                throw;
            } catch (const std::exception &error) {
                fail("%s", error.what());
            }
        }
    };

    explicit task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    task(task &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    ~task() {
        if (handle_)
            handle_.destroy();
    }
    void detach() && {
        if (!handle_.done())
            std::exchange(handle_, nullptr).promise().is_detached = true;
    }

  private:
    std::coroutine_handle<promise_type> handle_;
};

class event_loop {
  public:
    // Watches a source while it exists.
    class watch {
      public:
        watch(event_loop &loop, rpma::source &source) : loop_(loop), source_(source) {
            epoll_event event = {};
            event.events = EPOLLIN | EPOLLET;
            event.data.ptr = &source;
            if (epoll_ctl(loop.fd_, EPOLL_CTL_ADD, source.fd(), &event) != 0)
                throw std::system_error(errno, std::generic_category(), "epoll_ctl");
        }
        watch(const watch &) = delete;
        ~watch() { (void)epoll_ctl(loop_.fd_, EPOLL_CTL_DEL, source_.fd(), nullptr); }

      private:
        event_loop &loop_;
        rpma::source &source_;
    };

    // One event at a time: a coroutine may delete the sources of later ones.
    void run_until(const unsigned &count, unsigned wanted) {
        while (count < wanted) {
            epoll_event event;
            if (epoll_wait(fd_, &event, 1, -1) == 1)
                static_cast<rpma::source *>(event.data.ptr)->ready();
        }
    }

  private:
    const int fd_ = epoll_create1(EPOLL_CLOEXEC);
};

// The resources of a side. All its connections share a completion queue.
struct resources {
    rpma::peer peer;
    slots memory;
    rpma::cq cq;
    rpma::completion_source queue{cq};
    rpma::conn_cfg cfg;
    event_loop loop;
    event_loop::watch watching{loop, queue};
    unsigned ended = 0;

    resources(const arguments &args, rpma_util_ibv_context_type type, int usage)
        : peer(rpma::get_ibv_context(args.addr, type)), memory(peer, args.number, usage),
          cq(peer, rpma::cq_cfg().set_size(4 * args.number)) {
        cfg.set_cq(cq).set_sq_size(2).set_rq_size(1);
    }
};

using conn_events = rpma::event_source<std::function<std::optional<rpma_conn_event>()>>;

// Returns true if the private data are an offer of this example, with the number of a slot.
inline bool find_number(std::span<const std::byte> data, unsigned &number) {
    const rpma_conn_private_data pdata = {const_cast<std::byte *>(data.data()),
                                          static_cast<uint8_t>(data.size())};
    return is_offer(&pdata, &number) && number > 0;
}

inline void check_success(const ibv_wc &wc) {
    if (wc.status != IBV_WC_SUCCESS)
        throw std::runtime_error(ibv_wc_status_str(wc.status));
}

#endif
