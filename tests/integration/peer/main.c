// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- one side of an integration test: performs the commands on its standard input

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

struct world world = {.epoll_fd = -1};

static const struct command *const tables[] = {
    setup_commands,   memory_commands,     connect_commands, data_commands, packed_commands,
    batch_commands,   batch_load_commands, wait_commands,    load_commands, churn_commands,
    process_commands, crowd_commands,      serve_commands,   line_commands, raw_commands,
    event_commands,   atomic_commands,
};

static const struct command *find_command(const char *verb) {
    const struct command *found = NULL;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (const struct command *command = tables[i]; command->verb != NULL; command++) {
            if (strcmp(command->verb, verb) != 0)
                continue;
            if (found != NULL)
                bad_script("two commands are called '%s'", verb);
            found = command;
        }
    if (found == NULL)
        bad_script("unknown command '%s'", verb);
    return found;
}

const char *code_name(int ret) {
    switch (ret) {
#define NAME(code) \
    case code:     \
        return #code
        NAME(RPMA_E_UNKNOWN);
        NAME(RPMA_E_NOSUPP);
        NAME(RPMA_E_PROVIDER);
        NAME(RPMA_E_NOMEM);
        NAME(RPMA_E_INVAL);
        NAME(RPMA_E_NO_COMPLETION);
        NAME(RPMA_E_NO_EVENT);
        NAME(RPMA_E_AGAIN);
        NAME(RPMA_E_SHARED_CHANNEL);
        NAME(RPMA_E_NOT_SHARED_CHNL);
        NAME(ERR_TIMEOUT);
        NAME(ERR_MISMATCH);
        NAME(ERR_SYSTEM);
        NAME(ERR_CLOSED);
#undef NAME
    default:
        return "an undocumented code";
    }
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0;
    struct args args;

    // The default log function is used: the original's library takes part in these tests, too.
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_INFO);
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_INFO);
    setvbuf(stdin, NULL, _IONBF,
            0); // unbuffered: "serve" polls for the next command, so none may be read ahead
    printf("ready pid=%d\n", getpid());
    fflush(stdout);
    while (getline(&line, &capacity, stdin) > 0) {
        args_parse(&args, line);
        if (strcmp(args.verb, "quit") == 0) {
            free(line);
            return 0;
        }
        fprintf(stderr, "---- %s\n", args.verb);
        errno = 0;
        int ret = find_command(args.verb)->run(&args);
        if (ret == RPMA_E_PROVIDER)
            reply("errno=%d", errno);
        reply_send(ret);
    }
    free(line);
    return 3; // the script must say when it is over
}
