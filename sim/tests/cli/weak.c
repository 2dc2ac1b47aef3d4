// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// weak.c -- for each weakness of rdma-sim(1), a client that is right only under the strong
// model, and, with "fixed", the corrected one
//
// usage: weak NAME wrong|fixed [ADDRESS]    without ADDRESS: the server
//
// A side that detects an error ends with status 1.

#include "weak.h"

static struct rdma_event_channel *channel;
struct rdma_cm_id *id;
struct ibv_mr *mr;
struct ibv_qp *ud;
struct ibv_cq *ud_cq;
struct memory *memory;
struct description peer;
bool is_fixed;

void must(bool is_good, const char *what) {
    if (!is_good) {
        fprintf(stderr, "%s\n", what);
        _exit(1);
    }
}

static void prepare(void) {
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
    init.cap = (struct ibv_qp_cap){QUEUE, QUEUE, 1, 1, 0};
    must(!rdma_create_qp(id, NULL, &init), "rdma_create_qp");
    mr = ibv_reg_mr(id->pd, memory, sizeof(*memory),
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    must(mr, "ibv_reg_mr");
    ud_cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
    init = (struct ibv_qp_init_attr){.qp_type = IBV_QPT_UD, .send_cq = ud_cq, .recv_cq = ud_cq};
    init.cap = (struct ibv_qp_cap){32, 32, 1, 1, 0};
    ud = ibv_create_qp(id->pd, &init);
    if (!ud)
        return; // a device without datagrams
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    must(
        !ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
        "INIT");
    attr.qp_state = IBV_QPS_RTR;
    must(!ibv_modify_qp(ud, &attr, IBV_QP_STATE), "RTR");
    attr.qp_state = IBV_QPS_RTS;
    must(!ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

static struct description own(void) {
    return (struct description){(uintptr_t)memory, mr->rkey, ud ? ud->qp_num : 0};
}

static struct sockaddr *address_of(const char *text) {
    static struct rdma_addrinfo *info;
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP,
                                  .ai_flags = text ? 0 : RAI_PASSIVE};
    must(!rdma_getaddrinfo(text, "7205", &hints, &info), "rdma_getaddrinfo");
    return text ? info->ai_dst_addr : info->ai_src_addr;
}

static void connect_to(const char *address) {
    must(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    must(!rdma_resolve_addr(id, NULL, address_of(address), 2000), "rdma_resolve_addr");
    must(!rdma_resolve_route(id, 2000), "rdma_resolve_route");
    prepare();
    struct rdma_conn_param param = {.retry_count = 3, .rnr_retry_count = 7};
    param.responder_resources = param.initiator_depth = 4;
    must(!rdma_connect(id, &param), "rdma_connect");
    memcpy(&peer, id->event->param.conn.private_data, sizeof(peer));
}

struct rdma_cm_id *next_event(enum rdma_cm_event_type type) {
    struct rdma_cm_event *event;
    must(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    struct rdma_cm_id *const about = event->id;
    must(event->event == type, rdma_event_str(event->event));
    rdma_ack_cm_event(event);
    return about;
}

void receive(unsigned slot) {
    struct ibv_sge sge = {(uintptr_t)memory->datagrams[slot], sizeof(memory->datagrams[0]),
                          mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    must(!ibv_post_recv(ud, &wr, &bad), "ibv_post_recv");
}

static void accept_client(void) {
    struct rdma_cm_id *listener = NULL;
    channel = rdma_create_event_channel();
    must(channel && !rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    must(!rdma_bind_addr(listener, address_of(NULL)), "rdma_bind_addr");
    must(!rdma_listen(listener, 1), "rdma_listen");
    id = next_event(RDMA_CM_EVENT_CONNECT_REQUEST);
    prepare();
    for (unsigned i = 0; ud && i < QUEUE; i++)
        receive(i);
    must(!rdma_post_recv(id, NULL, memory, 0, mr), "rdma_post_recv"); // of immediate data
    struct description description = own();
    struct rdma_conn_param param = {.private_data = &description,
                                    .private_data_len = sizeof(description)};
    param.responder_resources = param.initiator_depth = 4;
    must(!rdma_accept(id, &param), "rdma_accept");
    (void)next_event(RDMA_CM_EVENT_ESTABLISHED);
}

int post_request(enum ibv_wr_opcode opcode, uint64_t *local, uint64_t *remote, uint32_t length,
                 unsigned flags) {
    struct ibv_sge sge = {(uintptr_t)local, length, mr->lkey};
    struct ibv_send_wr wr = {.opcode = opcode, .send_flags = flags, .num_sge = 1}, *bad;
    wr.sg_list = &sge;
    wr.wr.rdma.remote_addr = peer.address + ((uintptr_t)remote - (uintptr_t)memory);
    wr.wr.rdma.rkey = peer.rkey;
    return ibv_post_send(id->qp, &wr, &bad);
}

struct ibv_wc completion(struct ibv_cq *cq) {
    struct ibv_wc wc;
    int count;
    memset(&wc, 0xff, sizeof(wc));
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
        usleep(100);
    must(count == 1, "ibv_poll_cq");
    return wc;
}

void complete_request(enum ibv_wr_opcode opcode, uint64_t *local, uint64_t *remote,
                      uint32_t length) {
    must(!post_request(opcode, local, remote, length, IBV_SEND_SIGNALED), "ibv_post_send");
    must(completion(id->send_cq).status == IBV_WC_SUCCESS, "a request failed");
}

int main(int argc, char *argv[]) {
    must(argc == 3 || argc == 4, "usage: weak NAME wrong|fixed [ADDRESS]");
    const int fd = argc == 3 ? open("memory", O_RDWR) : -1;
    memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE,
                  fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    must(memory != MAP_FAILED, "mmap");
    if (strcmp(argv[1], "empty-read") &&
        strcmp(argv[1], "selector")) // its server may start again, and keeps the record
        memset(memory, 0, sizeof(*memory));
    memory->source = 7;
    is_fixed = strcmp(argv[2], "fixed") == 0;
    for (size_t i = 0; i < PROGRAM_COUNT; i++) {
        if (strcmp(PROGRAMS[i].name, argv[1]))
            continue;
        if (argc == 3) {
            accept_client();
            PROGRAMS[i].server();
            return 0;
        }
        connect_to(argv[3]);
        PROGRAMS[i].client();
        rdma_disconnect(id);
        return 0;
    }
    must(false, "unknown NAME");
}
