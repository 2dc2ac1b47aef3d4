// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// process_test.cc -- processes, threads and forked children that use a fabric through a socket.

#include "../../server/server.hh"
#include "connect_qp.hh"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include <csetjmp>
#include <cstdarg>

#include <cmocka.h>
}

// Ends a process of the fabric if the condition is false.
#define REQUIRE(condition)                                                           \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "line %d: %s: error %d\n", __LINE__, #condition, errno); \
            _exit(1);                                                                \
        }                                                                            \
    } while (0)

namespace {

using namespace sim;

constexpr size_t BYTES = 1 << 20;

// The description of its queue pair and memory that a process sends to the other one.
struct Remote {
    ibv_gid gid;
    uint32_t number, rkey;
    uint64_t address;
};

struct Side {
    ibv_context *context = nullptr;
    ibv_pd *pd = nullptr;
    ibv_comp_channel *channel = nullptr;
    ibv_cq *cq = nullptr;
    ibv_qp *qp = nullptr;
    ibv_mr *mr = nullptr;
    char *memory = nullptr;
    Remote remote{};

    Side() {
        ibv_device **const list = ibv_get_device_list(nullptr);
        REQUIRE(list && list[0]);
        context = ibv_open_device(list[0]);
        REQUIRE(context);
        ibv_free_device_list(list);
        pd = ibv_alloc_pd(context);
        channel = ibv_create_comp_channel(context);
        cq = ibv_create_cq(context, 1024, nullptr, channel, 0);
        memory = static_cast<char *>(
            mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mr = ibv_reg_mr(pd, memory, BYTES,
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ);
        ibv_qp_init_attr init = {};
        init.send_cq = init.recv_cq = cq;
        init.cap = {256, 256, 1, 1, 0};
        init.qp_type = IBV_QPT_RC;
        qp = ibv_create_qp(pd, &init);
        REQUIRE(cq);
        REQUIRE(mr);
        REQUIRE(qp);
    }
    void connect(int socket) {
        Remote own{{}, qp->qp_num, mr->rkey, reinterpret_cast<uint64_t>(memory)};
        REQUIRE(ibv_query_gid(context, 1, 0, &own.gid) == 0);
        REQUIRE(write(socket, &own, sizeof(own)) == sizeof(own));
        REQUIRE(read(socket, &remote, sizeof(remote)) == sizeof(remote));
        ibv_qp_attr attr = {};
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        attr.max_dest_rd_atomic = attr.max_rd_atomic = attr.retry_cnt = 1;
        attr.timeout = 8; // 1 ms
        attr.rnr_retry = 7;
        REQUIRE(!connect_qp(qp, attr, remote.gid, remote.number));
        meet(socket);
    }
    // Connects to a queue pair of this process.
    void connect(Side &other) {
        ibv_qp_attr attr = {};
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
        ibv_gid gid;
        REQUIRE(!ibv_query_gid(context, 1, 0, &gid));
        REQUIRE(!connect_qp(qp, attr, gid, other.qp->qp_num));
        REQUIRE(!connect_qp(other.qp, attr, gid, qp->qp_num));
        remote = {gid, other.qp->qp_num, other.mr->rkey,
                  reinterpret_cast<uint64_t>(other.memory)};
    }
    // Returns once both processes have called it.
    static void meet(int socket) {
        char byte = 0;
        REQUIRE(write(socket, &byte, 1) == 1 && read(socket, &byte, 1) == 1);
    }
    int post(ibv_wr_opcode opcode, size_t offset, size_t length) const {
        ibv_sge sge = {reinterpret_cast<uint64_t>(memory) + offset,
                       static_cast<uint32_t>(length), mr->lkey};
        ibv_send_wr wr = {}, *bad;
        wr.wr_id = offset;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = opcode;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.rdma.remote_addr = remote.address + offset;
        wr.wr.rdma.rkey = remote.rkey;
        return ibv_post_send(qp, &wr, &bad);
    }
    void receive(size_t length, size_t offset = 0) const {
        ibv_sge sge = {reinterpret_cast<uint64_t>(memory) + offset,
                       static_cast<uint32_t>(length), mr->lkey};
        ibv_recv_wr wr = {}, *bad;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        REQUIRE(!ibv_post_recv(qp, &wr, &bad));
    }
    ibv_wc poll() const {
        ibv_wc wc;
        int count;
        while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
            ;
        REQUIRE(count == 1);
        return wc;
    }
};

// ---- programs, which run on host1 (is_first) and on host2
// ------------------------------------

void write_large(int socket, bool is_first) {
    Side side;
    side.connect(socket);
    memset(side.memory, is_first ? 'a' : 'b', BYTES);
    Side::meet(socket);
    if (is_first) {
        REQUIRE(!side.post(IBV_WR_RDMA_WRITE, 0, BYTES));
        REQUIRE(side.poll().status == IBV_WC_SUCCESS);
        memset(side.memory, 0, BYTES);
        REQUIRE(!side.post(IBV_WR_RDMA_READ, 0, BYTES));
        REQUIRE(side.poll().status == IBV_WC_SUCCESS);
        for (size_t i = 0; i < BYTES; i++)
            REQUIRE(side.memory[i] == 'a');
    }
    Side::meet(socket);
    REQUIRE(side.memory[0] == 'a' && side.memory[BYTES - 1] == 'a');
}

struct Waiter {
    const Side *side;
    unsigned *events;
};

// One of several threads that wait for events. The thread that takes the last one ends the
// process.
void *wait_for_events(void *argument) {
    const Waiter waiter = *static_cast<Waiter *>(argument);
    for (;;) {
        ibv_cq *cq;
        void *context;
        if (ibv_get_cq_event(waiter.side->channel, &cq, &context)) {
            REQUIRE(errno == EAGAIN);
            pollfd ready = {waiter.side->channel->fd, POLLIN, 0};
            REQUIRE(::poll(&ready, 1, -1) == 1);
            continue;
        }
        ibv_ack_cq_events(cq, 1);
        REQUIRE(!ibv_req_notify_cq(cq, 0));
        ibv_wc wc;
        while (ibv_poll_cq(cq, 1, &wc) == 1) {
            REQUIRE(wc.status == IBV_WC_SUCCESS);
            if (__atomic_add_fetch(waiter.events, 1, __ATOMIC_SEQ_CST) == 200)
                _exit(0);
        }
    }
}

// Four threads of the second process wait for messages, on a descriptor with O_NONBLOCK.
void wait_in_threads(int socket, bool is_first) {
    Side side;
    side.connect(socket);
    if (is_first) {
        for (int i = 0; i < 200; i++) {
            REQUIRE(!side.post(IBV_WR_SEND, 0, 8));
            REQUIRE(side.poll().status == IBV_WC_SUCCESS);
        }
        return;
    }
    unsigned events = 0;
    Waiter waiter{&side, &events};
    fcntl(side.channel->fd, F_SETFL, O_NONBLOCK);
    REQUIRE(!ibv_req_notify_cq(side.cq, 0));
    pthread_t thread;
    for (int i = 0; i < 3; i++)
        REQUIRE(!pthread_create(&thread, nullptr, wait_for_events, &waiter));
    for (int i = 0; i < 200; i++)
        side.receive(64);
    wait_for_events(&waiter);
}

void *write_words(void *argument) {
    const Side &side = *static_cast<Side *>(argument);
    for (size_t i = 0; i < 50; i++)
        REQUIRE(!side.post(IBV_WR_RDMA_WRITE, i * 8, 8));
    return nullptr;
}

void post_in_threads(int socket, bool is_first) {
    Side side;
    side.connect(socket);
    pthread_t threads[4];
    for (pthread_t &thread : threads)
        REQUIRE(!is_first || !pthread_create(&thread, nullptr, write_words, &side));
    for (const pthread_t thread : threads)
        REQUIRE(!is_first || !pthread_join(thread, nullptr));
    for (int i = 0; is_first && i < 200; i++)
        REQUIRE(side.poll().status == IBV_WC_SUCCESS);
    Side::meet(socket);
}

// Each message must follow the one before, up to the last one. Until a receive is posted, sends
// wait in their queue.
void receive_all(const Side &side, int socket) {
    std::minstd_rand random(1);
    uint64_t posted = 0, received = 0;
    Side::meet(socket); // the send queue is full
    for (bool has_ended = false; !has_ended;) {
        if (posted == received)
            for (uint64_t n = 1 + random() % 64; n > 0; n--, posted++)
                side.receive(64, posted % 256 * 64);
        uint64_t value;
        REQUIRE(side.poll().status == IBV_WC_SUCCESS);
        memcpy(&value, side.memory + received % 256 * 64, sizeof(value));
        has_ended = value == UINT64_MAX;
        REQUIRE(has_ended || value == received);
        received++;
    }
}

// Lists of sends, writes and reads fill the send queue until posts are refused. Each accepted
// request completes once, in order, and has moved its data; a refused one does nothing.
void fill_queue(int socket, bool is_first) {
    constexpr uint64_t REQUESTS = 20000, SLOTS = 1024, READ_DATA = SLOTS * 64,
                       WORD = 2 * READ_DATA, LARGE = BYTES / 2;
    constexpr ibv_wr_opcode OPCODES[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    Side side;
    side.connect(socket);
    if (!is_first)
        return receive_all(side, socket);
    std::minstd_rand random(1);
    uint64_t accepted = 0, polled = 0, sent = 0, word = 0;
    bool is_refused = false;
    std::vector<uint64_t> expected(SLOTS); // in the word, by a read; 0: it is no read
    const auto poll = [&] {
        const ibv_wc wc = side.poll();
        const uint64_t slot = polled % SLOTS;
        REQUIRE(wc.status == IBV_WC_SUCCESS && wc.wr_id == polled++);
        REQUIRE(expected[slot] == 0 ||
                !memcmp(side.memory + READ_DATA + slot * 64, &expected[slot], 8));
    };
    while (accepted < REQUESTS) {
        ibv_send_wr wrs[4] = {}, *bad = nullptr;
        ibv_sge sges[4];
        const uint64_t count = 1 + random() % 4;
        for (uint64_t i = 0, sends = sent; i < count; i++) {
            const uint64_t slot = (accepted + i) % SLOTS, value = accepted + i + 1;
            ibv_send_wr &wr = wrs[i];
            wr.wr_id = accepted + i;
            wr.opcode = OPCODES[random() % 3];
            const bool is_send = wr.opcode == IBV_WR_SEND, is_large = random() % 16 == 0;
            const uint64_t offset = wr.opcode == IBV_WR_RDMA_READ ? READ_DATA + slot * 64
                                    : is_large && !is_send        ? LARGE
                                                                  : slot * 64;
            sges[i] = {reinterpret_cast<uint64_t>(side.memory) + offset,
                       offset == LARGE ? 12288U : 8U, side.mr->lkey};
            memcpy(side.memory + offset, is_send ? &sends : &value, 8);
            sends += is_send;
            wr.sg_list = &sges[i];
            wr.num_sge = 1;
            wr.send_flags = IBV_SEND_SIGNALED;
            wr.wr.rdma.remote_addr = side.remote.address + (offset == LARGE ? LARGE : WORD);
            wr.wr.rdma.rkey = side.remote.rkey;
            wr.next = i + 1 < count ? &wrs[i + 1] : nullptr;
        }
        const int error = ibv_post_send(side.qp, wrs, &bad);
        REQUIRE(error == (bad ? ENOMEM : 0));
        for (const ibv_send_wr *wr = wrs; wr != bad; wr = wr->next, accepted++) {
            const bool is_read = wr->opcode == IBV_WR_RDMA_READ;
            sent += wr->opcode == IBV_WR_SEND;
            if (wr->opcode == IBV_WR_RDMA_WRITE && wr->sg_list->length == 8)
                word = accepted + 1;
            expected[accepted % SLOTS] = is_read ? word : 0;
        }
        if (bad && !is_refused)
            Side::meet(socket); // the first messages may be received
        is_refused |= bad != nullptr;
        for (uint64_t n = bad ? 1 + random() % 64 : 0; polled < accepted && n > 0; n--)
            poll();
        while (accepted - polled > SLOTS - 4)
            poll();
    }
    REQUIRE(is_refused);
    while (polled < accepted)
        poll();
    const uint64_t end = UINT64_MAX;
    memcpy(side.memory, &end, sizeof(end));
    REQUIRE(!side.post(IBV_WR_SEND, 0, 8) && side.poll().status == IBV_WC_SUCCESS);
}

// In a sandbox that forbids access to the memory of processes, the memory thread uses a pipe.
void write_in_sandbox(int socket, bool is_first) {
    constexpr auto FORBIDDEN = SECCOMP_RET_ERRNO | EPERM;
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, FORBIDDEN),
    };
    const sock_fprog program = {std::size(filter), filter};
    REQUIRE(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    REQUIRE(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    write_large(socket, is_first);
    fill_queue(socket, is_first);
}

// A child has its own connection to the fabric. Its end does not affect the parent.
void fork_child(int socket, bool is_first) {
    Side side;
    side.connect(socket);
    const pid_t child = fork();
    if (child == 0) {
        ibv_device_attr attr;
        REQUIRE(!ibv_query_device(side.context, &attr));
        Side own;
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    Side::meet(socket);
    if (is_first) {
        REQUIRE(!side.post(IBV_WR_RDMA_WRITE, 0, 8));
        REQUIRE(side.poll().status == IBV_WC_SUCCESS);
    }
    Side::meet(socket);
}

// The descriptors that a child opened are closed with it, but not those of its parent.
void end_child(int, bool is_first) {
    if (!is_first)
        return;
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(7471);
    const Side side;
    for (int i = 0; i < 2; i++) { // the port is free again for the second child
        const pid_t child = fork();
        if (child == 0) {
            const Side own;
            rdma_cm_id *id;
            REQUIRE(!rdma_create_id(rdma_create_event_channel(), &id, nullptr, RDMA_PS_TCP));
            REQUIRE(!rdma_bind_addr(id, reinterpret_cast<sockaddr *>(&address)));
            REQUIRE(!rdma_listen(id, 1));
            _exit(0);
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
        REQUIRE(ibv_alloc_pd(side.context));
    }
}

// Objects exist until the last process that shares them has ended, with the memory.
void outlive_parent(int socket, bool is_first) {
    Side side;
    side.connect(socket);
    if (!is_first) {
        strcpy(side.memory, "of a child");
        if (fork() > 0)
            _exit(0);
        Side::meet(socket); // the parent has ended
        usleep(1000);
        Side::meet(socket);
        _exit(0);
    }
    Side::meet(socket);
    REQUIRE(!side.post(IBV_WR_RDMA_READ, 0, 16));
    REQUIRE(side.poll().status == IBV_WC_SUCCESS);
    REQUIRE(strcmp(side.memory, "of a child") == 0);
    Side::meet(socket);
}

char state_of(pid_t pid) {
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *const file = fopen(path, "r");
    REQUIRE(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
    fclose(file);
    return state;
}

// A device reads and writes the memory of a stopped program.
void stop_peer(int socket, bool is_first) {
    Side side;
    side.connect(socket);
    pid_t pid = getpid();
    if (!is_first) {
        strcpy(side.memory, "of a stopped program");
        REQUIRE(write(socket, &pid, sizeof(pid)) == sizeof(pid));
        raise(SIGSTOP);
        REQUIRE(strcmp(side.memory + 64, "new") == 0);
        return;
    }
    REQUIRE(read(socket, &pid, sizeof(pid)) == sizeof(pid));
    while (state_of(pid) != 'T')
        usleep(1000);
    REQUIRE(!side.post(IBV_WR_RDMA_READ, 0, 32));
    REQUIRE(side.poll().status == IBV_WC_SUCCESS);
    REQUIRE(strcmp(side.memory, "of a stopped program") == 0);
    strcpy(side.memory + 64, "new");
    REQUIRE(!side.post(IBV_WR_RDMA_WRITE, 64, 8));
    REQUIRE(side.poll().status == IBV_WC_SUCCESS);
    kill(pid, SIGCONT);
}

// Programs with keys forbid the access to their memory, before or after they open the device.
void forbid_access(int socket, bool is_first) {
    if (is_first)
        REQUIRE(!prctl(PR_SET_DUMPABLE, 0));
    Side side;
    REQUIRE(!ibv_reg_mr(side.pd, nullptr, BYTES, 0) && errno == EFAULT);
    if (!is_first)
        REQUIRE(!prctl(PR_SET_DUMPABLE, 0));
    strcpy(side.memory + (is_first ? 0 : 64), is_first ? "first" : "second");
    side.connect(socket);
    if (is_first) {
        REQUIRE(!side.post(IBV_WR_RDMA_WRITE, 0, 8));
        REQUIRE(side.poll().status == IBV_WC_SUCCESS);
        REQUIRE(!side.post(IBV_WR_RDMA_READ, 64, 8));
        REQUIRE(side.poll().status == IBV_WC_SUCCESS);
    }
    Side::meet(socket);
    REQUIRE(strcmp(side.memory, "first") == 0 && strcmp(side.memory + 64, "second") == 0);
}

// Opens files until the process may open only `left` more; returns the last one.
int use_descriptors(int left) {
    rlimit limit;
    REQUIRE(!getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 64;
    REQUIRE(!setrlimit(RLIMIT_NOFILE, &limit));
    int last = -1;
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
        last = fd;
    for (; left > 0; left--)
        close(last--);
    return last;
}

void lack_descriptors(int socket, bool) {
    for (int left = 0, count = 0; count == 0; left++) { // the first call of the process
        const int last = use_descriptors(left);
        ibv_free_device_list(ibv_get_device_list(&count));
        REQUIRE(count == 1 || errno == EMFILE);
        for (int fd = socket + 1; fd <= last; fd++)
            if (fcntl(fd, F_GETFD) >= 0 && count == 0)
                close(fd);
        REQUIRE(count == 1 || left < 10);
        if (count == 1)
            for (int fd = last; fd > last - 30; fd--)
                close(fd);
    }
    const Side side;
    REQUIRE(rdma_create_event_channel());
    use_descriptors(0);
    const auto fails = [](const void *made) { return !made && errno == EMFILE; };
    REQUIRE(fails(ibv_create_comp_channel(side.context)));
    REQUIRE(fails(rdma_create_event_channel()));
    REQUIRE(fails(ibv_open_device(side.context->device)));
    ibv_cq *const cq = ibv_create_cq(side.context, 10, nullptr, nullptr, 0);
    REQUIRE(cq && !ibv_resize_cq(cq, 100) && !ibv_destroy_cq(cq));
    REQUIRE(!ibv_resize_cq(side.cq, 2000));
    REQUIRE(ibv_resize_cq(side.cq, 32767) == EMFILE && side.cq->cqe < 32767); // needs a mapping
    ibv_wc wc;
    REQUIRE(ibv_poll_cq(side.cq, 1, &wc) == 0);
}

// Executed programs inherit no descriptor of the libraries.
void inherit_nothing(int, bool) {
    bool is_open[256];
    for (int fd = 0; fd < 256; fd++)
        is_open[fd] = fcntl(fd, F_GETFD) >= 0;
    const Side side;
    REQUIRE(rdma_create_event_channel());
    for (int fd = 0; fd < 256; fd++)
        REQUIRE(is_open[fd] || fcntl(fd, F_GETFD) < 0 || (fcntl(fd, F_GETFD) & FD_CLOEXEC));
}

// More than a process can map (vm.max_map_count, 65530), and fewer than max_cq of rxe.
void create_many_queues(int, bool is_first) {
    if (!is_first)
        return;
    const Side side;
    std::vector<ibv_cq *> queues;
    for (int i = 0; i < 66000; i++) {
        queues.push_back(ibv_create_cq(side.context, 1, nullptr, nullptr, 0));
        REQUIRE(queues.back());
    }
    for (ibv_cq *const each : queues)
        REQUIRE(!ibv_destroy_cq(each));
}

// Requests to a killed process fail after their retries.
void lose_peer(int socket, bool is_first) {
    Side side;
    side.connect(socket);
    if (!is_first)
        raise(SIGKILL);
    char byte;
    REQUIRE(read(socket, &byte, 1) == 0);
    ibv_wc wc;
    do {
        REQUIRE(!side.post(IBV_WR_RDMA_WRITE, 0, 8));
        wc = side.poll();
    } while (wc.status == IBV_WC_SUCCESS); // until the fabric detects the death
    REQUIRE(wc.status == IBV_WC_RETRY_EXC_ERR);
}

// Memory that the process shares with the fabric.
std::vector<std::pair<char *, size_t>> shared_memory(const char *name) {
    std::vector<std::pair<char *, size_t>> found;
    char line[512];
    FILE *const maps = fopen("/proc/self/maps", "re");
    unsigned long begin, end;
    while (fgets(line, sizeof(line), maps))
        if (strstr(line, name) && sscanf(line, "%lx-%lx", &begin, &end) == 2)
            found.emplace_back(reinterpret_cast<char *>(begin), end - begin);
    fclose(maps);
    return found;
}

void wake_fabric() {
    const uint64_t one = 1;
    char path[64], target[64];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(path, target, sizeof(target) - 1);
        if (length > 0 && !strncmp(target, "anon_inode:[eventfd]", static_cast<size_t>(length)))
            (void)!write(fd, &one, sizeof(one));
    }
}

// Repeats its own requests with other bytes, and overwrites all that it shares.
void corrupt(unsigned seed) {
    std::minstd_rand random(seed);
    Side own, other;
    own.connect(other);
    for (int i = 0; i < 200; i++) {
        REQUIRE(!own.post(IBV_WR_RDMA_WRITE, 0, 8) && own.poll().status == IBV_WC_SUCCESS);
        REQUIRE(!ibv_req_notify_cq(other.cq, 0));
        other.receive(8);
    }
    const auto requests = shared_memory("rdma-sim-requests"),
               completions = shared_memory("rdma-sim-cq"),
               mailboxes = shared_memory("rdma-sim-mailbox");
    REQUIRE(requests.size() == 1 && !completions.empty());
    RequestRing &ring = *reinterpret_cast<RequestRing *>(requests[0].first);
    const std::vector<std::byte> before(ring.bytes, ring.bytes + RequestRing::SIZE);
    std::vector<size_t> entries;
    for (size_t at = 0; at < before.size();) {
        RingEntry entry;
        memcpy(&entry, &before[at], sizeof(entry));
        if (entry.length == 0 || entry.length > 4096)
            break;
        entries.push_back(at);
        at += RequestRing::bytes_of(entry.length);
    }
    REQUIRE(entries.size() > 100);
    for (int round = 0; round < 1000; round++) {
        const size_t from = entries[random() % entries.size()],
                     at = ring.produced % RequestRing::SIZE;
        RingEntry entry;
        memcpy(&entry, &before[from], sizeof(entry));
        const size_t size = RequestRing::bytes_of(entry.length);
        if (at + size <= RequestRing::SIZE && from + size <= RequestRing::SIZE)
            memcpy(ring.bytes + at, &before[from], size);
        for (unsigned i = random() % 4; i > 0; i--) { // the operation, a member, or the entry
            const size_t where = random() % 4 == 0 ? random() % 4
                                 : random() % 100 > 0
                                     ? random() % entry.length
                                     : random() % sizeof(entry) - sizeof(entry);
            ring.bytes[(at + sizeof(entry) + where) % RequestRing::SIZE] =
                static_cast<std::byte>(random());
        }
        ring.produced +=
            random() % 200 ? static_cast<uint32_t>(size) : static_cast<uint32_t>(random());
        if (random() % 16 == 0) {
            const auto &[memory, length] = completions[random() % completions.size()];
            const uint32_t value = random() % 2 ? static_cast<uint32_t>(random()) : 0;
            memcpy(memory +
                       (random() % 2 ? random() % sizeof(Ring) : random() % length) / 4 * 4,
                   &value, sizeof(value));
        }
        if (!mailboxes.empty() && random() % 16 == 0) {
            // The values of its state, or any other.
            const uint32_t value =
                static_cast<uint32_t>(random() % 2 ? random() % 6 : random());
            memcpy(mailboxes[0].first + random() % (random() % 2 ? 24 : 2048) / 4 * 4, &value,
                   sizeof(value));
        }
        if (random() % 64 == 0) {
            const uint32_t value = static_cast<uint32_t>(random());
            memcpy(reinterpret_cast<char *>(&ring) + random() % 256 / 4 * 4, &value,
                   sizeof(value));
        }
        wake_fabric();
        if (ring.is_closed)
            break;
    }
}

void *overwrite_state(void *mailbox) {
    for (;; sched_yield())
        __atomic_store_n(&static_cast<Mailbox *>(mailbox)->state, 77, __ATOMIC_SEQ_CST);
}

// The fabric does not wait for a thread that may have lost a request.
void overwrite_mailbox(int, bool) {
    Side own, other;
    own.connect(other);
    const auto mailboxes = shared_memory("rdma-sim-mailbox");
    pthread_t thread;
    REQUIRE(mailboxes.empty() ||
            !pthread_create(&thread, nullptr, overwrite_state, mailboxes[0].first));
    for (uint64_t value = 1; value <= 1000; value++) {
        memcpy(other.memory, &value, sizeof(value));
        REQUIRE(!own.post(IBV_WR_RDMA_READ, 0, 8) && own.poll().status == IBV_WC_SUCCESS);
        REQUIRE(!memcmp(own.memory, &value, sizeof(value)));
    }
}

// A process that overwrites the memory that it shares with the fabric harms neither the fabric
// nor the processes of another host.
void corrupt_rings(int socket, bool is_first) {
    for (unsigned seed = 1; !is_first && seed <= 40; seed++) {
        const pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            corrupt(seed);
            _exit(0);
        }
        int status;
        REQUIRE(waitpid(pid, &status, 0) == pid);
        // It may have registered its own heap, and written to it.
        REQUIRE(WIFSIGNALED(status) ? WTERMSIG(status) != SIGALRM : WEXITSTATUS(status) == 0);
    }
    if (is_first) {
        Side own, other;
        own.connect(other);
        char byte;
        for (uint64_t value = 1; recv(socket, &byte, 1, MSG_DONTWAIT) < 0; value++) {
            memcpy(own.memory, &value, sizeof(value));
            REQUIRE(!own.post(IBV_WR_RDMA_WRITE, 0, 8));
            REQUIRE(own.poll().status == IBV_WC_SUCCESS);
            REQUIRE(!memcmp(own.memory, other.memory, sizeof(value)));
        }
    }
}

// ---- the fabric ----------------------------------------------------------------------------

using Program = void(int socket, bool is_first);

pid_t start_program(Program *program, const std::string &path, unsigned host, int socket,
                    int other) {
    const pid_t pid = fork();
    if (pid == 0) {
        close(other);
        alarm(60);
        setenv("RDMA_SIM_SOCKET", path.c_str(), 1);
        setenv("RDMA_SIM_HOST", std::to_string(host).c_str(), 1);
        program(socket, host == 1);
        _exit(0);
    }
    return pid;
}

void run_program(Program *program, bool uses_threads) {
    Options options;
    options.profile = sim_find_profile("rxe");
    Server server(options, nullptr, uses_threads);
    const std::string path = "/tmp/rdma-sim-test-" + std::to_string(getpid());
    assert_int_equal(server.listen(path), 0);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const pid_t first = start_program(program, path, 1, ends[0], ends[1]);
    const pid_t second = start_program(program, path, 2, ends[1], ends[0]);
    close(ends[0]);
    close(ends[1]);
    int running = 2;
    while (running > 0 || server.processes() > 0) {
        server.step(10'000'000);
        int status;
        for (pid_t ended; running > 0 && (ended = waitpid(-1, &status, WNOHANG)) > 0;
             running--) {
            const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            assert_true(ended == first || ended == second);
            assert_true(status == 0 || (program == lose_peer && ended == second && is_killed));
        }
    }
    assert_true(!uses_threads || server.memory_threads() >= 2);
}

constexpr Program *PROGRAMS[] = {
    write_large,        wait_in_threads, post_in_threads,   fill_queue,
    fork_child,         outlive_parent,  lose_peer,         end_child,
    stop_peer,          forbid_access,   lack_descriptors,  inherit_nothing,
    create_many_queues, corrupt_rings,   overwrite_mailbox, write_in_sandbox};

void data_of_programs_is_moved_directly(void **) {
    for (Program *const program : PROGRAMS)
        run_program(program, false);
}

void data_of_programs_is_moved_by_threads(void **) {
    for (Program *const program : PROGRAMS)
        if (program != outlive_parent && // the memory thread ends with its process
            program != create_many_queues)
            run_program(program, true);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(data_of_programs_is_moved_directly),
        cmocka_unit_test(data_of_programs_is_moved_by_threads),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
