// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// life.c -- the common part of the programs of all releases.

#include "life.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PORT "7305"

// The client's memory is never flushed, so it is not registered for flushes: a device with
// native flush rejects such a registration for memory that is not persistent, and 1.3.0 does
// not retry without it.
enum {
    USAGE = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
            RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
    FLUSHED = USAGE | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
};

static int fd_of(const struct rpma_conn *conn) {
    int fd = -1;
    MUST(rpma_conn_get_event_fd(conn, &fd));
    return fd;
}

// Maps a file on persistent memory, or a device DAX: devices with native flush reject a
// registration for persistent flushes on other memory.
static unsigned char *map_file(const char *path) {
    struct stat status;
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && fstat(fd, &status) == 0);
    CHECK(!S_ISREG(status.st_mode) || ftruncate(fd, LIFE_MEMORY) == 0);
    void *memory = mmap(NULL, LIFE_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    close(fd);
    return memory;
}

static void register_memory(struct life *life, struct side *side, const char *file, int usage) {
    side->memory = file ? map_file(file)
                        : mmap(NULL, LIFE_MEMORY, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(side->memory != MAP_FAILED);
    memset(side->memory, 0, LIFE_MEMORY);
    MUST(rpma_mr_reg(life->peer, side->memory, LIFE_MEMORY, usage, &side->mr));
}

static void describe(const struct side *side, unsigned char desc[64],
                     struct rpma_conn_private_data *pdata) {
    size_t size = 0;
    MUST(rpma_mr_get_descriptor_size(side->mr, &size));
    CHECK(size == 21);
    MUST(rpma_mr_get_descriptor(side->mr, desc));
    pdata->ptr = desc;
    pdata->len = (uint8_t)size;
}

// Receives ESTABLISHED, the other side's region, and its configuration.
static void finish_connecting(struct side *side) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    struct rpma_conn_private_data pdata = {NULL, 0};
    struct rpma_peer_cfg *pcfg = NULL;
    size_t size = 0;
    MUST(rpma_conn_next_event(side->conn, &event));
    CHECK(event == RPMA_CONN_ESTABLISHED);
    MUST(rpma_conn_get_private_data(side->conn, &pdata));
    CHECK(pdata.ptr != NULL && pdata.len >= 21);
    MUST(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &side->other));
    MUST(rpma_mr_remote_get_size(side->other, &size));
    CHECK(size == LIFE_MEMORY);

    MUST(rpma_peer_cfg_new(&pcfg));
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
    MUST(rpma_conn_apply_remote_peer_cfg(side->conn, pcfg));
    MUST(rpma_peer_cfg_delete(&pcfg));
}

static void connect_both(struct life *life) {
    struct rpma_conn_req *req = NULL;
    struct rpma_conn_private_data from_client, from_server;
    unsigned char client_desc[64], server_desc[64];
    int ep_fd = -1;
    describe(&life->client, client_desc, &from_client);
    describe(&life->server, server_desc, &from_server);

    MUST(rpma_conn_req_new(life->peer, life->address, PORT, NULL, &req));
    MUST(rpma_conn_req_connect(&req, &from_client, &life->client.conn));
    CHECK(req == NULL);

    MUST(rpma_ep_get_fd(life->ep, &ep_fd));
    loopback_event(ep_fd, RDMA_CM_EVENT_CONNECT_REQUEST, from_client.ptr, from_client.len);
    MUST(rpma_ep_next_conn_req(life->ep, NULL, &req));
    MUST(rpma_conn_req_recv(req, life->server.mr, 0, 64, life));
    MUST(rpma_conn_req_connect(&req, &from_server, &life->server.conn));

    loopback_event(fd_of(life->client.conn), RDMA_CM_EVENT_ESTABLISHED, from_server.ptr,
                   from_server.len);
    loopback_event(fd_of(life->server.conn), RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    finish_connecting(&life->client);
    finish_connecting(&life->server);
}

void life_open(struct life *life, int argc, char *argv[]) {
    struct ibv_context *device = NULL;
    memset(life, 0, sizeof(*life));
    const bool on_device = !loopback_open();
    life->address = argc > 1 ? argv[1] : "127.0.0.1";
    MUST(rpma_utils_get_ibv_context(life->address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &device));
    MUST(rpma_peer_new(device, &life->peer));
    const char *file = argc > 2 ? argv[2] : NULL;
    life->persistent = file || !on_device;
    register_memory(life, &life->client, NULL, USAGE);
    register_memory(life, &life->server, file, FLUSHED);
    MUST(rpma_ep_listen(life->peer, life->address, PORT, &life->ep));
    connect_both(life);
}

static void expect_closed(struct rpma_conn *conn) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    loopback_event(fd_of(conn), RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    MUST(rpma_conn_next_event(conn, &event));
    CHECK(event == RPMA_CONN_CLOSED);
}

static void disconnect(struct life *life) {
    MUST(rpma_conn_disconnect(life->client.conn));
    expect_closed(life->server.conn);
    MUST(rpma_conn_disconnect(life->server.conn)); // the confirmation that the client waits for
    expect_closed(life->client.conn);
    MUST(rpma_conn_delete(&life->client.conn));
    MUST(rpma_conn_delete(&life->server.conn));
    CHECK(life->client.conn == NULL && life->server.conn == NULL);
}

static void drop(struct side *side) {
    MUST(rpma_mr_remote_delete(&side->other));
    MUST(rpma_mr_dereg(&side->mr));
    CHECK(munmap(side->memory, LIFE_MEMORY) == 0);
}

void life_close(struct life *life) {
    disconnect(life);
    drop(&life->client);
    drop(&life->server);
    MUST(rpma_ep_shutdown(&life->ep));
    MUST(rpma_peer_delete(&life->peer));
    const char *const fault = loopback_close();
    if (*fault)
        fprintf(stderr, "after the last deletion: %s\n", fault);
    CHECK(!*fault);
}

// ---- the exchange --------------------------------------------------------------------------

static void flush(struct life *life, enum rpma_flush_type type, life_take *take) {
    struct rpma_conn *conn = life->client.conn;
    MUST(rpma_flush(conn, life->client.other, 1024, 64, type, RPMA_F_COMPLETION_ALWAYS, &type));
    loopback_run();
    take(conn, &type, FLUSH);
}

void life_exchange(struct life *life, life_take *take) {
    static const char message[] = "a message", words[] = "words to be kept";
    struct side *client = &life->client, *server = &life->server;

    memcpy(client->memory, message, sizeof(message));
    MUST(rpma_send(client->conn, client->mr, 0, sizeof(message), RPMA_F_COMPLETION_ALWAYS,
                   message));
    loopback_run();
    take(client->conn, message, SEND);
    take(server->conn, life, RECV);
    CHECK(memcmp(server->memory, message, sizeof(message)) == 0);

    memcpy(client->memory + 512, words, sizeof(words));
    MUST(rpma_write(client->conn, client->other, 1024, client->mr, 512, sizeof(words),
                    RPMA_F_COMPLETION_ALWAYS, words));
    loopback_run();
    take(client->conn, words, WRITE);
    flush(life, RPMA_FLUSH_TYPE_VISIBILITY, take);
    if (life->persistent)
        flush(life, RPMA_FLUSH_TYPE_PERSISTENT, take);
    CHECK(memcmp(server->memory + 1024, words, sizeof(words)) == 0);

    MUST(rpma_read(client->conn, client->mr, 2048, client->other, 1024, sizeof(words),
                   RPMA_F_COMPLETION_ALWAYS, client));
    loopback_run();
    take(client->conn, client, READ);
    CHECK(memcmp(client->memory + 2048, words, sizeof(words)) == 0);
}

void life_write_8(struct life *life, life_post_8 *post, life_take *take) {
    const size_t offset = LIFE_MEMORY - 8;
    memset(life->client.memory, 0x5a, 8);
    MUST(post(life, offset, life));
    loopback_run();
    take(life->client.conn, life, WRITE);
    CHECK(memcmp(life->server.memory + offset, life->client.memory, 8) == 0);
}
