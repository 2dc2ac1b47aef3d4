// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// explore.cc -- runs schedules until one has a finding, or all with --keep-going

#include "explore.hh"
#include "reporter.hh"
#include "schedule.hh"
#include "workers.hh"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>

namespace {

// Returns NULL if the finding has no content of the file.
const std::string *saved_content(const Finding &finding, const std::string &path) {
    const auto found = finding.pmem.find(path);
    return found != finding.pmem.end() && found->second.has_content ? &found->second.content
                                                                    : nullptr;
}

sim::VirtualClock *map_clock(const std::string &path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *const page = fd < 0 || ftruncate(fd, sizeof(sim::VirtualClock)) != 0
                           ? MAP_FAILED
                           : mmap(nullptr, sizeof(sim::VirtualClock), PROT_READ | PROT_WRITE,
                                  MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        refuse("%s: %s", path.c_str(), strerror(errno));
    close(fd);
    return static_cast<sim::VirtualClock *>(page);
}

sim::ExploredHosts explored_hosts(const ExploreSettings &settings) {
    sim::ExploredHosts hosts;
    for (unsigned host = 1; host <= settings.fabric.hosts; host++)
        hosts.devices.push_back(&settings.device_of(host));
    for (const Command &command : settings.commands)
        hosts.programs.push_back(command.host);
    for (const auto &[host, path] : settings.pmem)
        hosts.pmem.push_back(host);
    return hosts;
}

sim::ExploredFaults possible_faults(const ExploreSettings &settings,
                                    const std::vector<std::string_view> &names) {
    const sim::ExploredHosts hosts = explored_hosts(settings);
    for (const std::string_view name : names)
        if (name != "none" && sim::explored_faults(hosts, {name}).groups.empty())
            refuse("--faults %.*s: no host, device or file of --pmem can have this fault",
                   static_cast<int>(name.size()), name.data());
    return sim::explored_faults(hosts, names);
}

// Those after which no program starts.
sim::ExploredFaults power_failures(const ExploreSettings &settings) {
    const auto is_named = [&](std::string_view name) {
        return settings.fault_kinds.empty() ||
               std::ranges::find(settings.fault_kinds, name) != settings.fault_kinds.end();
    };
    if (!is_named("power-off") && !is_named("power"))
        return {};
    if (settings.pmem.empty())
        return {};
    return sim::lasting_faults(explored_hosts(settings), "power-off");
}

class Explorer {
  public:
    Explorer(ExploreSettings &settings, const Libraries &libraries);
    int main();

  private:
    // Schedules with the same finding.
    struct Group {
        uint64_t count, seed; // seed: the lowest one
        Result first;
    };
    void prepare(Exploration &exploration) const;
    void rehearse();
    RunJob worker();
    Result run_job(Exploration &exploration, const Job &job) const;
    void add_to_groups(uint64_t seed, Result &&result);
    bool is_time_over() const;
    void search(Workers &workers);
    void report_groups();
    void print_end() const;
    void refuse_bad_check();
    static void try_to_write(const char *option, const std::string &file);

    ExploreSettings &settings_;
    Signals signals_{};
    Directory directory_;
    Exploration exploration_;
    Plan plan_{};
    Summary summary_{exploration_};
    std::optional<Enumeration> enumeration_{};
    std::vector<Group> groups_{};
    Reporter reporter_{exploration_};
    const uint64_t begin_ = sim::Server::clock();
};

Explorer::Explorer(ExploreSettings &settings, const Libraries &libraries)
    : settings_(settings),
      directory_(""), exploration_{settings,
                                   libraries,
                                   directory_,
                                   signals_,
                                   possible_faults(settings, settings.fault_kinds),
                                   power_failures(settings),
                                   map_clock(directory_.path() + "/clock")} {
    if (!settings.save.empty() && settings.replay.empty())
        try_to_write("--save", settings.save);
    if (!settings.html.empty())
        try_to_write("--html", settings.html);
    if (!settings.check.empty())
        refuse_bad_check();
    for (const auto &[host, path] : settings.pmem)
        exploration_.pmem.emplace_back(path, saved_content(settings.finding, path));
    prepare(exploration_);
    rehearse();
}

// Writes the files of the hosts.
void Explorer::prepare(Exploration &exploration) const {
    sim::PmemFiles files;
    open_pmem(settings_, files);
    sim::Server server(settings_.fabric, nullptr, false, true);
    for (const auto &host : server.fabric().hosts())
        exploration.directory.add_host(*host, files.ids(host->number));
}

// Refuses a file that cannot be written, before the exploration.
void Explorer::try_to_write(const char *option, const std::string &file) {
    const char *const path = file.c_str();
    const bool is_new = access(path, F_OK) != 0;
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        refuse("%s %s: %s", option, path, strerror(errno));
    close(fd);
    if (is_new)
        unlink(path);
}

// Refuses a CHECK with an error of syntax, or one command that does not exist.
void Explorer::refuse_bad_check() {
    constexpr char SCRIPT[] =
        R"(sh -n -c "$1" || exit; [ "$2" ] || exit 0
           case $2 in */*) [ -x "$2" ] && ! [ -d "$2" ] ;; *) command -v "$2" >/dev/null ;; esac ||
               { echo "$2: not found, or not executable"; exit 1; })";
    const std::string &check = settings_.check, path = directory_.path() + "/check";
    const std::string word =
        is_simple_command(check) ? check.substr(0, check.find_first_of(" \t")) : "";
    const int fd = open_output(path);
    const pid_t pid = fork_command(true, fd, fd, [&] {
        execl("/bin/sh", "sh", "-c", SCRIPT, "sh", check.c_str(), word.c_str(), nullptr);
    });
    close(fd);
    if (exploration_.wait_for(pid) != 0)
        refuse("--check '%s': %s", check.c_str(), first_line(path).c_str());
}

void Explorer::rehearse() {
    Chooser chooser{std::vector<sim::Choice>()};
    Schedule schedule(exploration_, settings_.first_seed, chooser, false);
    schedule.run();
    exploration_.listens = schedule.listening();
    exploration_.turns = schedule.coverage.turns;
    exploration_.posts = schedule.coverage.posts;
    exploration_.threads = schedule.coverage.threads;
    exploration_.is_rehearsal = false;
}

// The function that runs jobs, in this process or in one of several.
RunJob Explorer::worker() {
    if (settings_.jobs == 1)
        return [this](const Job &job) { return run_job(exploration_, job); };
    struct Own {
        explicit Own(const Exploration &other)
            : exploration{other.settings,
                          other.libraries,
                          directory,
                          signals,
                          other.faults,
                          other.power_failures,
                          map_clock(directory.path() + "/clock"),
                          {},
                          other.processor, // which may have fewer by now
                          std::vector<ForkServer>(other.settings.commands.size()),
                          false,
                          other.listens,
                          other.names,
                          other.turns,
                          other.posts,
                          other.threads} {}
        Signals signals{};
        Directory directory{""};
        Exploration exploration;
    };
    const auto own = std::make_shared<Own>(exploration_);
    if (!exploration_.pmem.empty())
        leave_mounts();
    for (const OriginalFile &file : exploration_.pmem)
        own->exploration.pmem.emplace_back(
            file,
            own->directory.path() + "/pmem" + std::to_string(own->exploration.pmem.size() + 1));
    for (const OriginalFile &file : own->exploration.pmem)
        file.restore_copy();
    prepare(own->exploration);
    return [this, own](const Job &job) { return run_job(own->exploration, job); };
}

Result Explorer::run_job(Exploration &exploration, const Job &job) const {
    if (!enumeration_)
        return run_schedule(exploration, job.number, Chooser(job.number, plan_), false);
    Chooser chooser(job.choices);
    chooser.records_points = true;
    return run_schedule(exploration, settings_.first_seed, std::move(chooser), false);
}

bool Explorer::is_time_over() const {
    return settings_.time != 0 && sim::Server::clock() - begin_ > settings_.time;
}

void Explorer::add_to_groups(uint64_t seed, Result &&result) {
    for (Group &each : groups_) {
        if (!sim::is_same_finding(each.first.finding, result.finding))
            continue;
        each.count++;
        if (seed < each.seed)
            each.seed = seed, each.first = std::move(result);
        return;
    }
    groups_.push_back({1, seed, std::move(result)});
}

// Runs all schedules, or all before the first one with a finding: that of the lowest seed.
void Explorer::search(Workers &workers) {
    uint64_t seed = settings_.first_seed, found = UINT64_MAX;
    const auto next = [&]() -> std::optional<Job> {
        if (seed > *settings_.last_seed || found != UINT64_MAX || is_time_over())
            return std::nullopt;
        std::optional<Job> job = enumeration_ ? enumeration_->next() : Job{seed, {}};
        seed += job.has_value();
        return job;
    };
    while (true) {
        while (workers.has_idle()) {
            std::optional<Job> job = next();
            if (!job)
                break;
            workers.start(std::move(*job));
        }
        if (!workers.runs_before(found))
            return;
        auto [number, result] = workers.wait();
        if (enumeration_)
            enumeration_->completed(number, result.points, !result.finding.empty());
        summary_.add(result, !enumeration_ && plan_.is_order_only(number));
        if (result.finding.empty())
            continue;
        if (!settings_.keeps_going)
            found = std::min(found, number);
        add_to_groups(number, std::move(result));
    }
}

void Explorer::report_groups() {
    std::ranges::sort(groups_, {}, &Group::seed);
    if (!settings_.keeps_going)
        groups_.resize(1);
    for (size_t i = 0; i < groups_.size(); i++) {
        const Group &group = groups_[i];
        const uint64_t seed = enumeration_ ? settings_.first_seed : group.seed;
        std::string what = (enumeration_ ? "schedule " : "seed ") + std::to_string(group.seed);
        if (settings_.keeps_going)
            what = count_of(group.count, "schedule") + ", the first is " + what;
        std::string suffix = i == 0 ? "" : "-";
        if (i != 0)
            suffix += std::to_string(i + 1);
        reporter_.report(what, seed, group.first, suffix);
    }
}

void Explorer::print_end() const {
    print(summary_.first_line() + ": " +
          (groups_.empty() ? "nothing found" : count_of(groups_.size(), "finding")) + "\n");
    print(summary_.text());
    if (enumeration_)
        print(enumeration_->text());
    if (exploration_.has_clients() && !summary_.overlapped())
        fprintf(stderr, "rdma-sim: no two clients overlapped in any schedule: the exploration "
                        "says nothing about programs that run at the same time\n");
    if (settings_.is_verbose)
        fprintf(stderr, "rdma-sim: %.1f schedules per second\n",
                static_cast<double>(summary_.schedules()) * 1e9 /
                    static_cast<double>(sim::Server::clock() - begin_));
}

int Explorer::main() {
    if (!settings_.replay.empty())
        return reporter_.replay_saved();
    plan_ = {settings_.search, exploration_.threads, exploration_.turns, exploration_.posts};
    if (settings_.search == Search::EXHAUSTIVE)
        enumeration_.emplace(settings_.most_choices);
    if (!settings_.last_seed)
        settings_.last_seed = settings_.time != 0
                                  ? UINT64_MAX - 1
                                  : settings_.first_seed + ExploreSettings::SCHEDULES - 1;
    {
        Workers workers(settings_.jobs, exploration_, [this] { return worker(); });
        search(workers);
    }
    if (!groups_.empty())
        report_groups();
    if (groups_.empty() || settings_.keeps_going)
        print_end();
    return groups_.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int explore(ExploreSettings &settings, const Libraries &libraries) {
    return Explorer(settings, libraries).main();
}
