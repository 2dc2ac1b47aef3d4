// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_server.cc -- a server of rpma-perf: its behaviour towards clients that follow or violate
// the protocol

#include "perf_script.hh"

#include <algorithm>
#include <unistd.h>

static Options options_of_server() {
    Options options;
    options.is_server = true;
    options.address = "192.168.0.1";
    options.limit = 2 * PLACE_ALIGNMENT;
    options.once = true;
    return options;
}

static std::string plan_text(std::string_view operation, const Plan &plan = {.size = 8}) {
    return plan_message(plan_of_test(operation, plan)).dump();
}

// The private data of all rejections.
static std::string rejections() {
    std::string all;
    for (unsigned i = 1; i <= fake_count("rdma_reject"); i++) {
        const fake_call &call = *fake_nth("rdma_reject", i);
        all += "[" +
               std::string(reinterpret_cast<const char *>(call.connect.data),
                           std::max<size_t>(call.connect.param.private_data_len, 1) - 1) +
               "]";
    }
    return all;
}

static const Actions &actions() {
    static const Plan deep = {.size = 8, .depth = 2},
                      both = {.size = 8, .inline_size = 64, .both = 1};
    static const Actions all = {
        {"connect", {{request, GREETING}, {establish}}},
        {"request", {{request, GREETING}}},
        {"establish", {{establish}}},
        {"foreign request", {{request, "hello"}}},
        {"other kind", {{request, "rpma-perf 4 other 0 0"}}},
        {"data of another session", {{request, "rpma-perf 4 data 1 0"}}},
        {"old client", {{request, "rpma-perf 2 control 0 0"}, {establish}}},
        {"large version", {{request, "rpma-perf 4294967299 control 0 0"}, {establish}}},
        {"data", {{request_data}}},
        {"data of 1", {{request_data, "1"}}},
        {"invalid message", {{send_message, "hello"}}},
        {"hello", {{send_message, text_of("hello")}}},
        {"ok", {{send_message, text_of("ok")}}},
        {"begin", {{send_message, text_of("begin")}}},
        {"measure", {{send_message, text_of("measure")}}},
        {"stop 1", {{send_message, text_of("stop", {{"done", {1}}})}}},
        {"stop 7 7", {{send_message, text_of("stop", {{"done", {7, 7}}})}}},
        {"50 s", {{pause_50_s}, {send_message, text_of("alive")}}},
        {"first", {{select_session, "0"}}},
        {"second", {{select_session, "1"}}},
        {"write", {{send_message, plan_text("write")}}},
        {"2 writes", {{send_message, plan_text("write", deep)}}},
        {"3 writes", {{send_message, plan_text("write", {.size = 8, .depth = 3})}}},
        {"verified write", {{send_message, plan_text("write", {.size = 8, .verify = 1})}}},
        {"verified send", {{send_message, plan_text("send", {.size = 8, .verify = 1})}}},
        {"echo", {{send_message, plan_text("ping-pong")}}},
        {"echoes",
         {{send_message, plan_text("ping-pong", {.size = 8, .depth = 2, .inline_size = 64})}}},
        {"sends",
         {{send_message, plan_text("send", {.size = 8, .depth = 2, .inline_size = 64})}}},
        {"writes",
         {{send_message, plan_text("write", {.size = 8, .depth = 2, .inline_size = 64})}}},
        {"persistent", {{send_message, plan_text("flush-persistent")}}},
        {"atomics", {{send_message, plan_text("fetch-add")}}},
        {"both", {{send_message, plan_message(plan_of_test("write", both), TARGET).dump()}}},
        {"connections", {{send_message, plan_text("connect", {.size = 0})}}},
        {"connection ends", {{disconnect_connection}}},
        {"connection 1 ends", {{disconnect_connection, "1"}}},
        {"2 connections", {{send_message, plan_text("write", {.size = 8, .connections = 2})}}},
        {"disconnect", {{disconnect_control}}},
        {"ignore", {{ignore_connecting}}},
        {"flushed", {{fail_receive, std::to_string(IBV_WC_WR_FLUSH_ERR)}}},
        {"times out", {{fail_receive, std::to_string(IBV_WC_RETRY_EXC_ERR)}}},
        {"device fails", {{fail_device}}},
        {"stop receiving", {{stop_receiving}}},
        {"resume receiving", {{resume_receiving}}},
        {"unexpected connection event", {{send_unexpected_connection_event}}},
        {"interrupt", {{interrupt}}},
    };
    return all;
}

struct Scenario {
    const char *name;
    const char *script;
    const char *sent;    // messages of the server
    const char *printed; // part of the server's output
    int status = EXIT_SUCCESS;
    const char *rejected = "";
    uint64_t ms = 0;     // time that must pass
    uint64_t places = 0; // places of memory for several clients; 0: one client
};

static const Scenario scenarios[] = {
    {"a load begins once", "connect, echo, data, establish, begin, begin, disconnect",
     "ready, ok, refused: unexpected message: begin", "refused: unexpected message: begin"},
    {"a load begins when both sides are connected, in either order",
     "connect, write, begin, begin, write, begin, data, establish, disconnect",
     "ready, refused: unexpected message: begin, ready, ok", "closed the connection",
     EXIT_FAILURE},
    {"memory has a limit", "connect, 2 writes, 3 writes, disconnect",
     "ready, refused: these settings need 12288 bytes of memory, the server's --limit is 8192",
     "refused: these settings need 12288 bytes"},
    {"two clients share the limit",
     "connect, write, connect, second, 2 writes, write, interrupt",
     "ready, refused: these settings need 8192 bytes of memory, the server's --limit is 8192, "
     "and other clients use 4096, ready",
     "", EXIT_SUCCESS, "", 0, 2},
    {"other messages are refused",
     "connect, invalid message, ok, begin, measure, stop 1, hello, disconnect",
     "refused: the other side sent an invalid message, "
     "refused: \"ok\" is not a message of a client, refused: unexpected message: begin, "
     "refused: unexpected message: measure, refused: unexpected message: stop, welcome",
     "refused: the other side sent an invalid message"},
    {"a silent client is disconnected", "connect, hello", "welcome",
     "no message from the client for 60 s", EXIT_FAILURE, "", 60000},
    {"a client that sends messages stays connected", "connect, hello, 50 s, 50 s",
     "welcome, ok, ok", "no message from the client for 60 s", EXIT_FAILURE, "", 160000},
    {"a client whose device does not reply is disconnected", "connect, hello, device fails",
     "welcome", "the other side does not reply to keepalives", EXIT_FAILURE, "", 60000},
    {"an idle client may disconnect before the event arrives", "connect, hello, flushed",
     "welcome", ""},
    {"the loss of an idle client is a failure", "connect, hello, times out", "welcome",
     "the other side does not reply to keepalives", EXIT_FAILURE},
    {"a client is rejected while the server is busy", "connect, request, hello, disconnect",
     "welcome", "", EXIT_SUCCESS, "[rpma-perf 4 full 0 0]"},
    {"a peer that is not rpma-perf is rejected without data",
     "foreign request, connect, disconnect", "", "a peer that is not rpma-perf connected",
     EXIT_SUCCESS, "[]"},
    {"an unknown kind of connection is rejected without data",
     "other kind, connect, disconnect", "", "a connection of an unknown client", EXIT_SUCCESS,
     "[]"},
    {"a client cannot join another client's load",
     "connect, write, data of another session, disconnect", "ready",
     "a connection of an unknown client", EXIT_FAILURE, "[]"},
    {"a load has the planned connections, each once",
     "connect, write, data of 1, data, establish, data, begin, disconnect", "ready, ok",
     "closed the connection", EXIT_FAILURE, "[][]"},
    {"a client of another version is refused", "old client, hello, disconnect", "",
     "a client uses version 2 of the protocol, this server version 4", EXIT_FAILURE},
    {"more than 32 bits of a version are compared", "large version, hello, disconnect", "",
     "a client uses version 4294967299 of the protocol, this server version 4", EXIT_FAILURE},
    {"a load without messages needs no time of the server",
     "connect, write, data, establish, begin, measure, stop 1, stop 1, disconnect",
     "ready, ok, ok, result 1234 0 0, refused: unexpected message: stop",
     "refused: unexpected message: stop"},
    {"each connection has a count",
     "connect, write, data, establish, begin, measure, stop 7 7, disconnect",
     "ready, ok, ok, refused: the client did not report its operation counts", "refused: "},
    {"a closed connection of a load is the loss of the client",
     "connect, write, data, establish, begin, measure, connection ends", "ready, ok, ok",
     "the other side closed the connection", EXIT_FAILURE},
    {"after the load connections may end",
     "connect, write, data, establish, begin, measure, stop 1, connection ends, hello, "
     "disconnect",
     "ready, ok, ok, result 1234 0 0, welcome", ""},
    {"connections may close where connecting is measured",
     "connect, connections, data, establish, begin, measure, connection ends, data, establish, "
     "data, "
     "establish, stop 1, disconnect",
     "ready, ok, ok, result 1234 0 0", ""},
    {"a measured connection may close before it is established",
     "connect, connections, data, ignore, connection ends, data, establish, begin, measure, "
     "stop 1, "
     "disconnect",
     "ready, ok, ok, result 1234 0 0", ""},
    {"a connection of another load may not close before it is established",
     "connect, write, data, ignore, connection ends, hello, disconnect",
     "ready, refused: the other side closed the connection while connecting, welcome",
     "refused: the other side closed"},
    {"a message waits until the previous one is received",
     "connect, stop receiving, invalid message, begin, hello, resume receiving, disconnect",
     "refused: the other side sent an invalid message, "
     "refused: unexpected message: begin, welcome",
     "refused: unexpected message: begin"},
    {"the client receives the first failure of a load",
     "connect, 2 connections, data, ignore, data of 1, ignore, connection ends, connection 1 "
     "ends, "
     "hello, disconnect",
     "ready, refused: the other side closed the connection while connecting, welcome",
     "refused: the other side closed"},
    {"unexpected events of connections are ignored",
     "connect, write, data, establish, unexpected connection event, begin, measure, unexpected "
     "connection event, stop 1, "
     "disconnect",
     "ready, ok, ok, result 1234 0 0", ""},
    {"missing data is detected",
     "connect, verified write, data, establish, begin, measure, stop 1, disconnect",
     "ready, ok, ok, refused: verification failed: connection 0, operation 0: byte 0 of 8 is "
     "wrong in the server's memory",
     "refused: verification failed"},
    // Messages that a client has counted may still arrive: the server waits for them for a
    // limited time, and continues to serve its other clients.
    {"a client with a wrong count does not delay other clients",
     "connect, verified send, data, establish, begin, measure, stop 1, connect, second, hello, "
     "verified send, first, 50 s, 50 s, interrupt",
     "ready, ok, ok, welcome, ready, ok, refused: verification failed: connection 0: 0 of 1 "
     "messages arrived, ok",
     "", EXIT_SUCCESS, "", 100000, 64},
};

static void play(const Scenario &scenario) {
    Options options = options_of_server();
    options.once = scenario.places == 0;
    options.limit = scenario.places ? scenario.places * PLACE_ALIGNMENT : options.limit;
    assert_int_equal(unit_setup(nullptr), 0);
    const Outcome outcome = run_server_with(options, script_of(actions(), scenario.script));
    expect_equal(scenario.name, sent_summary(), scenario.sent);
    expect_part(scenario.name, outcome.text + outcome.failure, scenario.printed);
    expect_equal(scenario.name, rejections(), scenario.rejected);
    expect_equal(scenario.name, std::to_string(outcome.status),
                 std::to_string(scenario.status));
    expect_equal(scenario.name, std::to_string(elapsed_ms()), std::to_string(scenario.ms));
    assert_int_equal(unit_teardown(nullptr), 0);
}

TEST_THAT(server_handles_each_scenario) {
    cpu_step = 1234;
    for (const Scenario &scenario : scenarios)
        play(scenario);
}

TEST_THAT(session_id_is_random) {
    (void)run_server_with(options_of_server(),
                          script_of(actions(), "connect, write, write, disconnect"));
    const auto first = sent_messages.front()["session"].get<uint64_t>(),
               second = sent_messages.back()["session"].get<uint64_t>();
    assert_true(first != second);
    assert_true(first >> 32 && second >> 32); // both have 64 random bits
}

static bool has_written() {
    for (unsigned i = 0; i < fake_posted_count(); i++)
        if (fake_posted(i)->opcode == IBV_WR_RDMA_WRITE)
            return true;
    return false;
}

static void wait_for_write(const std::string &) {
    while (!has_written())
        continue;
}

// With both directions, the server's load runs from "measure" to "stop", here for 50 s. Its
// only write never completes.
TEST_THAT(server_runs_its_own_load) {
    std::vector<ScriptStep> script =
        script_of(actions(), "connect, both, data, establish, begin, measure");
    script.insert(script.end(), {{wait_for_write},
                                 {pause_50_s},
                                 {send_message, text_of("stop", {{"done", {1}}})},
                                 {disconnect_control}});
    Options options = options_of_server();
    options.limit = 64 * PLACE_ALIGNMENT;
    cpu_step = 1234;
    (void)run_server_with(options, script);
    expect_equal("both", sent_summary(), "ready, ok, ok, result 1234 0 50000000000");
}

// Before the first client connects, the server prints the name of the file that clients may
// overwrite. The first plan needs the whole file, the second one more, and a second client is
// refused while the file is in use.
TEST_THAT(server_names_the_file_that_clients_overwrite) {
    char path[] = "/tmp/rpma-perf-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && ftruncate(fd, PLACE_ALIGNMENT) == 0);
    Options options = options_of_server();
    options.memory = path;
    options.once = false;
    const Outcome outcome = run_server_with(
        options,
        script_of(actions(), "connect, write, connect, second, 2 writes, write, interrupt"));
    const std::string messages = sent_summary();
    options.direct_write = true;
    expect_equal("no persistent memory", run_server_with(options, {}).failure,
                 "--direct-write: " + std::string(path) +
                     " is neither a file on FS-DAX nor a device DAX");
    close(fd);
    unlink(path);
    assert_int_equal(outcome.status, EXIT_SUCCESS);
    expect_part("output", outcome.text, ", memory file that any client may overwrite\n");
    expect_equal(
        "file", messages,
        "ready, refused: " + std::string(path) +
            " has 4096 bytes, these settings need 8192, refused: another client uses " + path);
}

// Clients that stall before the connection is established, or that send invalid messages, do
// not affect other clients.
TEST_THAT(hundreds_of_clients_are_served_at_once) {
    constexpr size_t CLIENTS = 300, HALF_OPEN = 7;
    std::vector<ScriptStep> script;
    for (size_t i = 0; i < CLIENTS; i++) {
        script.insert(script.end(), {{clear_posts}, {request, GREETING}});
        script.push_back(i == HALF_OPEN ? ScriptStep{ignore_connecting}
                                        : ScriptStep{establish});
    }
    for (size_t i = 0; i < CLIENTS; i++)
        if (i != HALF_OPEN)
            script.insert(script.end(), {{clear_posts},
                                         {select_session, std::to_string(i)},
                                         {send_message, i % 10 ? text_of("hello") : "hello"}});
    script.push_back({interrupt});
    Options options = options_of_server();
    options.once = false;
    assert_int_equal(run_server_with(options, script).status, EXIT_SUCCESS);
    assert_int_equal(sent_messages.size(), CLIENTS - 1);
    for (size_t i = 0; i < sent_messages.size(); i++)
        assert_true(sent_messages[i]["word"] ==
                    ((i + (i >= HALF_OPEN)) % 10 ? "welcome" : "refused"));
    assert_int_equal(now, START);
}

// The server sends the direct write that the operator stated, and registers its memory for the
// operation of the plan.
TEST_THAT(server_advertises_its_memory) {
    constexpr unsigned ALWAYS =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    const struct {
        const char *plan;
        bool stated;
        int flushes;
        unsigned access;
    } cases[] = {{"write", false, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, ALWAYS},
                 {"persistent", true,
                  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
                  ALWAYS},
                 {"atomics", false, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
                  ALWAYS | IBV_ACCESS_REMOTE_ATOMIC},
                 {"both", false, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, ALWAYS}};
    for (const auto &[plan, stated, flushes, access] : cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        Options options = options_of_server();
        options.direct_write = stated;
        options.limit = 3 * PLACE_ALIGNMENT;
        (void)run_server_with(options, script_of(actions(), std::string("connect, hello, ") +
                                                                plan + ", disconnect"));
        assert_true(sent_messages[0]["direct_write"] == stated);
        const rpma::received target = rpma::unpack(from_hex(sent_messages[1]["target"]));
        assert_int_equal(target.regions.size(), 1);
        assert_int_equal(target.regions[0].get_size(),
                         PLACE_ALIGNMENT * (strcmp(plan, "both") ? 1 : 3));
        assert_int_equal(target.regions[0].get_flush_type(), flushes);
        assert_true(target.pcfg->get_direct_write_to_pmem() == stated);
        assert_int_equal(fake_last("ibv_reg_mr")->reg_mr.access, access);
    }
}

// Receives are posted before the connection is established, and only a server that echoes needs
// inline data.
TEST_THAT(server_prepares_its_connections) {
    const struct {
        const char *plan;
        uint32_t inline_size, sends, room;
        unsigned receives; // including two for messages of the control connection
    } cases[] = {{"echoes", 64, 256, 2, 2 + 2},
                 {"sends", 8, 8, 32, 32 + 2},
                 {"writes", 8, 1, 1, 2},
                 {"both", 64, 2, 1, 2}};
    for (const auto &[plan, inline_size, sends, room, receives] : cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        Options options = options_of_server();
        options.limit = 64 * PLACE_ALIGNMENT;
        (void)run_server_with(options,
                              script_of(actions(), std::string("connect, ") + plan +
                                                       ", data, establish, disconnect"));
        expect_equal(plan, sent_summary(), "ready");
        assert_int_equal(fake_count("rdma_accept"), 2);
        const ibv_qp_cap &cap = fake_last("rdma_create_qp_ex")->qp.cap;
        assert_int_equal(cap.max_inline_data, inline_size);
        assert_int_equal(cap.max_send_wr, sends);
        assert_int_equal(cap.max_recv_wr, room);
        assert_int_equal(fake_received_count(), receives);
    }
}
