// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// signals.cc -- for "rdma-sim explore": handlers run when it is the turn of their process, and
// timers expire in virtual time
//
// A program with a handler blocks all signals while it waits for its turn. Timers are kept
// here: no wait lasts longer than until the next one.

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "control.hh"

namespace {

using namespace control;

struct sigaction handlers[NSIG]; // of the program
bool has_handlers;
__thread unsigned handled;   // how many handlers have run
__thread bool last_restarts; // the last one had SA_RESTART

// tsc.cc or direct_calls.cc has the handler of this signal, which no thread may block.
bool is_own(int number) {
    return (number == SIGSEGV && has_virtual_counter()) ||
           (number == SIGSYS && has_direct_calls()) ||
           (number == SIGILL && has_calls_of_libraries());
}

void unblock_own(sigset_t &set) {
    sigdelset(&set, SIGSEGV);
    sigdelset(&set, SIGSYS);
    sigdelset(&set, SIGILL);
}

bool is_handler(const struct sigaction &action) {
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

void run_handler(int number, siginfo_t *info, void *context) {
    const struct sigaction action = handlers[number];
    number_sender(*info);
    handled++;
    last_restarts = (action.sa_flags & SA_RESTART) != 0;
    if ((static_cast<unsigned>(action.sa_flags) & SA_RESETHAND) != 0)
        handlers[number].sa_handler = SIG_DFL;
    if ((action.sa_flags & SA_SIGINFO) != 0)
        action.sa_sigaction(number, info, context);
    else if (is_handler(action))
        action.sa_handler(number);
}

// A thread that waits runs the handlers of signals that `mask` does not block, at its turn.
// Returns -1 and EINTR once one has run.
int wait_for_handler(const sigset_t *mask, const char *function) {
    yield_before(function);
    const unsigned before = handled;
    for (;;) {
        sigset_t own;
        pthread_sigmask(SIG_SETMASK, mask, &own);
        pthread_sigmask(SIG_SETMASK, &own, nullptr);
        if (handled != before)
            break;
        wait_for_turn(Wait::EVENT, NEVER, function);
        if (mask == nullptr && handled != before)
            break;
    }
    errno = EINTR;
    return -1;
}

int wait_for_signal(const sigset_t *set, siginfo_t *info, uint64_t until,
                    const char *function) {
    const timespec at_once = {0, 0};
    siginfo_t own;
    siginfo_t &to = info == nullptr ? own : *info;
    for (;;) {
        const unsigned before = handled;
        const int number = REAL(sigtimedwait)(set, &to, &at_once);
        if (number > 0) {
            number_sender(to);
            return number;
        }
        if (until <= now()) {
            errno = EAGAIN;
            return -1;
        }
        wait_for_turn(Wait::EVENT, until, function);
        if (handled != before) {
            errno = EINTR;
            return -1;
        }
    }
}

// ---- timers --------------------------------------------------------------------------------

struct Timer {
    uint64_t at, interval; // at: NEVER unless it runs
    int signal, fd;        // 0: it is a descriptor
    sigval value;
    Timer *next;
    pid_t thread = 0; // which gets the signal; 0: any of the process
};
Timer alarm_timer = {NEVER, 0, SIGALRM, -1, {}, nullptr};
Timer *timers = &alarm_timer;

uint64_t left_of(const Timer &timer) {
    return timer.at == NEVER ? 0 : timer.at > now() ? timer.at - now() : 1;
}
void set(Timer &timer, uint64_t first, uint64_t interval) {
    timer.at = first == 0 ? NEVER : now() + first;
    timer.interval = interval;
}

Timer *timer_of(int fd) {
    Timer *each = timers;
    while (each != nullptr && (each->signal != 0 || each->fd != fd))
        each = each->next;
    return each;
}

Timer *add(const Timer &timer) {
    auto *const made = static_cast<Timer *>(malloc(sizeof(Timer)));
    if (made == nullptr)
        return nullptr;
    *made = timer;
    made->next = timers;
    return timers = made;
}

void expire(const Timer &timer, uint64_t count) {
    if (timer.signal == 0) {
        (void)!REAL(write)(timer.fd, &count, sizeof(count));
        descriptors_changed();
        return;
    }
    siginfo_t info = {};
    info.si_signo = timer.signal;
    info.si_code = &timer == &alarm_timer ? SI_KERNEL : SI_TIMER;
    info.si_value = timer.value;
    const long process = REAL(syscall)(SYS_getpid);
    if (timer.thread == 0)
        (void)REAL(syscall)(SYS_rt_sigqueueinfo, process, timer.signal, &info);
    else
        (void)REAL(syscall)(SYS_rt_tgsigqueueinfo, process, timer.thread, timer.signal, &info);
}

int settime(Timer &timer, int flags, bool is_real, const itimerspec *value,
            itimerspec *before) {
    if (before != nullptr)
        *before = {to_timespec(timer.interval), to_timespec(left_of(timer))};
    const uint64_t first = nanoseconds(value->it_value);
    set(timer, first, nanoseconds(value->it_interval));
    if (first != 0 && (flags & TIMER_ABSTIME) != 0)
        timer.at = until(&value->it_value, is_real);
    return 0;
}

} // namespace

unsigned control::handled_signals() {
    return handled;
}

bool control::is_interrupted(unsigned before) {
    return handled != before && !last_restarts;
}

uint64_t control::next_timer() {
    uint64_t next = NEVER;
    for (const Timer *each = timers; each != nullptr; each = each->next)
        next = each->at < next ? each->at : next;
    return next;
}

void control::expire_timers() {
    for (Timer *each = timers; each != nullptr; each = each->next)
        if (each->at <= now()) {
            const uint64_t count =
                each->interval == 0 ? 1 : 1 + (now() - each->at) / each->interval;
            each->at = each->interval == 0 ? NEVER : each->at + count * each->interval;
            expire(*each, count);
        }
}

void control::forget_timers() {
    for (Timer *each = timers; each != nullptr; each = each->next)
        each->at = NEVER;
}

void control::handle_crash(int number, siginfo_t *info, void *context) {
    if (is_handler(handlers[number]))
        return run_handler(number, info, context);
    (void)REAL(signal)(number, SIG_DFL);
    if (info->si_code <= 0) // a process has sent it
        (void)REAL(raise)(number);
}

bool control::block_signals(sigset_t &before) {
    sigset_t all;
    if (!has_handlers)
        return false;
    sigfillset(&all);
    unblock_own(all);
    return pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
}

void control::number_senders(int fd, void *data, size_t size) {
    auto *const all = static_cast<signalfd_siginfo *>(data);
    char path[32], name[32] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (size % sizeof(*all) != 0 || readlink(path, name, sizeof(name) - 1) < 0 ||
        strcmp(name, "anon_inode:[signalfd]") != 0)
        return;
    for (size_t i = 0; i < size / sizeof(*all); i++) {
        siginfo_t info = {};
        info.si_signo = static_cast<int>(all[i].ssi_signo);
        info.si_code = all[i].ssi_code;
        info.si_pid = static_cast<pid_t>(all[i].ssi_pid);
        number_sender(info);
        all[i].ssi_pid = static_cast<uint32_t>(info.si_pid);
    }
}

void control::signal_sent(int number, const char *function) {
    if (number != 0 && has_threads())
        wait_for_turn(Wait::SIGNALED, NEVER, function);
}

// ---- handlers ------------------------------------------------------------------------------

EXPORTED int sigaction(int number, const struct sigaction *action,
                       struct sigaction *before) noexcept {
    if (!is_on() || number <= 0 || number >= NSIG)
        return REAL(sigaction)(number, action, before);
    struct sigaction ours, old;
    const struct sigaction own = handlers[number];
    if (is_own(number)) {
        if (before != nullptr)
            *before = own;
        if (action != nullptr)
            handlers[number] = *action;
        return 0;
    }
    if (action != nullptr) {
        ours = *action;
        if (is_handler(*action)) {
            ours.sa_sigaction = run_handler;
            ours.sa_flags |= SA_SIGINFO;
            unblock_own(ours.sa_mask);
            has_handlers = true;
            handlers[number] = *action;
        }
    }
    const int result = REAL(sigaction)(number, action == nullptr ? nullptr : &ours, &old);
    if (result == 0 && before != nullptr)
        *before = old.sa_sigaction == run_handler ? own : old;
    return result;
}
EXPORTED sighandler_t signal(int number, sighandler_t handler) noexcept {
    struct sigaction action = {}, before;
    if (!is_on())
        return REAL(signal)(number, handler);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
EXPORTED int pthread_sigmask(int how, const sigset_t *set, sigset_t *before) noexcept {
    sigset_t own;
    if (is_on() && set != nullptr && how != SIG_UNBLOCK) {
        own = *set;
        unblock_own(own);
        set = &own;
    }
    return REAL(pthread_sigmask)(how, set, before);
}
EXPORTED int sigprocmask(int how, const sigset_t *set, sigset_t *before) noexcept {
    const int error = pthread_sigmask(how, set, before);
    if (error != 0)
        errno = error;
    return error == 0 ? 0 : -1;
}
EXPORTED int pause() {
    return is_on() ? wait_for_handler(nullptr, "pause") : REAL(pause)();
}
EXPORTED int sigsuspend(const sigset_t *mask) {
    return is_on() ? wait_for_handler(mask, "sigsuspend") : REAL(sigsuspend)(mask);
}
EXPORTED int sigwaitinfo(const sigset_t *set, siginfo_t *info) {
    return is_on() ? wait_for_signal(set, info, NEVER, "sigwaitinfo")
                   : REAL(sigwaitinfo)(set, info);
}
EXPORTED int sigtimedwait(const sigset_t *set, siginfo_t *info, const timespec *time) {
    return is_on() ? wait_for_signal(set, info, after(time), "sigtimedwait")
                   : REAL(sigtimedwait)(set, info, time);
}
EXPORTED int sigwait(const sigset_t *set, int *number) {
    if (!is_on())
        return REAL(sigwait)(set, number);
    while ((*number = wait_for_signal(set, nullptr, NEVER, "sigwait")) < 0)
        ;
    return 0;
}

// ---- timers --------------------------------------------------------------------------------

EXPORTED int setitimer(__itimer_which_t which, const itimerval *value,
                       itimerval *before) noexcept {
    if (!is_on())
        return REAL(setitimer)(which, value, before);
    if (which != ITIMER_REAL)
        refuse("setitimer(ITIMER_VIRTUAL)");
    if (before != nullptr) {
        const timespec left = to_timespec(left_of(alarm_timer)),
                       interval = to_timespec(alarm_timer.interval);
        *before = {{interval.tv_sec, interval.tv_nsec / 1000},
                   {left.tv_sec, left.tv_nsec / 1000}};
    }
    set(alarm_timer, nanoseconds(value->it_value), nanoseconds(value->it_interval));
    return 0;
}
EXPORTED unsigned alarm(unsigned seconds) noexcept {
    if (!is_on())
        return REAL(alarm)(seconds);
    const uint64_t left = left_of(alarm_timer);
    set(alarm_timer, seconds * SECOND, 0);
    return static_cast<unsigned>((left + SECOND - 1) / SECOND);
}
EXPORTED unsigned ualarm(unsigned time, unsigned interval) noexcept {
    if (!is_on())
        return REAL(ualarm)(time, interval);
    const uint64_t left = left_of(alarm_timer);
    set(alarm_timer, time * uint64_t{1000}, interval * uint64_t{1000});
    return static_cast<unsigned>(left / 1000);
}
EXPORTED int timer_create(clockid_t id, sigevent *event, timer_t *timer) noexcept {
    if (!is_on())
        return REAL(timer_create)(id, event, timer);
    const sigevent usual = {};
    const sigevent &chosen = event == nullptr ? usual : *event;
    const bool is_of_thread = chosen.sigev_notify == SIGEV_THREAD_ID;
    if (event != nullptr && event->sigev_notify != SIGEV_SIGNAL && !is_of_thread)
        refuse("timer_create(SIGEV_THREAD)");
    if (is_of_thread && chosen._sigev_un._tid != gettid())
        refuse("timer_create(SIGEV_THREAD_ID) for another thread");
    Timer *const made = add({NEVER, 0, event == nullptr ? SIGALRM : chosen.sigev_signo, id,
                             chosen.sigev_value, nullptr, is_of_thread ? own_tid() : 0});
    if (made == nullptr) {
        errno = EAGAIN;
        return -1;
    }
    *timer = made;
    return 0;
}
EXPORTED int timer_settime(timer_t timer, int flags, const itimerspec *value,
                           itimerspec *before) noexcept {
    if (!is_on())
        return REAL(timer_settime)(timer, flags, value, before);
    auto &own = *static_cast<Timer *>(timer);
    return settime(own, flags, own.fd == CLOCK_REALTIME, value, before);
}
EXPORTED int timer_gettime(timer_t timer, itimerspec *value) noexcept {
    if (!is_on())
        return REAL(timer_gettime)(timer, value);
    const auto &own = *static_cast<Timer *>(timer);
    *value = {to_timespec(own.interval), to_timespec(left_of(own))};
    return 0;
}
EXPORTED int timer_getoverrun(timer_t timer) noexcept {
    return is_on() ? 0 : REAL(timer_getoverrun)(timer);
}
EXPORTED int timer_delete(timer_t timer) noexcept {
    if (!is_on())
        return REAL(timer_delete)(timer);
    static_cast<Timer *>(timer)->at = NEVER; // its memory is not used again
    return 0;
}
// An eventfd counts as a timerfd does.
EXPORTED int timerfd_create(clockid_t id, int flags) noexcept {
    if (!is_on())
        return REAL(timerfd_create)(id, flags);
    const int fd = eventfd(0, flags);
    Timer *const former = fd < 0 ? nullptr : timer_of(fd);
    const Timer timer = {
        NEVER, 0, 0, fd, {.sival_int = id}, former == nullptr ? nullptr : former->next};
    if (former != nullptr)
        *former = timer;
    else if (fd >= 0)
        (void)add(timer);
    return fd;
}
EXPORTED int timerfd_settime(int fd, int flags, const itimerspec *value,
                             itimerspec *before) noexcept {
    Timer *const timer = is_on() ? timer_of(fd) : nullptr;
    if (timer == nullptr)
        return REAL(timerfd_settime)(fd, flags, value, before);
    pollfd ready = {fd, POLLIN, 0};
    uint64_t count;
    if (REAL(poll)(&ready, 1, 0) == 1) // the expirations before do not count
        (void)!REAL(read)(fd, &count, sizeof(count));
    return settime(*timer, flags, timer->value.sival_int == CLOCK_REALTIME, value, before);
}
EXPORTED int timerfd_gettime(int fd, itimerspec *value) noexcept {
    const Timer *const timer = is_on() ? timer_of(fd) : nullptr;
    if (timer == nullptr)
        return REAL(timerfd_gettime)(fd, value);
    *value = {to_timespec(timer->interval), to_timespec(left_of(*timer))};
    return 0;
}
