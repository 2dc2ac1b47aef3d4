// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// sim.hh -- rdma-sim: the parsed options, and the interfaces of the program's files

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../model/faults.hh"
#include "../server/pmem.hh"
#include "source_line.hh"

constexpr int EXIT_USAGE = 2, EXIT_MISUSE = 3;

// Ends the program: thrown to main(), so that destructors end programs and restore files.
struct Exit {
    int status;
    std::string line; // main() prints it after "rdma-sim: ", unless it is empty
};

// Throws an Exit with the line and EXIT_USAGE.
[[noreturn]] void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Throws an Exit: a stream cannot be written. Without its reader, the status is that of
// SIGPIPE.
[[noreturn]] void fail_output(const char *stream, int error);
// Prints to standard output, or calls fail_output().
void print(std::string_view text);
void flush_output();

struct Command {
    unsigned host = 0;
    std::vector<char *> argv; // without the final NULL
};

enum class Until { DEFAULT, ALL, FIRST, HOST };

struct Settings {
    // Returns true if the run ends with the programs of this host, and of others.
    bool is_until(unsigned host) const {
        return std::ranges::find(until_hosts, host) != until_hosts.end();
    }
    const sim_profile &device_of(unsigned host) const {
        const auto found = fabric.of_host.find(host);
        return found == fabric.of_host.end() ? *fabric.profile : *found->second;
    }

    sim::Options fabric;
    std::vector<std::pair<unsigned, std::string>> pmem; // files by host
    std::vector<sim::Fault> faults;
    std::vector<const sim::WeaknessKind *> strong; // the named ones of --strong
    Until until = Until::DEFAULT;
    std::vector<unsigned> until_hosts; // of Until::HOST: all of them
    bool joins = false, starts_together = false, loses_at_random = false, prefixes = false,
         is_verbose = false, uses_threads = false, is_strict = false;
    std::string name, join;
    unsigned join_host = 1;
    std::vector<Command> commands;
};

// misuses.cc: the misuses that programs with --strict have written into a directory
class Misuses {
  public:
    explicit Misuses(const std::string &directory) : path_(directory + "/misuses") {}
    // Returns the lines that were written since the last call.
    std::vector<std::string> take();
    size_t count() const { return count_; }
    // Returns all, and forgets them.
    static std::vector<std::string> take_all(const std::string &directory);

  private:
    std::string path_;
    std::streamoff read_ = 0;
    size_t count_ = 0;
    SourceLines calls_{""};
};

// report.cc: returns the device of a report of a device, or ends the program. Prints a line
// with what the fabric cannot replay.
const sim_profile *read_report(const std::string &path);

// output.cc
std::string printable(std::string_view text); // with \xNN for control characters

// check.cc: refuses a command that cannot run on the fabric.
struct Libraries {
    std::string shims;   // directory of libibverbs.so.1 and librdmacm.so.1
    std::string preload; // paths for LD_PRELOAD
};
Libraries find_libraries(bool with_pmem, bool explores = false, bool is_strict = false);
void check_command(const Command &command, const Libraries &libraries, bool explores = false);
// Returns the program, its interpreters and its libraries other than those of rdma-sim.
std::vector<std::string> files_of(const Command &command, const Libraries &libraries);

// run.cc: opens the files of --pmem, or ends the program.
void open_pmem(const Settings &settings, sim::PmemFiles &files);

// directory.cc: holds the socket and the files that replace those of the kernel until the exit
class Directory {
  public:
    explicit Directory(const std::string &name); // empty: a unique directory
    ~Directory();
    Directory(const Directory &) = delete;
    Directory &operator=(const Directory &) = delete;
    const std::string &path() const { return path_; }
    void add_host(const sim::Host &host, const std::string &pmem) const;
    // Writes the state of the devices again, and removes the files of removed ones.
    void update_host(const sim::Host &host) const;
    static std::string of_name(const std::string &name);

  private:
    std::string root_of(const sim::Host &host) const;

    std::string path_;
};

// commands.cc: blocks the signals that end rdma-sim, and SIGCHLD, and receives them.
class Signals {
  public:
    Signals();
    ~Signals();
    Signals(const Signals &) = delete;
    Signals &operator=(const Signals &) = delete;
    int descriptor() const { return fd_; } // readable after a signal
    // Reads all signals. Returns the first one that ends rdma-sim, also in later calls, or 0.
    int received();
    int first() const { return received_; } // the same, without reading
    void leave_interrupts() const;          // SIGINT is for another program of the terminal
    // Returns true if a child has ended since the last call.
    bool take_child() { return std::exchange(has_child_, false); }

  private:
    int fd_, received_ = 0;
    bool has_child_ = false;
};

// commands.cc
// Sets RDMA_SIM_<name>, and RPMA_SIM_<name> for scripts of release 1.5.
void set_variable(const std::string &name, const std::string &value);
void set_environment(unsigned host, unsigned hosts, const std::string &directory,
                     const Libraries &libraries, const std::string &pmem);
void raise_file_limit(); // of this process only: one descriptor for each channel
// Returns a child that ends with this process, has these outputs unless they are -1, and calls
// the function, which does not return.
pid_t fork_command(bool has_group, int out, int err, const std::function<void()> &function);
[[noreturn]] void execute(const Command &command);
