// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// quiet.c -- drops the messages of the libraries, because the report explains them

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "info.h"
#include "library.h"

static int kept_stderr = -1;

void be_quiet(void) {
    keep_library_errors();
    (void)fflush(stderr);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0)
        return;
    kept_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept_stderr >= 0)
        (void)dup2(nowhere, STDERR_FILENO);
    (void)close(nowhere);
}

void speak(void) {
    if (kept_stderr < 0)
        return;
    (void)fflush(stderr);
    (void)dup2(kept_stderr, STDERR_FILENO);
    (void)close(kept_stderr);
    kept_stderr = -1;
}
