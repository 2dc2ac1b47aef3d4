// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fabric.c -- the scenes of rpma.c by libfabric: message endpoints of its provider verbs
//
//   fabric server ADDRESS PORT             accepts everybody
//   fabric writer ADDRESS PORT TIMES HOW   writes one block at a time, for callgrind; HOW:
//                                          safe is FI_THREAD_SAFE, domain FI_THREAD_DOMAIN

#include "scene.h"

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
static struct fid_ep *through; // of the writer
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

// The next event. An event that reports a failure is FI_SHUTDOWN here.
static uint32_t next_event(struct event *got) {
    uint32_t event = 0;
    const ssize_t size = fi_eq_sread(eq, &event, got, sizeof(*got), -1, 0);
    if (size == -FI_EAVAIL) {
        struct fi_eq_err_entry why = {0};
        must(fi_eq_readerr(eq, &why, 0), "fi_eq_readerr");
        got->entry.fid = why.fid;
        return FI_SHUTDOWN;
    }
    must(size, "fi_eq_sread");
    return event;
}

// ---- the server -----------------------------------------------------------------------------

static void serve(char **argv) {
    const struct target own = {(uint64_t)(uintptr_t)memory, 0};
    struct target offered = own;
    struct fid_pep *listener;
    open_all(argv[0], argv[1], FI_SOURCE);
    must(fi_passive_ep(fabric, info, &listener, NULL), "fi_passive_ep");
    must(fi_pep_bind(listener, &eq->fid, 0), "fi_pep_bind");
    must(fi_listen(listener), "fi_listen");
    offered.key = fi_mr_key(mr);
    say("listening");
    for (;;) {
        struct event got;
        struct fid_ep *ep = NULL;
        const uint32_t event = next_event(&got);
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
    must(open_endpoint(info, &through), "fi_endpoint");
    must(fi_connect(through, info->dest_addr, NULL, 0), "fi_connect");
    must(next_event(&got) == FI_CONNECTED ? 0 : -FI_ECONNREFUSED, "fi_eq_sread");
    target = got.target;
    run_laps(write_and_wait, strtoul(argv[2], NULL, 10));
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"server", 2, 2, serve}, {"writer", 4, 4, write_blocks}, {0}};
    return run_scene(scenes, argc, argv);
}
