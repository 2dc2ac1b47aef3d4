// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// reader.c -- checks the logs of all servers, and that they contain every committed record

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOGS_MAX 255 // as of the servers
#define LINE_MAX 4096

struct log {
    uint64_t count;
    uint32_t *checksums; // of its records
};

static size_t read_number(const char *text) {
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || number < 1 || number > LOGS_MAX)
        fail("LOG must be 1 to %d, not %s", LOGS_MAX, text);
    return number;
}

static const char *map_log(const char *file, size_t number) {
    struct stat status;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status))
        fail("cannot open %s: %s", file, strerror(errno));
    if (S_ISREG(status.st_mode) && (size_t)status.st_size < number * LOG_SIZE)
        fail("%s has no log %zu", file, number);
    const char *log =
        mmap(NULL, LOG_SIZE, PROT_READ, MAP_SHARED, fd, (off_t)((number - 1) * LOG_SIZE));
    if (log == MAP_FAILED)
        fail("cannot map log %zu of %s: %s", number, file, strerror(errno));
    close(fd);
    return log;
}

// Checks the order and the checksums of the records, and that the last ends at the tail.
static struct log check_log(const char *file, const char *number) {
    const char *log = map_log(file, read_number(number));
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

static size_t format_committed(char text[LINE_MAX + 1], unsigned long long number,
                               unsigned checksum) {
    return (size_t)snprintf(text, LINE_MAX + 1, "committed %llu %08x", number, checksum);
}

// Checks that each record that the client reported is in a majority of the logs.
static unsigned long long check_committed(const struct log *logs, int count) {
    unsigned long long number, checked = 0;
    char line[LINE_MAX + 1], canonical[LINE_MAX + 1];
    unsigned checksum;
    size_t length;
    while (read_line(line, LINE_MAX, &length)) {
        int holders = 0;
        line[length] = '\0';
        if (strncmp(line, "committed", strlen("committed")))
            continue;
        if (sscanf(line, "committed %llu %x", &number, &checksum) != 2 ||
            format_committed(canonical, number, checksum) != length || strcmp(line, canonical))
            fail("a line of the input is damaged: committed record after %llu others", checked);
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
    begin_program();
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
