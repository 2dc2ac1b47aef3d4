// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// connect.c -- programs of librdmacm that a test runs on the fabric:
//   connect serve COUNT                accepts, and waits until all are disconnected
//   connect open ADDRESS COUNT         opens COUNT connections, then closes them
// With "shared" after COUNT, all connections of a program have one CQ, without a channel.
//   connect fork COUNT                 serves with synchronous IDs, which a child cannot use
//   connect talk ADDRESS COUNT         sends a message on each of COUNT connections in turn
//   connect die ADDRESS                is killed while its request waits
//   connect cancel                     cancels threads during their calls
//   connect refuse                     fails to accept the request of a dead client

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT "7471"
#define MUST(condition)                                                                  \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

static struct rdma_addrinfo *resolve(const char *address, int flags) {
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;
    MUST(rdma_getaddrinfo(address, PORT, &hints, &found) == 0);
    return found;
}

static struct rdma_cm_event *take_next(struct rdma_event_channel *channel) {
    struct pollfd poll_fd = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    do {
        MUST(poll(&poll_fd, 1, 20000) == 1);
        MUST(rdma_get_cm_event(channel, &event) == 0);
    } while (event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT && rdma_ack_cm_event(event) == 0);
    return event;
}

static struct rdma_cm_event *take(struct rdma_event_channel *channel,
                                  enum rdma_cm_event_type type) {
    struct rdma_cm_event *const event = take_next(channel);
    if (event->event != type) {
        fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event),
                rdma_event_str(type));
        exit(1);
    }
    return event;
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type) {
    MUST(rdma_ack_cm_event(take(channel, type)) == 0);
}

static bool is_shared;

static int create_qp(struct rdma_cm_id *id) {
    static struct ibv_cq *cq;
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1};
    if (is_shared && !cq)
        MUST((cq = ibv_create_cq(id->verbs, 1000, NULL, NULL, 0)) != NULL);
    attr.send_cq = attr.recv_cq = cq;
    return rdma_create_qp(id, NULL, &attr);
}

static struct rdma_cm_id *listen_on(struct rdma_event_channel *channel) {
    struct rdma_addrinfo *address = resolve(NULL, RAI_PASSIVE);
    struct rdma_cm_id *id;
    MUST(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
    MUST(rdma_bind_addr(id, address->ai_src_addr) == 0);
    MUST(rdma_listen(id, 0) == 0);
    rdma_freeaddrinfo(address);
    return id;
}

static void serve_clients(int count) {
    struct rdma_event_channel *channel = rdma_create_event_channel();
    MUST(channel);
    struct rdma_cm_id *listener = listen_on(channel);
    for (int established = 0, closed = 0; closed < count;) {
        struct rdma_cm_event *event;
        MUST(rdma_get_cm_event(channel, &event) == 0);
        struct rdma_cm_id *id = event->id;
        const enum rdma_cm_event_type type = event->event;
        MUST(rdma_ack_cm_event(event) == 0);
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
            MUST(create_qp(id) == 0);
            MUST(rdma_accept(id, NULL) == 0);
        } else if (type == RDMA_CM_EVENT_ESTABLISHED) {
            established++;
        } else if (type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
            MUST(type == RDMA_CM_EVENT_DISCONNECTED && established == count);
            rdma_destroy_qp(id);
            MUST(rdma_destroy_id(id) == 0);
            closed++;
        }
    }
    MUST(rdma_destroy_id(listener) == 0);
    rdma_destroy_event_channel(channel);
}

static struct rdma_cm_id *open_one(struct rdma_event_channel *channel, const char *address) {
    struct rdma_addrinfo *found = resolve(address, 0);
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    struct rdma_cm_id *id;
    MUST(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
    MUST(rdma_resolve_addr(id, NULL, found->ai_dst_addr, 2000) == 0);
    rdma_freeaddrinfo(found);
    expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    MUST(rdma_resolve_route(id, 2000) == 0);
    expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    MUST(create_qp(id) == 0);
    MUST(rdma_connect(id, &param) == 0);
    return id;
}

static void open_all(const char *address, int count) {
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id **ids = calloc((size_t)count, sizeof(struct rdma_cm_id *));
    MUST(channel && ids);
    for (int i = 0; i < count; i++) {
        ids[i] = open_one(channel, address);
        expect(channel, RDMA_CM_EVENT_ESTABLISHED);
    }
    for (int i = 0; i < count; i++)
        MUST(rdma_disconnect(ids[i]) == 0);
    for (int i = 0; i < count; i++)
        expect(channel, RDMA_CM_EVENT_DISCONNECTED);
    for (int i = 0; i < count; i++) {
        rdma_destroy_qp(ids[i]);
        MUST(rdma_destroy_id(ids[i]) == 0);
    }
    rdma_destroy_event_channel(channel);
    free(ids);
}

static void die(const char *address) {
    struct rdma_event_channel *channel = rdma_create_event_channel();
    MUST(channel);
    open_one(channel, address);
    raise(SIGKILL);
}

static void refuse(void) {
    struct rdma_event_channel *channel = rdma_create_event_channel();
    MUST(channel);
    struct rdma_cm_id *listener = listen_on(channel);
    struct rdma_cm_event *event = take(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = event->id;
    MUST(rdma_ack_cm_event(event) == 0);
    // The request can be accepted until the fabric detects the death.
    struct rdma_conn_param param = {.rnr_retry_count = 7};
    if (create_qp(id) == 0) {
        if (rdma_accept(id, &param) == 0) {
            event = take_next(channel);
            const enum rdma_cm_event_type type = event->event;
            MUST(rdma_ack_cm_event(event) == 0);
            if (type == RDMA_CM_EVENT_ESTABLISHED) // possible only on iWARP
                expect(channel, RDMA_CM_EVENT_DISCONNECTED);
            else
                MUST(type == RDMA_CM_EVENT_REJECTED);
        }
        rdma_destroy_qp(id);
    }
    MUST(rdma_destroy_id(id) == 0 && rdma_destroy_id(listener) == 0);
    rdma_destroy_event_channel(channel);
}

static void exchange(struct rdma_cm_id *id, int is_sender) {
    static char text[16] = "hello";
    struct ibv_wc wc;
    struct ibv_mr *mr = rdma_reg_msgs(id, text, sizeof(text));
    MUST(mr);
    if (is_sender)
        MUST(rdma_post_send(id, NULL, text, sizeof(text), mr, 0) == 0 &&
             rdma_get_send_comp(id, &wc) == 1);
    else
        MUST(rdma_get_recv_comp(id, &wc) == 1 && wc.byte_len == sizeof(text));
    MUST(wc.status == IBV_WC_SUCCESS);
    rdma_dereg_mr(mr);
}

static void use_in_child(struct rdma_cm_id *id) {
    struct rdma_cm_event *event;
    MUST(rdma_accept(id, NULL) == -1 && errno == EACCES);
    MUST(rdma_get_cm_event(id->channel, &event) == -1 && errno == EACCES);
    MUST(rdma_destroy_id(id) == -1 && errno == EACCES);
    rdma_destroy_event_channel(id->channel); // only closes the descriptor of the child
    _exit(0);
}

static void serve_request(struct rdma_cm_id *id) {
    char text[16];
    struct ibv_mr *mr = rdma_reg_msgs(id, text, sizeof(text));
    MUST(mr && rdma_post_recv(id, NULL, text, sizeof(text), mr) == 0);
    MUST(rdma_accept(id, NULL) == 0);
    exchange(id, 0);
    MUST(strcmp(text, "hello") == 0);
    MUST(rdma_disconnect(id) == 0);
    rdma_dereg_mr(mr);
    rdma_destroy_ep(id);
}

static struct ibv_qp_init_attr sync_attr(void) {
    return (struct ibv_qp_init_attr){
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .sq_sig_all = 1};
}

static void serve_by_fork(int count) {
    struct rdma_addrinfo *address = resolve(NULL, RAI_PASSIVE);
    struct ibv_qp_init_attr attr = sync_attr();
    struct rdma_cm_id *listener, *id;
    MUST(rdma_create_ep(&listener, address, NULL, &attr) == 0);
    MUST(rdma_listen(listener, 0) == 0);
    for (int i = 0; i < count; i++) {
        int status;
        MUST(rdma_get_request(listener, &id) == 0);
        const pid_t child = fork();
        MUST(child >= 0);
        if (child == 0)
            use_in_child(id);
        MUST(waitpid(child, &status, 0) == child && status == 0);
        serve_request(id);
    }
    rdma_destroy_ep(listener);
    rdma_freeaddrinfo(address);
}

static void talk(const char *name, int count) {
    for (int i = 0; i < count; i++) {
        struct rdma_addrinfo *address = resolve(name, 0);
        struct ibv_qp_init_attr attr = sync_attr();
        struct rdma_cm_id *id;
        MUST(rdma_create_ep(&id, address, NULL, &attr) == 0);
        MUST(rdma_connect(id, NULL) == 0);
        exchange(id, 1);
        MUST(rdma_disconnect(id) == 0);
        rdma_destroy_ep(id);
        rdma_freeaddrinfo(address);
    }
}

static atomic_int queries;

static void *query(void *context) {
    struct ibv_port_attr attr;
    for (;; queries++) {
        MUST(ibv_query_port(context, 1, &attr) == 0);
        pthread_testcancel();
    }
    return NULL;
}

static void cancel(void) {
    struct ibv_context **devices = rdma_get_devices(NULL);
    struct ibv_port_attr attr;
    MUST(devices && devices[0]);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        const int before = queries;
        MUST(pthread_create(&thread, NULL, query, devices[0]) == 0);
        while (queries == before)
            sched_yield();
        MUST(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
        MUST(ibv_query_port(devices[0], 1, &attr) == 0);
    }
    rdma_free_devices(devices);
}

int main(int argc, char *argv[]) {
    const char *const what = argc > 1 ? argv[1] : "";
    is_shared = argc > 3 && !strcmp(argv[argc - 1], "shared");
    argc -= is_shared;
    if (argc == 3 && !strcmp(what, "serve"))
        serve_clients(atoi(argv[2]));
    else if (argc == 4 && !strcmp(what, "open"))
        open_all(argv[2], atoi(argv[3]));
    else if (argc == 3 && !strcmp(what, "fork"))
        serve_by_fork(atoi(argv[2]));
    else if (argc == 4 && !strcmp(what, "talk"))
        talk(argv[2], atoi(argv[3]));
    else if (argc == 3 && !strcmp(what, "die"))
        die(argv[2]);
    else if (argc == 2 && !strcmp(what, "cancel"))
        cancel();
    else if (argc == 2 && !strcmp(what, "refuse"))
        refuse();
    else
        return 2;
    return 0;
}
