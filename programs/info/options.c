// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// options.c -- the command line

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "info.h"
#include "library.h"

static const char usage[] =
    "usage: rpma-info [--json] [ADDRESS | --device NAME] [--memory PATH]\n"
    "\n"
    "Shows what librpma can do here; each \"no\" says why, and what helps.\n"
    "\n"
    "  ADDRESS        only the device behind this address: one of this machine,\n"
    "                 or one of another machine that a device reaches\n"
    "  --device NAME  only this device; \"rdma link\" lists the names\n"
    "  --memory PATH  also what PATH is, a file or a DAX device, and whether and how\n"
    "                 it registers; its content stays as it is\n"
    "  --json         the answers as a JSON document\n"
    "  --version      print the version of this program and that of librpma\n"
    "  --help         print this\n"
    "\n"
    "Exit status:\n"
    "  0  what was asked for is possible    3  no device can be used\n"
    "  1  the program failed                4  PATH cannot be mapped\n"
    "  2  wrong arguments                   5  PATH registers with no device\n"
    "\n"
    "rpma-info(1) explains the answers.\n";

static const struct option long_options[] = {
    {"json", no_argument, NULL, 'j'},         {"device", required_argument, NULL, 'd'},
    {"memory", required_argument, NULL, 'm'}, {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
};

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fputs("rpma-info: ", stderr);
    (void)vfprintf(stderr, format, values);
    fputs("; rpma-info --help lists the arguments\n", stderr);
    va_end(values);
    exit(STATUS_ARGUMENTS);
}

/* Takes a value that must not be empty or given twice. */
static void take(const char **place, const char *what, const char *value) {
    if (*place != NULL)
        refuse("%s was given twice", what);
    if (value[0] == '\0')
        refuse("%s is empty", what);
    *place = value;
}

/* Prints the version or the usage and ends; a full disk or a closed pipe is a failure. */
__attribute__((noreturn)) static void tell(bool version) {
    if (version)
        print_versions("rpma-info");
    else
        fputs(usage, stdout);
    exit(fflush(stdout) == 0 ? STATUS_POSSIBLE : STATUS_FAILED);
}

static void take_option(struct options *options, int option, char **argv) {
    switch (option) {
    case 'j':
        options->json = true;
        break;
    case 'd':
        take(&options->device, "--device", optarg);
        break;
    case 'm':
        take(&options->memory, "--memory", optarg);
        break;
    case 'v':
    case 'h':
        tell(option == 'v');
    case ':':
        refuse("%s needs a value", argv[optind - 1]);
    default:
        /* For a letter in the middle of a word, optind does not point behind the word. */
        if (optopt != 0 && argv[optind - 1][1] != '-')
            refuse("there is no option -%c", optopt);
        refuse("there is no option %s", argv[optind - 1]);
    }
}

struct options parse_options(int argc, char **argv) {
    struct options options = {0};
    int option;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1)
        take_option(&options, option, argv);
    if (argc - optind > 1)
        refuse("%s comes after the address %s: one address at a time", argv[optind + 1],
               argv[optind]);
    if (optind < argc)
        take(&options.address, "ADDRESS", argv[optind]);
    if (options.address != NULL && options.device != NULL)
        refuse("ADDRESS and --device are two ways to name one device: give one of them");
    return options;
}
