// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// options.cc -- the command line

#include "options.hh"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <span>
#include <sstream>
#include <unistd.h>

namespace {

using sim::MAX_HOSTS, sim::Fault;

constexpr unsigned MAX_JOBS = 1024;

constexpr char USAGE[] =
    R"(usage: rdma-sim [OPTION...] [@HOST] COMMAND [ARG...]
                [:: [@HOST] COMMAND [ARG...]]...
       rdma-sim --join NAME [--host HOST] COMMAND [ARG...]
       rdma-sim explore --check CHECK [OPTION...] COMMAND [ARG...] [:: ...]...
       rdma-sim explore --replay FILE

Runs unchanged RDMA programs on a simulated fabric: the first COMMAND on host1,
the next one on host2, and so on, or on the HOST that precedes it. host1 has
the addresses 10.77.0.1 and fd77::1.

  -n, --hosts N             number of hosts (default: one for each COMMAND)
  -d, --device [HOST=]NAME  RDMA device of all hosts or of one (default: rxe);
                            "help" lists them; or FILE, a report of a device
  -f, --fault WHEN ACTION   as one argument; "help" lists them
  -p, --pmem [HOST=]FILE    FILE is persistent memory (default: of host1)
      --dax KIND            device (default) or fs: the kind of the --pmem files
      --platform PLATFORM   direct-write (default), cpu-flush or flush-only:
                            what makes data persistent
      --lose WHAT           of data that is not persistent when the power
                            fails: all (default) or random words
      --strong NAME[,NAME]  turns weaknesses of devices off; "help" lists them,
                            "all" is all of them
      --strict              reports misuse of libibverbs and librdmacm that
                            devices may tolerate: rdma-sim(1) lists it
  -t, --together            starts all COMMANDs at once (default: each when the
                            one before it listens or has ended, or after 1 s)
  -u, --until WHEN          ends when all COMMANDs have ended (all), one of
                            them (first), or all of HOST[,HOST]; default: all,
                            or 5 s without a call after one has failed
  -s, --seed N              of random choices (default 1)
  -l, --prefix              precedes each line of output with its host
      --name NAME           other programs can join the fabric by this name
      --join NAME           runs COMMAND on the running fabric NAME ("": the
                            own)
      --host HOST           on this host (default: host1)
      --memory METHOD       how data is moved: direct or thread (default:
                            direct if the system allows it)
      --check CHECK         explore: a command of the shell that fails if the
                            programs have lost data
      --seeds A-B           explore: the schedules (default: 1-1000)
      --faults KIND[,KIND]  explore: kinds of faults (default: all); "help"
                            lists them
      --in-order            explore: starts each COMMAND as a plain run does
                            (default: all after the first when it listens)
      --live TIME           explore: programs must end in TIME after the last
                            fault (default: no limit)
      --search KIND         explore: mixed (default), random, pct: priorities
                            that change at random, or exhaustive[:CHOICES]
  -j, --jobs N              explore: schedules that run at a time (default: 1)
      --time TIME           explore: no schedule starts later
      --keep-going          explore: finds more after the first finding
      --save FILE           explore: a finding is saved in FILE
      --replay FILE         explore: repeats this finding
      --gdb HOST            explore: with --replay, in gdb at the last choice
      --html FILE           explore: writes a chart of the finding
  -v, --verbose             reports what rdma-sim does
  -V, --version             prints the version
  -h, --help                prints this

Report bugs at )" RDMA_SIM_ISSUES R"(
)";

enum {
    PLATFORM = 256,
    DAX,
    LOSE,
    STRONG,
    STRICT,
    NAME,
    JOIN,
    HOST,
    MEMORY,
    CHECK,
    SEEDS,
    FAULTS,
    SAVE,
    REPLAY,
    IN_ORDER,
    SEARCH,
    LIVE,
    GDB,
    HTML,
    TIME,
    KEEP_GOING
};

constexpr option OPTIONS[] = {
    {"hosts", required_argument, nullptr, 'n'},
    {"device", required_argument, nullptr, 'd'},
    {"fault", required_argument, nullptr, 'f'},
    {"pmem", required_argument, nullptr, 'p'},
    {"platform", required_argument, nullptr, PLATFORM},
    {"dax", required_argument, nullptr, DAX},
    {"lose", required_argument, nullptr, LOSE},
    {"strong", required_argument, nullptr, STRONG},
    {"strict", no_argument, nullptr, STRICT},
    {"until", required_argument, nullptr, 'u'},
    {"seed", required_argument, nullptr, 's'},
    {"prefix", no_argument, nullptr, 'l'},
    {"together", no_argument, nullptr, 't'},
    {"name", required_argument, nullptr, NAME},
    {"join", required_argument, nullptr, JOIN},
    {"host", required_argument, nullptr, HOST},
    {"memory", required_argument, nullptr, MEMORY},
    {"check", required_argument, nullptr, CHECK},
    {"seeds", required_argument, nullptr, SEEDS},
    {"faults", required_argument, nullptr, FAULTS},
    {"save", required_argument, nullptr, SAVE},
    {"replay", required_argument, nullptr, REPLAY},
    {"gdb", required_argument, nullptr, GDB},
    {"html", required_argument, nullptr, HTML},
    {"live", required_argument, nullptr, LIVE},
    {"search", required_argument, nullptr, SEARCH},
    {"jobs", required_argument, nullptr, 'j'},
    {"time", required_argument, nullptr, TIME},
    {"keep-going", no_argument, nullptr, KEEP_GOING},
    {"in-order", no_argument, nullptr, IN_ORDER},
    {"verbose", no_argument, nullptr, 'v'},
    {"version", no_argument, nullptr, 'V'},
    {"help", no_argument, nullptr, 'h'},
    {nullptr, 0, nullptr, 0},
};

uint64_t number(const char *option, std::string_view text, uint64_t least, uint64_t most) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least ||
        value > most)
        refuse("%s takes a number from %llu to %llu, not '%.*s'", option,
               static_cast<unsigned long long>(least), static_cast<unsigned long long>(most),
               static_cast<int>(text.size()), text.data());
    return value;
}

uint64_t duration(const char *option, std::string_view text) {
    const uint64_t found = sim::read_duration(text);
    if (found == 0 || found == UINT64_MAX)
        refuse("%s takes a time, such as 10s, not '%.*s'", option,
               static_cast<int>(text.size()), text.data());
    return found;
}

unsigned host(const char *option, std::string_view text) {
    const unsigned found = sim::read_host(text);
    if (found == 0)
        refuse("%s takes a host, such as host2, not '%.*s'", option,
               static_cast<int>(text.size()), text.data());
    return found;
}

bool choice(const char *option, std::string_view text, const char *first, const char *second) {
    if (text != first && text != second)
        refuse("%s takes %s or %s, not '%.*s'", option, first, second,
               static_cast<int>(text.size()), text.data());
    return text == second;
}

sim_platform read_platform(std::string_view text) {
    const std::optional<sim_platform> found = sim::find_platform(text);
    if (!found)
        refuse("--platform takes direct-write, cpu-flush or flush-only, not '%.*s'",
               static_cast<int>(text.size()), text.data());
    return *found;
}

// Removes and returns the HOST of "[HOST=]VALUE"; 0 if no host precedes '='.
unsigned take_host_prefix(std::string_view &text) {
    const size_t at = text.find('=');
    const unsigned found = at == text.npos ? 0 : sim::read_host(text.substr(0, at));
    if (found != 0)
        text.remove_prefix(at + 1);
    return found;
}

// Ends the program after a help text.
[[noreturn]] void print_help(const std::string &text) {
    print(text);
    throw Exit{EXIT_SUCCESS, ""};
}

std::string list_devices() {
    std::string list;
    for (const sim_profile &each : std::span(sim_profiles, sim_profile_count)) {
        std::string name = each.name;
        name.resize(std::max<size_t>(name.size(), 12), ' ');
        list += name + (each.transport == SIM_INFINIBAND ? " InfiniBand\n"
                        : each.transport == SIM_ROCE     ? " RoCE\n"
                                                         : " iWARP\n");
    }
    return list;
}

void read_device(ExploreSettings &settings, std::string_view text) {
    if (text == "help")
        print_help(list_devices());
    const unsigned prefix = take_host_prefix(text);
    // No name of a device has these characters.
    const bool is_file = text.find_first_of("/.") != text.npos;
    const sim_profile *const profile =
        is_file ? read_report(std::string(text)) : sim_find_profile(text.data());
    if (profile == nullptr)
        refuse("there is no device '%.*s': --device help lists them",
               static_cast<int>(text.size()), text.data());
    if (prefix == 0)
        settings.fabric.profile = profile;
    else
        settings.fabric.of_host[prefix] = profile;
}

void read_until(ExploreSettings &settings, std::string_view text) {
    settings.until = text == "all" ? Until::ALL : text == "first" ? Until::FIRST : Until::HOST;
    settings.until_hosts.clear();
    if (settings.until != Until::HOST)
        return;
    for (const std::string_view word : sim::split_words(text, ","))
        settings.until_hosts.push_back(host("--until", word));
    if (settings.until_hosts.empty())
        refuse("--until takes all, first or hosts, such as host2,host3");
}

std::string read_name(std::string_view text) {
    if (text.empty() || text.size() > 40 || text.find('/') != text.npos)
        refuse("--name takes a name of at most 40 characters without '/', not '%.*s'",
               static_cast<int>(text.size()), text.data());
    return std::string(text);
}

void read_seeds(ExploreSettings &settings, std::string_view text) {
    const size_t dash = std::min(text.find('-'), text.size());
    const std::string_view last = text.substr(std::min(dash + 1, text.size()));
    settings.first_seed = number("--seeds", text.substr(0, dash), 0, UINT64_MAX - 1);
    settings.last_seed = dash == text.size()
                             ? settings.first_seed
                             : number("--seeds", last, settings.first_seed, UINT64_MAX - 1);
}

void read_search(ExploreSettings &settings, std::string_view text) {
    const std::optional<SearchOption> search = find_search(text);
    if (!search)
        refuse("--search takes mixed, random, pct or exhaustive[:CHOICES], not '%.*s'",
               static_cast<int>(text.size()), text.data());
    settings.search = search->kind;
    if (search->choices)
        settings.most_choices =
            number("--search exhaustive:CHOICES", *search->choices, 1, UINT32_MAX);
}

// Calls the function for each word of a list, which commas separate.
template <class Function> void for_each_word(std::string_view text, Function function) {
    for (size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
        end = std::min(text.find(',', begin), text.size());
        function(text.substr(begin, end - begin));
    }
}

void read_fault_kinds(ExploreSettings &settings, std::string_view text) {
    for_each_word(text, [&](std::string_view kind) {
        if (kind == "help")
            print_help(sim::list_explored_faults());
        if (kind != "none" && !sim::is_explored(kind))
            refuse("--faults: there is no kind '%.*s': --faults help lists them",
                   static_cast<int>(kind.size()), kind.data());
        settings.fault_kinds.push_back(kind);
    });
}

void read_strong(Settings &settings, std::string_view text) {
    for_each_word(text, [&](std::string_view name) {
        if (name == "help")
            print_help(sim::list_weaknesses());
        if (name == "all") {
            settings.fabric.strong.set();
            return;
        }
        const sim::WeaknessKind *const kind = sim::find_weakness(name);
        if (kind == nullptr)
            refuse("--strong: there is no weakness '%.*s': --strong help lists them",
                   static_cast<int>(name.size()), name.data());
        settings.fabric.strong |= sim::only(*kind);
        settings.strong.push_back(kind);
    });
}

// Refuses a weakness that no device of the hosts has.
void check_strong(const Settings &settings) {
    for (const sim::WeaknessKind *const kind : settings.strong) {
        bool is_found = false;
        for (unsigned host = 1; host <= settings.fabric.hosts; host++)
            is_found = is_found || kind->is_of_device(settings.device_of(host));
        if (!is_found)
            refuse("--strong %s: the device %s does not have this weakness", kind->name,
                   settings.device_of(1).name);
    }
}

void read_fault(ExploreSettings &settings, const char *text) {
    try {
        settings.faults.push_back(sim::read_fault(text));
        if (settings.faults.back().kind->is_only_explored)
            refuse(
                "--fault '%s': only explore has this fault: programs of a plain run read the "
                "clock of the machine",
                text);
    } catch (const sim::BadFault &bad) {
        refuse("--fault '%s': %s: --fault help explains them", text, bad.why.c_str());
    }
}

// Refuses a fault that the device of one of its hosts cannot have.
void check_fault(const Fault &fault, unsigned host, const sim_profile &device) {
    if (is_possible(device, fault))
        return;
    std::string others;
    for (const sim_profile &each : std::span(sim_profiles, sim_profile_count))
        if (is_possible(each, fault))
            others += std::string(others.empty() ? "" : ", ") + each.name;
    refuse("--fault '%s': the device %s of host%u cannot have this fault%s%s",
           fault.text.c_str(), device.name, host,
           others.empty() ? ", nor can another one" : ": use one of ", others.c_str());
}

// Returns false if this is not an option of explore.
bool read_explore_option(ExploreSettings &settings, int option, const char *value) {
    switch (option) {
    case CHECK:
        settings.check = value;
        return true;
    case SEEDS:
        read_seeds(settings, value);
        return true;
    case FAULTS:
        read_fault_kinds(settings, value);
        return true;
    case SAVE:
        settings.save = value;
        return true;
    case REPLAY:
        settings.replay = value;
        return true;
    case GDB:
        settings.gdb_host = host("--gdb", value);
        return true;
    case HTML:
        settings.html = value;
        return true;
    case LIVE:
        settings.live = duration("--live", value);
        return true;
    case SEARCH:
        read_search(settings, value);
        return true;
    case 'j':
        settings.jobs = static_cast<unsigned>(number("--jobs", value, 1, MAX_JOBS));
        return true;
    case TIME:
        settings.time = duration("--time", value);
        return true;
    case KEEP_GOING:
        settings.keeps_going = true;
        return true;
    case IN_ORDER:
        settings.starts_in_order = true;
        return true;
    default:
        return false;
    }
}

void read_option(ExploreSettings &settings, int option, const char *value) {
    if ((option >= CHECK || option == 'j') && !settings.explores)
        refuse("--%s is for rdma-sim explore",
               std::ranges::find(OPTIONS, option, &::option::val)->name);
    if (settings.explores &&
        (option == 'f' || option == 's' || option == 'l' || option == NAME || option == JOIN ||
         option == HOST || option == LOSE))
        refuse("explore chooses faults itself, and takes no --fault, --lose, --seed, --prefix, "
               "--name, --join or --host");
    if (read_explore_option(settings, option, value))
        return;
    switch (option) {
    case 'n':
        settings.fabric.hosts = static_cast<unsigned>(number("--hosts", value, 1, MAX_HOSTS));
        break;
    case 'd':
        return read_device(settings, value);
    case 'f':
        if (strcmp(value, "help") == 0)
            print_help(sim::list_faults());
        read_fault(settings, value);
        break;
    case 'p': {
        std::string_view file = value;
        const unsigned prefix = take_host_prefix(file);
        settings.pmem.emplace_back(prefix == 0 ? 1 : prefix, file);
        break;
    }
    case PLATFORM:
        settings.fabric.platform = read_platform(value);
        break;
    case DAX:
        settings.fabric.has_fs_dax = choice("--dax", value, "device", "fs");
        break;
    case LOSE:
        settings.loses_at_random = choice("--lose", value, "all", "random");
        break;
    case STRONG:
        return read_strong(settings, value);
    case STRICT:
        settings.is_strict = true;
        break;
    case 'u':
        return read_until(settings, value);
    case 't':
        settings.starts_together = true;
        break;
    case 's':
        settings.fabric.seed = number("--seed", value, 0, UINT64_MAX);
        break;
    case 'l':
        settings.prefixes = true;
        break;
    case NAME:
        settings.name = read_name(value);
        break;
    case JOIN:
        settings.joins = true;
        settings.join = *value == '\0' ? "" : read_name(value);
        break;
    case HOST:
        settings.join_host = host("--host", value);
        break;
    case MEMORY:
        settings.uses_threads = choice("--memory", value, "direct", "thread");
        break;
    case 'v':
        settings.is_verbose = true;
        break;
    case 'V':
        print_help("rdma-sim " RDMA_SIM_VERSION "\n");
    case 'h':
        print_help(USAGE);
    default:
        refuse("see rdma-sim --help");
    }
}

// Refuses an option that a run would ignore: a fabric has its options from its start.
void check_join(const ExploreSettings &settings, const std::vector<int> &options) {
    for (const int option : options)
        if (settings.joins && option != JOIN && option != HOST)
            refuse("--join takes no --%s: the fabric runs already, and has the options of its "
                   "start",
                   std::ranges::find(OPTIONS, option, &::option::val)->name);
    if (!settings.joins && std::ranges::find(options, HOST) != options.end())
        refuse("--host is for --join: @HOST before a COMMAND selects its host");
}

void read_commands(ExploreSettings &settings, char *argv[]) {
    Command command;
    const auto add = [&] {
        if (command.argv.empty())
            refuse("a COMMAND is missing: see rdma-sim --help");
        if (command.host == 0)
            command.host = static_cast<unsigned>(settings.commands.size()) + 1;
        settings.commands.push_back(command);
        command = {};
    };
    for (; *argv != nullptr; argv++) {
        if (strcmp(*argv, "::") == 0)
            add();
        else if (command.argv.empty() && command.host == 0 && **argv == '@')
            command.host = host("@", *argv + 1);
        else
            command.argv.push_back(*argv);
    }
    if (!settings.commands.empty() || !command.argv.empty() || settings.name.empty() ||
        settings.joins)
        add();
}

void check_host(const ExploreSettings &settings, const char *where, unsigned number) {
    if (number > settings.fabric.hosts)
        refuse("%s: there is no host%u, only %u hosts: see --hosts", where, number,
               settings.fabric.hosts);
}

// Refuses a host without a COMMAND whose end could be awaited.
void check_commands(const ExploreSettings &settings, const char *where, unsigned number) {
    if (number != 0 &&
        std::ranges::find(settings.commands, number, &Command::host) == settings.commands.end())
        refuse("%s: host%u has no COMMAND that could end", where, number);
}

// Sets the number of hosts, and refuses options with other hosts.
void check_hosts(ExploreSettings &settings, bool has_host_count) {
    unsigned most = 1;
    for (const Command &each : settings.commands)
        most = std::max(most, each.host);
    if (!has_host_count)
        settings.fabric.hosts = std::min(most, MAX_HOSTS);
    check_host(settings, "@HOST", most);
    for (const auto &[number, profile] : settings.fabric.of_host)
        check_host(settings, "--device", number);
    for (const auto &[number, file] : settings.pmem)
        check_host(settings, "--pmem", number);
    for (const Fault &fault : settings.faults) {
        check_host(settings, "--fault", fault.after);
        check_commands(settings, "--fault 'after'", fault.after);
        check_host(settings, "--fault", fault.caller);
        for (const unsigned number : fault.hosts) {
            check_host(settings, "--fault", number);
            check_fault(fault, number, settings.device_of(number));
        }
    }
    check_strong(settings);
    for (const unsigned number : settings.until_hosts) {
        check_host(settings, "--until", number);
        check_commands(settings, "--until", number);
    }
}

// Returns the path of a program, or an empty string.
std::string path_of(const char *program) {
    const char *const path = getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');)
        if (const std::string file = folder + "/" + program; access(file.c_str(), X_OK) == 0)
            return file;
    return "";
}

// Reads the arguments of a saved finding, and restores its environment.
ExploreSettings read_saved(const std::string &path) {
    static Finding finding; // holds the arguments
    std::vector<char *> argv = {const_cast<char *>("rdma-sim"), const_cast<char *>("explore")};
    finding = read_finding(path);
    for (std::string &each : finding.arguments)
        argv.push_back(each.data());
    argv.push_back(nullptr);
    optind = 0;
    const std::vector<std::string> differences = restore_environment(finding);
    ExploreSettings settings = read_options(static_cast<int>(argv.size()) - 1, argv.data());
    settings.replay = path;
    settings.finding = finding;
    settings.differences = differences;
    return settings;
}

} // namespace

ExploreSettings read_options(int argc, char *argv[]) {
    ExploreSettings settings;
    settings.explores = argc > 1 && strcmp(argv[1], "explore") == 0;
    if (settings.explores) {
        argc--;
        argv++;
    }
    settings.fabric.hosts = 0;
    settings.fabric.profile = sim_find_profile("rxe");
    opterr = 1;
    std::vector<int> options;
    argv[0] = const_cast<char *>("rdma-sim");
    for (int option;
         (option = getopt_long(argc, argv, "+n:d:f:p:tu:s:lj:vVh", OPTIONS, nullptr)) != -1;) {
        read_option(settings, option, optarg);
        options.push_back(option);
    }
    if (!settings.replay.empty()) {
        const auto is_of_replay = [](int option) {
            return option == REPLAY || option == GDB || option == HTML || option == 'v';
        };
        if (!std::ranges::all_of(options, is_of_replay) || optind != argc)
            refuse("--replay takes the arguments from FILE, and no others but --gdb, --html "
                   "and --verbose");
        const std::string gdb = path_of("gdb"); // with the PATH of now, not that of the finding
        if (settings.gdb_host != 0 && gdb.empty())
            refuse("--gdb needs the program gdb, which is not installed");
        ExploreSettings saved = read_saved(settings.replay);
        check_commands(saved, "--gdb", settings.gdb_host);
        saved.gdb_host = settings.gdb_host;
        saved.gdb = gdb;
        saved.html = settings.html;
        saved.is_verbose = settings.is_verbose;
        return saved;
    }
    if (settings.gdb_host != 0)
        refuse("--gdb is for --replay");
    check_join(settings, options);
    if (settings.explores && settings.check.empty())
        refuse("explore needs --check CHECK: a command that fails if the programs have lost "
               "data; 'true' finds only failures, crashes and programs that wait for ever");
    for (int i = 1; i < argc; i++)
        settings.arguments.push_back(argv[i]);
    read_commands(settings, argv + optind);
    if (!settings.joins) {
        check_hosts(settings, settings.fabric.hosts != 0);
        return settings;
    }
    if (settings.commands.size() != 1)
        refuse("--join takes one COMMAND");
    settings.commands[0].host = settings.join_host;
    return settings;
}
