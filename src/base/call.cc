// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// call.cc -- failures of a call: one log line each, the first one counts

#include "base/refuse.hh"

#include "base/error_text.hh"
#include "base/format.hh"
#include "base/probes.hh"

namespace rpma {

constinit thread_local LastFailure last_failure = {};
constinit thread_local char last_message[LOG_MESSAGE_SIZE] = "";

bool Call::record(rpma_log_level level, int code, int error) {
    if (code_ == 0) {
        code_ = code;
        error_ = error;
    }
    recorded_level_ = level;
    recorded_error_ = error;
    return is_logged(level);
}

bool Call::record_failure(int code, int error) {
    // A failure that follows from another one, or before another attempt, is logged for
    // information only. A failure without a known cause may be harmless.
    const bool counts = !is_tentative_ && !has_failed();
    const rpma_log_level level = !counts                  ? RPMA_LOG_LEVEL_INFO
                                 : code == RPMA_E_UNKNOWN ? RPMA_LOG_LEVEL_WARNING
                                                          : RPMA_LOG_LEVEL_ERROR;
    probe::failure(function_, code, error, level);
    if (counts)
        last_failure = {error, false};
    return record(level, code, error);
}

bool Call::record_rejection() {
    last_failure = {};
    probe::failure(function_, RPMA_E_INVAL, 0, RPMA_LOG_LEVEL_INFO);
    return record(RPMA_LOG_LEVEL_INFO, RPMA_E_INVAL, 0);
}

bool Call::record_interruption() {
    last_failure = {EINTR, false};
    return record(RPMA_LOG_LEVEL_DEBUG, RPMA_E_PROVIDER, EINTR);
}

bool Call::record_would_block(int code, int error) {
    return record(RPMA_LOG_LEVEL_DEBUG, code, error);
}

void Call::log(const char *file, int line, const char *advice, const char *format, ...) const {
    va_list values;
    va_start(values, format);
    vlog(file, line, advice, format, values);
    va_end(values);
}

void Call::vlog(const char *file, int line, const char *advice, const char *format,
                va_list values) const {
    char message[LOG_MESSAGE_SIZE];
    char *const end = message + sizeof(message);
    char *const at = vformat(message, LOG_FAILURE_SIZE, format, values);
    TextWriter writer(at, static_cast<std::size_t>(end - at));
    if (recorded_error_ != 0)
        writer.add(" failed: ", ErrorText(recorded_error_).chars, " (", recorded_error_, ")");
    writer.add(advice);
    writer.end();
    const bool is_last_failure = recorded_level_ <= RPMA_LOG_LEVEL_WARNING;
    log_message(recorded_level_, {file, line, function_}, message,
                is_last_failure ? last_message : nullptr);
    // A call of the library in a log function may have changed last_failure.
    if (is_last_failure)
        last_failure = {recorded_error_, true};
}

int Call::finish() const {
    if (code_ != 0)
        errno = error_ != 0 ? error_ : errno_before_;
    return code_;
}

int refuse(const char *function, const char *file, int line, const char *format, ...) {
    Call call(function);
    if (call.record_failure(RPMA_E_INVAL, 0)) {
        va_list values;
        va_start(values, format);
        call.vlog(file, line, "", format, values);
        va_end(values);
    }
    return call.finish();
}

} // namespace rpma
