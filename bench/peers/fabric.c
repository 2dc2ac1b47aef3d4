// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fabric.c -- the scenes of connecting.c and rpma.c by libfabric: message endpoints of its
// provider verbs, one event queue for all
//
//   fabric server ADDRESS PORT             accepts everybody
//   fabric hold ADDRESS PORT BACKLOG COUNT takes so many requests and answers none
//   fabric clients PORT ADDRESS...         connects to all addresses, in their order
//   fabric writer ADDRESS PORT TIMES HOW   writes one block at a time, for callgrind; HOW:
//                                          safe is FI_THREAD_SAFE, domain FI_THREAD_DOMAIN
//   fabric reader ADDRESS PORT             reads a block again and again, and says when it was
//                                          lost and when it is back
//
// It prints a line when it has got as far, and goes on when it reads a line.

#include "scene.h"

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

enum { REQUESTS = 10, CQ_SIZE = 16384 }; // a queue of as many requests as librpma's by default

struct target { // how the server describes its memory
    uint64_t address, key;
};

struct event {
    struct fi_eq_cm_entry entry;
    struct target target;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_mr *mr;
static _Alignas(WRITE_BYTES) char memory[WRITE_BYTES];
static enum fi_threading threading = FI_THREAD_UNSPEC;
static struct fid_ep *through; // of the writer or the reader
static struct target target;

static void must(long ret, const char *call) {
    if (ret >= 0)
        return;
    fprintf(stderr, "fabric: %s: %s\n", call, fi_strerror((int)-ret));
    exit(EXIT_FAILURE);
}

static void open_all(const char *address, const char *port, uint64_t flags) {
    struct fi_info *hints = fi_allocinfo();
    struct fi_eq_attr events = {.wait_obj = FI_WAIT_FD};
    struct fi_cq_attr completions = {
        .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD, .size = CQ_SIZE};
    hints->caps = FI_RMA;
    hints->ep_attr->type = FI_EP_MSG;
    hints->fabric_attr->prov_name = strdup("verbs");
    hints->domain_attr->threading = threading;
    hints->tx_attr->size = hints->rx_attr->size = REQUESTS;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    must(fi_getinfo(FI_VERSION(1, 17), address, port, flags, hints, &info), "fi_getinfo");
    must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    must(fi_eq_open(fabric, &events, &eq, NULL), "fi_eq_open");
    must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    must(fi_cq_open(domain, &completions, &cq, NULL), "fi_cq_open");
    must(fi_mr_reg(domain, memory, sizeof(memory),
                   FI_READ | FI_REMOTE_READ | FI_WRITE | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL),
         "fi_mr_reg");
}

static int open_endpoint(struct fi_info *from, struct fid_ep **ep) {
    const int ret = fi_endpoint(domain, from, ep, NULL);
    if (ret)
        return ret;
    must(fi_ep_bind(*ep, &eq->fid, 0), "fi_ep_bind to the event queue");
    must(fi_ep_bind(*ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind to the completions");
    must(fi_enable(*ep), "fi_enable");
    return 0;
}

// The next event, or 0 at the time limit. One that says what failed is FI_SHUTDOWN here.
static uint32_t next_event(struct event *got, int timeout) {
    uint32_t event = 0;
    const ssize_t size = fi_eq_sread(eq, &event, got, sizeof(*got), timeout, 0);
    if (size == -FI_EAVAIL) {
        struct fi_eq_err_entry why = {0};
        must(fi_eq_readerr(eq, &why, 0), "fi_eq_readerr");
        got->entry.fid = why.fid;
        return FI_SHUTDOWN;
    }
    if (size != -FI_EAGAIN && size != -FI_ETIMEDOUT && size != -FI_EINTR)
        must(size, "fi_eq_sread");
    return size < 0 ? 0 : event;
}

// ---- servers -------------------------------------------------------------------------------

static struct fid_pep *listen_at(char **argv) {
    struct fid_pep *listener;
    open_all(argv[0], argv[1], FI_SOURCE);
    must(fi_passive_ep(fabric, info, &listener, NULL), "fi_passive_ep");
    must(fi_pep_bind(listener, &eq->fid, 0), "fi_pep_bind");
    must(fi_listen(listener), "fi_listen");
    return listener;
}

static void serve(char **argv) {
    const struct target own = {(uint64_t)(uintptr_t)memory, 0};
    struct target offered = own;
    (void)listen_at(argv);
    offered.key = fi_mr_key(mr);
    say("listening");
    for (;;) {
        struct event got;
        struct fid_ep *ep = NULL;
        const uint32_t event = next_event(&got, -1);
        if (event == FI_SHUTDOWN && got.entry.fid)
            fi_close(got.entry.fid);
        if (event != FI_CONNREQ)
            continue;
        if (open_endpoint(got.entry.info, &ep) == 0 &&
            fi_accept(ep, &offered, sizeof(offered)) != 0)
            fi_close(&ep->fid);
        fi_freeinfo(got.entry.info);
    }
}

static void hold(char **argv) {
    const size_t count = strtoul(argv[3], NULL, 10);
    struct fi_info **held = calloc(count, sizeof(struct fi_info *));
    struct fid_pep *listener = listen_at(argv);
    struct event got;
    report("listening");
    wait_for_a_line();
    for (size_t taken = 0; taken < count;)
        if (next_event(&got, -1) == FI_CONNREQ)
            held[taken++] = got.entry.info;
    report("held");
    wait_for_a_line();
    for (size_t i = 0; i < count; i++) {
        (void)fi_reject(listener, held[i]->handle, NULL, 0);
        fi_freeinfo(held[i]);
    }
    for (;;) { // what came in since then, as often as somebody asks
        while (next_event(&got, 0) == FI_CONNREQ) {
            (void)fi_reject(listener, got.entry.info->handle, NULL, 0);
            fi_freeinfo(got.entry.info);
        }
        report("deleted");
        wait_for_a_line();
    }
}

// ---- clients -------------------------------------------------------------------------------

// One fi_getinfo() serves all: another destination takes the place of the first.
static int begin(const char *address, struct fid_ep **ep) {
    inet_pton(AF_INET, address, &((struct sockaddr_in *)info->dest_addr)->sin_addr);
    int ret = TIMED(open_endpoint(info, ep));
    if (ret)
        return ret;
    ret = TIMED(fi_connect(*ep, info->dest_addr, NULL, 0));
    if (ret)
        fi_close(&(*ep)->fid);
    return ret;
}

static void connect_to_all(char **argv) {
    size_t count = 0, up = 0, failed = 0;
    double last_up = 0, last_failed = 0;
    struct event got;
    while (argv[1 + count])
        count++;
    struct fid_ep **eps = calloc(count, sizeof(struct fid_ep *));
    open_all(argv[1], argv[0], 0);
    const double first = milliseconds();
    for (size_t i = 0; up + failed < count;) {
        if (i < count && begin(argv[1 + i], &eps[i]) != 0) {
            failed++;
            last_failed = milliseconds() - first;
        }
        i += i < count;
        const uint32_t event = up + failed < count ? next_event(&got, i < count ? 0 : -1) : 0;
        if (event == FI_CONNECTED) {
            up++;
            last_up = milliseconds() - first;
        } else if (event == FI_SHUTDOWN) {
            failed++;
            last_failed = milliseconds() - first;
        }
    }
    say("established %zu failed %zu last-established %.0f last-failed %.0f longest-call %.1f",
        up, failed, last_up, last_failed, longest);
}

// ---- a write and its completion ------------------------------------------------------------

static COUNTED void counted_write(void) {
    must(fi_write(through, memory, WRITE_BYTES, fi_mr_desc(mr), 0, target.address, target.key,
                  NULL),
         "fi_write");
}

static COUNTED void counted_completion(void) {
    struct fi_cq_entry entry;
    const ssize_t got = fi_cq_read(cq, &entry, 1);
    if (got != 1)
        must(got < 0 ? got : -FI_EAGAIN, "fi_cq_read");
}

// fi_trywait() runs before the write: later it may take the completion itself and keep it.
static void write_and_wait(void) {
    struct fid *fids[] = {&cq->fid};
    struct pollfd ready = {.events = POLLIN};
    must(fi_trywait(fabric, fids, 1), "fi_trywait");
    counted_write();
    must(fi_control(&cq->fid, FI_GETWAIT, &ready.fd), "fi_control");
    must(poll(&ready, 1, -1) == 1 ? 0 : -FI_EOTHER, "poll");
    counted_completion();
}

static void write_blocks(char **argv) {
    struct event got = {0};
    threading = strcmp(argv[3], "domain") == 0 ? FI_THREAD_DOMAIN : FI_THREAD_SAFE;
    open_all(argv[0], argv[1], 0);
    must(begin(argv[0], &through), "fi_connect");
    must(next_event(&got, -1) == FI_CONNECTED ? 0 : -FI_ECONNREFUSED, "fi_eq_sread");
    target = got.target;
    run_laps(write_and_wait, strtoul(argv[2], NULL, 10));
}

// ---- a reader ------------------------------------------------------------------------------

static int read_block(void) {
    struct fi_cq_entry entry;
    struct fi_cq_err_entry why = {0};
    ssize_t ret = fi_read(through, memory, READ_BYTES, fi_mr_desc(mr), 0, target.address,
                          target.key, NULL);
    while (ret == 0 && (ret = fi_cq_sread(cq, &entry, 1, NULL, 1000)) == -FI_EAGAIN)
        ret = 0;
    if (ret == 1)
        return 0;
    while (fi_cq_readerr(cq, &why, 0) > 0)
        ;
    return -1;
}

static void keep_reading(char **argv) {
    open_all(argv[0], argv[1], 0);
    for (;; sleep_ms(RETRY_MS)) {
        struct event got = {0};
        if (begin(argv[0], &through) != 0)
            continue;
        const double until = milliseconds() + PATIENCE_MS;
        uint32_t event;
        do
            event = next_event(&got, PATIENCE_MS);
        while (event != 0 && got.entry.fid != &through->fid && milliseconds() < until);
        target = got.target;
        if (event == FI_CONNECTED)
            read_blocks(read_block);
        fi_close(&through->fid);
    }
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {{"server", 2, 2, serve},
                                          {"hold", 4, 4, hold},
                                          {"clients", 2, 1 << 16, connect_to_all},
                                          {"writer", 4, 4, write_blocks},
                                          {"reader", 2, 2, keep_reading},
                                          {0}};
    return run_scene(scenes, argc, argv);
}
