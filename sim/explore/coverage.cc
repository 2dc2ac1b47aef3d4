// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// coverage.cc -- the summary of all schedules: calls, faults and states of completions

#include "coverage.hh"
#include "schedule.hh"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace {

constexpr size_t COLUMNS = 80, LINES = 2;

// Returns "TITLE: word, word ..." in at most LINES lines of a terminal, or nothing if there are
// no words.
std::string list(const std::string &title, const std::vector<std::string> &words) {
    std::string all = title + ":";
    size_t column = all.size(), lines = 1;
    for (const std::string &each : words) {
        const auto left = static_cast<size_t>(&words.back() - &each);
        const std::string word = " " + each + (left == 0 ? "" : ","),
                          more = " and " + std::to_string(left + 1) + " more";
        const bool is_last = lines == LINES && left != 0;
        if (column + word.size() + (is_last ? more.size() : 0) > COLUMNS) {
            if (lines++ == LINES) {
                all += more;
                break;
            }
            all += "\n   ";
            column = 3;
        }
        all += word;
        column += word.size();
    }
    return words.empty() ? "" : all + "\n";
}

std::vector<std::string> failures(const std::bitset<32> &statuses) {
    std::vector<std::string> names;
    for (size_t i = 0; i < statuses.size(); i++)
        if (statuses[i] && i != IBV_WC_SUCCESS)
            names.push_back(name_of_status(static_cast<uint32_t>(i)));
    return names;
}

std::string joined(const std::vector<std::string> &words) {
    std::string all;
    for (const std::string &each : words)
        all += (all.empty() ? "" : " ") + each;
    return all.empty() ? "-" : all;
}

} // namespace

void Summary::add(const Result &result, bool is_order_only) {
    const Coverage &met = result.coverage;
    schedules_++;
    with_faults_ += result.faults != 0;
    waited_ += met.waited;
    order_only_ += is_order_only;
    bounded_ += is_order_only && met.turns <= Plan::most_turns(exploration_.turns);
    least_turns_ = std::min(least_turns_, met.turns);
    most_turns_ = std::max(most_turns_, met.turns);
    threads_ = std::max(threads_, met.threads);
    overlapped_ |= met.overlapped;
    calls_ |= met.calls;
    statuses_ |= met.statuses;
    weaknesses_ |= met.weaknesses;
    digests_.insert(met.digest);
    const auto add = [&](Row &row) {
        row.schedules++;
        row.statuses |= met.statuses;
    };
    if (result.faults == 0)
        add(without_faults_);
    for (size_t kind = 0; kind < Coverage::KINDS; kind++) {
        std::bitset<Coverage::CALLS> at;
        for (size_t call = 0; call < Coverage::CALLS; call++)
            at[call] = met.faults[kind * Coverage::CALLS + call];
        if (at.none())
            continue;
        add(rows_[kind]);
        rows_[kind].calls |= at;
    }
}

std::string Summary::first_line() const {
    return count_of(schedules_, "schedule") + ", " + std::to_string(with_faults_) +
           " with faults";
}

std::string Summary::table() const {
    std::string text;
    std::vector<std::string> others;
    const auto add = [&](const char *name, const std::string &calls, const Row &row) {
        char line[64];
        snprintf(line, sizeof(line), "  %-15s %9llu  %-9s  ", name,
                 static_cast<unsigned long long>(row.schedules), calls.c_str());
        if (const std::vector<std::string> words = failures(row.statuses); !words.empty())
            text += line + joined(words) + "\n";
        else if (row.schedules != 0 && &row != &without_faults_)
            others.push_back(std::string(name) + " (" + std::to_string(row.schedules) + ")");
    };
    const std::string of = " of " + std::to_string(calls_.count());
    add("no fault", "", without_faults_);
    for (size_t kind = 0; kind < sim::fault_kinds().size(); kind++) {
        std::bitset<Coverage::CALLS> calls = rows_[kind].calls;
        calls.reset(Coverage::NO_CALL);
        add(sim::fault_kinds()[kind].name, std::to_string(calls.count()) + of, rows_[kind]);
    }
    if (!text.empty())
        text = "  fault           schedules  at calls   completions with an error\n" + text;
    return text + list("only completions with success (schedules)", others);
}

// What no schedule has reached.
std::string Summary::missed() const {
    std::vector<std::string> faults, calls, statuses, weaknesses;
    std::bitset<Coverage::CALLS> at;
    for (const Row &row : rows_)
        at |= row.calls;
    for (const sim::ExploredFaults::Group &group : exploration_.faults.groups)
        if (rows_[group.kind - sim::fault_kinds().data()].schedules == 0)
            faults.push_back(group.kind->name);
    for (size_t i = 0; i < sim::call_names().size(); i++)
        if (calls_[i] && !at[i] && !exploration_.faults.groups.empty())
            calls.push_back(sim::call_names()[i].name);
    for (const uint32_t status : known_statuses())
        if (!statuses_[status])
            statuses.push_back(name_of_status(status));
    const ExploreSettings &settings = exploration_.settings;
    for (size_t i = 0; i < static_cast<size_t>(sim::Weakness::COUNT); i++) {
        const sim::WeaknessKind &kind = sim::kind_of(static_cast<sim::Weakness>(i));
        bool has_device = false;
        for (unsigned host = 1; host <= settings.fabric.hosts; host++)
            has_device |= kind.is_of_device(settings.device_of(host));
        if (has_device && kind.is_chosen &&
            ((weaknesses_ | settings.fabric.strong) & sim::only(kind)).none())
            weaknesses.push_back(kind.name);
    }
    return list("faults that never occurred", faults) +
           list("calls at which no fault occurred", calls) +
           list("completions never seen", statuses) +
           list("weaknesses without an effect", weaknesses);
}

// The probability of chooser.cc's source, with the numbers of these programs.
std::string Summary::bound() const {
    const double n = static_cast<double>(std::max(exploration_.threads, threads_)),
                 k = static_cast<double>(Plan::most_turns(exploration_.turns));
    const double one = 1 / (n * std::pow(k, Plan::DEPTH - 1));
    char text[400];
    snprintf(text, sizeof(text),
             "priorities alone: %llu schedules, %llu with at most k = %.0f steps, n = %.0f "
             "threads;\n    P >= 1/(n k^(d-1)) each finds a mistake of depth d; any of them:\n"
             "    %.2g for d = 2, %.2g for d = %u\n",
             static_cast<unsigned long long>(order_only_),
             static_cast<unsigned long long>(bounded_), k, n,
             1 - std::pow(1 - 1 / (n * k), bounded_), 1 - std::pow(1 - one, bounded_),
             Plan::DEPTH);
    return order_only_ == 0 ? "" : text;
}

std::string Summary::text() const {
    if (schedules_ == 0)
        return "";
    std::string text = count_of(digests_.size(), "distinct schedule") + ", of " +
                       std::to_string(least_turns_) + " to " + std::to_string(most_turns_) +
                       " steps\n";
    text += table() + missed() + bound();
    if (waited_ != 0 && exploration_.settings.live == 0)
        text += "after the last fault, programs waited forever in " +
                count_of(waited_, "schedule") + ": a finding with --live\n";
    return text;
}
