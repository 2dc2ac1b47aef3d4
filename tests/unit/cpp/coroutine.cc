// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// coroutine.cc -- librpma_coroutine.hpp: coroutines are resumed once, and the memory of an
// operation is kept until its completion, whatever fails

#include <cstdlib>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "coroutine.hh"

#ifndef HAS_OPERATOR_NEW
thread_local unsigned failing_allocation;

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
