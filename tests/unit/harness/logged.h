// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// logged.h -- the log lines of the library, caught by a log function.

#ifndef LOGGED_H
#define LOGGED_H 1

#include "librpma.h"

struct logged_line {
    enum rpma_log_level level;
    int line;
    char file[64];
    char function[64];
    char format[256];
    char message[1024]; // without the newline
};

// Catches everything from now on.
void logged_start(void);
void logged_forget(void);
unsigned logged_count(enum rpma_log_level level);
// The nth line of that level, from 0; NULL when there is none.
const struct logged_line *logged_line(enum rpma_log_level level, unsigned nth);
// All lines as text, for messages of failed tests.
const char *logged_text(void);

#endif // LOGGED_H
