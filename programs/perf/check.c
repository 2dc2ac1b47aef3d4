// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// check.c -- compares memory with what a ledger says of it

#include "failure.h"
#include "ledger.h"
#include "operations.h"
#include "sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct check {
    struct ledger_head head;
    struct memory memory;
    char *wanted; // room for a record
    uint64_t recorded, checked, found;
    char first_missing[160];
};

static size_t first_difference(const char *found, const char *wanted, size_t size) {
    size_t place = 0;
    while (place < size && found[place] == wanted[place])
        place++;
    return place;
}

static bool holds(const struct check *check, const char *found, uint64_t connection,
                  uint64_t number) {
    record_fill(check->wanted, &check->head, connection, number);
    return !memcmp(found, check->wanted, check->head.plan.size);
}

static void describe(struct check *check, const char *found, uint64_t connection,
                     uint64_t number) {
    uint64_t named[3]; // the run, the connection and the number of what is there
    char what[80] = "has no record of this run";
    memcpy(named, found, sizeof(named));
    if (named[0] == check->head.run && named[2] != number &&
        holds(check, found, connection, named[2]))
        snprintf(what, sizeof(what), "has record %lu", named[2]);
    else if (named[0] == check->head.run && !holds(check, found, connection, number))
        snprintf(what, sizeof(what), "is torn: its byte %zu of %lu is wrong",
                 first_difference(found, check->wanted, check->head.plan.size),
                 check->head.plan.size);
    snprintf(check->first_missing, sizeof(check->first_missing),
             "connection %lu, record %lu; its place at byte %lu %s", connection, number,
             record_place(&check->head, connection, number), what);
}

// Looks for the recorded records that no later one was allowed to overwrite.
static void check_connection(struct check *check, const struct ledger_line *line) {
    const uint64_t ring = check->head.plan.ring;
    check->recorded += line->done;
    for (uint64_t number = line->bound > ring ? line->bound - ring : 0; number < line->done;
         number++) {
        const char *found = (const char *)check->memory.ptr +
                            record_place(&check->head, line->connection, number);
        check->checked++;
        if (holds(check, found, line->connection, number))
            check->found++;
        else if (!*check->first_missing)
            describe(check, found, line->connection, number);
    }
}

static bool check_all(struct check *check, const char *ledger, const char *path) {
    static struct ledger_line lines[CONNECTIONS_MAX];
    bool is_torn;
    if (!ledger_read(ledger, &check->head, lines, &is_torn) ||
        !memory_map(&check->memory, path, PROT_READ))
        return false;
    uint64_t size = plan_target_size(&check->head.plan);
    if (check->memory.size < size)
        return fail("%s has %zu bytes, the ledger %s is of at least %lu", path,
                    check->memory.size, ledger, size);
    check->wanted = malloc(check->head.plan.size);
    if (!check->wanted)
        return fail("out of memory");
    for (uint64_t i = 0; i < check->head.plan.connections; i++)
        check_connection(check, &lines[i]);
    if (!check->checked)
        return fail("the ledger %s names no record that could be checked", ledger);
    printf("%s: %lu records recorded, %lu checked, %lu found%s%s%s\n",
           operations[check->head.plan.operation].name, check->recorded, check->checked,
           check->found, *check->first_missing ? ", first missing: " : "", check->first_missing,
           is_torn ? " (the ledger ends within a line, which does not count)" : "");
    return true;
}

int run_check(const struct options *options) {
    struct check check = {.found = 0};
    bool is_done = check_all(&check, options->ledger, options->memory);
    if (!is_done)
        complain("%s", failure());
    free(check.wanted);
    memory_free(&check.memory);
    return !is_done ? EXIT_FAILURE : check.found < check.checked ? EXIT_MISSING : EXIT_SUCCESS;
}
