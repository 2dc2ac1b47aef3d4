// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// queues.c -- the cost of waiting for many connections: one completion queue for all, or one
// each
//
//   queues ADDRESS PORT one|each COUNT LAPS
//
// In a lap, each connection posts one write; then the program polls all completions: from the
// shared queue, or from the queues whose descriptors epoll reports as readable.

#include "common.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { MAX_EVENTS = 64 };

static struct side side;
static unsigned long connection_count;
static struct target *targets;
static struct rpma_cq *shared;
static int epoll;

static void watch_queue(struct rpma_cq *cq) {
    int fd;
    must(rpma_cq_get_fd(cq, &fd), "rpma_cq_get_fd");
    watch(epoll, fd, cq);
}

static struct rpma_cq *create_shared_cq(void) {
    struct rpma_cq_cfg *cfg;
    struct rpma_cq *cq;
    must(rpma_cq_cfg_new(&cfg), "rpma_cq_cfg_new");
    must(rpma_cq_cfg_set_size(cfg, (uint32_t)connection_count), "rpma_cq_cfg_set_size");
    must(rpma_cq_new(side.peer, cfg, &cq), "rpma_cq_new");
    must(rpma_cq_cfg_delete(&cfg), "rpma_cq_cfg_delete");
    return cq;
}

static void connect_all(void) {
    struct rpma_conn_cfg *cfg;
    must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
    must(rpma_conn_cfg_set_cq(cfg, shared), "rpma_conn_cfg_set_cq");
    for (unsigned long i = 0; i < connection_count; i++) {
        targets[i] = connect_to_target(&side, cfg);
        if (shared == NULL)
            watch_queue(targets[i].cq);
    }
    must(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
}

static void write_all(void) {
    for (unsigned long i = 0; i < connection_count; i++)
        must(rpma_write(targets[i].conn, targets[i].remote, 0, side.mr, 0, MESSAGE,
                        RPMA_F_COMPLETION_ALWAYS, NULL),
             "rpma_write");
}

// Takes the event, arms the queue, and polls all completions.
static unsigned long drain(struct rpma_cq *cq) {
    struct ibv_wc wc[MAX_COMPLETIONS];
    unsigned long taken = 0;
    int got, ret = rpma_cq_wait(cq);
    if (ret != RPMA_E_NO_COMPLETION)
        must(ret, "rpma_cq_wait");
    while ((ret = rpma_cq_get_wc(cq, MAX_COMPLETIONS, wc, &got)) == 0) {
        must_succeed(wc, got);
        taken += (unsigned long)got;
    }
    if (ret != RPMA_E_NO_COMPLETION)
        must(ret, "rpma_cq_get_wc");
    return taken;
}

static void take_all_completions(void) {
    struct epoll_event events[MAX_EVENTS];
    for (unsigned long taken = 0; taken < connection_count;) {
        const int ready = epoll_wait(epoll, events, MAX_EVENTS, -1);
        for (int i = 0; i < ready; i++)
            taken += drain(events[i].data.ptr);
    }
}

static void lap(void) {
    write_all();
    take_all_completions();
}

int main(int argc, char *argv[]) {
    if (argc != 6 || (strcmp(argv[3], "one") != 0 && strcmp(argv[3], "each") != 0)) {
        fprintf(stderr, "usage: %s ADDRESS PORT one|each COUNT LAPS\n", argv[0]);
        return 2;
    }
    connection_count = number(argv[4]);
    const unsigned long laps = number(argv[5]);
    targets = calloc(connection_count, sizeof(*targets));
    if (targets == NULL || connection_count == 0 || laps == 0)
        fail("COUNT and LAPS must be at least 1, or out of memory");
    side = open_side(argv[1], argv[2], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    disconnect(connect_to(&side, NULL)); // warm-up: excludes one-time costs

    const double resident_before = resident_kib(), descriptors_before = descriptors();
    if (strcmp(argv[3], "one") == 0) {
        shared = create_shared_cq();
        watch_queue(shared);
    }
    connect_all();
    print("resident KiB", resident_kib() - resident_before);
    print("descriptors", descriptors() - descriptors_before);

    lap(); // warm-up: excludes one-time costs
    const double start = seconds(), cpu = cpu_seconds();
    for (unsigned long i = 0; i < laps; i++)
        lap();
    const double operations = (double)laps * (double)connection_count;
    print("writes per second", operations / (seconds() - start));
    print("CPU us per write", (cpu_seconds() - cpu) * 1e6 / operations);
    return 0;
}
