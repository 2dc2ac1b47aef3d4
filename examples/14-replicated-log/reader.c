// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// reader.c -- checks the logs of all servers, and that they contain every committed record

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct log {
    uint64_t count;
    uint32_t *checksums; // of its records
};

static const char *map_log(const char *file, size_t number) {
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail("cannot open %s: %s", file, strerror(errno));
    const char *log =
        mmap(NULL, LOG_SIZE, PROT_READ, MAP_SHARED, fd, (off_t)((number - 1) * LOG_SIZE));
    if (log == MAP_FAILED)
        fail("cannot map log %zu of %s: %s", number, file, strerror(errno));
    close(fd);
    return log;
}

// Checks the order and the checksums of the records, and that the last ends at the tail.
static struct log check_log(const char *file, const char *number) {
    const char *log = map_log(file, strtoul(number, NULL, 10));
    struct log_state state;
    const char *problem = read_header((const void *)log, &state);
    struct extent extent = {.end = LOG_BEGIN};
    struct log found = {.checksums = calloc(LOG_SIZE / sizeof(struct record), 4)};
    if (!found.checksums)
        fail("no memory");
    if (problem)
        fail("log %s of %s: %s", number, file, problem);
    while (next_record(log, state.tail, &extent))
        found.checksums[found.count++] = extent.checksum;
    if (extent.end != state.tail)
        fail("log %s of %s is damaged at byte %zu, after %llu records", number, file,
             extent.end, (unsigned long long)found.count);
    printf("reader: log %s has %llu records, all right\n", number,
           (unsigned long long)found.count);
    return found;
}

// Checks that each record that the client reported is in a majority of the logs.
static unsigned long long check_committed(const struct log *logs, int count) {
    unsigned long long number, checked = 0;
    char line[256];
    unsigned checksum;
    while (fgets(line, sizeof(line), stdin)) {
        int holders = 0;
        if (sscanf(line, "committed %llu %x", &number, &checksum) != 2)
            continue;
        for (int i = 0; i < count; i++)
            holders += number < logs[i].count && logs[i].checksums[number] == checksum;
        if (holders < count / 2 + 1)
            fail("record %llu was committed, but only %d of %d logs have it", number, holders,
                 count);
        checked++;
    }
    return checked;
}

int main(int argc, char *argv[]) {
    int count = (argc - 1) / 2;
    if (count < 1 || argc != 2 * count + 1) {
        fprintf(stderr,
                "usage: %s FILE LOG [FILE LOG]... <the output of the client\n"
                "Checks log number LOG in each FILE, and that a majority of them has "
                "what was committed.\n",
                argv[0]);
        return 2;
    }
    struct log *logs = calloc((size_t)count, sizeof(*logs));
    if (!logs)
        fail("no memory");
    for (int i = 0; i < count; i++)
        logs[i] = check_log(argv[1 + 2 * i], argv[2 + 2 * i]);
    unsigned long long checked = check_committed(logs, count);
    printf("reader: all %llu committed records exist\n", checked);
    for (int i = 0; i < count; i++)
        free(logs[i].checksums);
    free(logs);
    return EXIT_SUCCESS;
}
