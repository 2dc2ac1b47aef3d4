// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// direct_calls.c -- programs with system calls of their own, one for each name; those that
// begin with "wrong-" have a mistake that some schedules show

#include <arpa/inet.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(condition)                           \
    do {                                            \
        if (!(condition)) {                         \
            fprintf(stderr, "line %d\n", __LINE__); \
            exit(1);                                \
        }                                           \
    } while (0)
#define CALL(number, ...) call_with(number, (const long[6]){__VA_ARGS__})
#define POINTER(object) ((long)(object))

// Returns a negative error number. Never inlined, so that the compiler keeps nothing in the
// registers that the kernel overwrites.
__attribute__((noinline)) static long call_with(long number, const long *arguments) {
#ifdef __x86_64__
    long result = number;
    register long fourth __asm__("r10") = arguments[3];
    register long fifth __asm__("r8") = arguments[4];
    register long sixth __asm__("r9") = arguments[5];
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(fourth),
                       "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
#else
    return syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                   arguments[5]);
#endif
}

static volatile uint32_t word;
static volatile int data;

static void futex_wait(uint32_t value) {
    (void)CALL(SYS_futex, POINTER(&word), FUTEX_WAIT_PRIVATE, value);
}
static void futex_wake(void) {
    EXPECT(CALL(SYS_futex, POINTER(&word), FUTEX_WAKE_PRIVATE, 1) >= 0);
}

static void *consume(void *unused) {
    while (word == 0)
        futex_wait(0);
    EXPECT(data == 1);
    return unused;
}

// Sets the word before the data, if is_wrong.
static int produce(int is_wrong) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, consume, NULL) == 0);
    if (!is_wrong)
        data = 1;
    word = 1;
    futex_wake();
    data = 1;
    return pthread_join(thread, NULL);
}

static int wait_without_wake(void) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, consume, NULL) == 0);
    data = 1;
    EXPECT(CALL(SYS_sched_yield, 0) == 0);
    word = 1;
    return pthread_join(thread, NULL);
}

static int64_t nanoseconds(const struct timespec *time) {
    return time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

// Both clocks are the virtual one: not a nanosecond passes between the calls.
static int sleep_a_second(void) {
    struct timespec begin, end, same;
    const struct timespec second = {1, 0};
    EXPECT(CALL(SYS_clock_gettime, CLOCK_MONOTONIC, POINTER(&begin)) == 0);
    EXPECT(CALL(SYS_nanosleep, POINTER(&second), 0) == 0);
    EXPECT(CALL(SYS_clock_gettime, CLOCK_MONOTONIC, POINTER(&end)) == 0);
    EXPECT(clock_gettime(CLOCK_MONOTONIC, &same) == 0);
    EXPECT(nanoseconds(&end) - nanoseconds(&begin) == 1000000000);
    EXPECT(nanoseconds(&end) == nanoseconds(&same));
    EXPECT(CALL(SYS_gettid, 0) == gettid() && CALL(SYS_getpid, 0) == getpid());
#ifdef __x86_64__
    EXPECT(getauxval(AT_SYSINFO_EHDR) == 0);
#endif
    // A program can also search the initial stack for the vDSO.
    char **words = environ;
    while (*words++ != NULL)
        ;
    EXPECT(((ElfW(auxv_t) *)words)->a_type != AT_NULL);
    return 0;
}

// The client repeats its request until the server listens.
static int sockets(int is_client) {
    const struct timespec pause = {0, 1000000};
    const int one = 1;
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(7471)};
    char text = 'x';
    long fd = CALL(SYS_socket, AF_INET, SOCK_STREAM);
    EXPECT(fd >= 0 && inet_pton(AF_INET, "10.77.0.1", &server.sin_addr) == 1);
    if (!is_client) {
        EXPECT(CALL(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, POINTER(&one), sizeof(one)) ==
               0);
        EXPECT(CALL(SYS_bind, fd, POINTER(&server), sizeof(server)) == 0);
        EXPECT(CALL(SYS_listen, fd, 1) == 0);
        fd = CALL(SYS_accept4, fd);
        EXPECT(CALL(SYS_read, fd, POINTER(&text), 1) == 1 && text == 'y');
        return 0;
    }
    while (CALL(SYS_connect, fd, POINTER(&server), sizeof(server)) != 0) {
        EXPECT(CALL(SYS_close, fd) == 0 && CALL(SYS_nanosleep, POINTER(&pause)) == 0);
        fd = CALL(SYS_socket, AF_INET, SOCK_STREAM);
    }
    text = 'y';
    EXPECT(CALL(SYS_write, fd, POINTER(&text), 1) == 1);
    return 0;
}

#ifdef __x86_64__
static char stack[1 << 16];
static volatile int handled, was_on_stack;

static void handle(int number) {
    stack_t now;
    was_on_stack = CALL(SYS_sigaltstack, 0, POINTER(&now)) == 0 && now.ss_flags == SS_ONSTACK &&
                   CALL(SYS_sigaltstack, POINTER(&now), 0) != 0 && (char *)&now > stack &&
                   (char *)&now < stack + sizeof(stack);
    handled = number;
}

// The masks and the stack of a thread change although its system calls are made by a handler.
static int signals(void) {
    struct kernel_action {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } before;
    const uint64_t all = UINT64_MAX, usr1 = 1 << (SIGUSR1 - 1);
    uint64_t mask;
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
    stack_t former;
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    sigfillset(&action.sa_mask);
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    EXPECT(CALL(SYS_rt_sigaction, SIGUSR1, 0, POINTER(&before), 8) == 0);
    EXPECT(before.handler == handle && (before.flags & SA_ONSTACK) != 0);
    EXPECT(CALL(SYS_sigaltstack, POINTER(&own), POINTER(&former)) == 0);
    EXPECT(former.ss_flags == SS_DISABLE);
    EXPECT(CALL(SYS_sigaltstack, 0, POINTER(&former)) == 0);
    EXPECT(former.ss_sp == stack && former.ss_flags == 0);
    EXPECT(CALL(SYS_rt_sigprocmask, SIG_SETMASK, POINTER(&all), 0, 8) == 0);
    EXPECT(CALL(SYS_kill, getpid(), SIGUSR1) == 0);
    EXPECT(CALL(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0);
    EXPECT(CALL(SYS_sched_yield, 0) == 0 && handled == 0);
    EXPECT(CALL(SYS_rt_sigprocmask, SIG_UNBLOCK, POINTER(&usr1), POINTER(&mask), 8) == 0);
    EXPECT((mask & usr1) != 0 && handled == SIGUSR1 && was_on_stack);
    return 0;
}

static int process(void) {
    int status = 0;
    const long pid = CALL(SYS_clone, SIGCHLD);
    if (pid == 0)
        (void)CALL(SYS_exit, CALL(SYS_getpid, 0) == getpid() ? 3 : 4);
    EXPECT(pid > 0 && CALL(SYS_wait4, pid, POINTER(&status)) == pid);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    CALL(SYS_exit_group, 0);
    return 1;
}

static int refused(void) {
    return CALL(SYS_clone3, 0, 0) == 0;
}
#else
// Without system calls that fail with SIGSYS.
static int signals(void) {
    return 0;
}
static int process(void) {
    return 0;
}
static int refused(void) {
    return (int)syscall(SYS_clone3, NULL, 0);
}
#endif

int main(int argc, char **argv) {
    const char *const name = argc > 1 ? argv[1] : "";
    EXPECT(argc > 1);
    return strcmp(name, "futex") == 0         ? produce(0)
           : strcmp(name, "wrong-futex") == 0 ? produce(1)
           : strcmp(name, "wrong-wake") == 0  ? wait_without_wake()
           : strcmp(name, "sleep") == 0       ? sleep_a_second()
           : strcmp(name, "sockets") == 0     ? sockets(argc > 2)
           : strcmp(name, "signals") == 0     ? signals()
           : strcmp(name, "process") == 0     ? process()
           : strcmp(name, "refused") == 0     ? refused()
                                              : 2;
}
