// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ledger.c -- the records that a client writes, and the file that says which of them are
// flushed

#include "ledger.h"

#include "failure.h"
#include "operations.h"
#include "pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION 1
#define LINE_SIZE 160
#define OPERATION_SIZE 24

struct ledger {
    const char *path;
    int fd;
    size_t length;
    char text[CONNECTIONS_MAX * LINE_SIZE]; // added, and not yet written
};

uint64_t record_place(const struct ledger_head *head, uint64_t connection, uint64_t number) {
    const uint64_t ring = head->plan.ring;
    return (connection * ring + number % ring) * plan_stride(&head->plan);
}

void record_fill(void *record, const struct ledger_head *head, uint64_t connection,
                 uint64_t number) {
    const uint64_t named[] = {head->run, connection, number,
                              record_place(head, connection, number)};
    memcpy(record, named, sizeof(named));
    pattern_fill((char *)record + sizeof(named), head->plan.size - sizeof(named),
                 head->run + connection, number);
}

// The CRC-32 of Ethernet, gzip and zlib.
static uint32_t crc_of(const char *text, size_t length) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)text[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~crc;
}

// Appends the checksum and the end of the line to its text. Returns its length.
static size_t seal(char *text, int length) {
    return (size_t)(length + sprintf(text + length, " %08x\n", crc_of(text, (size_t)length)));
}

static size_t print_head(char *text, const struct ledger_head *head) {
    const struct plan *plan = &head->plan;
    return seal(text, snprintf(text, LINE_SIZE,
                               "rpma-perf ledger %d: run %016lx, %s, size %lu, ring %lu, "
                               "connections %lu",
                               VERSION, head->run, operations[plan->operation].name, plan->size,
                               plan->ring, plan->connections));
}

static size_t print_line(char *text, const struct ledger_line *line) {
    return seal(text, snprintf(text, LINE_SIZE, "%lu %lu %lu", line->connection, line->done,
                               line->bound));
}

// ---- writing -------------------------------------------------------------------------------

struct ledger *ledger_create(const char *path, const struct ledger_head *head) {
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    if (!ledger) {
        fail("out of memory");
        return NULL;
    }
    ledger->path = path;
    ledger->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    ledger->length = print_head(ledger->text, head);
    if (ledger->fd < 0)
        fail("cannot make the ledger %s: %s", path, strerror(errno));
    else if (ledger_sync(ledger))
        return ledger;
    ledger_close(ledger);
    return NULL;
}

void ledger_add(struct ledger *ledger, struct ledger_line line) {
    ledger->length += print_line(ledger->text + ledger->length, &line);
}

// A signal that wakes a worker may interrupt both calls where the file is remote.
bool ledger_sync(struct ledger *ledger) {
    size_t written = 0;
    while (written < ledger->length) {
        ssize_t part = write(ledger->fd, ledger->text + written, ledger->length - written);
        if (part < 0 && errno != EINTR)
            return fail("cannot write the ledger %s: %s", ledger->path, strerror(errno));
        written += part > 0 ? (size_t)part : 0;
    }
    ledger->length = 0;
    while (fdatasync(ledger->fd))
        if (errno != EINTR)
            return fail("cannot sync the ledger %s: %s", ledger->path, strerror(errno));
    return true;
}

void ledger_close(struct ledger *ledger) {
    if (ledger && ledger->fd >= 0)
        close(ledger->fd);
    free(ledger);
}

// ---- reading -------------------------------------------------------------------------------

// Each text is compared with that of the values read from it, which leaves one way to write
// them.
static bool scan_head(const char *text, struct ledger_head *head) {
    struct plan *plan = &head->plan;
    char name[OPERATION_SIZE], again[LINE_SIZE];
    if (sscanf(text,
               "rpma-perf ledger %*u: run %16lx, %23[^,], size %lu, ring %lu, connections %lu",
               &head->run, name, &plan->size, &plan->ring, &plan->connections) != 5)
        return false;
    while (plan->operation < OPERATION_COUNT &&
           strcmp(operations[plan->operation].name, name) != 0)
        plan->operation++;
    return plan->operation < OPERATION_COUNT && print_head(again, head) &&
           !strcmp(text, again) && plan->size >= RECORD_SIZE_MIN &&
           plan->size <= SIZE_MAX_OF_OPERATION && plan->ring && plan->ring <= RING_MAX &&
           plan->connections && plan->connections <= CONNECTIONS_MAX && !plan_conflict(plan);
}

static bool read_head(FILE *file, const char *path, struct ledger_head *head) {
    char text[LINE_SIZE];
    int version;
    // What plan_conflict() looks at besides the settings that the line has.
    *head = (struct ledger_head){.plan = {.depth = 1, .batch = 1, .elements = 1, .threads = 1}};
    if (!fgets(text, sizeof(text), file) || sscanf(text, "rpma-perf ledger %d:", &version) != 1)
        return fail("%s is no ledger of rpma-perf", path);
    if (version != VERSION)
        return fail("%s is a ledger of version %d, this rpma-perf reads version %d", path,
                    version, VERSION);
    return scan_head(text, head) || fail("line 1 of the ledger %s is damaged", path);
}

// Takes a line; what a connection has done never becomes less.
static bool take_line(const char *text, const struct ledger_head *head,
                      struct ledger_line *lines) {
    struct ledger_line line;
    char again[LINE_SIZE];
    if (sscanf(text, "%lu %lu %lu", &line.connection, &line.done, &line.bound) != 3 ||
        !print_line(again, &line) || strcmp(text, again) != 0 ||
        line.connection >= head->plan.connections || line.bound < line.done ||
        line.done < lines[line.connection].done)
        return false;
    lines[line.connection] = line;
    return true;
}

bool ledger_read(const char *path, struct ledger_head *head, struct ledger_line *lines,
                 bool *is_torn) {
    char text[LINE_SIZE];
    FILE *file = fopen(path, "re");
    if (!file)
        return fail("%s: %s", path, strerror(errno));
    bool is_right = read_head(file, path, head);
    memset(lines, 0, CONNECTIONS_MAX * sizeof(*lines));
    *is_torn = false;
    for (unsigned long number = 2; is_right && fgets(text, sizeof(text), file); number++) {
        *is_torn = !strchr(text, '\n') && feof(file);
        if (!*is_torn && !take_line(text, head, lines))
            is_right = fail("line %lu of the ledger %s is damaged", number, path);
    }
    if (is_right && ferror(file))
        is_right = fail("cannot read %s", path);
    fclose(file);
    return is_right;
}
