// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// test_explore.cc -- rdma_sim_explore(): many schedules of the programs of a test
//
// Each schedule runs in a child of the test, so that it begins with the same memory and cannot
// harm the next one. A program is a coroutine; it runs until it gives its turn back.

#include "../explore/chooser.hh"
#include "../explore/limits.hh"
#include "../server/server.hh"
#include "coroutine.hh"
#include "direct.hh"
#include "test.hh"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <list>
#include <memory>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sim {

namespace {

constexpr uint64_t SCHEDULES = 1000;
constexpr size_t MAX_CHOICES = 1 << 16;

// What a child reports, also if it is killed: in memory that it shares with the test.
struct Report {
    std::atomic<uint32_t> turns, choices;
    std::atomic<bool> has_ended;
    char finding[512];
    Choice made[MAX_CHOICES];
};

// A program of the test.
struct Player {
    explicit Player(const rdma_sim_program *given) : program(given) {}
    const rdma_sim_program *program;
    std::string name{};
    enum { START, REQUEST, EVENT, POLL, SLEEP, ENDED } state = START;
    const char *function = "its start"; // in which it waits
    bool is_listening = false;
    uint64_t until = NEVER, started_at = 0, idle_since = 0, changes = 0;
    unsigned host = program->host; // of its next calls
    Coroutine coroutine{};
};

class Play : Clock, NoPrograms {
  public:
    Play(const rdma_sim_test &test, const Options &options, const ExploredFaults &faults,
         Chooser &chooser, Report &report, bool is_traced);
    void run();
    void yield(decltype(Player::state) state, uint64_t until, const char *function);
    uint64_t now() { return direct_->fabric().now(); }
    static thread_local Player *player; // that has the turn; NULL in other threads

  private:
    // Scheduler
    uint64_t delay(Delayed what) override;
    unsigned choose(Weakness weakness, unsigned options) override;
    void completed(const Cq &, const ibv_wc &) override { changes_++; }
    void signaled(const Channel &) override { changes_++; }
    // NoPrograms
    Fabric &fabric() override { return direct_->fabric(); }
    void ended() override { changes_++; }

    template <class... Arguments> auto choose_option(const Arguments &...arguments);
    void run_player(Player &one);
    bool is_ready(const Player &one);
    bool may_start(const Player &one);
    bool step();
    bool pass_time();
    void advance(uint64_t time);
    void give_turn(Player &one);
    void apply_fault(const Fault &fault);
    void find(const std::string &what);
    void trace(const std::string &who, const std::string &what);

    const rdma_sim_test &test_;
    const ExploredFaults &faults_;
    Chooser &chooser_;
    Report &report_;
    const bool is_traced_;
    std::unique_ptr<Direct> direct_;
    std::list<Player> players_;
    size_t current_ = 0;
    uint64_t changes_ = 0, progress_at_ = 0;
    uint64_t progress_turns_ = 0;
    bool is_finished_ = false;
    unsigned occurred_ = 0; // faults
};

thread_local Player *Play::player;
Play *play; // of this child

Play::Play(const rdma_sim_test &test, const Options &given, const ExploredFaults &faults,
           Chooser &chooser, Report &report, bool is_traced)
    : test_(test), faults_(faults), chooser_(chooser), report_(report), is_traced_(is_traced) {
    Options options = given;
    options.scheduler = this;
    direct_ = std::make_unique<Direct>(options);
    for (unsigned i = 0; i < test.program_count; i++) {
        Player &one = players_.emplace_back(&test.programs[i]);
        one.name =
            one.program->name ? one.program->name : "host" + std::to_string(one.program->host);
    }
}

// ---- choices -------------------------------------------------------------------------------

// The report has each choice at once, because a program can end the child.
template <class... Arguments> auto Play::choose_option(const Arguments &...arguments) {
    const size_t before = chooser_.choices.size();
    const auto option = chooser_.choose(arguments...);
    for (size_t i = before; i < chooser_.choices.size() && i < MAX_CHOICES; i++) {
        report_.made[i] = chooser_.choices[i];
        report_.choices = static_cast<uint32_t>(i) + 1;
    }
    return option;
}

// ---- turns ---------------------------------------------------------------------------------

void Play::run_player(Player &one) {
    const int status = one.program->run(one.program->argument);
    if (status != 0 && occurred_ == 0)
        find(one.name + " ends with status " + std::to_string(status));
    trace(one.name, "ends with status " + std::to_string(status));
    yield(Player::ENDED, NEVER, "its end");
}

// Called by a program: gives the turn back. After its end it gets none.
void Play::yield(decltype(Player::state) state, uint64_t until, const char *function) {
    Player &one = *player;
    one.state = state;
    one.until = until;
    one.function = function;
    one.changes = changes_;
    if (state == Player::REQUEST)
        one.idle_since = now();
    if (state == Player::POLL)
        one.until = next_poll(now(), one.idle_since);
    one.coroutine.yield();
}

void Play::give_turn(Player &one) {
    if (++report_.turns > MAX_REQUESTS) {
        is_finished_ = true;
        if (occurred_ == 0) // after a fault, programs may wait for ever
            find("the programs do not end within 200000 calls");
        return;
    }
    if (one.state == Player::START) {
        trace(one.name, "starts");
        one.started_at = now();
    }
    if (one.state == Player::REQUEST) {
        progress_at_ = now();
        progress_turns_ = report_.turns;
        one.is_listening |= strcmp(one.function, "rdma_listen") == 0;
        trace(one.name, one.function);
    }
    const unsigned host = direct_->host();
    player = &one;
    direct_->use_host(one.host);
    one.coroutine.resume();
    one.host = direct_->host();
    direct_->use_host(host);
    player = nullptr;
}

// The first program starts at once, the others when it listens, waits or has ended.
bool Play::may_start(const Player &one) {
    const Player &first = players_.front();
    return &one == &first || first.is_listening || first.state == Player::ENDED ||
           (first.state != Player::START && now() >= first.started_at + SECOND);
}

bool Play::is_ready(const Player &one) {
    switch (one.state) {
    case Player::START:
        return may_start(one);
    case Player::REQUEST:
        return true;
    case Player::ENDED:
        return false;
    default:
        return one.until <= now() || (one.state != Player::SLEEP && one.changes != changes_);
    }
}

void Play::advance(uint64_t time) {
    const std::lock_guard held(direct_->lock());
    fabric().advance(time);
}

bool Play::pass_time() {
    uint64_t next = fabric().next_timer();
    const bool waits_forever =
        next == NEVER && ::is_idle(now() - progress_at_, report_.turns - progress_turns_);
    for (const Player &one : players_)
        if (one.state == Player::START)
            next = std::min(next, players_.front().started_at + SECOND);
        else
            next = std::min(next, one.until);
    if (next != NEVER && !waits_forever) {
        advance(next);
        return true;
    }
    std::string all;
    for (const Player &one : players_)
        if (one.state != Player::ENDED)
            all += (all.empty() ? "" : ", ") + one.name + " waits in " + one.function;
    if (occurred_ == 0)
        find("the programs wait for ever: " + all);
    return false;
}

bool Play::step() {
    if (is_finished_ || report_.finding[0] != '\0' ||
        std::ranges::all_of(players_,
                            [](const Player &one) { return one.state == Player::ENDED; }))
        return false;
    if (const Fault *const fault = choose_option(Chooser::FAULT, faults_))
        apply_fault(*fault);
    std::vector<Player *> ready;
    for (size_t i = 0; i < players_.size(); i++) {
        Player &one = *std::next(players_.begin(),
                                 static_cast<ptrdiff_t>((current_ + i) % players_.size()));
        if (is_ready(one))
            ready.push_back(&one);
    }
    if (ready.empty())
        return pass_time();
    const uint64_t timer = fabric().next_timer();
    const uint32_t turn =
        choose_option(Chooser::TURN, ready.size() - 1 + (timer != NEVER ? 1 : 0));
    if (turn == ready.size()) {
        trace("", "time passes before a program continues");
        advance(timer);
        return true;
    }
    if (turn != 0)
        trace(ready[turn]->name, "continues before " + ready[0]->name);
    current_ = static_cast<size_t>(std::distance(
        players_.begin(),
        std::ranges::find_if(players_, [&](Player &one) { return &one == ready[turn]; })));
    give_turn(*ready[turn]);
    return true;
}

// ---- choices
// ---------------------------------------------------------------------------------

uint64_t Play::delay(Delayed what) {
    const uint32_t option = choose_option(Chooser::DELAY, std::size(LATE));
    if (option == 0)
        return 0;
    trace("", late_text(what, option));
    return LATE[option - 1];
}

unsigned Play::choose(Weakness weakness, unsigned options) {
    const uint32_t option = choose_option(weakness, options);
    if (option != 0)
        trace("", weakness_text(weakness));
    return option;
}

void Play::apply_fault(const Fault &fault) {
    occurred_++;
    trace("", "fault: " + fault.text);
    const std::lock_guard held(direct_->lock());
    occur(fault);
}

// ---- the result
// ------------------------------------------------------------------------------

void Play::find(const std::string &what) {
    if (report_.finding[0] == '\0')
        snprintf(report_.finding, sizeof(report_.finding), "%s", what.c_str());
}

void Play::trace(const std::string &who, const std::string &what) {
    if (is_traced_)
        fprintf(stderr, "%12.3f ms %s%s%s\n", static_cast<double>(now()) / 1e6,
                who.empty() ? "- " : "  ", who.empty() ? "" : (who + " ").c_str(),
                what.c_str());
}

void Play::run() {
    play = this;
    direct_->set_before_call([this](const char *function) {
        if (player)
            yield(Player::REQUEST, NEVER, function);
    });
    rdma_sim_set_waiter([](int fd, const Ring *ring) {
        if (!Play::player)
            return;
        if (ring) {
            if (ring->added == ring->taken)
                play->yield(Player::POLL, NEVER, "ibv_poll_cq");
            return;
        }
        pollfd ready = {fd, POLLIN, 0};
        while ((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0 && poll(&ready, 1, 0) == 0)
            play->yield(Player::EVENT, NEVER, "ibv_get_cq_event or rdma_get_cm_event");
    });
    for (Player &one : players_)
        if (!one.coroutine.start([this, &one] { run_player(one); }))
            find(std::string("no memory for the stack of a program: ") + strerror(errno));
    while (step())
        ;
    const char *const wrong =
        report_.finding[0] == '\0' && test_.check ? test_.check(test_.argument) : nullptr;
    if (wrong)
        find(std::string("the check fails: ") + wrong);
    if (report_.finding[0] != '\0')
        trace("", std::string("FOUND: ") + report_.finding);
    report_.has_ended = true;
}

// ---- schedules
// -------------------------------------------------------------------------------

class Search {
  public:
    explicit Search(const rdma_sim_test &test);
    ~Search() { munmap(report_, sizeof(Report)); }
    Search(const Search &) = delete;
    Search &operator=(const Search &) = delete;
    std::string run();

  private:
    std::string try_one(const Chooser &chooser, uint64_t seed, bool is_traced);
    std::string wait_for(pid_t child);
    std::vector<Choice> choices() const {
        return {report_->made, report_->made + report_->choices};
    }

    const rdma_sim_test &test_;
    Options options_;
    ExploredFaults faults_;
    Report *report_;
};

Search::Search(const rdma_sim_test &test) : test_(test), options_(options_of(&test.options)) {
    if (test.program_count == 0 || !test.programs)
        throw Refusal{EINVAL, "the test has no program"};
    ExploredHosts hosts;
    hosts.devices.assign(options_.hosts, options_.profile);
    for (unsigned i = 0; i < test.program_count; i++)
        if (test.programs[i].host == 0 || test.programs[i].host > options_.hosts)
            throw Refusal{ERANGE, "program " + std::to_string(i) + " is on host" +
                                      std::to_string(test.programs[i].host) + ", there are " +
                                      std::to_string(options_.hosts) + " hosts"};
        else if (!test.programs[i].run)
            throw Refusal{EINVAL, "program " + std::to_string(i) + " has no function"};
    std::vector<std::string_view> names;
    for_each_name(test.faults ? test.faults : "none", [&](std::string_view name) {
        const FaultKind *const kind = name == "none" ? nullptr : find_fault(name);
        if (name != "none" && !kind)
            throw Refusal{EINVAL, "there is no fault '" + std::string(name) + "'"};
        if (kind && (kind->needs_programs || explored_faults(hosts, {name}).groups.empty()))
            throw Refusal{ENOTSUP,
                          "no host of a test can have the fault '" + std::string(name) + "'"};
        names.push_back(name);
    });
    faults_ = explored_faults(hosts, names);
    void *const memory = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw Refusal{EIO, std::string("mmap: ") + strerror(errno)};
    report_ = static_cast<Report *>(memory);
}

// Waits until the child ends, or makes no call for MAX_TURN.
std::string Search::wait_for(pid_t child) {
    int status = 0;
    const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    pollfd event = {descriptor, POLLIN, 0};
    uint32_t turns = 0;
    while (descriptor >= 0 && poll(&event, 1, MAX_TURN) <= 0) {
        if (const uint32_t now = report_->turns; now != turns) {
            turns = now;
            continue;
        }
        ::kill(child, SIGKILL);
        waitpid(child, &status, 0);
        close(descriptor);
        return "a program makes no call for 10 s: it loops, or waits for something else than "
               "libibverbs and librdmacm";
    }
    waitpid(child, &status, 0);
    if (descriptor >= 0)
        close(descriptor);
    if (WIFSIGNALED(status))
        return std::string("a program is ended by signal ") + std::to_string(WTERMSIG(status)) +
               " (" + strsignal(WTERMSIG(status)) + ")";
    if (!report_->has_ended)
        return "a program ends the process with status " + std::to_string(WEXITSTATUS(status));
    return report_->finding;
}

std::string Search::try_one(const Chooser &chooser, uint64_t seed, bool is_traced) {
    report_->turns = report_->choices = 0;
    report_->has_ended = false;
    report_->finding[0] = '\0';
    fflush(nullptr);
    const pid_t child = fork();
    if (child < 0)
        throw Refusal{EIO, std::string("fork: ") + strerror(errno)};
    if (child == 0) {
        Options options = options_;
        options.seed = seed;
        Chooser own = chooser;
        // Not destroyed: programs that wait for ever use it.
        (new Play(test_, options, faults_, own, *report_, is_traced))->run();
        fflush(nullptr);
        _exit(EXIT_SUCCESS);
    }
    return wait_for(child);
}

std::string Search::run() {
    const uint64_t first = options_.seed, count = test_.schedules ? test_.schedules : SCHEDULES;
    for (uint64_t seed = first; seed < first + count; seed++) {
        const std::string finding = try_one(Chooser(seed), seed, false);
        if (finding.empty())
            continue;
        const std::vector<Choice> fewest =
            shorten(choices(), MAX_TRIES, [&](const std::vector<Choice> &fewer) {
                return is_same_finding(try_one(Chooser(fewer), seed, false), finding);
            });
        const std::string again = try_one(Chooser(fewest), seed, true);
        return "seed " + std::to_string(seed) + ": " +
               (again.empty() ? finding + " (not found again: the test depends on something "
                                          "that the seed does not determine)"
                              : again);
    }
    return "";
}

} // namespace

bool is_explored_program() {
    return Play::player != nullptr;
}

bool sleep_of_program(uint64_t nanoseconds) {
    if (!Play::player)
        return false;
    const uint64_t until = play->now() + nanoseconds;
    while (play->now() < until)
        play->yield(Player::SLEEP, until, "rdma_sim_advance");
    return true;
}

std::string explore(const rdma_sim_test &test) {
    return Search(test).run();
}

} // namespace sim
