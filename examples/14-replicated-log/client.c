// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- appends the lines of its standard input to a log that several servers keep

#include "replica.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

static const struct program program = {
    .does = "Appends each line of its standard input to the log that the servers keep.",
    .many_servers = true,
};

struct region {
    struct memory memory;
    struct rpma_mr_local *mr;
};

static struct replicas replicas;
static struct region records;  // the headers of the newest WINDOW records
static struct region payloads; // and what they carry
static struct region logs;     // room to compare and copy two logs
static char *log_copy[2];      // the two
static struct extent extent;   // what is in the log
static uint64_t epoch;         // this client's

static struct region make_region(size_t size, int usage) {
    struct region region = {.memory = open_memory(NULL, size)};
    CALL(rpma_mr_reg(replicas.peer, region.memory.ptr, size, usage, &region.mr));
    return region;
}

static void delete_region(struct region *region) {
    CALL(rpma_mr_dereg(&region->mr));
    close_memory(&region->memory);
}

static const struct log_header *header_of(const char *copy) {
    return (const void *)copy;
}

// Copies a server's log, up to its tail; false: the server got lost.
static bool fetch_log(struct replica *replica, char *copy) {
    size_t base = (size_t)(copy - logs.memory.ptr);
    if (!fetch_part(&replicas, replica, logs.mr, base, 0, LOG_BEGIN))
        return false;
    if (!log_tail(header_of(copy)))
        fail("server %s offers something that is no log", replica->addr);
    return fetch_part(&replicas, replica, logs.mr, base, LOG_BEGIN, log_tail(header_of(copy)));
}

/*
 * Makes the server's log equal to the copy. What it has beyond their common part no majority
 * had: it is taken out of the log before anything is written in its place.
 */
static bool bring_up(struct replica *replica, const char *copy) {
    char *old = copy == log_copy[0] ? log_copy[1] : log_copy[0];
    size_t base = (size_t)(copy - logs.memory.ptr);
    size_t tail_place = offsetof(struct log_header, tail);

    if (!fetch_log(replica, old))
        return false;
    size_t tail = log_tail(header_of(old));
    if (le64toh(header_of(old)->epoch) > epoch)
        fail("another client has taken over");
    struct extent common = common_part(copy, extent.end, old, tail);
    if (!store_number(&replicas, replica, offsetof(struct log_header, epoch), epoch) ||
        (tail > common.end && !store_number(&replicas, replica, tail_place, common.end)) ||
        !store_part(&replicas, replica, logs.mr, base, common.end, extent.end) ||
        !store_number(&replicas, replica, tail_place, extent.end))
        return false;
    replica->count = extent.count;
    replica->state = MEMBER;
    printf("client: server %s has all %llu records, %zu bytes were missing\n", replica->addr,
           (unsigned long long)extent.count, extent.end - common.end);
    return true;
}

static struct replica *find_replica(enum replica_state state) {
    for (unsigned i = 0; i < replicas.count; i++)
        if (replicas.replica[i].state == state)
            return &replicas.replica[i];
    return NULL;
}

// A server that came back gets what it lacks from one that has everything.
static void bring_up_returned(void) {
    struct replica *returned, *source;
    reconnect(&replicas);
    take_news(&replicas);
    while ((returned = find_replica(CONNECTED)) && (source = find_replica(MEMBER)))
        if (fetch_log(source, log_copy[0]))
            (void)bring_up(returned, log_copy[0]);
}

static bool have_majority(void) {
    return count_replicas(&replicas, MEMBER, 0) >= replicas.majority;
}

static void connect_servers(void) {
    int64_t until = clock_ms() + START_MS;
    while (clock_ms() < until && count_replicas(&replicas, CONNECTED, 0) < replicas.count) {
        reconnect(&replicas);
        await_news(&replicas);
    }
}

// Finds the log that has everything that was ever committed. Returns its copy; NULL: so few
// servers let their logs be read that none of them need have everything.
static const char *find_newest_log(void) {
    char *newest = log_copy[0], *other = log_copy[1];
    unsigned count = 0;
    extent = (struct extent){0};
    for (unsigned i = 0; i < replicas.count; i++) {
        struct replica *replica = &replicas.replica[i];
        if (replica->state < CONNECTED || !fetch_log(replica, other))
            continue;
        replica->state = CONNECTED;
        size_t tail = log_tail(header_of(other));
        struct extent found = read_log(other, tail);
        if (found.end != tail) {
            lose_replica(replica, "its log is damaged");
            continue;
        }
        count++;
        if (le64toh(header_of(other)->epoch) > epoch)
            epoch = le64toh(header_of(other)->epoch);
        if (extent.end == 0 || found.epoch > extent.epoch ||
            (found.epoch == extent.epoch && found.count > extent.count)) {
            char *older = newest;
            newest = other;
            other = older;
            extent = found;
        }
    }
    return count < replicas.majority ? NULL : newest;
}

static void append(size_t size) {
    size_t slot = extent.count % WINDOW;
    struct record *record = (struct record *)(void *)records.memory.ptr + slot;
    const struct rpma_sge sgl[] = {
        {records.mr, slot * sizeof(*record), sizeof(*record)},
        {payloads.mr, slot * PAYLOAD_MAX, size},
    };
    size_t place = extent.end, tail = place + record_space(size);

    if (tail > LOG_SIZE)
        fail("the log is full");
    make_record(record, extent.count, epoch, payloads.memory.ptr + slot * PAYLOAD_MAX, size);
    extent = (struct extent){.count = extent.count + 1, .epoch = epoch, .end = tail};
    for (unsigned i = 0; i < replicas.count; i++)
        if (replicas.replica[i].state == MEMBER)
            post_record(&replicas.replica[i], sgl, 2, place, tail, extent.count - 1);
    while (count_replicas(&replicas, MEMBER, extent.count) < replicas.majority) {
        await_news(&replicas);
        if (!have_majority())
            bring_up_returned();
        if (!find_replica(MEMBER))
            fail("no server is left that has all records");
    }
    printf("committed %llu %08x\n", (unsigned long long)extent.count - 1,
           (unsigned)le32toh(record->checksum));
}

// Makes this client the one that has the log; false: too few servers stayed until the end.
static bool take_log(void) {
    connect_servers();
    const char *newest = find_newest_log();
    if (!newest)
        return false;
    epoch++;
    unsigned promises = 0;
    for (unsigned i = 0; i < replicas.count; i++)
        if (replicas.replica[i].state == CONNECTED)
            promises += store_number(&replicas, &replicas.replica[i],
                                     offsetof(struct log_header, epoch), epoch);
    if (promises < replicas.majority)
        return false;
    for (unsigned i = 0; i < replicas.count; i++)
        if (replicas.replica[i].state == CONNECTED)
            (void)bring_up(&replicas.replica[i], newest);
    return have_majority();
}

/*
 * From now on this client has the log: a majority of the servers promises it by its epoch, gets
 * the newest log, and an empty record of the new epoch, which confirms all before it.
 */
static void open_log(void) {
    int64_t until = clock_ms() + MAJORITY_MS;
    while (!take_log())
        if (clock_ms() >= until)
            fail("%u of %u servers are there, %u are needed",
                 count_replicas(&replicas, CONNECTED, 0), replicas.count, replicas.majority);
    append(0);
}

// The next slot is free once every member has the record that it held.
static char *free_payload(void) {
    uint64_t held = extent.count < WINDOW ? 0 : extent.count - WINDOW + 1;
    while (count_replicas(&replicas, MEMBER, held) < count_replicas(&replicas, MEMBER, 0))
        await_news(&replicas);
    return payloads.memory.ptr + extent.count % WINDOW * PAYLOAD_MAX;
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    char *payload;

    // Servers that cannot be reached are nothing special here: syslog has what the library
    // says.
    CALL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED));
    replicas = open_replicas(&args);
    records = make_region(WINDOW * sizeof(struct record), RPMA_MR_USAGE_WRITE_SRC);
    payloads = make_region(WINDOW * PAYLOAD_MAX, RPMA_MR_USAGE_WRITE_SRC);
    logs = make_region(2 * LOG_SIZE, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC);
    log_copy[0] = logs.memory.ptr;
    log_copy[1] = logs.memory.ptr + LOG_SIZE;

    open_log();
    while (payload = free_payload(), fgets(payload, (int)PAYLOAD_MAX, stdin)) {
        bring_up_returned();
        append(strcspn(payload, "\n"));
    }
    while (count_replicas(&replicas, MEMBER, extent.count) <
           count_replicas(&replicas, MEMBER, 0))
        await_news(&replicas);
    printf("client: %llu records, %u of %u servers have all of them\n",
           (unsigned long long)extent.count, count_replicas(&replicas, MEMBER, 0),
           replicas.count);

    delete_region(&logs);
    delete_region(&payloads);
    delete_region(&records);
    close_replicas(&replicas);
    return EXIT_SUCCESS;
}
