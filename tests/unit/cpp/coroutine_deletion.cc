// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// coroutine_deletion.cc -- coroutines, sources and queues are deleted in every order and at
// every moment, and every function throws

#include <algorithm>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

#include "coroutine.hh"

namespace {

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
