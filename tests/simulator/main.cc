// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.cc -- runs random schedules, all schedules with few inserted events, or a recorded one

#include "simulation.hh"

#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>

namespace {

struct Option {
    std::string value;
    const char *argument, *help;
};
std::map<std::string, Option> options = {
    {"random", {"", "COUNT", "runs COUNT random schedules"}},
    {"seed", {"1", "FIRST", "seed of the first random schedule"}},
    {"exhaustive", {"0", "N", "runs all schedules with up to N inserted events"}},
    {"part", {"0/1", "I/N", "runs part I of N of --exhaustive"}},
    {"kinds", {"", "KIND,...", "inserts only events of these kinds"}},
    {"replay", {"", "FILE", "runs the schedule that --save wrote, and prints each step"}},
    {"save", {"", "FILE", "saves the schedule of a finding"}},
    {"shorten", {"1000", "COUNT", "tries up to COUNT shorter schedules"}},
    {"script", {"", "FILE", "inserts the events of FILE, each when a program prints its text"}},
    {"damage", {"", "yes", "damages the logs of example 14 in all ways"}},
    {"trace", {"", "yes", "prints each step of a single schedule"}},
    {"modules", {".", "DIR", "the directory of the examples' modules"}},
};

uint32_t kinds = UINT32_MAX; // bit mask of the kinds of inserted events
uint64_t schedules;

[[noreturn]] void exit_with_error(const std::string &problem) {
    fprintf(stderr, "simulator: %s\n", problem.c_str());
    exit(2);
}

[[noreturn]] void print_usage() {
    puts("usage: simulator [--OPTION VALUE]... CONFIGURATION\n"
         "Runs the programs of an example on a simulated fabric, and inserts faults.");
    for (const auto &[name, option] : options)
        printf("--%s %s: %s (%s)\n", name.c_str(), option.argument, option.help,
               option.value.c_str());
    printf("kinds of events:");
    for (const EventKind &kind : event_kinds)
        printf(" %s", kind.name);
    printf("\nconfigurations:");
    for (const Configuration &configuration : configurations)
        printf(" %s", configuration.name.c_str());
    putchar('\n');
    exit(0);
}

// Returns the name of the configuration, or an empty string.
std::string read_options(int argc, char *argv[]) {
    std::string configuration;
    for (int i = 1; i < argc; i++) {
        std::string word = argv[i];
        if (word == "--help")
            print_usage();
        auto option = options.find(word.starts_with("--") ? word.substr(2) : "");
        if (option != options.end() && i + 1 < argc)
            option->second.value = argv[++i];
        else if (configuration.empty() && !word.starts_with("--"))
            configuration = word;
        else
            exit_with_error("unknown argument " + word + ", see --help");
    }
    return configuration;
}

const std::string &text(const char *option) {
    return options.at(option).value;
}

uint64_t number(const char *option) {
    return strtoull(text(option).c_str(), nullptr, 10);
}

Event::Kind kind_of(const std::string &name) {
    for (uint8_t kind = 0; kind < Event::KINDS; kind++)
        if (name == event_kinds[kind].name)
            return static_cast<Event::Kind>(kind);
    exit_with_error("unknown kind of events " + name + ", see --help");
}

uint32_t kinds_of(std::string list) {
    uint32_t found = 0;
    for (char *name = strtok(list.data(), ","); name; name = strtok(nullptr, ","))
        for (uint8_t kind = kind_of(name); kind < Event::KINDS; kind++)
            if (!strcmp(name, event_kinds[kind].name))
                found |= 1U << kind;
    return found;
}

// Reads lines "TEXT | KIND PROCESS VARIANT". Other lines are comments.
void read_script(const std::string &name) {
    char words[128], kind[32], process[32];
    std::ifstream file(name);
    unsigned short variant;
    for (std::string line; std::getline(file, line);)
        if (sscanf(line.c_str(), "%127[^|#] | %31s %31s %hu", words, kind, process, &variant) ==
            4)
            simulation.script.push_back(
                {std::string(words, strlen(words) - 1), process, kind_of(kind), variant});
    if (simulation.script.empty())
        exit_with_error("no script in " + name);
}

// A configuration whose name ends with a dash needs a suffix, which its oracle reads.
// NAME-bonds adds changes of link addresses; in NAME-emulated, devices emulate flushes by
// reads.
const Configuration &find_configuration(const std::string &name) {
    static Configuration found;
    const bool bonds = name.ends_with("-bonds");
    const bool emulated = name.ends_with("-emulated");
    const std::string base = name.substr(0, name.size() - strlen(bonds      ? "-bonds"
                                                                 : emulated ? "-emulated"
                                                                            : ""));
    for (const Configuration &configuration : configurations)
        if (base == configuration.name ||
            (configuration.name.ends_with('-') && base.starts_with(configuration.name))) {
            found = configuration;
            found.name = name;
            found.bonds = bonds;
            found.emulated = emulated;
            return found;
        }
    exit_with_error("unknown configuration '" + name + "', see --help");
}

bool run(Schedule &schedule) {
    schedules++;
    return simulation.run(schedule);
}

Schedule with_choices(const Schedule &schedule, std::vector<Choice> choices) {
    Schedule same;
    same.salt = schedule.salt;
    same.choices = std::move(choices);
    return same;
}

Schedule shorten(const Schedule &schedule, const std::string &finding) {
    const auto fails = [&](const std::vector<Choice> &choices) {
        Schedule candidate = with_choices(schedule, choices);
        return !run(candidate) && sim::is_same_finding(simulation.finding, finding);
    };
    return with_choices(schedule, sim::shorten(schedule.choices, number("shorten"), fails));
}

// Prints the steps of the schedule, and the command that repeats it.
[[noreturn]] void report(const Schedule &found, const std::string &origin) {
    std::string finding = simulation.finding;
    std::vector<Choice> events = found.choices;
    std::erase_if(events, [](const Choice &choice) { return choice.option == 0; });
    Schedule again = with_choices(found, events);
    if (run(again) || simulation.finding != finding)
        again = with_choices(found, found.choices);
    if (run(again) || simulation.finding != finding)
        exit_with_error(origin + ": " + finding +
                        "\nThe schedule does not reproduce it: a defect of the simulator.");
    Schedule shortest = shorten(again, finding);
    simulation.tracing = true;
    run(shortest);
    printf("%s: FOUND: %s\n", origin.c_str(), simulation.finding.c_str());
    printf("(%zu inserted events; without shortening it was %zu: %s)\n",
           shortest.choices.size(), events.size(), finding.c_str());
    if (!text("save").empty()) {
        if (!shortest.save(text("save"), simulation.configuration->name))
            exit_with_error("cannot write " + text("save"));
        printf("again: simulator --replay %s\n", text("save").c_str());
    }
    exit(EXIT_FAILURE);
}

void run_random(uint64_t first, uint64_t count) {
    for (uint64_t seed = first; seed < first + count; seed++) {
        Schedule schedule = Schedule::random(seed, kinds);
        if (!run(schedule))
            report(schedule, "seed " + std::to_string(seed));
    }
}

void run_all(const std::vector<Choice> &choices, uint64_t depth, unsigned part,
             unsigned parts) {
    std::vector<std::vector<Event>> listed;
    Schedule schedule;
    schedule.choices = choices;
    if (depth)
        schedule.listed = &listed;
    if (!run(schedule)) {
        schedule.listed = nullptr;
        report(schedule, "exhaustive");
    }
    const uint64_t begin = choices.empty() ? part : choices.back().position + 1;
    for (uint64_t position = begin; position < listed.size(); position += parts)
        for (uint32_t option = 0; option < listed[position].size(); option++) {
            if (!(kinds >> listed[position][option].kind & 1))
                continue;
            std::vector<Choice> more = choices;
            more.push_back({position, option + 1});
            run_all(more, depth - 1, 0, 1);
        }
}

} // namespace

int main(int argc, char *argv[]) {
    std::string name = read_options(argc, argv);
    unsigned part, parts;
    if (sscanf(text("part").c_str(), "%u/%u", &part, &parts) != 2 || part >= parts)
        exit_with_error("a part is I/N");
    if (!text("kinds").empty())
        kinds = kinds_of(text("kinds"));
    if (!text("script").empty())
        read_script(text("script"));
    Schedule saved;
    bool replays = !text("replay").empty();
    if (replays && !saved.load(text("replay"), name))
        exit_with_error(text("replay") + " is not a saved schedule");
    simulation.tracing = replays || !text("trace").empty();
    setvbuf(stdout, nullptr, _IOLBF, 0);
    simulation.load_programs(find_configuration(name), text("modules"));
    struct sigaction crash {};
    crash.sa_handler = Simulation::handle_crash;
    crash.sa_flags = SA_NODEFER;
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
        sigaction(signal, &crash, nullptr);

    auto begin = std::chrono::steady_clock::now();
    if (replays)
        run(saved);
    else if (!text("damage").empty())
        schedules = damage_logs();
    else if (!text("random").empty())
        run_random(number("seed"), number("random"));
    else
        run_all({}, number("exhaustive"), part, parts);
    if (schedules == 1 && simulation.finding.empty() &&
        simulation.next_trigger < simulation.script.size())
        simulation.finding =
            "no program has printed: " + simulation.script[simulation.next_trigger].text;
    if (!simulation.finding.empty()) {
        printf("FOUND: %s\n", simulation.finding.c_str());
        return EXIT_FAILURE;
    }
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    printf("%s: %" PRIu64 " schedules, nothing found, %.1f s\n", name.c_str(), schedules,
           seconds.count());
    return EXIT_SUCCESS;
}
