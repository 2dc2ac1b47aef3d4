// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// sockets.c -- programs that use TCP or UDP next to RDMA, each with a mistake that only some
// schedules show, and, with "fixed", without it
//
// usage: sockets NAME wrong|fixed|stdio [ADDRESS]    without ADDRESS: the server; "stdio" is
// "fixed" with streams
//
// A side that detects an error ends with status 1.

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PORT 7300
#define RECORDS 4
#define LARGE (4 << 20) // more than the buffers of the kernel

static bool is_fixed;
static FILE *in, *out; // with "stdio"

static void must(bool is_good, const char *what) {
    if (!is_good) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static struct sockaddr_in address_of(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    must(inet_pton(AF_INET, text, &address.sin_addr) == 1, "inet_pton");
    return address;
}

// ---- TCP -----------------------------------------------------------------------------------

static int listen_on(void) {
    struct sockaddr_in own = address_of("0.0.0.0");
    const int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    must(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), "setsockopt");
    must(!bind(fd, (struct sockaddr *)&own, sizeof(own)) && !listen(fd, 8), "listen");
    return fd;
}

static int accept_one(void) {
    const int listener = listen_on();
    struct pollfd ready = {listener, POLLIN, 0};
    if (poll(&ready, 1, 100000) == 0)
        exit(0); // the client has ended
    const int fd = accept(listener, NULL, NULL);
    must(fd >= 0, "accept");
    close(listener);
    return fd;
}

static long seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (long)time.tv_sec;
}

static int connect_to(const char *text) {
    struct sockaddr_in peer = address_of(text);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const long begin = seconds();
    if (connect(fd, (struct sockaddr *)&peer, sizeof(peer))) {
        printf("connect: %s after %ld s\n", strerrorname_np(errno), seconds() - begin);
        exit(1);
    }
    return fd;
}

// Returns false if the connection has ended.
static bool receive(int fd, void *to, size_t size) {
    if (in)
        return fread(to, 1, size, in) == size;
    for (size_t done = 0; done < size;) {
        const ssize_t count = read(fd, (char *)to + done, size - done);
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

static bool transmit(int fd, const void *from, size_t size) {
    if (out)
        return fwrite(from, 1, size, out) == size && fflush(out) == 0;
    return send(fd, from, size, MSG_NOSIGNAL) == (ssize_t)size;
}

// ---- RDMA, connected by TCP ----------------------------------------------------------------

struct end {
    uint32_t qpn, rkey;
    uint64_t address;
    union ibv_gid gid;
};

static struct ibv_context *context;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct end peer;
static volatile uint64_t records[RECORDS];

static void open_rdma(int fd) {
    struct ibv_device **const all = ibv_get_device_list(NULL);
    must(all && all[0] && (context = ibv_open_device(all[0])), "ibv_open_device");
    struct ibv_pd *const pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {16, 1, 1, 1, 8}};
    mr = ibv_reg_mr(pd, (void *)records, sizeof(records),
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    must(cq && mr && (qp = ibv_create_qp(pd, &init)), "ibv_create_qp");
    struct end own = {qp->qp_num, mr->rkey, (uintptr_t)records, {{0}}};
    must(!ibv_query_gid(context, 1, 1, &own.gid), "ibv_query_gid");
    must(transmit(fd, &own, sizeof(own)) && receive(fd, &peer, sizeof(peer)), "exchange");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags =
                                   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    must(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer.qpn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = peer.gid, .sgid_index = 1, .hop_limit = 64}}};
    must(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = 14,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .max_rd_atomic = 1};
    must(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
    char ready = 0;
    must(transmit(fd, &ready, 1) && receive(fd, &ready, 1), "ready");
}

static void post(enum ibv_wr_opcode opcode, size_t number, uint64_t value) {
    records[number] = value;
    struct ibv_sge sge = {(uintptr_t)&records[number], sizeof(value), mr->lkey};
    struct ibv_send_wr wr = {.opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = &sge,
                             .num_sge = 1},
                       *bad;
    wr.wr.rdma.remote_addr = peer.address + number * sizeof(value);
    wr.wr.rdma.rkey = peer.rkey;
    must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void await_completion(void) {
    struct ibv_wc wc;
    int count;
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    must(count == 1 && wc.status == IBV_WC_SUCCESS, "completion");
}

// The client announces a write by TCP. Its completion is not enough: the receiver may see the
// bytes later, unless a read has followed.
static void announced_write(int fd, bool is_server) {
    open_rdma(fd);
    for (uint64_t i = 0; i < RECORDS; i++) {
        uint64_t number = i;
        if (is_server) {
            must(receive(fd, &number, sizeof(number)), "announcement");
            must(records[number] == number + 1, "the message arrives before the write");
            continue;
        }
        post(IBV_WR_RDMA_WRITE, i, i + 1);
        await_completion();
        if (is_fixed) {
            post(IBV_WR_RDMA_READ, i, 0);
            await_completion();
        }
        must(transmit(fd, &number, sizeof(number)), "announcement");
    }
    char end = 0; // the queue pair is used until the server has all records
    must(is_server ? transmit(fd, &end, 1) : receive(fd, &end, 1), "end");
}

// The client requests by TCP, and writes by RDMA: the server takes for granted that the
// request precedes the write.
static void late_message(int fd, bool is_server) {
    open_rdma(fd);
    uint64_t number = 7;
    char end = 0;
    if (!is_server) {
        must(transmit(fd, &number, sizeof(number)), "request");
        if (is_fixed)
            must(receive(fd, &end, 1), "reply");
        post(IBV_WR_RDMA_WRITE, 0, 1);
        await_completion();
        must(receive(fd, &end, 1), "end");
        return;
    }
    if (is_fixed)
        must(receive(fd, &number, sizeof(number)) && transmit(fd, &end, 1), "request");
    while (records[0] == 0)
        ;
    struct pollfd ready = {fd, POLLIN, 0};
    if (!is_fixed)
        must(poll(&ready, 1, 0) == 1, "the write arrives before the request");
    must(transmit(fd, &end, 1), "end");
}

// A message of 16 bytes is sent as two: read() can return only the first one.
static void split_message(int fd, bool is_server) {
    uint64_t message[2] = {1, 2};
    if (!is_server) {
        must(transmit(fd, &message[0], 8) && transmit(fd, &message[1], 8), "send");
        must(read(fd, message, 1) == 0, "end");
        return;
    }
    if (is_fixed)
        must(receive(fd, message, sizeof(message)), "receive");
    else
        must(read(fd, message, sizeof(message)) == sizeof(message), "half a message arrives");
}

// Both sides write more than the buffers of TCP before they read.
static void both_write(int fd, bool is_server) {
    char *const data = calloc(1, LARGE);
    const size_t part = is_fixed ? 65536 : LARGE;
    must(data, "calloc");
    for (int i = 0; i < 4; i++) {
        must((is_fixed && is_server) || transmit(fd, data, part), "send");
        must(receive(fd, data, part), "receive");
        must(!is_fixed || !is_server || transmit(fd, data, part), "send");
    }
    free(data);
}

// A server waits for a request without a timeout: it never notices that the power of the client
// has failed. With "fixed", it does.
static void silent_peer(int fd, bool is_server) {
    char request = 0;
    for (int i = 0; i < 3; i++)
        if (is_server) {
            struct pollfd ready = {fd, POLLIN, 0};
            if (poll(&ready, 1, is_fixed ? 30000 : -1) == 0 || !receive(fd, &request, 1) ||
                !transmit(fd, &request, 1))
                exit(0);
        } else if (!transmit(fd, &request, 1) || !receive(fd, &request, 1)) {
            exit(0);
        }
}

// A request, whose result is printed.
static void request(int fd, bool is_server) {
    char data = 1;
    if (is_server) {
        if (receive(fd, &data, 1))
            (void)transmit(fd, &data, 1);
        return;
    }
    const long begin = seconds();
    const ssize_t count = !transmit(fd, &data, 1)      ? -1
                          : !in                        ? read(fd, &data, 1)
                          : fread(&data, 1, 1, in) > 0 ? 1
                                                       : -!!ferror(in);
    const int error = errno;
    printf("%zd %s after %ld s\n", count, count < 0 ? strerrorname_np(error) : "",
           seconds() - begin);
}

// ---- UDP -----------------------------------------------------------------------------------

// The client sends requests, whose loss or repetition the wrong server and client do not stand.
static void datagrams(const char *server) {
    struct sockaddr_in own = address_of("0.0.0.0"),
                       to = address_of(server ? server : "0.0.0.0");
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    uint32_t number = 0, last = 0;
    must(fd >= 0, "socket");
    if (server == NULL) {
        socklen_t length = sizeof(to);
        must(!bind(fd, (struct sockaddr *)&own, sizeof(own)), "bind");
        while (recvfrom(fd, &number, sizeof(number), 0, (struct sockaddr *)&to, &length) > 0) {
            if (!is_fixed)
                must(number == last + 1, "a request is repeated, or passes another one");
            last = number > last ? number : last;
            must(sendto(fd, &last, sizeof(last), 0, (struct sockaddr *)&to, length) > 0,
                 "sendto");
        }
    }
    for (uint32_t i = 1; i <= RECORDS; i++)
        for (last = 0; last < i;) {
            struct pollfd ready = {fd, POLLIN, 0};
            must(sendto(fd, &i, sizeof(i), 0, (struct sockaddr *)&to, sizeof(to)) > 0,
                 "sendto");
            if (poll(&ready, 1, is_fixed ? 1000 : -1) == 1)
                must(recv(fd, &last, sizeof(last), 0) == sizeof(last), "recv");
        }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(int fd, bool is_server);
    } PROGRAMS[] = {
        {"announced-write", announced_write}, {"late-message", late_message},
        {"split-message", split_message},     {"both-write", both_write},
        {"silent-peer", silent_peer},         {"request", request},
    };
    must(argc >= 3, "usage: sockets NAME wrong|fixed|stdio [ADDRESS]");
    const bool uses_stdio = strcmp(argv[2], "stdio") == 0;
    is_fixed = uses_stdio || strcmp(argv[2], "fixed") == 0;
    if (strcmp(argv[1], "datagrams") == 0) {
        datagrams(argv[3]);
        return 0;
    }
    for (size_t i = 0; i < sizeof(PROGRAMS) / sizeof(PROGRAMS[0]); i++)
        if (strcmp(argv[1], PROGRAMS[i].name) == 0) {
            const int fd = argc > 3 ? connect_to(argv[3]) : accept_one();
            must(!uses_stdio || ((in = fdopen(fd, "r")) && (out = fdopen(dup(fd), "w"))),
                 "fdopen");
            PROGRAMS[i].run(fd, argc <= 3);
            return 0;
        }
    must(false, "unknown name");
}
