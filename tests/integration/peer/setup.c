// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// setup.c -- commands for devices, peers, configurations, shared receive queues; and the end

#include <infiniband/verbs.h>
#include <stdio.h>
#include <unistd.h>

#include "peer.h"

static int do_context(const struct args *args) {
    enum rpma_util_ibv_context_type type = arg_number_or(args, "remote", 0) != 0
                                               ? RPMA_UTIL_IBV_CONTEXT_REMOTE
                                               : RPMA_UTIL_IBV_CONTEXT_LOCAL;
    int odp = 0;
    int ret = rpma_utils_get_ibv_context(arg_text(args, "addr"), type, &world.device);
    if (ret == 0)
        ret = rpma_utils_ibv_context_is_odp_capable(world.device, &odp);
    if (ret == 0)
        reply("device=%s odp=%d", ibv_get_device_name(world.device->device), odp);
    return ret;
}

static int do_peer(const struct args *args) {
    (void)args;
    return rpma_peer_new(world.device, &world.peer);
}

static int do_peer_delete(const struct args *args) {
    (void)args;
    return rpma_peer_delete(&world.peer);
}

static int set_sizes(struct rpma_conn_cfg *cfg, const struct args *args) {
    const struct {
        const char *key;
        int (*set)(struct rpma_conn_cfg *, uint32_t);
    } sizes[] = {
        {"cq", rpma_conn_cfg_set_cq_size},          {"rcq", rpma_conn_cfg_set_rcq_size},
        {"sq", rpma_conn_cfg_set_sq_size},          {"rq", rpma_conn_cfg_set_rq_size},
        {"sge", rpma_conn_cfg_set_max_sge},         {"retry", rpma_conn_cfg_set_retry_count},
        {"rnr", rpma_conn_cfg_set_rnr_retry_count}, {"inline", rpma_conn_cfg_set_inline_size},
    };
    int ret = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && ret == 0; i++)
        if (arg_text_or(args, sizes[i].key, NULL) != NULL)
            ret = sizes[i].set(cfg, (uint32_t)arg_number(args, sizes[i].key));
    return ret;
}

static int do_lend(const struct args *args) {
    struct rpma_cq_cfg *cfg = NULL;
    int ret = rpma_cq_cfg_new(&cfg);
    if (ret == 0)
        ret = rpma_cq_cfg_set_size(cfg, (uint32_t)arg_number(args, "size"));
    if (ret == 0)
        ret = rpma_cq_cfg_set_comp_vector(cfg, (uint32_t)arg_number_or(args, "vector", 0));
    if (ret == 0)
        ret = rpma_cq_new(world.peer, cfg, &world.lent[arg_slot(args, "lent", MAX_OTHERS)]);
    rpma_cq_cfg_delete(&cfg);
    return ret;
}

static int do_lend_no_more(const struct args *args) {
    return rpma_cq_delete(&world.lent[arg_slot(args, "lent", MAX_OTHERS)]);
}

static int do_srq_delete(const struct args *args) {
    return rpma_srq_delete(&world.srq[arg_slot(args, "srq", MAX_OTHERS)]);
}

/* Sets the queues of this program that connections share. */
static int set_lent(struct rpma_conn_cfg *cfg, const struct args *args) {
    int ret = 0;
    if (arg_text_or(args, "lent", NULL) != NULL)
        ret = rpma_conn_cfg_set_cq(cfg, world.lent[arg_slot(args, "lent", MAX_OTHERS)]);
    if (ret == 0 && arg_text_or(args, "lent-rcq", NULL) != NULL)
        ret = rpma_conn_cfg_set_rcq(cfg, world.lent[arg_slot(args, "lent-rcq", MAX_OTHERS)]);
    return ret;
}

static int do_cfg(const struct args *args) {
    struct rpma_conn_cfg **cfg = &world.cfg[arg_slot(args, "cfg", MAX_OTHERS)];
    int ret = rpma_conn_cfg_new(cfg);
    if (ret == 0)
        ret = set_sizes(*cfg, args);
    if (ret == 0)
        ret = set_lent(*cfg, args);
    if (ret == 0)
        ret = rpma_conn_cfg_set_timeout(*cfg, (int)arg_number_or(args, "timeout", PATIENCE_MS));
    if (ret == 0 && arg_text_or(args, "ack", NULL) != NULL)
        ret = rpma_conn_cfg_set_ack_timeout(*cfg, (int)arg_number(args, "ack"));
    if (ret == 0 && arg_text_or(args, "tos", NULL) != NULL)
        ret = rpma_conn_cfg_set_tos(*cfg, (uint8_t)arg_number(args, "tos"));
    if (ret == 0 && arg_text_or(args, "flush", NULL) != NULL)
        ret =
            rpma_conn_cfg_set_flush_mode(*cfg, (enum rpma_flush_mode)arg_number(args, "flush"));
    if (ret == 0 && arg_number_or(args, "shared", 0) != 0)
        ret = rpma_conn_cfg_set_compl_channel(*cfg, true);
    if (ret == 0 && arg_text_or(args, "srq", NULL) != NULL)
        ret = rpma_conn_cfg_set_srq(*cfg, world.srq[arg_slot(args, "srq", MAX_OTHERS)]);
    return ret;
}

static int do_srq(const struct args *args) {
    struct rpma_srq_cfg *cfg = NULL;
    int ret = rpma_srq_cfg_new(&cfg);
    if (ret == 0)
        ret = rpma_srq_cfg_set_rq_size(cfg, (uint32_t)arg_number_or(args, "rq", 100));
    if (ret == 0)
        ret = rpma_srq_cfg_set_rcq_size(cfg, (uint32_t)arg_number_or(args, "rcq", 100));
    if (ret == 0 && arg_text_or(args, "sge", NULL) != NULL)
        ret = rpma_srq_cfg_set_max_sge(cfg, (uint32_t)arg_number(args, "sge"));
    if (ret == 0)
        ret = rpma_srq_new(world.peer, cfg, &world.srq[arg_slot(args, "srq", MAX_OTHERS)]);
    rpma_srq_cfg_delete(&cfg);
    return ret;
}

/* The descriptor of a configuration with the given direct write to PMem; served=1 states what
 * the peer serves. */
static int do_pcfg(const struct args *args) {
    struct rpma_peer_cfg *pcfg = NULL;
    unsigned char descriptor[16];
    size_t size = 0;
    int ret = rpma_peer_cfg_new(&pcfg);
    if (ret == 0)
        ret = rpma_peer_cfg_set_direct_write_to_pmem(pcfg, arg_number(args, "direct") != 0);
    if (ret == 0 && arg_number_or(args, "served", 0) != 0)
        ret = rpma_peer_cfg_set_served_by(pcfg, world.peer);
    if (ret == 0)
        ret = rpma_peer_cfg_get_descriptor_size(pcfg, &size);
    if (ret == 0 && size <= sizeof(descriptor))
        ret = rpma_peer_cfg_get_descriptor(pcfg, descriptor);
    rpma_peer_cfg_delete(&pcfg);
    if (ret == 0)
        reply_bytes("desc", descriptor, size);
    return ret;
}

/* Each byte's meaning as a descriptor for direct write to PMem, from byte 0 on: 0 or 1. */
static int do_pcfg_bytes(const struct args *args) {
    unsigned char answers[256];
    int ret = 0;
    (void)args;
    for (unsigned byte = 0; byte < sizeof(answers) && ret == 0; byte++) {
        const unsigned char descriptor = (unsigned char)byte;
        struct rpma_peer_cfg *pcfg = NULL;
        bool direct = false;
        ret = rpma_peer_cfg_from_descriptor(&descriptor, 1, &pcfg);
        if (ret == 0)
            ret = rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct);
        answers[byte] = direct;
        rpma_peer_cfg_delete(&pcfg);
    }
    if (ret == 0)
        reply_bytes("direct", answers, sizeof(answers));
    return ret;
}

static int do_apply_pcfg(const struct args *args) {
    struct rpma_peer_cfg *pcfg = NULL;
    unsigned char descriptor[256];
    size_t size = arg_bytes(args, "desc", descriptor, sizeof(descriptor));
    int ret = rpma_peer_cfg_from_descriptor(descriptor, size, &pcfg);
    if (ret == 0)
        ret = rpma_conn_apply_remote_peer_cfg(the_conn(args), pcfg);
    rpma_peer_cfg_delete(&pcfg);
    return ret;
}

static void keep_first(int *first, int ret) {
    if (*first == 0)
        *first = ret;
}

/* Deletes all objects in the order that the manual asks for; the context stays. */
static int do_release(const struct args *args) {
    int ret = 0;
    (void)args;
    if (world.epoll_fd >= 0)
        close(world.epoll_fd);
    world.epoll_fd = -1;
    for (size_t i = 0; i < MAX_OTHERS; i++)
        if (world.batch[i] != NULL)
            keep_first(&ret, rpma_batch_delete(&world.batch[i]));
    for (size_t i = 0; i < MAX_CONNS; i++) {
        keep_first(&ret, rpma_conn_delete(&world.conn[i]));
        keep_first(&ret, rpma_conn_req_delete(&world.req[i]));
    }
    keep_first(&ret, rpma_ep_shutdown(&world.ep));
    for (size_t i = 0; i < MAX_OTHERS; i++) {
        keep_first(&ret, rpma_conn_cfg_delete(&world.cfg[i]));
        keep_first(&ret, rpma_srq_delete(&world.srq[i]));
        if (world.lent[i] != NULL)
            keep_first(&ret, rpma_cq_delete(&world.lent[i]));
    }
    for (size_t i = 0; i < MAX_REGIONS; i++) {
        keep_first(&ret, rpma_mr_dereg(&world.mr[i]));
        keep_first(&ret, rpma_mr_remote_delete(&world.remote[i]));
    }
    keep_first(&ret, rpma_peer_delete(&world.peer));
    return ret;
}

const struct command setup_commands[] = {
    {"context", do_context},
    {"peer", do_peer},
    {"peer-delete", do_peer_delete},
    {"cfg", do_cfg},
    {"srq", do_srq},
    {"srq-delete", do_srq_delete},
    {"lend", do_lend},
    {"lend-no-more", do_lend_no_more},
    {"pcfg", do_pcfg},
    {"pcfg-bytes", do_pcfg_bytes},
    {"apply-pcfg", do_apply_pcfg},
    {"release", do_release},
    {NULL, NULL},
};
