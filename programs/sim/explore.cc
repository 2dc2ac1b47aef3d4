// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// explore.cc -- runs schedules until one has a finding; then shortens, prints and saves it

#include "explore.hh"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr uint64_t MAX_TRIES = 300; // how many shorter schedules run
constexpr int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};

volatile int received_signal;

void on_signal(int number) {
    received_signal = number;
}

std::string read_all(const std::string &path) {
    std::string content;
    char part[4096];
    FILE *const file = fopen(path.c_str(), "re");
    if (file == nullptr && errno != ENOENT)
        refuse("--pmem %s: %s", path.c_str(), strerror(errno));
    for (size_t length; file != nullptr && (length = fread(part, 1, sizeof(part), file)) > 0;)
        content.append(part, length);
    if (file != nullptr)
        fclose(file);
    return content;
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

std::vector<ExploreFault> possible_faults(const Settings &settings) {
    std::vector<ExploreFault> faults;
    const auto add = [&](std::string_view name, const ExploreFault &fault) {
        if (settings.fault_kinds.empty() ||
            std::ranges::find(settings.fault_kinds, name) != settings.fault_kinds.end())
            faults.push_back(fault);
    };
    for (unsigned i = 1; i <= settings.commands.size(); i++) {
        add("kill", {ExploreFault::KILL, i, 0});
        add("pause", {ExploreFault::PAUSE, i, 0});
    }
    for (unsigned host = 1; host <= settings.fabric.hosts; host++) {
        add("refuse", {ExploreFault::REFUSE, host, 0});
        add("refuse", {ExploreFault::DOORBELL, host, 0});
        for (unsigned other = host + 1; other <= settings.fabric.hosts; other++) {
            add("cut", {ExploreFault::CUT, host, other});
            add("cut", {ExploreFault::TEMPORARY_CUT, host, other});
        }
    }
    for (const auto &[host, path] : settings.pmem) {
        add("power", {ExploreFault::POWER, host, 0});
        add("power", {ExploreFault::POWER_RANDOM, host, 0});
    }
    return faults;
}

} // namespace

void Exploration::restore_pmem() const {
    for (size_t i = 0; i < pmem.size(); i++) {
        const char *const path = settings.pmem[i].second.c_str();
        FILE *const file = fopen(path, "we");
        const size_t written =
            file == nullptr ? 0 : fwrite(pmem[i].data(), 1, pmem[i].size(), file);
        if (file == nullptr || fclose(file) != 0 || written != pmem[i].size())
            refuse("--pmem %s: %s", path, strerror(errno));
    }
}

namespace {

class Explorer {
  public:
    Explorer(Settings &settings, const Libraries &libraries);
    int main();
    void restore_files() const { exploration_.restore_pmem(); }

  private:
    struct Result {
        std::string finding;
        std::vector<std::string> steps;
        std::vector<sim::Choice> choices;
        unsigned faults;
    };
    Result run(uint64_t seed, Chooser chooser, bool is_traced);
    Result replay(uint64_t seed, const std::vector<sim::Choice> &choices, bool is_traced) {
        return run(seed, Chooser(choices), is_traced);
    }
    int report(uint64_t seed, const Result &found);
    void save(uint64_t seed, const std::vector<sim::Choice> &choices) const;

    Settings &settings_;
    Directory directory_;
    Exploration exploration_;
};

Explorer::Explorer(Settings &settings, const Libraries &libraries)
    : settings_(settings), directory_(""), exploration_{settings,
                                                        libraries,
                                                        directory_,
                                                        possible_faults(settings),
                                                        {},
                                                        map_clock(directory_.path() + "/clock"),
                                                        &received_signal} {
    FILE *const saved = settings.save.empty() ? nullptr : fopen(settings.save.c_str(), "ae");
    if (!settings.save.empty() && (saved == nullptr || fclose(saved) != 0))
        refuse("--save %s: %s", settings.save.c_str(), strerror(errno));
    for (const auto &[host, path] : settings.pmem)
        exploration_.pmem.push_back(read_all(path));
    sim::PmemFiles files;
    open_pmem(settings, files);
    sim::Server server(settings.fabric, nullptr, false, true);
    for (const auto &host : server.fabric().hosts())
        directory_.add_host(*host, files.ids(host->number));
    struct sigaction action {};
    action.sa_handler = on_signal;
    for (const int each : SIGNALS)
        sigaction(each, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);
}

Explorer::Result Explorer::run(uint64_t seed, Chooser chooser, bool is_traced) {
    Schedule schedule(exploration_, seed, chooser, is_traced);
    schedule.run();
    if (received_signal != 0)
        restore_files();
    if (received_signal != 0)
        exit(128 + received_signal);
    return {schedule.finding, schedule.steps, chooser.choices, schedule.faults};
}

void Explorer::save(uint64_t seed, const std::vector<sim::Choice> &choices) const {
    FILE *const file = fopen(settings_.save.c_str(), "we");
    bool is_good = file != nullptr && fprintf(file, "%s\n", SAVED_FORMAT) > 0;
    for (size_t i = 0; is_good && i < settings_.arguments.size(); i++)
        is_good = fprintf(file, "argument %s\n", settings_.arguments[i].c_str()) > 0;
    is_good =
        is_good && fprintf(file, "seed %llu\n", static_cast<unsigned long long>(seed)) > 0;
    for (size_t i = 0; is_good && i < choices.size(); i++)
        is_good = fprintf(file, "choice %u %u\n", choices[i].position, choices[i].option) > 0;
    if (!is_good || fclose(file) != 0)
        refuse("--save %s: %s", settings_.save.c_str(), strerror(errno));
    printf("again: rpma-sim explore --replay %s\n", settings_.save.c_str());
}

int Explorer::report(uint64_t seed, const Result &found) {
    const auto fails = [&](const std::vector<sim::Choice> &choices) {
        return sim::is_same_finding(replay(seed, choices, false).finding, found.finding);
    };
    if (!fails(found.choices)) {
        printf("seed %llu: FOUND: %s\nIt cannot be reproduced: a program depends on something "
               "that explore does not control.\n",
               static_cast<unsigned long long>(seed), found.finding.c_str());
        return EXIT_FAILURE;
    }
    const std::vector<sim::Choice> fewest = sim::shorten(found.choices, MAX_TRIES, fails);
    const Result shortest = replay(seed, fewest, true);
    for (const std::string &each : shortest.steps)
        puts(each.c_str());
    printf("seed %llu: FOUND: %s\n(%zu unusual choices, %u of them faults; without shortening "
           "%zu)\n",
           static_cast<unsigned long long>(seed), shortest.finding.c_str(), fewest.size(),
           shortest.faults, found.choices.size());
    if (!settings_.save.empty())
        save(seed, fewest);
    return EXIT_FAILURE;
}

int Explorer::main() {
    if (!settings_.replay.empty()) {
        const Result result = replay(settings_.first_seed, settings_.choices, true);
        for (const std::string &each : result.steps)
            puts(each.c_str());
        puts(result.finding.empty() ? "nothing found" : ("FOUND: " + result.finding).c_str());
        return result.finding.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    const uint64_t begin = sim::Server::clock();
    unsigned long long schedules = 0, with_faults = 0;
    for (uint64_t seed = settings_.first_seed; seed <= settings_.last_seed; seed++) {
        const Result result = run(seed, Chooser(seed), false);
        schedules++;
        with_faults += result.faults != 0;
        if (!result.finding.empty())
            return report(seed, result);
    }
    printf("%llu schedules, %llu with faults: nothing found\n", schedules, with_faults);
    if (settings_.is_verbose)
        fprintf(stderr, "rpma-sim: %.1f schedules per second\n",
                static_cast<double>(schedules) * 1e9 /
                    static_cast<double>(sim::Server::clock() - begin));
    return EXIT_SUCCESS;
}

} // namespace

int explore(Settings &settings, const Libraries &libraries) {
    Explorer explorer(settings, libraries);
    const int status = explorer.main();
    explorer.restore_files();
    return status;
}
