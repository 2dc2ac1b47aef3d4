// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.hh -- thresholds and the log function of the process
//
// Thread-safety: everything here may be called from any thread at any time; no lock is held
// while a log function runs, so a log function may log or call the library again.

#pragma once

#include <atomic>

#include "librpma.h"

namespace rpma::log {

extern std::atomic<rpma_log_level> thresholds[RPMA_LOG_THRESHOLD_MAX];

inline bool enabled(rpma_log_level level) {
    return level <= thresholds[RPMA_LOG_THRESHOLD].load(std::memory_order_relaxed);
}

// The function in charge, read once per message; never nullptr.
rpma_log_function *function();

// nullptr selects the default function: syslog, and stderr up to RPMA_LOG_THRESHOLD_AUX.
void set_function(rpma_log_function *function);

// The part of a source path behind the last slash.
const char *base_name(const char *path);

// Never called: lets the compiler check the format of a message.
[[gnu::format(printf, 1, 2)]] inline void check_format(const char *, ...) {}

} // namespace rpma::log

// Hands a message to the log function; format is a literal, a newline is appended.
#define RPMA_LOG_AT(level, file, line, function_name, format, ...)                        \
    do {                                                                                  \
        if (rpma::log::enabled(level)) {                                                  \
            if (false)                                                                    \
                rpma::log::check_format(format __VA_OPT__(, ) __VA_ARGS__);               \
            rpma::log::function()(level, rpma::log::base_name(file), line, function_name, \
                                  format "\n" __VA_OPT__(, ) __VA_ARGS__);                \
        }                                                                                 \
    } while (false)

#define RPMA_LOG(level, function_name, ...) \
    RPMA_LOG_AT(level, __FILE__, __LINE__, function_name, __VA_ARGS__)
