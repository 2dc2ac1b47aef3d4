// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// faults.cc -- the actions of --fault: their arguments, texts and effects

#include "run.hh"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>

namespace {

void set_link(Run &run, const Fault &fault, bool is_cut) {
    run.for_each_link(
        fault, [&](unsigned one, unsigned other) { run.fabric().cut(one, other, is_cut); });
}

void flap(Run &run, const Fault &fault, bool is_cut) {
    set_link(run, fault, is_cut);
    run.fabric().at(run.fabric().now() + fault.number,
                    [&run, &fault, is_cut] { flap(run, fault, !is_cut); });
}

enum class Argument { NONE, TIME, COUNT, EVENT };

// An action has an effect: there is no default.
struct Effect {
    template <class Function>
    requires(!std::is_null_pointer_v<Function>) constexpr Effect(Function function)
        : apply(function) {} // NOLINT: written as a function
    void (*apply)(Run &, const Fault &);
};

} // namespace

struct FaultAction {
    const char *name;
    unsigned min_hosts, max_hosts;
    Argument argument;
    const char *arguments, *text;
    Effect effect;
    int error = 0; // the default of the last argument, an error number; 0: it has none
    bool starts_programs = false;
};

namespace {

const FaultAction FAULTS[] = {
    {"cut", 1, 2, Argument::NONE, "HOST [HOST]",
     "cuts the link between two hosts, or all links of one",
     [](Run &run, const Fault &fault) { set_link(run, fault, true); }},
    {"join", 1, 2, Argument::NONE, "HOST [HOST]", "ends the cut",
     [](Run &run, const Fault &fault) { set_link(run, fault, false); }},
    {"flap", 1, 2, Argument::TIME, "HOST [HOST] TIME", "cuts and joins at intervals of TIME",
     [](Run &run, const Fault &fault) { flap(run, fault, true); }},
    {"delay", 1, 2, Argument::TIME, "HOST [HOST] TIME", "delays each message by TIME",
     [](Run &run, const Fault &fault) {
         run.for_each_link(fault, [&](unsigned one, unsigned other) {
             run.fabric().set_delay(one, other, fault.number);
         });
     }},
    {"port-down", 1, 1, Argument::NONE, "HOST", "the port of the device goes down",
     [](Run &run, const Fault &fault) { run.fabric().set_port(fault.hosts[0], 0, false); }},
    {"port-up", 1, 1, Argument::NONE, "HOST", "the port goes up again",
     [](Run &run, const Fault &fault) { run.fabric().set_port(fault.hosts[0], 0, true); }},
    {"kill", 1, 1, Argument::NONE, "HOST", "kills the programs of the host",
     [](Run &run, const Fault &fault) { run.signal_host(fault.hosts[0], SIGKILL); }},
    {"freeze", 1, 1, Argument::NONE, "HOST", "stops the programs of the host",
     [](Run &run, const Fault &fault) { run.signal_host(fault.hosts[0], SIGSTOP); }},
    {"thaw", 1, 1, Argument::NONE, "HOST", "continues them",
     [](Run &run, const Fault &fault) { run.signal_host(fault.hosts[0], SIGCONT); }},
    {"power-off", 1, 1, Argument::NONE, "HOST",
     "kills them, and data that is not persistent is lost",
     [](Run &run, const Fault &fault) { run.power_off(fault.hosts[0]); }},
    {"power-on", 1, 1, Argument::NONE, "HOST", "starts the COMMANDs of the host again",
     [](Run &run, const Fault &fault) { run.power_on(fault.hosts[0]); }, 0, true},
    {"refuse", 1, 1, Argument::COUNT, "HOST N [ERRNO]",
     "the Nth post from now on fails (ENOMEM)",
     [](Run &run, const Fault &fault) {
         run.fabric().refuse_post(fault.hosts[0], static_cast<unsigned>(fault.number),
                                  fault.error);
     },
     ENOMEM},
    {"doorbell", 1, 1, Argument::NONE, "HOST [ERRNO]",
     "the next list of sends is queued, but its post fails (EIO)",
     [](Run &run, const Fault &fault) {
         run.fabric().refuse_post(fault.hosts[0], 0, fault.error);
     },
     EIO},
    {"overrun", 1, 1, Argument::NONE, "HOST", "all completion queues overrun",
     [](Run &run, const Fault &fault) { run.fabric().overrun_cqs(fault.hosts[0]); }},
    {"event", 1, 1, Argument::EVENT, "HOST EVENT",
     "an asynchronous event for the objects of the device",
     [](Run &run, const Fault &fault) {
         run.fabric().raise_async(fault.hosts[0], 0, fault.event);
     }},
    {"addr-change", 1, 1, Argument::NONE, "HOST", "the address moves to another interface",
     [](Run &run, const Fault &fault) { run.fabric().change_address(fault.hosts[0], 0); }},
    {"remove", 1, 1, Argument::NONE, "HOST", "removes the device",
     [](Run &run, const Fault &fault) { run.fabric().remove_device(fault.hosts[0], 0); }},
};

struct {
    const char *name;
    ibv_event_type type;
} const EVENTS[] = {
    {"cq-err", IBV_EVENT_CQ_ERR},         {"qp-fatal", IBV_EVENT_QP_FATAL},
    {"qp-req-err", IBV_EVENT_QP_REQ_ERR}, {"qp-access-err", IBV_EVENT_QP_ACCESS_ERR},
    {"path-mig", IBV_EVENT_PATH_MIG},     {"path-mig-err", IBV_EVENT_PATH_MIG_ERR},
    {"srq-err", IBV_EVENT_SRQ_ERR},       {"device-fatal", IBV_EVENT_DEVICE_FATAL},
    {"lid-change", IBV_EVENT_LID_CHANGE}, {"pkey-change", IBV_EVENT_PKEY_CHANGE},
    {"gid-change", IBV_EVENT_GID_CHANGE}, {"sm-change", IBV_EVENT_SM_CHANGE},
};

struct {
    const char *name;
    int number;
} const ERRORS[] = {{"ENOMEM", ENOMEM}, {"EINVAL", EINVAL}, {"ENOSPC", ENOSPC},
                    {"EIO", EIO},       {"EFAULT", EFAULT}, {"EAGAIN", EAGAIN}};

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> words;
    while (true) {
        const size_t begin = text.find_first_not_of(" \t");
        if (begin == text.npos)
            return words;
        const size_t end = std::min(text.find_first_of(" \t", begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        text.remove_prefix(end);
    }
}

[[noreturn]] void refuse_fault(std::string_view text, const std::string &why) {
    refuse("--fault '%.*s': %s: --fault help explains them", static_cast<int>(text.size()),
           text.data(), why.c_str());
}

void read_argument(Fault &fault, Argument kind, std::string_view word, std::string_view text) {
    switch (kind) {
    case Argument::NONE:
        break;
    case Argument::TIME:
        fault.number = read_duration(word);
        if (fault.number != UINT64_MAX && fault.number > 0)
            return;
        refuse_fault(text, "a time is missing, such as 5ms");
    case Argument::COUNT: {
        const auto [end, error] =
            std::from_chars(word.data(), word.data() + word.size(), fault.number);
        if (error == std::errc() && end == word.data() + word.size() && fault.number > 0 &&
            fault.number <= UINT32_MAX)
            return;
        refuse_fault(text, "a count is missing, such as 3");
    }
    case Argument::EVENT:
        for (const auto &each : EVENTS)
            if (word == each.name) {
                fault.event = each.type;
                return;
            }
        refuse_fault(text, "there is no event '" + std::string(word) + "'");
    }
}

// Reads WHEN, "[at] TIME" or "after HOST [TIME]". Returns the words after it.
std::span<const std::string_view>
read_when(Fault &fault, std::span<const std::string_view> words, std::string_view text) {
    if (!words.empty() && words[0] == "at")
        words = words.subspan(1);
    if (!words.empty() && words[0] == "after") {
        fault.after = words.size() > 1 ? host_number(words[1]) : 0;
        if (fault.after == 0)
            refuse_fault(text, "'after' is followed by a host");
        words = words.subspan(2);
        if (words.empty() || read_duration(words[0]) == UINT64_MAX)
            return words;
    }
    fault.time = words.empty() ? UINT64_MAX : read_duration(words[0]);
    if (fault.time == UINT64_MAX)
        refuse_fault(text, "it begins with a time, such as 2s, or with 'after' and a host");
    return words.subspan(1);
}

void read_error(Fault &fault, std::string_view word, std::string_view text) {
    for (const auto &each : ERRORS)
        if (word == each.name) {
            fault.error = each.number;
            return;
        }
    refuse_fault(text, "there is no error '" + std::string(word) + "' of a post");
}

} // namespace

uint64_t read_duration(std::string_view text) {
    static const struct {
        const char *name;
        double nanoseconds;
    } UNITS[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !(value >= 0 && value < 1e9))
        return UINT64_MAX;
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    for (const auto &each : UNITS)
        if (unit == each.name)
            return static_cast<uint64_t>(value * each.nanoseconds);
    return UINT64_MAX;
}

Fault read_fault(std::string_view text) {
    Fault fault;
    const std::vector<std::string_view> all = split(text);
    std::span<const std::string_view> words = read_when(fault, all, text);
    if (words.empty())
        refuse_fault(text, "the action is missing");
    fault.text = text;
    for (const FaultAction &each : FAULTS) {
        if (words[0] != each.name)
            continue;
        fault.action = &each;
        for (words = words.subspan(1); !words.empty() && fault.hosts.size() < each.max_hosts &&
                                       words[0].starts_with("host");
             words = words.subspan(1))
            if (fault.hosts.emplace_back(host_number(words[0])) == 0)
                refuse_fault(text, "there is no host '" + std::string(words[0]) + "'");
        if (fault.hosts.size() < each.min_hosts)
            refuse_fault(text, "a host is missing, such as host1");
        if (each.argument != Argument::NONE) {
            read_argument(fault, each.argument, words.empty() ? "" : words[0], text);
            words = words.subspan(words.empty() ? 0 : 1);
        }
        fault.error = each.error;
        if (each.error != 0 && !words.empty()) {
            read_error(fault, words[0], text);
            words = words.subspan(1);
        }
        if (!words.empty())
            refuse_fault(text, "unexpected '" + std::string(words[0]) + "'");
        return fault;
    }
    refuse_fault(text, "there is no action '" + std::string(words[0]) + "'");
}

void check_fault(const Fault &fault, unsigned host, const sim_profile &device) {
    if (sim_device_has_fault(&device, fault.action->name, fault.event))
        return;
    std::string others;
    for (const sim_profile &each : std::span(sim_profiles, sim_profile_count))
        if (sim_device_has_fault(&each, fault.action->name, fault.event))
            others += std::string(others.empty() ? "" : ", ") + each.name;
    refuse("--fault '%s': the device %s of host%u cannot have this fault%s%s",
           fault.text.c_str(), device.name, host,
           others.empty() ? ", nor can another one" : ": use one of ", others.c_str());
}

bool starts_programs(const Fault &fault) {
    return fault.action->starts_programs;
}

void apply(Run &run, const Fault &fault) {
    fault.action->effect.apply(run, fault);
}

std::string list_faults() {
    size_t name_width = 0, argument_width = 0;
    for (const FaultAction &each : FAULTS) {
        name_width = std::max(name_width, strlen(each.name));
        argument_width = std::max(argument_width, strlen(each.arguments));
    }
    std::string list =
        "--fault 'WHEN ACTION', where WHEN is a time after the start (500ms, 2s), or\n"
        "'after HOST [TIME]': when the COMMANDs of HOST have ended.\n\n";
    for (const FaultAction &each : FAULTS) {
        std::string name = each.name, arguments = each.arguments;
        name.resize(name_width, ' ');
        arguments.resize(argument_width, ' ');
        list += "  " + name + " " + arguments + " " + each.text + "\n";
    }
    list += "\nEVENT:";
    for (const auto &each : EVENTS)
        list += std::string(" ") + each.name;
    list += "\nERRNO:";
    for (const auto &each : ERRORS)
        list += std::string(" ") + each.name;
    return list + "\n";
}
