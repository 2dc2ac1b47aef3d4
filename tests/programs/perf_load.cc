// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_load.cc -- loads of rpma-perf, with both sides in one process over the fakes of the unit
// tests. A thread simulates the network: it copies the data of each request, so that both sides
// verify real bytes, and it can corrupt one.

#include "load_client.hh"
#include "load_connection.hh"
#include "load_server.hh"
#include "pattern.hh"
#include "waiting.hh"

#include <algorithm>
#include <deque>
#include <map>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

// cmocka's macro fail() has to be defined after these.
extern "C" {
#include "unit.h"
}

static std::atomic<int> newest_fd; // of the connection that is being established
static std::atomic<uint64_t> now;  // the virtual clock: requests and waits advance it

// ---- replacements for the kernel ------------------------------------------------------------

extern "C" int clock_gettime(clockid_t, timespec *time) noexcept {
    const uint64_t at = now;
    *time = {static_cast<time_t>(at / 1000000000), static_cast<long>(at % 1000000000)};
    return 0;
}

extern "C" int epoll_ctl(int epoll, int operation, int readable, epoll_event *event) noexcept {
    if (operation == EPOLL_CTL_ADD)
        newest_fd = readable;
    return static_cast<int>(syscall(SYS_epoll_ctl, epoll, operation, readable, event));
}

static std::atomic<unsigned> timed_waits;

extern "C" int ppoll(pollfd *, nfds_t, const timespec *time, const sigset_t *) {
    timed_waits++;
    now +=
        static_cast<uint64_t>(time->tv_sec) * 1000000000 + static_cast<uint64_t>(time->tv_nsec);
    return 0;
}

// ---- the network ----------------------------------------------------------------------------

static std::array<LoadGenerator *, 2> sides;
static std::map<Connection *, std::deque<fake_receive>> receives;
// The last byte of this request, counted from 1, is changed or cut off; 0: no corruption.
struct Corruption {
    unsigned request;
    bool is_cut;
};
static Corruption corruption;
static unsigned moved;            // number of requests so far
static std::atomic<bool> is_lost; // a message had no receive

static LoadGenerator &other(const LoadGenerator &generator) {
    return *sides[&generator == sides[0]];
}

static void complete_request(Connection &connection, ibv_wc_opcode opcode, size_t length = 0) {
    ibv_wc wc{};
    wc.wr_id = reinterpret_cast<uintptr_t>(&connection);
    wc.opcode = opcode;
    wc.byte_len = static_cast<uint32_t>(length);
    const Worker &worker = *connection.worker;
    rpma::cq_ref queue = opcode == IBV_WC_RECV && worker.rcq ? *worker.rcq : *worker.cq;
    fake_complete(queue.get_ibv_cq(), &wc);
}

// Copies the fetched data to the SGEs of a request.
static void scatter(const fake_post &post, const char *data) {
    for (int i = 0; i < post.num_sge; i++) {
        const ibv_sge &sge = post.sg_list.sges[i];
        std::memcpy(reinterpret_cast<void *>(sge.addr), data, sge.length);
        data += sge.length;
    }
}

static std::string data_of(const fake_post &post) {
    std::string data(reinterpret_cast<const char *>(post.inlined), post.inlined_bytes);
    for (int i = 0; i < post.num_sge && post.inlined_bytes == 0; i++)
        data.append(reinterpret_cast<const char *>(post.sg_list.sges[i].addr),
                    post.sg_list.sges[i].length);
    return data;
}

static void deliver(Connection &connection, const std::string &message) {
    auto &waiting = receives[&connection];
    is_lost = is_lost || waiting.empty();
    if (waiting.empty())
        return;
    std::memcpy(reinterpret_cast<void *>(waiting.front().sge.addr), message.data(),
                message.size());
    waiting.pop_front();
    complete_request(connection, IBV_WC_RECV, message.size());
}

static void execute_post(const fake_post &post) {
    Connection &connection = *reinterpret_cast<Connection *>(post.wr_id);
    auto *const remote = reinterpret_cast<char *>(post.remote_addr);
    auto *const word = reinterpret_cast<uint64_t *>(remote);
    std::string data = data_of(post);
    const bool fetches = post.opcode == IBV_WR_RDMA_READ ||
                         post.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
                         post.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    if (fetches)
        data.assign(remote, data.size());
    if (++moved == corruption.request && corruption.is_cut)
        data.pop_back();
    else if (moved == corruption.request)
        data.back() = static_cast<char>(data.back() + 1);
    if (fetches)
        scatter(post, data.data());
    else if (post.opcode != IBV_WR_SEND)
        data.copy(remote, data.size());
    if (post.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        *word += post.compare_add;
    if (post.opcode == IBV_WR_ATOMIC_CMP_AND_SWP && *word == post.compare_add)
        *word = post.swap;
    now += 1000;
    if (post.opcode == IBV_WR_SEND)
        deliver(other(*connection.generator).connections[connection.index], data);
    if (post.flags & IBV_SEND_SIGNALED)
        complete_request(connection, post.opcode == IBV_WR_SEND ? IBV_WC_SEND
                                     : fetches                  ? IBV_WC_RDMA_READ
                                                                : IBV_WC_RDMA_WRITE);
}

// Completes the calls that connect and disconnect, for loads with one connection at a time.
static void complete_calls(const char *call, unsigned &completed_calls, uint64_t time,
                           rdma_cm_event_type type) {
    if (sides[1]->operation.is_connect() && fake_count(call) > completed_calls) {
        completed_calls++;
        now += time;
        fake_cm_event(newest_fd, type, nullptr, 0);
    }
}

static void run_network(const std::stop_token &token) {
    unsigned received = 0, connected = 0, disconnected = 0;
    for (unsigned posted = 0; !token.stop_requested();) {
        const unsigned all = fake_posted_count();
        for (; received < fake_received_count(); received++) {
            const fake_receive &receive = *fake_received(received);
            receives[reinterpret_cast<Connection *>(receive.wr_id)].push_back(receive);
        }
        for (; posted < all; posted++)
            execute_post(*fake_posted(posted));
        complete_calls("rdma_connect", connected, 3000, RDMA_CM_EVENT_ESTABLISHED);
        complete_calls("rdma_disconnect", disconnected, 5000, RDMA_CM_EVENT_DISCONNECTED);
        usleep(10);
    }
}

// ---- running a load -------------------------------------------------------------------------

// The operation of a request, with its offsets in the memories of both sides.
static std::string text_of(const fake_post &post) {
    const Connection &connection = *reinterpret_cast<const Connection *>(post.wr_id);
    const auto place = [](const LoadGenerator &generator, uint64_t address) {
        return address - reinterpret_cast<uintptr_t>(generator.memory.data());
    };
    const bool is_own =
        place(*connection.generator, post.sge.addr) < connection.generator->memory.size();
    std::string text = post.opcode == IBV_WR_SEND         ? "send"
                       : post.opcode == IBV_WR_RDMA_WRITE ? "write"
                       : post.opcode != IBV_WR_RDMA_READ  ? "atomic"
                       : is_own                           ? "read"
                                                          : "flush";
    for (int i = 0; i < post.num_sge && is_own; i++)
        text += fmt::format("{}{}:{}", i ? "+" : " ",
                            place(*connection.generator, post.sg_list.sges[i].addr),
                            post.sg_list.sges[i].length);
    if (post.opcode != IBV_WR_SEND)
        text += fmt::format(" at {}", place(other(*connection.generator), post.remote_addr));
    return text + (post.flags & IBV_SEND_INLINE ? " inline" : "") +
           (post.flags & IBV_SEND_SIGNALED ? "" : " unsignaled");
}

struct Outcome {
    std::string failure;              // the first failure; "": none
    std::array<std::string, 2> posts; // requests of the server, and of the client
    std::vector<uint64_t> done;       // operations of each connection of the client
    Histogram latency;                // latencies of the client's first worker
    uint64_t duration_ns = 0;         // duration of its measurement
};

static void connect(LoadGenerator &generator, bool is_server) {
    for (Connection &connection : generator.connections) {
        // The fakes do not remove consumed receives, and loads post receives repeatedly.
        const Queues queues = {is_server ? serve_queues(generator.plan).sends
                                         : connection_queues(generator.plan).sends,
                               500};
        const rpma::conn_cfg cfg = generator.cfg_of(connection, queues, true);
        connection.link.request = rpma::conn_req(generator.peer, "192.168.0.1", "7204", cfg);
        if (is_server)
            serve_post_receives(connection);
        connection.link.conn = std::move(connection.link.request).connect();
        fake_cm_event(connection.link.conn.get_event_fd(), RDMA_CM_EVENT_ESTABLISHED, nullptr,
                      0);
        (void)connection.link.conn.next_event();
        if (generator.remote)
            generator.apply_target(connection);
        if (generator.remote)
            prepare(connection);
    }
}

static std::string failure_of(const LoadGenerator &server, const LoadGenerator &client) {
    try {
        server.check();
        client.check();
        return is_lost ? "a message has no receive" : "";
    } catch (const Failure &why) {
        return why.what();
    }
}

static bool has_server = true; // false: the server posts its receives and does nothing else

static void measure(LoadGenerator &server, LoadGenerator &client, Outcome &outcome) {
    const Plan &plan = client.plan;
    const std::jthread network(run_network);
    for (LoadGenerator *generator : {&server, &client})
        generator->open_gate();
    if (has_server && (plan.both || plan.op().is_message))
        server.start(plan.both ? run_load : run_serve);
    client.start(run_load);
    const auto is_over = [&] {
        const bool have_ended = client.has_ended() && (!plan.both || server.has_ended());
        outcome.done.clear(); // the workers change the counts until they have ended
        for (const Connection &connection : client.connections)
            outcome.done.push_back(have_ended ? connection.done : 0);
        return have_ended && (!plan.op().is_message || !plan.verify ||
                              serve_received_all(server, outcome.done));
    };
    for (unsigned round = 0; !is_over() && failure_of(server, client).empty(); round++) {
        if (round == 100000)
            fail_msg("the load does not end");
        usleep(100);
    }
    client.stop();
    server.stop();
}

// Runs a load on both sides. Then the server verifies its memory.
static Outcome run(const Plan &plan, const Limits &limits, Corruption corrupted = {}) {
    constexpr int USAGE = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
                          RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
                          RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
                          RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_ATOMIC;
    assert_string_equal(std::string(plan.conflict()).c_str(), "");
    const uint64_t own = plan.connections * connection_memory_size(plan);
    rpma::peer peer(fake_context(0));
    LoadGenerator server(plan, peer, serve_queues(plan),
                         Mapping::allocate(plan.target_size() + (plan.both ? own : 0) + 1), {},
                         USAGE);
    LoadGenerator client(plan, peer, connection_queues(plan),
                         Mapping::allocate(connection_memory_offset(plan) + own + 1), {},
                         USAGE);
    Outcome outcome{.done = std::vector<uint64_t>(plan.connections)};
    fake_device()->fast = true;
    sides = {&server, &client};
    receives.clear();
    corruption = corrupted;
    moved = 0;
    is_lost = false;
    now = UINT64_C(5000000000000); // needs more than 32 bits
    client.limits = server.limits = limits;
    if (plan.verify || plan.op().is_fetching())
        serve_fill(server);
    client.take_target(server.target(false));
    if (plan.both)
        server.take_target(client.target(false));
    client.address = "192.168.0.1";
    client.port = "7204";
    if (!plan.op().is_connect()) {
        connect(server, true);
        connect(client, false);
    }
    measure(server, client, outcome);
    outcome.failure = failure_of(server, client);
    if (outcome.failure.empty() && plan.verify)
        try {
            serve_check(server, outcome.done);
        } catch (const Failure &why) {
            outcome.failure = why.what();
        }
    for (unsigned i = 0; i < fake_posted_count(); i++) {
        const fake_post &post = *fake_posted(i);
        outcome.posts[reinterpret_cast<Connection *>(post.wr_id)->generator == &client] +=
            text_of(post) + "\n";
    }
    outcome.latency = client.workers[0].histogram;
    outcome.duration_ns = client.workers[0].ended_at - client.workers[0].began_at;
    return outcome;
}

static Plan plan_of(std::string_view operation, Plan plan) {
    plan.operation = find_operation(operation);
    return plan;
}

// ---- the tests ------------------------------------------------------------------------------

static const Plan shapes[] = {
    {.size = 8, .depth = 4, .connections = 2, .threads = 2, .verify = 1},
    {.size = 8,
     .depth = 4,
     .batch = 2,
     .inline_size = 8,
     .connections = 3,
     .threads = 2,
     .verify = 1},
    {.size = 8, .depth = 2, .poll = 1, .verify = 1},
    {.size = 5001, .depth = 4, .batch = 2, .elements = 32, .verify = 1},
    {.size = 5001, .depth = 6, .batch = 3, .prepared = 1, .verify = 1},
};

// Both sides verify each operation in each shape.
TEST_THAT(every_byte_arrives) {
    for (const char *operation : {"write", "read", "flush-visibility", "atomic-write", "send",
                                  "ping-pong", "ping-pong-rcq", "fetch-add", "compare-swap"})
        for (const Plan &shape : shapes) {
            const Plan plan = plan_of(operation, shape);
            if (plan.op().is_atomic() && plan.size != ATOMIC_SIZE)
                continue;
            assert_int_equal(unit_setup(nullptr), 0);
            const uint64_t each = 12 * plan.batch;
            const Outcome outcome = run(plan, {.warmup = 2 * plan.batch, .count = each});
            if (!outcome.failure.empty())
                fail_msg("%s of %lu bytes: %s", operation, plan.size, outcome.failure.c_str());
            assert_true(std::ranges::count(outcome.done, each + 2 * plan.batch) ==
                        static_cast<long>(plan.connections));
            assert_int_equal(timed_waits, 0); // without a rate no operation is delayed
            // The warm-up is excluded, and the first worker has every second connection.
            assert_int_equal(outcome.latency.count,
                             each * ((plan.connections + plan.threads - 1) / plan.threads));
        }
}

// The last byte of one request is corrupted, or of the data that it fetches.
TEST_THAT(every_byte_is_checked) {
    static const struct {
        const char *operation;
        unsigned request;
        const char *failure;
    } cases[] = {
        {"write", 5, "operation 4: byte 7 of 8 is wrong in the server's memory"},
        {"read", 3, "operation 2: byte 7 of 8 is wrong in the client's memory"},
        {"send", 3, "operation 2: byte 7 of 8 is wrong in the server's memory"},
        {"ping-pong", 5, "operation 2: byte 7 of 8 is wrong in the server's memory"},
        {"ping-pong", 6, "operation 2: byte 7 of 8 is wrong in the client's memory"},
        {"fetch-add", 3, "operation 2: it found 72057594037927938, not 2"},
    };
    for (const auto &[operation, request, failure] : cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        const Outcome outcome = run(plan_of(operation, {.size = 8, .verify = 1}),
                                    {.warmup = 0, .count = 5}, {request, false});
        assert_string_equal(
            outcome.failure.c_str(),
            (std::string("verification failed: connection 0, ") + failure).c_str());
    }
}

TEST_THAT(message_has_the_requested_size) {
    const Outcome outcome = run(plan_of("send", {.size = 8, .verify = 1}),
                                {.warmup = 0, .count = 5}, {.request = 2, .is_cut = true});
    assert_string_equal(outcome.failure.c_str(), "a message has 7 bytes, not 8");
}

// The client's requests with their offsets: each side has depth places of 4096 bytes. With
// several SGEs, the client has places of twice the size, and gaps of 64 bytes separate the
// SGEs.
TEST_THAT(operations_post_the_expected_requests) {
    static const struct {
        const char *operation;
        Plan plan;
        const char *posts;
    } cases[] = {
        {"write",
         {.size = 9, .depth = 2},
         "write 0:9 at 0\nwrite 4096:9 at 4096\nwrite 0:9 at 0\n"
         "write 4096:9 at 4096\n"},
        {"write",
         {.size = 9, .depth = 2, .batch = 2, .elements = 2, .inline_size = 9},
         "write 0:4+68:5 at 0 inline\nwrite 8192:4+8260:5 at 4096 inline\n"
         "write 0:4+68:5 at 0 inline\nwrite 8192:4+8260:5 at 4096 inline\n"},
        {"flush-visibility",
         {.size = 9},
         "write 0:9 at 0 unsignaled\nflush at 0\nwrite 0:9 at 0 unsignaled\nflush at 0\n"
         "write 0:9 at 0 unsignaled\nflush at 0\nwrite 0:9 at 0 unsignaled\nflush at 0\n"},
        {"read",
         {.size = 9, .inline_size = 9},
         "read 0:9 at 0\nread 0:9 at 0\nread 0:9 at 0\nread 0:9 at 0\n"},
        // The numbers 0 to 3 yield 0, 89, 30 and 56 of 100. The place for read data follows the
        // places of the writes.
        {"write",
         {.size = 9, .region = 12289, .reads = 57},
         "read 4096:9 at 0\nwrite 0:9 at 4096\nread 4096:9 at 8192\nread 4096:9 at 0\n"},
        {"write",
         {.size = 9, .region = 16384, .random = 1},
         "write 0:9 at 0\nwrite 0:9 at 4096\nwrite 0:9 at 8192\nwrite 0:9 at 0\n"},
        {"send", {.size = 9, .inline_size = 8}, "send 0:9\nsend 0:9\nsend 0:9\nsend 0:9\n"},
        {"ping-pong",
         {.size = 9, .depth = 2, .batch = 2, .inline_size = 9},
         "send 0:9 inline unsignaled\nsend 4096:9 inline\nsend 0:9 inline unsignaled\nsend "
         "4096:9 "
         "inline\n"},
    };
    for (const auto &[operation, plan, posts] : cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        const Outcome outcome = run(plan_of(operation, plan), {.warmup = 0, .count = 4});
        assert_string_equal(outcome.failure.c_str(), "");
        assert_string_equal(outcome.posts[1].c_str(), posts);
    }
}

// With two places of 1024 bytes per direction, the server may write the first two places of the
// client, and the client's own places follow.
TEST_THAT(both_sides_run_the_load) {
    const Plan plan = plan_of("write", {.size = 1024, .depth = 2, .both = 1});
    const Outcome outcome = run(plan, {.warmup = 0, .count = 3});
    assert_string_equal(outcome.failure.c_str(), "");
    for (const std::string &posts : outcome.posts)
        assert_string_equal(posts.c_str(), "write 8192:1024 at 0\nwrite 12288:1024 at 4096\n"
                                           "write 8192:1024 at 0\n");
}

// The server allows 16 more messages after posting 16 of its 32 receives again. It sends an
// echo from the place of the message, inline if it fits, and signals one of 64.
TEST_THAT(load_is_acknowledged_by_the_server) {
    static const struct {
        const char *operation;
        Plan plan;
        uint64_t count;
        const char *posts;
    } cases[] = {
        {"send", {.size = 9}, 47, "send 0:8\nsend 0:8\n"},
        {"send", {.size = 9}, 48, "send 0:8\nsend 0:8\nsend 0:8\n"},
        {"ping-pong",
         {.size = 9, .inline_size = 9},
         3,
         "send 0:9 inline unsignaled\nsend 4096:9 inline unsignaled\nsend 0:9 inline "
         "unsignaled\n"},
        {"ping-pong",
         {.size = 9, .depth = 2, .batch = 2},
         2,
         "send 0:9 unsignaled\nsend 4096:9\n"},
    };
    for (const auto &[operation, plan, count, posts] : cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        Plan verified = plan_of(operation, plan);
        verified.verify = 1; // the run continues until the server has received all messages
        const Outcome outcome = run(verified, {.warmup = 0, .count = count});
        assert_string_equal(outcome.failure.c_str(), "");
        assert_string_equal(outcome.posts[0].c_str(), posts);
    }
}

// Without a credit, the client sends one message for each of the server's 32 receives.
TEST_THAT(client_uses_every_receive) {
    has_server = false;
    const Outcome outcome =
        run(plan_of("send", {.size = 9, .depth = 2}), {.warmup = 0, .count = 32});
    has_server = true;
    assert_string_equal(outcome.failure.c_str(), "");
    assert_true(outcome.done == std::vector<uint64_t>{32});
}

// Four operations per connection at 1,000 per second: one per millisecond, alternating between
// the connections. With batches of 2, one batch per 2 ms, and both connections begin with one.
// The last operation needs 1 us. The rate does not limit the warm-up.
TEST_THAT(rate_is_limited) {
    const struct {
        uint64_t connections, batch, last_due_ms;
    } cases[] = {{1, 1, 3}, {2, 1, 7}, {2, 2, 5}};
    for (const auto &[connections, batch, last_due_ms] : cases) {
        assert_int_equal(unit_setup(nullptr), 0);
        const Plan plan = plan_of("write", {.size = 8,
                                            .depth = batch,
                                            .batch = batch,
                                            .connections = connections,
                                            .rate = 1000});
        const Outcome outcome = run(plan, {.warmup = 100, .count = 4});
        assert_string_equal(outcome.failure.c_str(), "");
        assert_in_range(outcome.duration_ns, last_due_ms * 1000000,
                        last_due_ms * 1000000 + 10000);
    }
}

// Each connection is established after 3 us, which is its latency, and closed 5 us later.
TEST_THAT(connections_are_established_sequentially) {
    const Outcome outcome = run(plan_of("connect", {.size = 0}), {.warmup = 2, .count = 4});
    assert_string_equal(outcome.failure.c_str(), "");
    assert_true(outcome.done == std::vector<uint64_t>{6});
    assert_int_equal(outcome.latency.count, 4);
    assert_int_equal(outcome.latency.min, 3000);
    assert_int_equal(outcome.latency.max, 3000);
    assert_int_equal(outcome.duration_ns, 4 * 8000);
}

// ---- parts of a load ------------------------------------------------------------------------

// A worker's queues fit all outstanding requests of its connections: for 2 of 3 connections,
// 256 sends and 4 receives each; or 4 operations of one or two work requests, one final
// request, and a receive.
TEST_THAT(queue_sizes_are_those_of_the_plan) {
    const struct {
        const char *operation;
        std::vector<int> sizes;
    } cases[] = {{"ping-pong", {520, 520}},
                 {"ping-pong-rcq", {512, 8, 512, 8}},
                 {"write", {12, 12}},
                 {"flush-visibility", {20, 20}}};
    for (const auto &[operation, sizes] : cases) {
        fake_forget();
        Plan plan = plan_of(operation, {.size = 8, .depth = 4});
        plan.connections = 3;
        plan.threads = 2;
        rpma::peer peer(fake_context(0));
        const LoadGenerator generator(plan, peer, connection_queues(plan),
                                      Mapping::allocate(3 * connection_memory_size(plan)), {},
                                      RPMA_MR_USAGE_SEND);
        assert_int_equal(fake_count("ibv_create_cq"), sizes.size());
        for (unsigned i = 0; i < sizes.size(); i++)
            assert_int_equal(fake_nth("ibv_create_cq", i + 1)->create_cq.cqe, sizes[i]);
    }
}

// The sum of the workers' progress needs more than 32 bits.
TEST_THAT(progress_sums_all_workers) {
    const Plan plan = plan_of("write", {.size = 8, .connections = 2, .threads = 2});
    rpma::peer peer(fake_context(0));
    LoadGenerator generator(plan, peer, connection_queues(plan),
                            Mapping::allocate(2 * connection_memory_size(plan)), {},
                            RPMA_MR_USAGE_SEND);
    for (Worker &worker : generator.workers)
        worker.progress = UINT64_C(1) << 40;
    assert_true(generator.progress() == UINT64_C(2) << 40);
}

static std::string failure_of_check(LoadGenerator &generator,
                                    const std::vector<uint64_t> &counts) {
    try {
        serve_check(generator, counts);
    } catch (const Failure &why) {
        return why.what();
    }
    return "";
}

static void expect_failure(LoadGenerator &generator, const std::vector<uint64_t> &counts,
                           const std::string &begin) {
    const std::string failure = failure_of_check(generator, counts);
    if (!failure.starts_with(begin))
        fail_msg("\"%s\" instead of \"%s…\"", failure.c_str(), begin.c_str());
}

// Two connections with three places each have executed four and two operations: a place has the
// data of its last operation, and a place without one is unchanged.
TEST_THAT(server_verifies_each_place) {
    Plan plan = plan_of("write", {.size = 8, .depth = 3});
    plan.connections = 2;
    plan.verify = 1;
    rpma::peer peer(fake_context(0));
    std::vector<char> memory(plan.target_size(), 'x');
    LoadGenerator generator(plan, peer, serve_queues(plan), {}, memory,
                            RPMA_MR_USAGE_WRITE_DST);
    const std::vector<uint64_t> counts = {4, 2};
    serve_fill(generator);
    const auto place = [&](uint64_t connection, uint64_t number) {
        return std::span(memory).subspan((connection * 3 + number % 3) * PLACE_ALIGNMENT,
                                         plan.size);
    };
    for (uint64_t connection = 0; connection < 2; connection++)
        for (uint64_t number = 0; number < counts[connection]; number++)
            pattern_fill(place(connection, number), connection, number);
    assert_string_equal(failure_of_check(generator, counts).c_str(), "");
    for (uint64_t connection = 0; connection < 2; connection++)
        for (uint64_t number = 0; number < 3; number++) {
            char &byte = place(connection, number)[7];
            byte = static_cast<char>(byte + 1);
            expect_failure(generator, counts,
                           "verification failed: connection " + std::to_string(connection));
            byte = static_cast<char>(byte - 1);
        }
    expect_failure(generator, {4, 3}, "verification failed: connection 1, operation 2");
    expect_failure(generator, {7, 2}, "verification failed: connection 0, operation 6");
}

// Each atomic increments its word: after four and two operations on two places each, the words
// are 2, 2, 1 and 1.
TEST_THAT(server_verifies_each_word) {
    Plan plan = plan_of("fetch-add", {.size = 8, .depth = 2});
    plan.connections = 2;
    rpma::peer peer(fake_context(0));
    std::vector<char> memory(plan.target_size(), 'x');
    LoadGenerator generator(plan, peer, serve_queues(plan), {}, memory,
                            RPMA_MR_USAGE_WRITE_DST);
    serve_fill(generator);
    for (size_t place = 0; place < 4; place++)
        memory[place * PLACE_ALIGNMENT] = place < 2 ? 2 : 1;
    assert_string_equal(failure_of_check(generator, {4, 2}).c_str(), "");
    assert_string_equal(
        failure_of_check(generator, {4, 3}).c_str(),
        "verification failed: connection 1, place 0: it is 1 after 2 operations");
}

// A message of the client may still be in transit.
TEST_THAT(load_is_incomplete_until_the_last_message_arrives) {
    const Plan plan = plan_of("send", {.size = 8, .depth = 1});
    rpma::peer peer(fake_context(0));
    std::vector<char> memory(plan.target_size());
    LoadGenerator generator(plan, peer, serve_queues(plan), {}, memory, RPMA_MR_USAGE_RECV);
    generator.connections[0].received = 5;
    assert_true(serve_received_all(generator, {5}));
    assert_false(serve_received_all(generator, {6}));
    assert_string_equal(failure_of_check(generator, {5}).c_str(), "");
    assert_string_equal(failure_of_check(generator, {4}).c_str(),
                        "verification failed: connection 0: 5 of 4 messages arrived");
    assert_string_equal(failure_of_check(generator, {6}).c_str(),
                        "verification failed: connection 0: 5 of 6 messages arrived");
}

// An echo in excess of the messages ends the run, because the count of outstanding messages
// would become negative.
TEST_THAT(unexpected_echo_ends_the_run) {
    const Plan plan = plan_of("ping-pong", {.size = 8, .depth = 4});
    rpma::peer peer(fake_context(0));
    LoadGenerator generator(plan, peer, connection_queues(plan),
                            Mapping::allocate(connection_memory_size(plan)), {},
                            RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV);
    generator.limits = {.warmup = 0, .count = 1};
    Connection &connection = generator.connections[0];
    const rpma::conn_cfg cfg = generator.cfg_of(connection, connection_queues(plan), false);
    connection.link.conn = rpma::conn_req(peer, "192.168.0.1", "7204", cfg).connect();
    fake_cm_event(connection.link.conn.get_event_fd(), RDMA_CM_EVENT_ESTABLISHED, nullptr, 0);
    (void)connection.link.conn.next_event();
    prepare(connection);
    generator.open_gate();
    ibv_wc wc{};
    wc.wr_id = reinterpret_cast<uintptr_t>(&connection);
    wc.opcode = IBV_WC_RECV;
    wc.byte_len = 8;
    ibv_cq *cq = fake_cq_on(connection.worker->cq->get_fd(), 0);
    fake_complete(cq, &wc);
    fake_complete(cq, &wc);
    fake_fail_from("ibv_poll_cq", 2, EIO); // otherwise the load would poll endlessly
    std::string failure;
    try {
        run_load(*connection.worker);
    } catch (const Failure &why) {
        failure = why.what();
    }
    assert_string_equal(failure.c_str(),
                        "the server returned a message that was not sent to it");
    fake_faults_off();
}

int main(int argc, char **argv) {
    struct sigaction waking {}; // without SA_RESTART, so that the signal interrupts waits
    waking.sa_handler = [](int) {};
    sigaction(WAKE_SIGNAL, &waking, nullptr);
    return unit_main(argc, argv);
}
