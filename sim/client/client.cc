// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "client.hh"

#include "../protocol/mailbox.hh"
#include "end_run.hh"
#include "memory_thread.hh"
#include "own_descriptors.hh"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// In the library that rdma-sim preloads. A wrapper may have cleared LD_PRELOAD.
extern "C" __attribute__((weak, visibility("default"))) char rdma_sim_preload;

namespace {

using namespace sim;

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int connection = -1;
bool has_memory_thread;
// For a scheduler, which runs one thread at a time: each thread has a connection.
bool has_connection_of_thread;
__thread int connection_of_thread = -1;
uint32_t session; // of this process, or of the parent whose objects it inherited
rdma_sim_handler *handler;
rdma_sim_waiter *waiter;
uint64_t (*place_of_thread)();
const volatile uint64_t probe = Hello::PROBE;

// Disables cancellation: a cancelled thread would keep the lock.
struct Locked {
    int cancel_state;
    Locked() {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
        pthread_mutex_lock(&lock);
    }
    ~Locked() {
        pthread_mutex_unlock(&lock);
        pthread_setcancelstate(cancel_state, nullptr);
    }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;
};

// Connects to the fabric; returns an error number.
int open_socket(int &fd) {
    const char *const path = getenv("RDMA_SIM_SOCKET");
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (!path || strlen(path) >= sizeof(address.sun_path))
        return ENODEV;
    if (getenv("RDMA_SIM_ROOT") && !&rdma_sim_preload) {
        EndRun request = {};
        snprintf(request.line, sizeof(request.line), PRELOAD_IS_LOST, program_invocation_name);
        end_run(path, request);
    }
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (!connect(fd, reinterpret_cast<struct sockaddr *>(&address), sizeof(address)))
        return 0;
    const int error = errno;
    close(fd);
    return error == ENOENT || error == ECONNREFUSED ? ENODEV : error;
}

template <class Function> ssize_t restarted(Function function) {
    ssize_t result;
    do
        result = function();
    while (result < 0 && errno == EINTR);
    return result;
}

// Receives a reply; returns an error number. `bell`: a second descriptor, or NULL.
int receive_reply(int fd, rdma_sim_message *message, int *bell = nullptr) {
    ReplyHead head = {};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec in[] = {{&head, sizeof(head)}, {message->reply, message->reply_size}};
    struct msghdr received = {};
    received.msg_iov = in;
    received.msg_iovlen = 2;
    received.msg_control = &control;
    received.msg_controllen = bell ? sizeof(control) : CMSG_SPACE(sizeof(int));
    const ssize_t length = restarted([&] { return recvmsg(fd, &received, MSG_CMSG_CLOEXEC); });
    if (length < static_cast<ssize_t>(sizeof(head)))
        return EIO;
    message->length = static_cast<size_t>(length) - sizeof(head);
    if (const struct cmsghdr *passed = CMSG_FIRSTHDR(&received)) {
        memcpy(&message->fd, CMSG_DATA(passed), sizeof(int));
        if (bell && passed->cmsg_len >= CMSG_LEN(2 * sizeof(int)))
            memcpy(bell, CMSG_DATA(passed) + sizeof(int), sizeof(int));
    }
    return head.error;
}

// Sends a request and receives its reply; returns an error number.
int exchange(int fd, rdma_sim_message *message, int *bell = nullptr) {
    struct iovec out[] = {{const_cast<void *>(message->request), message->request_size},
                          {const_cast<void *>(message->more), message->more_size}};
    struct msghdr sent = {};
    sent.msg_iov = out;
    sent.msg_iovlen = 2;
    if (restarted([&] { return sendmsg(fd, &sent, MSG_NOSIGNAL); }) < 0)
        return EIO;
    return receive_reply(fd, message, bell);
}

// ---- the ring of requests ------------------------------------------------------------------

RequestRing *ring; // NULL: requests are sent on the socket
int bell = -1;     // wakes the fabric
// What the process has posted without a reply to the QP at each place of the ring.
struct {
    uint32_t qp, units;
} posted[RequestRing::CREDITS];

// Without a ring, as without descriptors, the socket suffices.
void open_ring(int fd) {
    OpenRing request = {};
    Empty reply;
    rdma_sim_message message{&request, sizeof(request), nullptr, 0,
                             &reply,   sizeof(reply),   0,       -1};
    int its_bell = -1;
    void *mapped = MAP_FAILED;
    if (!exchange(fd, &message, &its_bell) && message.fd >= 0 && its_bell >= 0)
        mapped = mmap(nullptr, sizeof(RequestRing), PROT_READ | PROT_WRITE, MAP_SHARED,
                      message.fd, 0);
    if (message.fd >= 0)
        close(message.fd);
    if (mapped != MAP_FAILED) {
        ring = static_cast<RequestRing *>(mapped);
        bell = kept(its_bell);
        memset(posted, 0, sizeof(posted));
    } else if (its_bell >= 0) {
        close(its_bell);
    }
}

// The parent uses the same ring.
void leave_ring() {
    if (!ring)
        return;
    munmap(ring, sizeof(*ring));
    close_kept(bell);
    ring = nullptr;
}

// Returns false if the fabric has ended.
bool is_connected() {
    char byte;
    return !__atomic_load_n(&ring->is_closed, __ATOMIC_SEQ_CST) &&
           recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

// Waits until the fabric has executed the requests up to here. Returns false if it has ended.
bool wait_until(uint32_t target) {
    const timespec second = {1, 0};
    for (;;) {
        __atomic_store_n(&ring->target, target, __ATOMIC_RELAXED);
        __atomic_store_n(&ring->waits, 1, __ATOMIC_SEQ_CST);
        const uint32_t consumed = __atomic_load_n(&ring->consumed, __ATOMIC_SEQ_CST);
        if (has_reached(consumed, target))
            break;
        if (futex(&ring->consumed, FUTEX_WAIT, consumed, &second) && errno == ETIMEDOUT &&
            !is_connected())
            return false;
        if (__atomic_load_n(&ring->is_closed, __ATOMIC_RELAXED))
            return false;
    }
    __atomic_store_n(&ring->waits, 0, __ATOMIC_RELAXED);
    return true;
}

// Adds a request to the ring. Returns false if the fabric has ended.
bool put(const rdma_sim_message &message, uint32_t units) {
    const size_t length = message.request_size + message.more_size;
    const uint32_t size = RequestRing::bytes_of(length);
    uint32_t at = ring->produced % RequestRing::SIZE;
    const uint32_t rest = RequestRing::SIZE - at, unused = size > rest ? rest : 0;
    const uint32_t end = ring->produced + unused + size;
    if (!has_reached(__atomic_load_n(&ring->consumed, __ATOMIC_ACQUIRE),
                     end - RequestRing::SIZE) &&
        !wait_until(end - RequestRing::SIZE))
        return false;
    const RingEntry none = {0, 0}, entry = {static_cast<uint32_t>(length), units};
    if (unused > 0) {
        memcpy(ring->bytes + at, &none, sizeof(none));
        at = 0;
    }
    memcpy(ring->bytes + at, &entry, sizeof(entry));
    at += sizeof(entry);
    memcpy(ring->bytes + at, message.request, message.request_size);
    if (message.more_size > 0)
        memcpy(ring->bytes + at + message.request_size, message.more, message.more_size);
    __atomic_store_n(&ring->produced, end, __ATOMIC_SEQ_CST);
    // A program that has closed all descriptors has closed the socket as well.
    if (__atomic_load_n(&ring->is_asleep, __ATOMIC_SEQ_CST) &&
        !__atomic_load_n(&ring->is_closed, __ATOMIC_RELAXED) &&
        __atomic_exchange_n(&ring->is_asleep, 0, __ATOMIC_SEQ_CST)) {
        const uint64_t one = 1;
        (void)!write(bell, &one, sizeof(one));
    }
    return true;
}

int exchange_in_ring(rdma_sim_message *message) {
    if (!put(*message, 0) || !wait_until(ring->produced))
        return EIO;
    if (ring->is_on_socket)
        return receive_reply(connection, message);
    const size_t length = ring->reply_length;
    message->length = length < message->reply_size ? length : message->reply_size;
    if (message->length > 0)
        memcpy(message->reply, ring->reply, message->length);
    return ring->error;
}

// Starts the thread that accesses the memory of this process for the fabric.
int open_mailbox(int fd) {
    OpenMailbox request = {};
    Empty reply;
    rdma_sim_message message{&request, sizeof(request), nullptr, 0,
                             &reply,   sizeof(reply),   0,       -1};
    int error = exchange(fd, &message);
    if (!error)
        error = message.fd < 0 ? EMFILE : rdma_sim_start_memory_thread(message.fd);
    if (message.fd >= 0)
        close(message.fd);
    return error;
}

void connect_child();

// The caller holds the lock.
int connect_process() {
    static bool is_prepared;
    if (!is_prepared)
        pthread_atfork([] { pthread_mutex_lock(&lock); }, [] { pthread_mutex_unlock(&lock); },
                       connect_child);
    is_prepared = true;
    const char *const host = getenv("RDMA_SIM_HOST");
    int fd;
    if (const int error = open_socket(fd))
        return error;
    Hello hello = {};
    hello.host = host ? static_cast<uint32_t>(strtoul(host, nullptr, 10)) : 1;
    hello.session = session;
    hello.probe = reinterpret_cast<uint64_t>(&probe);
    Hello::Reply reply;
    rdma_sim_message message{&hello, sizeof(hello), nullptr, 0, &reply, sizeof(reply), 0, -1};
    int error = exchange(fd, &message);
    if (!error && reply.needs_mailbox)
        error = open_mailbox(fd);
    if (error) {
        close(fd);
        return error;
    }
    fd = kept(fd);
    (has_connection_of_thread ? connection_of_thread : connection) = fd;
    session = reply.session;
    has_memory_thread = reply.needs_mailbox || has_memory_thread;
    if (!has_connection_of_thread)
        open_ring(fd);
    return 0;
}

// The parent's connection stays open in the child: the session ends with the last process. The
// memory of the parent, if it ends first, is that of the child. A child of a process with a
// memory thread connects when it needs the fabric, because it should not start threads here.
void connect_child() {
    const int before = errno;
    connection = connection_of_thread = -1;
    mark_none();
    leave_ring();
    if (session != 0 && !has_memory_thread)
        (void)connect_process();
    errno = before;
    pthread_mutex_unlock(&lock);
}

} // namespace

int rdma_sim_call(rdma_sim_message *message) {
    message->fd = -1;
    if (handler)
        return handler(message);
    const int before = errno;
    if (has_connection_of_thread) {
        int error = connection_of_thread < 0 ? connect_process() : 0;
        if (!error)
            error = exchange(connection_of_thread, message);
        errno = before;
        return error;
    }
    const Locked locked;
    int error = connection < 0 ? connect_process() : 0;
    if (!error)
        error = ring && message->request_size + message->more_size <= RequestRing::MAX_REQUEST
                    ? exchange_in_ring(message)
                    : exchange(connection, message);
    errno = before;
    return error;
}

void rdma_sim_connect_threads() {
    has_connection_of_thread = true;
}

int rdma_sim_connection() {
    return connection_of_thread;
}

void rdma_sim_disconnect_thread() {
    close_kept(connection_of_thread);
    connection_of_thread = -1;
}

void rdma_sim_polls(const Ring *completions) {
    if (waiter)
        waiter(-1, completions, "ibv_poll_cq");
}

bool rdma_sim_post(const rdma_sim_message *message, uint32_t qp, uint32_t units) {
    if (handler || message->request_size + message->more_size > RequestRing::MAX_REQUEST)
        return false;
    const int before = errno;
    const Locked locked;
    if (!ring || __atomic_load_n(&ring->needs_replies, __ATOMIC_RELAXED))
        return false;
    const Credit &credit = ring->credits[qp % RequestRing::CREDITS];
    auto &own = posted[qp % RequestRing::CREDITS];
    if (__atomic_load_n(&credit.queue, __ATOMIC_ACQUIRE) != qp)
        return false;
    if (own.qp != qp)
        own = {qp, 0};
    const uint32_t after = own.units + units;
    if (!has_reached(__atomic_load_n(&credit.limit, __ATOMIC_RELAXED), after) ||
        !put(*message, units))
        return false;
    own.units = after;
    errno = before;
    return true;
}

void rdma_sim_set_handler(rdma_sim_handler *new_handler, uint64_t (*place)()) {
    handler = new_handler;
    place_of_thread = place;
}

void rdma_sim_set_waiter(rdma_sim_waiter *new_waiter) {
    waiter = new_waiter;
}

void rdma_sim_wait_for_ack(pthread_cond_t *ack, pthread_mutex_t *mutex, const char *function) {
    if (waiter)
        waiter(-1, nullptr, function);
    pthread_cond_wait(ack, mutex);
}

int rdma_sim_hold(int change) {
    static thread_local int held;
    return held += change;
}

uint64_t rdma_sim_place() {
    return place_of_thread ? place_of_thread() : 0;
}

int rdma_sim_take_event(int fd, uint32_t channel, TakeEvent::Reply *event, void *data,
                        size_t size, const char *function) {
    TakeEvent request = {};
    request.channel = channel;
    for (;;) {
        uint64_t count;
        if (waiter)
            waiter(fd, nullptr, function);
        if (read(fd, &count, sizeof(count)) != sizeof(count))
            return -1;
        alignas(8) char reply[sizeof(*event) + 1024];
        rdma_sim_message message{&request, sizeof(request), nullptr, 0,
                                 reply,    sizeof(reply),   0,       -1};
        const int error = rdma_sim_call(&message);
        if (error == EAGAIN)
            continue;
        if (error) {
            errno = error;
            return -1;
        }
        memcpy(event, reply, sizeof(*event));
        const size_t rest = message.length - sizeof(*event);
        if (data)
            memcpy(data, reply + sizeof(*event), rest < size ? rest : size);
        return 0;
    }
}
