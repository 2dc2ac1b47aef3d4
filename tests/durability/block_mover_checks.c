// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// block_mover_checks.c -- what the programs of example 15 must do, seen by their lines and
// calls

#include "block_mover.h"
#include "modules.h"

#include <arpa/inet.h>
#include <limits.h>
#include <rdma-sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

struct state states[PROGRAMS_MAX];
static bool has_refused;  // a client, because there are too many
static bool has_accepted; // the server: an untrusted client

bool is_server(int program) {
    return (unsigned)program < setting->servers;
}

bool is_untrusted(int program) {
    return setting->first_client && (unsigned)program == setting->servers;
}

const char *mistake_at_end(void) {
    if (setting->is_full && !has_refused)
        report("no client is refused");
    return first_mistake();
}

// ---- lines of a client ---------------------------------------------------------------------

// Returns the server with this address in the line, or -1.
static int server_in(const char *line) {
    char addr[16];
    if (sscanf(line, "client %*u: server %15s ", addr) == 1)
        for (unsigned i = 0; i < setting->servers; i++)
            if (!strcmp(addr, addresses[i]))
                return (int)i;
    return -1;
}

// A client must not report a longer time than has passed.
static void check_times(struct state *client, const char *line) {
    long long ms;
    if (sscanf(line, "client %*u: has a block %lld ms", &ms) == 1) {
        if (!client->port_up || ms < 0 || ms > now_ms() - client->port_up)
            report_line("a client reports an impossible time", line);
        client->port_up = 0;
    } else if (sscanf(line, "client %*u: continues after %lld ms", &ms) == 1) {
        if (ms < GAP_MS || ms > now_ms())
            report_line("a client reports an impossible time", line);
    } else if (sscanf(line, "client %*u: server %*s is connected in %lld ms", &ms) == 1 &&
               (ms < 0 || ms > now_ms())) {
        report_line("a client reports an impossible time", line);
    }
}

// A client waits PATIENCE_MS for a reply, and twice as long after each missing one. It may have
// taken replies after it has abandoned the server, but not before its last wait.
static void check_patience(struct link *link, const char *line) {
    if (strstr(line, "it does not reply")) {
        if (now_ms() <= link->before_wait + (PATIENCE_MS << link->missed))
            report_line("a client abandons a server too early", line);
        link->missed += link->missed < MISSED_MAX;
    }
    if (link->progress != link->before_wait)
        link->missed = 0;
}

static void check_link(struct state *client, struct link *link, const char *line) {
    if (strstr(line, " is connected")) {
        link->is_connected = true;
        link->qp_num = client->qp_num;
        link->progress = link->before_wait = now_ms();
    } else if (strstr(line, " is lost: ")) {
        check_patience(link, line);
        link->is_connected = false;
        if (chosen->is_without_loss && !setting->is_full &&
            !strstr(line, "it does not reply") && !strstr(line, "it sent an unexpected reply"))
            report_line("a client loses a connection without a fault", line);
    }
}

static void add_fault(const char *fault, int program) {
    char text[32];
    snprintf(text, sizeof(text), "%s host%d", fault, program + 1);
    if (rdma_sim_fault(text))
        report("%s", rdma_sim_error());
}

static void check_client_line(int program, const char *line) {
    struct state *const client = &states[program];
    const int server = server_in(line);
    unsigned pass, blocks, block;
    uint32_t found;
    check_times(client, line);
    if (server >= 0)
        check_link(client, &client->links[server], line);
    if (strstr(line, "client: port 1 is up")) {
        client->port_up = now_ms();
        client->has_waited = false;
        for (unsigned i = 0; i < setting->servers; i++)
            client->links[i].is_begun = false;
    } else if (sscanf(line, "client %*u: pass %u: the sum is %x", &pass, &found) == 2) {
        if (found != sum || pass != ++client->passes)
            report_line("a client accepts wrong blocks", line);
        if (client->port_up)
            report("a client does not report how long it was without its port");
        if (setting->is_endless && pass > PASSES)
            client->is_asked_to_stop = eventfd_write(client->signals, 1) == 0;
    } else if (sscanf(line, "client %*u: moved %u blocks", &blocks) == 1) {
        if (blocks / STORE_BLOCKS != client->passes)
            report_line("a client reports a wrong number of blocks", line);
    } else if (strstr(line, "it sent an unexpected reply")) {
        client->has_reported_bad_reply = true;
        if (!form || server != 0)
            report_line("a client reports a bad reply that no server has sent", line);
    } else if (sscanf(line, "client %*u: block %u of server", &block) == 1) {
        if (!setting->is_damaged || server_in(line) != -1 || block != DAMAGED_BLOCK ||
            !strstr(line, addresses[0]))
            report_line("a block arrives damaged", line);
    }
    if (setting->is_full && !has_refused && strstr(line, " is connected"))
        add_fault("freeze", program);
    if (!has_refused && strstr(line, "has too many clients")) {
        has_refused = true;
        for (unsigned i = 0; i < setting->clients; i++)
            add_fault("thaw", (int)(setting->servers + i));
    }
    if (setting->is_damaged && server == 1 && strstr(line, " is connected"))
        file_bytes[DAMAGED_BLOCK * BLOCK_SIZE] = '?';
}

static void check_server_line(int program, const char *line) {
    struct state *const server = &states[program];
    unsigned number, served;
    if (sscanf(line, "server: client %u is ", &number) == 1 && number <= CLIENTS_MAX) {
        const bool is_new = strstr(line, " is connected") != NULL;
        server->connections[number] += is_new ? 1 : -1U;
        has_accepted |= is_new && setting->first_client && number == 1;
        if (strstr(line, "it sent an invalid request") && form < 3)
            report_line("a server rejects a valid request", line);
    }
    // The server may lack the completions of the last replies.
    if (sscanf(line, "server: served %u blocks", &served) == 1 && chosen->is_without_loss &&
        setting->servers == 1 && !setting->first_client &&
        served + DEPTH * setting->clients < setting->clients * PASSES * STORE_BLOCKS)
        report_line("a server reports too few blocks", line);
}

void handle_line(int program, const char *line) {
    if (strstr(line, "(null)"))
        report("a program prints a NULL string");
    if (strstr(line, "the send was rejected") && !chosen->refuses_posts)
        report_line("a program posts more than a queue holds", line);
    if (is_server(program))
        check_server_line(program, line);
    else if (!is_untrusted(program))
        check_client_line(program, line);
}

// ---- what the programs call ----------------------------------------------------------------

char *memory_of(int program) {
    (void)program;
    return file_bytes;
}

void handle_persist(int program, const void *ptr, size_t size) {
    (void)program, (void)ptr, (void)size;
}

void handle_srq(int program, unsigned size) {
    states[program].posted_count = 0;
    states[program].posted_size = size;
}

void handle_receive(int program, const void *context) {
    struct state *const state = &states[program];
    if (!context)
        state->posted_size = 0; // the program opens its device again
    else if (state->posted_count < RECEIVES_MAX)
        state->posted[state->posted_count++] = context;
}

void handle_connect(int program, const char *addr, bool is_after_loss) {
    for (unsigned i = 0; i < setting->servers; i++)
        states[program].links[i].is_begun |= !strcmp(addr, addresses[i]);
    if (is_after_loss && !chosen->removes_device)
        report(
            "a client connects after a message to a port that was down, after which soft-RoCE "
            "accepts no connection");
}

void handle_setup(int program) {
    states[program].setups++;
}

void handle_qp_num(int program, const void *conn, uint32_t number) {
    struct state *const state = &states[program];
    const unsigned entry = state->number_count++ % NUMBERS_MAX;
    state->qp_num = state->numbers[entry].number = number;
    state->numbers[entry].conn = conn;
    state->numbers[entry].setups = UINT_MAX;
}

void handle_delete(int program, const void *conn) {
    struct state *const state = &states[program];
    for (unsigned i = 0; i < NUMBERS_MAX; i++)
        if (conn && state->numbers[i].conn == conn) {
            state->numbers[i].conn = NULL;
            state->numbers[i].setups = state->setups;
        }
}

// A new queue pair may have the number of one that was deleted.
static void check_number(const struct state *state, uint32_t number) {
    for (unsigned i = 0; i < NUMBERS_MAX; i++)
        if (state->numbers[i].number == number && state->numbers[i].setups < state->setups)
            report("a program takes a completion of a deleted connection after the next one");
}

void handle_completion(int program, const struct ibv_wc *wc) {
    struct state *const state = &states[program];
    const void *const context = (const void *)(uintptr_t)wc->wr_id;
    check_number(state, wc->qp_num);
    for (unsigned i = 0; i < state->posted_count; i++) {
        if (state->posted[i] != context)
            continue;
        state->posted[i] = state->posted[--state->posted_count];
        for (unsigned k = 0; k < setting->servers && wc->status == IBV_WC_SUCCESS; k++) {
            struct link *const link = &state->links[k];
            if (link->is_connected && link->qp_num == wc->qp_num) {
                link->progress = now_ms();
                link->missed = 0;
            }
        }
        return;
    }
}

// The kinds of bad replies.
void handle_send(int program, const void *batch, void *message) {
    static const void *last_batch;
    static struct reply { uint32_t ticket, block, slot, checksum; } last_reply;
    struct reply reply;
    if (!form || setting->first_client || program != 0)
        return;
    memcpy(&reply, message, sizeof(reply));
    const struct reply correct = reply;
    if (form == 1)
        reply.slot = htonl(DEPTH);
    else if (form == 2)
        reply.slot = htonl(ntohl(reply.slot) + 0x10000); // its lower half is a valid slot
    else if (form == 3)
        reply.block = htonl((ntohl(reply.block) + 1) % STORE_BLOCKS);
    else if (form == 4)
        reply.ticket = htonl(ntohl(reply.ticket) + 1);
    else if (last_batch == batch)
        reply = last_reply;
    last_batch = batch;
    last_reply = correct;
    memcpy(message, &reply, sizeof(reply));
}

void handle_signals(int program, int fd) {
    states[program].signals = fd;
}

// A side without a connection has posted all its receives. A server has one connection of each
// client. A client uses a port at once when it is up again: at its next wait, it has a
// connection to each server, or has begun one.
void handle_wait(int program, bool (*is_port_down)(void)) {
    struct state *const state = &states[program];
    unsigned connections = 0;
    if (is_untrusted(program))
        return;
    for (unsigned i = 0; i <= CLIENTS_MAX; i++) {
        connections += state->connections[i];
        if (state->connections[i] > 1 && !is_port_down())
            report("a server keeps two connections of one client");
    }
    for (unsigned i = 0; i < setting->servers; i++) {
        state->links[i].before_wait = state->links[i].progress;
        connections += state->links[i].is_connected;
    }
    if (connections == 0 && state->posted_count < state->posted_size)
        report("a program without a connection has not posted all receives");
    if (is_server(program) || !state->port_up || state->has_waited)
        return;
    state->has_waited = true;
    for (unsigned i = 0; i < setting->servers; i++)
        if (!state->links[i].is_connected && !state->links[i].is_begun &&
            now_ms() < state->port_up + PATIENCE_MS && !is_port_down())
            report("a client waits after its port came up, and connects to no server");
}

// Only programs whose device was removed while they opened it may fail, and a client that gets
// a block from no other server. Continues in run_once().
int handle_end(int program, int status, const char *error) {
    struct state *const state = &states[program];
    if (is_untrusted(program)) {
        if (has_accepted != (form >= 3) || (!has_accepted && !status))
            report("the server accepts an untrusted client, or refuses another one");
        longjmp(state->end, 1);
    }
    const bool may_fail =
        (chosen->removes_device &&
         (strstr(error, "rpma_") || strstr(error, "no RDMA device"))) ||
        (setting->is_damaged && strstr(error, "block 4 is wrong")); // no other server has it
    if (status && !may_fail)
        report_line("a program fails", error);
    if (!status && is_server(program) && !state->is_asked_to_stop)
        report("a server ends without a stop signal");
    if (!status && !is_server(program) && form && !setting->first_client &&
        !state->has_reported_bad_reply)
        report("a client does not report a bad reply");
    if (!status && !is_server(program) &&
        (setting->is_endless ? state->passes <= PASSES : state->passes != PASSES))
        report("a client succeeds before it has moved all blocks");
    longjmp(state->end, status ? 2 : 1);
}
