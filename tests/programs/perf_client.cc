// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_client.cc -- a client of rpma-perf: its behaviour towards servers that follow or violate
// the protocol, and its reports of loads with known times

#include "perf_script.hh"

#include <fstream>
#include <numeric>
#include <unistd.h>

static std::string welcome(bool direct_write = false, bool atomics = true) {
    return text_of("welcome", {{"librpma", "1"},
                               {"kernel", "1"},
                               {"device", "d"},
                               {"memory", "dram"},
                               {"direct_write", direct_write},
                               {"atomics", atomics}});
}

static std::string ready() {
    return text_of("ready", {{"session", 7}, {"target", TARGET}});
}

static std::string result(uint64_t cpu_ns, uint64_t operations = 0, uint64_t ns = 0) {
    return text_of("result", {{"cpu_ns", cpu_ns}, {"operations", operations}, {"ns", ns}});
}

static std::string refusal(const char *reason) {
    return text_of("refused", {{"reason", reason}});
}

static std::span<const uint64_t> second_group;

// Breaks the connection 5 ms after the first groups have completed.
static void break_connection(const std::string &) {
    finish_groups();
    now += 5000000;
    group_times = second_group;
    disconnect_control("");
}

static void stop(const std::string &) {
    finish_groups();
    interrupt("");
}

static const Actions &actions() {
    static const Actions all = {
        {"establish", {{establish, GREETING}}},
        {"foreign reply", {{establish, "hello"}}},
        {"old server", {{establish, "rpma-perf 2 control 0 0"}}},
        {"reject", {{refuse}}},
        {"reject as busy", {{refuse, "rpma-perf 4 full 0 0"}}},
        {"ignore", {{ignore_connecting}}},
        {"unreachable", {{fail_connecting, std::to_string(RDMA_CM_EVENT_UNREACHABLE)}}},
        {"connect error", {{fail_connecting, std::to_string(RDMA_CM_EVENT_CONNECT_ERROR)}}},
        {"flushed", {{fail_receive, std::to_string(IBV_WC_WR_FLUSH_ERR)}}},
        {"times out", {{fail_receive, std::to_string(IBV_WC_RETRY_EXC_ERR)}}},
        {"device fails", {{fail_device}}},
        {"unexpected connection event", {{send_unexpected_connection_event}}},
        {"unexpected control event", {{send_unexpected_event}}},
        {"welcome", {{send_message, welcome(), "hello"}}},
        {"no atomics", {{send_message, welcome(true, false), "hello"}}},
        {"ready", {{send_message, ready(), "plan"}}},
        {"begin ok", {{send_message, text_of("ok"), "begin"}}},
        {"measure ok", {{send_message, text_of("ok"), "measure"}}},
        {"result", {{send_message, result(3000), "stop"}}},
        {"ok", {{send_message, text_of("ok")}}},
        {"refuse plan", {{send_message, refusal("why"), "plan"}}},
        {"refuse begin", {{send_message, refusal("why"), "begin"}}},
        {"refuse measure", {{send_message, refusal("why"), "measure"}}},
        {"refuse", {{send_message, refusal("why")}}},
        {"disconnect", {{disconnect_control}}},
        {"disconnect after plan", {{disconnect_control, "", "plan"}}},
        {"connection ends", {{disconnect_connection}}},
        {"break", {{break_connection}}},
        {"interrupt", {{interrupt}}},
        {"interrupt after groups", {{stop}}},
        {"interrupt after failure", {{interrupt, "", "never"}}},
        {"alive", {{send_message, text_of("ok"), "alive", true}}},
        {"interrupt later", {{interrupt, "", "alive", true}}},
        {"50 s later", {{pause_50_s, "", "alive", true}}},
        {"50 s", {{pause_50_s}}},
        {"time passes", {{pause_50_s, "", "never", true}}},
    };
    return all;
}
#define WELCOMED "establish, welcome, "
#define PREPARED WELCOMED "ready, "
#define MEASURED PREPARED "establish, begin ok, measure ok, "

// Options for single writes of 8 bytes, one at a time.
static Options options_of_client() {
    Options options;
    options.address = "192.168.0.1";
    options.operations = {0};
    options.sizes = {8};
    options.plan = plan_of_test("write");
    options.limits = {.warmup = 0, .count = 1};
    return options;
}

// ---- a server that violates the protocol ---------------------------------------------------

struct Scenario {
    const char *name;
    const char *script;
    const char *failure;
    const char *sent; // messages of the client
    uint64_t ms = 0;  // time that must pass
    void (*change)(Options &) = [](Options &) {};
    const char *printed = ""; // part of the client's output
};

template <uint64_t... numbers> static void operate(Options &options) {
    options.operations = {numbers...};
    options.includes_all = sizeof...(numbers) > 1;
}
static constexpr uint64_t PERSISTENT = 3, FETCH_ADD = 8, CONNECT = 10;

static void reconnect(Options &options) {
    options.reconnect = options.json = true;
    options.limits = {.warmup = 0, .duration_ns = UINT64_C(500000000000)};
}

static const Scenario scenarios[] = {
    {"a server that is not rpma-perf gets no message", "foreign reply",
     "192.168.0.1 port 7204 is not rpma-perf", ""},
    {"a server of another version gets no message", "old server",
     "the server uses version 2 of the protocol, this client version 4: use the same "
     "rpma-perf on both sides",
     ""},
    {"no listener", "reject",
     "the connection is refused: no server listens there, or one that expects something else",
     ""},
    {"the server is busy", "reject as busy",
     "the connection is refused: the server has its maximum number of clients", ""},
    {"no reply", "ignore", "the other side does not reply", "", 60000},
    {"the server is unreachable", "unreachable", "the other side does not reply", ""},
    {"the connection fails", "connect error",
     "the other side closed the connection while connecting", ""},
    {"interrupted while connecting", "interrupt", "interrupted while connecting", ""},
    {"no reply to a message", "establish", "the server does not reply", "hello", 60000},
    {"the device of the server does not reply either", "establish, device fails",
     "the other side does not reply to keepalives", "hello", 60000},
    {"a message that cannot be delivered", "establish, times out",
     "the other side does not reply to keepalives", "hello"},
    {"the end of the connection is noticed by its receive", "establish, flushed",
     "the other side closed the connection", "hello"},
    {"interrupted while waiting", "establish, interrupt", "interrupted", "hello"},
    {"an unexpected event of the control connection is ignored",
     "establish, unexpected control event, welcome, refuse plan", "the server refuses: why",
     "hello, plan"},
    {"an unexpected reply", "establish, ok", "the server refuses: no reason given", "hello"},
    {"a plan is refused", WELCOMED "refuse plan", "the server refuses: why", "hello, plan"},
    {"the server disconnects", WELCOMED "disconnect after plan",
     "the other side closed the connection", "hello, plan"},
    {"a connection of the load is not established", PREPARED "ignore",
     "the other side does not reply", "hello, plan", 60500},
    {"interrupted while the load connects", PREPARED "interrupt",
     "interrupted while connecting", "hello, plan"},
    {"the server refuses while the load connects", PREPARED "refuse", "the server refuses: why",
     "hello, plan", 500},
    {"a refused connection", PREPARED "reject",
     "the connection is refused: no server listens there, or one that expects something else",
     "hello, plan", 500},
    {"the reason of a refused connection arrives later", PREPARED "reject, refuse",
     "the server refuses: why", "hello, plan"},
    {"a second refused connection changes nothing", PREPARED "reject, reject, refuse",
     "the server refuses: why", "hello, plan", 0,
     [](Options &options) { options.plan.connections = 2; }},
    {"the load does not begin", PREPARED "establish, refuse begin", "the server refuses: why",
     "hello, plan, begin"},
    {"an unexpected message from the server", MEASURED "ok, time passes",
     "unexpected message from the server", "hello, plan, begin, measure"},
    {"a connection of the load ends", MEASURED "connection ends, time passes",
     "the other side closed the connection", "hello, plan, begin, measure"},
    {"a server that replies, but completes nothing, is a failure", MEASURED "50 s later, ok",
     "no operation completed for 60 s", "hello, plan, begin, measure, alive", 60000},
    // The client sends a keepalive message after 5 s, and again 5 s later.
    {"a client sends messages during the whole load", MEASURED "alive, interrupt later",
     "interrupted", "hello, plan, begin, measure, alive, alive", 10000},
    {"no flush is persistent without a statement", "establish, welcome",
     "flush-persistent: the server states no direct write to persistent memory: start it with "
     "--memory and --direct-write if its platform has it (see rpma-perf(1))",
     "hello", 0, operate<PERSISTENT>},
    {"a server without atomics", "establish, no atomics",
     "fetch-add: the device d of the server has no remote atomics", "hello", 0,
     operate<FETCH_ADD>},
    {"unsupported operations of all are skipped", "establish, no atomics, refuse plan",
     "the server refuses: why", "hello, plan", 0, operate<FETCH_ADD, PERSISTENT>,
     "fetch-add is skipped: the device d of the server has no remote atomics"},
    {"a plot that cannot be written is reported", "establish, welcome",
     "cannot write /nowhere/x: No such file or directory", "hello", 0,
     [](Options &options) { options.plot = "/nowhere/x"; }},
    {"interrupted while measuring", MEASURED "interrupt", "interrupted",
     "hello, plan, begin, measure"},
    {"interrupted after a break", MEASURED "disconnect, interrupt", "interrupted",
     "hello, plan, begin, measure", 100, reconnect},
    {"unexpected events of connections are ignored",
     PREPARED "establish, begin ok, unexpected connection event, measure ok, unexpected "
              "connection event, connection ends, time passes",
     "the other side closed the connection", "hello, plan, begin, measure"},
    {"a load of connections makes them itself", PREPARED "begin ok, refuse measure",
     "the server refuses: why", "hello, plan, begin, measure", 0, operate<CONNECT>},
    {"a server that is silent during the warm-up", PREPARED "establish, begin ok, time passes",
     "the server does not reply", "hello, plan, begin, alive", 65000,
     [](Options &options) { options.limits.warmup = 1; }},
    {"intervals without an operation are shown", MEASURED "alive, interrupt later",
     "interrupted", "hello, plan, begin, measure, alive, alive", 10500,
     [](Options &options) {
         options.shows_intervals = true;
         options.limits.interval_ns = 700000000;
     },
     "\n  to 0.70 s             8         0                                              0     "
     "0.00   0.000\n  to 1.40 s "},
    {"a break ends a run that does not reconnect", MEASURED "disconnect",
     "the other side closed the connection", "hello, plan, begin, measure"},
    {"a server that does not restart", MEASURED "disconnect",
     "no operation completed for 60 s: the other side does not reply",
     "hello, plan, begin, measure", 62000, reconnect},
};

TEST_THAT(client_handles_each_scenario) {
    for (const Scenario &scenario : scenarios) {
        Options options = options_of_client();
        scenario.change(options);
        assert_int_equal(unit_setup(nullptr), 0);
        const Outcome outcome = run_client_with(options, script_of(actions(), scenario.script));
        expect_equal(scenario.name, outcome.failure, scenario.failure);
        expect_equal(scenario.name, sent_summary(), scenario.sent);
        expect_part(scenario.name, outcome.text, scenario.printed);
        expect_equal(scenario.name, std::to_string(elapsed_ms()), std::to_string(scenario.ms));
        assert_int_equal(unit_teardown(nullptr), 0);
    }
}

TEST_THAT(client_without_atomics_reports_it) {
    fake_profile()->attr.atomic_cap = IBV_ATOMIC_NONE;
    Options options = options_of_client();
    operate<FETCH_ADD>(options);
    const std::string failure =
        run_client_with(options, script_of(actions(), "establish, welcome")).failure;
    expect_part("failure", failure, " of the client has no remote atomics");
}

// ---- known results --------------------------------------------------------------------------

// Runs one load of the client with the given completion times of its groups. The processor
// times are for all operations together.
static std::string report_of(Options options, const Plan &plan, const Limits &limits,
                             const std::vector<uint64_t> &times, uint64_t cpu,
                             uint64_t server_cpu) {
    group_times = times;
    group_size = plan.depth * plan.connections;
    cpu_step = cpu;
    options.operations = {plan.operation};
    options.sizes = {plan.size};
    options.plan = plan;
    options.limits = limits;
    options.shows_intervals = limits.interval_ns;
    std::string script = PREPARED;
    for (uint64_t i = 0; i < plan.connections; i++)
        script += "establish, ";
    std::vector<ScriptStep> steps =
        script_of(actions(), script + "begin ok, measure ok, result");
    steps.back().text = plan.both ? result(server_cpu, 3, 12000) : result(server_cpu);
    const Outcome outcome = run_client_with(options, steps);
    expect_equal("failure", outcome.failure, "");
    assert_int_equal(outcome.status, EXIT_SUCCESS);
    assert_true(group_times.empty());
    group_times = {};
    cpu_step = 0;
    return outcome.text;
}

static std::string last_line(const std::string &text) {
    const size_t end = text.size() - 1;
    return text.substr(text.rfind('\n', end - 1) + 1);
}

static const struct {
    Plan plan;
    Limits limits;
    std::vector<uint64_t> times;
    uint64_t cpu, server_cpu;
    const char *line;
    const char *done;      // operations of each connection, as the client reports them
    const char *part = ""; // a part of the text before the line
} known_reports[] = {
    // Five writes of 8 bytes in 20 us: 250,000 per second, 1.907 MiB and 0.016 Gbit; the
    // warm-up is excluded. The bucket of a latency of 3,000 ns ends with 3,007; p99 and above
    // are the maximum, which is exact. An interval of 6 us is shown only when the client wakes
    // up, here at the end.
    {plan_of_test("write"),
     {2, 5, 0, 6000},
     {7000, 9000, 1000, 2000, 3000, 4000, 10000},
     7500,
     2500,
     "write                   8         5     3.01    10.00    10.00     10.00    250000     "
     "1.91"
     "   0.016    1.50    0.50\n",
     "[7]",
     "\n  to 0.00 s             8         5                                         250000     "
     "1.91   0.016\n"},
    // Operations that are posted before the end of the duration are included. The first one
    // posted at or after it ends the load: with 4 ms per operation and 8 ms, the third.
    {plan_of_test("write"),
     {0, 0, 8000000},
     {4000000, 4000000, 4000000},
     30000,
     0,
     "write                   8         3  4000.00  4000.00  4000.00   4000.00       250     "
     "0.00"
     "   0.000   10.00    0.00\n",
     "[3]"},
    // Two connections, each with four outstanding operations, which are posted in pairs: 16
    // operations in two groups of 5 ms in all, 3,200 per second.
    {plan_of_test("read",
                  {.size = 1024, .depth = 4, .batch = 2, .connections = 2, .threads = 2}),
     {0, 8, 0},
     {2000000, 3000000},
     16000000,
     800000,
     "read                 1024        16  2002.94  3000.00  3000.00   3000.00      3200     "
     "3.12"
     "   0.026 1000.00   50.00\n",
     "[8,8]"},
    // The flush of a verified load is not counted as an operation.
    {plan_of_test("write", {.size = 8, .verify = 1}),
     {0, 2, 0},
     {1000, 1000, 5000},
     2000,
     0,
     "write                   8         2     1.00     1.00     1.00      1.00   1000000     "
     "7.63"
     "   0.064    1.00    0.00  verified\n",
     "[2]"},
    // With both directions, the report includes the three operations that the server executes
    // in 12 us, but not the warm-up.
    {plan_of_test("write", {.size = 8, .both = 1}),
     {0, 2, 0},
     {5000, 1000, 1000},
     2000,
     5000,
     "write                   8         2     1.00     1.00     1.00      1.00   1250000     "
     "9.54"
     "   0.080    0.40    1.00\n",
     "[3]"},
};

TEST_THAT(load_is_reported_in_one_line) {
    for (const auto &[plan, limits, times, cpu, server_cpu, line, done, part] : known_reports) {
        assert_int_equal(unit_setup(nullptr), 0);
        const std::string text =
            report_of(options_of_client(), plan, limits, times, cpu, server_cpu);
        expect_equal("line", last_line(text), line);
        expect_part("before the line", text, part);
        expect_part("messages", sent_summary(), std::string("stop ") + done);
        assert_int_equal(now - START, std::accumulate(times.begin(), times.end(), UINT64_C(0)));
    }
}

// The same load as JSON, in intervals of 6 us: the operations end after 1, 3, 6, 10 and 20 us.
TEST_THAT(load_is_reported_as_json) {
    const auto &[plan, limits, times, cpu, server_cpu, line, done, part] = known_reports[0];
    Options options = options_of_client();
    options.json = true;
    const Json report = Json::parse(report_of(options, plan, limits, times, cpu, server_cpu));
    expect_equal("results", report["results"].dump(),
                 R"([{"operation":"write","size":8,"operations":5,"seconds":2e-05,)"
                 R"("latency_us":{"min":1.0,"mean":4.0,"median":3.007,"p90":10.0,)"
                 R"("p99":10.0,"p99_9":10.0,"max":10.0},)"
                 R"("operations_per_second":250000.0,"bandwidth_mib_per_second":1.907,)"
                 R"("bandwidth_gbit_per_second":0.016,)"
                 R"("cpu_us_per_operation":{"client":1.5,"server":0.5},)"
                 R"("verified":false,"persistence":"not stated","intervals":[)"
                 R"({"end_s":0.0,"operations":2,"operations_per_second":333333.333,)"
                 R"("mean_us":1.5,"max_us":2.0},)"
                 R"({"end_s":0.0,"operations":2,"operations_per_second":333333.333,)"
                 R"("mean_us":3.5,"max_us":4.0},)"
                 R"({"end_s":0.0,"operations":0,"operations_per_second":0.0,)"
                 R"("mean_us":0.0,"max_us":0.0},)"
                 R"({"end_s":0.0,"operations":1,"operations_per_second":500000.0,)"
                 R"("mean_us":10.0,"max_us":10.0}]}])");
    expect_equal(
        "settings", report["settings"].dump(),
        R"({"depth":1,"batch":1,"prepared":false,"elements":1,"inline":0,"connections":1,)"
        R"("threads":1,"poll":false,"verify":false,"region":0,"random":false,"reads":0,)"
        R"("both":false,"rate":0,"reconnect":false,"warmup":2,"count":5})");
}

// A break interrupts operations of 1 ms. The gap begins at the end of the second one and ends
// with the first of the new connection: 5 ms without operations, and its own 2 ms. Without a
// new connection, the gap lasts until the end of the duration.
TEST_THAT(gap_is_reported) {
    static const std::vector<uint64_t> before = {5000000, 1000000, 1000000},
                                       after = {2000000, 2000000, 2000000},
                                       long_after = {2000000, 8000000, 1000000}, none;
    const struct {
        const char *script;
        const std::vector<uint64_t> &after;
        uint64_t duration_ns;
        const char *gaps, *without, *seconds, *cpu;
        std::vector<uint64_t> operations; // per interval of 4 ms
        size_t loads = 1;
    } cases[] = {{MEASURED "break, " MEASURED "result",
                  after,
                  10000000,
                  R"([{"begin_s":0.002,"seconds":0.007}])",
                  "0.007",
                  "0.013",
                  R"({"client":4.0,"server":1.0})",
                  {2, 0, 2, 1}},
                 {MEASURED "break",
                  none,
                  10000000000,
                  R"([{"begin_s":0.002,"seconds":9.998}])",
                  "9.998",
                  "10.0",
                  R"({"client":5.0,"server":0.0})",
                  {2}},
                 // The next load connects after a gap that has not ended.
                 {MEASURED "break, " MEASURED "result",
                  long_after,
                  7000000,
                  R"([{"begin_s":0.002,"seconds":0.005}])",
                  "0.005",
                  "0.007",
                  R"({"client":5.0,"server":0.0})",
                  {2},
                  2},
                 // A second break before any operation extends the gap.
                 {MEASURED "break, " MEASURED "break",
                  none,
                  10000000000,
                  R"([{"begin_s":0.002,"seconds":9.998}])",
                  "9.998",
                  "10.0",
                  R"({"client":10.0,"server":0.0})",
                  {2}}};
    cpu_step = 10000;
    for (const auto &[script, groups, duration_ns, gaps, without, seconds, cpu, operations,
                      loads] : cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        group_times = before;
        second_group = groups;
        group_size = 1;
        Options options = options_of_client();
        reconnect(options);
        options.shows_intervals = true;
        options.sizes.resize(loads, 8);
        options.limits = {1, 0, duration_ns, 4000000};
        const Outcome outcome = run_client_with(options, script_of(actions(), script));
        expect_equal("failure", outcome.failure, "");
        const Json results = Json::parse(outcome.text)["results"], &report = results[0];
        assert_int_equal(results.size(), loads);
        expect_equal("gaps", report["gaps"].dump(), gaps);
        expect_equal("without service", report["without_service_s"].dump(), without);
        expect_equal("seconds", report["seconds"].dump(), seconds);
        expect_equal("processor time", report["cpu_us_per_operation"].dump(), cpu);
        std::vector<uint64_t> found;
        for (const Json &interval : report["intervals"])
            found.push_back(interval["operations"]);
        assert_true(found == operations);
        assert_int_equal(report["operations"].get<uint64_t>(),
                         std::accumulate(found.begin(), found.end(), UINT64_C(0)));
    }
    cpu_step = 0;
}

static std::string content_of(const std::string &path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// The plot contains all loads and is written at the end.
TEST_THAT(plot_is_written) {
    char path[] = "/tmp/rpma-perf-XXXXXX";
    close(mkstemp(path));
    const struct {
        std::string path, failure;
    } cases[] = {{path, ""}, {"/dev/full", "cannot write /dev/full: No space left on device"}};
    for (const auto &[plot, failure] : cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        const std::vector<uint64_t> times = {1000};
        group_times = times;
        group_size = 1;
        Options options = options_of_client();
        options.plot = plot;
        const Outcome outcome =
            run_client_with(options, script_of(actions(), MEASURED "result"));
        expect_equal("failure", outcome.failure, failure);
    }
    const std::string svg = content_of(path);
    expect_part("title", svg, "write, 8 bytes");
    unlink(path);
}

// A load that fails leaves the plot of an earlier run as it is, and no other file.
TEST_THAT(plot_of_a_failed_load_keeps_its_old_content) {
    char directory[] = "/tmp/rpma-perf-XXXXXX";
    assert_non_null(mkdtemp(directory));
    const std::string path = std::string(directory) + "/plot";
    std::ofstream(path) << "old";
    Options options = options_of_client();
    options.plot = path;
    const Outcome outcome = run_client_with(options, script_of(actions(), MEASURED "refuse"));
    assert_false(outcome.failure.empty());
    expect_equal("content", content_of(path), "old");
    unlink(path.c_str());
    assert_int_equal(rmdir(directory), 0);
}

// Each connection of a load has the expected queue sizes, inline size, access flags and
// address, and sends the number of its session.
TEST_THAT(client_prepares_its_connections) {
    constexpr unsigned OWN = IBV_ACCESS_LOCAL_WRITE,
                       BOTH = OWN | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    const struct {
        const char *operation;
        Plan plan;
        uint32_t sends, receives, elements, inlined;
        unsigned access;
        sim_transport transport = SIM_ROCE;
    } cases[] = {
        {"write", {.size = 64, .depth = 4, .elements = 2, .inline_size = 64}, 5, 1, 2, 64, OWN},
        {"write", {.size = 64, .both = 1}, 2, 1, 1, 8, BOTH},
        {"fetch-add",
         {.size = 8, .inline_size = 8, .both = 1},
         2,
         1,
         1,
         8,
         BOTH | IBV_ACCESS_REMOTE_ATOMIC},
        // On iWARP the reply to a read is a remote write.
        {"read", {.size = 64}, 2, 1, 1, 8, OWN | IBV_ACCESS_REMOTE_WRITE, SIM_IWARP},
        {"flush-visibility", {.size = 64, .depth = 4}, 9, 1, 1, 8, OWN},
        {"send", {.size = 64, .depth = 4}, 16, 4, 1, 8, OWN},
        {"ping-pong", {.size = 64, .depth = 5}, 256, 5, 1, 8, OWN},
        {"ping-pong-rcq", {.size = 64, .depth = 5}, 256, 5, 1, 8, OWN}};
    for (const auto &[operation, plan, sends, receives, elements, inlined, access, transport] :
         cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        fake_profile()->transport = transport;
        Options options = options_of_client();
        options.port = "7300";
        options.plan = plan_of_test(operation, plan);
        options.operations = {options.plan.operation};
        options.sizes = {plan.size};
        expect_equal(
            operation,
            run_client_with(options, script_of(actions(), PREPARED "establish, interrupt"))
                .failure,
            "interrupted");
        const fake_call &address = *fake_last("getaddrinfo"),
                        &made = *fake_last("rdma_connect"),
                        &option = *fake_last("rdma_set_option");
        const ibv_qp_init_attr_ex &qp = fake_last("rdma_create_qp_ex")->qp;
        const ibv_qp_cap &cap = qp.cap;
        assert_string_equal(address.getaddrinfo.node, "192.168.0.1");
        assert_string_equal(address.getaddrinfo.service, "7300");
        assert_int_equal(fake_last("rdma_resolve_addr")->resolve.timeout_ms, 5000);
        assert_int_equal(option.option.name, RDMA_OPTION_ID_ACK_TIMEOUT);
        assert_int_equal(option.option.value, 17); // 4.096 us * 2^17: 537 ms
        assert_int_equal(made.connect.param.retry_count, 6);
        assert_string_equal(reinterpret_cast<const char *>(made.connect.data),
                            "rpma-perf 4 data 7 0");
        expect_equal(
            operation,
            fmt::format("{} {} {} {} {:x}", cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge,
                        cap.max_inline_data, fake_last("ibv_reg_mr")->reg_mr.access),
            fmt::format("{} {} {} {} {:x}", sends, receives, elements, inlined, access));
        assert_int_equal(sent_messages[1]["target"].get<std::string>().empty(), !plan.both);
        assert_int_equal(qp.send_cq != qp.recv_cq,
                         std::string_view(operation) == "ping-pong-rcq");
    }
}
