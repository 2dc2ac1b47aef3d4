// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// raw.c -- commands that bypass librpma: a client of librdmacm with settings of its own, and
// the device's own reports and limits

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "peer.h"

static struct rdma_cm_id *raw_id;

static int raw_failed(const char *call) {
    reply("call=%s errno=%d", call, errno);
    return ERR_SYSTEM;
}

static int raw_open(const struct args *args) {
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .sq_sig_all = 1,
    };
    struct rdma_addrinfo *address = NULL;
    if (rdma_getaddrinfo(arg_text(args, "addr"), arg_text(args, "port"), &hints, &address) != 0)
        return raw_failed("rdma_getaddrinfo");
    int ret = rdma_create_ep(&raw_id, address, NULL, &attr);
    rdma_freeaddrinfo(address);
    return ret == 0 ? 0 : raw_failed("rdma_create_ep");
}

/* Blocks until the other side accepts. rnr: how often the other side may repeat a message that
 * finds no receive here; librpma's default is 7, which is without end. */
static int do_raw_connect(const struct args *args) {
    struct rdma_conn_param param = {
        .responder_resources = 1,
        .initiator_depth = 1,
        .retry_count = 7,
        .rnr_retry_count = (uint8_t)arg_number(args, "rnr"),
    };
    int ret = raw_open(args);
    if (ret != 0)
        return ret;
    return rdma_connect(raw_id, &param) == 0 ? 0 : raw_failed("rdma_connect");
}

static int do_raw_close(const struct args *args) {
    (void)args;
    rdma_disconnect(raw_id);
    rdma_destroy_ep(raw_id);
    raw_id = NULL;
    return 0;
}

/* The most elements per work request, and the number of completion vectors. */
static int do_device_limits(const struct args *args) {
    struct ibv_device_attr attr;
    (void)args;
    if (ibv_query_device(world.device, &attr) != 0)
        return raw_failed("ibv_query_device");
    reply("sge=%d read_sge=%d srq_sge=%d vectors=%d", attr.max_sge, attr.max_sge_rd,
          attr.max_srq_sge, world.device->num_comp_vectors);
    return 0;
}

/* A write that the program posts itself, to the queue pair of a connection. */
static int do_raw_write(const struct args *args) {
    struct ibv_mr *mr = NULL;
    struct ibv_qp *qp = NULL;
    struct ibv_send_wr *bad = NULL;
    struct ibv_send_wr wr = {.wr_id = arg_number_or(args, "ctx", 0),
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};
    int ret = rpma_conn_get_ibv_qp(the_conn(args), &qp);
    if (ret == 0)
        ret = rpma_mr_get_ibv_mr(world.mr[arg_slot(args, "mr", MAX_REGIONS)], &mr);
    if (ret == 0)
        ret = rpma_mr_remote_get_key(world.remote[arg_slot(args, "rmr", MAX_REGIONS)],
                                     &wr.wr.rdma.remote_addr, &wr.wr.rdma.rkey);
    if (ret != 0)
        return ret;
    struct ibv_sge sge = {(uintptr_t)mr->addr + arg_number_or(args, "off", 0),
                          (uint32_t)arg_number(args, "len"), mr->lkey};
    wr.sg_list = &sge;
    wr.wr.rdma.remote_addr += arg_number_or(args, "roff", 0);
    errno = ibv_post_send(qp, &wr, &bad);
    return errno == 0 ? 0 : raw_failed("ibv_post_send");
}

const struct command raw_commands[] = {
    {"raw-connect", do_raw_connect},
    {"raw-close", do_raw_close},
    {"raw-write", do_raw_write},
    {"device-limits", do_device_limits},
    {NULL, NULL},
};
