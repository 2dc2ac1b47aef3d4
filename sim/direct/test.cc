// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// test.cc -- the functions of rdma-sim.h

#include "test.hh"

#include "../model/faults.hh"
#include "direct.hh"

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <sys/epoll.h>
#include <sys/random.h>

namespace sim {

static void turn_off(Options &options, const std::string &name) {
    const WeaknessKind *const kind = find_weakness(name);
    if (name == "all")
        options.strong.set();
    else if (!kind)
        throw Refusal{EINVAL, "there is no weakness '" + name + "'"};
    else if (!kind->is_of_device(*options.profile))
        throw Refusal{ENOTSUP, std::string("the device ") + options.profile->name +
                                   " does not have the weakness " + name};
    else
        options.strong |= only(*kind);
}

Options options_of(const rdma_sim_options *given) {
    static const rdma_sim_options DEFAULTS{};
    const rdma_sim_options &wanted = given ? *given : DEFAULTS;
    Options options;
    const char *const device = wanted.device ? wanted.device : "rxe";
    options.hosts = wanted.hosts ? wanted.hosts : 2;
    options.seed = wanted.seed ? wanted.seed : 1;
    options.profile = sim_find_profile(device);
    if (options.hosts > MAX_HOSTS)
        throw Refusal{EINVAL, "at most " + std::to_string(MAX_HOSTS) + " hosts"};
    if (!options.profile)
        throw Refusal{ENODEV, std::string("there is no device '") + device + "'"};
    for_each_name(wanted.strong ? wanted.strong : "",
                  [&](std::string_view name) { turn_off(options, std::string(name)); });
    return options;
}

// ---- faults --------------------------------------------------------------------------------

void TestFaults::watch_calls() {
    fabric().set_before_call([this](const Caller &caller, std::span<const std::byte> request) {
        for (const Fault *const fault : call_faults_.take(fabric(), caller, request))
            schedule(*fault);
        return true;
    });
}

void TestFaults::check_host(unsigned host) {
    const size_t hosts = fabric().hosts().size();
    if (host == 0 || host > hosts)
        throw Refusal{ERANGE, "there is no host" + std::to_string(host) + ", only " +
                                  std::to_string(hosts) + " hosts"};
}

void TestFaults::refuse_impossible(const Fault &fault) {
    const std::string text = "'" + fault.text + "': ";
    if ((fault.kind->needs_programs && !has_programs()) || fault.kind->sets_clock ||
        fault.after != 0)
        throw Refusal{ENOTSUP, text + "only rdma-sim has this fault: it is one of programs"};
    if (fault.caller != 0)
        check_host(fault.caller);
    for (const unsigned host : fault.hosts) {
        check_host(host);
        const sim_profile &profile = *fabric().options().profile;
        if (!is_possible(profile, fault))
            throw Refusal{ENOTSUP,
                          text + "the device " + profile.name + " cannot have this fault"};
    }
}

void TestFaults::schedule(const Fault &fault) {
    if (fault.time == 0)
        occur(fault);
    else
        fabric().at(fabric().now() + fault.time, [this, &fault] { occur(fault); });
}

void TestFaults::add_fault(std::string_view text) {
    const bool is_action = find_fault(text.substr(0, text.find(' '))) != nullptr;
    try {
        const Fault fault = is_action ? read_action(text) : read_fault(text);
        refuse_impossible(fault);
        faults_.push_back(fault);
    } catch (const BadFault &bad) {
        throw Refusal{EINVAL, "'" + std::string(text) + "': " + bad.why};
    }
    if (faults_.back().call)
        call_faults_.add(faults_.back());
    else
        schedule(faults_.back());
}

} // namespace sim

namespace {

using namespace sim;

thread_local std::string message;

// The fabric, and its faults.
class TestFabric : NoPrograms {
  public:
    explicit TestFabric(const Options &options);
    ~TestFabric() override { direct_.fabric().set_before_call(nullptr); }
    TestFabric(const TestFabric &) = delete;
    TestFabric &operator=(const TestFabric &) = delete;
    void use_host(unsigned host);
    void advance(uint64_t nanoseconds);
    void add_fault(const char *text);

  private:
    sim::Fabric &fabric() override { return direct_.fabric(); }
    Direct direct_;
};

std::unique_ptr<TestFabric> current;

TestFabric::TestFabric(const Options &options) : direct_(options) {
    watch_calls();
}

void TestFabric::use_host(unsigned host) {
    check_host(host);
    direct_.use_host(host);
}

void TestFabric::advance(uint64_t nanoseconds) {
    const std::lock_guard held(direct_.lock());
    if (nanoseconds > UINT64_MAX - fabric().now())
        throw Refusal{ERANGE, "the time is limited to 2^64 - 1 nanoseconds"};
    fabric().advance(fabric().now() + nanoseconds);
}

void TestFabric::add_fault(const char *text) {
    const std::lock_guard held(direct_.lock());
    TestFaults::add_fault(text);
}

void start(const rdma_sim_options *given) {
    if (current || is_explored_program())
        throw Refusal{EBUSY, "a fabric exists already"};
    current = std::make_unique<TestFabric>(options_of(given));
}

// Converts exceptions to an error number and a message.
template <class Function> int guarded(bool needs_fabric, Function function) {
    const int before = errno;
    int error = 0;
    message.clear();
    try {
        if (needs_fabric && !current)
            throw Refusal{ENOENT, "there is no fabric: call rdma_sim_start()"};
        function();
    } catch (const Refusal &refusal) {
        error = refusal.error;
        message = refusal.why;
    } catch (const std::exception &failure) {
        error = EIO;
        message = failure.what();
    }
    errno = before;
    return error;
}

} // namespace

int rdma_sim_start(const rdma_sim_options *options) {
    return guarded(false, [&] { start(options); });
}

int rdma_sim_end() {
    return guarded(true, [] { current.reset(); });
}

int rdma_sim_use_host(unsigned host) {
    return guarded(true, [&] { current->use_host(host); });
}

int rdma_sim_advance(uint64_t nanoseconds) {
    if (sleep_of_program(nanoseconds))
        return 0;
    return guarded(true, [&] { current->advance(nanoseconds); });
}

int rdma_sim_persist(const void *address, size_t size) {
    return guarded(false, [&] {
        if (!persist_for_program(address, size))
            throw Refusal{ENOENT, "no program of rdma_sim_explore() calls rdma_sim_persist()"};
    });
}

int rdma_sim_check_persistent(const void *address, size_t size) {
    return guarded(false, [&] {
        if (!check_persistent(address, size))
            throw Refusal{ENOENT, "no program of rdma_sim_explore() calls "
                                  "rdma_sim_check_persistent()"};
    });
}

int rdma_sim_possible_value(const void *address, unsigned number, uint64_t *value) {
    if (!is_explored_program())
        return guarded(false, [] {
            throw Refusal{ENOENT, "no program of rdma_sim_explore() calls "
                                  "rdma_sim_possible_value()"};
        });
    // Without an exception: a test asks for all values of many words.
    const std::optional<uint64_t> found = possible_value(address, number);
    message = found ? "" : "the word has no further value after a power failure";
    *value = found.value_or(*value);
    return found ? 0 : ENODATA;
}

uint64_t rdma_sim_random() {
    uint64_t number = 0;
    if (const std::optional<uint64_t> chosen = random_of_program())
        return *chosen;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        abort();
    return number;
}

int rdma_sim_clock_gettime(int clock, timespec *time) {
    // Not 0 at the start, which programs use for "never".
    constexpr time_t BEGIN = 1000;
    constexpr uint64_t SECOND = 1'000'000'000;
    const std::optional<uint64_t> now = time_of_program();
    if (!now)
        return clock_gettime(clock, time);
    *time = {BEGIN + static_cast<time_t>(*now / SECOND), static_cast<long>(*now % SECOND)};
    return 0;
}

int rdma_sim_poll(pollfd *descriptors, unsigned long count, int milliseconds) {
    return wait_for_program([=](int time) { return poll(descriptors, count, time); },
                            milliseconds, "poll");
}

int rdma_sim_epoll_wait(int epoll, epoll_event *events, int maximum, int milliseconds) {
    return wait_for_program([=](int time) { return epoll_wait(epoll, events, maximum, time); },
                            milliseconds, "epoll_wait");
}

void rdma_sim_exit(int status) {
    end_program(status);
    exit(status);
}

int rdma_sim_fault(const char *fault) {
    const char *const text = fault ? fault : "";
    return guarded(!is_explored_program(), [&] {
        if (!add_fault_for_program(text))
            current->add_fault(text);
    });
}

int rdma_sim_explore(const rdma_sim_test *test) {
    std::string finding;
    const int error = guarded(false, [&] {
        if (current || is_explored_program())
            throw Refusal{EBUSY, "a fabric exists already"};
        if (!test)
            throw Refusal{EINVAL, "the test is NULL"};
        finding = explore(*test);
    });
    if (error != 0 || finding.empty())
        return error;
    message = finding;
    return RDMA_SIM_FOUND;
}

const char *rdma_sim_error() {
    return message.c_str();
}
