// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// daemons.c -- programs with calls of daemons and supervisors, one for each name; that which
// begins with "wrong-" has a mistake that some schedules show

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define MUST(condition)                                                                  \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
            exit(EXIT_FAILURE);                                                          \
        }                                                                                \
    } while (0)

static void use_device(void) {
    struct ibv_device **const devices = ibv_get_device_list(NULL);
    MUST(devices != NULL && devices[0] != NULL);
    struct ibv_context *const context = ibv_open_device(devices[0]);
    MUST(context != NULL);
    MUST(ibv_close_device(context) == 0);
    ibv_free_device_list(devices);
}

static pthread_t started(void *(*function)(void *), void *argument) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, function, argument) == 0);
    return thread;
}

static void *use_device_later(void *unused) {
    usleep(10);
    use_device();
    return unused;
}

static sem_t is_used, is_closed;
static void *use_device_twice(void *unused) {
    use_device();
    sem_post(&is_used);
    sem_wait(&is_closed);
    use_device();
    return unused;
}
// A daemon closes whatever its parent has left open.
static void close_all(void) {
    const pthread_t thread = started(use_device_twice, NULL);
    use_device();
    sem_wait(&is_used);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    sem_post(&is_closed);
    MUST(pthread_join(thread, NULL) == 0);
    use_device();
    MUST(close_range(3, ~0U, 0) == 0);
    use_device();
}

// As a shell does for "exec 3>file".
static void replace_3(void) {
    const int fd = open("/dev/null", O_WRONLY);
    MUST(fd >= 0 && (fd == 3 || dup2(fd, 3) == 3));
    MUST(dup2(fd, 9) == 9 && dup3(fd, 10, O_CLOEXEC) == 10);
    use_device();
    MUST(write(3, "", 1) == 1);
}

// The daemon closes its end of the pipe when it ends.
static void become_daemon(void) {
    int ends[2];
    char bytes[2];
    MUST(pipe(ends) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        MUST(daemon(1, 1) == 0);
        usleep(1000);
        use_device();
        MUST(write(ends[1], "d", 1) == 1);
        exit(EXIT_SUCCESS);
    }
    close(ends[1]);
    MUST(read(ends[0], bytes, 2) == 1 && read(ends[0], bytes, 2) == 0);
    MUST(waitpid(pid, NULL, 0) == pid);
}

static void wait_for_pidfd(void) {
    siginfo_t info = {0};
    const pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    MUST(fd >= 0);
    MUST(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == 0);
    struct pollfd ended = {fd, POLLIN, 0};
    MUST(poll(&ended, 1, -1) == 1);
    MUST(waitid(P_PID, (id_t)pid, &info, WEXITED) == 0);
    MUST(info.si_pid == pid && info.si_status == SIGTERM);
}

static pid_t sender;
static void keep_sender(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    sender = info->si_pid;
}

// Handlers, signalfd and sigwaitinfo() get the number of the process that fork() has returned.
static void know_sender(void) {
    struct sigaction action = {.sa_sigaction = keep_sender, .sa_flags = SA_SIGINFO};
    struct signalfd_siginfo from_file;
    sigset_t set, others;
    siginfo_t info;
    const pid_t parent = getpid();
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGHUP);
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(kill(parent, SIGUSR1) != 0 || kill(parent, SIGUSR2) != 0 ||
              sigqueue(parent, SIGHUP, (union sigval){.sival_int = 5}) != 0);
    others = set;
    sigdelset(&others, SIGUSR1);
    while (sender == 0)
        sigsuspend(&others);
    MUST(sender == pid);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    const int fd = signalfd(-1, &set, 0);
    MUST(read(fd, &from_file, sizeof(from_file)) == sizeof(from_file));
    MUST((pid_t)from_file.ssi_pid == pid);
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    MUST(sigwaitinfo(&set, &info) == SIGHUP && info.si_pid == pid);
    MUST(info.si_value.sival_int == 5);
    int status = -1;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static volatile sig_atomic_t is_signaled;
static void note(int number) {
    (void)number;
    is_signaled = 1;
}

// `is_wrong`: the signal may arrive between the test and pause().
static void *wait_for_handler(void *is_wrong) {
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    if (is_wrong == NULL)
        pthread_sigmask(SIG_BLOCK, &blocked, &before);
    while (!is_signaled) {
        usleep(0);
        if (is_wrong == NULL)
            sigsuspend(&before);
        else
            pause();
    }
    return NULL;
}
static void signal_thread_that(void *is_wrong) {
    const struct sigaction action = {.sa_handler = note};
    sigaction(SIGUSR1, &action, NULL);
    const pthread_t thread = started(wait_for_handler, is_wrong);
    MUST(pthread_kill(thread, SIGUSR1) == 0);
    MUST(pthread_join(thread, NULL) == 0);
}
static void signal_thread(void) {
    signal_thread_that(NULL);
}
static void wrong_signal_thread(void) {
    static int yes;
    signal_thread_that(&yes);
}

static void *take_signal(void *set) {
    int number = 0;
    MUST(sigwait(set, &number) == 0 && number == SIGTERM);
    return NULL;
}
// A thread takes the signals of its process.
static void take_own_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    const pthread_t thread = started(take_signal, &set);
    usleep(1000);
    MUST(kill(getpid(), SIGTERM) == 0);
    MUST(pthread_join(thread, NULL) == 0);
}

// A timer whose signal one thread gets.
static void time_thread(void) {
    const struct itimerspec once = {.it_value = {5, 0}};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
    sigset_t set;
    int number;
    timer_t timer;
    event._sigev_un._tid = gettid();
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    MUST(timer_settime(timer, 0, &once, NULL) == 0);
    MUST(sigwait(&set, &number) == 0 && number == SIGUSR2);
}

static int ends[2];
static void *write_later(void *unused) {
    usleep(1000);
    MUST(write(ends[1], "abc", 3) == 3);
    return unused;
}
static void *read_later(void *fd) {
    uint64_t count;
    usleep(1000);
    MUST(read(*(int *)fd, &count, sizeof(count)) == sizeof(count));
    return NULL;
}
// Calls that wait for a pipe, or for room in the counter of an eventfd.
static void move_bytes(void) {
    int others[2];
    char bytes[4];
    struct iovec part = {bytes, sizeof(bytes)};
    MUST(pipe(ends) == 0 && pipe(others) == 0);
    pthread_t thread = started(write_later, NULL);
    MUST(tee(ends[0], others[1], 10, 0) == 3);
    MUST(read(others[0], bytes, 4) == 3 && read(ends[0], bytes, 4) == 3);
    MUST(pthread_join(thread, NULL) == 0);
    thread = started(write_later, NULL);
    MUST(splice(ends[0], NULL, others[1], NULL, 10, 0) == 3);
    MUST(pthread_join(thread, NULL) == 0);
    MUST(preadv2(others[0], &part, 1, -1, 0) == 3);
    thread = started(write_later, NULL);
    MUST(preadv2(ends[0], &part, 1, -1, 0) == 3);
    MUST(pthread_join(thread, NULL) == 0);
    const uint64_t most = UINT64_MAX - 1, one = 1;
    int fd = eventfd(0, 0);
    MUST(write(fd, &most, sizeof(most)) == sizeof(most));
    thread = started(read_later, &fd);
    MUST(write(fd, &one, sizeof(one)) == sizeof(one));
    MUST(pthread_join(thread, NULL) == 0);
}

// There are four processors on each machine.
static void choose_processor(void) {
    cpu_set_t set, found;
    pthread_attr_t attr;
    CPU_ZERO(&set);
    CPU_SET(3, &set);
    MUST(pthread_attr_init(&attr) == 0);
    MUST(pthread_attr_setaffinity_np(&attr, sizeof(set), &set) == 0);
    pthread_t thread;
    MUST(pthread_create(&thread, &attr, use_device_later, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    MUST(sched_setaffinity(0, sizeof(set), &set) == 0);
    MUST(sched_getaffinity(0, sizeof(found), &found) == 0 && CPU_EQUAL(&set, &found));
    MUST(sched_getcpu() == 3);
    CPU_CLR(3, &set);
    MUST(sched_setaffinity(0, sizeof(set), &set) == -1 && errno == EINVAL);
}

// host1 has the name in all functions, also without explore.
static void find_names(void) {
    struct addrinfo *found;
    struct hostent entry, *result;
    struct utsname system;
    char name[64], room[1024];
    int error;
    MUST(gethostname(name, sizeof(name)) == 0 && strcmp(name, "host1") == 0);
    MUST(uname(&system) == 0 && strcmp(system.nodename, "host1") == 0);
    MUST(gethostbyname_r("host1", &entry, room, sizeof(room), &result, &error) == 0 && result);
    MUST(memcmp(entry.h_addr_list[0], "\012\115\0\001", 4) == 0);
    MUST(gethostbyname2("host1", AF_INET) != NULL);
    MUST(getaddrinfo("host1", "7000", NULL, &found) == 0);
    MUST(getnameinfo(found->ai_addr, found->ai_addrlen, name, sizeof(name), room, sizeof(room),
                     NI_NUMERICSERV) == 0);
    MUST(strcmp(name, "host1") == 0 && strcmp(room, "7000") == 0);
    MUST(getnameinfo(found->ai_addr, found->ai_addrlen, name, 4, NULL, 0, 0) == EAI_OVERFLOW);
    MUST(getnameinfo(found->ai_addr, found->ai_addrlen, name, sizeof(name), NULL, 0,
                     NI_NUMERICHOST) == 0);
    MUST(strcmp(name, "10.77.0.1") == 0);
    freeaddrinfo(found);
}

// A receive that the end of its queue pair fails, and its event.
static void wait_for_event(struct ibv_context *context) {
    struct ibv_pd *const pd = ibv_alloc_pd(context);
    struct ibv_comp_channel *const channel = ibv_create_comp_channel(context);
    struct ibv_cq *const cq = ibv_create_cq(context, 1, NULL, channel, 0), *ready;
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1},
                                    .qp_type = IBV_QPT_RC};
    struct ibv_qp *const qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_recv_wr wr = {0}, *bad;
    void *context_of_cq;
    MUST(qp != NULL && ibv_req_notify_cq(cq, 0) == 0);
    MUST(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
         0);
    MUST(ibv_post_recv(qp, &wr, &bad) == 0);
    attr.qp_state = IBV_QPS_ERR;
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
    MUST(ibv_get_cq_event(channel, &ready, &context_of_cq) == 0 && ready == cq);
}
// The queues of two children have the same address in their programs.
static void wait_in_children(void) {
    struct ibv_device **const devices = ibv_get_device_list(NULL);
    struct ibv_context *const context = ibv_open_device(devices[0]);
    MUST(context != NULL);
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            wait_for_event(context);
            sleep(1); // the queue still exists when the other child takes its event
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
}

static void refused_ring(void) {
    char parameters[256] = "";
    (void)syscall(SYS_io_uring_setup, 4, parameters);
}
static void refused_stop(void) {
    raise(SIGSTOP);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } PROGRAMS[] = {{"close-all", close_all},
                    {"replace-3", replace_3},
                    {"daemon", become_daemon},
                    {"pidfd", wait_for_pidfd},
                    {"sender", know_sender},
                    {"signal-thread", signal_thread},
                    {"wrong-signal-thread", wrong_signal_thread},
                    {"own-signal", take_own_signal},
                    {"timer-of-thread", time_thread},
                    {"move", move_bytes},
                    {"processor", choose_processor},
                    {"names", find_names},
                    {"children-wait", wait_in_children},
                    {"refused-ring", refused_ring},
                    {"refused-stop", refused_stop}};
    for (size_t i = 0; argc == 2 && i < sizeof(PROGRAMS) / sizeof(*PROGRAMS); i++)
        if (strcmp(argv[1], PROGRAMS[i].name) == 0) {
            PROGRAMS[i].run();
            return EXIT_SUCCESS;
        }
    return 2;
}
