// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_script.cc -- the scripted peer of a server or a client of rpma-perf, and the clock

#include "perf_script.hh"

#include <algorithm>
#include <csignal>
#include <deque>
#include <sys/resource.h>
#include <unistd.h>

static constexpr uint64_t NEVER_MS = 1000000; // longer than any test

static std::span<const ScriptStep> steps;
std::atomic<uint64_t> now;
std::vector<Json> sent_messages;
std::span<const uint64_t> group_times;
size_t group_size;
uint64_t cpu_step;
static bool is_interrupted, is_server, is_device_failed, is_receiving_stopped;
static std::vector<const fake_post *> undelivered; // messages that the peer has not received
static size_t messages_at_step; // number of sent_messages at the last step with `after`
static unsigned posts_seen;

// The epoll sets of the tested side, in creation order. The first set of a server is that of
// its endpoint.
struct SessionView {
    int epoll;
    std::vector<std::pair<uint64_t, int>> added; // descriptors, with their numbers
    fake_receive receive;                        // the receive for messages, once established

    int fd_of(uint64_t number) const {
        const auto last = std::find_if(added.rbegin(), added.rend(),
                                       [=](const auto &one) { return one.first == number; });
        return last == added.rend() ? -1 : last->second;
    }
};
static std::vector<SessionView> sessions_seen;
static size_t current;          // index of the server's selected session
static std::deque<int> pending; // event descriptors of pending connections
static std::vector<const fake_post *> outstanding;
static size_t operations_seen, operations_completed; // operations of the load
static uint64_t cpu_used = START;

// ---- replacements for waiting.cc -----------------------------------------------------------

uint64_t now_ns() {
    return now;
}

uint64_t elapsed_ms() {
    return (now - START) / 1000000;
}

uint64_t cpu_ns() {
    return cpu_used += cpu_step;
}

bool is_stopping() {
    return is_interrupted || elapsed_ms() > NEVER_MS;
}

Epoll::Epoll() : fd(epoll_create1(EPOLL_CLOEXEC)) {
    sessions_seen.push_back({fd, {}, {}});
}

Epoll::~Epoll() {
    std::ranges::find(sessions_seen, fd, &SessionView::epoll)->epoll =
        -1; // its number may be reused
    close(fd);
}

void Epoll::add(int readable, uint64_t number) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = number;
    assert_return_code(epoll_ctl(fd, EPOLL_CTL_ADD, readable, &event), errno);
    const auto view = std::ranges::find(sessions_seen, fd, &SessionView::epoll);
    view->added.emplace_back(number, readable);
    if (view - sessions_seen.begin() >= is_server &&
        (number == EventLoop::EVENTS || number >= EventLoop::CONNECTIONS))
        pending.push_back(readable);
}

// The fake reports the capabilities of its device only in ibv_query_device_ex().
int ibv_query_device(ibv_context *, ibv_device_attr *attributes) {
    attributes->atomic_cap = fake_profile()->attr.atomic_cap;
    return 0;
}

static SessionView &session() {
    if (is_server)
        return sessions_seen[current + 1];
    return *std::find_if(
        sessions_seen.rbegin(),
        sessions_seen.rend(), // a client has a new session after a break
        [](const SessionView &one) { return one.fd_of(EventLoop::EVENTS) >= 0; });
}

static void complete_request(uint64_t wr_id, ibv_wc_opcode opcode, size_t length = 0,
                             ibv_wc_status status = IBV_WC_SUCCESS) {
    ibv_wc wc{};
    wc.wr_id = wr_id;
    wc.status = status;
    wc.opcode = opcode;
    wc.byte_len = static_cast<uint32_t>(length);
    fake_complete(fake_cq_on(session().fd_of(EventLoop::CQ), 0), &wc);
}

static void complete_group() {
    now += group_times.front();
    group_times = group_times.subspan(1);
    for (const fake_post *post : outstanding) {
        ibv_wc wc{};
        wc.wr_id = post->wr_id;
        wc.opcode = post->opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
        fake_complete(reinterpret_cast<Connection *>(post->wr_id)->worker->cq->get_ibv_cq(),
                      &wc);
    }
    operations_completed += outstanding.size();
    outstanding.clear();
}

// True for an operation with data, because only the load posts such operations.
static bool is_of_load(const fake_post &post) {
    return post.opcode != IBV_WR_SEND && post.num_sge > 0 && post.sge.length > 0;
}

// The peer receives messages, and its device completes keepalive reads.
static void process_posts() {
    for (; posts_seen < fake_posted_count(); posts_seen++) {
        const fake_post *post = fake_posted(posts_seen);
        if (is_of_load(*post)) {
            operations_seen++;
            if (post->flags & IBV_SEND_SIGNALED && !group_times.empty())
                outstanding.push_back(post);
        } else if (post->opcode == IBV_WR_RDMA_READ) {
            assert_int_equal(post->num_sge, 1); // of 0 bytes: see ControlChannel::keep_alive()
            if (!is_device_failed)
                complete_request(post->wr_id, IBV_WC_RDMA_READ);
        } else if (post->opcode == IBV_WR_SEND) {
            undelivered.push_back(post);
        }
    }
    for (; !is_receiving_stopped && !undelivered.empty();
         undelivered.erase(undelivered.begin())) {
        const ibv_sge &sge = undelivered[0]->sge;
        sent_messages.push_back(decode({reinterpret_cast<const char *>(sge.addr), sge.length}));
        complete_request(undelivered[0]->wr_id, IBV_WC_SEND);
    }
    if (!outstanding.empty() && outstanding.size() == group_size)
        complete_group();
}

static bool is_due(const ScriptStep &step) {
    return step.after.empty() || (sent_messages.size() > messages_at_step &&
                                  sent_messages.back()["word"] == step.after);
}

std::span<epoll_event> wait_for(const Epoll &epoll, std::span<epoll_event> room,
                                int milliseconds) {
    const auto take_events = [&](int time) {
        const int found =
            epoll_wait(epoll.fd, room.data(), static_cast<int>(room.size()), time);
        return room.first(static_cast<size_t>(std::max(found, 0)));
    };
    process_posts();
    if (const auto found = take_events(0); !found.empty() || milliseconds == 0)
        return found;
    if (!steps.empty() && is_due(steps[0])) {
        const ScriptStep &step = steps[0];
        steps = steps.subspan(1);
        if (!step.after.empty())
            messages_at_step = sent_messages.size();
        step.act(step.text);
    } else if (!steps.empty() && !steps[0].takes_time) {
        std::span<epoll_event> found; // until a thread of the load makes it readable or posts
        while ((found = take_events(1)).empty())
            process_posts();
        return found;
    } else {
        now += static_cast<uint64_t>(milliseconds) * 1000000;
    }
    return take_events(0);
}

// ---- actions of the other side -------------------------------------------------------------

void request(const std::string &greeting) {
    fake_cm_event(sessions_seen[0].fd_of(0), RDMA_CM_EVENT_CONNECT_REQUEST, greeting.c_str(),
                  static_cast<uint8_t>(greeting.size() + 1));
}

void request_data(const std::string &number) {
    const auto ready =
        std::find_if(sent_messages.rbegin(), sent_messages.rend(),
                     [](const Json &message) { return message["word"] == "ready"; });
    request(fmt::format("rpma-perf 4 data {} {}", (*ready)["session"].get<uint64_t>(),
                        number.empty() ? "0" : number));
}

static void end_connecting(rdma_cm_event_type type, const std::string &text) {
    const int fd = pending.front();
    pending.pop_front();
    SessionView &newest = is_server ? sessions_seen.back() : session();
    if (fd == newest.fd_of(EventLoop::EVENTS) && type == RDMA_CM_EVENT_ESTABLISHED)
        newest.receive = fake_last("ibv_post_recv")->recv;
    fake_cm_event(fd, type, text.empty() ? nullptr : text.c_str(),
                  static_cast<uint8_t>(text.empty() ? 0 : text.size() + 1));
}

void establish(const std::string &greeting) {
    end_connecting(RDMA_CM_EVENT_ESTABLISHED, greeting);
}

void refuse(const std::string &greeting) {
    end_connecting(RDMA_CM_EVENT_REJECTED, greeting);
}

void fail_connecting(const std::string &type) {
    end_connecting(static_cast<rdma_cm_event_type>(std::stoi(type)), "");
}

void ignore_connecting(const std::string &) {
    pending.pop_front();
}

// Copies the text into the receive for messages.
void send_message(const std::string &text) {
    memcpy(reinterpret_cast<void *>(session().receive.sge.addr), text.data(), text.size());
    complete_request(session().receive.wr_id, IBV_WC_RECV, text.size());
}

void pause_50_s(const std::string &) {
    now += UINT64_C(50000000000);
}

void disconnect_control(const std::string &) {
    fake_cm_event(session().fd_of(EventLoop::EVENTS), RDMA_CM_EVENT_DISCONNECTED, nullptr, 0);
}

void disconnect_connection(const std::string &number) {
    const uint64_t connection = number.empty() ? 0 : std::stoull(number);
    fake_cm_event(session().fd_of(EventLoop::CONNECTIONS + connection),
                  RDMA_CM_EVENT_DISCONNECTED, nullptr, 0);
}

void send_unexpected_event(const std::string &) {
    fake_cm_event(session().fd_of(EventLoop::EVENTS), RDMA_CM_EVENT_ADDR_CHANGE, nullptr, 0);
}

void send_unexpected_connection_event(const std::string &) {
    fake_cm_event(session().fd_of(EventLoop::CONNECTIONS), RDMA_CM_EVENT_ADDR_CHANGE, nullptr,
                  0);
}

void fail_receive(const std::string &status) {
    complete_request(session().receive.wr_id, IBV_WC_RECV, 0,
                     static_cast<ibv_wc_status>(std::stoi(status)));
}

void fail_device(const std::string &) {
    is_device_failed = true;
}

void stop_receiving(const std::string &) {
    is_receiving_stopped = true;
}

void resume_receiving(const std::string &) {
    is_receiving_stopped = false;
}

void interrupt(const std::string &) {
    is_interrupted = true;
}

void select_session(const std::string &number) {
    current = std::stoul(number);
}

void clear_posts(const std::string &) {
    fake_forget();
    posts_seen = 0;
}

void finish_groups() {
    while (!group_times.empty() || operations_seen == operations_completed)
        process_posts();
}

std::vector<ScriptStep> script_of(const Actions &actions, const std::string &script) {
    std::vector<ScriptStep> result;
    for (size_t begin = 0, end; begin < script.size(); begin = end + 2) {
        end = std::min(script.find(", ", begin), script.size());
        const auto found = actions.find(script.substr(begin, end - begin));
        if (found == actions.end())
            fail_msg("unknown action in a script: %s", script.c_str() + begin);
        result.insert(result.end(), found->second.begin(), found->second.end());
    }
    return result;
}

// ---- running one side ----------------------------------------------------------------------

static int redirect(int fd, FILE *file) {
    const int kept = dup(fd);
    assert_true(kept >= 0 && dup2(fileno(file), fd) == fd);
    return kept;
}

static void begin_script(std::span<const ScriptStep> script, bool serves) {
    steps = script;
    now = START;
    is_interrupted = is_device_failed = is_receiving_stopped = false;
    undelivered = {};
    is_server = serves;
    sent_messages = {};
    messages_at_step = 0;
    posts_seen = 0;
    outstanding = {};
    operations_seen = operations_completed = 0;
    sessions_seen = {};
    pending = {};
    current = 0;
    fake_device()->fast = true; // the send queues would fill up after a few operations
}

static Outcome run_side(int (*side)(const Options &), const Options &options) {
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int out = redirect(STDOUT_FILENO, file), err = redirect(STDERR_FILENO, file);
    Outcome outcome{std::string(4096, '\0'), "", EXIT_FAILURE};
    try {
        outcome.status = side(options);
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

Outcome run_server_with(const Options &options, const std::vector<ScriptStep> &script) {
    begin_script(script, true);
    return run_side(run_server, options);
}

Outcome run_client_with(const Options &options, const std::vector<ScriptStep> &script) {
    begin_script(script, false);
    return run_side(run_client, options);
}

void expect_equal(const char *name, const std::string &found, const std::string &wanted) {
    if (found != wanted)
        fail_msg("%s:\n\"%s\" instead of\n\"%s\"", name, found.c_str(), wanted.c_str());
}

void expect_part(const char *name, const std::string &text, const std::string &part) {
    if (text.find(part) == std::string::npos)
        fail_msg("%s: no \"%s\" in:\n%s", name, part.c_str(), text.c_str());
}

std::string sent_summary() {
    std::string words;
    for (const Json &message : sent_messages) {
        words += words.empty() ? "" : ", ";
        words += message["word"].get<std::string>();
        if (message.contains("reason"))
            words += ": " + message["reason"].get<std::string>();
        for (const char *figure : {"done", "cpu_ns", "operations", "ns"})
            if (message.contains(figure) && message["word"] != "plan")
                words += " " + message[figure].dump();
    }
    return words;
}

Plan plan_of_test(std::string_view operation, Plan plan) {
    plan.operation = find_operation(operation);
    return plan;
}

std::string text_of(std::string_view type, const Json &members) {
    return message(type, members).dump();
}

int main(int argc, char **argv) {
    struct sigaction waking {}; // without SA_RESTART, so that the signal interrupts waits
    waking.sa_handler = [](int) {};
    sigaction(WAKE_SIGNAL, &waking, nullptr);
    rlimit limit; // each client needs several descriptors
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return unit_main(argc, argv);
}
