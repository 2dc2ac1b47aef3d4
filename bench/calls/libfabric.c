// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// libfabric.c -- writes and their completions with libfabric, over a user-space driver of
// rdma-core and the stub of its kernel's side, as in drivers.c

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <string.h>

#include "../../sim/tests/drivers/stub.h"
#include "loops.h"

enum { COUNTED = 8, LENGTH = 16, SENDS = 4000, BYTES = 4096, POLLS = 1 + 6 * COUNTED };

static char memory[BYTES];
static void *description;
static uint64_t key;
static struct connection {
    struct fid_ep *ep;
    struct fid_cq *cq;
} writes, polls, empty;
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;

static void connect_to_device(struct connection *made) {
    struct fi_cq_attr cq_attr = {.size = 2 * SENDS, .format = FI_CQ_FORMAT_CONTEXT};
    struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
    struct fi_eq_cm_entry entry;
    struct fid_eq *eq;
    uint32_t event;
    must(fi_eq_open(fabric, &eq_attr, &eq, NULL) == 0, "fi_eq_open");
    must(fi_endpoint(domain, info, &made->ep, NULL) == 0, "fi_endpoint");
    must(fi_cq_open(domain, &cq_attr, &made->cq, NULL) == 0, "fi_cq_open");
    must(fi_ep_bind(made->ep, &eq->fid, 0) == 0, "fi_ep_bind");
    must(fi_ep_bind(made->ep, &made->cq->fid, FI_TRANSMIT | FI_RECV) == 0, "fi_ep_bind");
    must(fi_enable(made->ep) == 0, "fi_enable");
    must(fi_connect(made->ep, info->dest_addr, NULL, 0) == 0, "fi_connect");
    must(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0) >= 0 && event == FI_CONNECTED,
         "fi_eq_sread");
}

static void write_to(struct connection *to) {
    must(fi_write(to->ep, memory, BYTES, description, 0, (uintptr_t)memory, key, NULL) == 0,
         "fi_write");
}

static void write_loop(unsigned long times) {
    for (unsigned long i = 0; i < times * LENGTH; i++)
        write_to(&writes);
}

static void poll_loop(unsigned long times) {
    struct fi_cq_entry entry;
    for (unsigned long i = 0; i < times; i++)
        must(fi_cq_read(polls.cq, &entry, 1) == 1, "fi_cq_read");
}

static void poll_empty_loop(unsigned long times) {
    struct fi_cq_entry entry;
    for (unsigned long i = 0; i < times; i++)
        must(fi_cq_read(empty.cq, &entry, 1) == -FI_EAGAIN, "fi_cq_read");
}

const struct loop loops[] = {
    {"plain_write_16", write_loop},
    {"poll_one_1", poll_loop},
    {"poll_none_1", poll_empty_loop},
    {0},
};

static void open_device(void) {
    struct fi_info *const hints = fi_allocinfo();
    struct fid_mr *mr;
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_MSG;
    hints->fabric_attr->prov_name = strdup("verbs");
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->tx_attr->size = SENDS;
    hints->tx_attr->op_flags = FI_COMPLETION;
    must(fi_getinfo(FI_VERSION(1, 17), "192.168.0.1", "7204", 0, hints, &info) == 0,
         "fi_getinfo");
    must(fi_fabric(info->fabric_attr, &fabric, NULL) == 0, "fi_fabric");
    must(fi_domain(fabric, info, &domain, NULL) == 0, "fi_domain");
    must(fi_mr_reg(domain, memory, BYTES, FI_WRITE | FI_READ | FI_REMOTE_WRITE | FI_REMOTE_READ,
                   0, 0, 0, &mr, NULL) == 0,
         "fi_mr_reg");
    description = fi_mr_desc(mr);
    key = fi_mr_key(mr);
}

void create_objects(void) {
    __typeof__(stub_complete) *complete;
    *(void **)&complete = dlsym(RTLD_DEFAULT, "stub_complete");
    must(complete != NULL, "stub_complete");
    open_device();
    connect_to_device(&writes);
    connect_to_device(&empty);
    connect_to_device(&polls);
    for (int i = 0; i < POLLS; i++)
        write_to(&polls);
    for (uint32_t i = 0; i < POLLS; i++)
        must(
            complete(&(struct stub_completion){
                .queue = STUB_SENDS, .index = i, .opcode = IBV_WC_RDMA_WRITE, .length = BYTES}),
            "stub_complete");
}
