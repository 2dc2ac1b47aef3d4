// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure_calls_new.c -- the calls of failure_lines.tsv that are new with 1.4 and 1.5

#include "failure_lines.h"

#define LONG ((size_t)UINT32_MAX + 1)

REQUEST(request_with_timeout, ack_timeout, 200)
REQUEST(request_with_tos, tos, 0x68)
REQUEST(many_elements, max_sge, 33)
BEFORE(with_many_elements, fake_device()->max_sge = 200)
REQUEST(too_many_elements, max_sge, 129)
REQUEST(native_request, flush_mode, RPMA_FLUSH_MODE_NATIVE)
REQUEST(much_inline, inline_size, 100000)
SHARED_QUEUE(large_shared_rcq, rcq_size, 5000000)
SHARED_QUEUE(many_shared_elements, max_sge, 28)

static int start(void) {
    return rpma_conn_req_start(w.h.peer, "there", "7205", NULL, &w.h.req);
}
CALL(start_there, start())
CALLED(resolve_early) {
    fake_device()->silent = true;
    (void)start();
    logged_forget();
    return rpma_conn_req_resolve(w.h.req);
}
static int resolve_in_vain(const char *event, int error) {
    fake_fail(event, 1, error);
    (void)start();
    logged_forget();
    return rpma_conn_req_resolve(w.h.req);
}
CALL(resolve_silent_address, resolve_in_vain("address event", ETIMEDOUT))
CALL(resolve_no_route, resolve_in_vain("route event", ENETUNREACH))
CALLED(resolve_to_other_device) {
    (void)rpma_peer_new(fake_context(1), &w.h.peer);
    (void)start();
    return rpma_conn_req_resolve(w.h.req);
}
CALLED(resolve_again) {
    (void)resolve_silent_address();
    logged_forget();
    return rpma_conn_req_resolve(w.h.req);
}
CALLED(set_up_early) {
    (void)resolve_early();
    logged_forget();
    return rpma_conn_req_setup(w.h.req, NULL);
}
CALLED(set_up_twice) {
    (void)start();
    (void)rpma_conn_req_resolve(w.h.req);
    (void)rpma_conn_req_setup(w.h.req, NULL);
    logged_forget();
    return rpma_conn_req_setup(w.h.req, NULL);
}
CALLED(connect_early) {
    (void)resolve_early();
    logged_forget();
    return rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn);
}
CALLED(descriptor_of_one_step) {
    int fd;
    return rpma_conn_req_get_event_fd(w.h.req, &fd);
}
CALL(reject_outgoing, rpma_conn_req_reject(&w.h.req, NULL))

static int take(void) {
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    const int code = rpma_ep_next_incoming(w.h.ep, &w.h.req);
    logged_forget();
    return code;
}
CALLED(reject_at_length) {
    static char reason[149];
    const struct rpma_conn_private_data why = {reason, sizeof(reason)};
    (void)take();
    return rpma_conn_req_reject(&w.h.req, &why);
}

static struct rpma_ep_cfg *ep_cfg(void) {
    (void)rpma_ep_cfg_new(&w.h.ep_cfg);
    return w.h.ep_cfg;
}
CALL(large_backlog, rpma_ep_cfg_set_backlog(ep_cfg(), UINT32_MAX))
CALLED(listen_on_ipv6_only) {
    fake_device()->addresses = 2;
    fake_fail("rdma_bind_addr", 1, EADDRNOTAVAIL);
    (void)rpma_ep_cfg_set_ipv6_only(ep_cfg(), true);
    return rpma_ep_listen_with(w.h.peer, "there", "7205", w.h.ep_cfg, &w.h.ep);
}
CALLED(source_by_name) {
    (void)rpma_conn_cfg_new(&w.h.cfg);
    return rpma_conn_cfg_set_source_addr(w.h.cfg, "here");
}

static int new_cq(int (*set)(struct rpma_cq_cfg *, uint32_t), uint32_t value) {
    (void)rpma_cq_cfg_new(&w.h.cq_cfg);
    (void)set(w.h.cq_cfg, value);
    return rpma_cq_new(w.h.peer, w.h.cq_cfg, &w.h.lent_cq);
}
CALL(large_lent_cq, new_cq(rpma_cq_cfg_set_size, 5000000))
CALL(cq_of_no_vector, new_cq(rpma_cq_cfg_set_comp_vector, 4))
CALL(delete_lent_cq, rpma_cq_delete(&w.h.lent_cq))

static int request_on(int (*set)(struct rpma_conn_cfg *, struct rpma_cq *), struct rpma_cq *cq,
                      bool shared_channel, struct rpma_srq *srq) {
    (void)rpma_conn_cfg_new(&w.h.cfg);
    (void)set(w.h.cfg, cq);
    (void)rpma_conn_cfg_set_compl_channel(w.h.cfg, shared_channel);
    (void)rpma_conn_cfg_set_srq(w.h.cfg, srq);
    logged_forget();
    return ask_for_connection();
}

static struct rpma_cq *lent_cq(unsigned device) {
    struct rpma_peer *peer = w.h.peer;
    if (device > 0)
        (void)rpma_peer_new(fake_context((int)device), &peer);
    (void)rpma_cq_new(peer, NULL, &w.h.lent_cq);
    return w.h.lent_cq;
}

static struct rpma_srq *srq_with_rcq(void) {
    (void)rpma_srq_new(w.h.peer, NULL, &w.h.srq);
    return w.h.srq;
}
CALL(lent_cq_and_channel, request_on(rpma_conn_cfg_set_cq, lent_cq(0), true, NULL))
CALL(lent_rcq_and_srq, request_on(rpma_conn_cfg_set_rcq, lent_cq(0), false, srq_with_rcq()))
CALL(cq_of_connection, request_on(rpma_conn_cfg_set_cq, world_cq(&w), false, NULL))
CALL(cq_of_other_device, request_on(rpma_conn_cfg_set_cq, lent_cq(1), false, NULL))

CALLED(lent_cq_in_use) {
    (void)request_on(rpma_conn_cfg_set_cq, lent_cq(0), false, NULL);
    logged_forget();
    return delete_lent_cq();
}

CALLED(delete_cq_of_connection) {
    struct rpma_cq *cq = world_cq(&w);
    return rpma_cq_delete(&cq);
}

static int set_limit(uint32_t limit) {
    (void)rpma_srq_new(w.h.peer, NULL, &w.h.srq);
    logged_forget();
    return rpma_srq_set_limit(w.h.srq, limit);
}
CALL(limit, set_limit(5))
CALL(large_limit, set_limit(128))

static int moderate(uint32_t period_us) {
    (void)rpma_cq_new(w.h.peer, NULL, &w.h.lent_cq);
    logged_forget();
    return rpma_cq_set_moderation(w.h.lent_cq, 16, period_us);
}
CALL(moderation, moderate(50))
CALL(slow_moderation, moderate(65536))
CALL(arm, rpma_cq_arm(world_cq(&w), true))
CALL(take_event, rpma_cq_take_event(world_cq(&w)))

CALL(device_event, rpma_peer_next_event(w.h.peer, &(struct rpma_peer_event){0}))

CALLED(write_much_inline) {
    return rpma_write(w.h.conn, w.h.remote, 0, w.h.mr, 16, 24,
                      RPMA_F_COMPLETION_ALWAYS | RPMA_F_INLINE, NULL);
}

// Posts three operations, of which the third is invalid.
static int post_wrong(struct rpma_work wrong) {
    const struct rpma_work send = {.type = RPMA_WORK_SEND, .flags = RPMA_F_COMPLETION_ALWAYS};
    const struct rpma_work work[] = {send, send, wrong};
    return rpma_post(w.h.conn, work, LENGTH(work), NULL);
}
#define POST_WRONG(name, ...) \
    CALL(name, post_wrong((struct rpma_work){.flags = RPMA_F_COMPLETION_ALWAYS, __VA_ARGS__}))
POST_WRONG(long_list, .type = RPMA_WORK_SEND, .nsge = 2,
           .sgl = (const struct rpma_sge[2]){{w.h.mr, 16, 8}, {w.h.mr, 32, 16}})
POST_WRONG(element_without_region, .type = RPMA_WORK_SEND, .nsge = 1,
           .sgl = &(const struct rpma_sge){NULL, 0, 8})
POST_WRONG(long_element, .type = RPMA_WORK_SEND, .nsge = 1,
           .sgl = &(const struct rpma_sge){w.h.mr, 0, SIZE_MAX})
POST_WRONG(post_of_no_kind, .remote = NULL)
POST_WRONG(post_odd_atomic, .type = RPMA_WORK_ATOMIC_WRITE, .remote = w.h.remote,
           .remote_offset = 12)
POST_WRONG(post_flush_behind, .type = RPMA_WORK_FLUSH, .remote = w.h.remote,
           .remote_offset = 64, .flush_len = 8, .flush_type = RPMA_FLUSH_TYPE_VISIBILITY)
POST_WRONG(post_long_flush, .type = RPMA_WORK_FLUSH, .remote = w.h.remote, .flush_len = LONG,
           .flush_type = RPMA_FLUSH_TYPE_VISIBILITY)
POST_WRONG(post_flush_of_no_type, .type = RPMA_WORK_FLUSH, .remote = w.h.remote, .flush_len = 8,
           .flush_type = (enum rpma_flush_type)2)
POST_WRONG(post_reserved, .type = RPMA_WORK_SEND, .reserved1 = 5)
POST_WRONG(post_atomic_list, .type = RPMA_WORK_COMPARE_SWAP, .remote = w.h.remote,
           .local = {w.h.mr, 0, 8}, .nsge = 1, .sgl = &(const struct rpma_sge){w.h.mr, 0, 8})
POST_WRONG(post_without_local, .type = RPMA_WORK_WRITE, .remote = w.h.remote)
POST_WRONG(post_to_nothing, .type = RPMA_WORK_WRITE, .remote_offset = 8)
CALL(post_with_wrong_flags,
     post_wrong((struct rpma_work){.type = RPMA_WORK_FLUSH,
                                   .remote = w.h.remote,
                                   .flush_len = 8,
                                   .flags = RPMA_F_COMPLETION_ALWAYS | RPMA_F_INLINE}))

static int post_atomic(bool states, size_t offset, size_t length) {
    unsigned char form[] = {0xf5, 1, 1, 22, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0,
                            64,   0, 0, 0,  0, 0, 0, 0, 1, 0, 0, 0, 1, states};
    struct rpma_mr_remote *words = NULL;
    uint32_t nmrs = 1;
    (void)rpma_conn_private_data_unpack(
        &(const struct rpma_conn_private_data){form, sizeof(form)}, &words, &nmrs, NULL, NULL,
        NULL);
    logged_forget();
    const int ret = post_wrong((struct rpma_work){.type = RPMA_WORK_FETCH_ADD,
                                                  .remote = words,
                                                  .remote_offset = offset,
                                                  .local = {w.h.mr, 0, length},
                                                  .flags = RPMA_F_COMPLETION_ALWAYS});
    (void)rpma_mr_remote_delete(&words);
    return ret;
}
CALL(post_atomic_between_words, post_atomic(true, 12, 8))
CALL(post_atomic_of_bytes, post_atomic(true, 8, 4))
CALL(post_atomic_to_any_region, post_atomic(false, 8, 8))
CALL(post_solicited_write,
     post_wrong((struct rpma_work){.type = RPMA_WORK_WRITE,
                                   .remote = w.h.remote,
                                   .local = {w.h.mr, 0, 8},
                                   .flags = RPMA_F_COMPLETION_ALWAYS | RPMA_F_SOLICITED}))
CALLED(reg_without_atomics) {
    struct rpma_peer *peer = NULL;
    fake_device()->atomic_cap = IBV_ATOMIC_NONE;
    (void)rpma_peer_new(fake_context(0), &peer);
    const int ret =
        rpma_mr_reg(peer, w.memory, 8, RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_ATOMIC, &w.h.mr);
    (void)rpma_peer_delete(&peer);
    return ret;
}

// Arguments of single functions.
static int write_with(struct rpma_mr_remote *dst, const struct rpma_mr_local *src,
                      size_t length, int flags) {
    return rpma_write(w.h.conn, dst, 0, src, 0, length, flags, NULL);
}
CALL(long_write, write_with(w.h.remote, w.h.mr, LONG, RPMA_F_COMPLETION_ALWAYS))
CALL(write_without_flags, write_with(w.h.remote, w.h.mr, 8, 0))
CALL(write_of_nothing, write_with(NULL, NULL, 8, RPMA_F_COMPLETION_ALWAYS))
CALL(send_nothing, rpma_send(w.h.conn, NULL, 0, 24, RPMA_F_COMPLETION_ALWAYS, NULL))
CALL(odd_atomic_write, rpma_atomic_write(w.h.conn, w.h.remote, 12, (const char *)w.memory,
                                         RPMA_F_COMPLETION_ALWAYS, NULL))
static int flush_with(size_t offset, int type) {
    return rpma_flush(w.h.conn, w.h.remote, offset, 8, (enum rpma_flush_type)type,
                      RPMA_F_COMPLETION_ALWAYS, NULL);
}
CALL(flush_behind, flush_with(64, RPMA_FLUSH_TYPE_VISIBILITY))
CALL(flush_of_no_type, flush_with(0, 2))
CALL(long_advice, rpma_mr_advise(w.h.mr, 0, LONG, 0, 0))
CALL(reg_nothing, rpma_mr_reg(w.h.peer, w.memory, 0, RPMA_MR_USAGE_READ_SRC, &w.h.mr))
CALL(reg_for_unknown, rpma_mr_reg(w.h.peer, w.memory, 8, 0x2ff, &w.h.mr))
CALL(poll_none, rpma_cq_get_wc(world_cq(&w), 0, &w.h.wc, NULL))
CALL(context_of_no_type,
     rpma_utils_get_ibv_context("here", (enum rpma_util_ibv_context_type)2, &w.h.context))
CALL(log_threshold, rpma_log_set_threshold((enum rpma_log_threshold)2, RPMA_LOG_LEVEL_INFO))
CALL(log_level, rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)6))
CALL(connect_without_bytes,
     rpma_conn_req_connect(&w.h.req, &(struct rpma_conn_private_data){w.memory, 0}, &w.h.conn))
// Sets what no connection can have.
#define SETTING(name, value)                             \
    CALLED(wrong_##name) {                               \
        (void)rpma_conn_cfg_new(&w.h.cfg);               \
        return rpma_conn_cfg_set_##name(w.h.cfg, value); \
    }
SETTING(timeout, -1)
SETTING(ack_timeout, 9000000)
SETTING(retry_count, 8)
SETTING(rnr_retry_count, 8)
SETTING(max_sge, 0)
SETTING(flush_mode, (enum rpma_flush_mode)7)

static const uintptr_t contexts[] = {0x1122, 0x1123, 0x1124};

static struct rpma_work write_of(size_t i) {
    return (struct rpma_work){.type = RPMA_WORK_WRITE,
                              .remote = w.h.remote,
                              .remote_offset = 8,
                              .local = {w.h.mr, 16 + i, 24},
                              .flags = RPMA_F_COMPLETION_ALWAYS,
                              .op_context = (const void *)contexts[i]};
}

// Posts three operations, of which the second is refused.
static int post_array(const char *part, int error) {
    const struct rpma_work work[] = {write_of(0), write_of(1), write_of(2)};
    fake_fail(part, 1, error);
    return rpma_post(w.h.conn, work, LENGTH(work), NULL);
}
CALL(refused_post, post_array("send request", EIO))
CALL(post_into_full_queue, post_array("send request", ENOMEM))

// The last one of both is invalid, and nobody hears of it, because the first finds no room.
CALLED(post_wrong_to_full_queue) {
    fake_fail("send request", 1, ENOMEM);
    return post_wrong((struct rpma_work){0});
}

static int receive_many(int error) {
    const struct rpma_receive receives[] = {
        {.local = {w.h.mr, 16, 24}, .op_context = (const void *)contexts[0]}, {.reserved = 1}};
    fake_fail("ibv_post_recv", 1, error);
    return rpma_recv_many(w.h.conn, receives, LENGTH(receives), NULL);
}
CALL(refused_receives, receive_many(EIO))
CALL(receives_into_full_queue, receive_many(ENOMEM))
CALL(receive_with_reserved,
     rpma_recv_many(w.h.conn, &(const struct rpma_receive){.reserved = 1}, 1, NULL))

static int fill_batch(void) {
    if (rpma_batch_new(w.h.conn, 3, &w.h.batch) != 0)
        return -1;
    for (size_t i = 0; i < 3; i++) {
        const struct rpma_work write = write_of(i);
        if (rpma_batch_add(w.h.batch, &write) != 0)
            return -1;
    }
    logged_forget();
    return 0;
}

static int post_batch(const char *part, int error) {
    if (fill_batch() != 0)
        return -1;
    fake_fail(part, 1, error);
    return rpma_batch_post(w.h.batch, NULL);
}
CALL(refused_batch, post_batch("send request", EIO))
CALL(batch_into_full_queue, post_batch("send request", ENOMEM))
CALL(batch_without_doorbell, post_batch("doorbell", EIO))

CALLED(full_batch) {
    const struct rpma_work one_more = write_of(0);
    return fill_batch() != 0 ? -1 : rpma_batch_add(w.h.batch, &one_more);
}
CALLED(set_beyond) {
    const struct rpma_work write = write_of(0);
    return fill_batch() != 0 ? -1 : rpma_batch_set(w.h.batch, 3, &write);
}
CALL(empty_batch, rpma_batch_new(w.h.conn, 0, &w.h.batch))
CALL(new_batch, rpma_batch_new(w.h.conn, 3, &w.h.batch))
CALL(large_batch, rpma_batch_new(w.h.conn, 5000000, &w.h.batch))

CALL(flush_not_stated, rpma_flush(w.h.conn, w.h.remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY,
                                  RPMA_F_COMPLETION_ALWAYS, NULL))

static int pack_into(uint8_t size) {
    static unsigned char bytes[64];
    return rpma_conn_private_data_pack((const struct rpma_mr_local *const *)&w.h.mr, 1,
                                       w.h.pcfg, "hello", 5,
                                       &(struct rpma_conn_private_data){bytes, size});
}
CALL(pack_into_little, pack_into(34))

static int unpack(const void *bytes, uint8_t size, uint32_t room) {
    struct rpma_mr_remote *remote;
    return rpma_conn_private_data_unpack(
        &(struct rpma_conn_private_data){(void *)(uintptr_t)bytes, size}, &remote, &room, NULL,
        NULL, NULL);
}
CALL(unpack_zeros, unpack((unsigned char[56]){0}, 56, 1))
CALL(unpack_version, unpack((unsigned char[56]){0xf5, 2}, 56, 1))
CALL(unpack_cut, unpack((unsigned char[6]){0xf5, 1, 1, 22, 2, 3}, 6, 1))
CALL(unpack_short_region, unpack((unsigned char[56]){0xf5, 1, 1, 21}, 56, 1))
CALL(unpack_short_statement, unpack((unsigned char[56]){0xf5, 1, 0, 0, 1}, 56, 1))
CALL(unpack_into_little, unpack((unsigned char[56]){0xf5, 1, 2, 22}, 56, 1))
