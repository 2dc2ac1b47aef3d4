// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// test_program.cc -- functions of rdma-sim.h for the program that has the turn

#include "test_schedule.hh"

#include <cerrno>
#include <cstdio>

namespace sim {

bool is_explored_program() {
    return TestSchedule::player != nullptr;
}

bool sleep_of_program(uint64_t nanoseconds) {
    if (!TestSchedule::player)
        return false;
    TestSchedule &schedule = *TestSchedule::current;
    const uint64_t until = schedule.now() + nanoseconds;
    while (schedule.now() < until)
        schedule.yield(TestProgram::SLEEP, until, "rdma_sim_advance");
    TestSchedule::player->polling.waited(schedule.now());
    return true;
}

bool persist_for_program(const void *address, size_t size) {
    if (TestSchedule::player)
        TestSchedule::current->persist(address, size);
    return TestSchedule::player != nullptr;
}

bool check_persistent(const void *address, size_t size) {
    if (!TestSchedule::player)
        return false;
    const auto begin = reinterpret_cast<uint64_t>(address);
    const uint64_t covered = TestSchedule::current->memory().persistent_length(begin, size);
    if (covered < size) {
        char text[100];
        snprintf(text, sizeof(text), "a power failure can change the data at %p",
                 reinterpret_cast<void *>(begin + covered));
        throw Refusal{ENODATA, text};
    }
    return true;
}

std::optional<uint64_t> possible_value(const void *address, unsigned number) {
    return TestSchedule::current->memory().possible_value(reinterpret_cast<uint64_t>(address),
                                                          number);
}

std::optional<uint64_t> random_of_program() {
    if (!TestSchedule::player)
        return std::nullopt;
    return next_random(TestSchedule::player->random);
}

std::optional<uint64_t> time_of_program() {
    if (!TestSchedule::player)
        return std::nullopt;
    return TestSchedule::current->now();
}

bool add_fault_for_program(const char *text) {
    if (TestSchedule::player)
        TestSchedule::current->add_fault(text);
    return TestSchedule::player != nullptr;
}

bool end_program(int status) {
    if (TestSchedule::player)
        TestSchedule::current->end_program(status);
    return false;
}

int wait_for_program(const WaitFunction &wait, int milliseconds, const char *function) {
    return TestSchedule::player ? TestSchedule::current->wait(wait, milliseconds, function)
                                : wait(milliseconds);
}

} // namespace sim
