// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// test_schedule.cc -- one schedule of the programs of a test
//
// A program is a coroutine; it runs until it gives its turn back.

#include "test_schedule.hh"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <utility>

namespace sim {

namespace {

// Returns true for a function that a program calls before or after a wait, if it waits.
bool is_of_wait(std::string_view function) {
    constexpr std::string_view FUNCTIONS[] = {"ibv_req_notify_cq", "ibv_get_cq_event",
                                              "ibv_poll_cq"};
    return std::ranges::find(FUNCTIONS, function) != std::end(FUNCTIONS);
}

} // namespace

TestSchedule *TestSchedule::current;
thread_local TestProgram *TestSchedule::player;

TestSchedule::TestSchedule(TestExploration &exploration, uint64_t seed, Chooser &chooser,
                           Report &report, bool is_traced)
    : exploration_(exploration), chooser_(chooser), report_(report), is_traced_(is_traced),
      generator_(seed) {
    Options options = exploration.options;
    options.seed = seed;
    options.scheduler = this;
    direct_ = std::make_unique<Direct>(options, &exploration.memory);
    for (unsigned i = 0; i < exploration.test.program_count; i++) {
        const rdma_sim_program &given = exploration.test.programs[i];
        TestProgram &program = programs_.emplace_back();
        program.given = &given;
        program.name = given.name ? given.name : "host" + std::to_string(given.host);
        program.number = i + 1;
        program.random = seed * MAX_HOSTS + i;
        begin(program);
    }
    watch_calls();
}

// ---- choices -------------------------------------------------------------------------------

// The report has each choice at once, because a program can end the child.
template <class Choose> auto TestSchedule::recorded(Choose choose) {
    const auto add = [](const auto &all, auto &to, std::atomic<uint32_t> &count) {
        for (; count < all.size() && count < Report::MAX_CHOICES; count++)
            to[count] = all[count];
    };
    const size_t before = chooser_.choices.size();
    const auto chosen = choose();
    if (chooser_.choices.size() != before)
        add(chooser_.choices, report_.made, report_.choices);
    add(chooser_.points, report_.possible, report_.points);
    return chosen;
}

uint64_t TestSchedule::delay(Delayed what) {
    const uint32_t option =
        recorded([&] { return chooser_.choose(Chooser::DELAY, std::size(LATE)); });
    if (option == 0)
        return 0;
    trace("", late_text(what, option));
    return LATE[option - 1];
}

unsigned TestSchedule::choose(Weakness weakness, unsigned options) {
    const uint32_t option = recorded([&] { return chooser_.choose(weakness, options); });
    if (option != 0)
        trace("", weakness_text(weakness));
    return option;
}

Chooser::Window TestSchedule::window() {
    return Chooser::window_of({exploration_.memory.has_unpersisted(),
                               fabric().next_timer() != NEVER, report_.turns, posted_at_,
                               restarted_at_});
}

// ---- faults --------------------------------------------------------------------------------

// Calls the function for the program of the fault, or for all programs of its host.
template <class Function>
void TestSchedule::for_each_program(const Fault &fault, Function function) {
    for (TestProgram &program : programs_)
        if (fault.program != 0 ? program.number == fault.program
                               : program.given->host == fault.hosts[0])
            function(program);
}

// Without a program that it concerns, a fault does not occur.
bool TestSchedule::has_program(const Fault &fault) {
    bool is_any_alive = false;
    for_each_program(fault, [&](const TestProgram &program) {
        is_any_alive |= program.state != TestProgram::ENDED &&
                        (fault.program == 0 || program.state != TestProgram::START);
    });
    return is_any_alive;
}

void TestSchedule::apply_fault(const Fault &fault) {
    const std::lock_guard held(direct_->lock());
    occur(fault);
}

void TestSchedule::occur(const Fault &fault) {
    occurred_++;
    pending_ends_ += fault.lasts != 0;
    trace("", "fault: " + fault.text);
    TestFaults::occur(fault);
}

void TestSchedule::ended(const Fault &fault) {
    pending_ends_ -= fault.lasts != 0;
    changes_++;
}

// After a fault, a program may wait for one that the fault has ended.
bool TestSchedule::may_wait_for_ever() const {
    const bool recovers = (exploration_.test.flags & RDMA_SIM_TEST_RECOVERS) != 0;
    return occurred_ != 0 && !(recovers && pending_ends_ == 0);
}

// For the program that has the turn, which the fault may end or suspend.
void TestSchedule::add_fault(const char *text) {
    {
        const std::lock_guard held(direct_->lock());
        TestFaults::add_fault(text);
    }
    changes_++;
    if (player->state == TestProgram::ENDED)
        player->coroutine.yield();
    else
        yield(TestProgram::REQUEST, NEVER, "rdma_sim_fault");
}

void TestSchedule::kill(const Fault &fault) {
    for_each_program(fault, [&](TestProgram &program) {
        if (program.state == TestProgram::ENDED)
            return;
        program.state = TestProgram::ENDED;
        program.restarts = fault.lasts != 0;
        direct_->end_program(program.given->host, program.id);
    });
    changes_++;
}

void TestSchedule::start(const Fault &fault) {
    for_each_program(fault, [&](TestProgram &program) {
        if (!std::exchange(program.restarts, false))
            return;
        trace("", "the fault ends: " + fault.text);
        restarted_at_ = std::max<uint64_t>(report_.turns, 1);
        chooser_.add_fault();
        begin(program);
    });
}

void TestSchedule::suspend(const Fault &fault, bool is_suspended) {
    for_each_program(fault, [&](TestProgram &program) { program.is_suspended = is_suspended; });
}

void TestSchedule::power_off(const Fault &fault) {
    fabric().set_power(fault.hosts[0], false);
    kill(fault);
    exploration_.memory.lose_power(fault.hosts[0], fault.is_random ? &generator_ : nullptr);
}

// ---- programs ------------------------------------------------------------------------------

// What ran before a restart does not continue, nor is the new process suspended.
void TestSchedule::begin(TestProgram &program) {
    program.state = TestProgram::START;
    program.is_suspended = false;
    program.function = "its start";
    program.is_listening = false;
    program.id = ++starts_;
    if (!program.coroutine.start(
            [this, &program] { end_program(program.given->run(program.given->argument)); }))
        find(std::string("no memory for the stack of a program: ") + strerror(errno));
}

// A context and its channel are those of librdmacm, which keeps them until the process ends.
void TestSchedule::find_leaks() {
    static constexpr const char *KINDS[Object::KINDS] = {"context",
                                                         "channel",
                                                         "protection domain",
                                                         "memory region",
                                                         "memory window",
                                                         "completion queue",
                                                         "shared receive queue",
                                                         "queue pair",
                                                         "address handle",
                                                         "XRC domain",
                                                         "CM ID",
                                                         "multicast group"};
    const Session *const session = direct_->session_of(player->given->host, player->id);
    for (const auto &[handle, object] : fabric().objects())
        if (session && object->session == session && object->kind != Object::CONTEXT &&
            !(object->kind == Object::CHANNEL &&
              static_cast<const Channel &>(*object).purpose == Channel::ASYNC))
            return find(player->name + " ends with status 0 without destroying its " +
                        KINDS[object->kind]);
}

void TestSchedule::end_program(int status) {
    if (status != 0 && occurred_ == 0)
        find(player->name + " ends with status " + std::to_string(status));
    trace(player->name, "ends with status " + std::to_string(status));
    {
        const std::lock_guard held(direct_->lock());
        if (status == 0 && (exploration_.test.flags & RDMA_SIM_TEST_LEAKS) != 0)
            find_leaks();
        direct_->end_program(player->given->host, player->id);
    }
    changes_++;
    yield(TestProgram::ENDED, NEVER, "its end");
}

// Gives the turn back. After its end, a program gets none.
void TestSchedule::yield(decltype(TestProgram::state) state, uint64_t until,
                         const char *function) {
    TestProgram &program = *player;
    program.state = state;
    program.until = until;
    program.function = function;
    program.changes = changes_;
    if (state == TestProgram::REQUEST)
        program.polling.progress(now());
    if (state == TestProgram::POLL)
        program.until = program.polling.next(now());
    program.waits.add(program.until, progress_turns_);
    program.coroutine.yield();
}

int TestSchedule::wait(const WaitFunction &wait, int milliseconds, const char *function) {
    const uint64_t until =
        milliseconds < 0 ? NEVER : now() + static_cast<uint64_t>(milliseconds) * 1'000'000;
    if (milliseconds == 0)
        yield(TestProgram::POLL, NEVER, function);
    for (;;) {
        const int ready = wait(0);
        if (ready != 0)
            return ready;
        if (now() >= until) {
            if (milliseconds > 0)
                player->polling.waited(now());
            return 0;
        }
        yield(TestProgram::EVENT, until, function);
    }
}

void TestSchedule::persist(const void *address, size_t size) {
    yield(TestProgram::REQUEST, NEVER, "rdma_sim_persist");
    exploration_.memory.persist(0, reinterpret_cast<uint64_t>(address), size, 0);
}

// ---- turns ---------------------------------------------------------------------------------

void TestSchedule::give_turn(TestProgram &program) {
    if (++report_.turns > MAX_REQUESTS) {
        is_finished_ = true;
        if (!may_wait_for_ever())
            find("the programs do not end within 200000 calls");
        return;
    }
    if (program.state == TestProgram::START) {
        trace(program.name, "starts");
        program.started_at = now();
        program.polling.progress(now());
        program.has_started = true;
    }
    if (program.state == TestProgram::REQUEST) {
        progress_at_ = now();
        progress_turns_ = report_.turns;
        if (!is_of_wait(program.function))
            chooser_.add_call();
        program.is_listening |= strcmp(program.function, "rdma_listen") == 0;
        if (strcmp(program.function, "ibv_post_send") == 0 ||
            strcmp(program.function, "ibv_wr_complete") == 0)
            posted_at_ = report_.turns;
        trace(program.name, program.function);
    }
    player = &program;
    direct_->use_host(program.given->host, program.id);
    program.coroutine.resume();
    direct_->use_host(1);
    player = nullptr;
}

// The first program starts at once, the others when it listens, waits or has ended.
bool TestSchedule::may_start(const TestProgram &program) const {
    const TestProgram &first = programs_.front();
    return program.has_started || &program == &first || first.is_listening ||
           first.state == TestProgram::ENDED ||
           (first.state != TestProgram::START &&
            direct_->fabric().now() >= first.started_at + SECOND);
}

bool TestSchedule::is_ready(const TestProgram &program) const {
    if (program.is_suspended)
        return false;
    switch (program.state) {
    case TestProgram::START:
        return may_start(program);
    case TestProgram::REQUEST:
        return true;
    case TestProgram::ENDED:
        return false;
    default:
        return program.until <= direct_->fabric().now() ||
               (program.state != TestProgram::SLEEP && program.changes != changes_);
    }
}

bool TestSchedule::can_continue() const {
    return std::ranges::any_of(programs_, [](const TestProgram &program) {
        return program.state != TestProgram::ENDED || program.restarts;
    });
}

void TestSchedule::advance(uint64_t time) {
    const std::lock_guard held(direct_->lock());
    order_.time_passes();
    fabric().advance(time);
}

bool TestSchedule::pass_time() {
    uint64_t next = fabric().next_timer();
    const bool waits_forever =
        next == NEVER &&
        ::is_idle(
            now() - progress_at_, report_.turns - progress_turns_, may_wait_for_ever(), [this] {
                return std::ranges::all_of(programs_, [](const TestProgram &program) {
                    return program.state == TestProgram::ENDED || program.waits.last_for_ever();
                });
            });
    const TestProgram &first = programs_.front();
    for (const TestProgram &program : programs_)
        if (program.is_suspended || program.state == TestProgram::ENDED)
            continue;
        else if (program.state != TestProgram::START)
            next = std::min(next, program.until);
        else if (first.state != TestProgram::START)
            next = std::min(next, first.started_at + SECOND);
    if (waits_forever)
        next = NEVER;
    next = std::min(next, fabric().next_deadline());
    if (next != NEVER) {
        advance(next);
        return true;
    }
    std::string all;
    for (const TestProgram &program : programs_)
        if (program.state != TestProgram::ENDED)
            all += (all.empty() ? "" : ", ") + program.name + " waits in " + program.function;
    if (!may_wait_for_ever())
        find("the programs wait for ever: " + all);
    return false;
}

bool TestSchedule::step() {
    if (is_finished_ || report_.finding[0] != '\0' || !can_continue())
        return false;
    const Fault *const fault = recorded(
        [&] { return chooser_.choose(Chooser::FAULT, exploration_.faults, window()); });
    if (fault && has_program(*fault))
        apply_fault(*fault);
    std::vector<unsigned> ready;
    for (size_t i = 0; i < programs_.size(); i++)
        if (const TestProgram &program = programs_[(current_ + i) % programs_.size()];
            is_ready(program))
            ready.push_back(program.number);
    if (ready.empty())
        return pass_time();
    if (const std::optional<uint64_t> time = order_.due_time(now(), fabric().next_timer()))
        advance(*time);
    const uint64_t timer = fabric().next_timer();
    const auto [thread, instead, changed] =
        recorded([&] { return order_.choose(chooser_, ready, timer != NEVER); });
    for (const Chooser::Priority &each : changed)
        trace(each.thread == 0 ? "" : programs_[each.thread - 1].name, priority_text(each));
    if (thread == 0) {
        trace("", "time passes before a program continues");
        advance(timer);
        return true;
    }
    current_ = thread - 1;
    if (thread != instead)
        trace(programs_[current_].name,
              "continues before " +
                  (instead == 0 ? "time passes" : programs_[instead - 1].name));
    give_turn(programs_[current_]);
    return true;
}

// ---- the result ----------------------------------------------------------------------------

void TestSchedule::find(const std::string &what) {
    if (report_.finding[0] == '\0')
        snprintf(report_.finding, sizeof(report_.finding), "%s", what.c_str());
}

void TestSchedule::trace(const std::string &who, const std::string &what) const {
    if (is_traced_)
        fprintf(stderr, "%12.3f ms %s%s%s\n",
                static_cast<double>(direct_->fabric().now()) / 1e6, who.empty() ? "- " : "  ",
                who.empty() ? "" : (who + " ").c_str(), what.c_str());
}

void TestSchedule::run() {
    current = this;
    direct_->set_before_call([this](const char *function) {
        if (player)
            yield(TestProgram::REQUEST, NEVER, function);
    });
    rdma_sim_set_waiter([](int fd, const Ring *ring, const char *function) {
        if (!player)
            return;
        if (ring) {
            if (ring->added == ring->taken)
                current->yield(TestProgram::POLL, NEVER, function);
            return;
        }
        while (fd < 0) // a program has no other thread that acknowledges an event
            current->yield(TestProgram::EVENT, NEVER, function);
        pollfd ready = {fd, POLLIN, 0};
        while ((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0 && ::poll(&ready, 1, 0) == 0)
            current->yield(TestProgram::EVENT, NEVER, function);
    });
    while (step())
        ;
    const rdma_sim_test &test = exploration_.test;
    // Flushed data must also survive a power failure after the programs have ended.
    if (report_.finding[0] == '\0')
        if (const Fault *const fault = recorded(
                [&] { return chooser_.choose(Chooser::POWER, exploration_.power_failures); }))
            apply_fault(*fault);
    const char *const wrong =
        report_.finding[0] == '\0' && test.check ? test.check(test.argument) : nullptr;
    if (wrong)
        find(std::string("the check fails: ") + wrong);
    if (report_.finding[0] != '\0')
        trace("", std::string("FOUND: ") + report_.finding);
    report_.has_ended = true;
}

} // namespace sim
