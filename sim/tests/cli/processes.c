// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// processes.c -- programs with child processes, signals and timers, one for each name; those
// that begin with "wrong-" have a mistake that some schedules show

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void handle(int number) {
    signals = number;
}

static void install(int number) {
    struct sigaction action = {.sa_handler = handle};
    sigaction(number, &action, NULL);
}

static int status_of(pid_t pid) {
    int status = -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Two children add to a word that they share.
static int add_to_shared_word(int is_wrong) {
    int *const count =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[2];
    for (int i = 0; i < 2; i++)
        if ((children[i] = fork()) == 0) {
            const int before = *count;
            if (is_wrong) {
                usleep(1);
                *count = before + 1;
            } else {
                __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
            }
            _exit(0);
        }
    return status_of(children[0]) != 0 || status_of(children[1]) != 0 || *count != 2;
}
static int forks(void) {
    return add_to_shared_word(0);
}
static int wrong_fork(void) {
    return add_to_shared_word(1);
}

static int spawn(void) {
    char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)"exit 7", NULL};
    extern char **environ;
    pid_t pid;
    return posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ) != 0 ||
           status_of(pid) != 7;
}

static int shell(void) {
    char line[64] = "";
    FILE *const from = popen("echo one; echo two", "r");
    FILE *const to = popen("grep -q three", "w");
    if (!from || !to || !fgets(line, sizeof(line), from) || strcmp(line, "one\n") != 0)
        return 1;
    fputs("three\n", to);
    return pclose(from) != 0 || pclose(to) != 0 || system("exit 3") != 3 << 8;
}

// The child ends without its parent, or by a signal.
static int kills(void) {
    int status;
    const pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    kill(pid, SIGTERM);
    return waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
           WTERMSIG(status) != SIGTERM;
}

static void *sleep_for_ever(void *unused) {
    for (;;)
        usleep(1);
    return unused;
}

// The kernel ends all threads of the child, and that takes a while.
static int kills_threads(void) {
    for (int i = 0; i < 3; i++) {
        const pid_t pid = fork();
        pthread_t thread;
        for (int k = 0; pid == 0 && k < 8; k++)
            pthread_create(&thread, NULL, sleep_for_ever, NULL);
        if (pid == 0)
            sleep_for_ever(NULL);
        usleep(100);
        kill(pid, SIGKILL);
        usleep(100);
        if (status_of(pid) != -1)
            return 1;
    }
    return 0;
}

// The kernel ends the child of a child.
static int parent_ends(void) {
    const pid_t pid = fork();
    if (pid == 0) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            sleep_for_ever(NULL);
        }
        usleep(100);
        _exit(3);
    }
    const int status = status_of(pid);
    usleep(1000);
    return status != 3;
}

// Waits for 1500 s in all, while each child writes a byte from time to time, for ever.
static int waits_long(void) {
    pid_t children[3];
    int ends[2], is_wrong = pipe(ends) != 0;
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        while (children[i] == 0 && write(ends[1], "", 1) == 1)
            usleep(250000);
    }
    for (int i = 0; i < 100; i++)
        poll(NULL, 0, 15000);
    for (int i = 0; i < 3; i++)
        is_wrong |= kill(children[i], SIGKILL) != 0 || status_of(children[i]) != -1;
    return is_wrong;
}

static int child_crashes(void) {
    if (fork() == 0)
        abort();
    wait(NULL);
    return 0;
}

// Waits for a signal of its child, which may come before.
static int wait_for_child(int is_wrong) {
    sigset_t blocked, before;
    install(SIGUSR1);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    if (!is_wrong)
        sigprocmask(SIG_BLOCK, &blocked, &before);
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        _exit(kill(parent, SIGUSR1));
    usleep(0);
    if (is_wrong && !signals)
        pause();
    while (!is_wrong && !signals)
        sigsuspend(&before);
    return status_of(pid);
}
static int suspends(void) {
    return wait_for_child(0);
}
static int wrong_pause(void) {
    usleep(1);
    return wait_for_child(1);
}

// The child reads the word after the store, and before the signal that announces it.
static int wrong_sigqueue(void) {
    volatile int *const word =
        mmap(NULL, sizeof(*word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    install(SIGUSR1);
    const pid_t pid = fork();
    if (pid == 0) {
        for (; !signals; usleep(1))
            if (*word != 0)
                _exit(3);
        _exit(0);
    }
    usleep(10);
    *word = 1;
    sigqueue(pid, SIGUSR1, (union sigval){0});
    return status_of(pid);
}

static int sigchld(void) {
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(5);
    if (sigwait(&set, &number) != 0 || number != SIGCHLD || status_of(pid) != 5)
        return 1;
    const int fd = signalfd(-1, &set, SFD_CLOEXEC);
    pid = fork();
    if (pid == 0)
        _exit(6);
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof(info)) != sizeof(info) || info.ssi_signo != SIGCHLD ||
           status_of(pid) != 6;
}

static time_t seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static int timers(void) {
    const time_t begin = seconds();
    const struct itimerval interval = {{10, 0}, {10, 0}}, none = {0};
    const struct itimerspec once = {{0, 0}, {50, 0}};
    struct timespec left = {0};
    uint64_t count = 0;
    timer_t timer;
    install(SIGALRM);
    install(SIGRTMIN);
    alarm(100);
    if (pause() != -1 || errno != EINTR || signals != SIGALRM || seconds() - begin != 100)
        return 1;
    setitimer(ITIMER_REAL, &interval, NULL);
    if (nanosleep(&(struct timespec){1000, 0}, &left) != -1 || errno != EINTR ||
        left.tv_sec != 990)
        return 2;
    setitimer(ITIMER_REAL, &none, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &once, NULL);
    if (poll(NULL, 0, -1) != -1 || errno != EINTR || signals != SIGRTMIN)
        return 3;
    const int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(fd, 0, &once, NULL);
    struct pollfd ready = {fd, POLLIN, 0};
    if (poll(&ready, 1, 49000) != 0 || poll(&ready, 1, 2000) != 1 ||
        read(fd, &count, sizeof(count)) != sizeof(count) || count != 1)
        return 4;
    return seconds() - begin != 210;
}

// A handler of the program still gets its signals.
static int counter(void) {
#ifdef __x86_64__
    const unsigned long long begin = __builtin_ia32_rdtsc();
    sleep(1);
    const unsigned long long passed = __builtin_ia32_rdtsc() - begin;
    if (passed < 1000000000 || passed > 1100000000)
        return 1;
#endif
    install(SIGSEGV);
    raise(SIGSEGV);
    return signals != SIGSEGV;
}

// The time limit is shorter than the work.
static int wrong_alarm(void) {
    alarm(1);
    sleep(2);
    return 0;
}

static const struct {
    const char *name;
    int (*function)(void);
} PROGRAMS[] = {{"fork", forks},
                {"wrong-fork", wrong_fork},
                {"spawn", spawn},
                {"shell", shell},
                {"kill", kills},
                {"wrong-child", child_crashes},
                {"sigsuspend", suspends},
                {"wrong-pause", wrong_pause},
                {"wrong-sigqueue", wrong_sigqueue},
                {"sigchld", sigchld},
                {"timers", timers},
                {"counter", counter},
                {"wrong-alarm", wrong_alarm},
                {"kill-threads", kills_threads},
                {"parent-ends", parent_ends},
                {"wait-long", waits_long}};

int main(int argc, char *argv[]) {
    for (size_t i = 0; argc > 1 && i < sizeof(PROGRAMS) / sizeof(*PROGRAMS); i++)
        if (strcmp(PROGRAMS[i].name, argv[1]) == 0)
            return PROGRAMS[i].function();
    return 99;
}
