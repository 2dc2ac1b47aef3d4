// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.hh -- thresholds, the log function of the process, and RPMA_LOG
//
// Thread-safety: everything here may be called from any thread at any time; no lock is held
// while a log function runs, so a log function may log or call the library again.

#pragma once

#include <atomic>

#include "librpma.h"

namespace rpma {

// Where a message comes from. function is the exported function that the program called.
struct Place {
    const char *file;
    int line;
    const char *function;
};

// Somebody reads messages up to this level: the log function, by the program's threshold, or
// stderr, by the environment variable RPMA_LOG.
extern std::atomic<rpma_log_level> log_level;

inline bool is_logged(rpma_log_level level) {
    return level <= log_level.load(std::memory_order_relaxed);
}

rpma_log_level log_threshold(rpma_log_threshold threshold);
void set_log_threshold(rpma_log_threshold threshold, rpma_log_level level);

// nullptr selects the default function: syslog, and stderr up to RPMA_LOG_THRESHOLD_AUX.
void set_log_function(rpma_log_function *function);

// Hands a message to its readers; a newline is appended. errno may change.
[[gnu::format(printf, 3, 4)]] void log(rpma_log_level level, const Place &place,
                                       const char *format, ...);

// Room for the longest message; longer ones are cut, as they always were. A message that cannot
// be shown as it is, is escaped.
inline constexpr std::size_t LOG_MESSAGE_SIZE = 1024;
// Room for what a failure was about, so that its reason and the advice always fit behind it.
inline constexpr std::size_t LOG_ADVICE_SIZE = 384;
inline constexpr std::size_t LOG_FAILURE_SIZE = LOG_MESSAGE_SIZE - LOG_ADVICE_SIZE - 160;

} // namespace rpma

#define RPMA_LOG_AT(level, place, ...)            \
    do {                                          \
        if (rpma::is_logged(level))               \
            rpma::log(level, place, __VA_ARGS__); \
    } while (false)

#define RPMA_LOG(level, function_name, ...) \
    RPMA_LOG_AT(level, (rpma::Place{__FILE__, __LINE__, function_name}), __VA_ARGS__)
