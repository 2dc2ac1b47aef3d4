// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// explore.hh -- "rdma-sim explore": its options, and the state that all schedules share

#pragma once

#include <list>
#include <map>

#include "../run/sim.hh"
#include "../run/source_line.hh"
#include "chooser.hh"
#include "coverage.hh"
#include "finding.hh"
#include "fork_server.hh"

class Schedule;

struct ExploreSettings : Settings {
    bool explores = false, starts_in_order = false, keeps_going = false;
    Search search = Search::MIXED;
    uint64_t live = 0; // nanoseconds from the end of the last fault; 0: no limit
    static constexpr uint64_t SCHEDULES = 1000; // without --seeds and --time
    uint64_t first_seed = 1;
    std::optional<uint64_t> last_seed{};
    uint64_t time = 0;                  // nanoseconds for all schedules; 0: no limit
    uint64_t most_choices = UINT64_MAX; // of a schedule of an enumeration
    unsigned jobs = 1;                  // how many schedules run at a time
    std::string check, save, replay, html;
    unsigned gdb_host = 0;                     // 0: without gdb
    std::string gdb;                           // its path
    std::vector<std::string_view> fault_kinds; // empty: all kinds
    std::vector<std::string> arguments;        // saved with a finding
    Finding finding;                           // the replayed one
    std::vector<std::string> differences;      // from its environment
};

// A file of --pmem while programs change a copy of it: the original has another name, so that
// neither a full disk nor SIGKILL loses it.
class OriginalFile {
  public:
    // `content`: of the copy, instead of that of the file.
    OriginalFile(const std::string &path, const std::string *content);
    // A copy that this process alone has at the path of the other one: workers.cc.
    OriginalFile(const OriginalFile &other, const std::string &copy);
    ~OriginalFile(); // gives the original its name again
    OriginalFile(const OriginalFile &) = delete;
    OriginalFile &operator=(const OriginalFile &) = delete;
    void restore_copy() const;
    // Returns true if a program has removed the copy, or another file has its name.
    bool is_replaced() const;
    bool has_digest(const std::string &digest) const { return digest == digest_; }
    const std::string &content() const { return content_; }

  private:
    int write_content(int fd) const;
    std::string path_, original_, content_, digest_;  // digest_: of the original
    std::vector<std::pair<size_t, size_t>> ranges_{}; // of the content, which are not zero
    std::vector<std::string> mounted_{};              // folders, of a copy
    int copy_ = -1;                                   // the first one, so that it stays
};

// The state that all schedules share.
struct Exploration {
    ExploreSettings &settings;
    const Libraries &libraries;
    const Directory &directory;
    Signals &signals; // older than the directory, which a signal would leave behind
    sim::ExploredFaults faults, power_failures; // power_failures: after the programs' end
    sim::VirtualClock *clock;                   // mapped by the programs
    std::list<OriginalFile> pmem{};
    Processor processor{};
    std::vector<ForkServer> fork_servers{settings.commands.size()}; // by command
    // Of a schedule without choices, in which the programs start one after the other. It shows
    // which programs listen: the next ones start after them.
    bool is_rehearsal = true;
    std::vector<bool> listens{};
    std::vector<std::string> names{settings.commands.size()}; // of the programs that run
    uint64_t turns = 0, posts = 0;
    size_t threads = 0;
    SourceLines lines{libraries.shims}; // of the calls in traces
    bool has_clients() const;           // more than one, which could overlap
    void check_signals();               // throws an Exit after a signal
    // Waits for a shell command, or kills it after a signal. Returns its status.
    int wait_for(pid_t pid);
};

// original_file.cc: the files that this process mounts are not those of others.
void leave_mounts();

// exploration.cc
Result result_of(const Schedule &schedule, const Chooser &chooser);
Result run_schedule(Exploration &exploration, uint64_t seed, Chooser &&chooser, bool is_traced);
bool is_simple_command(const std::string &check);   // without syntax of the shell
int open_output(const std::string &path);           // creates the file, or empties it
std::string first_line(const std::string &path);    // empty if there is none
std::string read_proc(pid_t pid, const char *name); // a file of /proc/PID, or nothing
// The last one with the text that is not empty.
std::string last_line(const std::string &path, const char *with = "");

// explore.cc
int explore(ExploreSettings &settings, const Libraries &libraries); // returns the exit status
