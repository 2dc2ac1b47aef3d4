// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// librpma_coroutine.hpp -- completions and events of librpma for the coroutines of a program
// that has its own event loop; rpma_cpp(7) describes it

#ifndef LIBRPMA_COROUTINE_HPP
#define LIBRPMA_COROUTINE_HPP 1

#include <librpma.hpp>

#if __cplusplus >= 202002L // librpma.hpp reports an older standard
#include <atomic>
#include <cerrno>
#include <coroutine>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <poll.h>
#include <unordered_map>

namespace rpma::inline v1 {
// A descriptor, set to O_NONBLOCK, on which coroutines wait. The program watches it (EPOLLIN |
// EPOLLET) and calls ready(), which resumes them. Only one thread at a time may do this. A
// source may be deleted at any time; the coroutines that wait for it are never resumed.
class source {
  public:
    explicit source(int fd) : fd_(fd) {
        if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
            throw std::system_error(errno, std::generic_category(), "fcntl");
    }
    source(const source &) = delete;
    source &operator=(const source &) = delete;
    virtual ~source() = default;
    // Resumes each coroutine whose completion or event is available. If one of them throws, or
    // a function of the program does, the others are resumed before the first exception is
    // rethrown. After an exception call it again, because EPOLLET does not.
    virtual void ready() = 0;
    int fd() const noexcept { return fd_; }

  private:
    int fd_;
};

namespace detail {
// A coroutine that waits, as a node of a ring; the object that it waits for has a node of its
// own in that ring. Each node leaves the ring when it is destroyed, in any order.
class waiter {
  public:
    waiter() noexcept = default;
    waiter(const waiter &) = delete;
    waiter &operator=(const waiter &) = delete;
    ~waiter() { leave(); }

    // The coroutine that has waited longest, or nullptr.
    waiter *first() const noexcept { return next_ == this ? nullptr : next_; }
    void append(waiter &last, std::coroutine_handle<> coroutine) noexcept {
        last.leave();
        last.coroutine_ = coroutine;
        last.next_ = this;
        last.previous_ = std::exchange(previous_, &last);
        last.previous_->next_ = &last;
    }
    // The coroutine may destroy this object.
    void resume() {
        leave();
        coroutine_.resume();
    }

  private:
    void leave() noexcept {
        previous_->next_ = next_;
        next_->previous_ = previous_;
        next_ = previous_ = this;
    }

    std::coroutine_handle<> coroutine_;
    waiter *next_ = this, *previous_ = this;
};

// Keeps the first exception until all that is available has been processed.
class exceptions {
  public:
    template <class Function> void collect(const Function &function) {
        try {
            function();
        } catch (...) {
            if (!first_)
                first_ = std::current_exception();
        }
    }
    void rethrow() const {
        if (first_)
            std::rethrow_exception(first_);
    }

  private:
    std::exception_ptr first_;
};
} // namespace detail

// A posted operation: co_await returns its completion, successful or not, to each coroutine
// that awaits it or a copy. Copies refer to the same operation, also those by std::move().
class [[nodiscard]] operation {
  public:
    struct awaiter;

    operation(const operation &) = default;
    operation &operator=(const operation &) = default;
    awaiter operator co_await() const noexcept;
    // Without a coroutine: whether the completion was polled, and the completion.
    bool await_ready() const noexcept { return posted_->wc.has_value(); }
    ibv_wc await_resume() const { return posted_->wc.value(); }

  private:
    friend class completion_source;
    struct state {
        std::optional<ibv_wc> wc;
        detail::waiter waiting;
    };
    explicit operation(std::shared_ptr<state> posted) noexcept : posted_(std::move(posted)) {}
    std::shared_ptr<state> posted_;
};

struct operation::awaiter : operation, detail::waiter {
    explicit awaiter(const operation &of) noexcept : operation(of) {}
    void await_suspend(std::coroutine_handle<> coroutine) noexcept {
        posted_->waiting.append(*this, coroutine);
    }
};

inline operation::awaiter operation::operator co_await() const noexcept {
    return awaiter(*this);
}

// A completion queue that has a channel of its own. The queue may be deleted before the source,
// but ready() must not be called after that.
class completion_source final : public source {
  public:
    // other is called with each completion of an operation that no source has posted.
    explicit completion_source(cq_ref cq, std::function<void(const ibv_wc &)> other = nullptr)
        : source(cq.get_fd()), core_(std::make_shared<core>(cq, std::move(other))) {}
    ~completion_source() override {
        core_->is_closed = true;
        // The memory of operations is released now, also if ready() is still running.
        const auto released = std::exchange(core_->outstanding, {});
    }

    // Calls function(op_context), which posts one operation that has this op_context and
    // always completes, and returns its status. Throws if it is not ok. The source keeps
    // buffer, the memory of the operation, until the completion was polled, also after
    // status::provider: the operation may be executed although its post failed. After another
    // status or exception nothing was posted, so the buffer is released. A function that posts
    // a list, or throws after it has posted, has a second parameter, uint32_t *posted, in which
    // it counts the posted operations: if it has counted any, the source keeps the buffer.
    template <class Function>
    operation post(std::shared_ptr<void> buffer, const Function &function) {
        struct entry { // in the table; removed unless an operation may be executed
            const std::shared_ptr<core> in; // function may delete this source
            const uint64_t op_context = next_op_context.fetch_add(1, std::memory_order_relaxed);
            uint32_t posted = 0;
            ~entry() {
                if (posted == 0) // the destructor of the buffer may use the table
                    (void)in->outstanding.extract(op_context);
            }
        } entry{core_};
        const auto state = std::make_shared<operation::state>();
        core_->outstanding.try_emplace(entry.op_context, state, std::move(buffer));
        const auto *const op_context = reinterpret_cast<const void *>(entry.op_context);
        status result = status::ok;
        try {
            if constexpr (std::is_invocable_v<const Function &, const void *, uint32_t *>)
                result = function(op_context, &entry.posted);
            else
                result = function(op_context);
        } catch (const error &failed) {
            entry.posted |= failed.code() == status::provider;
            throw;
        }
        entry.posted |= result == status::ok || result == status::provider;
        check(result);
        return operation(state);
    }

    void ready() override {
        const std::shared_ptr<core> all = core_; // a coroutine may delete this source
        detail::exceptions exceptions;
        // First everything is taken from the queue: a coroutine may delete the queue.
        exceptions.collect([&] { all->take_event(); });
        exceptions.collect([&] { all->poll(); });
        while (!all->is_closed && all->handled < all->polled.size())
            all->handle_next(exceptions);
        exceptions.rethrow();
    }

  private:
    // An op_context is a number that no address and no later operation has: the completion of
    // an operation whose source was deleted is not that of another one.
    static constexpr uint64_t first_op_context = uint64_t{1} << 63;
    static inline std::atomic<uint64_t> next_op_context = first_op_context;

    struct posted {
        posted(std::shared_ptr<operation::state> of, std::shared_ptr<void> memory) noexcept
            : state(std::move(of)), buffer(std::move(memory)) {}
        std::shared_ptr<operation::state> state;
        std::shared_ptr<void> buffer;
    };

    struct core {
        core(cq_ref queue, std::function<void(const ibv_wc &)> function)
            : cq(queue), other(std::move(function)) {}

        void take_event() {
            const status event = cq.take_event();
            is_armed = is_armed && event != status::ok;
            if (event != status::no_completion)
                check(event);
            if (!is_armed)
                check(cq.arm(false));
            is_armed = true;
        }
        void poll() {
            constexpr std::size_t step = 16;
            for (status result = status::ok; result == status::ok;) {
                const std::size_t before = polled.size();
                polled.resize(before + step);
                const completions taken = cq.get_wc(std::span(polled).subspan(before));
                polled.resize(before + taken.size());
                if ((result = taken.status()) != status::no_completion)
                    check(result);
            }
        }
        void handle_next(detail::exceptions &exceptions) {
            const ibv_wc wc = polled[handled++];
            if (handled == polled.size()) {
                polled.clear();
                handled = 0;
            }
            auto node = outstanding.extract(wc.wr_id);
            if (node.empty()) {
                if (other && (wc.wr_id < first_op_context || wc.wr_id >= next_op_context))
                    exceptions.collect([&] { other(wc); });
                return;
            }
            operation::state &state = *node.mapped().state;
            state.wc = wc;
            node.mapped().buffer = nullptr;
            while (detail::waiter *const next = is_closed ? nullptr : state.waiting.first())
                exceptions.collect([&] { next->resume(); });
        }

        cq_ref cq;
        std::function<void(const ibv_wc &)> other;
        bool is_closed = false; // the source was deleted
        bool is_armed = true;
        std::unordered_map<uint64_t, posted> outstanding; // by op_context
        std::vector<ibv_wc> polled;
        std::size_t handled = 0; // of polled
    };
    std::shared_ptr<core> core_;
};

// A descriptor of events: co_await calls take() until its result tests true, and returns this
// result, such as the std::optional of rpma::conn::next_event(), or throws the exception of
// take(). Coroutines that wait get one event each, in the order in which they began to wait.
template <class Take> class event_source final : public source {
    struct event {
        std::invoke_result_t<Take &> result = {};
        std::exception_ptr failure = nullptr;
    };

    struct core {
        core(int of, Take function) : fd(of), take(std::move(function)) {}

        // The coroutine to resume, or nullptr.
        detail::waiter *next() const noexcept { return is_closed ? nullptr : waiting.first(); }
        // Returns true if an event was taken. take() may drop an event while another one is
        // pending, for which EPOLLET reports nothing.
        bool take_next() noexcept {
            try {
                for (pollfd state = {fd, POLLIN, 0}; !taken.failure && !taken.result;)
                    if (!(taken.result = take()) &&
                        (is_closed || poll(&state, 1, 0) != 1 || !(state.revents & POLLIN)))
                        return false;
            } catch (...) {
                taken.failure = std::current_exception();
            }
            return true;
        }

        int fd;
        Take take;
        bool is_closed = false; // the source was deleted
        event taken;            // remains if take() destroys the coroutine that waits
        detail::waiter waiting;
    };

    struct awaiter : detail::waiter {
        explicit awaiter(const std::shared_ptr<core> &of) noexcept : from(of) {}
        bool await_ready() noexcept {
            const std::shared_ptr<core> all = from.lock(); // take() may delete the source
            if (!all || all->waiting.first() != nullptr || !all->take_next())
                return false;
            mine = std::exchange(all->taken, {});
            return true;
        }
        void await_suspend(std::coroutine_handle<> coroutine) noexcept {
            if (const std::shared_ptr<core> all = from.lock())
                all->waiting.append(*this, coroutine);
        }
        auto await_resume() {
            event got = std::exchange(mine, {});
            if (got.failure)
                std::rethrow_exception(got.failure);
            return std::move(got.result);
        }

        std::weak_ptr<core> from; // take() may own the coroutine
        event mine;
    };

  public:
    event_source(int fd, Take take)
        : source(fd), core_(std::make_shared<core>(fd, std::move(take))) {}
    ~event_source() override { core_->is_closed = true; }
    awaiter operator co_await() noexcept { return awaiter(core_); }

    void ready() override {
        const std::shared_ptr<core> all = core_; // a coroutine may delete this source
        detail::exceptions exceptions;
        while (all->next() != nullptr && all->take_next())
            if (auto *const next = static_cast<awaiter *>(all->next())) {
                next->mine = std::exchange(all->taken, {});
                exceptions.collect([&] { next->resume(); });
            }
        exceptions.rethrow();
    }

  private:
    std::shared_ptr<core> core_;
};
} // namespace rpma::inline v1
#endif // C++20
#endif // LIBRPMA_COROUTINE_HPP
