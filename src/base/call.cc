// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// call.cc -- failures of a call: one log line each, the first one counts

#include "base/refuse.hh"

#include <cstdio>

#include "base/error_text.hh"
#include "base/probes.hh"

namespace rpma {

bool Call::note(rpma_log_level level, int code, int error) {
    if (code_ == 0) {
        code_ = code;
        error_ = error;
    }
    noted_level_ = level;
    noted_error_ = error;
    return is_logged(level);
}

bool Call::fails(int code, int error) {
    // A failure that follows from another one, or before another attempt, is logged for
    // information only. A failure without a known cause may be harmless.
    const rpma_log_level level = tentative_ || failed()   ? RPMA_LOG_LEVEL_INFO
                                 : code == RPMA_E_UNKNOWN ? RPMA_LOG_LEVEL_WARNING
                                                          : RPMA_LOG_LEVEL_ERROR;
    probe::failure(function_, code, error, level);
    return note(level, code, error);
}

bool Call::answers(int code, int error) {
    return note(RPMA_LOG_LEVEL_DEBUG, code, error);
}

void Call::log(const char *file, int line, const char *advice, const char *format, ...) const {
    va_list values;
    va_start(values, format);
    vlog(file, line, advice, format, values);
    va_end(values);
}

void Call::vlog(const char *file, int line, const char *advice, const char *format,
                va_list values) const {
    char message[LOG_FAILURE_SIZE];
    std::vsnprintf(message, sizeof(message), format, values);
    const Place place = {file, line, function_};
    if (noted_error_ == 0) {
        rpma::log(noted_level_, place, "%s%s", message, advice);
        return;
    }
    rpma::log(noted_level_, place, "%s failed: %s (%d)%s", message,
              ErrorText(noted_error_).chars, noted_error_, advice);
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

int refuse(const char *function, const char *file, int line, const char *format, ...) {
    Call call(function);
    if (call.fails(RPMA_E_INVAL, 0)) {
        va_list values;
        va_start(values, format);
        call.vlog(file, line, "", format, values);
        va_end(values);
    }
    return call.finish();
}

} // namespace rpma
