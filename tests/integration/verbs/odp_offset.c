// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// odp_offset.c -- where a device puts data written to memory that is paged on demand
//
// odp_offset DEVICE GID-INDEX FILE OFFSET: writes 64 bytes to this offset of the file with
// verbs alone, from one queue pair to another of the same device, and prints the offset where
// they are.

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE 8192
#define LEN 64
#define AROUND 0x5a
#define BYTE 0xb7
#define PORT 1
#define PSN 1

struct stage {
    struct ibv_context *device;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *from;
    struct ibv_qp *to;
    struct ibv_mr *source;
    struct ibv_mr *target;
    union ibv_gid gid;
    uint8_t gid_index;
};

static void need(int is_well, const char *what) {
    if (is_well)
        return;
    perror(what);
    exit(1);
}

static struct ibv_context *open_device(const char *name) {
    struct ibv_context *device = NULL;
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list != NULL, "ibv_get_device_list");
    for (struct ibv_device **one = list; *one != NULL; one++)
        if (strcmp(ibv_get_device_name(*one), name) == 0)
            device = ibv_open_device(*one);
    ibv_free_device_list(list);
    need(device != NULL, "ibv_open_device");
    return device;
}

static struct ibv_qp *create_qp(const struct stage *stage) {
    struct ibv_qp_init_attr attributes = {
        .send_cq = stage->cq,
        .recv_cq = stage->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = ibv_create_qp(stage->pd, &attributes);
    need(qp != NULL, "ibv_create_qp");
    return qp;
}

static void connect_qp(const struct stage *stage, struct ibv_qp *qp,
                       const struct ibv_qp *other) {
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_attr receive = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = other->qp_num,
        .rq_psn = PSN,
        .ah_attr = {.is_global = 1,
                    .port_num = PORT,
                    .grh = {.dgid = stage->gid,
                            .sgid_index = stage->gid_index,
                            .hop_limit = 1}},
    };
    struct ibv_qp_attr send = {
        .qp_state = IBV_QPS_RTS, .sq_psn = PSN, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    need(ibv_modify_qp(qp, &init,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
             0,
         "to INIT");
    need(ibv_modify_qp(qp, &receive,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ==
             0,
         "to RTR");
    need(ibv_modify_qp(qp, &send,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "to RTS");
}

static unsigned char *map_file(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    need(fd >= 0 && ftruncate(fd, SIZE) == 0, path);
    void *base =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
    need(base != MAP_FAILED, "mmap with MAP_SYNC");
    close(fd);
    return base;
}

static void set_up(struct stage *stage, const char *device, unsigned char *source,
                   unsigned char *target) {
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND;
    stage->device = open_device(device);
    stage->pd = ibv_alloc_pd(stage->device);
    need(stage->pd != NULL, "ibv_alloc_pd");
    stage->cq = ibv_create_cq(stage->device, 4, NULL, NULL, 0);
    need(stage->cq != NULL, "ibv_create_cq");
    need(ibv_query_gid(stage->device, PORT, stage->gid_index, &stage->gid) == 0,
         "ibv_query_gid");
    stage->source = ibv_reg_mr(stage->pd, source, LEN, 0);
    need(stage->source != NULL, "ibv_reg_mr of the source");
    stage->target = ibv_reg_mr(stage->pd, target, SIZE, access);
    need(stage->target != NULL, "ibv_reg_mr with on-demand paging");
    stage->from = create_qp(stage);
    stage->to = create_qp(stage);
    connect_qp(stage, stage->from, stage->to);
    connect_qp(stage, stage->to, stage->from);
}

static void write_to(struct stage *stage, uint64_t remote) {
    struct ibv_sge piece = {
        .addr = (uintptr_t)stage->source->addr, .length = LEN, .lkey = stage->source->lkey};
    struct ibv_send_wr request = {
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = {.remote_addr = remote, .rkey = stage->target->rkey},
    };
    struct ibv_send_wr *bad = NULL;
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    int count = 0;
    need(ibv_post_send(stage->from, &request, &bad) == 0, "ibv_post_send");
    while (count == 0)
        count = ibv_poll_cq(stage->cq, 1, &wc);
    if (count < 0 || wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "the write failed: %s\n", ibv_wc_status_str(wc.status));
        exit(1);
    }
}

int main(int argc, char **argv) {
    static unsigned char source[LEN];
    struct stage stage = {0};
    if (argc != 5) {
        fprintf(stderr, "usage: odp_offset DEVICE GID-INDEX FILE OFFSET\n");
        return 2;
    }
    unsigned char *target = map_file(argv[3]);
    memset(source, BYTE, sizeof(source));
    memset(target, AROUND, SIZE);
    stage.gid_index = (uint8_t)atoi(argv[2]);
    set_up(&stage, argv[1], source, target);
    write_to(&stage, (uintptr_t)target + strtoull(argv[4], NULL, 0));
    const unsigned char *found = memchr(target, BYTE, SIZE);
    need(found != NULL, "the bytes are nowhere");
    printf("%td\n", found - target);
    return 0; // the process ends: the kernel takes everything back
}
