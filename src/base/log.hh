// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.hh -- thresholds, the log function of the process, and RPMA_LOG
//
// Thread-safety: any thread may call these functions at any time. No lock is held while a log
// function runs, so a log function may log or call the library.

#pragma once

#include <atomic>

#include "librpma.h"

namespace rpma {

// The origin of a message. function is the exported function that the program called.
struct SourceLocation {
    const char *file;
    int line;
    const char *function;
};

// The most verbose enabled level: of the log function, by the program's threshold, or of
// stderr, by the environment variable RPMA_LOG.
extern std::atomic<rpma_log_level> log_level;

inline bool is_logged(rpma_log_level level) {
    return level <= log_level.load(std::memory_order_relaxed);
}

rpma_log_level log_threshold(rpma_log_threshold threshold);
void set_log_threshold(rpma_log_threshold threshold, rpma_log_level level);

// nullptr selects the default function: syslog, and stderr up to RPMA_LOG_THRESHOLD_AUX.
void set_log_function(rpma_log_function *function);

// Passes a message, with a newline appended, to the log function and stderr. May change errno.
[[gnu::format(printf, 3, 4)]] void log(rpma_log_level level, const SourceLocation &location,
                                       const char *format, ...);

// The same for a formatted message. copy, unless nullptr, receives the message once the log
// functions have returned, because these may call the library.
void log_message(rpma_log_level level, const SourceLocation &location, const char *raw,
                 char *copy);

// Size of the longest message; longer ones are truncated, as in all releases. A message with
// characters that cannot be shown is escaped.
inline constexpr std::size_t LOG_MESSAGE_SIZE = 1024;
// Size of the description of a failure, so that its reason and the advice always fit after it.
inline constexpr std::size_t LOG_ADVICE_SIZE = 384;
inline constexpr std::size_t LOG_FAILURE_SIZE = LOG_MESSAGE_SIZE - LOG_ADVICE_SIZE - 160;

} // namespace rpma

#define RPMA_LOG_AT(level, location, ...)            \
    do {                                             \
        if (rpma::is_logged(level))                  \
            rpma::log(level, location, __VA_ARGS__); \
    } while (false)

#define RPMA_LOG(level, function_name, ...)                                            \
    RPMA_LOG_AT(level, (rpma::SourceLocation{__FILE_NAME__, __LINE__, function_name}), \
                __VA_ARGS__)
