// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// faults.cc -- the table of faults, and their texts

#include "faults.hh"

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace sim {

namespace {

constexpr auto EVERY_DEVICE = [](const sim_profile &, const Fault &) { return true; };
constexpr auto WITH_DATAGRAMS = [](const sim_profile &device, const Fault &) {
    return device.has_ud;
};
// The messages of iWARP are those of TCP, which repeats what is lost.
constexpr auto WITH_CM_DATAGRAMS = [](const sim_profile &device, const Fault &) {
    return device.transport != SIM_IWARP;
};

bool has_event(const sim_profile &device, ibv_event_type type) {
    return (device.events >> type & 1) != 0;
}

// Calls the function for the link of a host to another one, or for its links to all others.
template <class Function>
void for_each_link(Machines &machines, const Fault &fault, Function function) {
    if (fault.hosts.size() == 2)
        return function(fault.hosts[0], fault.hosts[1]);
    for (const auto &host : machines.fabric().hosts())
        if (host->number != fault.hosts[0])
            function(fault.hosts[0], host->number);
}

void set_links(Machines &machines, const Fault &fault, bool is_cut) {
    for_each_link(machines, fault, [&](unsigned one, unsigned other) {
        machines.fabric().cut(one, other, is_cut);
    });
}

void set_way(Machines &machines, const Fault &fault, bool is_cut) {
    machines.fabric().cut_one_way(fault.hosts[0], fault.hosts[1], is_cut);
}

void set_delay(Machines &machines, const Fault &fault, uint64_t one_way) {
    for_each_link(machines, fault, [&](unsigned one, unsigned other) {
        machines.fabric().set_delay(one, other, one_way);
    });
}

// The last interval ends with a joined link.
void flap(Machines &machines, const Fault &fault, bool is_cut, uint64_t ends_at) {
    Fabric &fabric = machines.fabric();
    set_links(machines, fault, is_cut && fabric.now() < ends_at);
    if (fabric.now() < ends_at)
        fabric.at(
            std::min(fabric.now() + fault.number, ends_at),
            [&machines, &fault, is_cut, ends_at] { flap(machines, fault, !is_cut, ends_at); });
}

// The device of a host is the last one, after others were removed.
unsigned device_of(Machines &machines, const Fault &fault) {
    return static_cast<unsigned>(machines.fabric().host(fault.hosts[0])->devices.size()) - 1;
}

void set_port(Machines &machines, const Fault &fault, bool is_up) {
    machines.fabric().set_port(fault.hosts[0], device_of(machines, fault), is_up);
}

void set_power_on(Machines &machines, const Fault &fault) {
    machines.fabric().set_power(fault.hosts[0], true);
    machines.start(fault);
}

// The device that replaces another one has its addresses.
void insert_device(Machines &machines, const Fault &fault) {
    machines.fabric().replace_device(fault.hosts[0], device_of(machines, fault));
}

unsigned count_of(const Fault &fault) {
    return static_cast<unsigned>(fault.number);
}

using Argument = FaultArgument;

constexpr FaultKind FAULTS[] = {
    {.name = "cut",
     .min_hosts = 1,
     .max_hosts = 2,
     .argument = Argument::NONE,
     .arguments = "HOST [HOST]",
     .text = "cuts the link between two hosts, or all links of one",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { set_links(machines, fault, true); },
     .end = [](Machines &machines, const Fault &fault) { set_links(machines, fault, false); },
     .explored = "cut LINK;cut LINK for 1s",
     .weight = 4},
    {.name = "join",
     .min_hosts = 1,
     .max_hosts = 2,
     .argument = Argument::NONE,
     .arguments = "HOST [HOST]",
     .text = "ends the cut",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines,
                  const Fault &fault) { set_links(machines, fault, false); }},
    {.name = "cut-one-way",
     .min_hosts = 2,
     .max_hosts = 2,
     .argument = Argument::NONE,
     .arguments = "HOST HOST",
     .text = "no message arrives from the first host at the second one",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { set_way(machines, fault, true); },
     .end = [](Machines &machines, const Fault &fault) { set_way(machines, fault, false); },
     .explored = "cut-one-way WAY;cut-one-way WAY for 1s"},
    {.name = "flap",
     .min_hosts = 1,
     .max_hosts = 2,
     .argument = Argument::TIME,
     .arguments = "HOST [HOST] TIME",
     .text = "cuts and joins at intervals of TIME",
     .is_of_device = EVERY_DEVICE,
     .effect =
         [](Machines &machines, const Fault &fault) {
             flap(machines, fault, true,
                  fault.lasts == 0 ? UINT64_MAX : machines.fabric().now() + fault.lasts);
         },
     // flap() itself ends
     .end = [](Machines &, const Fault &) {},
     .explored = "flap LINK 100ms for 1s"},
    {.name = "delay",
     .min_hosts = 1,
     .max_hosts = 2,
     .argument = Argument::TIME,
     .arguments = "HOST [HOST] TIME",
     .text = "delays each message by TIME",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines,
                  const Fault &fault) { set_delay(machines, fault, fault.number); },
     .end = [](Machines &machines, const Fault &fault) { set_delay(machines, fault, 0); }},
    {.name = "drop-datagram",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::OPTIONAL_COUNT,
     .arguments = "HOST [N]",
     .text = "the Nth datagram that the host sends from now on is lost",
     .is_of_device = WITH_DATAGRAMS,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().change_datagram(fault.hosts[0], count_of(fault), Fate::LOST);
         },
     .explored = "drop-datagram HOST"},
    {.name = "repeat-datagram",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::OPTIONAL_COUNT,
     .arguments = "HOST [N]",
     .text = "the Nth datagram that the host sends from now on arrives twice",
     .is_of_device = WITH_DATAGRAMS,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().change_datagram(fault.hosts[0], count_of(fault), Fate::REPEATED);
         },
     .explored = "repeat-datagram HOST"},
    {.name = "drop-cm",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::OPTIONAL_COUNT,
     .arguments = "HOST [N]",
     .text = "the Nth message of the connection manager from now on is lost, and repeated",
     .is_of_device = WITH_CM_DATAGRAMS,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().lose_cm_message(fault.hosts[0], count_of(fault));
         },
     .explored = "drop-cm HOST"},
    {.name = "port-down",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "the port of the device goes down",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return has_event(device, IBV_EVENT_PORT_ERR); },
     .effect = [](Machines &machines, const Fault &fault) { set_port(machines, fault, false); },
     .end = [](Machines &machines, const Fault &fault) { set_port(machines, fault, true); },
     .explored = "port-down HOST;port-down HOST for 1s"},
    {.name = "port-up",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "the port goes up again",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { set_port(machines, fault, true); }},
    {.name = "kill",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "kills the programs of the host",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { machines.kill(fault); },
     .end = [](Machines &machines, const Fault &fault) { machines.start(fault); },
     .is_noticed = true,
     .needs_programs = true,
     .explored = "kill PROGRAM;kill PROGRAM for 1s",
     .weight = 4},
    {.name = "freeze",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "stops the programs of the host",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { machines.suspend(fault, true); },
     .end = [](Machines &machines, const Fault &fault) { machines.suspend(fault, false); },
     .needs_programs = true,
     .explored = "freeze PROGRAM for 10s",
     .former_name = "pause",
     .weight = 4},
    {.name = "thaw",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "continues them",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { machines.suspend(fault, false); },
     .needs_programs = true},
    {.name = "power-off",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::RANDOM,
     .arguments = "HOST [random]",
     .text = "kills them, and data that is not persistent is lost",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { machines.power_off(fault); },
     .end = set_power_on,
     .needs_programs = true,
     .explored = "power-off PMEM;power-off PMEM random;power-off PMEM for 1s;"
                 "power-off PMEM random for 1s",
     .former_name = "power",
     .weight = 4},
    {.name = "power-on",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "starts the COMMANDs of the host again",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines, const Fault &fault) { set_power_on(machines, fault); },
     .starts_programs = true,
     .needs_programs = true},
    {.name = "clock-ahead",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::TIME,
     .arguments = "HOST TIME",
     .text = "the time of day of the host is ahead by TIME (only in explore)",
     .is_of_device = EVERY_DEVICE,
     .effect = [](Machines &machines,
                  const Fault &fault) { machines.set_clock(fault.hosts[0], fault.number); },
     .end = [](Machines &machines,
               const Fault &fault) { machines.set_clock(fault.hosts[0], 0); },
     .is_only_explored = true,
     .is_noticed = true,
     .needs_programs = true,
     .explored = "clock-ahead HOST 10s;clock-ahead HOST 10s for 1s"},
    // Linux 6.1, drivers/infiniband/sw/rxe/rxe_comp.c, check_ack(): the NAK "remote operational
    // error" completes a request with this status. That a device sends it for memory that it
    // cannot read is an assumption. rxe and siw read memory with the processor.
    {.name = "poison",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "256 bytes of the memory that is read next are damaged until they are written",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return !sim_is_software(&device); },
     .effect = [](Machines &machines,
                  const Fault &fault) { machines.fabric().poison(fault.hosts[0]); },
     .explored = "poison HOST"},
    {.name = "refuse",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::OPTIONAL_COUNT,
     .arguments = "HOST [N] [ERRNO]",
     .text = "the Nth post from now on fails (ENOMEM)",
     .is_of_device = EVERY_DEVICE,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().refuse_post(fault.hosts[0], count_of(fault), fault.error);
         },
     .error = ENOMEM,
     .explored = "refuse HOST",
     .weight = 4},
    {.name = "doorbell",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST [ERRNO]",
     .text = "the next list of sends is queued, but its post fails (EIO)",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return device.has_doorbell_call; },
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().refuse_post(fault.hosts[0], 0, fault.error);
         },
     .error = EIO,
     .explored = "doorbell HOST",
     .weight = 4},
    {.name = "fail",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::CALL,
     .arguments = "HOST CALL [N] [ERRNO]",
     .text = "the Nth CALL from now on, which creates an object, fails (ENOMEM)",
     .is_of_device = EVERY_DEVICE,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().fail_call(fault.hosts[0], fault.failing->op, count_of(fault),
                                         fault.error);
         },
     .error = ENOMEM,
     .explored = "fail HOST CREATING",
     .weight = 2},
    {.name = "overrun",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "all completion queues overrun",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return has_event(device, IBV_EVENT_CQ_ERR); },
     .effect = [](Machines &machines,
                  const Fault &fault) { machines.fabric().overrun_cqs(fault.hosts[0]); },
     .explored = "overrun HOST"},
    {.name = "event",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::EVENT,
     .arguments = "HOST EVENT",
     .text = "an asynchronous event for the objects of the device",
     .is_of_device = [](const sim_profile &device,
                        const Fault &fault) { return has_event(device, fault.event); },
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().raise_async(fault.hosts[0], device_of(machines, fault),
                                           fault.event);
         },
     .explored = "event HOST EVENT"},
    {.name = "addr-change",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "the address moves to another interface",
     .is_of_device = EVERY_DEVICE,
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().change_address(fault.hosts[0], device_of(machines, fault));
         },
     .explored = "addr-change HOST"},
    {.name = "remove",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "removes the device",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return device.can_be_removed; },
     .effect =
         [](Machines &machines, const Fault &fault) {
             machines.fabric().remove_device(fault.hosts[0], device_of(machines, fault));
         },
     .end = insert_device,
     .explored = "remove HOST;remove HOST for 1s"},
    {.name = "insert",
     .min_hosts = 1,
     .max_hosts = 1,
     .argument = Argument::NONE,
     .arguments = "HOST",
     .text = "the removed device is back, as a new one with the same addresses",
     .is_of_device = [](const sim_profile &device,
                        const Fault &) { return device.can_be_removed; },
     .effect = [](Machines &machines, const Fault &fault) { insert_device(machines, fault); }},
};

struct {
    const char *name;
    ibv_event_type type;
} constexpr EVENTS[] = {
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
} constexpr ERRORS[] = {{"ENOMEM", ENOMEM}, {"EINVAL", EINVAL}, {"ENOSPC", ENOSPC},
                        {"EIO", EIO},       {"EFAULT", EFAULT}, {"EAGAIN", EAGAIN}};

std::vector<std::string_view> split(std::string_view text, std::string_view dividers) {
    std::vector<std::string_view> words;
    while (true) {
        const size_t begin = text.find_first_not_of(dividers);
        if (begin == text.npos)
            return words;
        const size_t end = std::min(text.find_first_of(dividers, begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        text.remove_prefix(end);
    }
}

[[noreturn]] void refuse(const std::string &why) {
    throw BadFault{why};
}

bool read_count(std::string_view word, uint64_t &count) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    return error == std::errc() && end == word.data() + word.size() && count > 0 &&
           count <= UINT32_MAX;
}

// Reads the words of a fault from the first one.
class Reader {
  public:
    Reader(Fault &fault, std::string_view text) : fault_(fault), words_(split(text, " \t")) {}
    void read_when();
    void read_action();

  private:
    bool has_word() const { return at_ < words_.size(); }
    std::string_view word() const { return has_word() ? words_[at_] : ""; }
    void read_call(std::string_view word);
    void read_hosts();
    void read_argument();
    void read_failing_call();
    void read_error();
    void read_end();

    Fault &fault_;
    std::vector<std::string_view> words_;
    size_t at_ = 0;
};

// Reads WHEN, "[at] TIME", "after HOST [TIME]" or "HOST:CALL[:N] [TIME]".
void Reader::read_when() {
    bool needs_time = true;
    if (word() == "at") {
        at_++;
    } else if (word() == "after") {
        at_++;
        fault_.after = read_host(word());
        if (fault_.after == 0)
            refuse("'after' is followed by a host");
        at_++;
        needs_time = false;
    } else if (word().find(':') != std::string_view::npos) {
        read_call(word());
        at_++;
        needs_time = false;
    }
    const uint64_t time = read_duration(word());
    if (time != UINT64_MAX) {
        fault_.time = time;
        at_++;
    } else if (needs_time) {
        refuse("it begins with a time, such as 2s, with 'after' and a host, or with a call, "
               "such as host2:ibv_post_send:3");
    }
}

void Reader::read_call(std::string_view word) {
    const size_t first = word.find(':'),
                 second = std::min(word.find(':', first + 1), word.size());
    const std::string_view name = word.substr(first + 1, second - first - 1);
    fault_.caller = read_host(word.substr(0, first));
    fault_.call = find_call(name);
    if (fault_.caller == 0)
        refuse("there is no host '" + std::string(word.substr(0, first)) + "'");
    if (!fault_.call)
        refuse("there is no call '" + std::string(name) + "'");
    if (second < word.size() && !read_count(word.substr(second + 1), fault_.nth))
        refuse("the number of the call is missing, such as " + std::string(name) + ":3");
}

void Reader::read_hosts() {
    const FaultKind &kind = *fault_.kind;
    while (fault_.hosts.size() < kind.max_hosts && word().starts_with("host")) {
        if (fault_.hosts.emplace_back(read_host(word())) == 0)
            refuse("there is no host '" + std::string(word()) + "'");
        at_++;
    }
    if (fault_.hosts.empty() && kind.min_hosts == 1 && fault_.caller != 0)
        fault_.hosts.push_back(fault_.caller);
    if (fault_.hosts.size() < kind.min_hosts)
        refuse(kind.min_hosts == 2 ? "two hosts are missing, such as host1 host2"
                                   : "a host is missing, such as host1");
    if (fault_.hosts.size() == 2 && fault_.hosts[0] == fault_.hosts[1])
        refuse("the hosts must differ");
}

// A fault at a call fails this call unless another one is named.
void Reader::read_failing_call() {
    fault_.failing = find_call(word());
    if (fault_.failing)
        at_++;
    else if (!word().starts_with("ibv_") && !word().starts_with("rdma_"))
        fault_.failing = fault_.call;
    if (!fault_.failing)
        refuse(has_word() ? "there is no call '" + std::string(word()) + "'"
                          : "a call is missing, such as ibv_reg_mr");
    if (!fault_.failing->creates)
        refuse(std::string(fault_.failing->name) + " creates no object");
}

void Reader::read_argument() {
    fault_.number = 1;
    switch (fault_.kind->argument) {
    case Argument::NONE:
        return;
    case Argument::TIME:
        fault_.number = read_duration(word());
        if (fault_.number == UINT64_MAX || fault_.number == 0)
            refuse("a time is missing, such as 5ms");
        at_++;
        return;
    case Argument::CALL:
        read_failing_call();
        [[fallthrough]];
    case Argument::COUNT:
    case Argument::OPTIONAL_COUNT:
        if (has_word() && word()[0] >= '0' && word()[0] <= '9' &&
            !read_count(words_[at_++], fault_.number))
            refuse("a count is missing, such as 3");
        return;
    case Argument::EVENT:
        for (const auto &each : EVENTS)
            if (word() == each.name) {
                fault_.event = each.type;
                at_++;
                return;
            }
        refuse("there is no event '" + std::string(word()) + "'");
    case Argument::RANDOM:
        fault_.is_random = word() == "random";
        at_ += fault_.is_random;
    }
}

void Reader::read_error() {
    fault_.error = fault_.kind->error;
    if (fault_.error == 0 || !has_word() || word() == "for")
        return;
    const auto found = std::ranges::find(
        ERRORS, word(), [](const auto &each) { return std::string_view(each.name); });
    if (found == std::end(ERRORS))
        refuse("there is no error '" + std::string(word()) + "' of a call");
    fault_.error = found->number;
    at_++;
}

void Reader::read_end() {
    if (word() != "for")
        return;
    if (!fault_.kind->end)
        refuse(std::string(fault_.kind->name) + " does not last for a time");
    at_++;
    fault_.lasts = read_duration(word());
    if (fault_.lasts == UINT64_MAX || fault_.lasts == 0)
        refuse("'for' is followed by a time, such as 1s");
    at_++;
}

void Reader::read_action() {
    if (!has_word())
        refuse("the action is missing");
    fault_.kind = find_fault(word());
    if (!fault_.kind)
        refuse("there is no action '" + std::string(word()) + "'");
    at_++;
    read_hosts();
    read_argument();
    read_error();
    read_end();
    if (has_word())
        refuse("unexpected '" + std::string(word()) + "'");
}

void replace(std::string &text, std::string_view word, const std::string &by) {
    if (const size_t at = text.find(word); at != text.npos)
        text.replace(at, word.size(), by);
}

std::string host_name(unsigned number) {
    return "host" + std::to_string(number);
}

// Adds each form of the text in which the placeholder is replaced.
class Forms {
  public:
    Forms(const ExploredHosts &hosts, std::string_view text) : hosts_(hosts) {
        texts_.push_back({std::string(text), 0});
    }
    void expand(std::vector<Fault> &faults) {
        const auto count = static_cast<unsigned>(hosts_.devices.size());
        std::vector<std::string> ways, links, all, pmem, creating, events;
        for (unsigned one = 1; one <= count; one++) {
            all.push_back(host_name(one));
            for (unsigned other = 1; other <= count; other++) {
                if (one != other)
                    ways.push_back(host_name(one) + " " + host_name(other));
                if (one < other)
                    links.push_back(ways.back());
            }
        }
        for (const unsigned host : hosts_.pmem)
            pmem.push_back(host_name(host));
        for (const CallName &each : call_names())
            if (each.creates)
                creating.push_back(each.name);
        for (const auto &each : EVENTS)
            events.push_back(each.name);
        fill("WAY", ways);
        fill("LINK", links);
        fill("HOST", all);
        fill("PMEM", pmem);
        fill("CREATING", creating);
        fill("EVENT", events);
        fill_programs();
        for (const auto &[text, program] : texts_) {
            Fault fault = read_action(text);
            fault.program = program;
            if (std::ranges::all_of(fault.hosts, [&](unsigned host) {
                    return is_possible(*hosts_.devices[host - 1], fault);
                }))
                faults.push_back(std::move(fault));
        }
    }

  private:
    struct Form {
        std::string text;
        unsigned program;
    };
    void fill(std::string_view word, const std::vector<std::string> &values) {
        std::vector<Form> filled;
        for (const Form &form : texts_)
            if (form.text.find(word) == form.text.npos)
                filled.push_back(form);
            else
                for (const std::string &value : values)
                    replace((filled.emplace_back(form)).text, word, value);
        texts_ = std::move(filled);
    }
    void fill_programs() {
        std::vector<Form> filled;
        for (const Form &form : texts_)
            if (form.text.find("PROGRAM") == form.text.npos)
                filled.push_back(form);
            else
                for (unsigned i = 0; i < hosts_.programs.size(); i++) {
                    replace(filled.emplace_back(form).text, "PROGRAM",
                            host_name(hosts_.programs[i]));
                    filled.back().program = i + 1;
                }
        texts_ = std::move(filled);
    }
    const ExploredHosts &hosts_;
    std::vector<Form> texts_;
};

void append(std::string &list, std::string line, size_t width, const char *text) {
    line.resize(std::max(width, line.size()), ' ');
    list += line + " " + text + "\n";
}

} // namespace

std::span<const FaultKind> fault_kinds() {
    return FAULTS;
}

const FaultKind *find_fault(std::string_view name) {
    const auto found = std::ranges::find(
        FAULTS, name, [](const FaultKind &each) { return std::string_view(each.name); });
    return found == std::end(FAULTS) ? nullptr : found;
}

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

unsigned read_host(std::string_view text) {
    if (text.starts_with("host"))
        text.remove_prefix(4);
    unsigned found = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), found);
    return error == std::errc() && end == text.data() + text.size() && found <= MAX_HOSTS
               ? found
               : 0;
}

Fault read_fault(std::string_view text) {
    Fault fault;
    fault.text = text;
    Reader reader(fault, text);
    reader.read_when();
    reader.read_action();
    return fault;
}

Fault read_action(std::string_view text) {
    Fault fault;
    fault.text = text;
    Reader(fault, text).read_action();
    return fault;
}

bool is_possible(const sim_profile &device, const Fault &fault) {
    return fault.kind->is_of_device.apply(device, fault);
}

void apply(Machines &machines, const Fault &fault) {
    fault.kind->effect.apply(machines, fault);
}

void end(Machines &machines, const Fault &fault) {
    fault.kind->end(machines, fault);
}

std::vector<const Fault *> CallFaults::take(const Fabric &fabric, const Caller &caller,
                                            std::span<const std::byte> request) {
    const CallName *const call = name_of_call(fabric, request);
    std::vector<const Fault *> taken;
    if (call)
        std::erase_if(pending_, [&](Pending &each) {
            const bool is_now = each.fault->caller == caller.session->host->number &&
                                each.fault->call == call && ++each.calls == each.fault->nth;
            if (is_now)
                taken.push_back(each.fault);
            return is_now;
        });
    return taken;
}

std::string list_faults() {
    size_t name_width = 0, width = 0;
    for (const FaultKind &each : FAULTS) {
        name_width = std::max(name_width, strlen(each.name));
        width = std::max(width, strlen(each.arguments));
    }
    std::string list =
        "--fault 'WHEN ACTION [for TIME]', where WHEN is a time after the start (500ms,\n"
        "2s), 'after HOST [TIME]': when the COMMANDs of HOST have ended, or\n"
        "HOST:CALL[:N] [TIME]: before the Nth CALL of HOST, which is then the default HOST.\n"
        "'for TIME' ends an ACTION with a star after TIME.\n\n";
    for (const FaultKind &each : FAULTS) {
        std::string name = each.name;
        name.resize(name_width, ' ');
        append(list, "  " + name + (each.end ? " * " : "   ") + each.arguments,
               name_width + width + 5, each.text);
    }
    list += "\nEVENT:";
    for (const auto &each : EVENTS)
        list += std::string(" ") + each.name;
    list += "\nERRNO:";
    for (const auto &each : ERRORS)
        list += std::string(" ") + each.name;
    list += "\nCALL, and with a star those that the action fail can let fail:";
    size_t left = 0;
    for (const CallName &each : call_names()) {
        const std::string word = std::string(" ") + each.name + (each.creates ? "*" : "");
        if (word.size() > left) {
            list += "\n ";
            left = 78;
        }
        list += word;
        left -= word.size();
    }
    return list + "\n";
}

bool is_explored(std::string_view name) {
    return std::ranges::any_of(FAULTS, [&](const FaultKind &each) {
        return *each.explored != '\0' && (name == each.name || name == each.former_name) &&
               !name.empty();
    });
}

std::string list_explored_faults() {
    size_t width = 0;
    std::string list;
    for (const FaultKind &each : FAULTS)
        width = std::max(width, strlen(each.name));
    for (const FaultKind &each : FAULTS)
        if (*each.explored != '\0')
            append(list, each.name, width, each.text);
    append(list, "none", width, "no fault");
    return list;
}

size_t ExploredFaults::size() const {
    size_t count = 0;
    for (const Group &group : groups)
        count += group.faults.size();
    return count;
}

const Fault &ExploredFaults::operator[](size_t number) const {
    auto group = groups.begin();
    for (; number >= group->faults.size(); group++)
        number -= group->faults.size();
    return group->faults[number];
}

size_t ExploredFaults::choose(uint64_t random) const {
    if (groups.size() == 1)
        return random % groups[0].faults.size();
    uint64_t weights = 0, number = 0;
    for (const Group &group : groups)
        weights += group.kind->weight;
    uint64_t left = random % weights;
    for (const Group &group : groups) {
        if (left < group.kind->weight)
            return number + random / weights % group.faults.size();
        left -= group.kind->weight;
        number += group.faults.size();
    }
    return 0; // not reached
}

std::optional<size_t> ExploredFaults::choose(std::string_view name, uint64_t random) const {
    size_t number = 0;
    for (const Group &group : groups) {
        if (group.kind->name == name)
            return number + random % group.faults.size();
        number += group.faults.size();
    }
    return std::nullopt;
}

ExploredFaults explored_faults(const ExploredHosts &hosts,
                               const std::vector<std::string_view> &names) {
    ExploredFaults found;
    for (const FaultKind &each : FAULTS) {
        ExploredFaults::Group group{&each, {}};
        if (!names.empty() && std::ranges::find(names, each.name) == names.end() &&
            std::ranges::find(names, each.former_name) == names.end())
            continue;
        for (const std::string_view text : split(each.explored, ";"))
            Forms(hosts, text).expand(group.faults);
        if (!group.faults.empty())
            found.groups.push_back(std::move(group));
    }
    return found;
}

} // namespace sim
