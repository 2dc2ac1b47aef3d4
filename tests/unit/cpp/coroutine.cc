// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// coroutine.cc -- librpma_coroutine.hpp: coroutines are resumed once, and the memory of an
// operation is kept until its completion; whatever is deleted, in every order and at every
// moment, and whatever throws

#include <algorithm>
#include <array>
#include <cstdlib>
#include <librpma_coroutine.hpp>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
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
static thread_local unsigned failing_allocation;

void *operator new(std::size_t size) {
    if (failing_allocation != 0 && --failing_allocation == 0)
        throw std::bad_alloc();
    if (void *const block = std::malloc(size))
        return block;
    throw std::bad_alloc();
}
void operator delete(void *block) noexcept {
    std::free(block);
}
void operator delete(void *block, std::size_t) noexcept {
    std::free(block);
}
#endif

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

} // namespace

TEST_THAT(each_completion_resumes_its_coroutine) {
    side s;
    coroutine first = s.send_twice(), second = s.send_twice();
    assert_int_equal(fake_posted_count(), 2);
    s.complete(1);
    s.queue->ready();
    assert_int_equal(fake_posted_count(), 3);
    s.complete(0, IBV_WC_REM_ACCESS_ERR);
    s.complete(2);
    s.queue->ready();
    assert_true(second.is_done() && !first.is_done());
    assert_int_equal(s.seen.size(), 3);
    assert_int_equal(s.seen[1], IBV_WC_REM_ACCESS_ERR);
    const unsigned armed = fake_count("ibv_req_notify_cq");
    s.queue->ready(); // no completion left
    assert_true(!first.is_done() && s.others.empty());
    assert_int_equal(fake_count("ibv_req_notify_cq"), armed);
}

TEST_THAT(completion_before_co_await_does_not_suspend) {
    side s;
    rpma::operation sent = s.send();
    s.complete(0, IBV_WC_WR_FLUSH_ERR);
    s.queue->ready();
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
    s.queue->ready();
    assert_false(kept.expired());
    s.complete(0);
    s.queue->ready();
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

// Calls ready() and returns the code of the rpma::error that it throws, or 0.
static int error_of_ready(side &s) {
    try {
        s.queue->ready();
    } catch (const rpma::error &error) {
        return error.code().value();
    }
    return 0;
}

TEST_THAT(failure_of_the_provider_loses_no_completion) {
    for (const char *call : {"ibv_get_cq_event", "ibv_req_notify_cq", "ibv_poll_cq"}) {
        side s;
        const rpma::operation sent = s.send(), again = s.send();
        s.complete(0);
        fake_fail(call, 1, EIO);
        assert_int_equal(error_of_ready(s), RPMA_E_PROVIDER);
        assert_int_equal(error_of_ready(s), 0);
        assert_true(sent.await_ready());
        s.complete(1); // the queue is armed
        pollfd state = {s.queue->fd(), POLLIN, 0};
        assert_int_equal(poll(&state, 1, 0), 1);
        assert_int_equal(error_of_ready(s), 0);
        assert_true(again.await_ready());
    }
}

// ---- posts ---------------------------------------------------------------------------------

// The function of post() for each row, with or without a count of the posted operations.
using post_function = rpma::status (*)(side &s, const void *context, uint32_t *posted);
static rpma::status send_to_failing_device(side &s, const void *context, uint32_t *) {
    fake_fail("ibv_post_send", 1, EIO);
    return s.conn.send(s.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, context);
}
static rpma::status send_of_no_region(side &s, const void *context, uint32_t *) {
    return s.conn.send(nullptr, 0, 8, RPMA_F_COMPLETION_ALWAYS, context);
}
static rpma::status throw_the_status(rpma::status status) {
    rpma::check(status);
    return status;
}

// A device may still execute an operation whose post has failed: its buffer is kept, and its
// completion is not that of a later operation.
TEST_THAT(failed_post_keeps_the_buffer_if_the_operation_may_be_executed) {
    static const struct {
        const char *name;
        post_function function;
        bool counts, keeps;
    } rows[] = {
        {"the provider fails", send_to_failing_device, false, true},
        {"the failure of the provider is thrown",
         [](side &s, const void *context, uint32_t *posted) {
             return throw_the_status(send_to_failing_device(s, context, posted));
         },
         false, true},
        {"invalid", send_of_no_region, false, false},
        {"invalid is thrown",
         [](side &s, const void *context, uint32_t *posted) {
             return throw_the_status(send_of_no_region(s, context, posted));
         },
         false, false},
        {"no room", [](side &, const void *, uint32_t *) { return rpma::status::again; }, false,
         false},
        {"no memory", [](side &, const void *, uint32_t *) { return rpma::status::nomem; },
         false, false},
        {"throws before it posts",
         [](side &, const void *, uint32_t *) -> rpma::status { throw std::runtime_error(""); },
         false, false},
        {"a part of a list is invalid",
         [](side &s, const void *context, uint32_t *posted) {
             rpma_work works[2] = {
                 rpma::send{.local = {s.mr, 0, 8}, .flags = RPMA_F_COMPLETION_ALWAYS},
                 rpma::send{.local = {s.mr, 0, 8}, .flags = 0, .op_context = context}};
             return s.conn.post(works, posted);
         },
         true, true},
        {"no room for a list",
         [](side &, const void *, uint32_t *posted) {
             *posted = 0;
             return rpma::status::again;
         },
         true, false},
        {"throws after it has posted",
         [](side &s, const void *context, uint32_t *posted) -> rpma::status {
             rpma_work work = rpma::send{.local = {s.mr, 0, 8},
                                         .flags = RPMA_F_COMPLETION_ALWAYS,
                                         .op_context = context};
             rpma::check(s.conn.post(std::span(&work, 1), posted));
             throw std::runtime_error("");
         },
         true, true},
        {"deletes the source and is refused",
         [](side &s, const void *, uint32_t *) {
             s.queue.reset();
             return rpma::status::again;
         },
         false, false},
        {"deletes the source and throws",
         [](side &s, const void *, uint32_t *posted) -> rpma::status {
             *posted = 1;
             s.queue.reset();
             throw std::runtime_error("");
         },
         true, false},
    };
    for (const auto &row : rows) {
        side s;
        const auto buffer = std::make_shared<int>();
        const void *old = nullptr;
        bool thrown = false;
        try {
            if (row.counts)
                (void)s.queue->post(buffer, [&](const void *context, uint32_t *posted) {
                    return row.function(s, old = context, posted);
                });
            else
                (void)s.queue->post(buffer, [&](const void *context) {
                    return row.function(s, old = context, nullptr);
                });
        } catch (const std::runtime_error &) {
            thrown = true;
        }
        if (!thrown || buffer.use_count() != 1 + row.keeps)
            fail_msg("%s: thrown %d, %ld uses of the buffer", row.name, thrown,
                     buffer.use_count());
        if (!s.queue)
            s.queue.emplace(s.conn.get_cq());
        uint64_t context = 0;
        const rpma::operation next = s.queue->post(nullptr, [&](const void *of) {
            context = reinterpret_cast<uintptr_t>(of);
            return rpma::status::ok;
        });
        s.complete_id(reinterpret_cast<uintptr_t>(old));
        s.queue->ready();
        if (next.await_ready() || buffer.use_count() != 1 || !s.others.empty())
            fail_msg("%s: wrong effect of the late completion", row.name);
        s.complete_id(context, IBV_WC_REM_OP_ERR);
        s.queue->ready();
        assert_int_equal(next.await_resume().status, IBV_WC_REM_OP_ERR);
    }
}

TEST_THAT(source_without_a_function_drops_all_other_completions) {
    side s;
    s.queue.emplace(s.conn.get_cq());
    const rpma::operation sent = s.send();
    s.complete_id(1);
    s.queue->ready();
    bool thrown = false;
    try {
        (void)sent.await_resume();
    } catch (const std::bad_optional_access &) {
        thrown = true;
    }
    assert_true(thrown);
    s.complete(0);
    s.queue->ready();
    assert_true(sent.await_ready());
}

// The completion of an operation of a deleted source arrives at a later source.
TEST_THAT(completion_of_a_deleted_source_is_dropped) {
    side s;
    const rpma::operation old = s.send();
    s.queue.emplace(s.conn.get_cq(), [&](const ibv_wc &wc) { s.other(wc); });
    const rpma::operation sent = s.send();
    s.complete(0);
    s.queue->ready();
    assert_true(!old.await_ready() && !sent.await_ready() && s.others.empty());
    s.complete_id(UINT64_MAX); // no op_context of post()
    s.queue->ready();
    assert_int_equal(s.others.at(0), UINT64_MAX);
}

TEST_THAT(threads_never_get_the_same_op_context) {
    side one, two;
    std::vector<const void *> contexts[2];
    const auto post = [](side &s, std::vector<const void *> &into) {
        for (int i = 0; i < 1000; i++)
            (void)s.queue->post(nullptr, [&](const void *context) {
                into.push_back(context);
                return rpma::status::ok;
            });
    };
    std::thread thread(post, std::ref(one), std::ref(contexts[0]));
    post(two, contexts[1]);
    thread.join();
    std::set<const void *> all(contexts[0].begin(), contexts[0].end());
    all.insert(contexts[1].begin(), contexts[1].end());
    assert_int_equal(all.size(), 2000);
}

#ifndef HAS_OPERATOR_NEW
TEST_THAT(ready_allocates_only_for_more_completions_than_before) {
    side s;
    s.other = nullptr;
    s.queue.emplace(s.conn.get_cq());
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 20; i++)
            s.complete_id(i);
        failing_allocation = round == 0 ? 0 : 1;
        s.queue->ready();
        failing_allocation = 0;
    }
}

TEST_THAT(failed_allocation_loses_nothing) {
    for (unsigned nth = 1, done = 0; done == 0; nth++) { // of post()
        side s;
        const auto buffer = std::make_shared<int>();
        bool called = false;
        try {
            failing_allocation = nth;
            (void)s.queue->post(buffer, [&](const void *) {
                called = true;
                return rpma::status::ok;
            });
            done = nth;
        } catch (const std::bad_alloc &) {
            assert_true(!called && buffer.use_count() == 1 && nth < 10);
        }
        failing_allocation = 0;
    }
    for (unsigned nth = 1, done = 0; done == 0; nth++) { // of ready()
        side s;
        s.others.reserve(50);
        for (std::size_t i = 0; i < 50; i++)
            s.complete_id(i);
        const rpma::operation sent = s.send();
        s.complete(0);
        failing_allocation = nth;
        bool thrown = false;
        try {
            s.queue->ready();
        } catch (const std::bad_alloc &) {
            thrown = true;
        }
        done = failing_allocation != 0 ? nth : 0;
        failing_allocation = 0;
        assert_true(thrown == (done == 0));
        s.queue->ready();
        assert_true(sent.await_ready() && s.others.size() == 50);
        for (std::size_t i = 0; i < 50; i++)
            assert_int_equal(s.others[i], i);
    }
}
#endif

// ---- deletion, in every order and at every moment ------------------------------------------

namespace {

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

// The first coroutine awaits an operation by reference, the second a copy of it, and the third
// one in its own frame.
enum object { FIRST, SECOND, THIRD, OPERATION, SOURCE, CONNECTION, OBJECTS };
// In the function of the source, in the destructor of the buffer, in a resumed coroutine.
enum moment { POSTED, COMPLETED, IN_FUNCTION, IN_BUFFER, IN_FIRST, IN_SECOND, AT_END, MOMENTS };

// Completions of the program ('f'), of the operation that two coroutines await ('1', '2'), of
// another one ('3') and of the program again, and what happens when they are passed on.
struct plan {
    const std::vector<unsigned> &deleted; // in this order
    moment at;
    char thrower; // '*': all; 0: none
    bool throws(char name) const { return thrower == name || thrower == '*'; }
    bool deletes(unsigned object, moment now) const {
        // A coroutine cannot be destroyed while it runs.
        return now == at && std::ranges::find(deleted, object) != deleted.end() &&
               !(object == FIRST && at == IN_FIRST) && !(object == SECOND && at == IN_SECOND);
    }
};

struct outcome {
    std::string passed_on;
    char thrown = 0;     // by ready()
    std::string buffers; // whether the source holds the buffer, after each step
    bool operator==(const outcome &) const = default;
};

class lifetimes {
  public:
    explicit lifetimes(const plan &of) : plan_(of) {
        s_.other = [this](const ibv_wc &) { reach(IN_FUNCTION, 'f'); };
    }

    outcome run() {
        s_.send_other(0);
        operation_.emplace(s_.send(make_buffer()));
        waiting_[FIRST].emplace(await_by_reference(*this, *operation_));
        waiting_[SECOND].emplace(await_copy(*this, *operation_));
        waiting_[THIRD].emplace(await_own(*this));
        s_.send_other(1);
        delete_at(POSTED);
        for (unsigned i = 0; i < 4 && s_.conn.get() != nullptr; i++)
            s_.complete(i);
        delete_at(COMPLETED);
        if (s_.queue && s_.conn.get() != nullptr) {
            coroutine::passes_on = true;
            try {
                s_.queue->ready();
            } catch (char thrower) {
                outcome_.thrown = thrower;
            }
            coroutine::passes_on = false;
        }
        note_buffer();
        delete_at(AT_END);
        note_buffer();
        return outcome_;
    }

  private:
    static coroutine await_by_reference(lifetimes &all, const rpma::operation &operation) {
        (void)co_await operation;
        all.reach(IN_FIRST, '1');
    }
    static coroutine await_copy(lifetimes &all, rpma::operation operation) {
        (void)co_await operation;
        all.reach(IN_SECOND, '2');
    }
    static coroutine await_own(lifetimes &all) {
        (void)co_await all.s_.send();
        all.reach(MOMENTS, '3');
    }

    std::shared_ptr<void> make_buffer() {
        std::shared_ptr<int> made(new int, [this](int *freed) {
            delete freed;
            delete_at(IN_BUFFER);
        });
        buffer_ = made;
        return made;
    }
    void reach(moment now, char name) {
        outcome_.passed_on += name;
        delete_at(now);
        if (plan_.throws(name))
            throw name;
    }
    void delete_at(moment now) {
        for (const unsigned object : plan_.deleted)
            if (plan_.deletes(object, now))
                delete_one(object);
    }
    void delete_one(unsigned object) {
        if (object == OPERATION)
            operation_.reset();
        else if (object == SOURCE) {
            s_.queue.reset();
            note_buffer(); // released at once
        } else if (object == CONNECTION)
            s_.conn.close();
        else
            waiting_[object].reset();
    }
    void note_buffer() { outcome_.buffers += buffer_.expired() ? '-' : '+'; }

    const plan &plan_;
    outcome outcome_;
    std::weak_ptr<void> buffer_;
    side s_;
    std::optional<rpma::operation> operation_;
    std::optional<coroutine> waiting_[3];
};

outcome expected_outcome(const plan &plan) {
    outcome expected;
    bool exists[OBJECTS], held = true;
    std::fill_n(exists, OBJECTS, true);
    const auto delete_at = [&](moment now) {
        for (unsigned object = 0; object < OBJECTS; object++)
            exists[object] = exists[object] && !plan.deletes(object, now);
        held = held && exists[SOURCE];
        if (plan.deletes(SOURCE, now))
            expected.buffers += '-';
    };
    const auto reach = [&](moment now, char name) {
        expected.passed_on += name;
        delete_at(now);
        if (plan.throws(name))
            expected.thrown = expected.thrown ? expected.thrown : name;
    };
    const auto note_buffer = [&] { expected.buffers += held ? '+' : '-'; };
    delete_at(POSTED);
    delete_at(COMPLETED);
    if (exists[SOURCE] && exists[CONNECTION]) {
        reach(IN_FUNCTION, 'f');
        if (exists[SOURCE]) {
            held = false;
            delete_at(IN_BUFFER);
        }
        if (exists[SOURCE] && exists[FIRST])
            reach(IN_FIRST, '1');
        if (exists[SOURCE] && exists[SECOND])
            reach(IN_SECOND, '2');
        if (exists[SOURCE] && exists[THIRD])
            reach(MOMENTS, '3');
        if (exists[SOURCE])
            reach(IN_FUNCTION, 'f');
    }
    note_buffer();
    delete_at(AT_END);
    note_buffer();
    return expected;
}

void deletes_in_order(const std::vector<unsigned> &deleted, char thrower) {
    for (unsigned at = POSTED; at < MOMENTS; at++) {
        const plan plan = {deleted, static_cast<moment>(at), thrower};
        fake_reset();
        const outcome found = lifetimes(plan).run(), expected = expected_outcome(plan);
        unit_nothing_left("after the deletion");
        if (found != expected) {
            std::string order;
            for (const unsigned object : deleted)
                order += std::to_string(object);
            fail_msg(
                "objects %s deleted at %u, '%c' throws: passed on %s, thrown '%c', buffer %s",
                order.c_str(), at, thrower, found.passed_on.c_str(), found.thrown,
                found.buffers.c_str());
        }
    }
}

} // namespace

TEST_THAT(deletion_in_every_order_resumes_only_what_exists) {
    each_order(OBJECTS, OBJECTS,
               [](const std::vector<unsigned> &deleted) { deletes_in_order(deleted, 0); });
}

TEST_THAT(exception_of_any_function_loses_no_completion) {
    for (const char thrower : {'f', '1', '2', '3', '*'})
        each_order(OBJECTS, 3, [&](const std::vector<unsigned> &deleted) {
            deletes_in_order(deleted, thrower);
        });
}

// A function or coroutine that calls ready() itself gets what is left, once.
TEST_THAT(nested_ready_returns_each_completion_once) {
    for (const char nested : {'f', '1'})
        for (const bool throws : {false, true}) {
            side s;
            std::string passed_on;
            const auto reach = [&](char name) {
                passed_on += name;
                if (name == nested)
                    s.queue->ready();
                if (throws && name == '2')
                    throw name;
            };
            s.other = [&](const ibv_wc &) { reach('f'); };
            const auto await = [](side &of, char name, auto then) -> coroutine {
                (void)co_await of.send();
                then(name);
            };
            coroutine::passes_on = true;
            s.send_other(0);
            const coroutine first = await(s, '1', reach), second = await(s, '2', reach);
            s.send_other(1);
            for (unsigned i = 0; i < 4; i++)
                s.complete(i);
            bool thrown = false;
            try {
                s.queue->ready();
            } catch (char) {
                thrown = true;
            }
            coroutine::passes_on = false;
            assert_string_equal(passed_on.c_str(), "f12f");
            assert_true(thrown == throws);
        }
}

TEST_THAT(moved_operation_is_a_copy) {
    side s;
    rpma::operation sent = s.send();
    const rpma::operation moved = std::move(sent);
    s.complete(0);
    s.queue->ready();
    assert_true(moved.await_ready() && sent.await_ready());
}

TEST_THAT(completions_of_the_program_are_returned) {
    side s;
    rpma::check(s.conn.send(s.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, &memory[3]));
    s.complete(0);
    s.queue->ready();
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

namespace {

// Events of a test: '!' is an exception of take(), '.' is dropped by take().
class letters {
  public:
    explicit letters(const std::string &sent) {
        if (pipe(fds_) != 0 || write(fds_[1], sent.data(), sent.size()) < 0)
            std::abort();
    }
    letters(const letters &) = delete;
    ~letters() {
        close(fds_[0]);
        close(fds_[1]);
    }
    int fd() const { return fds_[0]; }
    std::optional<char> take() {
        char letter;
        if (read(fds_[0], &letter, 1) != 1 || letter == '.')
            return std::nullopt;
        if (letter == '!')
            throw letter;
        return letter;
    }

  private:
    int fds_[2];
};

enum part { ONE, TWO, LETTERS, PARTS };
enum step { WAITING, IN_TAKE, IN_ONE, IN_TWO, AFTERWARDS, STEPS };

// Two coroutines wait for letters; then a third one takes those that are left.
class waiting_for_letters {
  public:
    waiting_for_letters(const std::vector<unsigned> &deleted, step at, char thrower)
        : deleted_(deleted), at_(at), thrower_(thrower) {}

    std::string run(const std::string &sent) {
        letters sender("");
        make_source(sender);
        waiting_[ONE].emplace(wait(*this, IN_ONE, '1'));
        waiting_[TWO].emplace(wait(*this, IN_TWO, '2'));
        delete_at(WAITING);
        letters arrived(sent);
        (void)dup2(arrived.fd(), sender.fd());
        (void)fcntl(sender.fd(), F_SETFL, O_NONBLOCK);
        if (source_) {
            coroutine::passes_on = true;
            try {
                source_->ready();
            } catch (char thrower) {
                trace_ = trace_ + " throws " + thrower;
            }
            coroutine::passes_on = false;
        }
        delete_at(AFTERWARDS);
        if (source_) {
            waiting_[ONE].reset(), waiting_[TWO].reset();
            trace_ += " left ";
            const coroutine taking = take_rest(*this);
        } else {
            char unread[8];
            const ssize_t count = read(arrived.fd(), unread, sizeof(unread));
            trace_ += " unread " + std::string(unread, count > 0 ? std::size_t(count) : 0);
        }
        return trace_;
    }
    std::string expected(std::string sent) {
        bool exists[PARTS] = {true, true, true}, took = false;
        std::string waiting = "12", trace;
        char thrown = 0;
        const auto kill = [&](step now) {
            for (const unsigned part : deleted_)
                if (deletes(part, now)) {
                    exists[part] = false;
                    if (part != LETTERS)
                        std::erase(waiting, part == ONE ? '1' : '2');
                }
        };
        kill(WAITING);
        const bool is_called = exists[LETTERS];
        char kept = 0;
        while (is_called && exists[LETTERS] && !waiting.empty()) {
            if (!std::exchange(took, true))
                kill(IN_TAKE);
            if (sent.empty())
                break;
            const char letter = sent[0];
            sent.erase(0, 1);
            if (letter == '.')
                continue;
            if (!exists[LETTERS] || waiting.empty()) {
                kept = letter;
                break;
            }
            const char coroutine = waiting[0];
            waiting.erase(0, 1);
            trace = trace + coroutine + letter;
            kill(coroutine == '1' ? IN_ONE : IN_TWO);
            if (coroutine == thrower_ && !thrown)
                thrown = thrower_;
        }
        if (thrown)
            trace = trace + " throws " + thrown;
        kill(AFTERWARDS);
        if (exists[LETTERS]) {
            std::erase(sent, '.');
            return trace + " left " + (kept ? std::string(1, kept) : "") + sent;
        }
        return trace + " unread " + sent;
    }

  private:
    using source = rpma::event_source<std::function<std::optional<char>()>>;

    void make_source(letters &sender) {
        source_.emplace(sender.fd(), [this, &sender, took = false]() mutable {
            if (!std::exchange(took, true))
                ; // co_await has called it first
            else if (!std::exchange(is_taking_, true))
                delete_at(IN_TAKE);
            return sender.take();
        });
    }
    static coroutine wait(waiting_for_letters &all, step now, char name) {
        char letter = '!';
        try {
            letter = (co_await *all.source_).value();
        } catch (char) {
        }
        all.trace_ = all.trace_ + name + letter;
        all.delete_at(now);
        if (all.thrower_ == name)
            throw name;
    }
    static coroutine take_rest(waiting_for_letters &all) {
        for (;;) {
            char letter = '!';
            try {
                letter = (co_await *all.source_).value();
            } catch (char) {
            }
            all.trace_ += letter;
        }
    }
    bool deletes(unsigned part, step now) const {
        return now == at_ && !(part == ONE && now == IN_ONE) && !(part == TWO && now == IN_TWO);
    }
    void delete_at(step now) {
        for (const unsigned part : deleted_)
            if (!deletes(part, now))
                continue;
            else if (part == LETTERS)
                source_.reset();
            else
                waiting_[part].reset();
    }

    const std::vector<unsigned> &deleted_;
    const step at_;
    const char thrower_;
    bool is_taking_ = false;
    std::string trace_;
    std::optional<source> source_;
    std::optional<coroutine> waiting_[2];
};

} // namespace

// Each event resumes one coroutine, in the order of waiting. An event that no coroutine has
// got is left, also if take() destroys the one that waits.
TEST_THAT(events_are_passed_on_in_every_order_of_deletion) {
    for (const char *const sent : {"", "a", "ab", "abc", ".a..b", "!b", "a!c", "!!"})
        for (const char thrower : {'-', '1', '2'}) // '-': none
            for (unsigned at = WAITING; at < STEPS; at++)
                each_order(PARTS, PARTS, [&](const std::vector<unsigned> &deleted) {
                    waiting_for_letters waiting(deleted, static_cast<step>(at), thrower);
                    const std::string expected = waiting.expected(sent);
                    const std::string found = waiting.run(sent);
                    if (found != expected)
                        fail_msg("'%s', %zu parts deleted at %u, '%c' throws: '%s', not '%s'",
                                 sent, deleted.size(), at, thrower, found.c_str(),
                                 expected.c_str());
                });
}

TEST_THAT(take_may_delete_its_source) {
    letters none("");
    std::optional<rpma::event_source<std::function<int()>>> source;
    source.emplace(none.fd(), [&source] {
        source.reset();
        return 1;
    });
    const auto wait = [](auto &from) -> coroutine { (void)co_await *from; };
    assert_true(wait(source).is_done());
}

// The descriptor is reported, but no event is pending.
TEST_THAT(closed_descriptor_has_no_event) {
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    close(fds[1]);
    rpma::event_source source(fds[0], [] { return false; });
    const auto wait = [](auto &from) -> coroutine { (void)co_await from; };
    const coroutine waiting = wait(source);
    source.ready();
    assert_false(waiting.is_done());
    close(fds[0]);
    int error = 0;
    try {
        const rpma::event_source refused(fds[0], [] { return true; });
    } catch (const std::system_error &failed) {
        error = failed.code().value();
    }
    assert_int_equal(error, EBADF);
}

// The awaiter of the first operation exists until the end of the expression.
TEST_THAT(expression_can_await_two_operations) {
    side s;
    const auto await = [](side &of) -> coroutine {
        const auto first = of.send(), second = of.send();
        (of.seen.push_back((co_await first).status),
         of.seen.push_back((co_await second).status));
    };
    const coroutine both = await(s);
    s.complete(0, IBV_WC_REM_OP_ERR);
    s.queue->ready();
    assert_false(both.is_done());
    s.complete(1);
    s.queue->ready();
    assert_true(both.is_done());
    assert_int_equal(s.seen.at(0), IBV_WC_REM_OP_ERR);
}

// Of two coroutines that share an awaiter, the later one is resumed.
TEST_THAT(shared_awaiter_serves_one_coroutine) {
    letters none("");
    int events = 0;
    rpma::event_source source(none.fd(), [&] { return events; });
    auto awaiter = source.operator co_await();
    const auto await = [](auto &shared) -> coroutine { (void)co_await shared; };
    const coroutine earlier = await(awaiter), later = await(awaiter);
    events = 1;
    source.ready();
    source.ready();
    assert_true(later.is_done() && !earlier.is_done());
}

TEST_THAT(awaiter_can_be_awaited_again) {
    letters none("");
    rpma::event_source source(none.fd(), [] { return std::optional<int>(); });
    int events = 0;
    rpma::event_source counted(none.fd(), [&] { return events == 0 ? 0 : events--; });
    const auto twice = [](auto &from) -> coroutine {
        auto awaiter = from.operator co_await();
        (void)co_await awaiter;
        (void)co_await awaiter;
    };
    const coroutine never = twice(source), done = twice(counted);
    source.ready();
    for (const bool is_done : {false, true}) {
        events = 1;
        counted.ready();
        assert_true(done.is_done() == is_done);
    }
    assert_false(never.is_done());
}
