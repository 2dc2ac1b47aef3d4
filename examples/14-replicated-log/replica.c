// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// replica.c -- connects to servers, posts to them, and detects their loss

#include "replica.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#define RECORD_OPS 4                           // operations that append a record
#define QUEUE_SIZE (RECORD_OPS * (WINDOW + 1)) // a device may free entries after completion
#define POLL_MS 50
#define RESOLVE_MS 200
#define PART_SIZE ((size_t)256 << 10) // any server can transfer this within REPLY_TIMEOUT_MS

int64_t clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// The device with a route to the servers: that of the first address that can be resolved.
static struct rpma_peer *find_peer(const struct arguments *args) {
    struct ibv_context *context;
    struct rpma_peer *peer;
    int i = 0;
    while (rpma_utils_get_ibv_context(args->servers[2 * i], RPMA_UTIL_IBV_CONTEXT_REMOTE,
                                      &context))
        if (++i == args->server_count)
            fail("no RDMA device reaches any of the servers");
    CALL(rpma_peer_new(context, &peer));
    return peer;
}

struct replicas open_replicas(const struct arguments *args) {
    struct replicas replicas = {.count = (unsigned)args->server_count,
                                .polled_time = clock_ms()};
    if (replicas.count > REPLICAS_MAX)
        fail("at most %d servers, not %u", REPLICAS_MAX, replicas.count);
    replicas.majority = replicas.count / 2 + 1;
    replicas.peer = find_peer(args);
    replicas.cfg = make_conn_cfg(0, false);
    CALL(rpma_conn_cfg_set_timeout(replicas.cfg, RESOLVE_MS));
    CALL(rpma_conn_cfg_set_sq_size(replicas.cfg, QUEUE_SIZE));
    CALL(rpma_conn_cfg_set_cq_size(replicas.cfg, QUEUE_SIZE));
    for (unsigned i = 0; i < replicas.count; i++)
        replicas.replica[i] = (struct replica){.addr = args->servers[2 * i],
                                               .port = args->servers[2 * i + 1],
                                               .alive_time = clock_ms() - RETRY_MS};
    return replicas;
}

void close_replicas(struct replicas *replicas) {
    for (unsigned i = 0; i < replicas->count; i++)
        lose_replica(&replicas->replica[i], NULL);
    CALL(rpma_conn_cfg_delete(&replicas->cfg));
    CALL(rpma_peer_delete(&replicas->peer));
}

// Completions of pending operations are discarded.
void lose_replica(struct replica *replica, const char *reason) {
    if (replica->state >= CONNECTED && reason)
        printf("client: server %s is lost: %s\n", replica->addr, reason);
    CALL(rpma_mr_remote_delete(&replica->log));
    (void)rpma_conn_delete(&replica->conn);
    replica->state = LOST;
    replica->pending = 0;
    replica->alive_time = clock_ms();
}

static int nonblocking(int fd) {
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
        fail("cannot make a descriptor non-blocking: %s", strerror(errno));
    return fd;
}

static void start_connecting(struct replica *replica, const struct replicas *replicas) {
    struct rpma_conn_req *req;
    int fd;
    replica->alive_time = clock_ms();
    if (rpma_conn_req_new(replicas->peer, replica->addr, replica->port, replicas->cfg, &req) ||
        begin_connection(&req, NULL, &replica->conn))
        return;
    CALL(rpma_conn_get_event_fd(replica->conn, &fd));
    replica->event_fd = nonblocking(fd);
    CALL(rpma_conn_get_cq(replica->conn, &replica->cq));
    CALL(rpma_cq_get_fd(replica->cq, &fd));
    replica->cq_fd = nonblocking(fd);
    replica->state = CONNECTING;
}

void reconnect(struct replicas *replicas) {
    for (unsigned i = 0; i < replicas->count; i++) {
        struct replica *replica = &replicas->replica[i];
        if (replica->state == LOST && clock_ms() >= replica->alive_time + RETRY_MS)
            start_connecting(replica, replicas);
    }
}

static void take_event(struct replica *replica) {
    enum rpma_conn_event event;
    int ret = rpma_conn_next_event(replica->conn, &event);
    if (ret == RPMA_E_NO_EVENT)
        return;
    if (ret || event != RPMA_CONN_ESTABLISHED) {
        lose_replica(replica, ret ? rpma_err_2str(ret) : rpma_utils_conn_event_2str(event));
        return;
    }
    replica->log = find_memory(replica->conn, &replica->persistent);
    if (!replica->log) {
        printf("client: %s is not a server of a log\n", replica->addr);
        lose_replica(replica, NULL);
        return;
    }
    replica->flush_type =
        replica->persistent ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY;
    replica->state = CONNECTED;
    replica->alive_time = clock_ms();
}

static void poll_completions(struct replica *replica) {
    struct ibv_wc wc;
    (void)rpma_cq_wait(replica->cq); // arms the descriptor for the next completion
    while (!rpma_cq_get_wc(replica->cq, 1, &wc, NULL)) {
        if (wc.status != IBV_WC_SUCCESS) {
            lose_replica(replica, ibv_wc_status_str(wc.status));
            return;
        }
        replica->pending--;
        replica->alive_time = clock_ms();
        if (wc.wr_id)
            replica->count = wc.wr_id;
    }
}

// Some devices retry for ever if a server fails, so the client has its own timeout. `now` is
// the time of the last poll: the process may have been suspended since.
static void check_replica(struct replica *replica, int64_t now) {
    if (replica->state >= CONNECTED)
        poll_completions(replica);
    if (replica->state != LOST)
        take_event(replica);
    if ((replica->state == CONNECTING || replica->pending > 0) &&
        now > replica->alive_time + REPLY_TIMEOUT_MS)
        lose_replica(replica, "it does not reply");
}

void await_events(struct replicas *replicas) {
    struct pollfd fds[2 * REPLICAS_MAX];
    for (unsigned i = 0; i < replicas->count; i++) {
        const struct replica *replica = &replicas->replica[i];
        bool connected = replica->state >= CONNECTED;
        fds[2 * i] = (struct pollfd){.fd = replica->state == LOST ? -1 : replica->event_fd,
                                     .events = POLLIN};
        fds[2 * i + 1] =
            (struct pollfd){.fd = connected ? replica->cq_fd : -1, .events = POLLIN};
    }
    if (poll(fds, 2 * replicas->count, POLL_MS) < 0 && errno != EINTR)
        fail("poll: %s", strerror(errno));
    handle_events(replicas);
}

// The time during which this process did not poll does not count as silence of a server.
void handle_events(struct replicas *replicas) {
    int64_t now = clock_ms(), still = now - replicas->polled_time - POLL_MS;
    replicas->polled_time = now;
    for (unsigned i = 0; i < replicas->count; i++) {
        struct replica *replica = &replicas->replica[i];
        int64_t alive_time = replica->alive_time + still;
        if (still > 0 && replica->state != LOST)
            replica->alive_time = alive_time < now ? alive_time : now;
        check_replica(replica, now);
    }
}

unsigned count_replicas(const struct replicas *replicas, enum replica_state state) {
    unsigned count = 0;
    for (unsigned i = 0; i < replicas->count; i++)
        count += replicas->replica[i].state >= state;
    return count;
}

unsigned count_members(const struct replicas *replicas, uint64_t records) {
    unsigned count = 0;
    for (unsigned i = 0; i < replicas->count; i++)
        count += replicas->replica[i].state == MEMBER && replicas->replica[i].count >= records;
    return count;
}

unsigned count_persistent(const struct replicas *replicas, uint64_t records) {
    unsigned count = 0;
    for (unsigned i = 0; i < replicas->count; i++) {
        const struct replica *replica = &replicas->replica[i];
        count += replica->state == MEMBER && replica->persistent && replica->count >= records;
    }
    return count;
}

// Operations on the log of a server. They have no completion unless they fail: post() requests
// one for the last operation that it posts.
static struct rpma_work part_work(enum rpma_work_type type, const struct replica *replica,
                                  const struct rpma_mr_local *mr, size_t base, size_t begin,
                                  size_t end) {
    return (struct rpma_work){.type = type,
                              .remote = replica->log,
                              .remote_offset = begin,
                              .local = {.mr = mr, .offset = base + begin, .len = end - begin},
                              .flags = RPMA_F_COMPLETION_ON_ERROR};
}

static struct rpma_work number_work(const struct replica *replica, size_t place,
                                    uint64_t number) {
    return (struct rpma_work){.type = RPMA_WORK_ATOMIC_WRITE,
                              .remote = replica->log,
                              .remote_offset = place,
                              .value = encode_number(place, number),
                              .flags = RPMA_F_COMPLETION_ON_ERROR};
}

static struct rpma_work flush_work(const struct replica *replica, size_t begin, size_t end) {
    return (struct rpma_work){.type = RPMA_WORK_FLUSH,
                              .remote = replica->log,
                              .remote_offset = begin,
                              .flush_type = replica->flush_type,
                              .flush_len = end - begin,
                              .flags = RPMA_F_COMPLETION_ON_ERROR};
}

// Posts operations at once, and counts the pending completion. records is the number of records
// that the server will have, or 0 if it does not change.
static void post(struct replica *replica, struct rpma_work *work, uint32_t count,
                 uint64_t records) {
    work[count - 1].flags = RPMA_F_COMPLETION_ALWAYS;
    work[count - 1].op_context = (const void *)(uintptr_t)records;
    int ret = rpma_post(replica->conn, work, count, NULL);
    if (ret) {
        lose_replica(replica, rpma_err_2str(ret));
        return;
    }
    if (replica->pending++ == 0)
        replica->alive_time = clock_ms();
}

/*
 * The record must be persistent before the new tail is visible. The client need not wait for
 * the flush: the atomic write takes effect after the flush that was posted before it. One
 * completion confirms all four.
 */
void post_record(struct replica *replica, const struct rpma_mr_local *mr, size_t base,
                 size_t place, size_t tail, uint64_t number) {
    size_t tail_place = offsetof(struct log_header, tail);
    struct rpma_work work[RECORD_OPS] = {
        part_work(RPMA_WORK_WRITE, replica, mr, base, place, tail),
        flush_work(replica, place, tail),
        number_work(replica, tail_place, tail),
        flush_work(replica, tail_place, tail_place + sizeof(uint64_t)),
    };
    post(replica, work, RECORD_OPS, number + 1);
}

static bool await_pending(struct replicas *replicas, struct replica *replica) {
    while (replica->pending > 0)
        await_events(replicas);
    return replica->state != LOST;
}

bool transfer(struct replicas *replicas, struct replica *replica, enum rpma_work_type type,
              const struct rpma_mr_local *mr, size_t base, size_t begin, size_t end) {
    for (size_t part_end; await_pending(replicas, replica) && begin < end; begin = part_end) {
        part_end = end - begin < PART_SIZE ? end : begin + PART_SIZE;
        struct rpma_work work[] = {
            part_work(type, replica, mr, base, begin, part_end),
            flush_work(replica, begin, part_end),
        };
        post(replica, work, type == RPMA_WORK_WRITE ? 2 : 1, 0);
    }
    return replica->state != LOST;
}

bool store_number(struct replicas *replicas, struct replica *replica, size_t place,
                  uint64_t number) {
    if (!await_pending(replicas, replica))
        return false;
    struct rpma_work work[] = {
        number_work(replica, place, number),
        flush_work(replica, place, place + sizeof(uint64_t)),
    };
    post(replica, work, 2, 0);
    return await_pending(replicas, replica);
}
