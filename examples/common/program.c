// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// program.c -- arguments of the examples, and their exit on failures

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

// Otherwise a device gets the number of a standard descriptor that was closed, and the output
// of the program goes to the device. In the wrong mode, a read or write still fails.
static void occupy_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            exit(EXIT_FAILURE);
}

// Runs at exit: a program whose output was lost fails.
static void check_output(void) {
    if (!fflush(stdout) && !ferror(stdout))
        return;
    fprintf(stderr, "%s: cannot write to the standard output\n", program_invocation_short_name);
    _exit(EXIT_FAILURE);
}

void begin_program(void) {
    occupy_standard_descriptors();
    atexit(check_output);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

struct arguments read_arguments(int argc, char *argv[], const struct program *program) {
    struct arguments args = {0};
    int next = 1;

    set_example(program->example);
    begin_program();
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

bool read_line(char *line, size_t size, size_t *length) {
    int byte = getc(stdin);
    bool is_end = byte == EOF;
    for (*length = 0; byte != EOF && byte != '\n'; byte = getc(stdin)) {
        if (*length == size)
            fail("a line of the input has more than %zu bytes", size);
        line[(*length)++] = (char)byte;
    }
    if (ferror(stdin))
        fail("cannot read the standard input: %s", strerror(errno));
    return !is_end;
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
