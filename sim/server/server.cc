// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "server.hh"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace sim {

namespace {

// The largest message, aligned for its structures.
struct alignas(16) Buffer {
    std::byte bytes[MAX_MESSAGE];
};

int pid_of(int fd) {
    struct ucred peer {};
    socklen_t length = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) ? 0 : peer.pid;
}

// Orphans are children of rdma-sim.
bool is_descendant(int pid) {
    while (pid > 1 && pid != getpid()) {
        char path[64], text[4096] = "";
        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        FILE *const file = fopen(path, "re");
        pid = 0;
        if (file) {
            (void)!fread(text, 1, sizeof(text) - 1, file);
            fclose(file);
        }
        // The name of the program, in parentheses, may contain any character.
        if (const char *const end = strrchr(text, ')'))
            (void)sscanf(end + 1, " %*c %d", &pid);
    }
    return pid == getpid();
}

// Programs get ENFILE, because EMFILE would blame their own limit.
void report_limit() {
    static bool is_reported;
    struct rlimit limit;
    if (is_reported || getrlimit(RLIMIT_NOFILE, &limit))
        return;
    is_reported = true;
    fprintf(stderr,
            "rdma-sim: rdma-sim itself may open %llu files, one for each channel of all "
            "programs: raise its hard limit (ulimit -Hn)\n",
            static_cast<unsigned long long>(limit.rlim_cur));
}

} // namespace

void watch(int epoll, int fd, uint32_t events, uint64_t data) {
    struct epoll_event event {};
    event.events = events;
    event.data.u64 = data;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
        throw Failure(std::string("epoll_ctl: ") + strerror(errno));
}

uint64_t Server::clock() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(now.tv_nsec);
}

Server::Server(const Options &options, Persistence *persistence, bool uses_threads, bool holds)
    : fabric_(environment_, options), persistence_(persistence), uses_threads_(uses_threads),
      holds_(holds), epoll_(epoll_create1(EPOLL_CLOEXEC)),
      spare_(fcntl(epoll_, F_DUPFD_CLOEXEC, 0)) {
    if (spare_ < 0)
        throw Failure(std::string("epoll_create1: ") + strerror(errno));
    pass_time();
}

void Server::pass_time() {
    if (!holds_)
        fabric_.advance(clock());
}

Server::~Server() {
    for (auto &[fd, client] : clients_) {
        close_ring(client);
        close(fd);
    }
    if (listener_ >= 0)
        close(listener_);
    close(epoll_);
    close(spare_);
    if (!path_.empty())
        unlink(path_.c_str());
}

int Server::listen(const std::string &path) {
    struct sockaddr_un address {};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path))
        return ENAMETOOLONG;
    memcpy(address.sun_path, path.c_str(), path.size());
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener_ < 0 ||
        bind(listener_, reinterpret_cast<struct sockaddr *>(&address), sizeof(address)) ||
        ::listen(listener_, 4096))
        return errno;
    path_ = path;
    watch(epoll_, listener_, EPOLLIN, static_cast<uint64_t>(listener_));
    return 0;
}

void Server::wake_by(int fd) {
    wake_ = fd;
    watch(epoll_, fd, EPOLLIN, static_cast<uint64_t>(fd));
}

// Some sandboxes lack epoll_pwait2().
static int wait_for_events(int epoll, struct epoll_event *events, int size, uint64_t limit) {
    static bool lacks_nanoseconds;
    if (limit == UINT64_MAX || limit == 0)
        return epoll_wait(epoll, events, size, limit == 0 ? 0 : -1);
    if (!lacks_nanoseconds) {
        const timespec time = {static_cast<time_t>(limit / 1'000'000'000),
                               static_cast<long>(limit % 1'000'000'000)};
        const int count = epoll_pwait2(epoll, events, size, &time, nullptr);
        if (count >= 0 || (errno != ENOSYS && errno != EPERM))
            return count;
        lacks_nanoseconds = true;
    }
    const uint64_t milliseconds = std::min<uint64_t>((limit + 999'999) / 1'000'000, INT_MAX);
    return epoll_wait(epoll, events, size, static_cast<int>(milliseconds));
}

bool Server::step(uint64_t limit) {
    require_replies();
    const uint64_t next = holds_ || limit == 0 ? UINT64_MAX : fabric_.next_time();
    if (next != UINT64_MAX) {
        const uint64_t now = clock();
        limit = std::min(limit, next > now ? next - now : 0);
    }
    struct epoll_event events[64];
    const int count = wait_for_events(epoll_, events, 64, limit);
    if (count < 0 && errno != EINTR)
        throw Failure(std::string("epoll_wait: ") + strerror(errno));
    pass_time();
    is_woken_ = false;
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 & RING)
            serve_ring(static_cast<int>(events[i].data.u64 & ~RING));
        else if (events[i].data.fd == listener_)
            accept_client();
        else if (events[i].data.fd == wake_)
            is_woken_ = true;
        else if (clients_.contains(events[i].data.fd))
            serve(events[i].data.fd);
    return count > is_woken_;
}

void Server::accept_client() {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        report_limit();
        close(spare_); // the client would wait for ever
        close(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
        spare_ = fcntl(epoll_, F_DUPFD_CLOEXEC, 0);
    }
    if (fd < 0)
        return;
    Client client;
    client.id = ++last_client_;
    client.caller.pid = pid_of(fd);
    client.memory =
        std::make_shared<ProcessMemory>(client.caller.pid, persistence_, &environment_.burst);
    client.caller.program = client.memory;
    clients_.emplace(fd, std::move(client));
    watch(epoll_, fd, EPOLLIN, static_cast<uint64_t>(fd));
}

void Server::disconnect(int fd) {
    const auto found = clients_.find(fd);
    close_ring(found->second);
    found->second.memory->use_thread(nullptr);
    Session *const session = found->second.session;
    if (!session && found->second.caller.session)
        fabric_.end_process(found->second.caller);
    close(fd);
    clients_.erase(found);
    // Children of the owner may still have connections of their own in this session.
    for (auto &[other, client] : clients_)
        if (session && client.caller.session == session)
            client.caller.session = nullptr;
    if (session)
        fabric_.end_session(*session);
    pass_time();
}

// Serves one request only, so that a process with many does not delay the others.
void Server::serve(int fd) {
    static Buffer buffer;
    const ssize_t length = recv(fd, buffer.bytes, sizeof(buffer.bytes), MSG_DONTWAIT);
    const int receive_error = errno;
    Client &client = clients_.find(fd)->second;
    drain_ring(fd, client);
    if (length <= 0) {
        if (length == 0 || (receive_error != EAGAIN && receive_error != EINTR))
            disconnect(fd);
        return;
    }
    Reply reply;
    uint32_t op = 0;
    memcpy(&op, buffer.bytes, std::min<size_t>(static_cast<size_t>(length), sizeof(op)));
    int error;
    if (op == OP_HELLO && static_cast<size_t>(length) >= sizeof(Hello)) {
        Hello hello;
        memcpy(&hello, buffer.bytes, sizeof(hello));
        error = join(client, hello, reply);
    } else if (op == OP_END_RUN && static_cast<size_t>(length) == sizeof(EndRun)) {
        end_run(fd, buffer.bytes, client.caller.pid);
        return;
    } else if (op == OP_OPEN_RING) {
        error = open_ring(fd, client, reply);
    } else if (op == OP_OPEN_MAILBOX) {
        error = open_mailbox(fd, client, reply);
    } else if (holds_ && !is_from_system(op) && static_cast<size_t>(length) >= sizeof(op)) {
        client.held.assign(buffer.bytes, buffer.bytes + length);
        return;
    } else {
        error = fabric_.call(client.caller, buffer.bytes, static_cast<size_t>(length), reply);
    }
    reply_to(fd, error, reply);
    if (op == OP_CREATE_QP && client.ring && !error)
        add_credit(client, reply.as<CreateQp::Reply>().qp);
}

// Without a reply the process waits until it is killed, so that its parent does not continue.
void Server::end_run(int fd, const void *message, int pid) {
    EndRun request;
    Reply reply;
    memcpy(&request, message, sizeof(request));
    request.line[sizeof(request.line) - 1] = '\0';
    if (is_descendant(pid))
        throw Failure(request.line);
    reply_to(fd, ESRCH, reply);
}

// ---- a scheduler ---------------------------------------------------------------------------

std::vector<uint64_t> Server::clients_with_request(int pid) const {
    std::vector<uint64_t> found;
    for (const auto &[fd, client] : clients_)
        if (client.caller.pid == pid && !client.held.empty())
            found.push_back(client.id);
    std::ranges::sort(found);
    return found;
}

int Server::socket_of(uint64_t client) const {
    for (const auto &[fd, other] : clients_)
        if (other.id == client)
            return fd;
    return -1;
}

int Server::descriptor_of(uint64_t client) const {
    const auto found = clients_.find(socket_of(client));
    return found == clients_.end() || found->second.held.empty() ? -1 : found->first;
}

const std::vector<std::byte> *Server::held(uint64_t client) const {
    const auto found = clients_.find(descriptor_of(client));
    return found == clients_.end() ? nullptr : &found->second.held;
}

bool Server::has_client(int pid) const {
    return std::ranges::any_of(
        clients_, [&](const auto &entry) { return entry.second.caller.pid == pid; });
}

uint64_t Server::writes(int pid) const {
    uint64_t count = 0;
    for (const auto &[fd, client] : clients_)
        if (client.caller.pid == pid)
            count += client.memory->writes();
    return count;
}

int Server::execute_held(uint64_t id, Reply &reply) {
    const int fd = descriptor_of(id);
    Client &client = clients_.at(fd);
    const std::vector<std::byte> request = std::exchange(client.held, {});
    Caller *caller = &client.caller;
    for (auto &[other_fd, other] : clients_)
        if (other.id == client.process)
            caller = &other.caller;
    const int error = fabric_.call(*caller, request.data(), request.size(), reply);
    reply_to(fd, error, reply);
    return error;
}

void Server::release_held(uint64_t client, Reply &reply) {
    const int fd = descriptor_of(client);
    clients_.at(fd).held.clear();
    reply_to(fd, 0, reply);
}

// ---- connections ---------------------------------------------------------------------------

int Server::join(Client &client, const Hello &hello, Reply &reply) {
    for (const auto &[fd, other] : clients_)
        if (holds_ && other.caller.session && other.caller.pid == client.caller.pid &&
            other.caller.session->number == hello.session)
            return join_thread(client, other, reply);
    const int error = fabric_.call(client.caller, &hello, sizeof(hello), reply);
    if (!error)
        reply.as<Hello::Reply>().needs_mailbox =
            uses_threads_ || !client.memory->is_accessible(hello.probe);
    if (client.caller.owns_session)
        client.session = client.caller.session;
    else if (!error)
        for (auto &[fd, other] : clients_)
            if (other.caller.session == client.caller.session && &other != &client)
                other.memory->add_child(client.memory);
    return error;
}

int Server::open_mailbox(int fd, Client &client, Reply &reply) {
    void *const mailbox = map_shared("rdma-sim-mailbox", sizeof(Mailbox), reply.descriptor);
    if (!mailbox)
        return ENFILE;
    client.memory->use_thread(
        std::make_unique<MemoryThread>(client.caller.pid, fd, static_cast<Mailbox *>(mailbox)));
    memory_threads_++;
    reply.closes_descriptor = true;
    return 0;
}

// The objects that a thread creates are those of its process.
int Server::join_thread(Client &client, const Client &process, Reply &reply) {
    const Session &session = *process.caller.session;
    client.process = process.id;
    reply.as<Hello::Reply>() = {session.number,
                                static_cast<uint32_t>(session.host->devices.size()), 0};
    return 0;
}

void Server::reply_to(int fd, int error, Reply &reply) {
    if (error == ENFILE)
        report_limit();
    ReplyHead head = {error, reply.descriptor >= 0};
    struct iovec parts[] = {{&head, sizeof(head)}, {reply.bytes.data(), reply.bytes.size()}};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control{};
    const int descriptors[] = {reply.descriptor, reply.bell};
    const size_t passed_bytes = (reply.bell >= 0 ? 2 : 1) * sizeof(int);
    struct msghdr message {};
    message.msg_iov = parts;
    message.msg_iovlen = error ? 1 : 2;
    if (reply.descriptor >= 0 && !error) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(passed_bytes);
        struct cmsghdr *const passed = CMSG_FIRSTHDR(&message);
        passed->cmsg_level = SOL_SOCKET;
        passed->cmsg_type = SCM_RIGHTS;
        passed->cmsg_len = CMSG_LEN(passed_bytes);
        memcpy(CMSG_DATA(passed), descriptors, passed_bytes);
    }
    // The end of a client is handled when its socket is read; one that does not read its
    // replies ends.
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN)
        shutdown(fd, SHUT_RDWR);
    else if (sent < 0 && errno != EPIPE && errno != ECONNRESET)
        throw Failure(std::string("a reply cannot be sent: ") + strerror(errno));
    if (reply.descriptor >= 0 && reply.closes_descriptor)
        close(reply.descriptor);
}

} // namespace sim
