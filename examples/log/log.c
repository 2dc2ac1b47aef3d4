// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.c -- receives the log messages of librpma

#include "common.h"

#include <stdarg.h>
#include <stdlib.h>

static const struct program program = {
    .purpose = "Shows the log messages of librpma; ADDRESS is one of this machine.",
};

static const char *const level_names[] = {"fatal",  "error",       "warning",
                                          "notice", "information", "debug"};
static unsigned seen[sizeof(level_names) / sizeof(level_names[0])];

// Any thread may call this function: the lock of stdout protects lines and counters.
__attribute__((format(printf, 5, 6))) static void
print_message(enum rpma_log_level level, const char *file_name, const int line_no,
              const char *function_name, const char *message_format, ...) {
    va_list values;
    va_start(values, message_format);
    flockfile(stdout);
    printf("%s from %s (%s:%d): ", level_names[level], function_name,
           file_name ? file_name : "?", line_no);
    vprintf(message_format, values); // ends with a newline
    seen[level]++;
    funlockfile(stdout);
    va_end(values);
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct rpma_conn_req *no_request = NULL;
    struct rpma_conn *conn;

    CALL(rpma_log_set_function(print_message));
    CALL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_NOTICE));

    struct side side = open_server_side(&args, BLOCK_SIZE, RPMA_MR_USAGE_READ_SRC);
    struct rpma_ep *ep = start_listening(side.peer, &args);              // logs a notice
    if (rpma_conn_req_connect(&no_request, NULL, &conn) != RPMA_E_INVAL) // logs an error
        fail("a request that is not there could be connected");
    CALL(rpma_ep_shutdown(&ep));
    close_side(&side);

    CALL(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
    if (!seen[RPMA_LOG_LEVEL_NOTICE] || seen[RPMA_LOG_LEVEL_ERROR] != 1)
        fail("%u notices and %u errors arrived", seen[RPMA_LOG_LEVEL_NOTICE],
             seen[RPMA_LOG_LEVEL_ERROR]);
    printf("log: %u notices and %u error arrived here instead of syslog\n",
           seen[RPMA_LOG_LEVEL_NOTICE], seen[RPMA_LOG_LEVEL_ERROR]);
    return EXIT_SUCCESS;
}
