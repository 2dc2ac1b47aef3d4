// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// main.cc -- rdma-sim: runs unchanged RDMA programs on a simulated fabric

#include "../run/run.hh"
#include "options.hh"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <new>
#include <unistd.h>

namespace {

// Runs the command on the named fabric, or without a name on the fabric of this process.
[[noreturn]] void join(const Settings &settings) {
    const char *const own = getenv("RDMA_SIM_SOCKET");
    if (settings.join.empty() && own == nullptr)
        refuse("--join '' is for programs that run on a fabric already");
    std::string directory =
        settings.join.empty() ? own : Directory::of_name(settings.join) + "/socket";
    directory.resize(directory.rfind('/'));
    unsigned hosts = 0;
    const auto root = [&](unsigned host) { return directory + "/host" + std::to_string(host); };
    while (access(root(hosts + 1).c_str(), F_OK) == 0)
        hosts++;
    if (hosts == 0)
        refuse("no fabric '%s' runs: start one with --name", settings.join.c_str());
    const Command &command = settings.commands[0];
    if (command.host > hosts)
        refuse("there is no host%u, only %u hosts", command.host, hosts);
    std::ifstream file(root(command.host) + "/pmem");
    const std::string pmem(std::istreambuf_iterator<char>(file), {});
    const Libraries libraries = find_libraries(!pmem.empty());
    check_command(command, libraries);
    set_environment(command.host, hosts, directory, libraries, pmem);
    execute(command);
}

// A later descriptor must not become a standard one that is closed. A write to these fails.
void open_standard_descriptors() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// The memory with which the programs are ended when no other is left.
void *reserve[16];

void release_reserve() {
    std::set_new_handler(nullptr);
    for (void *const each : reserve)
        free(each);
}

int run_command(int argc, char *argv[]) {
    ExploreSettings settings = read_options(argc, argv);
    if (settings.joins)
        join(settings);
    const Libraries libraries =
        find_libraries(!settings.pmem.empty(), settings.explores, settings.is_strict);
    for (const Command &command : settings.commands)
        check_command(command, libraries, settings.explores);
    raise_file_limit();
    return settings.explores ? explore(settings, libraries) : Run(settings, libraries).main();
}

} // namespace

int main(int argc, char *argv[]) {
    Exit exit = {sim::EXIT_FAILED, ""};
    for (void *&each : reserve)
        each = malloc(64 << 10); // from the heap
    std::set_new_handler([] {
        release_reserve();
        throw std::bad_alloc();
    });
    std::set_terminate([] {
        fputs("rdma-sim: a second failure, while the programs are ended\n", stderr);
        std::exit(sim::EXIT_FAILED); // removes the directory; the programs end with this one
    });
    open_standard_descriptors();
    try {
        try {
            exit.status = run_command(argc, argv);
        } catch (const Exit &thrown) {
            exit = thrown;
        }
        flush_output();
    } catch (const Exit &thrown) {
        exit = thrown;
    } catch (const std::bad_alloc &) {
        exit.line = "no memory is left";
    } catch (const std::exception &error) {
        exit.line = error.what();
    }
    if (!exit.line.empty())
        fprintf(stderr, "rdma-sim: %s\n", printable(exit.line).c_str());
    return exit.status;
}
