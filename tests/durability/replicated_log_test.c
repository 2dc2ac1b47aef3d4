// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// replicated_log_test.c -- runs the programs of example 14 as they are: no committed record is
// lost, and at the end a client succeeds, whatever fails meanwhile
//
// replicated_log SETTING CONFIGURATION [SCHEDULES [SEED]]

#include "modules.h"
#include "replicated_log.h"

#include <rdma-sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define USED 65536    // bytes of a log at most: its records are short
#define TRIES 20      // of the last client
#define ACTS_MAX 3    // of the operator at random, in a schedule
#define ACT_EVERY 100 // waits of clients
#define START_EVERY 4 // clients starts while the one before it still runs

const struct setting *setting;
char logs[SERVERS_MAX][LOG_SIZE] __attribute__((aligned(4096)));
char addresses[PROGRAMS_MAX][16];
size_t file_size = LOG_SIZE;

static struct module modules[PROGRAMS_MAX];
static char files[SERVERS_MAX][32], copy[USED];
static unsigned copied; // the server of the copy, from 1 on
static unsigned acts, next_act;
static bool is_damage_reported, is_whole_script;

static const struct configuration {
    const char *name, *device, *platform;
    unsigned schedules;
    const char *faults, *search;
} configurations[] = {
    {"native", "rxe", "cpu-flush", 200,
     "cut,flap,port-down,kill,freeze,power-off,refuse,doorbell", "mixed"},
    {"emulated", "mlx5", "flush-only", 100, "cut,flap,kill,freeze,power-off,refuse", "mixed"},
    {"exhaustive", "rxe", "cpu-flush", 400, "kill,power-off,cut,refuse", "exhaustive:1"},
    {"freezes", "rxe", "cpu-flush", 200, "freeze", "mixed"},
    // The schedule without choices.
    {"script", "rxe", "cpu-flush", 1, "none", "exhaustive:1"},
    {"bonds", "rxe", "cpu-flush", 100, "addr-change", "mixed"},
    {"faultless", "rxe", "cpu-flush", 20, "none", "mixed"},
};

// ---- the programs --------------------------------------------------------------------------

static unsigned last_client(void) {
    return setting->servers + setting->clients;
}

bool is_second_server(int program) {
    return setting->has_second_server && (unsigned)program == setting->servers;
}

bool is_server(int program) {
    return (unsigned)program < setting->servers || is_second_server(program);
}

unsigned log_servers(void) {
    return setting->servers - setting->foreign;
}

unsigned lines_of(int program) {
    return (unsigned)program == last_client() ? setting->last_lines : setting->lines;
}

void stop_program(int program) {
    struct state *const state = &states[program];
    state->is_asked_to_stop = true;
    if (state->signals >= 0)
        eventfd_write(state->signals, 1);
}

struct arguments {
    char words[2 * SERVERS_MAX + 4][32];
    char *all[2 * SERVERS_MAX + 4];
    int count;
};

static void add_word(struct arguments *to, const char *word) {
    char *const copy = to->words[to->count];
    snprintf(copy, sizeof(to->words[0]), "%.31s", word);
    to->all[to->count++] = copy;
}

// The name of a program is its number.
static void begin_arguments(int program, struct arguments *arguments) {
    char name[16];
    snprintf(name, sizeof(name), "%d", program);
    arguments->count = 0;
    add_word(arguments, name);
}

// The operator passes --new until a log exists, and again only after a server has lost its log.
static void add_server_arguments(int program, struct arguments *to) {
    const int host = is_second_server(program) ? 0 : program;
    const bool has_log = setting->make_log ||
                         ((unsigned)program >= log_servers() && !setting->are_foreign_blank);
    add_word(to, "--direct-write");
    if (is_second_server(program) || (!states[program].has_listened && !has_log))
        add_word(to, "--new");
    add_word(to, addresses[host]);
    add_word(to, is_second_server(program) ? "7472" : "7471");
    add_word(to, "1");
    if ((unsigned)host + setting->plain < setting->servers)
        add_word(to, files[host]);
}

// Once a log exists that they can damage, the second and third client get a wrong list: the
// second one servers of both logs, the third one too few servers.
static void add_client_arguments(int program, struct arguments *to) {
    unsigned first = 0, end = log_servers();
    const unsigned wrong =
        setting->foreign && log_exists ? (unsigned)program - setting->servers : 0;
    states[program].is_misconfigured = wrong == 1 || wrong == 2;
    if (states[program].is_misconfigured) {
        first = 2;
        end = wrong == 1 ? setting->servers : 3;
    }
    if (states[program].is_misconfigured ? setting->are_foreign_blank : !log_exists)
        add_word(to, "--new");
    for (unsigned i = first; i < end; i++) {
        add_word(to, addresses[i]);
        add_word(to, "7471");
    }
}

static int run_once(int program, struct arguments *arguments) {
    struct state *const state = &states[program];
    if (state->lock > 0)
        close(state->lock); // as at the end of its process
    *state = (struct state){.is_done = state->is_done,
                            .is_asked_to_stop = state->is_asked_to_stop,
                            .has_listened = state->has_listened,
                            .may_start = state->may_start,
                            .tries = state->tries,
                            .is_replaced = state->is_replaced,
                            .is_misconfigured = state->is_misconfigured,
                            .lock = -1,
                            .signals = -1};
    const int end = setjmp(state->end);
    if (end == 0)
        run_module(&modules[program], arguments->count, arguments->all);
    return end - 1;
}

int start_program(int program) {
    struct arguments arguments;
    begin_arguments(program, &arguments);
    if (is_server(program))
        add_server_arguments(program, &arguments);
    else
        add_client_arguments(program, &arguments);
    return run_once(program, &arguments);
}

int run_reader(unsigned count) {
    struct arguments arguments;
    begin_arguments(READER, &arguments);
    for (unsigned i = 0; i < count; i++) {
        add_word(&arguments, files[i]);
        add_word(&arguments, "1");
    }
    return run_once(READER, &arguments);
}

// A client starts when the one before it has ended, or at a random time. The last one waits for
// all others.
static bool await_start(int program) {
    const bool is_last = (unsigned)program == last_client();
    const bool is_early = !setting->script && rdma_sim_random() % START_EVERY == 0;
    for (uint64_t wait = rdma_sim_random() % 20; !states[program].may_start; wait--) {
        bool are_done = true;
        for (int i = is_last ? (int)setting->servers : program - 1; i < program; i++)
            are_done &= is_server(i) ? !is_second_server(program) || states[i].has_listened
                                     : states[i].is_done;
        states[program].may_start = are_done || (is_early && !is_last && wait == 0);
        if (!states[program].may_start && rdma_sim_advance(100000000))
            return false;
    }
    return true;
}

static void add_fault(const char *fault) {
    if (rdma_sim_fault(fault))
        report("%s", rdma_sim_error());
}

// A program that has failed leaves objects of its device, which end with its process: it is
// killed, and started again.
static void end_process(int program, unsigned seconds) {
    char fault[32];
    snprintf(fault, sizeof(fault), "kill host%d for %us", program + 1, seconds);
    add_fault(fault);
}

static int run_client(int program) {
    struct state *const state = &states[program];
    const bool is_last = (unsigned)program == last_client();
    const int status = await_start(program) ? start_program(program) : EXIT_FAILURE;
    if (setting->error && (!status || !strstr(error_of_last_end(), setting->error)))
        report_line("a client does not refuse the logs", error_of_last_end());
    if (status && is_last && !setting->error && ++state->tries == TRIES)
        report_line("the last client fails", error_of_last_end());
    else if (status && is_last && !setting->error)
        end_process(program, 5);
    state->is_done = true;
    for (unsigned i = 0; is_last && i < setting->servers; i++)
        stop_program((int)i);
    return status;
}

static void replace_memory(unsigned server) {
    states[server].is_replaced = true;
    end_process((int)server, 1);
}

// A server that starts again has the old copy of its log, or blank memory.
static void take_replacement(int server) {
    if (copied)
        memcpy(logs[server], copy, USED);
    else
        memset(logs[server], 0, USED);
    states[server].has_listened &= copied != 0;
    rdma_sim_persist(logs[server], USED);
    states[server].is_replaced = false;
}

// A server that has lost its memory makes a new log even at the end, for the reader.
static int run_program(void *argument) {
    const int program = *(const int *)argument;
    const bool is_of_logs = (unsigned)program < setting->servers;
    int status = EXIT_SUCCESS;
    if (!is_of_logs && !states[program].is_done)
        status = run_client(program);
    if (states[program].is_replaced)
        take_replacement(program);
    if (is_of_logs && (!states[last_client()].is_done || !states[program].has_listened))
        status = start_program(program);
    if (status && !is_second_server(program))
        end_process(program, 1);
    return EXIT_SUCCESS;
}

// ---- the operator --------------------------------------------------------------------------

static void copy_or_restore(unsigned server) {
    if (copied == server + 1) {
        replace_memory(server);
    } else if (!copied && states[server].has_listened) {
        memcpy(copy, logs[server], USED);
        copied = server + 1;
    }
}

void act_at_wait(int program) {
    if (is_server(program) || setting->script || (!setting->loses_memory && !setting->copies) ||
        acts == ACTS_MAX || rdma_sim_random() % ACT_EVERY)
        return;
    const unsigned server = (unsigned)(rdma_sim_random() % setting->servers);
    acts++;
    if (setting->copies)
        copy_or_restore(copied ? copied - 1 : server);
    else if (!has_no_log(server, true) && count_without_log(true) < (setting->servers - 1) / 2)
        replace_memory(server);
}

static int program_named(const char *name) {
    int number = 0;
    if (sscanf(name, "client%d", &number) == 1)
        return (int)setting->servers + number - 1;
    (void)sscanf(name, "server%d", &number);
    return number - 1;
}

// Kills a client, which does not start again.
static void end_client(int program) {
    states[program].is_done = true;
    end_process(program, 1);
}

void act_at_line(int program, const char *line) {
    if (setting->damages_header && strstr(line, "committed 0") && next_act == 0) {
        next_act = 1;
        logs[0][FIXED_BEGIN]++;
    }
    is_damage_reported |= strstr(line, "server 10.77.0.1 is lost: there is no log") != NULL;
    const struct act *act = setting->script ? &setting->script[next_act] : NULL;
    if (!act || !act->program || program_named(act->program) != program ||
        !strstr(line, act->text))
        return;
    for (const char *const text = act->text; act->program && !strcmp(act->text, text); act++) {
        next_act++;
        if (!strncmp(act->fault, "start ", 6))
            states[program_named(act->fault + 6)].may_start = true;
        else if (!strncmp(act->fault, "end ", 4))
            end_client(program_named(act->fault + 4));
        else if (!strncmp(act->fault, "blank ", 6))
            replace_memory((unsigned)program_named(act->fault + 6));
        else
            add_fault(act->fault);
    }
}

// A client that refuses the logs changes no record.
static void check_unchanged(void) {
    static char made[LOG_SIZE];
    const size_t size = setting->make_log(made);
    for (unsigned i = 0; i < setting->servers; i++)
        if (memcmp(made + FIXED_BEGIN, logs[i] + FIXED_BEGIN, size - FIXED_BEGIN) ||
            has_no_log(i, false) != (size == LOG_BEGIN))
            report("a client changes a log that it refuses");
}

static const char *check(void *argument) {
    (void)argument;
    check_logs(false);
    if (setting->make_log)
        check_unchanged();
    if (setting->damages_header && !is_damage_reported)
        report("no client reports the damaged header");
    if (first_mistake() || setting->make_log || setting->is_damaged || setting->damages_header)
        return first_mistake();
    if (run_reader(log_servers() - setting->plain))
        report_line("the reader rejects the logs", error_of_last_end());
    if (is_whole_script && setting->script[next_act].program)
        report_line("no program has printed", setting->script[next_act].text);
    return first_mistake();
}

// ---- the test ------------------------------------------------------------------------------

static void load_programs(struct rdma_sim_program programs[]) {
    static int numbers[PROGRAMS_MAX];
    static char names[PROGRAMS_MAX][16];
    for (int i = 0; i <= (int)last_client(); i++) {
        const bool serves = is_server(i);
        modules[i] =
            load_module(serves ? "14-replicated-log-server" : "14-replicated-log-client");
        numbers[i] = i;
        states[i].lock = states[i].signals = -1;
        snprintf(addresses[i], sizeof(addresses[i]), "10.77.0.%d", i + 1);
        snprintf(names[i], sizeof(names[i]), serves ? "server%d" : "client%d",
                 i < (int)setting->servers ? i + 1 : i - (int)setting->servers + 1);
        programs[i] = (struct rdma_sim_program){is_second_server(i) ? 1 : (unsigned)i + 1,
                                                run_program, &numbers[i], names[i]};
    }
    modules[READER] = load_module("14-replicated-log-reader");
    states[READER].lock = -1;
}

static void make_logs(void) {
    for (unsigned i = log_servers(); i < setting->servers && !setting->are_foreign_blank; i++) {
        size_t size = make_empty_log(logs[i], FOREIGN_EPOCH, FOREIGN_IDENTITY);
        for (uint64_t number = 0; number < 5; number++)
            size = add_record(logs[i], size, 64, number, FOREIGN_EPOCH);
    }
    for (unsigned i = 0; setting->make_log && i < setting->servers; i++)
        setting->make_log(logs[i]);
    log_exists = setting->make_log != NULL;
}

static bool run(const struct configuration *chosen, char *argv[]) {
    struct rdma_sim_program programs[PROGRAMS_MAX];
    struct rdma_sim_memory memories[SERVERS_MAX];
    is_whole_script = !strcmp(chosen->name, "script");
    load_programs(programs);
    if (setting->is_damaged)
        programs[0].run = damage_logs;
    make_logs();
    for (unsigned i = 0; i < setting->servers; i++) {
        const int fd = memfd_create("log", 0);
        if (fd < 0 || ftruncate(fd, LOG_SIZE))
            return false;
        snprintf(files[i], sizeof(files[i]), "/proc/self/fd/%d", fd);
        memories[i] = (struct rdma_sim_memory){i + 1, logs[i], LOG_SIZE, 0};
    }
    const struct rdma_sim_test test = {
        .options = {.hosts = last_client() + 1, .device = chosen->device},
        .programs = programs,
        .program_count = setting->is_damaged ? 1 : last_client() + 1,
        .check = check,
        .schedules = chosen->schedules,
        .faults = chosen->faults,
        .search = chosen->search,
        .memories = memories,
        .memory_count = setting->servers,
        .platform = chosen->platform,
        .flags = RDMA_SIM_TEST_RECOVERS | RDMA_SIM_TEST_LEAKS};
    return explore_and_print(&test, 2, argv);
}

int main(int argc, char *argv[]) {
    const struct configuration *chosen = NULL;
    setting = argc > 2 ? find_setting(argv[1]) : NULL;
    for (size_t i = 0; argc > 2 && i < sizeof(configurations) / sizeof(*configurations); i++)
        if (!strcmp(configurations[i].name, argv[2]))
            chosen = &configurations[i];
    if (!setting || !chosen) {
        fprintf(stderr, "usage: replicated_log SETTING CONFIGURATION [SCHEDULES [SEED]]\n");
        return EXIT_FAILURE;
    }
    return run(chosen, argv) ? EXIT_SUCCESS : EXIT_FAILURE;
}
