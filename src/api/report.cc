// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// report.cc -- the one place where failures are logged

#include "api/export.hh"

#include <cerrno>
#include <cstring>

namespace rpma::api {

namespace {

// Nothing to read and a wait that a signal ended are answers, not errors.
rpma_log_level level_of(const Failure &failure) {
    if (failure.answer)
        return RPMA_LOG_LEVEL_DEBUG;
    switch (failure.code) {
    case RPMA_E_NO_COMPLETION:
    case RPMA_E_NO_EVENT:
        return RPMA_LOG_LEVEL_DEBUG;
    case RPMA_E_UNKNOWN:
        return RPMA_LOG_LEVEL_WARNING;
    default:
        return RPMA_LOG_LEVEL_ERROR;
    }
}

} // namespace

int report(const Caller &caller, const Failure &failure) {
    const int error = failure.error != 0 ? failure.error : errno;
    const rpma_log_level level = level_of(failure);
    if (failure.error != 0) {
        char buffer[128];
        RPMA_LOG_AT(level, caller.file, caller.line, caller.function, "%s failed: %s (%d)",
                    failure.cause, strerror_r(failure.error, buffer, sizeof(buffer)),
                    failure.error);
    } else if (failure.reason != nullptr) {
        RPMA_LOG_AT(level, caller.file, caller.line, caller.function, "%s: %s", failure.cause,
                    failure.reason);
    } else {
        RPMA_LOG_AT(level, caller.file, caller.line, caller.function, "%s", failure.cause);
    }
    errno = error; // a log function may have changed it
    return failure.code;
}

int refuse(const char *function, const char *condition, const char *file, int line) {
    return report(Caller(function, file, line), {RPMA_E_INVAL, condition});
}

} // namespace rpma::api
