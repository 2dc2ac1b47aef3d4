// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// reporter.hh -- a finding: shortened, printed, saved and replayed

#pragma once

#include "explore.hh"

class Reporter {
  public:
    explicit Reporter(Exploration &exploration)
        : exploration_(exploration), settings_(exploration.settings) {}
    // `what`: the seed; `suffix`: of the files of --save and --html.
    void report(const std::string &what, uint64_t seed, const Result &found,
                const std::string &suffix);
    int replay_saved(); // returns the exit status

  private:
    Result replay(uint64_t seed, const std::vector<sim::Choice> &choices, bool is_traced) {
        return run_schedule(exploration_, seed, Chooser(choices), is_traced);
    }
    Result replay_in_gdb(uint64_t seed, const std::vector<sim::Choice> &choices);
    std::vector<size_t> resolve_lines(const Result &result);
    std::vector<Step> shown(const std::vector<Step> &steps) const {
        return settings_.is_verbose ? folded(steps)
                                    : without_middle(folded(without_set_up(steps)));
    }
    void print_steps(const Result &result);
    void print_difference(uint64_t seed, const std::vector<sim::Choice> &choices,
                          const Result &found);
    void write_chart(const std::string &to, const Result &result) const;
    void remove_weaknesses(uint64_t seed, std::vector<sim::Choice> &choices,
                           const std::string &finding);
    static void print_weaknesses(const Result &result);
    std::map<std::string, std::string> digests() const;
    void save(const std::string &to, uint64_t seed, const std::vector<sim::Choice> &choices,
              const std::string &text, const sim::Weaknesses &strong) const;
    void report_differences() const;

    Exploration &exploration_;
    const ExploreSettings &settings_;
};
