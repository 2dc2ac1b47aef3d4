// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log_environment.c -- RPMA_LOG shows messages on stderr, whatever the program has set
//
// The library reads the variable when it is loaded, so each case is a process of its own: this
// executable with the argument "child".

#include "world.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *self;

// As in a program with privileges that its caller does not have.
char *secure_getenv(const char *name) {
    return getenv("PRIVILEGED") ? NULL : getenv(name);
}

static void silent(enum rpma_log_level level, const char *file_name, const int line_no,
                   const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
}

// A program that disables all messages, or shows all of them with CHILD_AUX, or keeps the
// defaults with CHILD_PLAIN. It causes one message of ERROR and one of INFO.
static int child(void) {
    static const unsigned char desc[1] = {1};
    struct rpma_peer_cfg *pcfg = NULL;
    if (!getenv("CHILD_PLAIN")) {
        const bool all = getenv("CHILD_AUX");
        (void)rpma_log_set_function(all ? NULL : silent);
        (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
                                     all ? RPMA_LOG_LEVEL_DEBUG : RPMA_LOG_DISABLED);
        (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_DEBUG);
    }
    (void)rpma_mr_remote_delete(NULL);
    (void)rpma_peer_cfg_from_descriptor(desc, sizeof(desc), &pcfg);
    return rpma_peer_cfg_delete(&pcfg);
}

static void set_or_not(const char *variable, const char *value) {
    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
}

// What the child writes to stderr.
static const char *stderr_of_child(void) {
    static char text[4096];
    int ends[2], status = -1;
    pid_t pid;
    char *const words[] = {(char *)self, (char *)"child", NULL};
    posix_spawn_file_actions_t actions;
    assert_int_equal(pipe(ends), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    assert_int_equal(posix_spawn(&pid, self, &actions, NULL, words, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while ((got = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return text;
}

static unsigned lines(const char *text) {
    unsigned count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

// Each message appears once, even if the program shows it on stderr itself.
static void variable_decides_what_is_shown(void **state) {
    (void)state;
    static const struct {
        const char *value;    // of RPMA_LOG
        const char *variable; // that the child has as well
        bool error, info;     // messages that are shown
        const char *instead;  // of both
    } cases[] = {
        {NULL, NULL, false, false},
        {"", NULL, false, false},
        {"fatal", NULL, false, false},
        {"error", NULL, true, false},
        {"notice", NULL, true, false},
        {"warning", NULL, true, false},
        {"INFO", NULL, true, true},
        {"debug", NULL, true, true},
        {"error", "CHILD_AUX", true, true},
        {"info", "CHILD_PLAIN", true, true},
        {"debug", "PRIVILEGED", false, false},
        {"loud", NULL, false, false, "RPMA_LOG=loud is ignored"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        set_or_not("RPMA_LOG", cases[i].value);
        if (cases[i].variable)
            setenv(cases[i].variable, "1", 1);
        const char *text = stderr_of_child();
        if (cases[i].variable)
            unsetenv(cases[i].variable);
        assert_int_equal(strstr(text, " *ERROR* mr.cc: ") != NULL, cases[i].error);
        assert_int_equal(strstr(text, " *INFO*  config.cc: ") != NULL, cases[i].info);
        assert_int_equal(lines(text), cases[i].error + cases[i].info + !!cases[i].instead);
        if (cases[i].instead)
            assert_non_null(strstr(text, cases[i].instead));
    }
}

int main(int argc, char **argv) {
    self = argv[0];
    if (argc == 2 && strcmp(argv[1], "child") == 0)
        return child();
    const struct CMUnitTest tests[] = {cmocka_unit_test(variable_decides_what_is_shown)};
    return cmocka_run_group_tests_name("log environment", tests, NULL, NULL);
}
