// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// explore.cc -- runs schedules until one has a finding; then shortens, prints and saves it

#include "explore.hh"
#include "chart.hh"
#include "enumeration.hh"
#include "schedule.hh"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <poll.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr size_t MAX_LINE = 256;    // of a program's output in a finding
constexpr int EXIT_NOT_REACHED = 3; // the programs make other calls than at the time of --save
constexpr unsigned MAX_MOVES = 60;  // of a fault to an earlier step

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

sim::ExploredFaults possible_faults(const ExploreSettings &settings,
                                    const std::vector<std::string_view> &names) {
    sim::ExploredHosts hosts;
    for (unsigned host = 1; host <= settings.fabric.hosts; host++)
        hosts.devices.push_back(&settings.device_of(host));
    for (const Command &command : settings.commands)
        hosts.programs.push_back(command.host);
    for (const auto &[host, path] : settings.pmem)
        hosts.pmem.push_back(host);
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
    sim::ExploredFaults found = possible_faults(settings, {"power-off"});
    for (sim::ExploredFaults::Group &group : found.groups)
        std::erase_if(group.faults, [](const sim::Fault &fault) { return fault.lasts != 0; });
    return found;
}

} // namespace

bool is_simple_command(const std::string &check) {
    return check.find_first_of(";&|()<>{}$`'\"\\!=*?[#~\n") == check.npos;
}

int open_output(const std::string &path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        refuse("%s: %s", path.c_str(), strerror(errno));
    return fd;
}

std::string first_line(const std::string &path) {
    std::ifstream file(path);
    std::string line(MAX_LINE, '\0');
    file.read(line.data(), MAX_LINE);
    line.resize(static_cast<size_t>(file.gcount()));
    return printable(line.substr(0, line.find('\n')));
}

std::string read_proc(pid_t pid, const char *name) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string last_line(const std::string &path, const char *with) {
    std::ifstream file(path);
    std::string last;
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line.find(with) != line.npos)
            last = line;
    return printable(last.substr(0, MAX_LINE));
}

int Exploration::wait_for(pid_t pid) {
    int status = 0;
    pollfd event = {signals.descriptor(), POLLIN, 0};
    while (waitpid(pid, &status, WNOHANG) == 0) {
        poll(&event, 1, -1); // also SIGCHLD
        if (signals.received() != 0) {
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
        }
        check_signals();
    }
    return status;
}

bool Exploration::has_clients() const {
    return std::count(listens.begin() + 1, listens.end(), false) > 1;
}

void Exploration::check_signals() {
    if (const int number = signals.received(); number != 0)
        throw Exit{128 + number, ""};
}

namespace {

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
    static Result result_of(const Schedule &schedule, const Chooser &chooser);
    Result replay_in_gdb(uint64_t seed, const std::vector<sim::Choice> &choices);
    void prepare(Exploration &exploration) const;
    void rehearse();
    static Result run(Exploration &exploration, uint64_t seed, Chooser &&chooser,
                      bool is_traced);
    RunJob worker();
    Result run_job(Exploration &exploration, const Job &job) const;
    void add_to_groups(uint64_t seed, Result &&result);
    bool is_time_over() const;
    void search(Workers &workers);
    void report_groups();
    void print_end() const;
    Result replay(uint64_t seed, const std::vector<sim::Choice> &choices, bool is_traced) {
        return run(exploration_, seed, Chooser(choices), is_traced);
    }
    void refuse_bad_check();
    static void try_to_write(const char *option, const std::string &file);
    std::vector<size_t> resolve_lines(const Result &result);
    std::vector<Step> shown(const std::vector<Step> &steps) const {
        return folded(settings_.is_verbose ? steps : without_set_up(steps));
    }
    void print_steps(const Result &result);
    void print_difference(uint64_t seed, const std::vector<sim::Choice> &choices,
                          const Result &found);
    void write_chart(const std::string &to, const Result &result) const;
    static void print_weaknesses(const Result &result);
    void report(const std::string &what, uint64_t seed, const Result &found,
                const std::string &suffix);
    std::map<std::string, std::string> digests() const;
    void save(const std::string &to, uint64_t seed, const std::vector<sim::Choice> &choices,
              const std::string &text) const;
    void report_differences() const;
    int replay_saved();

    ExploreSettings &settings_;
    Directory directory_;
    Exploration exploration_;
    Plan plan_{};
    Summary summary_{exploration_};
    std::optional<Enumeration> enumeration_{};
    std::vector<Group> groups_{};
    const uint64_t begin_ = sim::Server::clock();
};

Explorer::Explorer(ExploreSettings &settings, const Libraries &libraries)
    : settings_(settings),
      directory_(""), exploration_{settings,
                                   libraries,
                                   directory_,
                                   {},
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

Result Explorer::run(Exploration &exploration, uint64_t seed, Chooser &&chooser,
                     bool is_traced) {
    Schedule schedule(exploration, seed, chooser, is_traced);
    schedule.run();
    return result_of(schedule, chooser);
}

Result Explorer::result_of(const Schedule &schedule, const Chooser &chooser) {
    return {schedule.finding, schedule.steps(), chooser.choices,  chooser.points,
            schedule.faults,  chooser.reached,  schedule.coverage};
}

void Explorer::rehearse() {
    Chooser chooser{std::vector<sim::Choice>()};
    Schedule schedule(exploration_, settings_.first_seed, chooser, false);
    schedule.run();
    exploration_.listens = schedule.listening();
    exploration_.turns = schedule.coverage.turns;
    exploration_.threads = schedule.coverage.threads;
    exploration_.is_rehearsal = false;
}

// The programs, their libraries, and other programs among the arguments.
std::map<std::string, std::string> Explorer::digests() const {
    std::map<std::string, std::string> found;
    const auto add = [&](const std::string &path) { found[path] = digest_of_file(path); };
    std::vector<std::string> words;
    std::istringstream check(settings_.check);
    for (std::string word; check >> word;)
        words.push_back(word);
    for (const Command &command : settings_.commands) {
        std::ranges::for_each(files_of(command, exploration_.libraries), add);
        words.insert(words.end(), command.argv.begin() + 1, command.argv.end());
    }
    struct stat status;
    for (const std::string &word : words)
        if (word.find('/') != word.npos && access(word.c_str(), X_OK) == 0 &&
            stat(word.c_str(), &status) == 0 && S_ISREG(status.st_mode))
            add(word);
    return found;
}

void Explorer::save(const std::string &to, uint64_t seed,
                    const std::vector<sim::Choice> &choices, const std::string &text) const {
    Finding finding;
    add_environment(finding);
    finding.arguments = settings_.arguments;
    finding.files = digests();
    auto file = exploration_.pmem.begin();
    for (const auto &[host, path] : settings_.pmem)
        add_pmem(finding, path, (file++)->content());
    finding.text = text;
    finding.seed = seed;
    finding.choices = choices;
    write_finding(to, finding);
    print("again: rdma-sim explore --replay " + printable(to) + "\n");
}

// Prints the differences from the time when the finding was saved.
void Explorer::report_differences() const {
    std::vector<std::string> differences = settings_.differences;
    const std::map<std::string, std::string> now = digests();
    for (const auto &[path, digest] : settings_.finding.files)
        if (const auto found = now.find(path); found == now.end() || found->second != digest)
            differences.push_back(printable(path) + " has changed");
    auto file = exploration_.pmem.begin();
    for (const auto &[host, path] : settings_.pmem) {
        const auto saved = settings_.finding.pmem.find(path);
        if (saved != settings_.finding.pmem.end() && !file->has_digest(saved->second.digest))
            differences.push_back(printable(path) + (saved->second.has_content
                                                         ? " had another content, which is used"
                                                         : " had another content"));
        file++;
    }
    std::string all;
    for (const std::string &each : differences)
        all += (all.empty() ? "" : "; ") + each;
    if (!all.empty())
        fprintf(stderr, "rdma-sim: since the finding was saved: %s\n", all.c_str());
}

// Replays twice: the first one shows at which call of the host gdb has to be started. That is
// the first one after the last choice, or the last one of all.
Result Explorer::replay_in_gdb(uint64_t seed, const std::vector<sim::Choice> &choices) {
    uint64_t stops_at = 0;
    for (const bool is_traced : {false, true}) {
        Chooser chooser(choices);
        Schedule schedule(exploration_, seed, chooser, is_traced);
        schedule.stops_at = stops_at;
        schedule.run();
        stops_at = choices.empty() || schedule.turn_after_choices == 0
                       ? schedule.turns_of_host
                       : schedule.turn_after_choices;
        if (is_traced)
            return result_of(schedule, chooser);
    }
    return {};
}

int Explorer::replay_saved() {
    report_differences();
    const uint64_t seed = settings_.finding.seed;
    const std::vector<sim::Choice> &choices = settings_.finding.choices;
    const Result result =
        settings_.gdb_host == 0 ? replay(seed, choices, true) : replay_in_gdb(seed, choices);
    print_steps(result);
    if (!settings_.html.empty())
        write_chart(settings_.html, result);
    if (!result.finding.empty()) {
        print("FOUND: " + result.finding + "\n");
        print_weaknesses(result);
        if (!sim::is_same_finding(result.finding, settings_.finding.text))
            print("The saved finding is another one: " + settings_.finding.text + "\n");
        return EXIT_FAILURE;
    }
    print("nothing found; " + std::to_string(result.reached) + " of " +
          std::to_string(choices.size()) + " saved choices were reached\n");
    return result.reached == choices.size() ? EXIT_SUCCESS : EXIT_NOT_REACHED;
}

// Returns the places of the steps, whose lines are found.
std::vector<size_t> Explorer::resolve_lines(const Result &result) {
    std::vector<size_t> places;
    for (const Step &each : result.steps)
        places.push_back(each.place);
    exploration_.lines.resolve(places);
    return places;
}

void Explorer::print_steps(const Result &result) {
    const std::vector<size_t> places = resolve_lines(result);
    const SourceLines &lines = exploration_.lines;
    for (const Step &each : shown(result.steps))
        print(line_of(each, lines) + "\n");
    const auto hint =
        std::ranges::find_if(places, [&](size_t place) { return !lines.hint(place).empty(); });
    if (hint != places.end())
        fprintf(stderr, "rdma-sim: %s\n", lines.hint(*hint).c_str());
}

// Prints the first steps that differ in a schedule without one of the choices, which passes.
void Explorer::print_difference(uint64_t seed, const std::vector<sim::Choice> &choices,
                                const Result &found) {
    constexpr size_t SHOWN = 3;
    const auto steps_of = [](const Result &result) {
        std::vector<Step> steps = result.steps;
        std::erase_if(steps, [](const Step &step) { return step.is_choice(); });
        return folded(steps);
    };
    for (size_t left = choices.size(); left > 0; left--) {
        std::vector<sim::Choice> fewer = choices;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(left) - 1);
        const Result other = replay(seed, fewer, true);
        if (!other.finding.empty())
            continue;
        const std::vector<Step> here = steps_of(found), there = steps_of(other);
        const auto [first, second] = std::ranges::mismatch(here, there);
        resolve_lines(other);
        print("The schedule without choice " + std::to_string(left) +
              " passes. The first difference (<: the finding, >: without it):\n");
        const auto show = [&](const char *mark, auto at, auto end) {
            for (size_t i = 0; i < SHOWN && at != end; i++, at++)
                print(mark + line_of(*at, exploration_.lines) + "\n");
        };
        show("<", first, here.end());
        show(">", second, there.end());
        return;
    }
}

void Explorer::write_chart(const std::string &to, const Result &result) const {
    std::ofstream file(to, std::ios::binary);
    file << chart(result.finding, settings_.fabric.hosts, shown(result.steps),
                  exploration_.lines);
    file.close();
    if (!file)
        fprintf(stderr, "rdma-sim: --html %s: %s\n", to.c_str(), strerror(errno));
}

// A finding can depend on each of them; a run without it shows whether it does.
void Explorer::print_weaknesses(const Result &result) {
    if (result.coverage.weaknesses.any())
        print("weaknesses with an effect: " + sim::names_of(result.coverage.weaknesses) +
              " (--strong turns them off)\n");
}

void Explorer::report(const std::string &what, uint64_t seed, const Result &found,
                      const std::string &suffix) {
    const auto fails = [&](const std::vector<sim::Choice> &choices) {
        return sim::is_same_finding(replay(seed, choices, false).finding, found.finding);
    };
    if (!fails(found.choices)) {
        print(what + ": FOUND: " + found.finding +
              "\nIt cannot be reproduced: a program depends on something that explore does not "
              "control.\n");
        return;
    }
    std::vector<sim::Choice> fewest = sim::shorten(found.choices, MAX_TRIES, fails);
    if (const auto fault = std::ranges::find_if(fewest, Chooser::is_fault);
        fewest.size() > 1 && fault != fewest.end())
        sim::keep_only(*fault, Chooser::KINDS, MAX_MOVES, fewest, fails);
    const Result shortest = replay(seed, fewest, true);
    print_steps(shortest);
    print(what + ": FOUND: " + shortest.finding + "\n(" + count_of(fewest.size(), "choice") +
          ", " + count_of(shortest.faults, "fault") + "; " +
          count_of(found.choices.size(), "choice") + " before it was shortened)\n");
    print_weaknesses(shortest);
    print_difference(seed, fewest, shortest);
    if (!settings_.html.empty())
        write_chart(settings_.html + suffix, shortest);
    if (!settings_.save.empty())
        save(settings_.save + suffix, seed, fewest, shortest.finding);
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
                          {},
                          other.faults,
                          other.power_failures,
                          map_clock(directory.path() + "/clock"),
                          {},
                          other.processor, // which may have fewer by now
                          std::vector<ForkServer>(other.settings.commands.size()),
                          false,
                          other.listens,
                          other.turns,
                          other.threads} {}
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
        return run(exploration, job.number, Chooser(job.number, plan_), false);
    Chooser chooser(job.choices);
    chooser.records_points = true;
    return run(exploration, settings_.first_seed, std::move(chooser), false);
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
            enumeration_->completed(number, result);
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
        report(what, seed, group.first, i == 0 ? "" : "-" + std::to_string(i + 1));
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
        return replay_saved();
    plan_ = {settings_.search, exploration_.threads, exploration_.turns};
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
