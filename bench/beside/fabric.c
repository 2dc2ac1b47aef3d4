// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fabric.c -- the write and its completion by libfabric: a message endpoint of its provider
// verbs
//
// HOW is "domain" for FI_THREAD_DOMAIN, or left out for FI_THREAD_SAFE.

#include "beside.h"

#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How the server describes its memory to the client.
struct target {
    uint64_t address, key;
};

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct fid_mr *mr;
static struct target target;
static int cq_fd;
static _Alignas(WRITE_BYTES) char memory[WRITE_BYTES];

void give_up(const char *what) {
    fprintf(stderr, "fabric: %s\n", what);
    exit(EXIT_FAILURE);
}

static void must(long ret, const char *call) {
    if (ret == 0)
        return;
    fprintf(stderr, "fabric: %s: %s\n", call, fi_strerror((int)-ret));
    exit(EXIT_FAILURE);
}

static struct fi_info *find(const char *address, const char *port, const char *how,
                            uint64_t flags) {
    struct fi_info *hints = fi_allocinfo(), *found;
    if (hints == NULL)
        give_up("out of memory");
    hints->caps = FI_RMA;
    hints->ep_attr->type = FI_EP_MSG;
    hints->fabric_attr->prov_name = strdup("verbs");
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading =
        strcmp(how, "domain") == 0 ? FI_THREAD_DOMAIN : FI_THREAD_SAFE;
    must(fi_getinfo(FI_VERSION(1, 17), address, port, flags, hints, &found), "fi_getinfo");
    fi_freeinfo(hints);
    return found;
}

static void open_fabric(const struct fi_info *info) {
    struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
    must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    must(fi_eq_open(fabric, &attr, &eq, NULL), "fi_eq_open");
}

static void open_endpoint(struct fi_info *info) {
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD};
    must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    must(fi_mr_reg(domain, memory, sizeof(memory), FI_WRITE | FI_REMOTE_WRITE, 0, 0, 0, &mr,
                   NULL),
         "fi_mr_reg");
    must(fi_cq_open(domain, &attr, &cq, NULL), "fi_cq_open");
    must(fi_control(&cq->fid, FI_GETWAIT, &cq_fd), "fi_control");
    must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
    must(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind to the event queue");
    must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind to the completion queue");
    must(fi_enable(ep), "fi_enable");
}

// Waits for an event: returns the info of a connection request; the event that the client is
// connected brings the target.
static struct fi_info *expect(uint32_t wanted) {
    struct {
        struct fi_eq_cm_entry entry;
        struct target target;
    } got = {0};
    uint32_t event;
    const ssize_t size = fi_eq_sread(eq, &event, &got, sizeof(got), -1, 0);
    if (size < 0)
        must(size, "fi_eq_sread");
    if (event != wanted)
        give_up("another event than the one that has to come");
    target = got.target;
    return got.entry.info;
}

void serve_one(const char *address, const char *port, const char *how) {
    struct fi_info *info = find(address, port, how, FI_SOURCE);
    struct fid_pep *listener;
    open_fabric(info);
    must(fi_passive_ep(fabric, info, &listener, NULL), "fi_passive_ep");
    must(fi_pep_bind(listener, &eq->fid, 0), "fi_pep_bind");
    must(fi_listen(listener), "fi_listen");
    puts("listening");
    fflush(stdout);
    open_endpoint(expect(FI_CONNREQ));
    const struct target own = {(uint64_t)(uintptr_t)memory, fi_mr_key(mr)};
    must(fi_accept(ep, &own, sizeof(own)), "fi_accept");
    (void)expect(FI_CONNECTED);
    (void)expect(FI_SHUTDOWN);
}

void connect_client(const char *address, const char *port, const char *how) {
    struct fi_info *info = find(address, port, how, 0);
    open_fabric(info);
    open_endpoint(info);
    must(fi_connect(ep, info->dest_addr, NULL, 0), "fi_connect");
    (void)expect(FI_CONNECTED);
    if (target.address == 0)
        give_up("the server did not tell where its memory is");
}

void disconnect_client(void) {
    must(fi_shutdown(ep, 0), "fi_shutdown");
}

void counted_write(void) {
    must(fi_write(ep, memory, sizeof(memory), fi_mr_desc(mr), 0, target.address, target.key,
                  NULL),
         "fi_write");
}

void counted_completion(void) {
    struct fi_cq_entry entry;
    const ssize_t got = fi_cq_read(cq, &entry, 1);
    if (got != 1)
        must(got, "fi_cq_read");
}

// Runs before the write: a later fi_trywait() may take the completion itself and keep it.
void ask_for_event(void) {
    struct fid *fids[] = {&cq->fid};
    must(fi_trywait(fabric, fids, 1), "fi_trywait");
}

void wait_for_event(void) {
    struct pollfd ready = {.fd = cq_fd, .events = POLLIN};
    if (poll(&ready, 1, -1) != 1)
        give_up("poll failed");
}
