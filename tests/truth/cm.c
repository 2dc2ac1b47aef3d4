// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.c -- questions to librdmacm.

#include "truth.h"

#include <fcntl.h>
#include <string.h>

static struct sockaddr *any(struct sockaddr_in *address) {
    return (struct sockaddr *)address;
}

struct rdma_cm_id *new_id(struct rdma_event_channel *channel) {
    struct rdma_cm_id *id = NULL;
    must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id()");
    return id;
}

struct rdma_cm_id *bound_id(void) {
    struct rdma_cm_id *id = new_id(NULL);
    must(rdma_bind_addr(id, any(&own_address)) == 0, "rdma_bind_addr()");
    must(id->verbs != NULL, "finding a device behind the address");
    return id;
}

static void bind_to(const char *question, struct sockaddr *address) {
    struct rdma_cm_id *id = new_id(NULL);
    says(question, rdma_bind_addr(id, address));
    rdma_destroy_id(id);
}

static void resolve(const char *question, struct sockaddr *source, struct sockaddr *to) {
    struct rdma_cm_id *id = new_id(NULL);
    says(question, rdma_resolve_addr(id, source, to, 1000));
    rdma_destroy_id(id);
}

static void set_option(const char *question, struct rdma_cm_id *id, int level, int name,
                       size_t length) {
    uint32_t value = 18;
    says(question, rdma_set_option(id, level, name, &value, length));
}

static void ask_options(struct rdma_cm_id *id) {
    set_option("option: type of service", id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1);
    set_option("option: type of service, 4 bytes", id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4);
    set_option("option: timeout", id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1);
    set_option("option: timeout, 4 bytes", id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 4);
    set_option("option: name of no option", id, RDMA_OPTION_ID, 99, 1);
    set_option("option: level of no option", id, 99, RDMA_OPTION_ID_TOS, 1);
}

void ask_addresses(void) {
    struct sockaddr_in nobody = address_of("192.0.2.1");
    struct sockaddr_in none = {.sin_family = AF_UNSPEC};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bind_to("bind: no address", NULL);
    bind_to("bind: no family", any(&none));
    bind_to("bind: an address of nobody here", any(&nobody));
    resolve("resolve: no destination", NULL, NULL);
    resolve("resolve: destination without a family", NULL, any(&none));
    resolve("resolve: source without a family", any(&none), any(&own_address));
    resolve("resolve: source of nobody here", any(&nobody), any(&own_address));
    resolve("resolve: families differ", (struct sockaddr *)&six, any(&own_address));
    struct rdma_cm_id *id = new_id(NULL);
    ask_options(id);
    says("resolve: own address", rdma_resolve_addr(id, NULL, any(&own_address), 1000));
    is("resolve: device found", id->verbs != NULL);
    is("resolve: port", id->port_num);
    is("resolve: destination kept",
       memcmp(&id->route.addr.dst_sin.sin_addr, &own_address.sin_addr, 4) == 0);
    says("resolve: again", rdma_resolve_addr(id, NULL, any(&own_address), 1000));
    says("route: first", rdma_resolve_route(id, 1000));
    says("route: again", rdma_resolve_route(id, 1000));
    set_option("option: timeout behind the route", id, RDMA_OPTION_ID,
               RDMA_OPTION_ID_ACK_TIMEOUT, 1);
    rdma_destroy_id(id);
    id = bound_id();
    is("bind: address kept",
       memcmp(&id->route.addr.src_sin.sin_addr, &own_address.sin_addr, 4) == 0);
    says("bind: again", rdma_bind_addr(id, any(&own_address)));
    says("route: without a destination", rdma_resolve_route(id, 1000));
    rdma_destroy_id(id);
}

void ask_cm(void) {
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_event *event = NULL;
    struct rdma_conn_param param = {.responder_resources = RDMA_MAX_RESP_RES,
                                    .initiator_depth = RDMA_MAX_INIT_DEPTH};
    makes("event channel", channel);
    fcntl(channel->fd, F_SETFL, O_NONBLOCK);
    says("get event: none", rdma_get_cm_event(channel, &event));
    says("acknowledge: no event", rdma_ack_cm_event(NULL));
    struct rdma_cm_id *id = bound_id();
    says("accept: no request", rdma_accept(id, &param));
    says("reject: no request", rdma_reject(id, NULL, 0));
    says("disconnect: no connection", rdma_disconnect(id));
    says("connect: no destination", rdma_connect(id, &param));
    says("migrate: synchronous to synchronous", rdma_migrate_id(id, NULL));
    says("migrate: to a channel", rdma_migrate_id(id, channel));
    is("migrate: channel taken", id->channel == channel);
    says("listen", rdma_listen(id, 1));
    says("listen: again", rdma_listen(id, 1));
    says("destroy", rdma_destroy_id(id));
    rdma_destroy_event_channel(channel);
}

// Asks a client and a listener of one process. Over the fakes fake_arrival() delivers messages.
static void ask_request(struct rdma_event_channel *events, const void *data, uint8_t sent) {
    struct rdma_cm_event *event = NULL;
    if (fake_arrival)
        fake_arrival(events, RDMA_CM_EVENT_CONNECT_REQUEST, data, sent);
    must(rdma_get_cm_event(events, &event) == 0, "rdma_get_cm_event()");
    is("request: event", event->event);
    is("request: status", event->status);
    is("request: bytes of private data", event->param.conn.private_data_len);
    is("request: sent bytes first", memcmp(event->param.conn.private_data, "hello\0", 7) == 0);
    struct rdma_cm_id *id = event->id;
    is("request: device found", id->verbs != NULL);
    says("request: acknowledge", rdma_ack_cm_event(event));
}

// Only the first request that the device takes is sent: sent, if it is not 0 yet, is its
// length.
static void connect_with(const char *question, struct rdma_cm_id *id,
                         struct rdma_conn_param *param, uint8_t length, uint8_t *sent) {
    param->private_data_len = length;
    const int ret = rdma_connect(id, param);
    says(question, ret);
    if (ret == 0 && *sent == 0)
        *sent = length;
}

void ask_connection(void) {
    unsigned char data[255] = "hello";
    uint8_t sent = 0;
    struct rdma_event_channel *passive = rdma_create_event_channel();
    struct rdma_event_channel *active = rdma_create_event_channel();
    struct rdma_cm_id *listener = bound_id();
    must(rdma_migrate_id(listener, passive) == 0, "rdma_migrate_id()");
    must(rdma_listen(listener, 1) == 0, "rdma_listen()");
    struct sockaddr_in to = own_address;
    to.sin_port = listener->route.addr.src_sin.sin_port;
    struct stand s = stand_up();
    struct rdma_cm_id *client = new_id(NULL);
    must(rdma_resolve_addr(client, NULL, any(&to), 1000) == 0, "rdma_resolve_addr()");
    must(rdma_resolve_route(client, 1000) == 0, "rdma_resolve_route()");
    struct ibv_qp_init_attr_ex attr = qp_attr(&s);
    must(rdma_create_qp_ex(client, &attr) == 0, "rdma_create_qp_ex()");
    must(rdma_migrate_id(client, active) == 0, "rdma_migrate_id()");
    struct rdma_conn_param param = {.private_data = data,
                                    .responder_resources = RDMA_MAX_RESP_RES,
                                    .initiator_depth = RDMA_MAX_INIT_DEPTH,
                                    .retry_count = 7};
    connect_with("connect: 57 bytes", client, &param, 57, &sent);
    connect_with("connect: 255 bytes", client, &param, 255, &sent);
    connect_with("connect: 5 bytes", client, &param, 5, &sent);
    ask_request(passive, data, sent);
    // The process ends here, and the kernel releases the rest.
}
