// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// raw.cc -- commands that bypass librpma: a client of librdmacm with settings of its own, and
// the device's own reports and limits

#include "peer.hh"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

namespace {

rdma_cm_id *raw_id;

// Blocks until the other side accepts. rnr: how often the other side may repeat a message that
// finds no receive here; librpma's default is 7, which is without end.
void connect(const Args &args) {
    rdma_addrinfo hints = {}, *address = nullptr;
    ibv_qp_init_attr attr = {};
    rdma_conn_param param = {};
    hints.ai_port_space = RDMA_PS_TCP;
    attr.cap.max_send_wr = 16;
    attr.cap.max_recv_wr = attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    attr.sq_sig_all = 1;
    param.responder_resources = param.initiator_depth = 1;
    param.retry_count = 7;
    param.rnr_retry_count = static_cast<uint8_t>(args.number("rnr"));
    must_system(rdma_getaddrinfo(args.text("addr").c_str(), args.text("port").c_str(), &hints,
                                 &address) == 0,
                "rdma_getaddrinfo");
    const int ret = rdma_create_ep(&raw_id, address, nullptr, &attr);
    rdma_freeaddrinfo(address);
    must_system(ret == 0, "rdma_create_ep");
    must_system(rdma_connect(raw_id, &param) == 0, "rdma_connect");
}

void close(const Args &) {
    rdma_disconnect(raw_id);
    rdma_destroy_ep(raw_id);
    raw_id = nullptr;
}

// The most elements per work request, and the number of completion vectors.
void device_limits(const Args &) {
    ibv_device_attr attr;
    must_system(ibv_query_device(world.device, &attr) == 0, "ibv_query_device");
    reply("sge", attr.max_sge);
    reply("read_sge", attr.max_sge_rd);
    reply("srq_sge", attr.max_srq_sge);
    reply("vectors", world.device->num_comp_vectors);
}

// A write that the program posts itself, to the queue pair of a connection.
void write(const Args &args) {
    ibv_mr *mr = nullptr;
    ibv_qp *qp = nullptr;
    ibv_send_wr *bad = nullptr, wr = {};
    must(rpma_conn_get_ibv_qp(the_conn(args), &qp));
    must(rpma_mr_get_ibv_mr(the_mr(args), &mr));
    must(rpma_mr_remote_get_key(the_remote(args), &wr.wr.rdma.remote_addr, &wr.wr.rdma.rkey));
    ibv_sge sge = {reinterpret_cast<uintptr_t>(mr->addr) + args.number_or("off", 0),
                   static_cast<uint32_t>(args.number("len")), mr->lkey};
    wr.wr_id = args.number_or("ctx", 0);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr += args.number_or("roff", 0);
    errno = ibv_post_send(qp, &wr, &bad);
    must_system(errno == 0, "ibv_post_send");
}

const Commands here{
    {"raw-connect", connect},
    {"raw-close", close},
    {"raw-write", write},
    {"device-limits", device_limits},
};

} // namespace
