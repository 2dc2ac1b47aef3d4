// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- appends the lines of its standard input to a log on several servers

#include "replica.h"

#include <stdlib.h>

static const struct program program = {
    .example = 14,
    .purpose = "Appends each line of its standard input to a log on all servers.",
    .many_servers = true,
    .new_option = "begins the log; all servers must be connected, none with a record",
};

static struct replicas replicas;
static struct memory memory; // room for two logs:
static struct rpma_mr_local *mr;
static char *log_copy;       // this client's log, valid up to extent
static char *other_copy;     // a server's log
static struct extent extent; // of log_copy
static uint64_t epoch;       // of this client
static uint64_t identity;    // of the log

static size_t base_of(const char *copy) {
    return (size_t)(copy - memory.ptr);
}

// Reads the header of a server; false: the connection is lost, or the server has no log.
static bool fetch_header(struct replica *replica, struct log_state *state) {
    if (!transfer(&replicas, replica, RPMA_WORK_READ, mr, base_of(other_copy), 0, LOG_BEGIN))
        return false;
    const char *problem = read_header((const void *)other_copy, state);
    if (problem) {
        lose_replica(replica, problem);
        return false;
    }
    replica->epoch = state->epoch;
    replica->identity = state->identity;
    return true;
}

// Copies a server's log, up to its tail, into other_copy.
static bool fetch_log(struct replica *replica, struct log_state *state) {
    return fetch_header(replica, state) &&
           transfer(&replicas, replica, RPMA_WORK_READ, mr, base_of(other_copy), LOG_BEGIN,
                    state->tail);
}

static bool store_epoch(struct replica *replica) {
    return store_number(&replicas, replica, offsetof(struct log_header, epoch), epoch);
}

static bool store_identity(struct replica *replica) {
    return store_number(&replicas, replica, offsetof(struct log_header, identity), identity);
}

/*
 * A client that takes over connects to a majority first, and those servers then end their
 * connections to this client. If a majority still replies, no client had taken over when the
 * first server was queried.
 */
static bool majority_replies(void) {
    struct log_state state;
    unsigned count = 0;
    for (unsigned i = 0; i < replicas.count; i++)
        count +=
            replicas.replica[i].state == MEMBER && fetch_header(&replicas.replica[i], &state);
    return count >= replicas.majority;
}

// If too many servers have no valid log, no majority has all records.
static void check_valid_logs(void) {
    unsigned count = 0;
    for (unsigned i = 0; i < replicas.count; i++)
        count += replicas.replica[i].state == KNOWN && replicas.replica[i].epoch == 0;
    if (count > replicas.count - replicas.majority)
        fail("%u of %u servers have no valid log: --new begins a new one, without the records "
             "of an old one",
             count, replicas.count);
}

/*
 * Makes the server's log equal to this client's. The records after their common part were on no
 * majority: the tail excludes them before other records overwrite them. A server that may have
 * lost its log counts again only when its log is complete, and only if this client still has
 * the log, because the server may also have lost a promise to another client.
 */
static bool synchronize(struct replica *replica) {
    size_t tail_place = offsetof(struct log_header, tail);
    struct log_state state;

    if (!fetch_log(replica, &state))
        return false;
    if (state.epoch > epoch)
        fail("another client has taken over");
    if (state.identity && state.identity != identity) {
        lose_replica(replica, "it has another log");
        return false;
    }
    // Write identity, tail and epoch even if the server has them: the client that wrote them
    // may not have flushed them. A client flushes the records before it writes the tail.
    if (!store_identity(replica))
        return false;
    struct extent common = common_part(log_copy, extent.end, other_copy, state.tail);
    if ((state.tail > common.end &&
         !store_number(&replicas, replica, tail_place, common.end)) ||
        !transfer(&replicas, replica, RPMA_WORK_WRITE, mr, base_of(log_copy), common.end,
                  extent.end) ||
        !store_number(&replicas, replica, tail_place, extent.end))
        return false;
    if (state.epoch == 0) {
        replica->state = KNOWN;
        check_valid_logs();
        if (!majority_replies())
            return false;
    }
    if (!store_epoch(replica))
        return false;
    replica->count = extent.count;
    replica->state = MEMBER;
    printf("client: server %s has all %llu records, %zu bytes were missing\n", replica->addr,
           (unsigned long long)extent.count, extent.end - common.end);
    return true;
}

// Writes the records that servers missed while they were lost.
static void synchronize_returned(void) {
    reconnect(&replicas);
    handle_events(&replicas);
    for (unsigned i = 0; i < replicas.count; i++)
        if (replicas.replica[i].state >= CONNECTED && replicas.replica[i].state < MEMBER)
            (void)synchronize(&replicas.replica[i]);
}

static bool has_majority(void) {
    return count_replicas(&replicas, MEMBER) >= replicas.majority;
}

static void connect_servers(void) {
    int64_t until = clock_ms() + START_MS;
    while (clock_ms() < until && count_replicas(&replicas, CONNECTED) < replicas.count) {
        reconnect(&replicas);
        await_events(&replicas);
    }
}

// Chooses an epoch above all epochs of the servers. Returns the largest tail.
static size_t choose_epoch(void) {
    struct log_state state;
    size_t tail = 0;
    epoch = 0;
    for (unsigned i = 0; i < replicas.count; i++) {
        struct replica *replica = &replicas.replica[i];
        if (replica->state < CONNECTED || !fetch_header(replica, &state))
            continue;
        replica->state = KNOWN;
        if (state.epoch > epoch)
            epoch = state.epoch;
        if (state.tail > tail)
            tail = state.tail;
    }
    if (epoch++ == EPOCH_MAX)
        fail("the log has had %llu clients: no epoch is left", (unsigned long long)EPOCH_MAX);
    return tail;
}

/*
 * Servers of two logs, or only some servers of one log, could be a majority without all
 * records. So each server stores the identity of its log, which contains the number of servers,
 * before it makes a promise. A new log gets a new identity, unless an earlier client started it
 * and has a promise: then a majority has the identity, because the others can only have lost
 * it.
 */
static bool agree_on_log(bool new_log) {
    unsigned holders = 0, promised = 0;
    identity = 0;
    for (unsigned i = 0; i < replicas.count; i++)
        promised += replicas.replica[i].state == KNOWN && replicas.replica[i].epoch > 0;
    for (unsigned i = 0; i < replicas.count && (promised || !new_log); i++) {
        const struct replica *replica = &replicas.replica[i];
        if (replica->state != KNOWN || !replica->identity)
            continue;
        if (servers_of(replica->identity) != replicas.count)
            fail("server %s has a log of %u servers, not %u", replica->addr,
                 servers_of(replica->identity), replicas.count);
        if (identity && replica->identity != identity)
            fail("server %s has another log than the servers before it", replica->addr);
        identity = replica->identity;
        holders++;
    }
    if (!new_log)
        return true;
    if (promised && holders < replicas.majority)
        fail("only %u of %u servers have this log, and the others none: name the servers with "
             "which it was begun",
             holders, replicas.count);
    if (!promised)
        identity = make_identity(replicas.count);
    for (unsigned i = 0; i < replicas.count; i++)
        if (!store_identity(&replicas.replica[i]))
            return false;
    return true;
}

// of_all: collects promises of all servers; otherwise of servers whose log counts.
static void collect_promises(bool of_all) {
    for (unsigned i = 0; i < replicas.count; i++) {
        struct replica *replica = &replicas.replica[i];
        if (replica->state == KNOWN && (of_all || replica->epoch > 0) && store_epoch(replica))
            replica->state = PROMISED;
    }
}

/*
 * Reads the logs of the servers that have promised: no other client has changed them since. The
 * newest log is the one whose last record has the highest epoch, and among several of them the
 * longest; it becomes this client's log.
 */
static void read_logs(void) {
    struct log_state state;
    extent = (struct extent){.end = 0};
    for (unsigned i = 0; i < replicas.count; i++) {
        struct replica *replica = &replicas.replica[i];
        if (replica->state != PROMISED || !fetch_log(replica, &state))
            continue;
        struct extent found = read_log(other_copy, state.tail);
        if (found.end != state.tail || found.epoch >= epoch) {
            lose_replica(replica, found.epoch < epoch
                                      ? "its log is damaged"
                                      : "its log is newer than its epoch, others are needed");
            continue;
        }
        replica->state = READ;
        if (extent.end == 0 || found.epoch > extent.epoch ||
            (found.epoch == extent.epoch && found.count > extent.count)) {
            char *older = log_copy;
            log_copy = other_copy;
            other_copy = older;
            extent = found;
        }
    }
}

/*
 * A new log starts on all servers at once, and only if none has a record: so all have to be
 * connected before the first is queried. A promise would validate a log that is empty because
 * its server has lost it.
 */
static bool all_logs_empty(void) {
    if (count_replicas(&replicas, CONNECTED) < replicas.count)
        return false;
    if (choose_epoch() > LOG_BEGIN)
        fail("there are records already: start without --new");
    return count_replicas(&replicas, KNOWN) == replicas.count;
}

/*
 * Makes this client the owner of the log: a majority of the servers, all of which count, has
 * promised it, and their logs were read afterwards, over the same connection.
 */
static bool acquire_log(bool new_log) {
    connect_servers();
    if (new_log) {
        if (!all_logs_empty())
            return false;
    } else {
        (void)choose_epoch();
        check_valid_logs();
    }
    if (!agree_on_log(new_log))
        return false;
    collect_promises(new_log);
    read_logs();
    return count_replicas(&replicas, READ) >= (new_log ? replicas.count : replicas.majority);
}

static void append(const char *payload, size_t size) {
    size_t place = extent.end, tail = place + record_space(size);

    if (tail > LOG_SIZE)
        fail("the log is full");
    (void)make_record(log_copy + place, extent.count, epoch, payload, size);
    (void)next_record(log_copy, tail, &extent);
    for (unsigned i = 0; i < replicas.count; i++)
        if (replicas.replica[i].state == MEMBER)
            post_record(&replicas.replica[i], mr, base_of(log_copy), place, tail,
                        extent.count - 1);
    while (count_members(&replicas, extent.count) < replicas.majority) {
        await_events(&replicas);
        if (!has_majority())
            synchronize_returned();
    }
    // Records in plain memory are lost if a majority fails: they are not committed.
    bool committed = count_persistent(&replicas, extent.count) >= replicas.majority;
    printf("%s %llu %08x\n", committed ? "committed" : "replicated",
           (unsigned long long)extent.count - 1, (unsigned)extent.checksum);
    if (ferror(stdout))
        fail("record %llu cannot be reported", (unsigned long long)extent.count - 1);
}

// From now on this client owns the log. An empty record of its epoch commits all earlier ones.
static void open_log(bool new_log) {
    int64_t until = clock_ms() + MAJORITY_MS;
    while (!acquire_log(new_log)) {
        if (clock_ms() >= until)
            fail("%u of %u servers are connected and have a valid log, %u are needed",
                 count_replicas(&replicas, READ), replicas.count,
                 new_log ? replicas.count : replicas.majority);
    }
    synchronize_returned();
    append("", 0);
}

// Waits until each member lacks at most `lag` records.
static void await_members(uint64_t lag) {
    uint64_t least = extent.count < lag ? 0 : extent.count - lag;
    while (count_members(&replicas, least) < count_replicas(&replicas, MEMBER))
        await_events(&replicas);
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    static char line[PAYLOAD_MAX];
    size_t length;

    // Unreachable servers are expected here: the library logs to syslog only.
    CALL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED));
    replicas = open_replicas(&args);
    memory = open_memory(NULL, 2 * LOG_SIZE);
    CALL(rpma_mr_reg(replicas.peer, memory.ptr, 2 * LOG_SIZE,
                     RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC, &mr));
    log_copy = memory.ptr;
    other_copy = memory.ptr + LOG_SIZE;

    open_log(args.make_new);
    while (read_line(line, sizeof(line), &length)) {
        synchronize_returned();
        append(line, length);
        await_members(WINDOW - 1);
    }
    await_members(0);
    printf("client: %llu records, %u of %u servers have all of them\n",
           (unsigned long long)extent.count, count_replicas(&replicas, MEMBER), replicas.count);

    CALL(rpma_mr_dereg(&mr));
    close_memory(&memory);
    close_replicas(&replicas);
    return EXIT_SUCCESS;
}
