// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// coroutine.cc -- librpma_coroutine.hpp: coroutines are resumed once, and the memory of an
// operation is kept until its completion, also if its coroutine was destroyed

#include <array>
#include <librpma_coroutine.hpp>
#include <string>
#include <vector>

extern "C" {
#include "fixture.h"
}

namespace {

std::array<std::byte, FIXTURE_MEMORY_SIZE> memory;

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
        void unhandled_exception() noexcept { failure = std::current_exception(); }
        std::exception_ptr failure;
    };

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
    rpma::conn conn = rpma::conn_req(peer, FIXTURE_ADDRESS, FIXTURE_PORT).connect();
    std::vector<uint64_t> others;
    rpma::completion_source queue{conn.get_cq(),
                                  [this](const ibv_wc &wc) { others.push_back(wc.wr_id); }};
    std::vector<ibv_wc_status> seen;

    side() {
        fake_cm_event(conn.get_event_fd(), RDMA_CM_EVENT_ESTABLISHED, nullptr, 0);
        if (conn.next_event() != RPMA_CONN_ESTABLISHED)
            std::abort();
        fake_forget();
    }
    rpma::operation send(std::shared_ptr<void> buffer = nullptr,
                         int flags = RPMA_F_COMPLETION_ALWAYS) {
        return queue.post(std::move(buffer), [&, flags](const void *context) {
            return conn.send(mr, 0, 8, flags, context);
        });
    }
    // The provider completes the nth operation, and the descriptor of the queue becomes
    // readable.
    void complete(unsigned nth, ibv_wc_status status = IBV_WC_SUCCESS) {
        const ibv_wc wc = {.wr_id = fake_posted(nth)->wr_id, .status = status};
        fake_complete(fake_qp(conn.get_qp_num())->send_cq, &wc);
    }
    coroutine send_twice(std::shared_ptr<void> buffer = nullptr) {
        seen.push_back((co_await send(buffer)).status);
        seen.push_back((co_await send(buffer)).status);
    }
};

} // namespace

TEST_THAT(each_completion_resumes_its_coroutine) {
    side s;
    coroutine first = s.send_twice(), second = s.send_twice();
    assert_int_equal(fake_posted_count(), 2);
    s.complete(1);
    s.queue.ready();
    assert_int_equal(fake_posted_count(), 3);
    s.complete(0, IBV_WC_REM_ACCESS_ERR);
    s.complete(2);
    s.queue.ready();
    assert_true(second.is_done() && !first.is_done());
    assert_int_equal(s.seen.size(), 3);
    assert_int_equal(s.seen[1], IBV_WC_REM_ACCESS_ERR);
    s.queue.ready(); // no completion left
    assert_true(!first.is_done() && s.others.empty());
}

TEST_THAT(completion_before_co_await_does_not_suspend) {
    side s;
    rpma::operation sent = s.send();
    s.complete(0, IBV_WC_WR_FLUSH_ERR);
    s.queue.ready();
    const auto await = [](side &of, rpma::operation &operation) -> coroutine {
        of.seen.push_back((co_await operation).status);
    };
    const coroutine done = await(s, sent);
    assert_true(done.is_done());
    assert_int_equal(s.seen.at(0), IBV_WC_WR_FLUSH_ERR);
}

// The device may write into the memory of an operation after its coroutine was destroyed.
TEST_THAT(destroyed_coroutine_leaves_its_buffer_until_the_completion) {
    side s;
    auto buffer = std::make_shared<int>();
    const std::weak_ptr<int> kept = buffer;
    coroutine destroyed = s.send_twice(std::move(buffer));
    destroyed.destroy();
    assert_false(kept.expired());
    s.queue.ready();
    assert_false(kept.expired());
    s.complete(0);
    s.queue.ready();
    assert_true(kept.expired() && s.seen.empty() && s.others.empty());
    assert_int_equal(fake_posted_count(), 1);
}

TEST_THAT(deleted_queue_releases_the_buffers) {
    const auto buffer = std::make_shared<int>();
    {
        side s;
        const coroutine waiting = s.send_twice(buffer);
        assert_true(buffer.use_count() > 1);
    }
    assert_int_equal(buffer.use_count(), 1);
}

TEST_THAT(refused_post_throws_and_releases_the_buffer) {
    side s;
    const auto buffer = std::make_shared<int>();
    fake_fail("ibv_post_send", 1, EIO);
    const coroutine failed = s.send_twice(buffer);
    assert_true(failed.is_done());
    assert_int_equal(failed.error(), RPMA_E_PROVIDER);
    assert_int_equal(buffer.use_count(), 2); // the parameter still has it
    rpma::operation sent = s.send();
    s.complete(0);
    fake_poll_returns(-1);
    int code = 0;
    try {
        s.queue.ready();
    } catch (const rpma::error &error) {
        code = error.code().value();
    }
    assert_int_equal(code, RPMA_E_PROVIDER);
}

TEST_THAT(completions_of_the_program_are_returned) {
    side s;
    rpma::check(s.conn.send(s.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, &memory[3]));
    s.complete(0);
    s.queue.ready();
    assert_int_equal(s.others.at(0), reinterpret_cast<uintptr_t>(&memory[3]));
}

// ---- events --------------------------------------------------------------------------------

static coroutine take_events(side &s, std::vector<rpma_conn_event> &events) {
    rpma::event_source source(s.conn.get_event_fd(), [&] { return s.conn.next_event(); });
    s.others.push_back(reinterpret_cast<uintptr_t>(static_cast<rpma::source *>(&source)));
    for (;;)
        events.push_back((co_await source).value());
}

static rpma::source &source_of(const side &s) {
    return *reinterpret_cast<rpma::source *>(s.others.at(0));
}

// One readable edge of the descriptor may report several events. A change of the link address
// is not reported to the program.
TEST_THAT(every_event_reaches_the_coroutine) {
    side s;
    std::vector<rpma_conn_event> events;
    coroutine taking = take_events(s, events);
    source_of(s).ready(); // no event yet
    fake_cm_event(s.conn.get_event_fd(), RDMA_CM_EVENT_ADDR_CHANGE, nullptr, 0);
    fake_cm_event(s.conn.get_event_fd(), RDMA_CM_EVENT_DISCONNECTED, nullptr, 0);
    fake_cm_event(s.conn.get_event_fd(), RDMA_CM_EVENT_TIMEWAIT_EXIT, nullptr, 0);
    source_of(s).ready();
    assert_int_equal(events.size(), 2);
    assert_int_equal(events[0], RPMA_CONN_CLOSED);
    assert_false(taking.is_done());
    fake_fail("rdma_get_cm_event", 1, EIO);
    source_of(s).ready();
    assert_true(taking.is_done());
    assert_int_equal(taking.error(), RPMA_E_PROVIDER);
}

TEST_THAT(destroyed_coroutine_gets_no_event) {
    side s;
    rpma::event_source source(s.conn.get_event_fd(), [&] { return s.conn.next_event(); });
    const auto wait = [](auto &from) -> coroutine { (void)co_await from; };
    coroutine destroyed = wait(source);
    destroyed.destroy();
    fake_cm_event(s.conn.get_event_fd(), RDMA_CM_EVENT_DISCONNECTED, nullptr, 0);
    source.ready();
    assert_true(s.conn.next_event() == RPMA_CONN_CLOSED);
}
