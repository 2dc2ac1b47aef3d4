// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// damaged_logs.c -- the server and the reader of example 14 refuse every damaged log, and
// change none

#include "replicated_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 4
#define SPACE ((size_t)64) // of a record

static char good[LOG_BEGIN + RECORDS * SPACE];

static void expect(bool is_right, const char *what, size_t where) {
    if (!is_right)
        report("%s (%zu)", what, where);
}

// A server that accepts its log gets a stop signal at once.
static void check_server(const char *log, bool makes_new, bool starts, const char *what,
                         size_t where) {
    memcpy(logs[0], log, sizeof(good));
    states[0].has_listened = !makes_new;
    states[0].is_asked_to_stop = true;
    const int status = start_program(0);
    const bool is_refused = status == EXIT_FAILURE && strstr(error_of_last_end(), "log 1 of");
    expect(starts ? status == EXIT_SUCCESS : is_refused, what, where);
    expect((starts && makes_new) || !memcmp(logs[0], log, sizeof(good)),
           "a server overwrites its log", where);
    if (!makes_new)
        expect((run_reader(1) == EXIT_SUCCESS) == starts, "the reader, and: ", where);
}

static void check_damaged(size_t place, char bits) {
    char log[sizeof(good)];
    memcpy(log, good, sizeof(good));
    log[place] = (char)(log[place] ^ bits);
    check_server(log, false, false, "a wrong bit in the header is accepted", place);
}

static void check_cut(size_t size) {
    char log[sizeof(good)] = {0};
    memcpy(log, good, size);
    check_server(log, false, !memcmp(log, good, sizeof(good)), "a log is cut", size);
}

// A tail that is not the end of a record.
static void check_tail(size_t tail) {
    char log[sizeof(good)];
    memcpy(log, good, sizeof(good));
    set_number(log, TAIL_PLACE, tail);
    check_server(log, false, (tail - LOG_BEGIN) % SPACE == 0, "a tail", tail);
}

static void check_number(size_t place) {
    char log[sizeof(good)];
    memcpy(log, good, sizeof(good));
    memset(log + place, 0xff, WORD);
    check_server(log, false, false, "a number of 2^64 - 1 is accepted", place);
    check_server(log, true, true, "a damaged log cannot be replaced with --new", place);
}

// The reader must find each committed record in a majority of the logs.
static void check_reader(void) {
    struct record record;
    char shorter[sizeof(good)], expected[32];
    memcpy(shorter, good, sizeof(good));
    set_number(shorter, TAIL_PLACE, LOG_BEGIN + SPACE);
    (void)read_record(good, LOG_BEGIN + SPACE, 1, &record);
    snprintf(committed_lines, sizeof(committed_lines), "committed 1 %08x\n", record.checksum);
    for (unsigned holders = 0; holders <= setting->servers; holders++) {
        for (unsigned i = 0; i < setting->servers; i++)
            memcpy(logs[i], i < holders ? good : shorter, sizeof(good));
        snprintf(expected, sizeof(expected), "only %u of ", holders);
        const bool is_accepted = run_reader(setting->servers) == EXIT_SUCCESS;
        expect(is_accepted == (holders > setting->servers / 2) &&
                   (is_accepted || strstr(error_of_last_end(), expected)),
               "the reader of logs that have all", holders);
    }
    snprintf(committed_lines, sizeof(committed_lines), "committed 0 12345678\n");
    expect(run_reader(setting->servers) == EXIT_FAILURE, "the reader of another record", 0);
    *committed_lines = '\0';
    expect(run_reader(0) == 2, "the usage of the reader", 0);
}

int damage_logs(void *argument) {
    (void)argument;
    size_t size = make_empty_log(good, 1, FOREIGN_IDENTITY);
    check_server(good, true, false, "a log of a client that has no record is overwritten", 0);
    for (uint64_t number = 0; number < RECORDS; number++)
        size = add_record(good, size, SPACE, number, 1);
    check_reader();
    check_server(good, false, true, "a good log is refused", size);
    check_server(good, true, false, "a good log is accepted with --new", size);
    for (size_t place = 0; place < IDENTITY_PLACE + WORD; place++)
        for (int bit = 0; bit < 8; bit++)
            // No checksum covers the bytes between.
            if (place < FIXED_END + 4 || place >= IDENTITY_PLACE)
                check_damaged(place, (char)(1 << bit));
    for (size_t cut = 0; cut < size; cut++)
        check_cut(cut);
    for (size_t tail = LOG_BEGIN; tail <= size; tail += WORD)
        check_tail(tail);
    check_number(TAIL_PLACE);
    check_number(EPOCH_PLACE);
    check_number(IDENTITY_PLACE);
    return EXIT_SUCCESS;
}
