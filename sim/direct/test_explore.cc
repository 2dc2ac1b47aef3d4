// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// test_explore.cc -- rdma_sim_explore(): many schedules of the programs of a test
//
// Each schedule runs in a child of the test, so that it begins with the same memory and cannot
// harm the next one.

#include "../explore/enumeration.hh"
#include "../explore/shortening.hh"
#include "test_schedule.hh"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sim {

namespace {

constexpr uint64_t SCHEDULES = 1000;
constexpr unsigned SHORTENING = 1000;

class TestSearch {
  public:
    explicit TestSearch(const rdma_sim_test &test);
    ~TestSearch() { munmap(report_, sizeof(Report)); }
    TestSearch(const TestSearch &) = delete;
    TestSearch &operator=(const TestSearch &) = delete;
    std::string run();

  private:
    void check_host(const std::string &name, unsigned host) const;
    void read_search(std::string_view text);
    void add_memory();
    void add_faults();
    std::string run_seeds(uint64_t first, uint64_t count);
    std::string enumerate(uint64_t most);
    std::string run_schedule(Chooser &&chooser, uint64_t seed, bool is_traced = false);
    std::string report(const std::string &name, uint64_t seed, const std::string &finding,
                       const std::vector<Choice> &choices);
    std::string wait_for(pid_t child);
    std::vector<Choice> choices() const {
        return {report_->made, report_->made + report_->choices};
    }
    std::vector<Point> points() const {
        return {report_->possible, report_->possible + report_->points};
    }

    const rdma_sim_test &test_;
    Search search_;
    uint64_t most_choices_ = UINT64_MAX; // of a schedule of an enumeration
    TestExploration exploration_;
    Report *report_ = nullptr;
};

TestSearch::TestSearch(const rdma_sim_test &test)
    : test_(test), exploration_{test, options_of(&test.options), {}, {}, {}} {
    if (test.program_count == 0 || !test.programs)
        throw Refusal{EINVAL, "the test has no program"};
    read_search(test.search ? test.search : "mixed");
    for (unsigned i = 0; i < test.program_count; i++) {
        const std::string name = "program " + std::to_string(i);
        check_host(name, test.programs[i].host);
        if (!test.programs[i].run)
            throw Refusal{EINVAL, name + " has no function"};
    }
    if (test.platform) {
        const std::optional<sim_platform> platform = find_platform(test.platform);
        if (!platform)
            throw Refusal{EINVAL, "there is no platform '" + std::string(test.platform) + "'"};
        exploration_.options.platform = *platform;
    }
    add_memory();
    add_faults();
    void *const memory = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        throw Refusal{EIO, std::string("mmap: ") + strerror(errno)};
    report_ = static_cast<Report *>(memory);
}

void TestSearch::check_host(const std::string &name, unsigned host) const {
    const unsigned hosts = exploration_.options.hosts;
    if (host == 0 || host > hosts)
        throw Refusal{ERANGE, name + " is on host" + std::to_string(host) + ", there are " +
                                  std::to_string(hosts) + " hosts"};
}

void TestSearch::read_search(std::string_view text) {
    const std::optional<SearchOption> search = find_search(text);
    bool is_valid = search.has_value();
    if (is_valid && search->choices) {
        const char *const end = search->choices->data() + search->choices->size();
        const auto [after, error] =
            std::from_chars(search->choices->data(), end, most_choices_);
        is_valid = error == std::errc() && after == end && most_choices_ > 0;
    }
    if (!is_valid)
        throw Refusal{EINVAL, "there is no search '" + std::string(text) + "'"};
    search_ = search->kind;
}

void TestSearch::add_memory() {
    for (unsigned i = 0; i < test_.memory_count; i++) {
        const rdma_sim_memory &memory = test_.memories[i];
        const std::string name = "memory " + std::to_string(i);
        check_host(name, memory.host);
        if (reinterpret_cast<uintptr_t>(memory.address) % 8 != 0 || !memory.address ||
            memory.size == 0)
            throw Refusal{EINVAL, name + " is empty, or does not begin at a multiple of 8"};
        exploration_.memory.add(memory);
    }
}

void TestSearch::add_faults() {
    ExploredHosts hosts;
    hosts.devices.assign(exploration_.options.hosts, exploration_.options.profile);
    for (unsigned i = 0; i < test_.program_count; i++)
        hosts.programs.push_back(test_.programs[i].host);
    for (unsigned i = 0; i < test_.memory_count; i++)
        if (std::ranges::find(hosts.pmem, test_.memories[i].host) == hosts.pmem.end())
            hosts.pmem.push_back(test_.memories[i].host);
    std::vector<std::string_view> names;
    const auto add = [&](const FaultKind &kind, bool is_named) {
        const bool is_possible =
            !kind.sets_clock && !explored_faults(hosts, {kind.name}).groups.empty();
        if (!is_possible && is_named)
            throw Refusal{ENOTSUP, std::string("no host of this test can have the fault '") +
                                       kind.name + "'"};
        if (is_possible)
            names.push_back(kind.name);
    };
    const std::string_view wanted = test_.faults ? test_.faults : "none";
    for_each_name(wanted, [&](std::string_view name) {
        const FaultKind *const kind = find_fault(name);
        if (kind)
            return add(*kind, true);
        if (name != "none" && name != "all")
            throw Refusal{EINVAL, "there is no fault '" + std::string(name) + "'"};
        for (const FaultKind &each : fault_kinds())
            if (name == "all")
                add(each, false);
    });
    if (names.empty())
        return;
    exploration_.faults = explored_faults(hosts, names);
    if ((test_.flags & RDMA_SIM_TEST_RECOVERS) != 0)
        for (ExploredFaults::Group &group : exploration_.faults.groups)
            std::erase_if(group.faults, [](const Fault &fault) {
                return fault.kind->end != nullptr && fault.lasts == 0;
            });
    if (std::ranges::find(names, "power-off") != names.end())
        exploration_.power_failures = lasting_faults(hosts, "power-off");
}

// Waits until the child ends, or makes no call for MAX_TURN.
std::string TestSearch::wait_for(pid_t child) {
    int status = 0;
    const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    pollfd event = {descriptor, POLLIN, 0};
    uint32_t turns = 0;
    while (descriptor >= 0 && poll(&event, 1, MAX_TURN) <= 0) {
        if (const uint32_t now = report_->turns; now != turns) {
            turns = now;
            continue;
        }
        ::kill(child, SIGKILL);
        waitpid(child, &status, 0);
        close(descriptor);
        return "a program makes no call for 10 s: it loops, or waits for something else than "
               "libibverbs and librdmacm";
    }
    waitpid(child, &status, 0);
    if (descriptor >= 0)
        close(descriptor);
    if (WIFSIGNALED(status))
        return std::string("a program is ended by signal ") + std::to_string(WTERMSIG(status)) +
               " (" + strsignal(WTERMSIG(status)) + ")";
    if (!report_->has_ended)
        return "a program ends the process with status " + std::to_string(WEXITSTATUS(status));
    return report_->finding;
}

// Returns the finding. The output of the programs is shown only with the steps.
std::string TestSearch::run_schedule(Chooser &&chooser, uint64_t seed, bool is_traced) {
    report_->turns = report_->choices = report_->points = 0;
    report_->has_ended = false;
    report_->finding[0] = '\0';
    fflush(nullptr);
    const pid_t child = fork();
    if (child < 0)
        throw Refusal{EIO, std::string("fork: ") + strerror(errno)};
    if (child == 0) {
        if (const int null = is_traced ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
            null >= 0)
            for (const int output : {STDOUT_FILENO, STDERR_FILENO})
                dup2(null, output);
        // Not destroyed: programs that wait for ever use it.
        (new TestSchedule(exploration_, seed, chooser, *report_, is_traced))->run();
        fflush(nullptr);
        _exit(EXIT_SUCCESS);
    }
    return wait_for(child);
}

// Returns the finding of fewer choices, whose steps it prints.
std::string TestSearch::report(const std::string &name, uint64_t seed,
                               const std::string &finding, const std::vector<Choice> &choices) {
    unsigned left = test_.shortening != 0 ? test_.shortening : SHORTENING;
    const auto fails = [&](const std::vector<Choice> &fewer, std::vector<Point> *turns) {
        if (left == 0)
            return false;
        left--;
        Chooser chooser(fewer);
        chooser.records_turns = turns;
        const std::string other = run_schedule(std::move(chooser), seed);
        if (turns)
            *turns = points();
        return is_same_finding(other, finding);
    };
    const std::vector<Choice> fewest = shorten_schedule(choices, fails);
    const std::string again = run_schedule(Chooser(fewest), seed, true);
    return name + ": " +
           (again.empty() ? finding + " (not found again: the test depends on something that "
                                      "the seed does not determine)"
                          : again);
}

// A schedule without choices shows how long the others are. Its seed is always the same one, so
// that the seed of a finding repeats it alone.
std::string TestSearch::run_seeds(uint64_t first, uint64_t count) {
    run_schedule(Chooser(std::vector<Choice>()), 1);
    const Plan plan = {search_, test_.program_count + 1, report_->turns};
    for (uint64_t seed = first; seed < first + count; seed++)
        if (const std::string finding = run_schedule(Chooser(seed, plan), seed);
            !finding.empty())
            return report("seed " + std::to_string(seed), seed, finding, choices());
    return "";
}

std::string TestSearch::enumerate(uint64_t most) {
    Enumeration enumeration(most_choices_);
    for (uint64_t i = 0; i < most; i++) {
        const std::optional<Job> job = enumeration.next();
        if (!job)
            break;
        Chooser chooser(job->choices);
        chooser.records_points = true;
        const uint64_t seed = exploration_.options.seed;
        const std::string finding = run_schedule(std::move(chooser), seed);
        if (!finding.empty())
            return report("schedule " + std::to_string(job->number), seed, finding,
                          job->choices);
        enumeration.completed(job->number, points(), false);
    }
    return "";
}

std::string TestSearch::run() {
    const uint64_t count = test_.schedules ? test_.schedules : SCHEDULES;
    return search_ == Search::EXHAUSTIVE ? enumerate(count)
                                         : run_seeds(exploration_.options.seed, count);
}

} // namespace

std::string explore(const rdma_sim_test &test) {
    return TestSearch(test).run();
}

} // namespace sim
