// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// report.cc -- the results, as a table or as JSON

#include "report.hh"

#include "failure.hh"
#include "message.hh"

#include <algorithm>
#include <ctime>
#include <fmt/chrono.h>
#include <sys/utsname.h>
#include <unistd.h>

static std::string version_text(uint32_t version) {
    return fmt::format("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff);
}

Side describe_side(const std::string &device, const std::string &memory) {
    utsname system;
    return {version_text(rpma_version()), uname(&system) ? "unknown" : system.release, device,
            memory};
}

double Result::rate() const {
    return (seconds > 0 ? static_cast<double>(operations) / seconds : 0) + server_rate();
}

double Result::server_rate() const {
    return server_ns
               ? static_cast<double>(server_operations) * 1e9 / static_cast<double>(server_ns)
               : 0;
}

double Result::mib_per_second() const {
    return rate() * static_cast<double>(size) / (1 << 20);
}

double Result::gbit_per_second() const {
    return rate() * static_cast<double>(size) * 8 / 1e9;
}

static double seconds_of(uint64_t ns) {
    return static_cast<double>(ns) / 1e9;
}

double Result::us(double part) const {
    return us_of(latency.at(part));
}

static double cpu_us(uint64_t cpu_ns, uint64_t all) {
    return all ? us_of(cpu_ns) / static_cast<double>(all) : 0;
}

double Result::client_cpu_us() const {
    return cpu_us(client_cpu_ns, operations + server_operations);
}

double Result::server_cpu_us() const {
    return cpu_us(server_cpu_ns, served + server_operations);
}

uint64_t Result::without_service_ns() const {
    uint64_t sum = 0;
    for (const Gap &gap : gaps)
        sum += gap.length_ns;
    return sum;
}

static std::string gaps_of(const Result &result) {
    uint64_t longest = 0;
    for (const Gap &gap : result.gaps)
        longest = std::max(longest, gap.length_ns);
    return result.gaps.empty()
               ? ""
               : fmt::format("  gaps {}, longest {:.3f} s, total {:.3f} s", result.gaps.size(),
                             seconds_of(longest), seconds_of(result.without_service_ns()));
}

// Settings that are printed only if they are set.
static std::string optional_settings(const Plan &plan) {
    std::string more;
    if (plan.region)
        more += fmt::format(", region {}{}", plan.region, plan.random ? " at random" : "");
    if (plan.reads)
        more += fmt::format(", reads {} %", plan.reads);
    if (plan.both)
        more += ", both directions";
    if (plan.rate)
        more += fmt::format(", rate {}", plan.rate);
    return more;
}

// ---- table ---------------------------------------------------------------------------------

namespace {

constexpr char HEADER[] =
    "{:<16} {:>8} {:>9} {:>8} {:>8} {:>8} {:>9} {:>9} {:>8} {:>7} {:>7} {:>7}\n";
constexpr char ROW[] =
    "{:<16} {:>8} {:>9} {:>8.2f} {:>8.2f} {:>8.2f} {:>9.2f} {:>9.0f} {:>8.2f} "
    "{:>7.3f} {:>7.2f} {:>7.2f}{}{}{}\n";

constexpr char INTERVAL_ROW[] = "{:<16} {:>8} {:>9} {:36} {:>9.0f} {:>8.2f} {:>7.3f}\n";

class Table : public Report {
  public:
    Table(const Options &options, const Side &client, const Side &server) {
        const Plan &plan = options.plan;
        fmt::print("client: librpma {}, {}, Linux {}\n", client.librpma, client.device,
                   client.kernel);
        fmt::print("server: librpma {}, {}, Linux {}, memory {}{}\n", server.librpma,
                   server.device, server.kernel, server.memory,
                   server.direct_write ? ", direct write stated" : "");
        fmt::print("depth {}, batch {}{}, elements {}, inline {}, connections {}, threads {}, "
                   "{}{}\n\n",
                   plan.depth, plan.batch, plan.prepared ? " prepared" : "", plan.elements,
                   plan.inline_size, plan.connections, plan.threads,
                   plan.poll ? "polling" : "waiting for events", optional_settings(plan));
        fmt::print(HEADER, "", "", "", "median", "p99", "p99.9", "max", "", "", "", "CPU/op",
                   "server");
        fmt::print(HEADER, "operation", "bytes", "operations", "us", "us", "us", "us", "op/s",
                   "MiB/s", "Gbit/s", "us", "us");
        check_output();
    }

    void add_interval(const Plan &plan, uint64_t from, uint64_t to, uint64_t count) override {
        const Result part{
            .size = plan.size, .operations = count, .seconds = seconds_of(to - from)};
        clear_progress();
        fmt::print(INTERVAL_ROW, fmt::format("  to {:.2f} s", seconds_of(to)), part.size, count,
                   "", part.rate(), part.mib_per_second(), part.gbit_per_second());
        check_output();
    }

    void add(const Result &result) override {
        clear_progress();
        fmt::print(ROW, result.op().name, result.size, result.operations, result.us(0.5),
                   result.us(0.99), result.us(0.999), us_of(result.latency.max), result.rate(),
                   result.mib_per_second(), result.gbit_per_second(), result.client_cpu_us(),
                   result.server_cpu_us(), result.is_verified ? "  verified" : "",
                   result.is_persistent() ? "  persistent as stated" : "", gaps_of(result));
        check_output();
    }
};

// ---- JSON; rpma-perf.schema.json describes it ----------------------------------------------

constexpr char MARK = '\1'; // precedes the text of a number

// A number with fixed decimals, which the JSON library cannot print.
std::string decimal(double value, int decimals = 3) {
    return fmt::format("{}{:.{}f}", MARK, value, decimals);
}

std::string text_of(const Json &report) {
    static const std::string quoted = Json(std::string(1, MARK)).dump().substr(0, 7);
    std::string text = report.dump(2);
    for (size_t at = 0; (at = text.find(quoted, at)) != std::string::npos;) {
        text.erase(at, quoted.size());
        text.erase(text.find('"', at), 1);
    }
    return text;
}

Json json_of(const Side &side) {
    return {{"librpma", side.librpma},
            {"kernel", side.kernel},
            {"device", side.device},
            {"memory", side.memory}};
}

Json settings_of(const Options &options) {
    Json object;
    for (const Setting &setting : settings) {
        const std::string_view name = setting.name;
        const uint64_t value = options.plan.*setting.field;
        if (name == "operation" || name == "size")
            continue; // printed for each result
        object[setting.name] = setting.max == 1 ? Json(value != 0) : Json(value);
    }
    object["reconnect"] = options.reconnect;
    object["warmup"] = options.limits.warmup;
    if (options.limits.count)
        object["count"] = options.limits.count;
    else
        object["duration_s"] = decimal(seconds_of(options.limits.duration_ns));
    return object;
}

Json latency_of(const Result &result) {
    const Histogram &latency = result.latency;
    return {{"min", decimal(latency.count ? us_of(latency.min) : 0)},
            {"mean", decimal(latency.mean() / 1000)},
            {"median", decimal(result.us(0.5))},
            {"p90", decimal(result.us(0.9))},
            {"p99", decimal(result.us(0.99))},
            {"p99_9", decimal(result.us(0.999))},
            {"max", decimal(us_of(latency.max))}};
}

Json intervals_of(const Result &result) {
    Json list = Json::array();
    uint64_t from = 0;
    for (const Interval &interval : result.intervals) {
        const double begin = seconds_of(from), end = seconds_of(from += result.interval_ns);
        const double last = std::min(end, std::max(result.seconds, begin + 1e-9));
        const auto count = static_cast<double>(interval.count);
        list.push_back({{"end_s", decimal(last)},
                        {"operations", interval.count},
                        {"operations_per_second", decimal(count / (last - begin))},
                        {"mean_us", decimal(count > 0 ? us_of(interval.sum) / count : 0)},
                        {"max_us", decimal(us_of(interval.max))}});
    }
    return list;
}

Json json_of(const std::vector<Gap> &gaps) {
    Json list = Json::array();
    for (const Gap &gap : gaps)
        list.push_back({{"begin_s", decimal(seconds_of(gap.begin_ns))},
                        {"seconds", decimal(seconds_of(gap.length_ns))}});
    return list;
}

class JsonReport : public Report {
  public:
    JsonReport(const Options &options, const Side &client, const Side &server)
        : shows_intervals_(options.shows_intervals), shows_gaps_(options.reconnect),
          report_{{"rpma_perf", fmt::format("{}.{}.{}", RPMA_VERSION_MAJOR, RPMA_VERSION_MINOR,
                                            RPMA_VERSION_PATCH)},
                  {"protocol", PROTOCOL},
                  {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time(nullptr)))},
                  {"address", options.address},
                  {"port", options.port},
                  {"client", json_of(client)},
                  {"server", json_of(server)},
                  {"direct_write_stated", server.direct_write},
                  {"settings", settings_of(options)},
                  {"results", Json::array()}} {}

    void add(const Result &result) override {
        report_["results"].push_back({
            {"operation", result.op().name},
            {"size", result.size},
            {"operations", result.operations},
            {"seconds", decimal(result.seconds, 6)}, // never 0
            {"latency_us", latency_of(result)},
            {"operations_per_second", decimal(result.rate())},
            {"bandwidth_mib_per_second", decimal(result.mib_per_second())},
            {"bandwidth_gbit_per_second", decimal(result.gbit_per_second())},
            {"cpu_us_per_operation",
             {{"client", decimal(result.client_cpu_us())},
              {"server", decimal(result.server_cpu_us())}}},
            {"verified", result.is_verified},
            {"persistence", result.is_persistent() ? "stated" : "not stated"},
        });
        if (shows_gaps_) {
            report_["results"].back()["gaps"] = json_of(result.gaps);
            report_["results"].back()["without_service_s"] =
                decimal(seconds_of(result.without_service_ns()));
        }
        if (shows_intervals_)
            report_["results"].back()["intervals"] = intervals_of(result);
        if (result.server_ns)
            report_["results"].back()["server_operations_per_second"] =
                decimal(result.server_rate());
    }

    void end() override {
        puts(text_of(report_).c_str());
        check_output();
    }

  private:
    const bool shows_intervals_, shows_gaps_;
    Json report_;
};

} // namespace

std::unique_ptr<Report> begin_report(const Options &options, const Side &client,
                                     const Side &server) {
    if (options.json)
        return std::make_unique<JsonReport>(options, client, server);
    return std::make_unique<Table>(options, client, server);
}

void show_progress(const Plan &plan, uint64_t operations_done, double seconds) {
    if (!isatty(STDERR_FILENO))
        return;
    fmt::print(stderr, "\r{}, {} bytes: {} operations in {:.1f} s\033[K", plan.op().name,
               plan.size, operations_done, seconds);
    fflush(stderr);
}

void clear_progress() {
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}
