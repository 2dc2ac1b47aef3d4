// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failing.h -- the table of failing.c: the calls of each function, and exceptions from the
// rule of failing.c

#ifndef FAILING_H
#define FAILING_H 1

#include "unit.h"

// Functions that create the objects that a function needs.
#define PEER "rpma_conn_cfg_new rpma_cq_cfg_new rpma_srq_cfg_new rpma_ep_cfg_new rpma_peer_new "
#define REGION "rpma_peer_new rpma_mr_reg "
#define CONNECTED "rpma_conn_req_new rpma_conn_req_connect "
#define SHARED "rpma_conn_cfg_set_compl_channel "
#define LISTENING PEER "rpma_ep_listen "
#define ASKED LISTENING "rpma_ep_next_conn_req "
#define BARE LISTENING "rpma_ep_next_incoming "

// Calls of the provider and of libc, in their order.
#define CHANNEL "rdma_create_event_channel "
#define DROP_CHANNEL "rdma_destroy_event_channel "
#define QUEUE "ibv_create_comp_channel ibv_create_cq ibv_req_notify_cq "
#define DROP_QUEUE "ibv_destroy_cq ibv_destroy_comp_channel "
#define RESOLVED \
    "getaddrinfo rdma_getaddrinfo rdma_create_id rdma_resolve_addr rdma_resolve_route "
#define DROP_QP "rdma_destroy_qp " DROP_QUEUE
#define DROP_OUTGOING DROP_QP "rdma_destroy_id "
#define DROP_CONN DROP_OUTGOING DROP_CHANNEL
#define REJECTED "rdma_reject rdma_destroy_id "
#define DROP_INCOMING DROP_QP REJECTED DROP_CHANNEL
#define WAITED "ibv_get_cq_event ibv_req_notify_cq "
#define INCOMING CHANNEL "rdma_migrate_id "
#define LISTENED CHANNEL "getaddrinfo rdma_create_id rdma_bind_addr rdma_listen malloc "

// Errors of waits, in addition to an error of each call. A server that loops until a signal
// handler sets a flag must return from the wait.
// clang-format off
#define REQUEST_FAILURES                                                                    \
    {{"rdma_get_cm_event", EBADF, .condition = "rdma_get_cm_event() failed"},               \
     {"rdma_get_cm_event", EAGAIN, NULL, RPMA_E_NO_EVENT, "errno in"},                                  \
     {"rdma_get_cm_event", ENODATA, NULL, RPMA_E_NO_EVENT, "errno in"},                                 \
     {"rdma_get_cm_event", EAGAIN, NULL, RPMA_E_NO_EVENT, "errno in", .how = NOTHING_TO_READ},          \
     {"rdma_get_cm_event", EINTR, .how = SIGNAL}}
#define WAIT_FAILURES                                                                       \
    {{"ibv_get_cq_event", EAGAIN, NULL, RPMA_E_NO_COMPLETION},                              \
     {"ibv_get_cq_event", EINTR, NULL, RPMA_E_NO_COMPLETION},                               \
     {"ibv_get_cq_event", EAGAIN, NULL, RPMA_E_NO_COMPLETION, .how = NOTHING_TO_READ},      \
     {"ibv_get_cq_event", EINTR, NULL, RPMA_E_NO_COMPLETION, .how = SIGNAL}}
// clang-format on

// The cause of a failure.
enum how { ERROR_NUMBER, NOTHING_TO_READ, SIGNAL };

static const struct subject {
    const char *before, *function; // functions that create the required objects; the tested one
    // Each of these calls fails once, unless it releases an object or has rows in failures[].
    const char *calls;
    const char *again; // a function that creates a consumed object again
    bool remote;       // the argument type, if there is one
    struct failure {
        const char *fails;
        int error;
        const char *undo;      // calls after the failed one; NULL: releases in reverse order
        int code;              // 0: RPMA_E_PROVIDER; RPMA_E_NOMEM for an allocation
        const char *condition; // of the contract; NULL: the only row
        bool gone;             // the first handle is cleared; without undo, all calls are made
        const char *also;      // a later call that also fails, with another error
        enum how how;
    } failures[7]; // the last one has no name
} subjects[] = {
    {"", "rpma_conn_cfg_new", "malloc "},
    {"", "rpma_srq_cfg_new", "malloc "},
    {"", "rpma_ep_cfg_new", "malloc "},
    {"", "rpma_cq_cfg_new", "malloc "},
    {"", "rpma_peer_cfg_new", "malloc "},
    {"", "rpma_peer_cfg_from_descriptor", "malloc "},
    {"", "rpma_mr_remote_from_descriptor", "malloc "},
    // The code depends on the errno of ibv_alloc_pd().
    {"", "rpma_peer_new", "ibv_query_device_ex ibv_alloc_pd malloc ",
     .failures = {{"ibv_alloc_pd", ENOMEM, NULL, RPMA_E_NOMEM, "errno == ENOMEM"},
                  {"ibv_alloc_pd", EACCES},
                  {"ibv_alloc_pd", 0, NULL, RPMA_E_UNKNOWN}}},
    {"rpma_peer_new", "rpma_peer_delete", "ibv_dealloc_pd ",
     .failures = {{"ibv_dealloc_pd", EBUSY}}},
    {"rpma_peer_new", "rpma_mr_reg", "ibv_reg_mr malloc "},
    {REGION, "rpma_mr_dereg", "ibv_dereg_mr ", .failures = {{"ibv_dereg_mr", EBUSY}}},
    {REGION, "rpma_mr_advise", "ibv_advise_mr ",
     .failures = {{"ibv_advise_mr", EFAULT, NULL, RPMA_E_INVAL, "in {EFAULT, EINVAL}"},
                  {"ibv_advise_mr", EINVAL, NULL, RPMA_E_INVAL, "in {EFAULT, EINVAL}"},
                  {"ibv_advise_mr", EOPNOTSUPP, NULL, RPMA_E_NOSUPP},
                  {"ibv_advise_mr", ENOMEM}}},

    {PEER, "rpma_cq_new", "malloc " QUEUE},
    // If only the channel is left, no function can use the handle, so it is cleared.
    {PEER "rpma_cq_new", "rpma_cq_delete", DROP_QUEUE,
     .failures = {{"ibv_destroy_cq", EBUSY},
                  {"ibv_destroy_comp_channel", EBUSY, .gone = true}}},
    {PEER, "rpma_srq_new", "ibv_create_srq malloc " QUEUE},
    {PEER "rpma_srq_new", "rpma_srq_delete", "ibv_destroy_srq " DROP_QUEUE,
     .failures = {{"ibv_destroy_srq", EBUSY},
                  {"ibv_destroy_cq", EBUSY, .gone = true},
                  {"ibv_destroy_comp_channel", EBUSY, .gone = true}}},

    {"rpma_peer_new", "rpma_ep_listen", LISTENED},
    {LISTENING, "rpma_ep_shutdown", "rdma_destroy_id " DROP_CHANNEL,
     .failures = {{"rdma_destroy_id", EBUSY}}},
    {PEER "rpma_ep_cfg_set_ipv6_only", "rpma_ep_listen_with", LISTENED},
    // The allocations are for the request and its data.
    {LISTENING, "rpma_ep_next_incoming",
     "rdma_get_cm_event malloc malloc rdma_ack_cm_event " INCOMING,
     .failures = REQUEST_FAILURES},
    // The request is unchanged.
    {BARE, "rpma_conn_req_setup", QUEUE "rdma_create_qp_ex "},
    {PEER "rpma_conn_cfg_set_ack_timeout rpma_conn_req_start rpma_conn_req_resolve",
     "rpma_conn_req_setup", QUEUE "rdma_create_qp_ex rdma_set_option "},
    {BARE, "rpma_conn_req_reject", REJECTED DROP_CHANNEL, "rpma_ep_next_incoming",
     .failures = {{"rdma_reject", EIO, .gone = true, .also = "rdma_destroy_id"},
                  {"rdma_destroy_id", EIO, .gone = true}}},
    {ASKED, "rpma_conn_req_reject", "rdma_reject " DROP_QP "rdma_destroy_id " DROP_CHANNEL,
     "rpma_ep_next_conn_req",
     .failures = {{"ibv_destroy_cq", EIO, .gone = true, .also = "rdma_destroy_id"},
                  {"ibv_destroy_comp_channel", EIO, .gone = true}}},
    {PEER, "rpma_conn_req_start",
     "getaddrinfo malloc malloc " CHANNEL "rdma_create_id rdma_resolve_addr "},
    {PEER "rpma_conn_cfg_set_tos", "rpma_conn_req_start",
     CHANNEL "rdma_create_id rdma_set_option rdma_resolve_addr "},
    // The allocations are for the request and its data.
    {LISTENING, "rpma_ep_next_conn_req",
     "rdma_get_cm_event malloc " QUEUE "rdma_create_qp_ex malloc rdma_ack_cm_event " INCOMING,
     .failures = REQUEST_FAILURES},
    {LISTENING "rpma_conn_cfg_set_ack_timeout", "rpma_ep_next_conn_req",
     "rdma_get_cm_event " QUEUE "rdma_create_qp_ex rdma_set_option rdma_ack_cm_event " INCOMING,
     .failures = REQUEST_FAILURES},

    {PEER, "rpma_conn_req_new",
     RESOLVED "malloc " QUEUE "rdma_create_qp_ex rdma_freeaddrinfo "},
    // The ACK timeout applies to the local queue pair only, on InfiniBand and RoCE: after the
    // route is resolved, it is not part of the request to the peer (Linux 7.3,
    // drivers/infiniband/core/cma.c, cma_resolve_iboe_route()).
    {PEER "rpma_conn_cfg_set_ack_timeout", "rpma_conn_req_new",
     RESOLVED QUEUE "rdma_create_qp_ex rdma_set_option rdma_freeaddrinfo "},
    {PEER "rpma_conn_cfg_set_tos", "rpma_conn_req_new",
     "rdma_getaddrinfo rdma_create_id rdma_set_option rdma_resolve_addr "
     "rdma_resolve_route " QUEUE "rdma_create_qp_ex rdma_freeaddrinfo "},
    {PEER "rpma_conn_req_new", "rpma_conn_req_delete", DROP_OUTGOING,
     .failures = {{"ibv_destroy_cq", EIO, .gone = true, .also = "rdma_destroy_id"},
                  {"ibv_destroy_comp_channel", EIO, .gone = true, .also = "rdma_destroy_id"},
                  {"rdma_destroy_id", EIO, .condition = "outgoing: rdma_destroy_id()",
                   .gone = true}}},
    {ASKED, "rpma_conn_req_delete", DROP_INCOMING,
     .failures = {{"ibv_destroy_cq", EIO, .gone = true},
                  {"ibv_destroy_comp_channel", EIO, .gone = true},
                  {"rdma_reject", EIO, .gone = true},
                  {"rdma_destroy_id", EIO, .condition = "incoming:", .gone = true}}},

    // A failure consumes the request and rejects the peer.
    {PEER "rpma_conn_req_new", "rpma_conn_req_connect",
     CHANNEL "rdma_migrate_id mmap ibv_reg_mr malloc rdma_connect ", "rpma_conn_req_new",
     .failures = {{"rdma_create_event_channel", EMFILE, DROP_OUTGOING, .gone = true},
                  {"rdma_migrate_id", ENODEV, DROP_CHANNEL DROP_OUTGOING, .gone = true},
                  {"rdma_connect", EINVAL, DROP_CONN, .gone = true},
                  {"ibv_reg_mr", EIO, DROP_CONN, .gone = true},
                  {"mmap", 0, DROP_CONN, .gone = true},
                  {"malloc", 0, "ibv_dereg_mr " DROP_CONN, .gone = true}}},
    {ASKED, "rpma_conn_req_connect", "mmap ibv_reg_mr malloc rdma_accept ",
     "rpma_ep_next_conn_req",
     .failures = {{"rdma_accept", ECONNRESET, DROP_INCOMING, .gone = true},
                  {"ibv_reg_mr", EIO, DROP_INCOMING, .gone = true},
                  {"mmap", 0, DROP_INCOMING, .gone = true},
                  {"malloc", 0, "ibv_dereg_mr " DROP_INCOMING, .gone = true}}},
    {PEER CONNECTED, "rpma_conn_disconnect", "rdma_disconnect "},
    {PEER CONNECTED, "rpma_batch_new", "malloc malloc "},
    {PEER CONNECTED, "rpma_conn_delete", DROP_CONN},
    {ASKED "rpma_conn_req_connect", "rpma_conn_delete", DROP_CONN},
    {PEER "rpma_conn_cfg_set_rcq_size " CONNECTED, "rpma_conn_delete",
     DROP_QP DROP_QUEUE "rdma_destroy_id " DROP_CHANNEL},
    // All steps are executed, and the first failure is returned.
    {PEER SHARED CONNECTED, "rpma_conn_delete",
     "rdma_destroy_qp ibv_destroy_cq rdma_destroy_id ibv_destroy_comp_channel " DROP_CHANNEL,
     .failures = {{"ibv_destroy_cq", EIO, .gone = true, .also = "rdma_destroy_id"},
                  {"ibv_destroy_cq", EIO, .gone = true, .also = "ibv_destroy_comp_channel"},
                  {"rdma_destroy_id", EIO, .gone = true, .also = "ibv_destroy_comp_channel"},
                  {"ibv_destroy_comp_channel", EIO, .gone = true}}},
    {PEER CONNECTED, "rpma_conn_next_event", "rdma_get_cm_event rdma_ack_cm_event ",
     .failures = {{"rdma_ack_cm_event", EIO, ""},
                  {"rdma_get_cm_event", EAGAIN, NULL, RPMA_E_NO_EVENT, "errno in"},
                  {"rdma_get_cm_event", ENODATA, NULL, RPMA_E_NO_EVENT, "errno in"},
                  {"rdma_get_cm_event", EAGAIN, NULL, RPMA_E_NO_EVENT, "errno in",
                   .how = NOTHING_TO_READ},
                  {"rdma_get_cm_event", EINTR, .how = SIGNAL}}},
    {PEER CONNECTED, "rpma_cq_wait", WAITED, .failures = WAIT_FAILURES},
    {PEER CONNECTED, "rpma_conn_completion_wait", WAITED, .failures = WAIT_FAILURES},
    {PEER SHARED CONNECTED, "rpma_conn_wait", WAITED, .failures = WAIT_FAILURES},
    {PEER CONNECTED, "rpma_cq_take_event", "ibv_get_cq_event ", .failures = WAIT_FAILURES},
    {PEER CONNECTED, "rpma_cq_arm", "ibv_req_notify_cq "},
    {PEER CONNECTED, "rpma_cq_set_moderation", "ibv_modify_cq ",
     .failures = {{"ibv_modify_cq", EOPNOTSUPP, NULL, RPMA_E_NOSUPP},
                  {"ibv_modify_cq", ENOSYS, NULL, RPMA_E_NOSUPP}}},
    {PEER "rpma_srq_new", "rpma_srq_set_limit", "ibv_modify_srq ",
     .failures = {{"ibv_modify_srq", EOPNOTSUPP, NULL, RPMA_E_NOSUPP},
                  {"ibv_modify_srq", ENOSYS, NULL, RPMA_E_NOSUPP}}},
    {PEER, "rpma_peer_next_event", "ibv_get_async_event ibv_ack_async_event ",
     .failures = {{"ibv_get_async_event", EAGAIN, NULL, RPMA_E_NO_EVENT},
                  {"ibv_get_async_event", EAGAIN, NULL, RPMA_E_NO_EVENT,
                   .how = NOTHING_TO_READ},
                  {"ibv_get_async_event", EINTR, .how = SIGNAL}}},

    {"", "rpma_utils_get_ibv_context",
     "getaddrinfo rdma_create_id rdma_bind_addr rdma_destroy_id "},
    {"", "rpma_utils_get_ibv_context",
     "getaddrinfo rdma_getaddrinfo rdma_create_id rdma_resolve_addr rdma_destroy_id "
     "rdma_freeaddrinfo ",
     .remote = true},
    {"", "rpma_utils_ibv_context_is_odp_capable", "ibv_query_device_ex "},
};

#endif // FAILING_H
