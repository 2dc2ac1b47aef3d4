// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// librpma_coroutine.hpp -- completions and events of librpma for the coroutines of a program
// that has its own event loop; rpma_cpp(7) describes it

#ifndef LIBRPMA_COROUTINE_HPP
#define LIBRPMA_COROUTINE_HPP 1

#include <cerrno>
#include <coroutine>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <librpma.hpp>
#include <memory>
#include <poll.h>
#include <unordered_map>

namespace rpma::inline v1 {
// A descriptor, set to O_NONBLOCK, on which coroutines wait. The program watches it (EPOLLIN |
// EPOLLET) and calls ready(), which resumes them. Only one thread at a time may do this.
class source {
  public:
    explicit source(int fd) : fd_(fd) {
        if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
            throw std::system_error(errno, std::generic_category(), "fcntl");
    }
    source(const source &) = delete;
    virtual ~source() = default;
    virtual void ready() = 0;
    int fd() const noexcept { return fd_; }

  private:
    int fd_;
};

// A posted operation: co_await returns its completion, successful or not.
class [[nodiscard]] operation {
  public:
    bool await_ready() const noexcept { return posted_->wc.has_value(); }
    void await_suspend(std::coroutine_handle<> waiting) noexcept { posted_->waiting = waiting; }
    ibv_wc await_resume() const noexcept { return *posted_->wc; }

  private:
    friend class completion_source;
    struct state {
        std::shared_ptr<void> buffer;
        std::coroutine_handle<> waiting;
        std::optional<ibv_wc> wc;
    };
    explicit operation(std::shared_ptr<state> posted) : posted_(std::move(posted)) {}
    std::shared_ptr<state> posted_; // shared with the queue until the completion
};

// A completion queue that has a channel of its own. Its coroutines must not delete it.
class completion_source final : public source {
  public:
    // other is called with each completion of an operation that post() did not post.
    explicit completion_source(cq_ref cq, std::function<void(const ibv_wc &)> other = nullptr)
        : source(cq.get_fd()), cq_(cq), other_(std::move(other)) {}

    // Calls function(op_context), which posts one operation with this op_context and returns
    // its status. Throws if it is not ok. The queue keeps buffer, the memory of the operation,
    // until the completion was polled.
    template <class Function>
    operation post(std::shared_ptr<void> buffer, const Function &function) {
        const auto state = std::make_shared<operation::state>();
        state->buffer = std::move(buffer);
        const auto place = posted_.emplace(reinterpret_cast<uintptr_t>(state.get()), state);
        const status result = function(static_cast<const void *>(state.get()));
        if (result != status::ok)
            posted_.erase(place.first);
        check(result);
        return operation(state);
    }

    void ready() override {
        status result = cq_.wait();
        for (ibv_wc wc; result == status::ok && (result = cq_.get_wc(wc)) == status::ok;)
            complete(wc);
        if (result != status::no_completion)
            check(result);
    }

  private:
    void complete(const ibv_wc &wc) {
        const auto node = posted_.extract(wc.wr_id);
        if (node.empty())
            return other_ ? other_(wc) : void();
        operation::state &state = *node.mapped();
        state.wc = wc;
        state.buffer = nullptr;
        if (state.waiting && node.mapped().use_count() > 1) // the program holds the operation
            state.waiting.resume();
    }

    cq_ref cq_;
    std::function<void(const ibv_wc &)> other_;
    std::unordered_map<uint64_t, std::shared_ptr<operation::state>> posted_;
};

// A descriptor of events: co_await calls take() until its result tests true, and returns this
// result, such as the std::optional of rpma::conn::next_event(). Exceptions of take() are
// passed on. Only one coroutine may wait.
template <class Take> class event_source final : public source {
    struct awaiter {
        event_source &from;
        std::invoke_result_t<Take &> result = {};
        std::exception_ptr failure = nullptr;
        std::coroutine_handle<> waiting = nullptr;

        ~awaiter() { from.waiter_ = nullptr; }
        // take() may drop an event while another one is pending, for which EPOLLET reports
        // nothing.
        bool await_ready() {
            for (pollfd state = {from.fd(), POLLIN, 0}; !(result = from.take_());)
                if (poll(&state, 1, 0) != 1)
                    return false;
            return true;
        }
        void await_suspend(std::coroutine_handle<> handle) noexcept {
            waiting = handle;
            from.waiter_ = this;
        }
        auto await_resume() {
            if (failure)
                std::rethrow_exception(failure);
            return std::move(result);
        }
    };

  public:
    event_source(int fd, Take take) : source(fd), take_(std::move(take)) {}
    awaiter operator co_await() noexcept { return {*this}; }

    void ready() override {
        try {
            if (waiter_ == nullptr || !waiter_->await_ready())
                return;
        } catch (...) {
            waiter_->failure = std::current_exception();
        }
        waiter_->waiting.resume(); // the coroutine may delete this source
    }

  private:
    Take take_;
    awaiter *waiter_ = nullptr;
};
} // namespace rpma::inline v1
#endif // LIBRPMA_COROUTINE_HPP
