// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_sides.c -- a server or a client of rpma-perf runs over the fakes of the unit tests, and
// a script plays the other side, which may do anything. The script also sets the time.

// cmocka's macro fail() has to be defined after these.
// clang-format off
#include "client.h"
#include "failure.h"
#include "lane.h"
#include "ledger.h"
#include "server.h"
#include "sides.h"
#include "waiting.h"
#include "unit.h"
// clang-format on

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GREETING "rpma-perf 1 control 0 0"
#define NEVER_S 1000 // no test takes so long
#define ANSWER_MAX 65536

// The action of the other side when the tested side waits and is idle.
struct turn {
    void (*act)(const struct pollfd *fds, const char *text);
    const char *text;
    const char *after; // the latest message before it; NULL: any
    bool takes_time;   // time passes until that message; otherwise only threads are waited for
};

static const struct turn *next_turn;
static _Atomic uint64_t now;
static bool is_interrupted;
static char said[ANSWER_MAX], *last_said; // all messages of the tested side
static unsigned posts_seen;
static int ep_fd;

// ---- instead of waiting.c ------------------------------------------------------------------

uint64_t now_ns(void) {
    return now;
}

uint64_t cpu_ns(void) {
    return 0;
}

bool is_stopping(void) {
    return is_interrupted || now > NEVER_S * UINT64_C(1000000000);
}

bool make_nonblocking(int fd) {
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0;
}

static void complete(const struct pollfd *fds, uint64_t wr_id, enum ibv_wc_opcode opcode,
                     size_t length) {
    struct ibv_wc wc = {.wr_id = wr_id, .opcode = opcode, .byte_len = (uint32_t)length};
    fake_complete(fake_cq_on(fds[0].fd, 0), &wc);
}

// The other side's device takes messages, and answers the reads that test whether it is alive.
static void look_at_posts(const struct pollfd *fds) {
    for (; posts_seen < fake_posted_count(); posts_seen++) {
        const struct fake_post *post = fake_posted(posts_seen);
        if (post->opcode == IBV_WR_RDMA_READ) {
            complete(fds, post->wr_id, IBV_WC_RDMA_READ, 0);
        } else if (post->opcode == IBV_WR_SEND) {
            last_said = said + strlen(said);
            memcpy(last_said, (const void *)(uintptr_t)post->sge.addr, post->sge.length);
            complete(fds, post->wr_id, IBV_WC_SEND, 0);
        }
    }
}

static bool is_due(const struct turn *turn) {
    return turn->act && (!turn->after || !strncmp(last_said, turn->after, strlen(turn->after)));
}

int wait_for(struct pollfd *fds, nfds_t count, int milliseconds) {
    if (count > 1) // all descriptors of a session; its CQ is the first
        look_at_posts(fds);
    int ready = poll(fds, count, 0);
    if (ready > 0)
        return ready;
    const struct turn *turn = next_turn;
    if (is_due(turn)) {
        next_turn++;
        turn->act(fds, turn->text);
    } else if (turn->act && !turn->takes_time) {
        return poll(fds, count, -1);
    } else {
        now += (uint64_t)milliseconds * 1000000;
    }
    return poll(fds, count, 0);
}

bool wait_readable(int fd, int milliseconds) {
    struct pollfd poll = {.fd = fd, .events = POLLIN};
    return wait_for(&poll, 1, milliseconds) > 0;
}

// ---- actions of the other side -------------------------------------------------------------

static void request(const struct pollfd *fds, const char *text) {
    ep_fd = fds[0].fd;
    fake_cm_event(ep_fd, RDMA_CM_EVENT_CONNECT_REQUEST, text, (uint8_t)(strlen(text) + 1));
}

static uint64_t session_number(const char *text) {
    const char *found = strstr(text, "session=");
    return found ? strtoull(found + strlen("session="), NULL, 10) : 0;
}

static void request_data(const struct pollfd *fds, const char *text) {
    char greeting[56];
    (void)fds;
    (void)text;
    snprintf(greeting, sizeof(greeting), "rpma-perf 1 data %lu 0",
             (unsigned long)session_number(said));
    fake_cm_event(ep_fd, RDMA_CM_EVENT_CONNECT_REQUEST, greeting, sizeof(greeting));
}

static void establish(const struct pollfd *fds, const char *text) {
    fake_cm_event(fds[0].fd, RDMA_CM_EVENT_ESTABLISHED, text,
                  text ? (uint8_t)(strlen(text) + 1) : 0);
}

// Puts the text into the receive for messages, which was posted first.
static void say(const struct pollfd *fds, const char *text) {
    const struct fake_call *receive = fake_nth("ibv_post_recv", 1);
    memcpy((void *)(uintptr_t)receive->recv.sge.addr, text, strlen(text));
    complete(fds, receive->recv.wr_id, IBV_WC_RECV, strlen(text));
}

static void pause_50_s(const struct pollfd *fds, const char *text) {
    (void)fds;
    (void)text;
    now += UINT64_C(50000000000);
}

static void leave(const struct pollfd *fds, const char *text) {
    (void)text;
    fake_cm_event(fds[1].fd, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
}

static void interrupt(const struct pollfd *fds, const char *text) {
    (void)fds;
    (void)text;
    is_interrupted = true;
}

// ---- running one side ----------------------------------------------------------------------

static int redirect(int fd, FILE *file) {
    int kept = dup(fd);
    assert_true(kept >= 0 && dup2(fileno(file), fd) == fd);
    return kept;
}

// Runs one side and returns its exit status; text gets its output and its errors.
static int run(int (*side)(struct options *options), struct options *options,
               const struct turn *turns, char *text, size_t size) {
    FILE *file = tmpfile();
    assert_non_null(file);
    next_turn = turns;
    now = 0;
    is_interrupted = false;
    memset(said, 0, sizeof(said));
    last_said = said;
    posts_seen = 0;
    failure_forget();
    fflush(stdout);
    int out = redirect(STDOUT_FILENO, file), err = redirect(STDERR_FILENO, file);
    int status = side(options);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    return status;
}

static int server_side(struct options *options) {
    return run_server(options);
}

static void expect_server(const struct turn *turns, int status, const char *line) {
    struct options options = {.is_server = true,
                              .address = "192.168.0.1",
                              .port = "7204",
                              .limit = 2 * SLOT_ALIGNMENT,
                              .once = true};
    char text[4096];
    int found = run(server_side, &options, turns, text, sizeof(text));
    if (!strstr(text, line))
        fail_msg("no \"%s\" in:\n%s", line, text);
    assert_int_equal(found, status);
}

static const struct plan a_write = {
    .size = 8, .depth = 1, .batch = 1, .elements = 1, .connections = 1, .threads = 1};

static const char *plan_text(const char *operation, uint64_t depth) {
    static char texts[4][1024];
    static unsigned next;
    static struct message message;
    struct plan plan = a_write;
    plan.depth = depth;
    while (strcmp(operations[plan.operation].name, operation) != 0)
        plan.operation++;
    message_begin(&message, "plan");
    plan_add_to(&plan, &message);
    char *text = texts[next++ % LENGTH(texts)];
    memcpy(text, message.text, message.length);
    text[message.length] = '\0';
    return text;
}

#define ENTERS             \
    {request, GREETING}, { \
        establish          \
    }

// ---- the tests -----------------------------------------------------------------------------

static void a_load_begins_once(void **state) {
    const struct turn turns[] = {ENTERS,           {say, plan_text("ping-pong", 1)},
                                 {request_data},   {establish},
                                 {say, "begin\n"}, {say, "begin\n"},
                                 {leave},          {NULL}};
    (void)state;
    expect_server(turns, EXIT_SUCCESS, "refused: there is nothing to begin");
    assert_non_null(strstr(said, "\nok\nrefused\nreason=there is nothing to begin\n"));
}

static void memory_has_a_limit(void **state) {
    const struct turn turns[] = {
        ENTERS, {say, plan_text("write", 2)}, {say, plan_text("write", 3)}, {leave}, {NULL}};
    (void)state;
    expect_server(turns, EXIT_SUCCESS, "refused: these settings need 12288 bytes");
    assert_int_equal(strncmp(said, "ready\n", 6), 0);
    assert_non_null(strstr(said, "\nrefused\nreason=these settings need 12288 bytes of memory, "
                                 "the server's --limit is 8192\n"));
}

static void nobody_guesses_a_session(void **state) {
    const struct turn turns[] = {
        ENTERS, {say, plan_text("write", 1)}, {say, plan_text("write", 1)}, {leave}, {NULL}};
    (void)state;
    expect_server(turns, EXIT_FAILURE, "closed the connection"); // in the middle of a load
    uint64_t first = session_number(said), second = session_number(last_said);
    assert_true(first != second);
    assert_true(first >> 32 && second >> 32); // of 64 random bits
}

static void a_silent_client_is_given_up(void **state) {
    const struct turn turns[] = {ENTERS, {say, "hello\n"}, {NULL}};
    (void)state;
    expect_server(turns, EXIT_FAILURE, "the client has said nothing for 60 s");
    assert_int_equal(now / 1000000000, 60);
}

static void a_client_that_speaks_is_kept(void **state) {
    const struct turn turns[] = {ENTERS,       {say, "hello\n"}, {pause_50_s}, {say, "alive\n"},
                                 {pause_50_s}, {say, "alive\n"}, {NULL}};
    (void)state;
    fake_device()->fast = true;
    expect_server(turns, EXIT_FAILURE, "the client has said nothing for 60 s");
    assert_non_null(strstr(said, "\nok\nok\n"));
    assert_int_equal(now / 1000000000, 160);
}

// The server names the file that clients may overwrite before the first of them comes.
static int server_with_file(struct options *options) {
    char path[] = "/tmp/rpma-perf-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && ftruncate(fd, SLOT_ALIGNMENT) == 0);
    options->memory = path;
    int status = run_server(options);
    close(fd);
    unlink(path);
    return status;
}

static void a_file_is_said_to_be_the_clients(void **state) {
    const struct turn turns[] = {ENTERS, {leave}, {NULL}};
    struct options options = {.address = "192.168.0.1", .port = "7204", .once = true};
    char text[4096];
    (void)state;
    assert_int_equal(run(server_with_file, &options, turns, text, sizeof(text)), EXIT_SUCCESS);
    assert_non_null(strstr(text, ", memory file that any client may overwrite\n"));
}

#define HELLO "hello\nlibrpma=1\nkernel=1\ndevice=d\nmemory=dram\ndirect-write=0\n"
// Packed data: a region of 4096 bytes for every usage; nothing is served natively.
#define READY                               \
    "ready\nsession=7\ntarget=f50101160200" \
    "0000010000000000"                      \
    "0010000000000000"                      \
    "4d000000ff00"                          \
    "00a0\n"

// The client sends even while a load runs, which the server must not notice.
static void a_client_speaks_all_the_time(void **state) {
    const struct turn turns[] = {{establish, GREETING},
                                 {say, HELLO, "hello"},
                                 {say, READY, "plan"},
                                 {establish, GREETING},
                                 {say, "ok\n", "begin"},
                                 {say, "ok\n", "measure"},
                                 {say, "ok\n", "alive", true},
                                 {interrupt, NULL, "alive", true},
                                 {NULL}};
    struct options options = {.address = "192.168.0.1",
                              .port = "7204",
                              .operation_count = 1,
                              .sizes = {8},
                              .size_count = 1,
                              .plan = a_write,
                              .limits = {.count = 1}};
    char text[4096];
    (void)state;
    assert_int_equal(run(run_client, &options, turns, text, sizeof(text)), EXIT_FAILURE);
    if (!strstr(text, "rpma-perf: interrupted\n"))
        fail_msg("%s", text);
    assert_true(now / 1000000000 >= 5 && now / 1000000000 < 7);
}

// More echoes than messages end the run: fewer than 0 messages would be outstanding.
static void an_echo_too_many_ends_the_run(void **state) {
    const struct limits limits = {.count = 1};
    struct plan plan = a_write;
    struct rpma_peer *peer;
    struct memory memory;
    struct rpma_conn_req *request = NULL;
    (void)state;
    plan.depth = 4;
    while (!operations[plan.operation].is_echoed)
        plan.operation++;
    failure_forget();
    MUST(rpma_peer_new(fake_context(0), &peer));
    assert_true(memory_allocate(&memory, lane_memory_size(&plan)));
    struct crew *crew = crew_new(&plan, peer, lane_queues(&plan), &memory, true,
                                 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV);
    assert_non_null(crew);
    struct rpma_conn_cfg *cfg = crew_next_cfg(crew, lane_queues(&plan));
    struct lane *lane = &crew->lanes[0];
    MUST(rpma_conn_req_new(peer, "192.168.0.1", "7204", cfg, &request));
    MUST(rpma_conn_req_connect(&request, NULL, &lane->link.conn));
    MUST(rpma_conn_cfg_delete(&cfg));
    int event_fd = -1;
    enum rpma_conn_event event;
    MUST(rpma_conn_get_event_fd(lane->link.conn, &event_fd));
    fake_cm_event(event_fd, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    MUST(rpma_conn_next_event(lane->link.conn, &event));
    assert_true(lane_prepare(lane));
    crew->limits = &limits;
    crew_open_gate(crew);
    struct ibv_wc wc = {.wr_id = (uintptr_t)lane, .opcode = IBV_WC_RECV, .byte_len = 8};
    int fd;
    MUST(rpma_cq_get_fd(lane->worker->cq, &fd));
    fake_complete(fake_cq_on(fd, 0), &wc);
    fake_complete(fake_cq_on(fd, 0), &wc);
    fake_fail_from("ibv_poll_cq", 2, EIO); // otherwise the load would poll for ever
    load_run(lane->worker);
    assert_string_equal(failure(), "the server returned a message that it was not sent");
    assert_false(lane->worker->is_done);
    fake_faults_off();
    crew_delete(crew);
    MUST(rpma_peer_delete(&peer));
}

// ---- ledgers: the answers are those of "perf_ledger.py known" -------------------------------

static const struct ledger_head known_head = {
    .run = UINT64_C(0xfedcba9876543210),
    .plan = {.operation = 3, .size = 4500, .ring = 8, .connections = 2}};

static void a_ledger_has_these_lines(void **state) {
    static const struct ledger_line lines[] = {{0, 3, 7}, {1, 2, 6}, {0, 13, 17}, {1, 10, 12}};
    static const char wanted[] =
        "rpma-perf ledger 1: run fedcba9876543210, flush-persistent, size 4500, ring 8, "
        "connections 2 1fa6e3e1\n"
        "0 3 7 cc253ac1\n1 2 6 878049d0\n0 13 17 0ad15d3e\n1 10 12 ce790deb\n";
    char path[] = "/tmp/rpma-perf-XXXXXX", text[sizeof(wanted) + 1];
    int fd = mkstemp(path);
    (void)state;
    failure_forget();
    assert_true(fd >= 0);
    assert_null(ledger_create(path, &known_head)); // what exists is not overwritten
    assert_non_null(strstr(failure(), "cannot make the ledger"));
    close(fd);
    unlink(path);
    struct ledger *ledger = ledger_create(path, &known_head);
    assert_non_null(ledger);
    for (size_t i = 0; i < LENGTH(lines); i++)
        ledger_add(ledger, lines[i]);
    assert_true(ledger_sync(ledger));
    ledger_close(ledger);
    FILE *file = fopen(path, "re");
    assert_int_equal(fread(text, 1, sizeof(text), file), sizeof(wanted) - 1);
    assert_memory_equal(text, wanted, sizeof(wanted) - 1);
    fclose(file);
    unlink(path);
}

static void a_record_has_these_bytes(void **state) {
    // In the byte order of the machine, as the record is.
    static const uint64_t first[] = {UINT64_C(0xfedcba9876543210),
                                     UINT64_C(0x1),
                                     UINT64_C(0x9),
                                     UINT64_C(0x12000),
                                     UINT64_C(0x4a491fd8c463a50e),
                                     UINT64_C(0xb3fa0fc454ac134)};
    static const uint32_t last = 0xdf63a397u;
    char record[4508] = {0};
    (void)state;
    record_fill(record, &known_head, 1, 9);
    assert_memory_equal(record, first, sizeof(first));
    assert_memory_equal(record + 4496, &last, sizeof(last));
    assert_int_equal(record[4500], 0);
}

static void wake(int number) {
    (void)number;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_load_begins_once),           TEST(memory_has_a_limit),
        TEST(nobody_guesses_a_session),     TEST(a_silent_client_is_given_up),
        TEST(a_client_that_speaks_is_kept), TEST(a_file_is_said_to_be_the_clients),
        TEST(a_client_speaks_all_the_time), TEST(an_echo_too_many_ends_the_run),
        TEST(a_ledger_has_these_lines),     TEST(a_record_has_these_bytes),
    };
    const struct sigaction waking = {.sa_handler = wake}; // without SA_RESTART: it ends waits
    sigaction(WAKE_SIGNAL, &waking, NULL);
    const char *trouble = fake_hook_allocator();
    if (trouble) {
        fprintf(stderr, "%s\n", trouble);
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
