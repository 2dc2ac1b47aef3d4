// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// reporter.cc -- a finding: shortened, printed, saved and replayed

#include "reporter.hh"
#include "chart.hh"
#include "schedule.hh"
#include "shortening.hh"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr int EXIT_NOT_REACHED = 3; // the programs make other calls than at the time of --save

} // namespace

// The programs, their libraries, and other programs among the arguments.
std::map<std::string, std::string> Reporter::digests() const {
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

void Reporter::save(const std::string &to, uint64_t seed,
                    const std::vector<sim::Choice> &choices, const std::string &text,
                    const sim::Weaknesses &strong) const {
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
    finding.strong = strong;
    write_finding(to, finding);
    print("again: rdma-sim explore --replay " + printable(to) + "\n");
}

// Prints the differences from the time when the finding was saved.
void Reporter::report_differences() const {
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
Result Reporter::replay_in_gdb(uint64_t seed, const std::vector<sim::Choice> &choices) {
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

int Reporter::replay_saved() {
    report_differences();
    exploration_.settings.fabric.strong |= settings_.finding.strong;
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
std::vector<size_t> Reporter::resolve_lines(const Result &result) {
    std::vector<size_t> places;
    for (const Step &each : result.steps)
        places.push_back(each.place);
    exploration_.lines.resolve(places);
    return places;
}

void Reporter::print_steps(const Result &result) {
    const std::vector<size_t> places = resolve_lines(result);
    const SourceLines &lines = exploration_.lines;
    for (const Step &each : shown(result.steps))
        print(line_of(each, lines) + "\n");
    const auto hint =
        std::ranges::find_if(places, [&](size_t place) { return !lines.hint(place).empty(); });
    if (hint != places.end())
        fprintf(stderr, "rdma-sim: %s\n", lines.hint(*hint).c_str());
}

// Prints the first steps that differ in a schedule without one of the choices, which passes. A
// fault explains more than the order of two programs does.
void Reporter::print_difference(uint64_t seed, const std::vector<sim::Choice> &choices,
                                const Result &found) {
    constexpr size_t SHOWN = 3;
    const auto without_choices = [](std::vector<Step> steps) {
        std::erase_if(steps, [](const Step &step) { return step.is_choice(); });
        return folded(steps);
    };
    std::vector<sim::Choice> order(choices.rbegin(), choices.rend());
    std::stable_partition(order.begin(), order.end(), Chooser::is_weakness);
    std::stable_partition(order.begin(), order.end(), Chooser::is_fault);
    for (const sim::Choice &left : order) {
        std::vector<sim::Choice> fewer = choices;
        std::erase_if(fewer,
                      [&](const sim::Choice &each) { return each.position == left.position; });
        const Result other = replay(seed, fewer, true);
        if (!other.finding.empty())
            continue;
        // Both schedules are equal up to the choice.
        const auto choice = std::ranges::mismatch(found.steps, other.steps).in1;
        const std::vector<Step> here = without_choices(found.steps),
                                there = without_choices(other.steps);
        const auto [first, second] = std::ranges::mismatch(here, there);
        resolve_lines(other);
        if (choice != found.steps.end())
            print("The schedule passes without this choice:\n" +
                  line_of(*choice, exploration_.lines) + "\n");
        print("The first difference (<: the finding, >: without it):\n");
        const auto show = [&](const char *mark, auto at, auto end) {
            for (size_t i = 0; i < SHOWN && at != end; i++, at++)
                print(mark + line_of(*at, exploration_.lines) + "\n");
        };
        show("<", first, here.end());
        show(">", second, there.end());
        return;
    }
}

void Reporter::write_chart(const std::string &to, const Result &result) const {
    std::ofstream file(to, std::ios::binary);
    file << chart(result.finding, settings_.fabric.hosts, shown(result.steps),
                  exploration_.lines);
    file.close();
    if (!file)
        fprintf(stderr, "rdma-sim: --html %s: %s\n", to.c_str(), strerror(errno));
}

// Turns weaknesses off, with their choices, of which the finding is independent.
void Reporter::remove_weaknesses(uint64_t seed, std::vector<sim::Choice> &choices,
                                 const std::string &finding) {
    sim::Weaknesses &strong = exploration_.settings.fabric.strong;
    for (bool is_removed = true; std::exchange(is_removed, false);) {
        const sim::Weaknesses shown = replay(seed, choices, false).coverage.weaknesses;
        for (size_t i = 0; i < shown.size(); i++) {
            if (!shown[i])
                continue;
            std::vector<sim::Choice> fewer = choices;
            std::erase_if(fewer, [&](const sim::Choice &each) {
                return Chooser::Place::of(each).kind == Chooser::WEAKNESS + i;
            });
            strong.set(i);
            if (!sim::is_same_finding(replay(seed, fewer, false).finding, finding)) {
                strong.reset(i);
                continue;
            }
            choices = std::move(fewer);
            is_removed = true;
        }
    }
}

void Reporter::print_weaknesses(const Result &result) {
    if (result.coverage.weaknesses.any())
        print("weaknesses that this schedule needs: " +
              sim::names_of(result.coverage.weaknesses) + " (--strong turns them off)\n");
}

void Reporter::report(const std::string &what, uint64_t seed, const Result &found,
                      const std::string &suffix) {
    const auto fails = [&](const std::vector<sim::Choice> &choices,
                           std::vector<sim::Point> *turns) {
        Chooser chooser(choices);
        chooser.records_turns = turns != nullptr;
        Result result = run_schedule(exploration_, seed, std::move(chooser), false);
        if (turns != nullptr)
            *turns = std::move(result.points);
        return sim::is_same_finding(result.finding, found.finding);
    };
    if (!fails(found.choices, nullptr)) {
        print(what + ": FOUND: " + found.finding +
              "\nIt cannot be reproduced: a program depends on something that explore does not "
              "control.\n");
        return;
    }
    std::vector<sim::Choice> fewest = shorten_schedule(found.choices, fails);
    const sim::Weaknesses before = settings_.fabric.strong;
    remove_weaknesses(seed, fewest, found.finding);
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
        save(settings_.save + suffix, seed, fewest, shortest.finding,
             settings_.fabric.strong & ~before);
    exploration_.settings.fabric.strong = before;
}
