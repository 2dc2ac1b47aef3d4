// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- moves all blocks of a store to this side, from all reachable servers

#include "mover.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <time.h>

#define SERVERS_MAX 4
#define PASSES 3             // over the whole store
#define REPLY_TIMEOUT_MS 500 // for the reply of a server, or for connecting
#define LATE_MAX 4           // the reply timeout is doubled at most this many times
#define GAP_MS 200           // time without a block that is logged
#define TRIES_MAX 10         // for a block that arrives damaged

static const struct program program = {
    .example = 15,
    .purpose =
        "Moves the blocks of a store to this side; all servers have the same blocks. NUMBER "
        "identifies the client.",
    .variant = "--endless",
    .number = "NUMBER",
    .many_servers = true,
};

struct server {
    const char *addr, *port;
    struct rpma_conn_req *req; // while the connection is being made
    struct rpma_conn *conn;    // afterwards
    bool up;                   // the connection is established
    uint32_t qp_num;           // of the connection
    const char *failed;        // the reason to drop the connection, or NULL
    bool ending;               // disconnected
    unsigned requested;        // requested blocks
    unsigned late;             // consecutive connections without a reply in time
    int64_t since;             // time of the last progress
    struct source source;
};

// A wanted block, and its destination in this side's memory.
struct slot {
    bool wanted;
    unsigned block, tries;
    struct server *server; // the server with the request, or NULL
    uint32_t ticket;
    bool sent, replied; // the slot is free again once both are true
};

struct content { // of this side's memory
    char blocks[DEPTH][BLOCK_SIZE];
    struct request requests[DEPTH];
    struct reply replies[DEPTH];
};

static struct arguments args;
static struct side side;
static struct content *content;
static struct queues queues;
static struct loop loop;
static struct server servers[SERVERS_MAX];
static struct slot slots[DEPTH];
static uint32_t last_ticket;
static uint64_t begun, moved; // blocks that were requested or are complete, and complete ones
static uint32_t sum;          // of the blocks of this pass
static int64_t moved_time;
static int64_t up_time; // when the port became active; 0 once a block has arrived
static struct source peer_source;
static bool device_gone;

static int64_t clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// ---- blocks

// The block has arrived and is valid. A consumer would use it; this one adds it to a sum.
static void deliver(const struct slot *slot, uint32_t checksum) {
    int64_t now = clock_ms();
    if (moved > 0 && now - moved_time >= GAP_MS)
        printf("client %u: continues after %lld ms without a block\n", args.number,
               (long long)(now - moved_time));
    if (up_time)
        printf("client %u: has a block %lld ms after the port came up\n", args.number,
               (long long)(now - up_time));
    moved_time = now;
    up_time = 0;
    sum += checksum * (slot->block + 1);
    if (++moved % STORE_BLOCKS == 0) {
        printf("client %u: pass %llu: the sum is %08x\n", args.number,
               (unsigned long long)(moved / STORE_BLOCKS), sum);
        sum = 0;
    }
}

// Releases the slot, or requests its block again.
static void end_request(struct slot *slot, bool again) {
    slot->server->requested--;
    slot->server = NULL;
    slot->wanted = again;
    slot->sent = slot->replied = false;
}

// The block is used only after its checksum was verified.
static void take_reply(struct server *server, const struct reply *reply) {
    uint32_t number = ntohl(reply->slot);
    struct slot *slot = number < DEPTH ? &slots[number] : NULL;
    if (!slot || slot->server != server || slot->ticket != ntohl(reply->ticket) ||
        slot->block != ntohl(reply->block) || slot->replied) {
        server->failed = "it sent an unexpected reply";
        return;
    }
    slot->replied = true;
    server->since = clock_ms();
    server->late = 0;
    uint32_t found = checksum(content->blocks[number], BLOCK_SIZE);
    bool right = found == ntohl(reply->checksum);
    if (right) {
        slot->wanted = false;
        deliver(slot, found);
    } else {
        printf("client %u: block %u of server %s is wrong\n", args.number, slot->block,
               server->addr);
        if (++slot->tries == TRIES_MAX)
            fail("block %u is wrong", slot->block);
    }
    if (slot->sent)
        end_request(slot, !right);
}

static struct server *choose_server(const struct slot *slot) {
    unsigned count = (unsigned)args.server_count;
    for (unsigned i = 0; i < count; i++) {
        struct server *server = &servers[(slot->block + slot->tries + i) % count];
        if (server->up && !server->failed)
            return server;
    }
    return NULL;
}

static void request_block(struct slot *slot, struct server *server) {
    size_t number = (size_t)(slot - slots);
    slot->server = server;
    slot->ticket = ++last_ticket;
    content->requests[number] =
        (struct request){htonl(slot->ticket), htonl(slot->block), htonl((uint32_t)number)};
    if (server->requested++ == 0)
        server->since = clock_ms();
    if (rpma_send(server->conn, side.mr, offsetof(struct content, requests[number]),
                  sizeof(struct request), RPMA_F_COMPLETION_ALWAYS, slot))
        server->failed = "the send was rejected";
}

// A pass starts when the previous one has ended.
static void request_blocks(void) {
    for (struct slot *slot = slots; slot < slots + DEPTH; slot++) {
        bool more = begun / STORE_BLOCKS == moved / STORE_BLOCKS &&
                    (args.variant || begun < PASSES * STORE_BLOCKS);
        if (!slot->wanted && !slot->server && more)
            *slot = (struct slot){.wanted = true, .block = (unsigned)(begun++ % STORE_BLOCKS)};
        struct server *server = slot->wanted && !slot->server ? choose_server(slot) : NULL;
        if (server)
            request_block(slot, server);
    }
}

// ---- servers

static void handle_server(void *owner);

static void start_connecting(struct server *server) {
    int fd;
    server->since = clock_ms();
    if (rpma_conn_req_start(side.peer, server->addr, server->port, queues.cfg, &server->req)) {
        server->req = NULL;
        return;
    }
    // The connection takes over the descriptor.
    CALL(rpma_conn_req_get_event_fd(server->req, &fd));
    server->source = (struct source){handle_server, server};
    watch(&loop, fd, &server->source);
}

static void take_resolution(struct server *server) {
    char bytes[PRIVATE_DATA_SIZE];
    struct rpma_conn_private_data pdata = {.ptr = bytes, .len = sizeof(bytes)};
    struct offer offer = {.peer = side.peer, .mr = side.mr, .number = args.number};
    int64_t begin = clock_ms();
    int ret = rpma_conn_req_resolve(server->req);
    if (ret == RPMA_E_AGAIN)
        return;
    pack_offer(&offer, &pdata);
    if (!ret && !port_is_up(side.peer))
        ret = RPMA_E_AGAIN;
    if (!ret)
        ret = rpma_conn_req_setup(server->req, queues.cfg);
    if (!ret)
        ret = rpma_conn_req_connect(&server->req, &pdata, &server->conn);
    server->since = clock_ms();
    if (!ret)
        return;
    // No message was sent yet, so the state of the port is irrelevant. On soft-iWARP this call
    // may have blocked: the next attempt is later by the same time, for the other servers.
    (void)rpma_conn_req_delete(&server->req);
    server->since += server->since - begin;
}

static void take_conn_event(struct server *server) {
    struct rpma_conn_private_data pdata;
    enum rpma_conn_event event;
    int ret = rpma_conn_next_event(server->conn, &event);
    if (ret == RPMA_E_NO_EVENT)
        return;
    int64_t took = clock_ms() - server->since;
    server->since = clock_ms();
    if (ret) {
        server->failed = rpma_err_2str(ret);
    } else if (event == RPMA_CONN_ESTABLISHED) {
        CALL(rpma_conn_get_qp_num(server->conn, &server->qp_num));
        server->up = true;
        printf("client %u: server %s is connected in %lld ms\n", args.number, server->addr,
               (long long)took);
    } else {
        server->failed = rpma_utils_conn_event_2str(event);
        if (event == RPMA_CONN_REJECTED && !rpma_conn_get_private_data(server->conn, &pdata) &&
            pdata.len > 0 && *(const char *)pdata.ptr == REFUSED_FULL)
            printf("client %u: server %s has too many clients\n", args.number, server->addr);
    }
}

static void handle_server(void *owner) {
    struct server *server = owner;
    if (server->req)
        take_resolution(server);
    else if (server->conn)
        take_conn_event(server);
}

// A deleted connection receives no more data: only then may the slots of its blocks be reused.
static void lose_server(struct server *server) {
    if (server->up)
        printf("client %u: server %s is lost: %s\n", args.number, server->addr, server->failed);
    if (server->req)
        (void)rpma_conn_req_delete(&server->req);
    (void)rpma_conn_delete(&server->conn);
    for (struct slot *slot = slots; slot < slots + DEPTH; slot++)
        if (slot->server == server)
            end_request(slot, slot->wanted);
    server->up = server->ending = false;
    server->failed = NULL;
    server->since = clock_ms();
}

static bool is_reply_pending(const struct server *server) {
    return server->req || (server->conn && (!server->up || server->requested > 0));
}

// A device may retry a transfer for ever, so the client has its own timeout. If established
// connections do not reply in time, the machine may be overloaded: the next one has more time.
static void check_servers(void) {
    int64_t now = clock_ms();
    for (struct server *server = servers; server < servers + args.server_count; server++) {
        if (is_reply_pending(server) && !server->failed &&
            now > server->since + (REPLY_TIMEOUT_MS << (server->up ? server->late : 0))) {
            server->failed = "it does not reply";
            server->late += server->up && server->late < LATE_MAX;
        }
        if (!server->req && !server->conn && now >= server->since + RETRY_MS)
            start_connecting(server);
    }
}

// ---- completions

static void post_receive(struct reply *reply) {
    size_t offset = (size_t)((char *)reply - side.memory.ptr);
    device_gone |= rpma_srq_recv(queues.srq, side.mr, offset, sizeof(*reply), reply) != 0;
}

// The queue is shared: qp_num of the completion identifies the server, unless its connection
// was deleted.
static void handle_completion(const struct ibv_wc *wc) {
    void *context = (void *)(uintptr_t)wc->wr_id;
    struct slot *slot = context;
    struct reply *reply = context;
    struct server *server = servers;
    while (server < servers + SERVERS_MAX && !(server->up && server->qp_num == wc->qp_num))
        server++;
    bool known = server < servers + SERVERS_MAX, good = wc->status == IBV_WC_SUCCESS;
    if (known && !good && !server->ending)
        server->failed = ibv_wc_status_str(wc->status);
    if (reply >= content->replies && reply < content->replies + DEPTH) {
        if (known && good)
            take_reply(server, reply);
        post_receive(reply);
    } else if (known && good) {
        slot->sent = true;
        if (slot->replied)
            end_request(slot, slot->wanted);
    }
}

static bool lose_failed_servers(void) {
    bool lost = false;
    for (struct server *server = servers; server < servers + args.server_count; server++)
        if (server->failed && port_is_up(side.peer)) {
            if (!server->conn || server->ending)
                lose_server(server);
            else
                stop_receiving(server->conn, &server->ending);
            lost = true;
        }
    return lost;
}

// Also polls the completions of deleted connections, before a new one may get the same qp_num.
static void poll_completions(void) {
    struct ibv_wc wc;
    do
        while (!rpma_cq_get_wc(queues.cq, 1, &wc, NULL))
            handle_completion(&wc);
    while (lose_failed_servers());
}

static void handle_cq(void *unused) {
    (void)unused;
    device_gone |= !rearm(queues.cq);
}

static void handle_peer(void *unused) {
    (void)unused;
    unsigned type = take_peer_event(side.peer, "client");
    device_gone |= type == RPMA_PEER_EVENT_DEVICE_GONE;
    if (type == RPMA_PEER_EVENT_PORT_UP)
        up_time = clock_ms();
    if (type != RPMA_PEER_EVENT_PORT_UP && type != RPMA_PEER_EVENT_ADDR_CHANGED)
        return;
    // The pending requests were sent without a network: waiting for the replies would take
    // longer than reconnecting.
    for (struct server *server = servers; server < servers + args.server_count; server++)
        if (type == RPMA_PEER_EVENT_PORT_UP && is_reply_pending(server))
            server->failed = "the port was down";
    poll_completions();
    for (struct server *server = servers; server < servers + args.server_count; server++)
        if (!server->req && !server->conn)
            start_connecting(server);
}

// ---- the device

// The device is the one with a route to a server.
static bool open_client(void) {
    int usage = RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_WRITE_DST, fd;
    struct server *server = servers, *end = servers + args.server_count;
    while (server < end && !open_device(&side, server->addr, RPMA_UTIL_IBV_CONTEXT_REMOTE, NULL,
                                        sizeof(struct content), usage))
        server++;
    if (server == end)
        return false;
    device_gone = false;
    content = (void *)side.memory.ptr;
    open_queues(&queues, side.peer, 4 * DEPTH, DEPTH, DEPTH);
    // A link address that was resolved again may be missed; the timeout detects it.
    CALL(rpma_conn_cfg_set_timeout(queues.cfg, RETRY_MS));
    for (size_t i = 0; i < DEPTH; i++)
        post_receive(&content->replies[i]);
    queues.source = (struct source){handle_cq, NULL};
    CALL(rpma_cq_get_fd(queues.cq, &fd));
    watch(&loop, fd, &queues.source);
    peer_source = (struct source){handle_peer, NULL};
    CALL(rpma_peer_get_event_fd(side.peer, &fd));
    watch(&loop, fd, &peer_source);
    return true;
}

static void close_client(void) {
    int fd;
    for (struct server *server = servers; server < servers + args.server_count; server++) {
        server->up &= device_gone;
        server->failed = "the device was removed";
        lose_server(server);
    }
    CALL(rpma_peer_get_event_fd(side.peer, &fd));
    unwatch(&loop, fd);
    close_queues(&queues);
    close_side(&side);
}

static bool finished(void) {
    return loop.stopped || (!args.variant && moved == PASSES * STORE_BLOCKS);
}

static void move_blocks(void) {
    while (!finished() && !device_gone) {
        check_servers();
        poll_completions();
        request_blocks();
        run_loop(&loop, RETRY_MS);
        poll_completions();
    }
}

int main(int argc, char *argv[]) {
    args = read_arguments(argc, argv, &program);
    if (args.server_count > SERVERS_MAX)
        fail("at most %d servers, not %d", SERVERS_MAX, args.server_count);
    for (int i = 0; i < args.server_count; i++)
        servers[i] =
            (struct server){.addr = args.servers[2 * i], .port = args.servers[2 * i + 1]};
    open_loop(&loop);
    while (!finished())
        if (open_client()) {
            move_blocks();
            close_client();
        } else {
            run_loop(&loop, RETRY_MS);
        }
    printf("client %u: moved %llu blocks, all right\n", args.number, (unsigned long long)moved);
    return EXIT_SUCCESS;
}
