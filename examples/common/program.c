// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// program.c -- arguments of the examples, and their exit on failures

#include "common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define USAGE_STATUS 2
#define NUMBER_MAX 255 // of clients: sent as one byte of the private data

static void print_usage(FILE *stream, const struct program *program) {
    fprintf(stream, "usage: %s", program_invocation_short_name);
    if (program->variant)
        fprintf(stream, " [%s]", program->variant);
    if (program->direct_write_option)
        fprintf(stream, " [--direct-write]");
    if (program->new_option)
        fprintf(stream, " [--new]");
    fprintf(stream,
            program->many_servers ? " ADDRESS PORT [ADDRESS PORT]..." : " ADDRESS PORT");
    if (program->number)
        fprintf(stream, " %s", program->number);
    if (program->uses_file)
        fprintf(stream, " [FILE]");
    fprintf(stream, "\n%s\n", program->purpose);
    if (program->uses_file)
        fprintf(stream,
                "FILE: persistent memory, a file on FS-DAX or a DAX device; "
                "%s\n",
                program->new_option ? "its content is kept" : "its beginning is overwritten");
    if (program->direct_write_option)
        fprintf(
            stream,
            "--direct-write: states that data which the RDMA device writes into FILE survives\n"
            "    a power failure once it was flushed persistently (DDIO off for the device, or "
            "a\n"
            "    platform whose caches survive; see the README of example 05)\n");
    if (program->new_option)
        fprintf(stream, "--new: %s\n", program->new_option);
}

static void refuse(const struct program *program, const char *problem, const char *value) {
    fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, problem, value);
    print_usage(stderr, program);
    exit(USAGE_STATUS);
}

static unsigned read_number(const char *text, unsigned max, const struct program *program,
                            const char *problem) {
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < 1 || value > max)
        refuse(program, problem, text);
    return (unsigned)value;
}

static void read_option(const char *option, const struct program *program,
                        struct arguments *args) {
    if (!strcmp(option, "--help")) {
        print_usage(stdout, program);
        exit(EXIT_SUCCESS);
    }
    if (program->variant && !strcmp(option, program->variant))
        args->variant = true;
    else if (program->direct_write_option && !strcmp(option, "--direct-write"))
        args->direct_write = true;
    else if (program->new_option && !strcmp(option, "--new"))
        args->make_new = true;
    else
        refuse(program, "unknown option ", option);
}

struct arguments read_arguments(int argc, char *argv[], const struct program *program) {
    struct arguments args = {0};
    int next = 1;

    setvbuf(stdout, NULL, _IOLBF, 0);
    // librpma logs to syslog; the examples also print its warnings to stderr.
    CALL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_WARNING));

    while (next < argc && argv[next][0] == '-')
        read_option(argv[next++], program, &args);
    if (argc - next < (program->number ? 3 : 2))
        refuse(program, "too few arguments", "");
    args.servers = &argv[next];
    args.addr = argv[next];
    args.port = argv[next + 1];
    do {
        read_number(argv[next + 1], 65535, program, "PORT must be 1 to 65535, not ");
        next += 2;
        args.server_count++;
    } while (program->many_servers && argc - next >= 2);
    if (program->number)
        args.number =
            read_number(argv[next++], NUMBER_MAX, program, "the number must be 1 to 255, not ");
    if (program->uses_file && next < argc)
        args.file = argv[next++];
    if (next < argc)
        refuse(program, "unexpected argument ", argv[next]);
    return args;
}

void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(EXIT_FAILURE);
}

void check_call(int ret, const char *call) {
    if (ret)
        fail("%s: %s", call, rpma_err_2str(ret));
}
