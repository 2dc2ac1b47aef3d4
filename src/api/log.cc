// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.cc -- exports: logging

#include "base/refuse.hh"

#define RPMA_REFUSE_THRESHOLD(threshold)                                                      \
    RPMA_REFUSE_VALUE(__func__,                                                               \
                      threshold != RPMA_LOG_THRESHOLD && threshold != RPMA_LOG_THRESHOLD_AUX, \
                      threshold, "RPMA_LOG_THRESHOLD, RPMA_LOG_THRESHOLD_AUX")

int rpma_log_set_function(rpma_log_function *log_function) {
    rpma::set_log_function(log_function);
    return 0;
}

int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level) {
    RPMA_REFUSE_THRESHOLD(threshold);
    RPMA_REFUSE_VALUE(__func__, level < RPMA_LOG_DISABLED || level > RPMA_LOG_LEVEL_DEBUG,
                      level, "RPMA_LOG_DISABLED, RPMA_LOG_LEVEL_*");
    rpma::set_log_threshold(threshold, level);
    return 0;
}

int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level) {
    RPMA_REFUSE_THRESHOLD(threshold);
    RPMA_REFUSE(level == NULL);
    *level = rpma::log_threshold(threshold);
    return 0;
}
