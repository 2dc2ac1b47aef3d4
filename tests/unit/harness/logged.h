// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// logged.h -- the log lines of the library, stored by a log function.

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

// Stores all lines from now on, by this log function.
void logged_start(void);
void logged_catch(enum rpma_log_level level, const char *file_name, const int line_no,
                  const char *function_name, const char *message_format, ...);
void logged_forget(void);
unsigned logged_count(enum rpma_log_level level);
// The nth line of that level, from 0; or NULL.
const struct logged_line *logged_line(enum rpma_log_level level, unsigned nth);
// All lines as text, for the messages of failed tests.
const char *logged_text(void);

#endif // LOGGED_H
