// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// ipc.c -- programs whose processes wait for each other by locks on files, queues, semaphores
// and streams, one for each name; those that begin with "wrong-" have a mistake that some
// schedules show

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(condition)                                           \
    do {                                                            \
        if (!(condition)) {                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(1);                                                \
        }                                                           \
    } while (0)

#define LARGE 300000 // more than a pipe has room for

static void await_child(void) {
    int status;
    EXPECT(wait(&status) > 0 && status == 0);
}

// ---- locks on files: two processes add to a number in a file -------------------------------

static int open_file(const char *name) {
    const int fd = open(name, O_RDWR | O_CREAT, 0600);
    EXPECT(fd >= 0);
    return fd;
}

static void by_flock(int fd, bool locks) {
    EXPECT(flock(fd, locks ? LOCK_EX : LOCK_UN) == 0);
}
static void by_fcntl(int fd, bool locks) {
    struct flock lock = {.l_type = locks ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET};
    EXPECT(fcntl(fd, F_SETLKW, &lock) == 0);
}
static void by_open_file(int fd, bool locks) {
    struct flock lock = {.l_type = locks ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET};
    EXPECT(fcntl(fd, F_OFD_SETLKW, &lock) == 0);
}
static void by_lockf(int fd, bool locks) {
    EXPECT(lseek(fd, 0, SEEK_SET) == 0 && lockf(fd, locks ? F_LOCK : F_ULOCK, 0) == 0);
}
static void by_close(int fd, bool locks) {
    EXPECT(locks ? flock(fd, LOCK_EX) == 0 : close(fd) == 0);
}
static void by_polling(int fd, bool locks) {
    while (flock(fd, locks ? LOCK_EX | LOCK_NB : LOCK_UN) != 0)
        EXPECT(errno == EWOULDBLOCK);
}
static void by_nothing(int fd, bool locks) {
    (void)fd, (void)locks;
}

static void add(void (*lock)(int fd, bool locks)) {
    const int fd = open_file("number");
    int number = 0;
    lock(fd, true);
    EXPECT(pread(fd, &number, sizeof(number), 0) >= 0);
    number++;
    usleep(10);
    EXPECT(pwrite(fd, &number, sizeof(number), 0) == sizeof(number));
    lock(fd, false);
}

static void add_in_processes(void (*lock)(int fd, bool locks)) {
    int number = 0;
    EXPECT(unlink("number") == 0 || errno == ENOENT);
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            add(lock);
            _exit(0);
        }
    await_child();
    await_child();
    EXPECT(pread(open_file("number"), &number, sizeof(number), 0) == sizeof(number));
    EXPECT(number == 2);
}

// Each process waits for the lock of the other one.
static void wrong_order(void) {
    const bool is_child = fork() == 0;
    const int fds[] = {open_file("first"), open_file("second")};
    by_flock(fds[is_child], true);
    usleep(10);
    by_flock(fds[!is_child], true);
    if (is_child)
        _exit(0);
    by_close(fds[0], false);
    by_close(fds[1], false);
    await_child();
}

// ---- queues and semaphores -----------------------------------------------------------------

// The second message waits for room, and a reply has a time limit.
static void posix_queue(void) {
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char name[32], data[8];
    struct timespec limit;
    mqd_t queue = -1;
    for (int i = 0; queue < 0 && i < 100; i++) { // other tests run the same program
        snprintf(name, sizeof(name), "/rdma-sim-%d", i);
        queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
    }
    EXPECT(queue >= 0 && mq_unlink(name) == 0);
    if (fork() == 0) {
        for (char i = 0; i < 3; i++)
            EXPECT(mq_send(queue, &i, 1, 0) == 0);
        _exit(0);
    }
    for (char i = 0; i < 3; i++)
        EXPECT(mq_receive(queue, data, sizeof(data), NULL) == 1 && data[0] == i);
    await_child();
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 5;
    EXPECT(mq_timedreceive(queue, data, sizeof(data), NULL, &limit) == -1);
    EXPECT(errno == ETIMEDOUT && time(NULL) >= limit.tv_sec);
}

static void queue(void) {
    struct {
        long type;
        char data[8192];
    } message = {1, ""};
    const int id = msgget(IPC_PRIVATE, 0600);
    EXPECT(id >= 0);
    EXPECT(msgrcv(id, &message, 8, 0, IPC_NOWAIT) == -1 && errno == ENOMSG);
    if (fork() == 0) {
        for (int i = 0; i < 3; i++) // a queue has 16,384 bytes
            EXPECT(msgsnd(id, &message, sizeof(message.data), 0) == 0);
        EXPECT(msgrcv(id, &message, 8, 2, 0) == -1 && errno == EIDRM);
        _exit(0);
    }
    for (int i = 0; i < 3; i++)
        EXPECT(msgrcv(id, &message, sizeof(message.data), 1, 0) == sizeof(message.data));
    sleep(1); // the child waits again
    EXPECT(msgctl(id, IPC_RMID, NULL) == 0);
    await_child();
}

static void semaphore(void) {
    struct sembuf take = {.sem_op = -1}, give = {.sem_op = 1};
    const struct timespec second = {1, 0};
    const int id = semget(IPC_PRIVATE, 1, 0600);
    EXPECT(id >= 0);
    if (fork() == 0) {
        EXPECT(semop(id, &take, 1) == 0 && semop(id, &take, 1) == 0);
        EXPECT(semop(id, &take, 1) == -1 && errno == EIDRM);
        _exit(0);
    }
    struct sembuf zero = {.sem_op = 0};
    EXPECT(semop(id, &give, 1) == 0 && semop(id, &zero, 1) == 0);
    EXPECT(semctl(id, 0, SETVAL, 1) == 0 && semop(id, &zero, 1) == 0);
    take.sem_flg = IPC_NOWAIT;
    EXPECT(semop(id, &take, 1) == -1 && errno == EAGAIN);
    take.sem_flg = 0;
    const time_t begin = time(NULL);
    EXPECT(semtimedop(id, &take, 1, &second) == -1 && errno == EAGAIN && time(NULL) > begin);
    EXPECT(semctl(id, 0, IPC_RMID) == 0);
    await_child();
}

// ---- memory that processes share, at different addresses ------------------------------------

struct shared {
    uint32_t word;
    int is_ready;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_barrier_t barrier;
};

static struct shared *map_shared(int fd) {
    void *const memory =
        mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT(memory != MAP_FAILED);
    return memory;
}

static void shared_memory(void) {
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    pthread_barrierattr_t barrier;
    const int fd = memfd_create("shared", 0);
    EXPECT(ftruncate(fd, sizeof(struct shared)) == 0);
    struct shared *own = map_shared(fd);
    EXPECT(pthread_mutexattr_init(&mutex) == 0 && pthread_condattr_init(&condition) == 0);
    EXPECT(pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED) == 0);
    EXPECT(pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED) == 0);
    EXPECT(pthread_barrierattr_init(&barrier) == 0);
    EXPECT(pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED) == 0);
    EXPECT(pthread_mutex_init(&own->mutex, &mutex) == 0);
    EXPECT(pthread_cond_init(&own->condition, &condition) == 0);
    EXPECT(pthread_barrier_init(&own->barrier, &barrier, 2) == 0);
    if (fork() == 0) {
        own = map_shared(fd);
        __atomic_store_n(&own->word, 1, __ATOMIC_SEQ_CST);
        EXPECT(syscall(SYS_futex, &own->word, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
        EXPECT(pthread_mutex_lock(&own->mutex) == 0);
        own->is_ready = 1;
        EXPECT(pthread_cond_signal(&own->condition) == 0);
        EXPECT(pthread_mutex_unlock(&own->mutex) == 0);
        for (int i = 0; i < 2; i++)
            pthread_barrier_wait(&own->barrier);
        _exit(0);
    }
    while (__atomic_load_n(&own->word, __ATOMIC_SEQ_CST) == 0)
        (void)syscall(SYS_futex, &own->word, FUTEX_WAIT, 0, NULL, NULL, 0);
    EXPECT(pthread_mutex_lock(&own->mutex) == 0);
    while (!own->is_ready)
        EXPECT(pthread_cond_wait(&own->condition, &own->mutex) == 0);
    EXPECT(pthread_mutex_unlock(&own->mutex) == 0);
    for (int i = 0; i < 2; i++)
        pthread_barrier_wait(&own->barrier);
    await_child();
    EXPECT(pthread_barrier_destroy(&own->barrier) == 0);
    EXPECT(pthread_cond_destroy(&own->condition) == 0);
}

// ---- calls that end without a result --------------------------------------------------------

static void ignore(int number) {
    (void)number;
}

// Fails with EINTR if a handler without SA_RESTART runs.
#define EXPECT_INTERRUPTED(call)                \
    do {                                        \
        alarm(1);                               \
        EXPECT((call) == -1 && errno == EINTR); \
    } while (0)

static void interrupted(void) {
    struct sigaction action = {.sa_handler = ignore};
    struct sockaddr_in own = {.sin_family = AF_INET};
    int ends[2], pair[2];
    char data[65536] = "";
    uint64_t value;
    sem_t semaphore;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(sigaction(SIGALRM, &action, NULL) == 0 && pipe(ends) == 0);
    EXPECT(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && sem_init(&semaphore, 0, 0) == 0);
    EXPECT(bind(listener, (struct sockaddr *)&own, sizeof(own)) == 0);
    EXPECT(listen(listener, 1) == 0);
    EXPECT_INTERRUPTED(read(ends[0], data, 1));
    EXPECT_INTERRUPTED(recv(pair[0], data, 1, 0));
    EXPECT_INTERRUPTED(accept(listener, NULL, NULL));
    EXPECT_INTERRUPTED(read(eventfd(0, 0), &value, sizeof(value)));
    EXPECT_INTERRUPTED(sem_wait(&semaphore));
    EXPECT(write(ends[1], data, sizeof(data)) == sizeof(data));
    EXPECT_INTERRUPTED(write(ends[1], data, 1)); // the pipe is full
    action.sa_flags = SA_RESTART;
    EXPECT(sigaction(SIGALRM, &action, NULL) == 0);
    if (fork() == 0) {
        sleep(2);
        EXPECT(send(pair[1], data, 1, 0) == 1);
        _exit(0);
    }
    alarm(1);
    EXPECT(recv(pair[0], data, 1, 0) == 1);
    await_child();
}

// SO_RCVTIMEO and SO_SNDTIMEO
static void time_limits(void) {
    static char data[LARGE];
    const struct timeval limit = {2, 0};
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    EXPECT(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    EXPECT(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0);
    time_t begin = time(NULL);
    EXPECT(recv(ends[0], data, 1, 0) == -1 && errno == EAGAIN);
    EXPECT(time(NULL) - begin >= 2 && time(NULL) - begin <= 3);
    const ssize_t sent = send(ends[0], data, LARGE, 0);
    EXPECT(sent > 0 && (sent < LARGE || send(ends[0], data, LARGE, 0) < LARGE));
    begin = time(NULL);
    EXPECT(send(ends[0], data, 1, 0) == -1 && errno == EAGAIN);
    EXPECT(time(NULL) - begin >= 2 && time(NULL) - begin <= 3);
}

// ---- streams -------------------------------------------------------------------------------

// A line passes through two pipes; the child reads its standard input.
static void pipes(void) {
    int to[2], from[2];
    char line[64];
    EXPECT(pipe(to) == 0 && pipe(from) == 0);
    if (fork() == 0) {
        EXPECT(dup2(to[0], 0) == 0 && dup2(from[1], 1) == 1);
        for (int i = 0; i < 2; i++)
            close(to[i]), close(from[i]);
        execl("/proc/self/exe", "ipc", "echo", NULL);
        _exit(1);
    }
    close(to[0]), close(from[1]);
    FILE *const out = fdopen(to[1], "w"), *const in = fdopen(from[0], "r");
    EXPECT(out && in && fileno(out) == to[1] && fileno(in) == from[0]);
    for (int i = 0; i < 3; i++) {
        EXPECT(fprintf(out, "line %d\n", i) > 0 && fflush(out) == 0);
        EXPECT(fgets(line, sizeof(line), in) && line[5] == '0' + i);
    }
    EXPECT(fclose(out) == 0 && fgets(line, sizeof(line), in) && strcmp(line, "end") == 0);
    EXPECT(!fgets(line, sizeof(line), in) && fclose(in) == 0);
    await_child();
}
static void *read_end(void *stream) {
    char line[64];
    (void)!fgets(line, sizeof(line), stream);
    return NULL;
}
// The program ends while a thread reads, and has bytes to write.
static void echo(void) {
    char line[64];
    int ends[2];
    pthread_t thread;
    EXPECT(pipe(ends) == 0);
    EXPECT(pthread_create(&thread, NULL, read_end, fdopen(ends[0], "r")) == 0);
    while (fgets(line, sizeof(line), stdin))
        EXPECT(printf("%s", line) > 0 && fflush(stdout) == 0);
    printf("end");
}

static void *print_lines(void *unused) {
    for (int i = 0; i < 3; i++)
        EXPECT(printf("line %d\n", i) > 0);
    return unused;
}
// Two threads print to a pipe.
static void printing(void) {
    int ends[2], count = 0;
    char line[64];
    EXPECT(pipe(ends) == 0);
    if (fork() == 0) {
        EXPECT(dup2(ends[1], 1) == 1 && close(ends[0]) == 0 && close(ends[1]) == 0);
        execl("/proc/self/exe", "ipc", "lines", NULL);
        _exit(1);
    }
    close(ends[1]);
    FILE *const in = fdopen(ends[0], "r");
    while (fgets(line, sizeof(line), in))
        count++;
    EXPECT(count == 6 && fclose(in) == 0);
    await_child();
}
static void lines(void) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, print_lines, NULL) == 0);
    print_lines(NULL);
    EXPECT(pthread_join(thread, NULL) == 0);
}

// A process writes more than the pipe has room for.
static void large_write(void) {
    static char data[LARGE];
    int ends[2];
    size_t count = 0;
    EXPECT(pipe(ends) == 0);
    if (fork() == 0) {
        memset(data, 'x', LARGE);
        EXPECT(write(ends[1], data, LARGE) == LARGE);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t size; (size = read(ends[0], data + count, LARGE - count)) > 0;)
        count += (size_t)size;
    EXPECT(count == LARGE && !memchr(data, 0, LARGE));
    await_child();
}

static void files(void) {
    static char data[LARGE];
    int ends[2];
    size_t count = 0;
    off_t offset = 1;
    const int file = open_file("file");
    EXPECT(ftruncate(file, LARGE) == 0 && pwrite(file, "x", 1, LARGE - 1) == 1);
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    if (fork() == 0) {
        EXPECT(sendfile(ends[1], file, &offset, LARGE) == LARGE - 1 && offset == LARGE);
        EXPECT(dprintf(ends[1], "%d", 7) == 1);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t size; (size = read(ends[0], data + count, LARGE - count)) > 0;)
        count += (size_t)size;
    EXPECT(count == LARGE && data[LARGE - 2] == 'x' && data[LARGE - 1] == '7');
    await_child();
}

// Three datagrams by one call, which waits for the last one.
static void messages(void) {
    struct sockaddr_in own = {.sin_family = AF_INET}, names[3] = {0};
    socklen_t length = sizeof(own);
    struct mmsghdr all[3] = {0};
    struct iovec parts[3];
    char data[3] = "";
    struct timespec second = {1, 0};
    const int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
    inet_pton(AF_INET, "10.77.0.1", &own.sin_addr);
    EXPECT(bind(to, (struct sockaddr *)&own, length) == 0);
    EXPECT(getsockname(to, (struct sockaddr *)&own, &length) == 0);
    for (int i = 0; i < 3; i++) {
        names[i] = own;
        parts[i] = (struct iovec){&data[i], 1};
        all[i].msg_hdr = (struct msghdr){.msg_name = &names[i],
                                         .msg_namelen = length,
                                         .msg_iov = &parts[i],
                                         .msg_iovlen = 1};
    }
    if (fork() == 0) {
        memcpy(data, "abc", 3);
        EXPECT(sendmmsg(from, all, 2, 0) == 2);
        usleep(10);
        EXPECT(sendmmsg(from, all + 2, 1, 0) == 1 && sendmmsg(from, all, 1, 0) == 1);
        sleep(2);
        EXPECT(sendmmsg(from, all, 1, 0) == 1);
        _exit(0);
    }
    EXPECT(recvmmsg(to, all, 3, 0, NULL) == 3 && memcmp(data, "abc", 3) == 0);
    for (int i = 0; i < 3; i++)
        EXPECT(all[i].msg_len == 1 && names[i].sin_addr.s_addr == own.sin_addr.s_addr);
    EXPECT(recvmmsg(to, all, 3, MSG_WAITFORONE, NULL) == 1);
    EXPECT(recvmmsg(to, all, 3, 0, &second) == 1); // the limit has passed then
    EXPECT(recvmmsg(to, all, 3, MSG_DONTWAIT, NULL) == -1 && errno == EAGAIN);
    await_child();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*lock)(int fd, bool locks);
        void (*run)(void);
    } PROGRAMS[] = {
        {"flock", by_flock, NULL},
        {"fcntl", by_fcntl, NULL},
        {"open-file", by_open_file, NULL},
        {"lockf", by_lockf, NULL},
        {"close", by_close, NULL},
        {"poll-lock", by_polling, NULL},
        {"posix-queue", NULL, posix_queue},
        {"queue", NULL, queue},
        {"semaphore", NULL, semaphore},
        {"shared-memory", NULL, shared_memory},
        {"interrupted", NULL, interrupted},
        {"time-limits", NULL, time_limits},
        {"pipes", NULL, pipes},
        {"echo", NULL, echo},
        {"printing", NULL, printing},
        {"lines", NULL, lines},
        {"large-write", NULL, large_write},
        {"files", NULL, files},
        {"messages", NULL, messages},
        {"wrong-no-lock", by_nothing, NULL},
        {"wrong-order", NULL, wrong_order},
    };
    for (size_t i = 0; argc > 1 && i < sizeof(PROGRAMS) / sizeof(PROGRAMS[0]); i++)
        if (strcmp(argv[1], PROGRAMS[i].name) == 0) {
            PROGRAMS[i].lock ? add_in_processes(PROGRAMS[i].lock) : PROGRAMS[i].run();
            return 0;
        }
    fprintf(stderr, "usage: ipc NAME\n");
    return 1;
}
