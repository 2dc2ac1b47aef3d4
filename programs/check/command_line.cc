// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// command_line.cc -- the command line

#include "check.hh"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr char HELP[] =
    "usage: rpma-check --server [OPTION]... ADDRESS    on one machine\n"
    "       rpma-check [OPTION]... ADDRESS             on another one (or the same)\n"
    "\n"
    "Asks the RDMA device of this machine whether it does what rpma_devices(7) and\n"
    "the library promise; prints each difference. ADDRESS is the server's.\n"
    "\n"
    "  -s, --server         serve clients; -1, --once: only one\n"
    "  -p, --port PORT      of the server (7206)\n"
    "  -m, --memory PATH    server: also check a file or device DAX, and write to it\n"
    "      --port-down      also wait up to 60 seconds until you disconnect the cable\n"
    "  -j, --json           print the report as JSON\n"
    "  -r, --report FILE    write the report to FILE, to send it to the project;\n"
    "                       it has no names, addresses or serial numbers\n"
    "      --power-cut FILE server: persistent memory; client: lists the records\n"
    "      --no-flush       client: without flushes, to show that records can be lost\n"
    "      --verify FILE    after the cut: find the records of FILE in --memory PATH\n"
    "  -h, --help, -V, --version\n"
    "\n"
    "Exit status: 0 no difference, 1 differences, 2 the check could not run\n"
    "\n"
    "rpma-check(1) explains the questions.\n"
    "Report bugs at https://example.org/librpma/issues\n";

[[noreturn]] void refuse(const std::string &why) {
    throw Failure(why + "; rpma-check --help lists the arguments");
}

[[noreturn]] void print_and_exit(const std::string &text) {
    (void)std::fputs(text.c_str(), stdout);
    if (std::fflush(stdout) != 0)
        fail("cannot write to the standard output");
    std::exit(EXIT_SUCCESS);
}

// Refuses options of other uses. Returns true if the options are complete: --verify.
bool check_power_cut(const Options &options, size_t addresses) {
    const bool verifies = !options.verify.empty(), cuts = !options.power_cut.empty();
    const std::tuple<bool, const char *> others[] = {
        {options.json, "--json"},
        {!options.report.empty(), "--report"},
        {options.port_down, "--port-down"},
        {options.once, "--once"},
        {verifies && cuts, "--power-cut"},
        {verifies && options.is_server, "--server"},
        {cuts && !options.memory.empty(), "--memory"}};
    for (const auto &[given, name] : others)
        if (given && (verifies || cuts))
            refuse(fmt::format("{} cannot be used with {}", name,
                               verifies ? "--verify" : "--power-cut"));
    if (options.no_flush && (!cuts || options.is_server))
        refuse("--no-flush is for a client with --power-cut");
    if (verifies && (options.memory.empty() || addresses != 0))
        refuse("--verify compares FILE with memory of this machine: add --memory PATH, and no "
               "ADDRESS");
    return verifies;
}

} // namespace

Options read_options(int argc, char *argv[]) {
    Options options;
    CLI::App app;
    std::vector<std::string> addresses;
    bool is_help = false, is_version = false;
    app.set_help_flag();
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    const std::pair<const char *, bool *> flags[] = {
        {"-s,--server", &options.is_server}, {"-1,--once", &options.once},
        {"-j,--json", &options.json},        {"--port-down", &options.port_down},
        {"--no-flush", &options.no_flush},   {"-h,--help", &is_help},
        {"-V,--version", &is_version}};
    const std::pair<const char *, std::string *> texts[] = {{"-p,--port", &options.port},
                                                            {"-m,--memory", &options.memory},
                                                            {"--power-cut", &options.power_cut},
                                                            {"--verify", &options.verify},
                                                            {"-r,--report", &options.report}};
    for (const auto &[names, value] : flags)
        app.add_flag_callback(names, [to = value] { *to = true; })->disable_flag_override();
    for (const auto &[names, value] : texts)
        app.add_option(names, *value)->allow_extra_args(false);
    app.add_option("ADDRESS", addresses)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &wrong) {
        const std::string word = app.remaining().empty() ? "" : app.remaining().at(0);
        refuse(word.empty() ? wrong.what() : "there is no option " + escaped(word));
    }
    if (is_help)
        print_and_exit(HELP);
    if (is_version)
        print_and_exit(fmt::format("rpma-check {}.{}.{}\n", RPMA_VERSION_MAJOR,
                                   RPMA_VERSION_MINOR, RPMA_VERSION_PATCH));
    char *end = nullptr;
    const long number = std::strtol(options.port.c_str(), &end, 10);
    if (*end != '\0' || options.port.empty() || number < 1 || number > 65535)
        refuse(fmt::format("--port takes a number from 1 to 65535, not \"{}\"",
                           escaped(options.port)));
    if (check_power_cut(options, addresses.size()))
        return options;
    if (addresses.size() != 1 || addresses[0].empty())
        refuse(addresses.size() > 1 ? "only one address is possible"
                                    : "the address of the server is missing");
    options.address = addresses[0];
    const std::tuple<bool, bool, const char *> sides[] = {
        {options.is_server, options.json, "--json"},
        {options.is_server, !options.report.empty(), "--report"},
        {options.is_server, options.port_down, "--port-down"},
        {!options.is_server, options.once, "--once"},
        {!options.is_server, !options.memory.empty(), "--memory"}};
    for (const auto &[excluded, given, name] : sides)
        if (excluded && given)
            refuse(fmt::format("{} is an option of the {}", name,
                               options.is_server ? "client" : "server"));
    return options;
}
