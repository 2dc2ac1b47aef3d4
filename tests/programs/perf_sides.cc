// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_sides.cc -- a server or a client of rpma-perf runs over the fakes of the unit tests, and
// a script plays the other side, which may do anything. The script also sets the time.

#include "lane.hh"
#include "ledger.hh"
#include "load.hh"
#include "message.hh"
#include "pattern.hh"
#include "serve.hh"
#include "session.hh"
#include "sides.hh"
#include "waiting.hh"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

// cmocka's macro fail() has to be defined after these.
extern "C" {
#include "unit.h"
}

#define GREETING "rpma-perf 3 control 0 0"
static constexpr uint64_t NEVER_S = 1000; // no test takes so long

// The action of the other side when the tested side waits and is idle.
struct Turn {
    void (*act)(const std::string &text);
    std::string text{};
    std::string after{};     // the word of the latest message before it; "": any
    bool takes_time = false; // time passes until that message; otherwise only threads are
                             // waited for
};

static std::span<const Turn> turns;
static std::atomic<uint64_t> now;
static bool is_interrupted, is_server;
static std::vector<Json> said; // all messages of the tested side
static size_t answered;        // of these, how many there were at the last turn that waited
static unsigned posts_seen;

// The tested side's sessions, in the order in which they began; a server's first set of
// descriptors is of its endpoint and of these.
struct Sight {
    int epoll;
    std::vector<std::pair<uint64_t, int>> added; // descriptors, by their numbers
    fake_receive receive;                        // for messages, once it is established

    int fd_of(uint64_t number) const {
        const auto last = std::find_if(added.rbegin(), added.rend(),
                                       [=](const auto &one) { return one.first == number; });
        return last == added.rend() ? -1 : last->second;
    }
};
static std::vector<Sight> sights;
static size_t current;        // the session that the script plays with
static std::deque<int> links; // descriptors of connections that come up
// The load's operations complete in groups: when as many are outstanding as a group has, its
// time passes. So each of them takes that time, whatever the threads do.
static std::span<const uint64_t> group_times;
static size_t group_size;
static std::vector<const fake_post *> outstanding;
static uint64_t cpu_used, cpu_step; // each question for the processor time adds a step

// ---- instead of waiting.cc -----------------------------------------------------------------

uint64_t now_ns() {
    return now;
}

uint64_t cpu_ns() {
    return cpu_used += cpu_step;
}

bool is_stopping() {
    return is_interrupted || now > NEVER_S * UINT64_C(1000000000);
}

Epoll::Epoll() : fd(epoll_create1(EPOLL_CLOEXEC)) {
    sights.push_back({fd, {}, {}});
}

Epoll::~Epoll() {
    std::ranges::find(sights, fd, &Sight::epoll)->epoll = -1; // others may get its number
    close(fd);
}

void Epoll::add(int readable, uint64_t number) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = number;
    assert_return_code(epoll_ctl(fd, EPOLL_CTL_ADD, readable, &event), errno);
    const auto sight = std::ranges::find(sights, fd, &Sight::epoll);
    sight->added.emplace_back(number, readable);
    if (sight - sights.begin() >= is_server &&
        (number == Session::EVENTS || number >= Session::LANES))
        links.push_back(readable);
}

static Sight &session() {
    if (is_server)
        return sights[current + 1];
    return *std::find_if(sights.rbegin(), sights.rend(), // a client has a new one after a break
                         [](const Sight &one) { return one.fd_of(Session::EVENTS) >= 0; });
}

static void complete(uint64_t wr_id, ibv_wc_opcode opcode, size_t length = 0) {
    ibv_wc wc{};
    wc.wr_id = wr_id;
    wc.opcode = opcode;
    wc.byte_len = static_cast<uint32_t>(length);
    fake_complete(fake_cq_on(session().fd_of(Session::CQ), 0), &wc);
}

static void complete_group() {
    now += group_times.front();
    group_times = group_times.subspan(1);
    for (const fake_post *post : outstanding) {
        ibv_wc wc{};
        wc.wr_id = post->wr_id;
        wc.opcode = post->opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
        fake_complete(reinterpret_cast<Lane *>(post->wr_id)->worker->cq->get_ibv_cq(), &wc);
    }
    outstanding.clear();
}

// Of the load: an operation with data, unless nobody asks for its completion.
static bool is_of_load(const fake_post &post) {
    return post.opcode != IBV_WR_SEND && post.num_sge > 0 && post.sge.length > 0;
}

// The other side's device takes messages, and answers the reads that test whether it is alive.
static void look_at_posts() {
    for (; posts_seen < fake_posted_count(); posts_seen++) {
        const fake_post *post = fake_posted(posts_seen);
        if (is_of_load(*post)) {
            if (post->flags & IBV_SEND_SIGNALED && !group_times.empty())
                outstanding.push_back(post);
        } else if (post->opcode == IBV_WR_RDMA_READ) {
            assert_int_equal(post->num_sge, 1); // of 0 bytes: see Control::beat()
            complete(post->wr_id, IBV_WC_RDMA_READ);
        } else if (post->opcode == IBV_WR_SEND) {
            said.push_back(
                decode({reinterpret_cast<const char *>(post->sge.addr), post->sge.length}));
            complete(post->wr_id, IBV_WC_SEND);
        }
    }
    if (!outstanding.empty() && outstanding.size() == group_size)
        complete_group();
}

static bool is_due(const Turn &turn) {
    return turn.after.empty() || (said.size() > answered && said.back()["word"] == turn.after);
}

std::span<epoll_event> wait_for(const Epoll &epoll, std::span<epoll_event> room,
                                int milliseconds) {
    const auto look = [&](int time) {
        const int found =
            epoll_wait(epoll.fd, room.data(), static_cast<int>(room.size()), time);
        return room.first(static_cast<size_t>(std::max(found, 0)));
    };
    look_at_posts();
    if (const auto found = look(0); !found.empty() || milliseconds == 0)
        return found;
    if (!turns.empty() && is_due(turns[0])) {
        const Turn &turn = turns[0];
        turns = turns.subspan(1);
        if (!turn.after.empty())
            answered = said.size();
        turn.act(turn.text);
    } else if (!turns.empty() && !turns[0].takes_time) {
        std::span<epoll_event> found; // a thread of the load makes it so, or posts first
        while ((found = look(1)).empty())
            look_at_posts();
        return found;
    } else {
        now += static_cast<uint64_t>(milliseconds) * 1000000;
    }
    return look(0);
}

// ---- actions of the other side -------------------------------------------------------------

static void request(const std::string &text) {
    fake_cm_event(sights[0].fd_of(0), RDMA_CM_EVENT_CONNECT_REQUEST, text.c_str(),
                  static_cast<uint8_t>(text.size() + 1));
}

static uint64_t session_number(const Json &ready) {
    return ready.value("session", UINT64_C(0));
}

static void request_data(const std::string &) {
    request(fmt::format("rpma-perf 3 data {} 0", session_number(said.back())));
}

// The oldest connection that comes up is established.
static void establish(const std::string &text) {
    const int fd = links.front();
    links.pop_front();
    Sight &newest = is_server ? sights.back() : session();
    if (fd == newest.fd_of(Session::EVENTS))
        newest.receive = fake_last("ibv_post_recv")->recv;
    fake_cm_event(fd, RDMA_CM_EVENT_ESTABLISHED, text.empty() ? nullptr : text.c_str(),
                  static_cast<uint8_t>(text.empty() ? 0 : text.size() + 1));
}

static void let_hang(const std::string &) {
    links.pop_front();
}

// Puts the text into the receive for messages.
static void say(const std::string &text) {
    memcpy(reinterpret_cast<void *>(session().receive.sge.addr), text.data(), text.size());
    complete(session().receive.wr_id, IBV_WC_RECV, text.size());
}

static void pause_50_s(const std::string &) {
    now += UINT64_C(50000000000);
}

static void leave(const std::string &) {
    fake_cm_event(session().fd_of(Session::EVENTS), RDMA_CM_EVENT_DISCONNECTED, nullptr, 0);
}

static void interrupt(const std::string &) {
    is_interrupted = true;
}

// ---- running one side ----------------------------------------------------------------------

static int redirect(int fd, FILE *file) {
    const int kept = dup(fd);
    assert_true(kept >= 0 && dup2(fileno(file), fd) == fd);
    return kept;
}

struct Outcome {
    std::string text;    // its output
    std::string failure; // what it threw; "": nothing
    int status;
};

// Runs one side.
template <class Side>
static Outcome run(Side side, std::span<const Turn> script, bool serves = false) {
    FILE *file = tmpfile();
    assert_non_null(file);
    turns = script;
    now = 0;
    is_interrupted = false;
    is_server = serves;
    said = {};
    answered = 0;
    posts_seen = 0;
    sights = {};
    links = {};
    current = 0;
    fflush(stdout);
    const int out = redirect(STDOUT_FILENO, file), err = redirect(STDERR_FILENO, file);
    Outcome outcome{std::string(4096, '\0'), "", EXIT_FAILURE};
    try {
        outcome.status = side();
    } catch (const std::exception &why) {
        outcome.failure = why.what();
    }
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    rewind(file);
    outcome.text.resize(fread(outcome.text.data(), 1, outcome.text.size(), file));
    fclose(file);
    return outcome;
}

static Options options_of_server() {
    Options options;
    options.is_server = true;
    options.address = "192.168.0.1";
    options.limit = 2 * SLOT_ALIGNMENT;
    options.once = true;
    return options;
}

static void expect_text(const std::string &text, const std::string &part) {
    if (text.find(part) == std::string::npos)
        fail_msg("no \"%s\" in:\n%s", part.c_str(), text.c_str());
}

static void expect_server(std::span<const Turn> script, int status, const std::string &line) {
    const Outcome outcome = run([] { return run_server(options_of_server()); }, script, true);
    expect_text(outcome.text + outcome.failure, line);
    assert_int_equal(outcome.status, status);
}

// The words of the tested side, and the reasons of its refusals.
static std::string words_said() {
    std::string words;
    for (const Json &message : said)
        words += message["word"].get<std::string>() + " " + message.value("reason", "");
    return words;
}

static Plan plan_of_test(std::string_view operation, uint64_t depth) {
    Plan plan;
    plan.operation = find_operation(operation);
    plan.size = 8;
    plan.depth = depth;
    return plan;
}

// Of one write of 8 bytes at a time.
static Options options_of_client() {
    Options options;
    options.address = "192.168.0.1";
    options.operations = {0};
    options.sizes = {8};
    options.plan = plan_of_test("write", 1);
    return options;
}

static std::string plan_text(std::string_view operation, uint64_t depth) {
    return message_of(plan_of_test(operation, depth)).dump();
}

static std::string text_of(std::string_view word) {
    return message(word).dump();
}

#define ENTERS             \
    {request, GREETING}, { \
        establish          \
    }

// ---- the tests -----------------------------------------------------------------------------

static void a_load_begins_once(void **) {
    const Turn script[] = {
        ENTERS,      {say, plan_text("ping-pong", 1)}, {request_data},
        {establish}, {say, text_of("begin")},          {say, text_of("begin")},
        {leave}};
    expect_server(script, EXIT_SUCCESS, "refused: there is nothing to begin");
    assert_string_equal(words_said().c_str(), "ready ok refused there is nothing to begin");
}

static void memory_has_a_limit(void **) {
    const Turn script[] = {
        ENTERS, {say, plan_text("write", 2)}, {say, plan_text("write", 3)}, {leave}};
    expect_server(script, EXIT_SUCCESS, "refused: these settings need 12288 bytes");
    assert_string_equal(words_said().c_str(),
                        "ready refused these settings need 12288 bytes of memory, the server's "
                        "--limit is 8192");
}

// What is no message, and what a client does not say, is refused; the server goes on.
static void other_messages_are_refused(void **) {
    const Turn script[] = {ENTERS,
                           {say, "hello"},
                           {say, text_of("ok")},
                           {say, text_of("begin")},
                           {say, text_of("measure")},
                           {say, message("stop", {{"done", {1}}}).dump()},
                           {say, text_of("hello")},
                           {leave}};
    expect_server(script, EXIT_SUCCESS, "refused: the other side sent what is no message");
    assert_string_equal(words_said().c_str(), "refused the other side sent what is no message"
                                              "refused \"ok\" is no word of a client"
                                              "refused there is nothing to begin"
                                              "refused there is nothing to measure"
                                              "refused there is nothing to stop"
                                              "welcome ");
}

static void nobody_guesses_a_session(void **) {
    const Turn script[] = {
        ENTERS, {say, plan_text("write", 1)}, {say, plan_text("write", 1)}, {leave}};
    expect_server(script, EXIT_FAILURE, "closed the connection"); // in the middle of a load
    const uint64_t first = session_number(said.front()), second = session_number(said.back());
    assert_true(first != second);
    assert_true(first >> 32 && second >> 32); // of 64 random bits
}

static void a_silent_client_is_given_up(void **) {
    const Turn script[] = {ENTERS, {say, text_of("hello")}};
    expect_server(script, EXIT_FAILURE, "the client has said nothing for 60 s");
    assert_int_equal(now / 1000000000, 60);
}

static void a_client_that_speaks_is_kept(void **) {
    const Turn script[] = {ENTERS,       {say, text_of("hello")},
                           {pause_50_s}, {say, text_of("alive")},
                           {pause_50_s}, {say, text_of("alive")}};
    fake_device()->fast = true;
    expect_server(script, EXIT_FAILURE, "the client has said nothing for 60 s");
    assert_string_equal(words_said().c_str(), "welcome ok ok ");
    assert_int_equal(now / 1000000000, 160);
}

// The server names the file that clients may overwrite before the first of them comes.
static void a_file_is_said_to_be_the_clients(void **) {
    // The first plan needs all of the file, the second one more than that.
    const Turn script[] = {
        ENTERS, {say, plan_text("write", 1)}, {say, plan_text("write", 2)}, {leave}};
    char path[] = "/tmp/rpma-perf-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && ftruncate(fd, SLOT_ALIGNMENT) == 0);
    const Outcome outcome = run(
        [&path] {
            Options options = options_of_server();
            options.memory = path;
            return run_server(options);
        },
        script, true);
    close(fd);
    unlink(path);
    assert_int_equal(outcome.status, EXIT_SUCCESS);
    expect_text(outcome.text, ", memory file that any client may overwrite\n");
    assert_string_equal(words_said().c_str(), ("ready refused " + std::string(path) +
                                               " has 4096 bytes, these settings need 8192")
                                                  .c_str());
}

// Stalls before and after the connection, says what is no message, lies about what it has done,
// or leaves: the others go on as if it were not there.
static void play_with(const std::string &number) {
    current = std::stoul(number);
}

// The record of the fakes is short.
static void forget(const std::string &) {
    fake_forget();
    posts_seen = 0;
}

static void a_thousand_clients_are_served_at_once(void **) {
    constexpr size_t CLIENTS = 1000, HALF_OPEN = 7;
    std::vector<Turn> script;
    for (size_t i = 0; i < CLIENTS; i++) {
        script.insert(script.end(), {{forget}, {request, GREETING}});
        script.push_back(i == HALF_OPEN ? Turn{let_hang} : Turn{establish});
    }
    for (size_t i = 0; i < CLIENTS; i++)
        if (i != HALF_OPEN)
            script.insert(script.end(), {{forget},
                                         {play_with, std::to_string(i)},
                                         {say, i % 10 ? text_of("hello") : "hello"}});
    script.push_back({interrupt});
    Options options = options_of_server();
    options.once = false;
    fake_device()->fast = true;
    const Outcome outcome = run([&] { return run_server(options); }, script, true);
    assert_int_equal(outcome.status, EXIT_SUCCESS);
    assert_int_equal(said.size(), CLIENTS - 1);
    for (size_t i = 0; i < said.size(); i++)
        assert_true(said[i]["word"] == ((i + (i >= HALF_OPEN)) % 10 ? "welcome" : "refused"));
    assert_int_equal(now, 0);
}

// A client may state more messages than it has sent. The server waits for them, but not with
// its other clients, and not for ever.
static void a_liar_holds_up_nobody(void **) {
    Plan plan = plan_of_test("send", 1);
    plan.verify = 1;
    const Turn script[] = {{request, GREETING},
                           {establish},
                           {say, message_of(plan).dump()},
                           {request_data},
                           {establish},
                           {say, text_of("begin")},
                           {say, text_of("measure")},
                           {say, message("stop", {{"done", {1}}}).dump()},
                           {request, GREETING},
                           {establish},
                           {play_with, "1"},
                           {say, text_of("hello")},
                           {say, message_of(plan).dump()},
                           {play_with, "0"},
                           {pause_50_s},
                           {say, text_of("alive")},
                           {pause_50_s},
                           {say, text_of("alive")},
                           {interrupt}};
    Options options = options_of_server();
    options.limit = 64 * SLOT_ALIGNMENT;
    options.once = false;
    fake_device()->fast = true;
    (void)run([&] { return run_server(options); }, script, true);
    assert_string_equal(words_said().c_str(),
                        "ready ok ok welcome "
                        "ready ok refused verification failed: connection 0: 0 of 1 messages "
                        "arrived"
                        "ok ");
}

static std::string welcome() {
    return message("welcome", {{"librpma", "1"},
                               {"kernel", "1"},
                               {"device", "d"},
                               {"memory", "dram"},
                               {"direct_write", false},
                               {"atomics", true}})
        .dump();
}

// Packed data: a region of 4096 bytes for every usage; nothing is served natively.
static std::string ready() {
    return message("ready", {{"session", 7},
                             {"target", "f50101160200"
                                        "0000010000000000"
                                        "0010000000000000"
                                        "4d000000ff00"
                                        "00a0"}})
        .dump();
}

// The client sends even while a load runs, which the server must not notice.
static void a_client_speaks_all_the_time(void **) {
    const Turn script[] = {{establish, GREETING},
                           {say, welcome(), "hello"},
                           {say, ready(), "plan"},
                           {establish, GREETING},
                           {say, text_of("ok"), "begin"},
                           {say, text_of("ok"), "measure"},
                           {say, text_of("ok"), "alive", true},
                           {interrupt, "", "alive", true}};
    const Outcome outcome = run(
        [] {
            Options options = options_of_client();
            options.limits = {.warmup = 0, .count = 1};
            return run_client(options);
        },
        script);
    assert_string_equal(outcome.failure.c_str(), "interrupted");
    // It speaks after 5 s, and again 5 s later.
    assert_true(now / 1000000000 >= 10 && now / 1000000000 < 13);
}

// ---- known answers --------------------------------------------------------------------------

// Runs one load of the client: its operations take these times, group by group. The processor
// times are for all operations together.
static std::string report_of(const Plan &plan, const Limits &limits, bool json,
                             const std::vector<uint64_t> &times, uint64_t cpu,
                             uint64_t server_cpu) {
    const Turn script[] = {
        {establish, GREETING},
        {say, welcome(), "hello"},
        {say, ready(), "plan"},
        {establish, GREETING},
        {say, text_of("ok"), "begin"},
        {say, text_of("ok"), "measure"},
        {say, message("result", {{"cpu_ns", server_cpu}, {"operations", 0}, {"ns", 0}}).dump(),
         "stop"}};
    std::vector<Turn> turns_of_run(std::begin(script), std::end(script));
    for (uint64_t more = 1; more < plan.connections; more++)
        turns_of_run.insert(turns_of_run.begin() + 4, {establish, GREETING});
    group_times = times;
    group_size = plan.depth * plan.connections;
    cpu_step = cpu;
    fake_device()->fast = true; // or the send queue would be full after a few operations
    const Outcome outcome = run(
        [&] {
            Options options;
            options.address = "192.168.0.1";
            options.json = json;
            options.operations = {plan.operation};
            options.sizes = {plan.size};
            options.plan = plan;
            options.limits = limits;
            return run_client(options);
        },
        turns_of_run);
    assert_string_equal(outcome.failure.c_str(), "");
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

// The client states what each connection has done.
static void expect_done(const std::vector<uint64_t> &wanted) {
    for (const Json &message : said)
        if (message["word"] == "stop")
            assert_true(message["done"].get<std::vector<uint64_t>>() == wanted);
}

// Five writes of 8 bytes take 20 us, so 250,000 a second, or 1.907 MiB and 0.016 Gbit. The
// warm-up does not count. A latency of 3,000 ns is counted in the bucket that ends with 3,007;
// p99 and above are the slowest, which is exact.
static std::string five_writes(bool json) {
    return report_of(plan_of_test("write", 1), {2, 5, 0}, json,
                     {7000, 9000, 1000, 2000, 3000, 4000, 10000}, 7500, 2500);
}

static void a_count_is_reported_in_a_line(void **) {
    const std::string line = last_line(five_writes(false));
    assert_string_equal(line.c_str(),
                        "write                   8         5     3.01    10.00    10.00     "
                        "10.00    250000     1.91   0.016    1.50    0.50\n");
    expect_done({7});
    assert_int_equal(now, 36000);
}

static void a_count_is_reported_as_json(void **) {
    const Json report = Json::parse(five_writes(true));
    assert_string_equal(report["results"].dump().c_str(),
                        R"([{"operation":"write","size":8,"operations":5,"seconds":0.0,)"
                        R"("latency_us":{"min":1.0,"mean":4.0,"median":3.007,"p90":10.0,)"
                        R"("p99":10.0,"p99_9":10.0,"max":10.0},)"
                        R"("operations_per_second":250000.0,"bandwidth_mib_per_second":1.907,)"
                        R"("bandwidth_gbit_per_second":0.016,)"
                        R"("cpu_us_per_operation":{"client":1.5,"server":0.5},)"
                        R"("verified":false,"persistence":"not stated"}])");
    assert_string_equal(
        report["settings"].dump().c_str(),
        R"({"depth":1,"batch":1,"prepared":false,"elements":1,"inline":0,"connections":1,)"
        R"("threads":1,"poll":false,"verify":false,"region":0,"random":false,"reads":0,)"
        R"("both":false,"rate":0,"reconnect":false,"warmup":2,"count":5})");
}

// What is posted before the time is over counts, and it is over with the first operation that
// is posted at that moment or later: of operations of 4 ms within 8 ms, the third.
static void a_duration_is_kept(void **) {
    const std::vector<uint64_t> times(3, 4000000);
    const std::string line =
        last_line(report_of(plan_of_test("write", 1), {0, 0, 8000000}, false, times, 30000, 0));
    assert_string_equal(line.c_str(),
                        "write                   8         3  4000.00  4000.00  4000.00   "
                        "4000.00       250     0.00   0.000   10.00    0.00\n");
}

// Two connections have four operations outstanding each, posted in pairs: 16 operations in two
// groups take 5 ms, 3,200 a second.
static void all_connections_count(void **) {
    Plan plan = plan_of_test("read", 4);
    plan.batch = 2;
    plan.connections = plan.threads = 2;
    plan.size = 1024;
    const std::string line =
        last_line(report_of(plan, {0, 8, 0}, false, {2000000, 3000000}, 16000000, 800000));
    assert_string_equal(line.c_str(),
                        "read                 1024        16  2002.94  3000.00  3000.00   "
                        "3000.00      3200     3.12   0.026 1000.00   50.00\n");
    expect_done({8, 8});
}

static std::vector<uint64_t> second_group;

// When the first groups have completed, the connection breaks, and nothing happens for 5 ms.
static void break_off(const std::string &) {
    while (!group_times.empty())
        look_at_posts();
    while (posts_seen == fake_posted_count()) // the next operation, which never completes
        continue;
    posts_seen = fake_posted_count();
    now += 5000000;
    group_times = second_group;
    leave("");
}

// Operations of 1 ms go on over a break. The gap begins with the second one, and ends with the
// first of the new connection: 5 ms, and 2 ms that this operation takes.
static void a_gap_is_reported(void **) {
    const Turn script[] = {
        {pause_50_s}, // 0 is no time
        {establish, GREETING},
        {say, welcome(), "hello"},
        {say, ready(), "plan"},
        {establish, GREETING},
        {say, text_of("ok"), "begin"},
        {say, text_of("ok"), "measure"},
        {break_off},
        {establish, GREETING},
        {say, welcome(), "hello"},
        {say, ready(), "plan"},
        {establish, GREETING},
        {say, text_of("ok"), "begin"},
        {say, text_of("ok"), "measure"},
        {say, message("result", {{"cpu_ns", 3000}, {"operations", 0}, {"ns", 0}}).dump(),
         "stop"}};
    const std::vector<uint64_t> first_group = {1000000, 1000000};
    second_group = {2000000, 2000000, 2000000};
    group_times = first_group;
    group_size = 1;
    fake_device()->fast = true;
    const Outcome outcome = run(
        [] {
            Options options = options_of_client();
            options.json = options.reconnect = true;
            options.limits = {.warmup = 0, .duration_ns = 10000000};
            return run_client(options);
        },
        script);
    assert_string_equal(outcome.failure.c_str(), "");
    const Json result = Json::parse(outcome.text)["results"][0];
    assert_string_equal(result["gaps"].dump().c_str(),
                        R"([{"begin_s":0.002,"seconds":0.007}])");
    assert_string_equal(result["without_service_s"].dump().c_str(), "0.007");
    assert_int_equal(result["operations"].get<uint64_t>(), 5);
    assert_string_equal(result["seconds"].dump().c_str(), "0.013");
    assert_string_equal(result["cpu_us_per_operation"].dump().c_str(),
                        R"({"client":0.0,"server":1.0})");
}

// The processor time of the server is that from "measure" to "stop".
static void a_server_states_its_processor_time(void **) {
    const Turn script[] = {ENTERS,
                           {say, plan_text("write", 1)},
                           {request_data},
                           {establish},
                           {say, text_of("begin")},
                           {say, text_of("measure")},
                           {say, message("stop", {{"done", {7}}}).dump()},
                           {say, message("stop", {{"done", {7}}}).dump()},
                           {leave}};
    cpu_step = 1234;
    expect_server(script, EXIT_SUCCESS, "refused: there is nothing to stop");
    cpu_step = 0;
    assert_string_equal(words_said().c_str(),
                        "ready ok ok result refused there is nothing to stop");
    assert_int_equal(said[3]["cpu_ns"].get<uint64_t>(), 1234);
}

// Where the operations go, in the order of their posting, as numbers of places.
static std::vector<uint64_t> places_posted(uint64_t stride) {
    std::vector<uint64_t> places;
    for (unsigned i = 0; i < fake_posted_count(); i++)
        if (const fake_post *post = fake_posted(i); is_of_load(*post))
            places.push_back((post->remote_addr - 0x10000) / stride);
    return places;
}

static void batches_go_through_the_places(void **) {
    Plan plan = plan_of_test("write", 4);
    plan.batch = 2;
    (void)report_of(plan, {0, 8, 0}, false, {1000, 1000}, 0, 0);
    const std::vector<uint64_t> wanted = {0, 1, 2, 3, 0, 1, 2, 3};
    assert_true(places_posted(SLOT_ALIGNMENT) == wanted);
}

// Only an rpma-perf of the same protocol is asked for anything.
static void a_stranger_is_not_asked(void **) {
    const struct {
        const char *greeting, *failure;
    } cases[] = {{"hello", "192.168.0.1 port 7204 is no rpma-perf"},
                 {"rpma-perf 2 control 0 0",
                  "the server speaks version 2 of the protocol, this client version 3: use the "
                  "same rpma-perf on both sides"}};
    for (const auto &[greeting, failure] : cases) {
        const Turn script[] = {{establish, greeting}};
        const Outcome outcome = run([] { return run_client(options_of_client()); }, script);
        assert_string_equal(outcome.failure.c_str(), failure);
        assert_true(said.empty());
    }
}

// A server that answers, but completes nothing, is given up.
static void a_stalled_load_is_given_up(void **) {
    const Turn script[] = {{establish, GREETING},           {say, welcome(), "hello"},
                           {say, ready(), "plan"},          {establish, GREETING},
                           {say, text_of("ok"), "begin"},   {say, text_of("ok"), "measure"},
                           {pause_50_s, "", "alive", true}, {say, text_of("ok")}};
    fake_device()->fast = true;
    const Outcome outcome = run(
        [] {
            Options options = options_of_client();
            options.limits = {.warmup = 0, .count = 1};
            return run_client(options);
        },
        script);
    assert_string_equal(outcome.failure.c_str(), "no operation completed for 60 s");
    assert_int_equal(now / 1000000000, 60);
    assert_string_equal(words_said().c_str(), "hello plan begin measure alive ");
}

// The queues of a worker hold what its connections may have outstanding: 2 of 3 connections,
// 256 sends and 4 receives each, or 4 operations of one or two work requests, one that ends
// them, and a receive.
static void queues_have_room(void **) {
    const struct {
        const char *operation;
        std::vector<int> sizes;
    } cases[] = {{"ping-pong", {520, 520}},
                 {"ping-pong-rcq", {512, 8, 512, 8}},
                 {"write", {12, 12}},
                 {"flush-visibility", {20, 20}}};
    for (const auto &[operation, sizes] : cases) {
        fake_forget();
        Plan plan = plan_of_test(operation, 4);
        plan.connections = 3;
        plan.threads = 2;
        rpma::peer peer(fake_context(0));
        const Crew crew(plan, peer, lane_queues(plan),
                        Memory::allocate(3 * lane_memory_size(plan)), {}, RPMA_MR_USAGE_SEND);
        assert_int_equal(fake_count("ibv_create_cq"), sizes.size());
        for (unsigned i = 0; i < sizes.size(); i++)
            assert_int_equal(fake_nth("ibv_create_cq", i + 1)->create_cq.cqe, sizes[i]);
    }
}

// What the operator states reaches the client, and its configuration of the connection.
static void a_server_states_direct_write(void **) {
    for (const bool stated : {false, true}) {
        assert_int_equal(unit_setup(nullptr), 0);
        rpma::keep_log_lines();
        const Turn script[] = {ENTERS,
                               {say, text_of("hello")},
                               {say, plan_text(stated ? "flush-persistent" : "write", 1)},
                               {leave}};
        (void)run(
            [stated] {
                Options options = options_of_server();
                options.direct_write = stated;
                return run_server(options);
            },
            script, true);
        assert_string_equal(words_said().c_str(), "welcome ready ");
        assert_true(said[0]["direct_write"] == stated);
        const rpma::received target = rpma::unpack(bytes_of(said[1]["target"]));
        assert_int_equal(target.regions.size(), 1);
        assert_int_equal(target.regions[0].get_size(), SLOT_ALIGNMENT);
        assert_int_equal(target.regions[0].get_flush_type(),
                         RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                             (stated ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : 0));
        assert_true(target.pcfg.get_direct_write_to_pmem() == stated);
    }
}

// Receives are there before the connection is, and only a server that echoes needs inline data.
static void a_server_prepares_its_connections(void **) {
    const struct {
        const char *operation;
        uint32_t inline_size;
        unsigned receives; // with two for messages of the control connection
    } cases[] = {{"ping-pong", 64, 2 + 2}, {"send", 8, 32 + 2}, {"write", 8, 2}};
    for (const auto &[operation, inline_size, receives] : cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        rpma::keep_log_lines();
        Plan plan = plan_of_test(operation, 2);
        plan.inline_size = 64;
        const std::string text = message_of(plan).dump();
        const Turn script[] = {ENTERS, {say, text}, {request_data}, {establish}, {leave}};
        (void)run(
            [] {
                Options options = options_of_server();
                options.limit = 64 * SLOT_ALIGNMENT;
                return run_server(options);
            },
            script, true);
        assert_string_equal(words_said().c_str(), "ready ");
        assert_int_equal(fake_count("rdma_accept"), 2);
        assert_int_equal(fake_last("rdma_create_qp_ex")->qp.cap.max_inline_data, inline_size);
        assert_int_equal(fake_received_count(), receives);
    }
}

static std::string failure_of_check(Crew &crew, const std::vector<uint64_t> &counts) {
    try {
        serve_check(crew, counts);
    } catch (const Failure &why) {
        return why.what();
    }
    return "";
}

// Two connections with three places each have done four operations and two: a place has the
// data of its last operation, and one without an operation is still empty.
static void a_server_checks_each_place(void **) {
    Plan plan = plan_of_test("write", 3);
    plan.connections = 2;
    plan.verify = 1;
    rpma::peer peer(fake_context(0));
    std::vector<char> memory(plan.target_size(), 'x');
    Crew crew(plan, peer, serve_queues(plan), {}, memory, RPMA_MR_USAGE_WRITE_DST);
    const std::vector<uint64_t> counts = {4, 2};
    serve_fill(crew);
    const auto place = [&](uint64_t lane, uint64_t number) {
        return std::span(memory).subspan((lane * 3 + number % 3) * SLOT_ALIGNMENT, plan.size);
    };
    for (uint64_t lane = 0; lane < 2; lane++)
        for (uint64_t number = 0; number < counts[lane]; number++)
            pattern_fill(place(lane, number), lane, number);
    assert_string_equal(failure_of_check(crew, counts).c_str(), "");
    for (uint64_t lane = 0; lane < 2; lane++)
        for (uint64_t number = 0; number < 3; number++) {
            char &byte = place(lane, number)[7];
            byte = static_cast<char>(byte + 1);
            expect_text(failure_of_check(crew, counts),
                        "verification failed: connection " + std::to_string(lane));
            byte = static_cast<char>(byte - 1);
        }
    expect_text(failure_of_check(crew, {4, 3}),
                "verification failed: connection 1, operation 2");
    expect_text(failure_of_check(crew, {7, 2}),
                "verification failed: connection 0, operation 6");
}

// An atomic counts itself: four and two on two places each are 2, 2, 1 and 1.
static void a_server_checks_each_word(void **) {
    Plan plan = plan_of_test("fetch-add", 2);
    plan.connections = 2;
    rpma::peer peer(fake_context(0));
    std::vector<char> memory(plan.target_size(), 'x');
    Crew crew(plan, peer, serve_queues(plan), {}, memory, RPMA_MR_USAGE_WRITE_DST);
    serve_fill(crew);
    for (size_t place = 0; place < 4; place++)
        memory[place * SLOT_ALIGNMENT] = place < 2 ? 2 : 1;
    assert_string_equal(failure_of_check(crew, {4, 2}).c_str(), "");
    assert_string_equal(
        failure_of_check(crew, {4, 3}).c_str(),
        "verification failed: connection 1, place 0: it is 1 after 2 operations");
}

// What reads return is there before they are posted.
static void a_server_fills_what_reads_return(void **) {
    Plan plan = plan_of_test("read", 2);
    plan.connections = 2;
    rpma::peer peer(fake_context(0));
    std::vector<char> memory(plan.target_size(), 'x');
    Crew crew(plan, peer, serve_queues(plan), {}, memory, RPMA_MR_USAGE_READ_SRC);
    serve_fill(crew);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(pattern_check(std::span(memory).subspan(i * SLOT_ALIGNMENT, plan.size),
                                       i / 2, i % 2),
                         plan.size);
    assert_int_equal(memory[plan.size], 0);
}

// A message that the client has sent may still be on its way.
static void a_server_waits_for_messages(void **) {
    const Plan plan = plan_of_test("send", 1);
    rpma::peer peer(fake_context(0));
    std::vector<char> memory(plan.target_size());
    Crew crew(plan, peer, serve_queues(plan), {}, memory, RPMA_MR_USAGE_RECV);
    crew.lanes[0].received = 5;
    assert_true(serve_has_all(crew, {5}));
    assert_false(serve_has_all(crew, {6}));
    assert_string_equal(failure_of_check(crew, {5}).c_str(), "");
    assert_string_equal(failure_of_check(crew, {4}).c_str(),
                        "verification failed: connection 0: 5 of 4 messages arrived");
    assert_string_equal(failure_of_check(crew, {6}).c_str(),
                        "verification failed: connection 0: 5 of 6 messages arrived");
}

// More echoes than messages end the run: fewer than 0 messages would be outstanding.
static void echo_too_many() {
    const Plan plan = plan_of_test("ping-pong", 4);
    rpma::peer peer(fake_context(0));
    Crew crew(plan, peer, lane_queues(plan), Memory::allocate(lane_memory_size(plan)), {},
              RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV);
    crew.limits = {.warmup = 0, .count = 1};
    Lane &lane = crew.lanes[0];
    const rpma::conn_cfg cfg = crew.cfg_of(lane, lane_queues(plan), false);
    lane.link.conn = rpma::conn_req(peer, "192.168.0.1", "7204", cfg).connect();
    fake_cm_event(lane.link.conn.get_event_fd(), RDMA_CM_EVENT_ESTABLISHED, nullptr, 0);
    (void)lane.link.conn.next_event();
    prepare(lane);
    crew.open_gate();
    ibv_wc wc{};
    wc.wr_id = reinterpret_cast<uintptr_t>(&lane);
    wc.opcode = IBV_WC_RECV;
    wc.byte_len = 8;
    ibv_cq *cq = fake_cq_on(lane.worker->cq->get_fd(), 0);
    fake_complete(cq, &wc);
    fake_complete(cq, &wc);
    fake_fail_from("ibv_poll_cq", 2, EIO); // otherwise the load would poll for ever
    std::string failure;
    try {
        run_load(*lane.worker);
    } catch (const Failure &why) {
        failure = why.what();
    }
    assert_string_equal(failure.c_str(), "the server returned a message that it was not sent");
    fake_faults_off();
}

static void an_echo_too_many_ends_the_run(void **) {
    echo_too_many();
}

// ---- ledgers: the answers are those of "perf_ledger.py known" -------------------------------

static const LedgerHead known_head = {
    .run = UINT64_C(0xfedcba9876543210),
    .plan = {.operation = 3, .size = 4500, .connections = 2, .ring = 8}};

static void a_ledger_has_these_lines(void **) {
    static const char wanted[] =
        "rpma-perf ledger 1: run fedcba9876543210, flush-persistent, size 4500, ring 8, "
        "connections 2 1fa6e3e1\n"
        "0 3 7 cc253ac1\n1 2 6 878049d0\n0 13 17 0ad15d3e\n1 10 12 ce790deb\n";
    char path[] = "/tmp/rpma-perf-XXXXXX", text[sizeof(wanted) + 1];
    const int fd = mkstemp(path);
    std::string failure;
    assert_true(fd >= 0);
    try {
        const Ledger ledger(path, known_head); // what exists is not overwritten
    } catch (const Failure &why) {
        failure = why.what();
    }
    expect_text(failure, "cannot make the ledger");
    close(fd);
    unlink(path);
    {
        Ledger ledger(path, known_head);
        for (const LedgerLine line : {LedgerLine{0, 3, 7}, {1, 2, 6}, {0, 13, 17}, {1, 10, 12}})
            ledger.add(line);
        ledger.sync();
    }
    FILE *file = fopen(path, "re");
    assert_int_equal(fread(text, 1, sizeof(text), file), sizeof(wanted) - 1);
    assert_memory_equal(text, wanted, sizeof(wanted) - 1);
    fclose(file);
    unlink(path);
}

static void a_record_has_these_bytes(void **) {
    // In the byte order of the machine, as the record is.
    static const uint64_t first[] = {UINT64_C(0xfedcba9876543210),
                                     UINT64_C(0x1),
                                     UINT64_C(0x9),
                                     UINT64_C(0x12000),
                                     UINT64_C(0x4a491fd8c463a50e),
                                     UINT64_C(0xb3fa0fc454ac134)};
    static const uint32_t last = 0xdf63a397U;
    char record[4508] = {0};
    known_head.fill(std::span(record).first(4500), 1, 9);
    assert_memory_equal(record, first, sizeof(first));
    assert_memory_equal(record + 4496, &last, sizeof(last));
    assert_int_equal(record[4500], 0);
}

int main() {
    const struct CMUnitTest tests[] = {
        TEST(a_load_begins_once),
        TEST(memory_has_a_limit),
        TEST(other_messages_are_refused),
        TEST(nobody_guesses_a_session),
        TEST(a_silent_client_is_given_up),
        TEST(a_client_that_speaks_is_kept),
        TEST(a_file_is_said_to_be_the_clients),
        TEST(a_thousand_clients_are_served_at_once),
        TEST(a_liar_holds_up_nobody),
        TEST(a_client_speaks_all_the_time),
        TEST(a_count_is_reported_in_a_line),
        TEST(a_count_is_reported_as_json),
        TEST(a_duration_is_kept),
        TEST(all_connections_count),
        TEST(a_gap_is_reported),
        TEST(a_server_states_its_processor_time),
        TEST(batches_go_through_the_places),
        TEST(a_stranger_is_not_asked),
        TEST(a_stalled_load_is_given_up),
        TEST(queues_have_room),
        TEST(a_server_states_direct_write),
        TEST(a_server_prepares_its_connections),
        TEST(a_server_checks_each_place),
        TEST(a_server_checks_each_word),
        TEST(a_server_fills_what_reads_return),
        TEST(a_server_waits_for_messages),
        TEST(an_echo_too_many_ends_the_run),
        TEST(a_ledger_has_these_lines),
        TEST(a_record_has_these_bytes),
    };
    struct sigaction waking {}; // without SA_RESTART: it ends waits
    waking.sa_handler = [](int) {};
    sigaction(WAKE_SIGNAL, &waking, nullptr);
    rlimit limit; // each client has several descriptors
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    rpma::keep_log_lines();
    if (const char *trouble = fake_hook_allocator()) {
        fprintf(stderr, "%s\n", trouble);
        return 1;
    }
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
