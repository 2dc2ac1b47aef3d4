// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.cc -- runs schedules: random ones, all with few unusual events, or a recorded one

#include "world.hh"

#include <chrono>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <getopt.h>

const Configuration configurations[] = {
    {"connection", &connection, 1, 2, 0, 0, false, nullptr},
    {"read", &read_to_volatile, 1, 2, 0, 0, false, nullptr},
    {"read-persistent", &read_to_persistent, 1, 2, 0, 0, false, nullptr},
    {"write", &write_to_persistent, 1, 2, 0, 0, false, nullptr},
    {"flush", &flush_to_persistent, 1, 2, 0, 0, false, nullptr},
    {"connections", &multiple_connections, 1, 3, 0, 0, false, nullptr},
    {"connections-shared", &multiple_connections, 1, 3, 0, 0, false, "--shared-channel"},
    {"atomic-write", &atomic_write, 1, 2, 0, 0, false, nullptr},
    {"ping-pong", &ping_pong, 1, 2, 0, 0, false, nullptr},
    {"ping-pong-shared", &ping_pong, 1, 2, 0, 0, false, "--shared-receive-queue"},
    {"gpspm", &gpspm, 1, 2, 0, 0, false, nullptr},
    {"gpspm-shared", &gpspm, 1, 2, 0, 0, false, "--shared-channel"},
    {"send-imm", &send_with_imm, 1, 2, 0, 0, false, nullptr},
    {"write-imm", &write_with_imm, 1, 2, 0, 0, false, nullptr},
    {"receive-cq", &receive_cq, 1, 2, 0, 0, false, nullptr},
    {"receive-cq-shared", &receive_cq, 1, 2, 0, 0, false, "--shared-channel"},
    {"shared-receives", &shared_receives, 1, 3, 0, 0, false, nullptr},
    {"log-3", &replicated_log, 3, 2, 2, 1, false, nullptr},
    {"log-3-short", &replicated_log, 3, 2, 0, 0, false, nullptr},
    {"log-3-takeovers", &replicated_log, 3, 4, 0, 0, false, nullptr},
    {"log-3-clients", &replicated_log, 3, 3, 4, 2, false, nullptr},
    {"log-5", &replicated_log, 5, 2, 3, 1, false, nullptr},
    {"log-3-forgetful", &replicated_log, 3, 4, 1, 1, true, nullptr},
    {"log-5-forgetful", &replicated_log, 5, 4, 1, 1, true, nullptr},
    {"mover", &block_mover, 1, 3, 0, 0, false, nullptr},
    {"mover-2", &block_mover, 2, 2, 0, 0, false, nullptr},
    // Then ENTRY-wrong or ENTRY-right.
    {"pitfall-", &pitfalls, 1, 1, 0, 0, false, nullptr},
    {nullptr, nullptr, 0, 0, 0, 0, false, nullptr},
};

namespace {

const char *save_name;
uint32_t kinds = UINT32_MAX; // of unusual events, a bit for each
uint64_t shorten_max = 1000; // most schedules that shortening may run
uint64_t schedules;

// In the order of Event::Kind.
const char *const kind_names[] = {
    "run",  "request", "news", "execute", "complete",  "fail", "start",  "join",
    "time", "break",   "kill", "power",   "power-all", "cut",  "freeze", "forget"};

std::string kind_list() {
    std::string list;
    for (const char *name : kind_names)
        list += std::string(" ") + name;
    return list;
}

[[noreturn]] void usage(int status) {
    fprintf(status ? stderr : stdout,
            "usage: simulator [OPTION]... CONFIGURATION\n"
            "       simulator [OPTION]... --replay FILE\n"
            "Runs the programs of an example in a world where everything may fail.\n"
            "--random COUNT    schedules at random; --seed FIRST (1): of the first of them\n"
            "--exhaustive N    all schedules with up to N unusual events; 0: the usual one\n"
            "--part I/N        of these, those whose first event is at every Nth position\n"
            "--kinds KIND,...  only with these:%s\n"
            "--replay FILE     the schedule that was saved in FILE, step by step\n"
            "--save FILE       a schedule with a finding is saved there\n"
            "--shorten COUNT   tries so many shorter ones (1000)\n"
            "--script FILE     what FILE says happens besides, when a program says its words\n"
            "--damage          damages the logs of the example in all ways\n"
            "--trace           prints each step of a single schedule\n"
            "--modules DIR     where the modules of the examples are\n"
            "configurations:",
            kind_list().c_str());
    for (const Configuration *c = configurations; c->name; c++)
        fprintf(status ? stderr : stdout, " %s", c->name);
    fputc('\n', status ? stderr : stdout);
    exit(status);
}

Event::Kind kind_of(const char *name) {
    uint8_t kind = 0;
    while (kind < std::size(kind_names) && strcmp(kind_names[kind], name))
        kind++;
    if (kind == std::size(kind_names))
        usage(2);
    return static_cast<Event::Kind>(kind);
}

uint32_t kinds_of(char *list) {
    uint32_t found = 0;
    for (char *name = strtok(list, ","); name; name = strtok(nullptr, ","))
        found |= 1U << kind_of(name);
    return found;
}

// Lines "TEXT | KIND PROCESS VARIANT", after comments.
void read_script(const char *name) {
    char line[256], text[128], kind[32], process[32];
    FILE *file = fopen(name, "r");
    unsigned short variant;
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "%127[^|#] | %31s %31s %hu", text, kind, process, &variant) == 4)
            world.script.push_back({std::string(text).substr(0, strlen(text) - 1), process,
                                    kind_of(kind), variant});
    if (!file || world.script.empty()) {
        fprintf(stderr, "simulator: there is no script in %s\n", name);
        exit(2);
    }
    fclose(file);
}

bool run(Schedule &schedule) {
    schedules++;
    return world.run(schedule);
}

Schedule with_choices(const Schedule &schedule, std::vector<Choice> choices) {
    Schedule same;
    same.salt = schedule.salt;
    same.choices = std::move(choices);
    return same;
}

// Whether two findings are of one kind: names and numbers do not count.
bool is_same(const std::string &one, const std::string &other) {
    auto kind = [](std::string text) {
        std::erase_if(text, [](char byte) { return byte >= '0' && byte <= '9'; });
        return text;
    };
    return kind(one) == kind(other);
}

// Leaves out choices that the finding does not need: first many at once, then one after
// another.
Schedule shorten(Schedule schedule, const std::string &finding) {
    uint64_t end = schedules + shorten_max;
    for (size_t part = schedule.choices.size() / 2 + 1; part > 0;) {
        bool shorter = false;
        for (size_t i = schedule.choices.size(); i-- > 0;) {
            if (schedules >= end)
                return schedule;
            std::vector<Choice> fewer = schedule.choices;
            auto begin = fewer.begin() + static_cast<ptrdiff_t>(i);
            size_t count = std::min(part, fewer.size() - i);
            fewer.erase(begin, begin + static_cast<ptrdiff_t>(count));
            Schedule candidate = with_choices(schedule, std::move(fewer));
            if (!run(candidate) && is_same(world.finding, finding)) {
                schedule = candidate;
                shorter = true;
            }
        }
        part = part > 1 ? part / 2 : shorter;
    }
    return schedule;
}

// Prints the steps of the schedule, and the command that repeats it.
[[noreturn]] void report(const Schedule &found, const std::string &origin) {
    std::string finding = world.finding;
    std::vector<Choice> events = found.choices;
    std::erase_if(events, [](const Choice &choice) { return choice.option == 0; });
    Schedule again = with_choices(found, events);
    if (run(again) || world.finding != finding)
        again = with_choices(found, found.choices);
    if (run(again) || world.finding != finding) {
        printf("%s: %s\nBut it does not happen again: the simulator has a mistake.\n",
               origin.c_str(), finding.c_str());
        exit(EXIT_FAILURE);
    }
    Schedule shortest = shorten(again, finding);
    world.tracing = true;
    run(shortest);
    printf("%s: FOUND: %s\n", origin.c_str(), world.finding.c_str());
    printf("(%zu unusual events; without shortening it was %zu: %s)\n", shortest.choices.size(),
           events.size(), finding.c_str());
    if (save_name) {
        if (!shortest.save(save_name, world.configuration->name)) {
            fprintf(stderr, "simulator: cannot write %s: %s\n", save_name, strerror(errno));
            exit(EXIT_FAILURE);
        }
        printf("again: simulator --replay %s\n", save_name);
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

void run_all(const std::vector<Choice> &choices, unsigned depth, unsigned part,
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
    uint32_t begin = choices.empty() ? part : choices.back().position + 1;
    for (uint32_t position = begin; position < listed.size(); position += parts)
        for (uint32_t option = 0; option < listed[position].size(); option++) {
            if (!(kinds >> listed[position][option].kind & 1))
                continue;
            std::vector<Choice> more = choices;
            more.push_back({position, option + 1});
            run_all(more, depth - 1, 0, 1);
        }
}

} // namespace

// The name of a pitfall continues with its entry in rpma_pitfalls(7) and its form.
const Configuration *find_configuration(const std::string &name) {
    static Configuration found;
    static std::string whole;
    for (const Configuration *c = configurations; c->name; c++)
        if (name == c->name || (c->example == &pitfalls && name.starts_with(c->name))) {
            whole = name;
            found = *c;
            found.name = whole.c_str();
            return &found;
        }
    fprintf(stderr, "simulator: there is no configuration %s\n", name.c_str());
    usage(2);
}

int main(int argc, char *argv[]) {
    static const option options[] = {
        {"random", 1, nullptr, 'r'},     {"seed", 1, nullptr, 's'},
        {"exhaustive", 1, nullptr, 'e'}, {"part", 1, nullptr, 'p'},
        {"save", 1, nullptr, 'w'},       {"replay", 1, nullptr, 'a'},
        {"trace", 0, nullptr, 't'},      {"help", 0, nullptr, 'h'},
        {"modules", 1, nullptr, 'm'},    {"shorten", 1, nullptr, 'o'},
        {"kinds", 1, nullptr, 'k'},      {"damage", 0, nullptr, 'd'},
        {"script", 1, nullptr, 'x'},     {nullptr, 0, nullptr, 0}};
    std::string modules = ".", replay, name;
    uint64_t first = 1, count = 0;
    unsigned depth = 0, part = 0, parts = 1;
    bool damage = false;
    for (int found; (found = getopt_long(argc, argv, "", options, nullptr)) != -1;)
        switch (found) {
        case 'r':
            count = strtoull(optarg, nullptr, 10);
            break;
        case 's':
            first = strtoull(optarg, nullptr, 10);
            break;
        case 'e':
            depth = static_cast<unsigned>(atoi(optarg));
            break;
        case 'k':
            kinds = kinds_of(optarg);
            break;
        case 'x':
            read_script(optarg);
            break;
        case 'd':
            damage = true;
            break;
        case 'o':
            shorten_max = strtoull(optarg, nullptr, 10);
            break;
        case 'p':
            if (sscanf(optarg, "%u/%u", &part, &parts) != 2 || part >= parts)
                usage(2);
            break;
        case 'w':
            save_name = optarg;
            break;
        case 'a':
            replay = optarg;
            break;
        case 't':
            world.tracing = true;
            break;
        case 'm':
            modules = optarg;
            break;
        default:
            usage(found == 'h' ? 0 : 2);
        }
    Schedule saved;
    if (!replay.empty() && !saved.load(replay.c_str(), name)) {
        fprintf(stderr, "simulator: %s is no schedule that can be read\n", replay.c_str());
        return 2;
    }
    if (replay.empty() == (optind == argc))
        usage(2);
    if (replay.empty())
        name = argv[optind];
    setvbuf(stdout, nullptr, _IOLBF, 0);
    world.make(*find_configuration(name), modules);

    auto begin = std::chrono::steady_clock::now();
    if (!replay.empty()) {
        world.tracing = true;
        if (!run(saved)) {
            printf("FOUND: %s\n", world.finding.c_str());
            return EXIT_FAILURE;
        }
    } else if (damage) {
        unsigned logs = damage_logs();
        printf("%u damaged logs%s%s\n", logs,
               world.finding.empty() ? "" : "; FOUND: ", world.finding.c_str());
        return world.finding.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
    } else if (count) {
        run_random(first, count);
    } else {
        run_all({}, depth, part, parts);
    }
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    printf("%s: %" PRIu64 " schedules, nothing found, %.1f s\n", name.c_str(), schedules,
           seconds.count());
    return EXIT_SUCCESS;
}
