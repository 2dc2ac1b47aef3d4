// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// churn.c -- commands that make and delete connections from many threads

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "await.h"
#include "peer.h"

struct client {
    pthread_t thread;
    const char *addr;
    const char *port;
    uint64_t count;
    uint64_t done;
    size_t number;
    int ret;
};

/* Writes eight bytes to the region that the accepting side describes in its private data. */
static int write_once(struct rpma_conn *conn, size_t number) {
    struct rpma_conn_private_data pdata = {NULL, 0};
    struct rpma_mr_remote *remote = NULL;
    struct rpma_cq *cq = NULL;
    struct ibv_wc wc;
    int ret = rpma_conn_get_private_data(conn, &pdata);
    if (ret == 0)
        ret = rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &remote);
    if (ret == 0)
        ret = rpma_conn_get_cq(conn, &cq);
    if (ret == 0)
        ret = rpma_write(conn, remote, 8 * number, world.mr[number], 0, 8,
                         RPMA_F_COMPLETION_ALWAYS, NULL);
    if (ret == 0)
        ret = await_completion(cq, &wc);
    rpma_mr_remote_delete(&remote);
    return ret;
}

static int come_and_go(struct client *client) {
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    int ret = rpma_conn_req_new(world.peer, client->addr, client->port, NULL, &req);
    if (ret == 0)
        ret = rpma_conn_req_connect(&req, NULL, &conn);
    if (ret == 0)
        ret = await_event(conn, RPMA_CONN_ESTABLISHED);
    if (ret == 0)
        ret = write_once(conn, client->number);
    if (ret == 0)
        ret = rpma_conn_disconnect(conn);
    if (ret == 0)
        ret = await_event(conn, RPMA_CONN_CLOSED);
    int deleted = rpma_conn_delete(&conn);
    return ret != 0 ? ret : deleted;
}

static void *be_client(void *argument) {
    struct client *client = argument;
    while (client->ret == 0 && client->done < client->count) {
        client->ret = come_and_go(client);
        client->done += client->ret == 0;
    }
    return NULL;
}

static int do_churn(const struct args *args) {
    struct client clients[MAX_OTHERS];
    size_t threads = arg_slot(args, "threads", MAX_OTHERS + 1);
    int64_t began = now_ms();
    int ret = 0;
    memset(clients, 0, sizeof(clients));
    for (size_t i = 0; i < threads; i++) {
        clients[i].addr = arg_text(args, "addr");
        clients[i].port = arg_text(args, "port");
        clients[i].count = arg_number(args, "count");
        clients[i].number = i;
        if (pthread_create(&clients[i].thread, NULL, be_client, &clients[i]) != 0)
            bad_script("thread %zu does not start", i);
    }
    for (size_t i = 0; i < threads; i++) {
        pthread_join(clients[i].thread, NULL);
        reply("done%zu=%llu", i, (unsigned long long)clients[i].done);
        if (ret == 0)
            ret = clients[i].ret;
    }
    reply("ms=%lld", (long long)(now_ms() - began));
    return ret;
}

struct guest {
    pthread_t thread;
    struct rpma_conn *conn;
    int ret;
};

/* A client that leaves at once may be gone before the connection is established here. */
static int await_end(struct rpma_conn *conn) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    int ret = rpma_conn_next_event(conn, &event);
    if (ret != 0 || event == RPMA_CONN_CLOSED)
        return ret;
    return event == RPMA_CONN_ESTABLISHED ? await_event(conn, RPMA_CONN_CLOSED) : ERR_MISMATCH;
}

static void *see_off(void *argument) {
    struct guest *guest = argument;
    guest->ret = await_end(guest->conn);
    rpma_conn_disconnect(guest->conn); // finishes the disconnection that the other side began
    int deleted = rpma_conn_delete(&guest->conn);
    if (guest->ret == 0)
        guest->ret = deleted;
    return NULL;
}

static int welcome(struct guest *guest) {
    unsigned char descriptor[64];
    struct rpma_conn_private_data pdata = {descriptor, 0};
    struct rpma_conn_req *req = NULL;
    size_t size = 0;
    int ret = rpma_mr_get_descriptor_size(world.mr[0], &size);
    if (ret == 0)
        ret = rpma_mr_get_descriptor(world.mr[0], descriptor);
    pdata.len = (uint8_t)size;
    if (ret == 0)
        ret = rpma_ep_next_conn_req(world.ep, NULL, &req);
    if (ret == 0)
        ret = rpma_conn_req_connect(&req, &pdata, &guest->conn);
    if (ret == 0 && pthread_create(&guest->thread, NULL, see_off, guest) != 0)
        ret = ERR_SYSTEM;
    return ret;
}

/* Accepts count connections one after the other; each belongs to a thread until it is closed.
 */
static int do_host(const struct args *args) {
    size_t count = arg_number(args, "count");
    struct guest *guests = calloc(count, sizeof(*guests));
    size_t welcomed = 0;
    int ret = guests == NULL ? ERR_SYSTEM : 0;
    while (ret == 0 && welcomed < count) {
        ret = welcome(&guests[welcomed]);
        welcomed += ret == 0;
    }
    for (size_t i = 0; i < welcomed; i++) {
        pthread_join(guests[i].thread, NULL);
        if (ret == 0)
            ret = guests[i].ret;
    }
    reply("welcomed=%zu", welcomed);
    free(guests);
    return ret;
}

const struct command churn_commands[] = {
    {"churn", do_churn},
    {"host", do_host},
    {NULL, NULL},
};
