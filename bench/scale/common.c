// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// common.c -- devices, connections, clocks and output of all programs

#include "common.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void fail(const char *what) {
    fprintf(stderr, "scale: %s\n", what);
    exit(EXIT_FAILURE);
}

void must(int ret, const char *call) {
    if (ret == 0)
        return;
    fprintf(stderr, "scale: %s: %s\n", call, rpma_err_2str(ret));
    exit(EXIT_FAILURE);
}

unsigned long number(const char *text) {
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0')
        fail("an argument is not a number");
    return value;
}

struct side open_side(const char *address, const char *port,
                      enum rpma_util_ibv_context_type where) {
    const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
                      RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND |
                      RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    struct side side = {.address = address, .port = port};
    struct ibv_context *device;
    must(rpma_utils_get_ibv_context(address, where, &device), "rpma_utils_get_ibv_context");
    must(rpma_peer_new(device, &side.peer), "rpma_peer_new");
    side.memory = aligned_alloc(BLOCK, BLOCK);
    if (side.memory == NULL)
        fail("out of memory");
    memset(side.memory, 'x', BLOCK);
    must(rpma_mr_reg(side.peer, side.memory, BLOCK, usage, &side.mr), "rpma_mr_reg");
    return side;
}

struct rpma_conn *connect_to(const struct side *side, const struct rpma_conn_cfg *cfg) {
    struct rpma_conn_req *req;
    struct rpma_conn *conn;
    enum rpma_conn_event event;
    must(rpma_conn_req_new(side->peer, side->address, side->port, cfg, &req),
         "rpma_conn_req_new");
    must(rpma_conn_req_connect(&req, NULL, &conn), "rpma_conn_req_connect");
    must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
    if (event != RPMA_CONN_ESTABLISHED)
        fail(rpma_utils_conn_event_2str(event));
    return conn;
}

struct rpma_conn *accept_next(const struct side *side, struct rpma_ep *endpoint,
                              const struct rpma_conn_cfg *cfg, uint32_t receives) {
    struct rpma_conn_req *req;
    if (rpma_ep_next_conn_req(endpoint, cfg, &req) != 0)
        return NULL;
    for (uint32_t i = 0; i < receives; i++)
        must(rpma_conn_req_recv(req, side->mr, 0, MESSAGE, NULL), "rpma_conn_req_recv");

    char descriptor[64];
    size_t size;
    must(rpma_mr_get_descriptor_size(side->mr, &size), "rpma_mr_get_descriptor_size");
    must(rpma_mr_get_descriptor(side->mr, descriptor), "rpma_mr_get_descriptor");
    const struct rpma_conn_private_data data = {descriptor, (uint8_t)size};
    struct rpma_conn *conn;
    return rpma_conn_req_connect(&req, &data, &conn) == 0 ? conn : NULL;
}

struct target connect_to_target(const struct side *side, const struct rpma_conn_cfg *cfg) {
    struct target target = {.conn = connect_to(side, cfg)};
    must(rpma_conn_get_cq(target.conn, &target.cq), "rpma_conn_get_cq");
    struct rpma_conn_private_data data;
    must(rpma_conn_get_private_data(target.conn, &data), "rpma_conn_get_private_data");
    must(rpma_mr_remote_from_descriptor(data.ptr, data.len, &target.remote),
         "rpma_mr_remote_from_descriptor");
    return target;
}

struct target connect_with_queues(const struct side *side, uint32_t entries) {
    struct rpma_conn_cfg *cfg;
    must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
    must(rpma_conn_cfg_set_sq_size(cfg, entries), "rpma_conn_cfg_set_sq_size");
    must(rpma_conn_cfg_set_cq_size(cfg, entries), "rpma_conn_cfg_set_cq_size");
    const struct target target = connect_to_target(side, cfg);
    rpma_conn_cfg_delete(&cfg);
    return target;
}

void must_succeed(const struct ibv_wc *completions, int count) {
    for (int i = 0; i < count; i++)
        if (completions[i].status != IBV_WC_SUCCESS)
            fail(ibv_wc_status_str(completions[i].status));
}

unsigned long take_completions(struct rpma_cq *cq, int max) {
    struct ibv_wc wc[MAX_COMPLETIONS];
    int got, ret;
    while ((ret = rpma_cq_get_wc(cq, max, wc, &got)) == RPMA_E_NO_COMPLETION) {
        ret = rpma_cq_wait(cq);
        if (ret != RPMA_E_NO_COMPLETION)
            must(ret, "rpma_cq_wait");
    }
    must(ret, "rpma_cq_get_wc");
    must_succeed(wc, got);
    return (unsigned long)got;
}

void disconnect(struct rpma_conn *conn) {
    enum rpma_conn_event event;
    must(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
    must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
    must(rpma_conn_delete(&conn), "rpma_conn_delete");
}

void watch(int epoll, int fd, void *what) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        fail("epoll_ctl failed");
}

double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double resident_kib(void) {
    unsigned long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &all, &resident) != 2)
        fail("/proc/self/statm cannot be read");
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

double descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    if (directory == NULL)
        fail("/proc/self/fd cannot be read");
    unsigned count = 0;
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

void print(const char *figure, double value) {
    printf("%s\t%.3f\n", figure, value);
}

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void sort(double *values, size_t count) {
    qsort(values, count, sizeof(*values), compare);
}
