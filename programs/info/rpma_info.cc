// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma_info.cc -- rpma-info: what librpma supports on this machine, and why it does not support
// the rest

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

#include "info.hh"
#include "standard_descriptors.hh"
#include "visible.hh"

namespace {

// Discards the libraries' standard error, because the report has the same information.
class MutedStderr {
  public:
    MutedStderr() {
        const int null_device = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null_device, STDERR_FILENO);
        (void)close(null_device);
    }
    MutedStderr(const MutedStderr &) = delete;
    ~MutedStderr() {
        (void)dup2(saved_, STDERR_FILENO);
        (void)close(saved_);
    }

  private:
    const int saved_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
};

// The arguments, and the device of the address.
Json describe_request(const InfoOptions &options) {
    Json request = {{"address", null_if_empty(options.address)},
                    {"device", null_if_empty(options.device)},
                    {"memory", null_if_empty(options.memory)}};
    if (options.address.empty())
        return request;
    try {
        bool is_remote = false;
        const std::string device = find_device(options.address, &is_remote);
        request["found"] = yes();
        request["behind"] = device;
        request["remote"] = is_remote;
    } catch (const rpma::error &error) {
        request["found"] = no(fmt::format("no device of this machine reaches {}: {}",
                                          escaped(options.address), error.what()),
                              "without ADDRESS, rpma-info lists the addresses that reach "
                              "devices");
    }
    return request;
}

bool any_usable(const Json &devices) {
    return std::any_of(devices.begin(), devices.end(),
                       [](const Json &device) { return is_yes(device.at("usable")); });
}

bool any_can_register(const Json &devices) {
    return std::any_of(devices.begin(), devices.end(), [](const Json &device) {
        return device.contains("registration") &&
               is_yes(device.at("registration").at("usage_plain"));
    });
}

Json summary(const Json &report, const InfoOptions &options, bool has_devices) {
    const Json &request = report.at("asked"), &devices = report.at("devices");
    if (any_usable(devices))
        return yes();
    if (!has_devices)
        return no_device(options.device);
    if (request.contains("found") && !is_yes(request.at("found")))
        return request.at("found");
    if (!devices.empty())
        return no("no device can be used in its present state", "see the result of the device");
    return no("there is no device " + escaped(options.device),
              "without --device, rpma-info lists all devices");
}

Status status_of(const Json &report, const InfoOptions &options) {
    // A plan needs no device, unless the arguments name one.
    if (options.plan && options.device.empty() && options.address.empty() &&
        options.memory.empty())
        return STATUS_POSSIBLE;
    if (!is_yes(report.at("usable")))
        return STATUS_NO_DEVICE;
    if (!options.memory.empty() && !any_can_register(report.at("devices")))
        return STATUS_NOT_REGISTERED;
    return STATUS_POSSIBLE;
}

void discard_message(rpma_log_level, const char *, int, const char *, const char *, ...) {}

Json make_report(const InfoOptions &options, const memory *tried) {
    const MutedStderr muted;
    // The report shows the messages of failures, so they are not sent to syslog.
    (void)rpma_log_set_function(discard_message);
    const char *flush = std::getenv("RPMA_FLUSH");
    const std::vector<Address> addresses = find_addresses();
    Json report = {{"rpma_info", 1},
                   {"versions", versions()},
                   {"limits", limits()},
                   {"rpma_flush", flush == nullptr ? Json() : Json(flush)},
                   {"connection_manager", connection_manager()},
                   {"defaults", defaults()},
                   {"asked", describe_request(options)}};
    const Json &request = report.at("asked");
    Search search = {std::nullopt, addresses, tried, {}};
    if (!options.address.empty())
        search.device = text_at(request, "behind"); // "" matches no device
    else if (!options.device.empty())
        search.device = options.device;
    report["devices"] = devices(search);
    report["usable"] = summary(report, options, search.has_any);
    if (tried != nullptr)
        report["memory"] = tried->describe();
    if (options.plan)
        report["plan"] = plan(*options.plan, report);
    report["exit_status"] = status_of(report, options);
    return report;
}

// Prints the brackets of an empty list on two lines, as release 1.4 does.
std::string json_of(const Json &report) {
    std::istringstream lines(report.dump(2, ' ', false, Json::error_handler_t::replace));
    std::string text;
    for (std::string line; std::getline(lines, line); text += line + '\n')
        if (line.ends_with("[]") || line.ends_with("[],"))
            line.insert(line.rfind(']'), '\n' + std::string(line.find_first_not_of(' '), ' '));
    return text;
}

Status run_info(int argc, char **argv) {
    const auto options = parse_options(argc, argv);
    if (!options)
        return STATUS_POSSIBLE;
    std::optional<memory> tried;
    if (!options->memory.empty())
        tried.emplace(options->memory);
    const Json report = make_report(*options, tried ? &*tried : nullptr);
    (void)std::fputs((options->json ? json_of(report) : text_of(report)).c_str(), stdout);
    return report.at("exit_status").get<Status>();
}

} // namespace

int main(int argc, char **argv) {
    occupy_standard_descriptors();
    Status exit_status = STATUS_FAILED;
    try {
        exit_status = run_info(argc, argv);
    } catch (const std::exception &error) {
        if (const auto *refused = dynamic_cast<const Refusal *>(&error))
            exit_status = refused->exit_status;
        (void)std::fprintf(stderr, "rpma-info: %s\n", one_line(error.what()).c_str());
    }
    // A write of a full buffer may have failed earlier: errno is of no use here.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        (void)std::fputs("rpma-info: cannot write the report\n", stderr);
        exit_status = STATUS_FAILED;
    }
    return exit_status;
}
