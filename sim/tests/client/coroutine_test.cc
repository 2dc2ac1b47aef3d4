// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// coroutine_test.cc -- programs that run in turn in one thread, each with a state of its own

#include "../../direct/coroutine.hh"

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

namespace {

using sim::Coroutine;

void yielded_coroutine_is_continued_at_its_next_turn(void **) {
    Coroutine one, other;
    std::string order;
    const auto run = [&](Coroutine &self, const char *name) {
        for (const char turn : {'1', '2'}) {
            order += std::string(name) + turn;
            self.yield();
        }
    };
    assert_true(one.start([&] { run(one, "a"); }));
    assert_true(other.start([&] { run(other, "b"); }));
    for (int turn = 0; turn < 2; turn++) {
        one.resume();
        other.resume();
    }
    one.resume();
    one.resume(); // it has ended
    assert_string_equal(order.c_str(), "a1b1a2b2");
}

void errno_of_a_coroutine_survives_the_turn_of_another(void **) {
    Coroutine one, other;
    int found = 0;
    assert_true(one.start([&] {
        errno = ENOENT;
        one.yield();
        found = errno;
    }));
    assert_true(other.start([] { errno = EBUSY; }));
    one.resume();
    other.resume();
    one.resume();
    assert_int_equal(found, ENOENT);
}

// Each yields while it handles an exception, and rethrows it later.
void exception_of_a_coroutine_survives_the_turn_of_another(void **) {
    Coroutine one, other;
    std::string found;
    const auto run = [&](Coroutine &self, const char *what) {
        try {
            try {
                throw std::runtime_error(what);
            } catch (const std::runtime_error &) {
                self.yield();
                throw;
            }
        } catch (const std::runtime_error &again) {
            found += again.what();
        }
    };
    assert_true(one.start([&] { run(one, "a"); }));
    assert_true(other.start([&] { run(other, "b"); }));
    for (Coroutine *const each : {&one, &other, &one, &other}) {
        each->resume();
        assert_true(std::current_exception() == nullptr);
    }
    assert_string_equal(found.c_str(), "ab");
}

void former_turn_is_abandoned_by_another_start(void **) {
    Coroutine one;
    std::string order;
    assert_true(one.start([&] {
        order += "a";
        one.yield();
        order += "b";
    }));
    one.resume();
    assert_true(one.start([&] { order += "c"; }));
    one.resume();
    assert_string_equal(order.c_str(), "ac");
}

// Without the page below the stack, it would change other memory.
void coroutine_without_stack_is_ended_by_a_signal(void **) {
    const pid_t child = fork();
    if (child == 0) {
        Coroutine one, below; // Linux maps the second stack below the first one
        signal(SIGSEGV, SIG_DFL);
        const bool is_started = one.start([] {
            volatile char bytes[Coroutine::STACK_SIZE + (64 << 10)];
            for (size_t i = sizeof(bytes); i > 0; i -= 1024)
                bytes[i - 1] = 1;
        });
        if (is_started && below.start([] {}))
            one.resume();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(yielded_coroutine_is_continued_at_its_next_turn),
        cmocka_unit_test(errno_of_a_coroutine_survives_the_turn_of_another),
        cmocka_unit_test(exception_of_a_coroutine_survives_the_turn_of_another),
        cmocka_unit_test(former_turn_is_abandoned_by_another_start),
        cmocka_unit_test(coroutine_without_stack_is_ended_by_a_signal),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
