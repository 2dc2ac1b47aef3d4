// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// options.cc -- the command line

#include <CLI/CLI.hpp>
#include <charconv>

#include "info.hh"

namespace {

constexpr char USAGE[] =
    "usage: rpma-info [--json] [ADDRESS | --device NAME] [--memory PATH]\n"
    "                 [--plan CONNECTIONS,QUEUE]\n"
    "\n"
    "Shows which operations are supported; each \"no\" has a reason and a remedy.\n"
    "\n"
    "  ADDRESS        only the device of this address: one of this machine,\n"
    "                 or one of another machine that a device reaches\n"
    "  --device NAME  only this device; \"rdma link\" lists the names\n"
    "  --memory PATH  also whether PATH, a file or a device DAX, can be registered;\n"
    "                 its content is not changed\n"
    "  --plan C,Q     also what C connections with queues of Q entries need, and\n"
    "                 whether the limits of this machine suffice\n"
    "  --json         print the report as JSON\n"
    "  --version      print the version of this program and that of librpma\n"
    "  --help         print this\n"
    "\n"
    "Exit status:\n"
    "  0  success                           3  no device can be used\n"
    "  1  the program failed                4  PATH cannot be mapped\n"
    "  2  wrong arguments                   5  no device can register PATH\n"
    "\n"
    "Report bugs at https://example.org/librpma/issues\n"
    "\n"
    "rpma-info(1) explains the report.\n";

[[noreturn]] void refuse(const std::string &why) {
    throw Refusal(STATUS_ARGUMENTS, why + "; rpma-info --help lists the arguments");
}

// Returns the value of an option, or "" without the option. Refuses repeated options and empty
// values.
std::string single_value(const char *what, const std::vector<std::string> &values) {
    if (values.size() > 1)
        refuse(fmt::format("{} was given twice", what));
    if (!values.empty() && values[0].empty())
        refuse(fmt::format("{} is empty", what));
    return values.empty() ? "" : values[0];
}

// "5000,64" as two numbers from 1 to MOST
std::optional<PlanSize> plan_of(const std::string &text) {
    constexpr uint64_t MOST = 1'000'000;
    if (text.empty())
        return std::nullopt;
    PlanSize size = {};
    const char *end = text.data() + text.size();
    const auto connections = std::from_chars(text.data(), end, size.connections);
    if (connections.ec != std::errc() || connections.ptr == end || *connections.ptr != ',')
        refuse("--plan needs two numbers, for example 5000,64");
    const auto queue = std::from_chars(connections.ptr + 1, end, size.queue);
    if (queue.ec != std::errc() || queue.ptr != end)
        refuse("--plan needs two numbers, for example 5000,64");
    for (const uint64_t number : {size.connections, size.queue})
        if (number < 1 || number > MOST)
            refuse(fmt::format("--plan: {} is not from 1 to {}", number, MOST));
    return size;
}

void print_versions() {
    std::printf("rpma-info %d.%d.%d, librpma %s\n", RPMA_VERSION_MAJOR, RPMA_VERSION_MINOR,
                RPMA_VERSION_PATCH, library_version().c_str());
}

} // namespace

std::optional<InfoOptions> parse_options(int argc, char **argv) {
    InfoOptions options;
    std::vector<std::string> addresses, devices, paths, plans;
    CLI::App app;
    app.allow_extras();
    app.set_help_flag("--help");
    app.set_version_flag("--version", "");
    app.add_option("ADDRESS", addresses);
    app.add_option("--device", devices)->allow_extra_args(false);
    app.add_option("--memory", paths)->allow_extra_args(false);
    app.add_option("--plan", plans)->allow_extra_args(false);
    app.add_flag("--json", options.json)->disable_flag_override();
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp &) {
        (void)std::fputs(USAGE, stdout);
        return std::nullopt;
    } catch (const CLI::CallForVersion &) {
        print_versions();
        return std::nullopt;
    } catch (const CLI::ParseError &wrong) {
        // For example "--device: 1 required TEXT missing"; only the line for a flag has no
        // colon.
        const std::string line = wrong.what();
        const size_t colon = line.find(':');
        refuse(colon == std::string::npos ? "--json takes no value"
                                          : line.substr(0, colon) + " needs a value");
    }
    for (const std::string &word : app.remaining())
        if (word != "--")
            refuse("there is no option " + word);
    if (addresses.size() > 1)
        refuse(fmt::format("{} follows the address {}: only one address is possible",
                           addresses[1], addresses[0]));
    options.address = single_value("ADDRESS", addresses);
    options.device = single_value("--device", devices);
    options.memory = single_value("--memory", paths);
    options.plan = plan_of(single_value("--plan", plans));
    if (!options.address.empty() && !options.device.empty())
        refuse("ADDRESS and --device both select a device: use only one of them");
    return options;
}
