// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// call.cc -- failures of a call: one log line each, the first one counts

#include "base/call.hh"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace rpma {

void Call::note(rpma_log_level level, const char *file, int line, int code, int error,
                const char *advice, const char *message) {
    if (code_ == 0) {
        code_ = code;
        error_ = error;
    }
    const Place place = {file, line, function_};
    if (error == 0) {
        RPMA_LOG_AT(level, place, "%s%s", message, advice);
        return;
    }
    char text[128];
    RPMA_LOG_AT(level, place, "%s failed: %s (%d)%s", message,
                strerror_r(error, text, sizeof(text)), error, advice);
}

void Call::fail(const char *file, int line, int code, int error, const char *advice,
                const char *format, ...) {
    char message[LOG_MESSAGE_SIZE];
    va_list values;
    va_start(values, format);
    std::vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    // What follows from a failure, or precedes another attempt, is no more than information;
    // what is not understood may still be harmless.
    const rpma_log_level level = tentative_ || failed()   ? RPMA_LOG_LEVEL_INFO
                                 : code == RPMA_E_UNKNOWN ? RPMA_LOG_LEVEL_WARNING
                                                          : RPMA_LOG_LEVEL_ERROR;
    note(level, file, line, code, error, advice, message);
}

void Call::answer(const char *file, int line, int code, int error, const char *format, ...) {
    char message[LOG_MESSAGE_SIZE];
    va_list values;
    va_start(values, format);
    std::vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    note(RPMA_LOG_LEVEL_DEBUG, file, line, code, error, "", message);
}

void Call::begin_attempt(bool last) {
    code_ = 0;
    tentative_ = !last;
}

int Call::finish() const {
    if (code_ != 0)
        errno = error_ != 0 ? error_ : errno_before_;
    return code_;
}

} // namespace rpma
