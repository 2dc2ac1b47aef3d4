// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// queues.c -- the cost of waiting for many connections on one completion queue, or on one each
//
//   queues ADDRESS PORT one|each HOW-MANY LAPS
//
// In a lap each connection posts one write; then the program takes all completions: from the
// one queue, or from the queues whose descriptors epoll finds readable.

#include "side.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { MOST_EVENTS = 64 };

static struct side side;
static unsigned long many;
static struct target *targets;
static struct rpma_cq *shared;
static int epoll;

static void watch_queue(struct rpma_cq *cq) {
    int fd;
    must(rpma_cq_get_fd(cq, &fd), "rpma_cq_get_fd");
    watch(epoll, fd, cq);
}

static struct rpma_cq *queue_for_all(void) {
    struct rpma_cq_cfg *cfg;
    struct rpma_cq *cq;
    must(rpma_cq_cfg_new(&cfg), "rpma_cq_cfg_new");
    must(rpma_cq_cfg_set_size(cfg, (uint32_t)many), "rpma_cq_cfg_set_size");
    must(rpma_cq_new(side.peer, cfg, &cq), "rpma_cq_new");
    must(rpma_cq_cfg_delete(&cfg), "rpma_cq_cfg_delete");
    return cq;
}

static void connect_all(void) {
    struct rpma_conn_cfg *cfg;
    must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
    must(rpma_conn_cfg_set_cq(cfg, shared), "rpma_conn_cfg_set_cq");
    for (unsigned long i = 0; i < many; i++) {
        targets[i] = connect_to_target(&side, cfg);
        if (shared == NULL)
            watch_queue(targets[i].cq);
    }
    must(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
}

static void write_all(void) {
    for (unsigned long i = 0; i < many; i++)
        must(rpma_write(targets[i].conn, targets[i].remote, 0, side.mr, 0, MESSAGE,
                        RPMA_F_COMPLETION_ALWAYS, NULL),
             "rpma_write");
}

// Takes the event, arms the queue, and takes all completions.
static unsigned long drain(struct rpma_cq *cq) {
    struct ibv_wc wc[MOST_COMPLETIONS];
    unsigned long taken = 0;
    int got, ret = rpma_cq_wait(cq);
    if (ret != RPMA_E_NO_COMPLETION)
        must(ret, "rpma_cq_wait");
    while ((ret = rpma_cq_get_wc(cq, MOST_COMPLETIONS, wc, &got)) == 0) {
        must_succeed(wc, got);
        taken += (unsigned long)got;
    }
    if (ret != RPMA_E_NO_COMPLETION)
        must(ret, "rpma_cq_get_wc");
    return taken;
}

static void take_all(void) {
    struct epoll_event events[MOST_EVENTS];
    for (unsigned long taken = 0; taken < many;) {
        const int ready = epoll_wait(epoll, events, MOST_EVENTS, -1);
        for (int i = 0; i < ready; i++)
            taken += drain(events[i].data.ptr);
    }
}

static void lap(void) {
    write_all();
    take_all();
}

int main(int argc, char *argv[]) {
    if (argc != 6 || (strcmp(argv[3], "one") != 0 && strcmp(argv[3], "each") != 0)) {
        fprintf(stderr, "usage: %s ADDRESS PORT one|each HOW-MANY LAPS\n", argv[0]);
        return 2;
    }
    many = number(argv[4]);
    const unsigned long laps = number(argv[5]);
    targets = calloc(many, sizeof(*targets));
    if (targets == NULL || many == 0 || laps == 0)
        give_up("HOW-MANY and LAPS begin at 1, and there has to be memory");
    side = open_side(argv[1], argv[2], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    leave(connect_to(&side, NULL)); // warm-up: everything that happens only once

    const double resident_before = resident_kib(), descriptors_before = descriptors();
    if (strcmp(argv[3], "one") == 0) {
        shared = queue_for_all();
        watch_queue(shared);
    }
    connect_all();
    print("resident KiB", resident_kib() - resident_before);
    print("descriptors", descriptors() - descriptors_before);

    lap(); // warm-up: everything that happens only once
    const double start = seconds(), cpu = cpu_seconds();
    for (unsigned long i = 0; i < laps; i++)
        lap();
    const double operations = (double)laps * (double)many;
    print("writes per second", operations / (seconds() - start));
    print("CPU us per write", (cpu_seconds() - cpu) * 1e6 / operations);
    return 0;
}
