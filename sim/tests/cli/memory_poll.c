// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// memory_poll.c -- a server that polls its memory for messages of a ring, in several ways
//
// usage: memory_poll HOW [ADDRESS]    HOW: spin, pause, yield, sleep or clock. The server polls
// each message itself; with the prefix "wrong-", their number, which the client writes first.
// "endless" is a loop that nothing ends.

#include <arpa/inet.h>
#include <rdma/rdma_verbs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MESSAGES 4
#define MUST(condition)                                   \
    do {                                                  \
        if (!(condition)) {                               \
            fprintf(stderr, "line %d fails\n", __LINE__); \
            exit(1);                                      \
        }                                                 \
    } while (0)

struct ring {
    volatile uint64_t tail, data[MESSAGES];
};
struct place {
    uint64_t address;
    uint32_t rkey;
};

static void wait_a_little(const char *how) {
    struct timespec now;
    if (strcmp(how, "pause") == 0) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    } else if (strcmp(how, "yield") == 0) {
        sched_yield();
    } else if (strcmp(how, "sleep") == 0) {
        usleep(10);
    } else if (strcmp(how, "clock") == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
}

static struct rdma_cm_id *resolve(const char *address, int flags) {
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;
    struct ibv_qp_init_attr attr = {
        .cap = {16, 16, 1, 1, 16}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
    struct rdma_cm_id *id;
    MUST(rdma_getaddrinfo(address, "7471", &hints, &found) == 0);
    MUST(rdma_create_ep(&id, found, NULL, &attr) == 0);
    rdma_freeaddrinfo(found);
    return id;
}

static void serve(const char *how, int is_wrong) {
    static struct ring ring;
    struct rdma_cm_event *event;
    struct rdma_cm_id *const listener = resolve(NULL, RAI_PASSIVE), *id;
    MUST(rdma_listen(listener, 1) == 0 && rdma_get_request(listener, &id) == 0);
    struct ibv_mr *const mr = rdma_reg_write(id, &ring, sizeof(ring));
    const struct place place = {(uintptr_t)&ring, mr->rkey};
    struct rdma_conn_param param = {.private_data = &place, .private_data_len = sizeof(place)};
    MUST(rdma_accept(id, &param) == 0);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        const volatile uint64_t *const word = is_wrong ? &ring.tail : &ring.data[i];
        if (strcmp(how, "spin") == 0)
            while (*word <= i)
                ;
        while (*word <= i)
            wait_a_little(how);
        MUST(ring.data[i] == i + 1);
        printf("message %d\n", (int)i);
    }
    MUST(rdma_get_cm_event(id->channel, &event) == 0);
    MUST(event->event == RDMA_CM_EVENT_DISCONNECTED);
}

static void send_all(const char *address, int is_wrong) {
    static struct ring ring;
    struct rdma_cm_id *const id = resolve(address, 0);
    struct place place;
    struct ibv_wc wc;
    MUST(rdma_connect(id, NULL) == 0);
    memcpy(&place, id->event->param.conn.private_data, sizeof(place));
    struct ibv_mr *const mr = rdma_reg_msgs(id, &ring, sizeof(ring));
    for (uint64_t i = 0; i < MESSAGES; i++) {
        volatile uint64_t *words[] = {&ring.data[i], &ring.tail};
        ring.data[i] = ring.tail = i + 1;
        for (int part = 0; part < 2; part++) {
            volatile uint64_t *const word = words[part ^ is_wrong];
            MUST(rdma_post_write(id, NULL, (void *)word, sizeof(*word), mr, IBV_SEND_SIGNALED,
                                 place.address + (uintptr_t)word - (uintptr_t)&ring,
                                 place.rkey) == 0);
            MUST(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
        }
    }
    rdma_disconnect(id);
}

int main(int argc, char *argv[]) {
    const int is_wrong = strncmp(argv[1], "wrong-", 6) == 0;
    const char *const how = argv[1] + (is_wrong ? 6 : 0);
    static volatile int never;
    if (strcmp(how, "endless") == 0)
        while (!never)
            ;
    if (argc == 2)
        serve(how, is_wrong);
    else
        send_all(argv[2], is_wrong);
    return 0;
}
