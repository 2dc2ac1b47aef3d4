// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// replicated_log_checks.c -- the invariants of example 14: no committed record is lost or
// changed, and no power failure leaves a damaged log

#include "modules.h"
#include "replicated_log.h"

#include <rdma-sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECORDS_MAX 512
#define VALUES_MAX 64

struct state states[PROGRAMS_MAX];
char committed_lines[1 << 14];
bool log_exists;

static struct committed {
    uint64_t number;
    uint32_t checksum;
} committed[RECORDS_MAX];
static unsigned committed_count;
// The records of a server that are visible, and those that every power failure leaves.
static struct held {
    unsigned visible, certain;
    uint32_t checksums[RECORDS_MAX];
} all_held[SERVERS_MAX];

// ---- the logs ------------------------------------------------------------------------------

// Sets the values that a word may have: now, or after a power failure. Returns their number.
static unsigned values_of(const char *log, size_t place, bool is_program,
                          uint64_t values[VALUES_MAX]) {
    unsigned count = 0;
    while (is_program && count < VALUES_MAX &&
           !rdma_sim_possible_value(log + place, count, &values[count]))
        count++;
    if (count == 0)
        values[count++] = word_at(log, place);
    return count;
}

static bool is_certain(const char *log, size_t begin, size_t end) {
    return !rdma_sim_check_persistent(log + begin, end - begin);
}

static void check_header(unsigned server, bool is_program) {
    uint64_t values[VALUES_MAX];
    bool counts = false;
    const char *const log = logs[server];
    for (unsigned i = values_of(log, EPOCH_PLACE, is_program, values); i-- > 0;) {
        const uint64_t epoch = number_of(EPOCH_PLACE, values[i]);
        if (epoch > UINT32_MAX)
            report("server%u: the epoch is damaged", server + 1);
        if (setting->foreign && epoch > FOREIGN_EPOCH && server < log_servers())
            report("server%u: stores the epoch of a client of another log", server + 1);
        counts |= epoch > 0;
    }
    for (unsigned i = values_of(log, IDENTITY_PLACE, is_program, values); i-- > 0;) {
        const uint64_t identity = number_of(IDENTITY_PLACE, values[i]);
        if (identity > UINT32_MAX)
            report("server%u: the identity is damaged", server + 1);
        if (counts && !identity)
            report("server%u: the log has an epoch but no identity", server + 1);
    }
}

// Returns true if the part of the header that never changes can be right.
static bool can_be_log(const char *log, bool is_program) {
    static char header[LOG_BEGIN];
    uint64_t values[VALUES_MAX];
    if (!is_log(header))
        make_empty_log(header, 0, 0);
    for (size_t place = FIXED_BEGIN; place < FIXED_END + WORD; place += WORD) {
        bool can_be = false;
        for (unsigned i = values_of(log, place, is_program, values); i-- > 0;)
            can_be |= place < FIXED_END
                          ? values[i] == word_at(header, place)
                          : (uint32_t)values[i] == (uint32_t)word_at(header, place);
        if (!can_be)
            return false;
    }
    return true;
}

// A header that a power failure can leave makes a promise: the records before each possible
// tail are complete and persistent. Returns the defect, or NULL.
static const char *read_log(unsigned server, bool is_program, struct held *held) {
    const char *const log = logs[server];
    uint64_t tails[VALUES_MAX], first = LOG_SIZE, last = 0;
    held->visible = held->certain = 0;
    if (!can_be_log(log, is_program))
        return NULL;
    for (unsigned i = values_of(log, TAIL_PLACE, is_program, tails); i-- > 0;) {
        const uint64_t tail = number_of(TAIL_PLACE, tails[i]);
        if (tail < LOG_BEGIN || tail > LOG_SIZE || tail % WORD)
            return "the tail is damaged";
        first = tail < first ? tail : first;
        last = tail > last ? tail : last;
    }
    check_header(server, is_program);
    const uint64_t tail =
        is_log(log) ? number_of(TAIL_PLACE, word_at(log, TAIL_PLACE)) : LOG_BEGIN;
    if (is_program && !is_certain(log, FIXED_BEGIN, FIXED_END + 4))
        first = LOG_BEGIN;
    struct record record = {.end = LOG_BEGIN};
    for (unsigned count = 0; record.end < last && count < RECORDS_MAX; count++) {
        const struct record before = record;
        if (!read_record(log, before.end, count, &record) || record.epoch < before.epoch ||
            record.end > last)
            return "a record before the tail is damaged";
        if (is_program && !is_certain(log, before.end, record.end))
            return "a record before the tail can be lost by a power failure";
        held->checksums[count] = record.checksum;
        held->visible += record.end <= tail;
        held->certain += record.end <= first;
    }
    return NULL;
}

bool has_no_log(unsigned server, bool is_program) {
    uint64_t epochs[VALUES_MAX];
    bool is_missing = !is_log(logs[server]);
    for (unsigned i = values_of(logs[server], EPOCH_PLACE, is_program, epochs); i-- > 0;) {
        const uint64_t epoch = number_of(EPOCH_PLACE, epochs[i]);
        is_missing |= epoch == 0 || epoch > UINT32_MAX;
    }
    return is_missing;
}

unsigned count_without_log(bool is_program) {
    unsigned count = 0;
    for (unsigned i = 0; i < setting->servers; i++)
        count += states[i].is_replaced || has_no_log(i, is_program);
    return count;
}

static void check_committed(bool is_program) {
    const unsigned missing =
        setting->loses_memory || setting->damages_header ? count_without_log(is_program) : 0;
    for (const struct committed *each = committed; each < committed + committed_count; each++)
        for (int certain = 0; certain < 2; certain++) {
            unsigned holders = 0;
            for (unsigned i = 0; i < setting->servers; i++) {
                const struct held *const held = &all_held[i];
                holders += each->number < (certain ? held->certain : held->visible) &&
                           held->checksums[each->number] == each->checksum;
            }
            if (holders + missing <= log_servers() / 2)
                report("record %u was committed, but only %u of %u servers %s",
                       (unsigned)each->number, holders, log_servers(),
                       certain ? "keep it after a power failure" : "hold it");
        }
}

void check_logs(bool is_program) {
    if (first_mistake() || setting->is_damaged || (setting->make_log && is_program))
        return;
    for (unsigned i = 0; i < setting->servers; i++) {
        if (states[i].is_replaced) {
            all_held[i].visible = all_held[i].certain = 0;
            continue;
        }
        const char *const defect = read_log(i, is_program, &all_held[i]);
        if (defect)
            report("server%u: %s", i + 1, defect);
    }
    check_committed(is_program);
}

// ---- lines ---------------------------------------------------------------------------------

// Returns the connection of a client to the server in the line, or NULL.
static struct link *lost_link(int program, const char *line) {
    char addr[16];
    struct state *const client = &states[program];
    if (sscanf(line, "client: server %15s is lost:", addr) == 1)
        for (unsigned i = 0; i < LINKS_MAX; i++)
            if (client->links[i].conn && client->links[i].server >= 0 &&
                !strcmp(addr, addresses[client->links[i].server]))
                return &client->links[i];
    return NULL;
}

// The time in which the program has polled, because it does not blame a server for its own
// pauses.
static int64_t active_ms(const struct state *state) {
    const int64_t gap = now_ms() - state->polled;
    return state->active + (gap < POLL_MS ? gap : POLL_MS);
}

static void check_server_line(int program, const char *line) {
    struct state *const server = &states[program];
    unsigned number;
    if (is_second_server(program))
        report_line("a second server serves a log", line);
    if (strstr(line, "server: listening")) {
        server->has_listened = true;
        if (server->locked_end && !is_certain(logs[program], 0, LOG_BEGIN))
            report_line("a power failure can damage the header of a server", line);
    }
    server->has_unreported_disconnect &= !strstr(line, "a client disconnected");
    if (sscanf(line, "server: the log has %u records, all right", &number) == 1) {
        if (!setting->plain && !setting->is_damaged && !setting->make_log &&
            number != all_held[program].visible)
            report_line("a server reports a wrong number of records", line);
        server->has_reported_records = true;
    }
}

static bool has_all(unsigned server, unsigned records) {
    const struct held *const held = &all_held[server];
    for (unsigned i = 0; i < committed_count; i++)
        if (committed[i].number < records &&
            held->checksums[committed[i].number] != committed[i].checksum)
            return false;
    return held->certain >= records;
}

static void check_members(const char *line, unsigned records, unsigned members, unsigned of) {
    unsigned holders = setting->plain;
    for (unsigned i = 0; i < setting->servers; i++)
        holders += has_all(i, records);
    if (of != log_servers() ||
        (!setting->loses_memory && !setting->damages_header && members > holders))
        report_line("fewer servers have all records", line);
}

static void check_client_line(int program, const char *line) {
    struct state *const client = &states[program];
    unsigned number, checksum, members, of;
    size_t bytes;
    if (client->is_misconfigured) {
        if (strstr(line, addresses[2]) && strstr(line, " has all"))
            report_line("a client changes a server of another log", line);
        return;
    }
    if (sscanf(line, "client: %u records, %u of %u", &number, &members, &of) == 3)
        check_members(line, number, members, of);
    if (sscanf(line, "client: server %*s has all %u records, %zu bytes", &number, &bytes) ==
            2 &&
        bytes > (size_t)number * 64) // the size of the longest record
        report_line("a client reports more missing bytes than the log has", line);
    const struct link *const lost = lost_link(program, line);
    if (lost && strstr(line, "it does not reply") &&
        active_ms(client) <= lost->progress + PATIENCE_MS)
        report_line("a client abandons a server before the time limit", line);
    const bool is_committed = sscanf(line, "committed %u %x", &number, &checksum) == 2;
    if (!is_committed && sscanf(line, "replicated %u", &number) != 1)
        return;
    if (!is_committed && !setting->plain)
        report_line("all servers are persistent, but", line);
    client->committed++;
    log_exists = true;
    if (!is_committed || committed_count == RECORDS_MAX)
        return;
    const size_t length = strlen(committed_lines);
    snprintf(committed_lines + length, sizeof(committed_lines) - length, "%s", line);
    committed[committed_count++] = (struct committed){number, checksum};
    check_committed(true);
}

void handle_line(int program, const char *line) {
    if (program == READER)
        return;
    if (strstr(line, "(null)"))
        report("a program prints a NULL string");
    check_logs(true);
    if (is_server(program))
        check_server_line(program, line);
    else
        check_client_line(program, line);
    act_at_line(program, line);
}

void handle_log(int program, const char *text) {
    // These calls fail if the client has ended, which a server cannot detect before.
    states[program].has_logged |=
        program != READER && !(is_server(program) && (strstr(text, " rdma_create_qp_ex(") ||
                                                      strstr(text, " rdma_reject(") ||
                                                      strstr(text, " rdma_accept(")));
}

// ---- what the programs call ----------------------------------------------------------------

char *memory_of(int program) {
    return logs[is_second_server(program) ? 0 : program];
}

void handle_persist(int program, const void *ptr, size_t size) {
    const struct state *const state = &states[program];
    const size_t begin = (size_t)((const char *)ptr - memory_of(program));
    if (begin < state->locked_begin || begin + size > state->locked_end)
        report("a server uses a part of a file that it has not locked");
    check_logs(true);
}

void handle_lock(int program, int fd, size_t begin, size_t end) {
    struct state *const state = &states[program];
    state->lock = fd;
    state->locked_begin = begin;
    state->locked_end = end;
}

void handle_close(int program, int fd) {
    if (states[program].lock == fd)
        handle_lock(program, -1, 0, 0);
}

void handle_signals(int program, int fd) {
    states[program].signals = fd;
    if (states[program].locked_begin == states[program].locked_end &&
        program < (int)(setting->servers - setting->plain))
        report("a server serves a log that it has not locked");
    if (states[program].is_asked_to_stop)
        stop_program(program);
}

// A client reads lines of different lengths, and the reader what the clients have committed.
int next_byte(int program) {
    struct state *const state = &states[program];
    if (program == READER) {
        const unsigned char byte = (unsigned char)committed_lines[state->input_read];
        state->input_read += byte != '\0';
        return byte ? byte : EOF;
    }
    if (!state->input[state->input_read]) {
        if (state->lines_read == lines_of(program))
            return EOF;
        state->input_read = 0;
        state->lines_read++;
        snprintf(state->input, sizeof(state->input), "client%d, line %u%.*s\n", program,
                 state->lines_read, (int)(state->lines_read * 7 % 23),
                 "......................");
    }
    return (unsigned char)state->input[state->input_read++];
}

static struct link *link_of(int program, const void *conn) {
    for (unsigned i = 0; i < LINKS_MAX; i++)
        if (states[program].links[i].conn == conn)
            return &states[program].links[i];
    return NULL;
}

void handle_connection(int program, const void *conn, uint32_t number, const char *addr) {
    struct link *const unused = link_of(program, NULL);
    if (!conn) {
        states[program].has_unreported_disconnect = is_server(program);
        return;
    }
    if (!unused) {
        report("a program has too many connections");
        return;
    }
    *unused = (struct link){.conn = conn, .qp_num = number, .server = -1};
    for (unsigned i = 0; i < setting->servers && !is_server(program); i++)
        if (!strcmp(addr, addresses[i]))
            unused->server = (int)i;
}

void handle_event(int program, const void *conn, bool is_established) {
    struct link *const link = link_of(program, conn);
    if (!link)
        return;
    link->has_ended |= !is_established;
    link->progress = active_ms(&states[program]);
}

void handle_post(int program, const void *conn) {
    struct link *const link = link_of(program, conn);
    if (link && link->pending++ == 0)
        link->progress = active_ms(&states[program]);
}

void handle_delete(int program, const void *conn) {
    struct link *const link = conn ? link_of(program, conn) : NULL;
    if (link)
        link->conn = NULL;
}

void handle_completion(int program, const struct ibv_wc *wc) {
    check_logs(true);
    for (unsigned i = 0; i < LINKS_MAX; i++) {
        struct link *const link = &states[program].links[i];
        if (!link->conn || link->qp_num != wc->qp_num)
            continue;
        link->pending -= link->pending > 0;
        link->progress = active_ms(&states[program]);
    }
}

// Before a program waits, it deletes connections that have ended, and reports a client that
// disconnected before it was accepted.
void handle_poll(int program) {
    struct state *const state = &states[program];
    for (unsigned i = 0; i < LINKS_MAX; i++)
        if (state->links[i].conn && state->links[i].has_ended)
            report("a program waits without deleting a connection that has ended");
    if (state->has_unreported_disconnect)
        report("a server does not report a client that disconnected before it was accepted");
    state->active = active_ms(state);
    state->polled = now_ms();
    check_logs(true);
    act_at_wait(program);
}

// ---- ends ----------------------------------------------------------------------------------

static char last_error[256];

const char *error_of_last_end(void) {
    return last_error;
}

static void check_end(int program, int status, const char *error) {
    const struct state *const state = &states[program];
    if (is_second_server(program)) {
        if (!strstr(error, "another process uses"))
            report_line("the second server is not refused", error);
        return;
    }
    if (is_server(program) && (status || !state->is_asked_to_stop))
        report_line("a server ends", error);
    if (is_server(program) && !status && !state->has_reported_records)
        report("a server succeeds without reporting its number of records");
    if (!is_server(program) && !status && !state->is_misconfigured &&
        state->committed < state->lines_read)
        report("a client succeeds, and has not committed all its lines");
    if (state->has_logged)
        report("a program causes an error in the log for a server that is expected to be "
               "unreachable");
    log_exists |= strstr(error, "start without --new") != NULL;
}

// Continues in run_once().
int handle_end(int program, int status, const char *error) {
    snprintf(last_error, sizeof(last_error), "%s", error);
    if (status && !*error && program != READER)
        report("a program fails without an error message");
    const bool is_damaged = setting->is_damaged || (setting->damages_header && program == 0);
    if (program != READER && !setting->make_log && !is_damaged)
        check_end(program, status, error);
    longjmp(states[program].end, status + 1);
}
