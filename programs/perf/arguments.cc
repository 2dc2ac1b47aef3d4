// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// arguments.cc -- the command line

#include "arguments.hh"

#include "failure.hh"
#include "hints.hh"

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>
#include <span>

namespace {

constexpr char HELP[] =
    "usage: rpma-perf [--server] [OPTION]... ADDRESS    (ADDRESS is the server's)\n"
    "  -s, --server            serve all clients; -1, --once: only one\n"
    "  -p, --port PORT         of the server (7204)\n"
    "  -m, --memory PATH       server: use, and overwrite, a file or a device DAX\n"
    "      --direct-write      server: states direct write to PATH; see rpma-perf(1)\n"
    "      --limit BYTES       server: DRAM for the loads of all clients (1G)\n"
    "  -o, --operation LIST    write, read, flush-visibility, flush-persistent, send,\n"
    "                          atomic-write, ping-pong, ping-pong-rcq, fetch-add,\n"
    "                          compare-swap, connect, all (write)\n"
    "  -b, --size LIST         bytes: 64,4K or, doubling, 1:64K (64)\n"
    "  -d, --depth N, --batch N  outstanding per connection, and posted by one call\n"
    "      --prepared          create the batches once, and post them repeatedly\n"
    "  -e, --elements N        SGEs of each operation (1)\n"
    "  -i, --inline BYTES      operations up to this size carry their data (0)\n"
    "  -c, --connections N     in all, for -t, --threads N (1) on both sides\n"
    "  -D, --duration SECONDS  of a measurement (3); --interval SECONDS: of reports\n"
    "  -n, --count N           of each connection, after -w, --warmup N (100)\n"
    "      --region BYTES      of each connection at the server; --random: anywhere\n"
    "      --reads PERCENT, --rate N  reads among writes; most operations per second\n"
    "      --both, --poll      both directions at once; never wait for completions\n"
    "      --verify            check every byte; --reconnect: continue after a loss\n"
    "  -j, --json, --plot FILE  print results as JSON; draw them as an SVG\n"
    "  -h, --help, -V, --version  print this, or the versions\n"
    "Report bugs at https://example.org/librpma/issues\n";

constexpr size_t SIZES_MAX = 64;

[[noreturn]] void refuse(std::string_view line) {
    print_error(line);
    exit(EXIT_USAGE);
}

// A number may end with a unit, a power of 1024.
uint64_t number_of_text(std::string_view option, std::string_view text, uint64_t min,
                        uint64_t max) {
    constexpr std::string_view UNITS = "KMGkmg";
    uint64_t value = 0;
    const char *end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, value);
    const size_t unit = rest == end ? std::string_view::npos : UNITS.find(*rest);
    const unsigned shift =
        unit == std::string_view::npos ? 0 : static_cast<unsigned>(unit % 3 + 1) * 10;
    rest += shift ? 1 : 0;
    if (error != std::errc() || rest != end || value > max >> shift || value << shift < min)
        refuse(fmt::format("--{} takes a number from {} to {}, not \"{}\"{}", option, min, max,
                           escaped(std::string(text)), hint_for_value(option, text)));
    return value << shift;
}

// Keeps empty parts: they are rejected like other bad values.
std::vector<std::string> split_at_commas(const std::string &text) {
    std::vector<std::string> parts(1);
    for (const char c : text)
        if (c == ',')
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

void add_operations(Options &options, const std::string &list) {
    for (const std::string &name : split_at_commas(list)) {
        const bool is_all = name == "all";
        const uint64_t found = is_all ? 0 : find_operation(name);
        if (found == OPERATION_COUNT)
            refuse(fmt::format("--operation: there is no operation \"{}\"{}; --help lists them",
                               escaped(name), hint_for_value("operation", name)));
        options.includes_all |= is_all;
        for (uint64_t i = found; i < (is_all ? OPERATION_COUNT : found + 1); i++)
            if (!is_all || !operations[i].is_connect()) // "connect" has other options
                options.operations.push_back(i);
    }
    if (options.operations.size() > OPERATION_COUNT)
        refuse("--operation names more operations than exist");
}

// Each part is one size, or a sweep from the first to the last size.
void add_sizes(Options &options, const std::string &list) {
    for (const std::string &part : split_at_commas(list)) {
        const size_t colon = part.find(':');
        uint64_t size = number_of_text("size", part.substr(0, colon), 1, OPERATION_SIZE_MAX);
        const uint64_t greatest =
            colon == std::string::npos
                ? size
                : number_of_text("size", part.substr(colon + 1), size, OPERATION_SIZE_MAX);
        for (; size <= greatest; size *= 2)
            options.sizes.push_back(size);
    }
    if (options.sizes.size() > SIZES_MAX)
        refuse(fmt::format("--size takes at most {} sizes", SIZES_MAX));
}

uint64_t nanoseconds(std::string_view option, const std::string &text) {
    double seconds = 0;
    const char *const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, seconds);
    if (text[0] < '0' || error != std::errc() || rest != end ||
        !(seconds >= 0.001 && seconds <= DURATION_MAX_S))
        refuse(fmt::format("--{} takes seconds from 0.001 to {}, not \"{}\"", option,
                           DURATION_MAX_S, escaped(text)));
    return static_cast<uint64_t>(seconds * 1e9);
}

// Parses the arguments, and checks them against the mode.
class Reader {
  public:
    explicit Reader(Options &parsed);
    void read(int argc, char *argv[]);

  private:
    enum Side { BOTH, SERVER, CLIENT };
    using Text = std::string;

    void add(Side side, const char *names, std::function<void(const Text &)> take) {
        sides_[app_.add_option_function<Text>(names, std::move(take))] = side;
    }
    // Uses a callback, because CLI11 2.4 counts flags with a variable even if they are not
    // given.
    template <class Value> void add_flag(Side side, const char *names, Value &value) {
        sides_[app_.add_flag_callback(names, [&value] { value = true; })
                   ->disable_flag_override()] = side;
    }
    void add_number(Side side, const Text &names, uint64_t &value, uint64_t min, uint64_t max) {
        const Text name = names.substr(names.rfind('-') + 1);
        add(side, names.c_str(), [&value, name, min, max](const Text &text) {
            value = number_of_text(name, text, min, max);
        });
    }
    void add_setting(const char *names);
    void add_all();

    static Text name_of(const CLI::Option *option) { return option->get_lnames().at(0); }
    bool is_given(const char *name) const { return app_.count(name) > 0; }
    void parse(int argc, char *argv[]);
    void check_side() const;
    void complete();

    Options &options_;
    CLI::App app_;
    std::map<const CLI::Option *, Side> sides_;
    std::vector<Text> addresses_;
    bool is_help_ = false, is_version_ = false;
};

Reader::Reader(Options &parsed) : options_(parsed) {
    app_.set_help_flag();
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_all();
}

// Adds a setting of the plan; as a flag if its values are 0 and 1.
void Reader::add_setting(const char *names) {
    const std::string_view name = std::strrchr(names, '-') + 1;
    for (const Setting &setting : settings)
        if (setting.name == name && setting.max == 1)
            add_flag(CLIENT, names, options_.plan.*setting.field);
        else if (setting.name == name)
            add_number(CLIENT, names, options_.plan.*setting.field, setting.min, setting.max);
}

void Reader::add_all() {
    const std::tuple<Side, const char *, bool *> flags[] = {
        {SERVER, "-s,--server", &options_.is_server},
        {SERVER, "--direct-write", &options_.direct_write},
        {SERVER, "-1,--once", &options_.once},
        {CLIENT, "--reconnect", &options_.reconnect},
        {CLIENT, "-j,--json", &options_.json},
        {BOTH, "-h,--help", &is_help_},
        {BOTH, "-V,--version", &is_version_},
    };
    const std::tuple<Side, const char *, Text *> texts[] = {
        {SERVER, "-m,--memory", &options_.memory},
        {CLIENT, "--plot", &options_.plot},
    };
    const std::tuple<Side, const char *, uint64_t *, uint64_t> numbers[] = {
        {SERVER, "--limit", &options_.limit, PLACE_ALIGNMENT},
        {CLIENT, "-n,--count", &options_.limits.count, 1},
        {CLIENT, "-w,--warmup", &options_.limits.warmup, 0},
    };
    for (const auto &[side, names, value] : flags)
        add_flag(side, names, *value);
    for (const auto &[side, names, value] : texts)
        add(side, names, [to = value](const Text &text) { *to = text; });
    for (const auto &[side, names, value, least] : numbers)
        add_number(side, names, *value, least, UINT64_C(1) << 40);
    for (const char *names :
         {"-d,--depth", "--batch", "--prepared", "-e,--elements", "-i,--inline",
          "-c,--connections", "-t,--threads", "--poll", "--verify", "--region", "--random",
          "--reads", "--both", "--rate"})
        add_setting(names);
    add(BOTH, "-p,--port", [this](const Text &text) {
        options_.port = std::to_string(number_of_text("port", text, 1, 65535));
    });
    add(CLIENT, "-o,--operation", [this](const Text &text) { add_operations(options_, text); });
    add(CLIENT, "-b,--size", [this](const Text &text) { add_sizes(options_, text); });
    add(CLIENT, "-D,--duration", [this](const Text &text) {
        options_.limits.duration_ns = nanoseconds("duration", text);
    });
    add(CLIENT, "--interval", [this](const Text &text) {
        options_.limits.interval_ns = nanoseconds("interval", text);
        options_.shows_intervals = true;
    });
    app_.add_option("ADDRESS", addresses_);
}

// The hint for the first --option=value that has one.
std::string hint_for_assignments(int argc, char *argv[]) {
    for (const std::string_view argument : std::span(argv, static_cast<size_t>(argc)))
        if (const size_t equals = argument.find('=');
            argument.starts_with("--") && equals != std::string_view::npos)
            if (std::string hint =
                    hint_for_value(argument.substr(2, equals - 2), argument.substr(equals + 1));
                !hint.empty())
                return hint;
    return "";
}

void Reader::parse(int argc, char *argv[]) {
    try {
        app_.parse(argc, argv);
    } catch (const CLI::ExtrasError &) {
        const Text extra = app_.remaining().at(0);
        refuse(fmt::format("unrecognized option '{}'{}; see --help", extra,
                           hint_for_unknown(extra)));
    } catch (const CLI::ParseError &error) {
        refuse(error.what() + hint_for_assignments(argc, argv));
    }
    if (is_help_ || is_version_) {
        const uint32_t version = rpma_version();
        if (is_help_)
            fputs(HELP, stdout);
        else
            fmt::print("rpma-perf {}.{}.{}, librpma {}.{}.{}\n", RPMA_VERSION_MAJOR,
                       RPMA_VERSION_MINOR, RPMA_VERSION_PATCH, version >> 16,
                       version >> 8 & 0xff, version & 0xff);
        check_output();
        exit(EXIT_SUCCESS);
    }
}

// The client sends all settings of a load to the server, which has few options.
void Reader::check_side() const {
    for (const auto &[option, side] : sides_)
        if (option->count() && options_.is_server && side == CLIENT)
            refuse(fmt::format("--{} is for the client, which sends it to the server",
                               name_of(option)));
        else if (option->count() && !options_.is_server && side == SERVER)
            refuse(fmt::format("--{} is for the server{}: add --server", name_of(option),
                               hint_for_value(name_of(option), option->results().back())));
    if (options_.direct_write && options_.memory.empty())
        refuse("--direct-write states a property of persistent memory: add --memory");
    if (!options_.memory.empty() && is_given("--limit"))
        refuse("--limit is for DRAM: with --memory, the size of PATH is the limit");
}

void Reader::complete() {
    if (options_.operations.empty())
        options_.operations = {0};
    if (options_.sizes.empty())
        options_.sizes = {options_.plan.size};
    if (!is_given("--depth"))
        options_.plan.depth = options_.plan.batch;
    if (!is_given("--connections"))
        options_.plan.connections = options_.plan.threads;
    if (is_given("--duration") && is_given("--count"))
        refuse("--duration and --count exclude each other");
    if (options_.reconnect &&
        (is_given("--count") || options_.plan.verify || options_.plan.both))
        refuse("--reconnect measures for a --duration, without --count, --verify or --both");
    if (!options_.plot.empty() &&
        !options_.limits.interval_ns) // the number of intervals that a plot can show
        options_.limits.interval_ns =
            options_.limits.count
                ? 10000000
                : std::max(options_.limits.duration_ns / 200, UINT64_C(1000000));
    for (const uint64_t operation : options_.operations)
        for (const Plan &plan : options_.plans(operation))
            if (const auto conflict = plan.conflict(); !conflict.empty())
                refuse(fmt::format("{}: {}", plan.op().name, conflict));
}

void Reader::read(int argc, char *argv[]) {
    parse(argc, argv);
    check_side();
    if (addresses_.size() != 1)
        refuse(addresses_.empty()
                   ? "ADDRESS of the server is missing; see --help"
                   : fmt::format("only one ADDRESS can be given{}; see --help",
                                 options_.is_server ? hint_for_value("server", "") : ""));
    options_.address = addresses_[0];
    complete();
}

} // namespace

std::vector<Plan> Options::plans(uint64_t operation) const {
    const Operation &op = ::operations[operation];
    std::vector<Plan> all;
    for (const uint64_t size : sizes) {
        all.push_back(plan);
        all.back().operation = operation;
        all.back().size = op.is_connect() ? 0 : op.is_atomic() ? ATOMIC_SIZE : size;
    }
    if (op.is_atomic() || op.is_connect())
        all.resize(1);
    return all;
}

Options read_options(int argc, char *argv[]) {
    Options options;
    Reader(options).read(argc, argv);
    return options;
}
