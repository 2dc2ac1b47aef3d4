// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// distributed.c -- programs of a server and several clients, each with a mistake that only
// some schedules show, and, with "fixed", without it
//
// usage: distributed NAME wrong|fixed [ADDRESS]    without ADDRESS: the server
//
// A side that detects an error ends with status 1, and the server runs forever. The program
// "recovery" has only one side, and the file "memory". "no-reply" has no mistake: its server
// does not reply to a request ("wrong"), or when its client disconnects ("fixed").

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NODES 4

// The memory of the server.
struct memory {
    uint64_t head; // the first free node; with "fixed", above 2^32, the number of changes
    uint64_t next[NODES]; // 0: the last node
    uint64_t users[NODES];
};

struct description {
    uint64_t address;
    uint32_t rkey;
};

static struct memory memory;
static struct rdma_cm_id *id;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static uint64_t *result; // of the last request
static struct description peer;
static bool is_fixed, polls, is_silent;

static void must(bool is_good, const char *what) {
    if (!is_good) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static struct sockaddr *address_of(const char *text) {
    static struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_port = htons(7206);
    must(inet_pton(AF_INET, text, &address.sin_addr) == 1, "inet_pton");
    return (struct sockaddr *)&address;
}

static void create_qp(struct rdma_cm_id *of) {
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    // Not the PD of librdmacm, which lasts until the last connection ends.
    if (!pd)
        pd = ibv_alloc_pd(of->verbs);
    must(pd && !rdma_create_qp(of, pd, &init), "rdma_create_qp");
}

static uint64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static time_t seconds(void) {
    return (time_t)(milliseconds() / 1000);
}

// Makes calls for a while, in which no time may pass.
static void ignore_event(struct rdma_cm_id *of) {
    const time_t begin = seconds();
    struct ibv_device_attr attr;
    for (int i = 0; i < 50; i++)
        must(!ibv_query_device(of->verbs, &attr), "ibv_query_device");
    must(seconds() - begin < 30, "time has passed while the server could run");
}

static void serve_peer(void) {
    struct rdma_event_channel *const channel = rdma_create_event_channel();
    struct rdma_cm_id *listener = NULL;
    must(channel && !rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    must(!rdma_bind_addr(listener, address_of("0.0.0.0")), "rdma_bind_addr");
    must(!rdma_listen(listener, 8), "rdma_listen");
    for (struct rdma_cm_event *event; !rdma_get_cm_event(channel, &event);) {
        struct rdma_cm_id *const of = event->id;
        const enum rdma_cm_event_type type = event->event;
        must(!rdma_ack_cm_event(event), "rdma_ack_cm_event");
        if (is_silent && (type == RDMA_CM_EVENT_DISCONNECTED || !is_fixed)) {
            ignore_event(of);
        } else if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
            create_qp(of);
            if (!mr)
                mr = ibv_reg_mr(pd, &memory, sizeof(memory),
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
            must(mr, "ibv_reg_mr");
            struct description description = {(uintptr_t)&memory, mr->rkey};
            struct rdma_conn_param param = {.private_data = &description,
                                            .private_data_len = sizeof(description),
                                            .responder_resources = 4};
            must(!rdma_accept(of, &param), "rdma_accept");
        } else if (type == RDMA_CM_EVENT_DISCONNECTED) {
            rdma_disconnect(of);
            rdma_destroy_qp(of);
            rdma_destroy_id(of);
        }
    }
}

static void connect_to(const char *address) {
    static uint64_t word;
    must(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    must(!rdma_resolve_addr(id, NULL, address_of(address), 2000), "rdma_resolve_addr");
    must(!rdma_resolve_route(id, 2000), "rdma_resolve_route");
    create_qp(id);
    struct rdma_conn_param param = {.initiator_depth = 4, .retry_count = 3};
    const time_t begin = seconds();
    if (is_silent && !is_fixed) {
        must(rdma_connect(id, &param) && errno == ETIMEDOUT, "the request does not time out");
        printf("unreachable after %ld s\n", (long)(seconds() - begin));
        exit(0);
    }
    must(!rdma_connect(id, &param), "rdma_connect");
    must(id->event->event == RDMA_CM_EVENT_ESTABLISHED, "another event than ESTABLISHED");
    memcpy(&peer, id->event->param.conn.private_data, sizeof(peer));
    result = &word;
    mr = rdma_reg_msgs(id, result, sizeof(*result));
    must(mr, "rdma_reg_msgs");
}

// Executes an operation on a word of the server. Returns what the word was before.
static uint64_t execute_atomic(enum ibv_wr_opcode opcode, const uint64_t *word, uint64_t one,
                               uint64_t other) {
    struct ibv_sge sge = {(uintptr_t)result, 8, mr->lkey};
    struct ibv_send_wr wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_wc wc;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.atomic.remote_addr = peer.address + ((uintptr_t)word - (uintptr_t)&memory);
    wr.wr.atomic.rkey = peer.rkey;
    if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ) {
        wr.wr.rdma.remote_addr = wr.wr.atomic.remote_addr;
        wr.wr.rdma.rkey = peer.rkey;
        *result = one;
    } else {
        wr.wr.atomic.compare_add = one;
        wr.wr.atomic.swap = other;
    }
    must(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
    while (polls && ibv_poll_cq(id->send_cq, 1, &wc) == 0)
        ;
    must(polls || rdma_get_send_comp(id, &wc) == 1, "rdma_get_send_comp");
    must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    return *result;
}

static uint64_t get(const uint64_t *word) {
    return execute_atomic(IBV_WR_RDMA_READ, word, 0, 0);
}

static void set_word(const uint64_t *word, uint64_t value) {
    execute_atomic(IBV_WR_RDMA_WRITE, word, value, 0);
}

// Replaces the head unless it has changed. Without a number of changes, the head that was read
// may be first again, with another next node (ABA).
static bool replace_head(uint64_t read, uint64_t node) {
    const uint64_t changes = is_fixed ? (read >> 32) + 1 : 0;
    return execute_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, &memory.head, read,
                          changes << 32 | node) == read;
}

static uint64_t pop(void) {
    uint64_t read, node;
    do {
        read = get(&memory.head);
        node = read & UINT32_MAX;
        if (node == 0)
            return 0;
    } while (!replace_head(read, get(&memory.next[node])));
    must(execute_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, &memory.users[node], 1, 0) == 0,
         "two clients use one node");
    return node;
}

static void push(uint64_t node) {
    uint64_t read;
    if (node == 0)
        return;
    execute_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, &memory.users[node], UINT64_MAX, 0);
    do {
        read = get(&memory.head);
        set_word(&memory.next[node], read & UINT32_MAX);
    } while (!replace_head(read, node));
}

static void use_nodes(void) {
    for (int i = 0; i < 2; i++) {
        const uint64_t one = pop(), other = pop();
        push(one);
        push(other);
    }
}

// A lock, for which a client repeats its request, without a wait, until the other one
// continues. The wrong form reads it and then writes it.
static void lock_and_unlock(void) {
    const uint64_t *const lock = &memory.next[0], *const owners = &memory.users[0];
    polls = true;
    for (int i = 0; i < 3; i++) {
        if (is_fixed) {
            while (execute_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, lock, 0, 1) != 0)
                ;
        } else {
            while (get(lock) != 0)
                ;
            set_word(lock, 1);
        }
        must(execute_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, owners, 1, 0) == 0,
             "two clients have the lock");
        execute_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, owners, UINT64_MAX, 0);
        execute_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, lock, 1, 0);
    }
}

// Takes a lock once, between other operations, whose number differs: in the usual order, no two
// clients do so at the same time. The wrong form reads the lock and then writes it.
static void lock_once(void) {
    const uint64_t *const tickets = &memory.next[1], *const others = &memory.next[2],
                          *const lock = &memory.next[0], *const owners = &memory.users[0];
    const uint64_t ticket = execute_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, tickets, 1, 0);
    for (uint64_t i = 0; i < 30; i++) {
        execute_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, others, 1, 0);
        if (i != 3 * ticket)
            continue;
        if (is_fixed ? execute_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, lock, 0, 1) : get(lock))
            continue;
        set_word(lock, 1);
        must(execute_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, owners, 1, 0) == 0,
             "two clients have the lock");
        execute_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, owners, UINT64_MAX, 0);
        set_word(lock, 0);
    }
}

// Writes, and ends at the first failure. The wrong form waits for a completion after it.
static void write_until_failure(void) {
    struct ibv_sge sge = {(uintptr_t)result, 8, mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_wc wc;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = peer.address;
    wr.wr.rdma.rkey = peer.rkey;
    for (int i = 0; i < 5; i++) {
        must(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
        must(rdma_get_send_comp(id, &wc) == 1, "rdma_get_send_comp");
        if (wc.status == IBV_WC_SUCCESS)
            continue;
        if (!is_fixed)
            rdma_get_send_comp(id, &wc);
        exit(1);
    }
}

// Two values in persistent memory that are always equal, by a log.
struct values {
    uint64_t is_logged, pad[7];
    uint64_t logged, pad1[7];
    uint64_t one, pad2[7];
    uint64_t other, pad3[7];
};

static struct values *values;

static void persist(void) {
    must(!msync(values, sizeof(*values), MS_SYNC), "msync");
}

static void apply_log(bool is_right) {
    values->one = values->other = values->logged;
    if (is_right)
        persist();
    values->is_logged = 0;
    persist();
}

// The wrong form empties the log before the values are persistent, but only in the recovery.
static void change_values(void) {
    const int fd = open("memory", O_RDWR);
    values = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(values != MAP_FAILED, "mmap");
    if (values->is_logged)
        apply_log(is_fixed);
    puts(values->one == values->other ? "recovered" : "the values differ");
    for (uint64_t i = 1; i <= 5; i++) {
        values->logged = values->one + 1;
        persist();
        values->is_logged = 1;
        persist();
        apply_log(true);
    }
}

// Writes a record during a lease: a number and the time of its end. The wrong form reads the
// clock before the post, and writes too late if it is frozen in between. The other one replaces
// only a record of its own lease.
static void write_during_lease(void) {
    enum { WORK = 30, LEASE = 4000, MARGIN = 1000, PAUSE = 1000000 };
    const uint64_t *const lease = &memory.next[1], *const record = &memory.next[2];
    uint64_t own = 0, last = 0, writes = 0;
    for (const time_t begin = seconds(); seconds() < begin + WORK; usleep(PAUSE)) {
        const uint64_t old = get(lease);
        const bool is_new = old != own;
        if (is_new && (old & UINT32_MAX) > milliseconds())
            continue;
        const uint64_t new = (((old >> 32) + is_new) << 32) + milliseconds() + LEASE;
        if (execute_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, lease, old, new) != old)
            continue;
        own = new;
        const uint64_t now = get(record), value = (own >> 32 << 32) + ++writes;
        if (milliseconds() + MARGIN > (own & UINT32_MAX)) {
            own = 0;
            continue;
        }
        must(is_new || now == last, "another client has written during the lease");
        last = value;
        if (!is_fixed)
            set_word(record, value);
        else if (execute_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, record, now, value) != now)
            last = *result;
    }
}

static void disconnect_from_silent_server(void) {
    const time_t begin = seconds();
    must(rdma_disconnect(id) && errno == ETIMEDOUT, "the disconnection does not time out");
    printf("disconnected after %ld s\n", (long)(seconds() - begin));
}

static const struct {
    const char *name;
    void (*client)(void);
} PROGRAMS[] = {{"free-list", use_nodes},
                {"lock", lock_and_unlock},
                {"lock-once", lock_once},
                {"lease", write_during_lease},
                {"failed-write", write_until_failure},
                {"no-reply", disconnect_from_silent_server}};

int main(int argc, char *argv[]) {
    must(argc == 3 || argc == 4, "usage: distributed NAME wrong|fixed [ADDRESS]");
    is_fixed = strcmp(argv[2], "fixed") == 0;
    is_silent = strcmp(argv[1], "no-reply") == 0;
    memory.head = 1;
    for (uint64_t i = 1; i < NODES; i++)
        memory.next[i] = (i + 1) % NODES;
    if (!strcmp(argv[1], "recovery")) {
        change_values();
        return 0;
    }
    for (size_t i = 0; i < sizeof(PROGRAMS) / sizeof(PROGRAMS[0]); i++) {
        if (strcmp(PROGRAMS[i].name, argv[1]))
            continue;
        if (argc == 3)
            serve_peer();
        connect_to(argv[3]);
        PROGRAMS[i].client();
        rdma_disconnect(id);
        return 0;
    }
    must(false, "unknown NAME");
}
