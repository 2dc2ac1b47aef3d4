// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log_debug.c -- the log of a library that was built with DEBUG: by default it logs all
// messages, and prints warnings to stderr

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// CMocka needs these headers before its own.
#include <cmocka.h>

#include "librpma.h"

static void debug_build_logs_each_message(void **state) {
    (void)state;
    enum rpma_log_level level = RPMA_LOG_DISABLED, aux = RPMA_LOG_DISABLED;
    assert_int_equal(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level), 0);
    assert_int_equal(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &aux), 0);
    assert_int_equal(level, RPMA_LOG_LEVEL_DEBUG);
    assert_int_equal(aux, RPMA_LOG_LEVEL_WARNING);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(debug_build_logs_each_message)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
