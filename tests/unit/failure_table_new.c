// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure_table_new.c -- the failures of what is new in 1.4, and the calls that meet them

#include "failure_lines.h"

static struct world *const w = &failing_world;

static int request_with_timeout(void) {
    (void)rpma_conn_cfg_new(&w->h.cfg);
    (void)rpma_conn_cfg_set_ack_timeout(w->h.cfg, 200);
    return request();
}
static int request_with_tos(void) {
    (void)rpma_conn_cfg_new(&w->h.cfg);
    (void)rpma_conn_cfg_set_tos(w->h.cfg, 0x68);
    return request();
}

CALL(large_lent_cq, rpma_cq_new(w->h.peer, 5000000, &w->h.lent_cq))
CALL(delete_lent_cq, rpma_cq_delete(&w->h.lent_cq))

static int request_on(int (*set)(struct rpma_conn_cfg *, struct rpma_cq *), struct rpma_cq *cq,
                      bool shared_channel, struct rpma_srq *srq) {
    (void)rpma_conn_cfg_new(&w->h.cfg);
    (void)set(w->h.cfg, cq);
    (void)rpma_conn_cfg_set_compl_channel(w->h.cfg, shared_channel);
    (void)rpma_conn_cfg_set_srq(w->h.cfg, srq);
    logged_forget();
    return request();
}

static struct rpma_cq *lent_cq(unsigned device) {
    struct rpma_peer *peer = w->h.peer;
    if (device > 0)
        (void)rpma_peer_new(fake_context((int)device), &peer);
    (void)rpma_cq_new(peer, 8, &w->h.lent_cq);
    return w->h.lent_cq;
}

static struct rpma_srq *srq_with_rcq(void) {
    (void)rpma_srq_new(w->h.peer, NULL, &w->h.srq);
    return w->h.srq;
}
CALL(lent_cq_and_channel, request_on(rpma_conn_cfg_set_cq, lent_cq(0), true, NULL))
CALL(lent_rcq_and_srq, request_on(rpma_conn_cfg_set_rcq, lent_cq(0), false, srq_with_rcq()))
CALL(cq_of_connection, request_on(rpma_conn_cfg_set_cq, world_cq(w), false, NULL))
CALL(cq_of_other_device, request_on(rpma_conn_cfg_set_cq, lent_cq(1), false, NULL))

static int lent_cq_in_use(void) {
    (void)request_on(rpma_conn_cfg_set_cq, lent_cq(0), false, NULL);
    logged_forget();
    return delete_lent_cq();
}

static int delete_cq_of_connection(void) {
    struct rpma_cq *cq = world_cq(w);
    return rpma_cq_delete(&cq);
}

CALL(many_elements, request_with(rpma_conn_cfg_set_max_sge, 33))

static int many_shared_elements(void) {
    (void)rpma_srq_cfg_new(&w->h.srq_cfg);
    (void)rpma_srq_cfg_set_max_sge(w->h.srq_cfg, 28);
    return rpma_srq_new(w->h.peer, w->h.srq_cfg, &w->h.srq);
}

// A header and its payload, of a connection that has one element.
CALL(much_inline, request_with(rpma_conn_cfg_set_inline_size, 100000))

static int write_much_inline(void) {
    return rpma_write(w->h.conn, w->h.remote, 0, w->h.mr, 16, 24,
                      RPMA_F_COMPLETION_ALWAYS | RPMA_F_INLINE, NULL);
}

static int long_list(void) {
    const struct rpma_sge sgl[2] = {{w->h.mr, 16, 8}, {w->h.mr, 32, 16}};
    return rpma_writev(w->h.conn, w->h.remote, 8, sgl, 2, RPMA_F_COMPLETION_ALWAYS, NULL);
}

static int without_region(const struct rpma_sge *element) {
    return rpma_sendv(w->h.conn, element, 1, RPMA_F_COMPLETION_ALWAYS, NULL);
}
CALL(element_without_region, without_region(&(struct rpma_sge){NULL, 0, 8}))
CALL(long_element, without_region(&(struct rpma_sge){w->h.mr, 0, SIZE_MAX}))

// Three operations of which the second is refused.
static int fill_batch(void) {
    if (rpma_batch_new(w->h.conn, 3, &w->h.batch) != 0)
        return -1;
    for (uintptr_t i = 0; i < 3; i++)
        if (rpma_batch_write(w->h.batch, w->h.remote, 8, w->h.mr, 16 + i, 24,
                             RPMA_F_COMPLETION_ALWAYS, (void *)(0x1122 + i)) != 0)
            return -1;
    logged_forget();
    return 0;
}

static int post_batch(const char *part) {
    if (fill_batch() != 0)
        return -1;
    fake_fail(part, 1, ENOMEM);
    return rpma_batch_post(w->h.batch, NULL);
}
CALL(refused_batch, post_batch("send request"))
CALL(batch_without_doorbell, post_batch("doorbell"))

static int full_batch(void) {
    return fill_batch() != 0
               ? -1
               : rpma_batch_send(w->h.batch, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL);
}
CALL(new_batch, rpma_batch_new(w->h.conn, 3, &w->h.batch))

static int pack_into(uint8_t size) {
    static unsigned char bytes[64];
    return rpma_conn_private_data_pack(w->h.mr, w->h.pcfg,
                                       &(struct rpma_conn_private_data){bytes, size});
}
CALL(pack_into_little, pack_into(24))

static int unpack(const void *bytes, uint8_t size) {
    struct rpma_mr_remote *remote;
    return rpma_conn_private_data_unpack(
        &(struct rpma_conn_private_data){(void *)(uintptr_t)bytes, size}, &remote, NULL, NULL);
}
CALL(unpack_zeros, unpack((unsigned char[56]){0}, 56))
CALL(unpack_cut, unpack((unsigned char[3]){0xf5, 21, 1}, 3))
CALL(unpack_short_region, unpack((unsigned char[56]){0xf5, 20, 1}, 56))

const struct failure new_failures[] = {
    {"cq: too large", PEER, NULL, 0, large_lent_cq, 0, NULL},
    {"cq: in use", PEER, NULL, 0, lent_cq_in_use, 0, NULL},
    {"cq: of a connection", CONNECTED, NULL, 0, delete_cq_of_connection, 0, NULL},
    {"request: cq and shared channel", PEER, NULL, 0, lent_cq_and_channel, 0, NULL},
    {"request: two receive cqs", PEER, NULL, 0, lent_rcq_and_srq, 0, NULL},
    {"request: cq of a connection", CONNECTED, NULL, 0, cq_of_connection, 0, NULL},
    {"request: cq of another device", PEER, NULL, 0, cq_of_other_device, 0, NULL},
    {"request: too much inline", PEER, NULL, 0, much_inline, 0, NULL},
    {"write: too much inline", CONNECTED, NULL, 0, write_much_inline, 0, NULL},
    {"request: too many elements", PEER, NULL, 0, many_elements, 0, NULL},
    {"request: ack timeout", PEER, "rdma_set_option", ENOSYS, request_with_timeout, 0, NULL},
    {"request: type of service", PEER, "rdma_set_option", ENOSYS, request_with_tos, 0, NULL},
    {"srq: too many elements", PEER, NULL, 0, many_shared_elements, 0, NULL},
    {"list: too long", CONNECTED, NULL, 0, long_list, 0, NULL},
    {"list: no region", CONNECTED, NULL, 0, element_without_region, 0, NULL},
    {"list: too many bytes", CONNECTED, NULL, 0, long_element, 0, NULL},
    {"pack: little room", PEER, NULL, 0, pack_into_little, 0, NULL},
    {"unpack: something else", NOTHING, NULL, 0, unpack_zeros, 0, NULL},
    {"unpack: cut", NOTHING, NULL, 0, unpack_cut, 0, NULL},
    {"unpack: short region", NOTHING, NULL, 0, unpack_short_region, 0, NULL},
    {"batch: refused", CONNECTED, NULL, 0, refused_batch, 0, NULL},
    {"batch: doorbell", CONNECTED, NULL, 0, batch_without_doorbell, 0, NULL},
    {"batch: full", CONNECTED, NULL, 0, full_batch, 0, NULL},
    {"batch: no memory", CONNECTED, "malloc", ENOMEM, new_batch, 0, NULL},
};
const size_t new_failure_count = LENGTH(new_failures);
