// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_client.cc -- what a client of rpma-perf makes of a server, whatever that does, and what
// it reports of loads whose times are known

#include "perf_script.hh"

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

// Packed data: a region of 4096 bytes for every usage; nothing is served natively.
static std::string ready() {
    return text_of("ready", {{"session", 7},
                             {"target", "f50101160200"
                                        "0000010000000000"
                                        "0010000000000000"
                                        "4d000000ff00"
                                        "00a0"}});
}

static std::string result(uint64_t cpu_ns) {
    return text_of("result", {{"cpu_ns", cpu_ns}, {"operations", 0}, {"ns", 0}});
}

static std::string refusal(const char *reason) {
    return text_of("refused", {{"reason", reason}});
}

static std::span<const uint64_t> second_group;

// When the first groups have completed, the connection breaks, and nothing happens for 5 ms.
static void break_off(const std::string &) {
    finish_groups();
    now += 5000000;
    group_times = second_group;
    leave("");
}

static const Words &words() {
    static const Words all = {
        {"up", {{establish, GREETING}}},
        {"stranger", {{establish, "hello"}}},
        {"old server", {{establish, "rpma-perf 2 control 0 0"}}},
        {"rejected", {{refuse}}},
        {"busy", {{refuse, "rpma-perf 3 full 0 0"}}},
        {"hangs", {{let_hang}}},
        {"welcome", {{say, welcome(), "hello"}}},
        {"no atomics", {{say, welcome(true, false), "hello"}}},
        {"ready", {{say, ready(), "plan"}}},
        {"begun", {{say, text_of("ok"), "begin"}}},
        {"measuring", {{say, text_of("ok"), "measure"}}},
        {"result", {{say, result(3000), "stop"}}},
        {"ok", {{say, text_of("ok")}}},
        {"no plan", {{say, refusal("why"), "plan"}}},
        {"no begin", {{say, refusal("why"), "begin"}}},
        {"refusal", {{say, refusal("why")}}},
        {"leaves", {{leave}}},
        {"leaves then", {{leave, "", "plan"}}},
        {"lane ends", {{leave_lane}}},
        {"breaks", {{break_off}}},
        {"interrupt", {{interrupt}}},
        {"alive", {{say, text_of("ok"), "alive", true}}},
        {"interrupt later", {{interrupt, "", "alive", true}}},
        {"50 s later", {{pause_50_s, "", "alive", true}}},
        {"50 s", {{pause_50_s}}},
        {"time passes", {{pause_50_s, "", "never", true}}},
    };
    return all;
}
#define WELCOMED "up, welcome, "
#define PREPARED WELCOMED "ready, "
#define MEASURED PREPARED "up, begun, measuring, "

// Of one write of 8 bytes at a time.
static Options options_of_client() {
    Options options;
    options.address = "192.168.0.1";
    options.operations = {0};
    options.sizes = {8};
    options.plan = plan_of_test("write");
    options.limits = {.warmup = 0, .count = 1};
    return options;
}

// ---- a server that does something else ------------------------------------------------------

struct Scene {
    const char *name;
    const char *script;
    const char *failure;
    const char *said;     // by the client
    uint64_t seconds = 0; // that pass at least, and less than 3 more
    void (*change)(Options &) = [](Options &) {};
    const char *printed = ""; // a part of its output
};

template <uint64_t... numbers> static void operate(Options &options) {
    options.operations = {numbers...};
    options.takes_all = sizeof...(numbers) > 1;
}
static constexpr uint64_t PERSISTENT = 3, FETCH_ADD = 8;

static void reconnect(Options &options) {
    options.reconnect = options.json = true;
    options.limits = {.warmup = 0, .duration_ns = UINT64_C(500000000000)};
}

static const Scene scenes[] = {
    {"a stranger is not asked", "stranger", "192.168.0.1 port 7204 is no rpma-perf", ""},
    {"a server of another version is not asked", "old server",
     "the server speaks version 2 of the protocol, this client version 3: use the same "
     "rpma-perf on both sides",
     ""},
    {"nobody listens", "rejected",
     "the connection is refused: nobody listens there, or a server that expects something else",
     ""},
    {"the server is busy", "busy",
     "the connection is refused: the server has as many clients as it serves", ""},
    {"nobody answers", "hangs", "the other side does not answer", "", 60},
    {"interrupted while connecting", "interrupt", "interrupted while connecting", ""},
    {"no answer to a message", "up", "the server does not answer", "hello", 60},
    {"interrupted while waiting", "up, interrupt", "interrupted", "hello"},
    {"another answer", "up, ok", "the server refuses: no reason given", "hello"},
    {"a plan is refused", WELCOMED "no plan", "the server refuses: why", "hello, plan"},
    {"the server leaves", WELCOMED "leaves then", "the other side closed the connection",
     "hello, plan"},
    {"a connection of the load does not come up", PREPARED "hangs",
     "the other side does not answer", "hello, plan", 60},
    {"interrupted while the load connects", PREPARED "interrupt",
     "interrupted while connecting", "hello, plan"},
    {"the server refuses while the load connects", PREPARED "refusal",
     "the server refuses: why", "hello, plan"},
    {"a refused connection", PREPARED "rejected",
     "the connection is refused: nobody listens there, or a server that expects something else",
     "hello, plan"},
    {"a refused connection has a reason, which comes later", PREPARED "rejected, refusal",
     "the server refuses: why", "hello, plan"},
    {"the load does not begin", PREPARED "up, no begin", "the server refuses: why",
     "hello, plan, begin"},
    {"a server speaks without being asked", MEASURED "ok, time passes",
     "the server speaks without being asked", "hello, plan, begin, measure"},
    {"a connection of the load ends", MEASURED "lane ends, time passes",
     "the other side closed the connection", "hello, plan, begin, measure"},
    {"a server that answers, but completes nothing, is given up", MEASURED "50 s later, ok",
     "no operation completed for 60 s", "hello, plan, begin, measure, alive", 60},
    // It speaks after 5 s, and again 5 s later.
    {"a client speaks all the time", MEASURED "alive, interrupt later", "interrupted",
     "hello, plan, begin, measure, alive, alive", 10},
    {"no flush is persistent without a statement", "up, welcome",
     "flush-persistent: the server states no direct write to persistent memory: start it with "
     "--memory and --direct-write where that is true (rpma-perf(1) says where)",
     "hello", 0, operate<PERSISTENT>},
    {"a server without atomics", "up, no atomics",
     "fetch-add: the device d of the server has no remote atomics", "hello", 0,
     operate<FETCH_ADD>},
    {"of all operations those that cannot be are left out", "up, no atomics, no plan",
     "the server refuses: why", "hello, plan", 0, operate<FETCH_ADD, PERSISTENT>,
     "fetch-add is left out: the device d of the server has no remote atomics"},
    {"a picture has a place", "up, welcome",
     "cannot write /nowhere/x: No such file or directory", "hello", 0,
     [](Options &options) { options.plot = "/nowhere/x"; }},
    {"a break ends a run that does not reconnect", MEASURED "leaves",
     "the other side closed the connection", "hello, plan, begin, measure"},
    {"a server that does not come back", "50 s, " MEASURED "leaves",
     "no operation completed for 60 s: the other side does not answer",
     "hello, plan, begin, measure", 110, reconnect},
};

TEST_THAT(a_client_ends_each_scene) {
    for (const Scene &scene : scenes) {
        Options options = options_of_client();
        scene.change(options);
        assert_int_equal(unit_setup(nullptr), 0);
        const Outcome outcome = run_client_with(options, script_of(words(), scene.script));
        expect_equal(scene.name, outcome.failure, scene.failure);
        expect_equal(scene.name, words_said(), scene.said);
        expect_part(scene.name, outcome.text, scene.printed);
        if (now / 1000000000 < scene.seconds || now / 1000000000 >= scene.seconds + 3)
            fail_msg("%s: %lu s", scene.name, now / 1000000000);
        assert_int_equal(unit_teardown(nullptr), 0);
    }
}

TEST_THAT(a_client_without_atomics_says_so) {
    fake_device()->atomic_cap = IBV_ATOMIC_NONE;
    Options options = options_of_client();
    operate<FETCH_ADD>(options);
    const std::string failure =
        run_client_with(options, script_of(words(), "up, welcome")).failure;
    expect_part("failure", failure, " of the client has no remote atomics");
}

// ---- known answers --------------------------------------------------------------------------

// Runs one load of the client: its operations take these times, group by group. The processor
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
    std::string script = PREPARED;
    for (uint64_t i = 0; i < plan.connections; i++)
        script += "up, ";
    std::vector<Turn> turns = script_of(words(), script + "begun, measuring, result");
    turns.back().text = result(server_cpu);
    const Outcome outcome = run_client_with(options, turns);
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
    const char *done; // what the client says of each connection
} answers[] = {
    // Five writes of 8 bytes take 20 us, so 250,000 a second, or 1.907 MiB and 0.016 Gbit. The
    // warm-up does not count. A latency of 3,000 ns is counted in the bucket that ends with
    // 3,007; p99 and above are the slowest, which is exact.
    {plan_of_test("write"),
     {2, 5, 0},
     {7000, 9000, 1000, 2000, 3000, 4000, 10000},
     7500,
     2500,
     "write                   8         5     3.01    10.00    10.00     10.00    250000     "
     "1.91"
     "   0.016    1.50    0.50\n",
     "[7]"},
    // What is posted before the time is over counts, and it is over with the first operation
    // that is posted at that moment or later: of operations of 4 ms within 8 ms, the third.
    {plan_of_test("write"),
     {0, 0, 8000000},
     {4000000, 4000000, 4000000},
     30000,
     0,
     "write                   8         3  4000.00  4000.00  4000.00   4000.00       250     "
     "0.00"
     "   0.000   10.00    0.00\n",
     "[3]"},
    // Two connections have four operations outstanding each, posted in pairs: 16 operations in
    // two groups take 5 ms, 3,200 a second.
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
};

TEST_THAT(a_load_is_reported_in_a_line) {
    for (const auto &[plan, limits, times, cpu, server_cpu, line, done] : answers) {
        assert_int_equal(unit_setup(nullptr), 0);
        const std::string text =
            report_of(options_of_client(), plan, limits, times, cpu, server_cpu);
        expect_equal("line", last_line(text), line);
        expect_part("said", words_said(), std::string("stop ") + done);
        assert_int_equal(now, std::accumulate(times.begin(), times.end(), UINT64_C(0)));
    }
}

// The same as JSON, in intervals of 6 us: the operations end after 1, 3, 6, 10 and 20 us.
TEST_THAT(a_load_is_reported_as_json) {
    const auto &[plan, limits, times, cpu, server_cpu, line, done] = answers[0];
    Options options = options_of_client();
    options.json = options.shows_intervals = true;
    Limits in_parts = limits;
    in_parts.interval_ns = 6000;
    const Json report = Json::parse(report_of(options, plan, in_parts, times, cpu, server_cpu));
    expect_equal("results", report["results"].dump(),
                 R"([{"operation":"write","size":8,"operations":5,"seconds":0.0,)"
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

// Operations of 1 ms go on over a break. The gap begins with the second one, and ends with the
// first of the new connection: 5 ms, and 2 ms that this operation takes. Where the server does
// not come back before the time is over, the gap lasts until then.
TEST_THAT(a_gap_is_reported) {
    static const std::vector<uint64_t> before = {1000000, 1000000},
                                       after = {2000000, 2000000, 2000000}, none;
    const struct {
        const char *script;
        const std::vector<uint64_t> &after;
        uint64_t duration_ns;
        const char *gaps, *without, *seconds;
        uint64_t operations;
    } cases[] = {// 0 is no time
                 {"50 s, " MEASURED "breaks, " MEASURED "result", after, 10000000,
                  R"([{"begin_s":0.002,"seconds":0.007}])", "0.007", "0.013", 5},
                 {"50 s, " MEASURED "breaks", none, 10000000000,
                  R"([{"begin_s":0.002,"seconds":9.998}])", "9.998", "10.0", 2}};
    for (const auto &[script, groups, duration_ns, gaps, without, seconds, operations] :
         cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        group_times = before;
        second_group = groups;
        group_size = 1;
        Options options = options_of_client();
        reconnect(options);
        options.limits.duration_ns = duration_ns;
        const Outcome outcome = run_client_with(options, script_of(words(), script));
        expect_equal("failure", outcome.failure, "");
        const Json report = Json::parse(outcome.text)["results"][0];
        expect_equal("gaps", report["gaps"].dump(), gaps);
        expect_equal("without service", report["without_service_s"].dump(), without);
        expect_equal("seconds", report["seconds"].dump(), seconds);
        assert_int_equal(report["operations"].get<uint64_t>(), operations);
        expect_equal("processor time", report["cpu_us_per_operation"].dump(),
                     groups.empty() ? R"({"client":0.0,"server":0.0})"
                                    : R"({"client":0.0,"server":1.0})");
    }
}

// A ledger is meant to end with the loss of the server, and to fail when nothing was recorded.
TEST_THAT(a_ledger_ends_with_the_server) {
    static const std::vector<uint64_t> three = {1000, 1000, 1000}, none;
    for (const std::vector<uint64_t> *times : {&three, &none}) {
        char path[] = "/tmp/rpma-perf-XXXXXX";
        close(mkstemp(path));
        unlink(path);
        assert_int_equal(unit_setup(nullptr), 0);
        group_times = *times;
        group_size = 1;
        second_group = {};
        Options options = options_of_client();
        options.ledger = path;
        options.sizes = {128};
        options.plan = plan_of_test("write", {.size = 128, .ring = 4});
        options.limits = {.warmup = 0, .duration_ns = UINT64_C(500000000000)};
        const Outcome outcome = run_client_with(options, script_of(words(), MEASURED "breaks"));
        unlink(path);
        if (times->empty())
            expect_equal("failure", outcome.failure, "the other side closed the connection");
        else
            expect_part(
                "output", outcome.text,
                "3 records recorded in " + std::string(path) +
                    " until the server was lost: the other side closed the connection\n");
    }
}
