// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// session.c -- the common part of the programs of all releases.

#include "session.h"

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
    CHECK(!S_ISREG(status.st_mode) || ftruncate(fd, SESSION_MEMORY) == 0);
    void *memory = mmap(NULL, SESSION_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    close(fd);
    return memory;
}

static void register_memory(struct session *session, struct side *side, const char *file,
                            int usage) {
    side->memory = file ? map_file(file)
                        : mmap(NULL, SESSION_MEMORY, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(side->memory != MAP_FAILED);
    memset(side->memory, 0, SESSION_MEMORY);
    MUST(rpma_mr_reg(session->peer, side->memory, SESSION_MEMORY, usage, &side->mr));
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
    CHECK(size == SESSION_MEMORY);

    MUST(rpma_peer_cfg_new(&pcfg));
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
    MUST(rpma_conn_apply_remote_peer_cfg(side->conn, pcfg));
    MUST(rpma_peer_cfg_delete(&pcfg));
}

static void connect_both(struct session *session) {
    struct rpma_conn_req *req = NULL;
    struct rpma_conn_private_data from_client, from_server;
    unsigned char client_desc[64], server_desc[64];
    int ep_fd = -1;
    describe(&session->client, client_desc, &from_client);
    describe(&session->server, server_desc, &from_server);

    MUST(rpma_conn_req_new(session->peer, session->address, PORT, NULL, &req));
    MUST(rpma_conn_req_connect(&req, &from_client, &session->client.conn));
    CHECK(req == NULL);

    MUST(rpma_ep_get_fd(session->ep, &ep_fd));
    loopback_event(ep_fd, RDMA_CM_EVENT_CONNECT_REQUEST, from_client.ptr, from_client.len);
    MUST(rpma_ep_next_conn_req(session->ep, NULL, &req));
    MUST(rpma_conn_req_recv(req, session->server.mr, 0, 64, session));
    MUST(rpma_conn_req_connect(&req, &from_server, &session->server.conn));

    loopback_event(fd_of(session->client.conn), RDMA_CM_EVENT_ESTABLISHED, from_server.ptr,
                   from_server.len);
    loopback_event(fd_of(session->server.conn), RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    finish_connecting(&session->client);
    finish_connecting(&session->server);
}

void session_open(struct session *session, int argc, char *argv[]) {
    struct ibv_context *device = NULL;
    memset(session, 0, sizeof(*session));
    const bool on_device = !loopback_open();
    session->address = argc > 1 ? argv[1] : "127.0.0.1";
    MUST(rpma_utils_get_ibv_context(session->address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &device));
    MUST(rpma_peer_new(device, &session->peer));
    const char *file = argc > 2 ? argv[2] : NULL;
    session->persistent = file || !on_device;
    register_memory(session, &session->client, NULL, USAGE);
    register_memory(session, &session->server, file, FLUSHED);
    MUST(rpma_ep_listen(session->peer, session->address, PORT, &session->ep));
    connect_both(session);
}

static void expect_closed(struct rpma_conn *conn) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    loopback_event(fd_of(conn), RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    MUST(rpma_conn_next_event(conn, &event));
    CHECK(event == RPMA_CONN_CLOSED);
}

static void disconnect(struct session *session) {
    MUST(rpma_conn_disconnect(session->client.conn));
    expect_closed(session->server.conn);
    // The client waits for this confirmation.
    MUST(rpma_conn_disconnect(session->server.conn));
    expect_closed(session->client.conn);
    MUST(rpma_conn_delete(&session->client.conn));
    MUST(rpma_conn_delete(&session->server.conn));
    CHECK(session->client.conn == NULL && session->server.conn == NULL);
}

static void drop(struct side *side) {
    MUST(rpma_mr_remote_delete(&side->other));
    MUST(rpma_mr_dereg(&side->mr));
    CHECK(munmap(side->memory, SESSION_MEMORY) == 0);
}

void session_close(struct session *session) {
    disconnect(session);
    drop(&session->client);
    drop(&session->server);
    MUST(rpma_ep_shutdown(&session->ep));
    MUST(rpma_peer_delete(&session->peer));
    const char *const fault = loopback_close();
    if (*fault)
        fprintf(stderr, "after the last deletion: %s\n", fault);
    CHECK(!*fault);
}

// ---- the exchange --------------------------------------------------------------------------

static void flush(struct session *session, enum rpma_flush_type type, session_take *take) {
    struct rpma_conn *conn = session->client.conn;
    MUST(rpma_flush(conn, session->client.other, 1024, 64, type, RPMA_F_COMPLETION_ALWAYS,
                    &type));
    loopback_run();
    take(conn, &type, FLUSH);
}

void session_exchange(struct session *session, session_take *take) {
    static const char message[] = "a message", words[] = "words to be kept";
    struct side *client = &session->client, *server = &session->server;

    memcpy(client->memory, message, sizeof(message));
    MUST(rpma_send(client->conn, client->mr, 0, sizeof(message), RPMA_F_COMPLETION_ALWAYS,
                   message));
    loopback_run();
    take(client->conn, message, SEND);
    take(server->conn, session, RECV);
    CHECK(memcmp(server->memory, message, sizeof(message)) == 0);

    memcpy(client->memory + 512, words, sizeof(words));
    MUST(rpma_write(client->conn, client->other, 1024, client->mr, 512, sizeof(words),
                    RPMA_F_COMPLETION_ALWAYS, words));
    loopback_run();
    take(client->conn, words, WRITE);
    flush(session, RPMA_FLUSH_TYPE_VISIBILITY, take);
    if (session->persistent)
        flush(session, RPMA_FLUSH_TYPE_PERSISTENT, take);
    CHECK(memcmp(server->memory + 1024, words, sizeof(words)) == 0);

    MUST(rpma_read(client->conn, client->mr, 2048, client->other, 1024, sizeof(words),
                   RPMA_F_COMPLETION_ALWAYS, client));
    loopback_run();
    take(client->conn, client, READ);
    CHECK(memcmp(client->memory + 2048, words, sizeof(words)) == 0);
}

void session_write_8(struct session *session, session_post_8 *post, session_take *take) {
    const size_t offset = SESSION_MEMORY - 8;
    memset(session->client.memory, 0x5a, 8);
    MUST(post(session, offset, session));
    loopback_run();
    take(session->client.conn, session, WRITE);
    CHECK(memcmp(session->server.memory + offset, session->client.memory, 8) == 0);
}
