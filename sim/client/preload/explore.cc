// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// explore.cc -- for "rdma-sim explore": virtualizes time, and turns waits into requests for the
// next turn

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <unistd.h>

#include "../return_addresses.hh"
#include "control.hh"

namespace {

using namespace control;

constexpr unsigned MAX_CLOCK_READS =
    1000; // in sequence, without another call: the program polls the clock

volatile sim::VirtualClock *virtual_clock; // NULL: the program is not controlled
__thread bool is_controlled;
bool has_other_threads;
unsigned clock_reads;

} // namespace

namespace control {

bool is_on() {
    return is_controlled;
}

pid_t own_tid() {
    return static_cast<pid_t>(REAL(syscall)(SYS_gettid));
}

bool has_threads() {
    return has_other_threads;
}

void set_has_threads() {
    has_other_threads = true;
}

uint64_t now() {
    return virtual_clock->now;
}

volatile sim::VirtualClock &shared() {
    return *virtual_clock;
}

// Returns when the scheduler continues the thread. `call`: sends the request.
template <class Call> static void send_request(Call call) {
    const int error = errno;
    int cancel_state;
    sigset_t signals;
    clock_reads = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    const bool blocks = block_signals(signals);
    if (call() != 0) { // rdma-sim has ended
        is_controlled = false;
        _exit(sim::EXIT_FAILED);
    }
    pthread_setcancelstate(cancel_state, nullptr);
    if (is_controlled)
        expire_timers();
    if (blocks) // the handlers of pending signals run now
        pthread_sigmask(SIG_SETMASK, &signals, nullptr);
    errno = error;
}

void ask(const sim::Transmit &request, const void *more, size_t size,
         sim::Transmit::Reply &reply) {
    rdma_sim_message message{&request, sizeof(request), more, size,
                             &reply,   sizeof(reply),   0,    -1};
    send_request([&] { return rdma_sim_call(&message); });
}

void wait_for_turn(Wait::Kind kind, uint64_t until, const char *function, uint64_t object) {
    Wait request = {};
    request.kind = kind;
    request.until = is_controlled ? std::min(until, next_timer()) : until;
    request.object = object;
    snprintf(request.function, sizeof(request.function), "%s", function);
    sim::Empty reply;
    send_request([&] { return sim::call(request, reply); });
}

[[noreturn]] void refuse(const char *function) {
    wait_for_turn(Wait::UNSUPPORTED, NEVER, function);
    _exit(EXIT_FAILURE);
}

uint64_t number_of(const volatile void *object) {
    const auto address = reinterpret_cast<uintptr_t>(object) >> 3;
    return 1 + (address ^ address >> 10 ^ address >> 20) % (SHARED_OBJECT - 1);
}

void object_changed(uint64_t number) {
    virtual_clock->changes[number] = virtual_clock->changes[number] + 1;
}

void descriptors_changed() {
    object_changed(0);
}

void begin_thread() {
    wait_for_turn(Wait::THREAD, NEVER, "its start", static_cast<uint64_t>(own_tid()));
    number_thread();
    catch_direct_calls();
    is_controlled = true;
}

void end_thread() {
    wait_for_turn(Wait::EXIT, NEVER, "its end", static_cast<uint64_t>(own_tid()));
    is_controlled = false;
}

Uncontrolled::Uncontrolled() {
    is_controlled = false;
}
Uncontrolled::~Uncontrolled() {
    is_controlled = true;
}

} // namespace control

namespace {

// Line buffering keeps the complete lines of a program that is killed.
__attribute__((constructor)) void begin(int, char **argv) {
    const char *const path = getenv("RDMA_SIM_CLOCK");
    if (path == nullptr)
        return;
    const int fd = REAL(open)(path, O_RDWR | O_CLOEXEC);
    void *const page =
        mmap(nullptr, sizeof(sim::VirtualClock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        fprintf(stderr, "rdma-sim: %s: %s\n", path, strerror(errno));
        _exit(sim::EXIT_FAILED); // it would run without control
    }
    close(fd);
    virtual_clock = static_cast<sim::VirtualClock *>(page);
    setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    rdma_sim_connect_threads();
    find_counter();
    find_direct_calls(argv);
    fork_for_each_schedule();
    const char *const program = getenv("RDMA_SIM_PROGRAM");
    seed_random(virtual_clock->seed +
                (program == nullptr ? 0 : strtoull(program, nullptr, 10)));
    wait_for_turn(Wait::START, NEVER, "its start");
    add_process(static_cast<pid_t>(REAL(syscall)(SYS_getpid)));
    make_counter_virtual();
    catch_direct_calls();
    is_controlled = true;
    replace_standard_streams();
}

uint64_t read_clock() {
    if (++clock_reads >= MAX_CLOCK_READS)
        wait_for_turn(Wait::POLL, NEVER, "a loop that reads the clock");
    return now();
}

bool is_of_processor(clockid_t id) {
    return id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID || id < 0;
}

} // namespace

uint64_t control::read_monotonic_clock() {
    return read_clock();
}

uint64_t control::begin_of_real_time() {
    const char *const host = getenv("RDMA_SIM_HOST");
    const unsigned long number = host == nullptr ? 1 : strtoul(host, nullptr, 10);
    return sim::VirtualClock::EPOCH + virtual_clock->ahead[number % 256];
}

uint64_t control::until(const timespec *time, bool is_real) {
    const uint64_t moment = nanoseconds(*time), begin = is_real ? begin_of_real_time() : 0;
    return moment < begin ? 0 : moment - begin;
}

uint64_t control::after(const timespec *duration) {
    return duration == nullptr ? NEVER : now() + nanoseconds(*duration);
}

namespace {

uint64_t read_clock(clockid_t id) {
    const bool is_real = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI;
    return read_clock() + (is_real ? begin_of_real_time() : 0);
}

// Returns the time that was left when a handler interrupted the sleep, or 0.
uint64_t sleep_until(uint64_t until, const char *function) {
    const unsigned before = handled_signals();
    do
        wait_for_turn(Wait::SLEEP, until, function);
    while (now() < until && handled_signals() == before);
    return now() < until ? until - now() : 0;
}

// The result of a sleep that returns the rest of its time in `left`.
int sleep_with_rest(uint64_t until, const char *function, timespec *left, int interrupted) {
    const uint64_t rest = sleep_until(until, function);
    if (rest != 0 && left != nullptr)
        *left = to_timespec(rest);
    return rest == 0 ? 0 : interrupted;
}

// Returns the result of ready() once it is not 0, or 0 at the time `until`. If this time has
// passed already, the program is polling.
template <class Ready> int wait_until_ready(uint64_t until, const char *function, Ready ready) {
    int result = ready();
    if (result != 0)
        return result;
    if (until <= now()) {
        wait_for_turn(Wait::POLL, NEVER, function);
        return ready();
    }
    const unsigned before = handled_signals();
    while (result == 0 && now() < until) {
        wait_for_turn(Wait::EVENT, until, function);
        pthread_testcancel();
        result = ready();
        if (result == 0 && handled_signals() != before) {
            errno = EINTR;
            return -1;
        }
    }
    return result;
}

uint64_t after(uint64_t duration) {
    return now() + duration;
}
uint64_t after_ms(int timeout) {
    return timeout < 0 ? NEVER : after(static_cast<uint64_t>(timeout) * 1'000'000);
}
} // namespace

extern "C" {
int __poll_chk(pollfd *, nfds_t, int, size_t);
int __ppoll_chk(pollfd *, nfds_t, const timespec *, const sigset_t *, size_t);
}

// ---- time ----------------------------------------------------------------------------------

EXPORTED int clock_gettime(clockid_t id, timespec *to) noexcept {
    if (!is_on() || is_of_processor(id))
        return REAL(clock_gettime)(id, to);
    *to = to_timespec(read_clock(id));
    return 0;
}
EXPORTED int gettimeofday(timeval *to, void *zone) noexcept {
    if (!is_on())
        return REAL(gettimeofday)(to, zone);
    const timespec time = to_timespec(read_clock(CLOCK_REALTIME));
    *to = {time.tv_sec, time.tv_nsec / 1000};
    return 0;
}
EXPORTED time_t time(time_t *to) noexcept {
    if (!is_on())
        return REAL(time)(to);
    const auto seconds = static_cast<time_t>(read_clock(CLOCK_REALTIME) / SECOND);
    if (to != nullptr)
        *to = seconds;
    return seconds;
}
// The processor time of a program differs between runs.
EXPORTED clock_t clock() noexcept {
    return is_on() ? static_cast<clock_t>(read_clock() / (SECOND / CLOCKS_PER_SEC))
                   : REAL(clock)();
}
EXPORTED int timespec_get(timespec *to, int base) noexcept {
    if (!is_on() || base != TIME_UTC)
        return REAL(timespec_get)(to, base);
    *to = to_timespec(read_clock(CLOCK_REALTIME));
    return base;
}
EXPORTED int thrd_sleep(const timespec *time, timespec *left) {
    if (!is_on())
        return REAL(thrd_sleep)(time, left);
    return sleep_with_rest(after(time), "thrd_sleep", left, -1);
}
EXPORTED int nanosleep(const timespec *time, timespec *left) {
    if (!is_on())
        return REAL(nanosleep)(time, left);
    errno = EINTR;
    return sleep_with_rest(after(time), "nanosleep", left, -1);
}
EXPORTED int clock_nanosleep(clockid_t id, int flags, const timespec *time, timespec *left) {
    if (!is_on())
        return REAL(clock_nanosleep)(id, flags, time, left);
    if (is_of_processor(id))
        return REAL(clock_nanosleep)(id, flags, time, left);
    const bool is_real = id == CLOCK_REALTIME || id == CLOCK_TAI;
    const bool is_absolute = (flags & TIMER_ABSTIME) != 0;
    return sleep_with_rest(is_absolute ? control::until(time, is_real) : after(time),
                           "clock_nanosleep", is_absolute ? nullptr : left, EINTR);
}
EXPORTED int usleep(useconds_t time) {
    if (!is_on())
        return REAL(usleep)(time);
    errno = EINTR;
    return sleep_until(after(time * uint64_t{1000}), "usleep") == 0 ? 0 : -1;
}
EXPORTED unsigned sleep(unsigned time) {
    if (!is_on())
        return REAL(sleep)(time);
    const uint64_t rest = sleep_until(after(time * SECOND), "sleep");
    return static_cast<unsigned>((rest + SECOND - 1) / SECOND);
}
// A loop that yields the processor waits for something.
EXPORTED int sched_yield() noexcept {
    if (!is_on())
        return REAL(sched_yield)();
    wait_for_turn(Wait::POLL, NEVER, "sched_yield");
    return 0;
}
EXPORTED void thrd_yield() {
    (void)sched_yield();
}

// ---- waiting -------------------------------------------------------------------------------

// Defines a function by its name and parameters, the time until which it waits, and the
// arguments of a call that does not wait.
#define WAITS(name, parameters, arguments, until, ...)                                  \
    EXPORTED int name parameters {                                                      \
        if (!is_on())                                                                   \
            return REAL(name) arguments;                                                \
        return wait_until_ready(until, #name, [&] { return REAL(name)(__VA_ARGS__); }); \
    }
constexpr timespec AT_ONCE = {0, 0};

WAITS(poll, (pollfd * fds, nfds_t count, int timeout), (fds, count, timeout), after_ms(timeout),
      fds, count, 0)
WAITS(__poll_chk, (pollfd * fds, nfds_t count, int timeout, size_t size),
      (fds, count, timeout, size), after_ms(timeout), fds, count, 0, size)
WAITS(ppoll, (pollfd * fds, nfds_t count, const timespec *timeout, const sigset_t *mask),
      (fds, count, timeout, mask), after(timeout), fds, count, &AT_ONCE, mask)
WAITS(__ppoll_chk,
      (pollfd * fds, nfds_t count, const timespec *timeout, const sigset_t *mask, size_t size),
      (fds, count, timeout, mask, size), after(timeout), fds, count, &AT_ONCE, mask, size)
WAITS(epoll_wait, (int fd, epoll_event *events, int count, int timeout),
      (fd, events, count, timeout), after_ms(timeout), fd, events, count, 0)
WAITS(epoll_pwait, (int fd, epoll_event *events, int count, int timeout, const sigset_t *mask),
      (fd, events, count, timeout, mask), after_ms(timeout), fd, events, count, 0, mask)

WAITS(epoll_pwait2,
      (int fd, epoll_event *events, int count, const timespec *timeout, const sigset_t *mask),
      (fd, events, count, timeout, mask), after(timeout), fd, events, count, &AT_ONCE, mask)

// select() overwrites its sets.
EXPORTED int select(int count, fd_set *in, fd_set *out, fd_set *other, timeval *timeout) {
    if (!is_on())
        return REAL(select)(count, in, out, other, timeout);
    fd_set *const sets[] = {in, out, other};
    fd_set before[3];
    for (int i = 0; i < 3; i++)
        if (sets[i] != nullptr)
            before[i] = *sets[i];
    const timespec time =
        timeout == nullptr ? timespec{} : timespec{timeout->tv_sec, timeout->tv_usec * 1000};
    const uint64_t until = after(timeout == nullptr ? nullptr : &time);
    return wait_until_ready(until, "select", [&] {
        timeval at_once = {0, 0};
        for (int i = 0; i < 3; i++)
            if (sets[i] != nullptr)
                *sets[i] = before[i];
        return REAL(select)(count, in, out, other, &at_once);
    });
}

EXPORTED int pselect(int count, fd_set *in, fd_set *out, fd_set *other, const timespec *timeout,
                     const sigset_t *mask) {
    if (!is_on())
        return REAL(pselect)(count, in, out, other, timeout, mask);
    timeval time = {};
    sigset_t before;
    if (timeout != nullptr)
        time = {timeout->tv_sec, timeout->tv_nsec / 1000};
    if (mask != nullptr)
        pthread_sigmask(SIG_SETMASK, mask, &before);
    const int result = select(count, in, out, other, timeout == nullptr ? nullptr : &time);
    if (mask != nullptr)
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return result;
}

// Called by ibv_get_cq_event(), ibv_get_async_event() and rdma_get_cm_event().
EXPORTED int rdma_sim_take_event(int fd, uint32_t channel, sim::TakeEvent::Reply *event,
                                 void *data, size_t size, const char *function) {
    if (is_on()) {
        const OpenDescriptor open(fd);
        pollfd ready = {open.number(), POLLIN, 0};
        const bool waits = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
        (void)wait_until_ready(waits ? NEVER : 0, function,
                               [&] { return REAL(poll)(&ready, 1, 0); });
    }
    return REAL(rdma_sim_take_event)(fd, channel, event, data, size, function);
}
EXPORTED int rdma_sim_call(rdma_sim_message *message) {
    if (virtual_clock != nullptr && virtual_clock->is_traced != 0) {
        auto *const clock = const_cast<sim::VirtualClock *>(virtual_clock);
        clock->address_count =
            sim::return_addresses(clock->addresses, sim::VirtualClock::MAX_ADDRESSES);
    }
    return REAL(rdma_sim_call)(message);
}
EXPORTED void rdma_sim_polls(const sim::Ring *ring) {
    if (is_on() && ring->added == ring->taken)
        wait_for_turn(Wait::POLL, NEVER, "ibv_poll_cq");
}
