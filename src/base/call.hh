// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// call.hh -- one call of an exported function, and its failures, logged at the place of failure
//
// An exported function creates a Call and passes it to the functions below. A function that
// fails reports the failure to the Call at once, with its parameters, and returns nullptr, an
// empty owner or false. The Call stores the first failure; finish() returns its code to the
// caller and sets errno to the provider's error number.
//
// Thread-safety: one thread.

#pragma once

#include <cerrno>
#include <cstdarg>

#include "base/log.hh"

namespace rpma {

// The last failure of this thread. Its message is in last_message if its level was enabled. Not
// initial-exec: the static TLS block has no room for the message if many libraries are loaded
// late.
struct LastFailure {
    int error;
    bool has_message;
};
extern constinit thread_local LastFailure last_failure;
extern constinit thread_local char last_message[LOG_MESSAGE_SIZE];

class Call {
  public:
    explicit Call(const char *function) : function_(function), errno_before_(errno) {}
    Call(const Call &) = delete;

    const char *function() const { return function_; }
    bool has_failed() const { return code_ != 0; }

    // Records a failure. code is an RPMA_E_*; error is the provider's number, 0 if it returned
    // none. Returns true if the log level of the message is enabled. Otherwise the caller must
    // not format a message or query the device.
    [[gnu::cold, gnu::noinline]] bool record_failure(int code, int error);
    // The same for a would-block result, and for a wait on the wrong completion channel. Both
    // may be frequent, and are logged for debugging only.
    [[gnu::cold, gnu::noinline]] bool record_would_block(int code, int error);
    // Logs the latest recorded failure: "<message> failed: <text of error> (error)<advice>", or
    // the message and the advice without a number. advice is text or "".
    [[gnu::cold, gnu::noinline, gnu::format(printf, 5, 6)]] void
    log(const char *file, int line, const char *advice, const char *format, ...) const;
    [[gnu::format(printf, 5, 0)]] void vlog(const char *file, int line, const char *advice,
                                            const char *format, va_list values) const;

    // Records that data of another machine is not valid. Its message is for information only,
    // because this side has not failed.
    [[gnu::cold, gnu::noinline]] bool record_rejection();
    // Records that a signal ended the call: a failure, logged for debugging only.
    [[gnu::cold, gnu::noinline]] bool record_interruption();

    // Brackets alternatives: only the last failure counts. Earlier failures do not reach the
    // caller, and are logged for information only.
    void begin_attempt(bool last) {
        code_ = 0;
        is_tentative_ = !last;
    }
    void end_attempts() { is_tentative_ = false; }

    void restore_errno() const { errno = errno_before_; }
    // Returns the code for the caller. Sets errno to the provider's error number of the first
    // failure. If there is none, restores the errno from before the call.
    int finish() const;

    // Stores a value or passes an object to the caller, unless the call failed. Returns the
    // code.
    template <class Object, class Out> int deliver(Object &&object, Out *out) const {
        if (has_failed())
            return finish();
        if constexpr (requires { object.release(); })
            *out = object.release();
        else
            *out = object;
        return 0;
    }

  private:
    bool record(rpma_log_level level, int code, int error);

    const char *function_;
    int errno_before_;
    int code_ = 0;
    int error_ = 0;
    bool is_tentative_ = false;
    rpma_log_level recorded_level_ = {}; // of the latest recorded failure
    int recorded_error_ = 0;
};

template <class Write>
[[gnu::always_inline]] inline void log_if(bool is_logged, const Write &write) {
    if (is_logged) [[unlikely]]
        write();
}

} // namespace rpma

// The arguments after error are evaluated only if the message is logged. They are in a lambda,
// so that record_failure() is called in one place.
#define RPMA_FAIL_ADVISING(call, code, error, ...)   \
    rpma::log_if((call).record_failure(code, error), \
                 [&] { (call).log(__FILE_NAME__, __LINE__, __VA_ARGS__); })
#define RPMA_FAIL(call, code, error, ...) RPMA_FAIL_ADVISING(call, code, error, "", __VA_ARGS__)
// Rejects data of another machine. This is no failure of this side, and is logged for
// information.
#define RPMA_REJECT(call, ...)              \
    rpma::log_if((call).record_rejection(), \
                 [&] { (call).log(__FILE_NAME__, __LINE__, "", __VA_ARGS__); })
#define RPMA_WOULD_BLOCK(call, code, error, ...)         \
    rpma::log_if((call).record_would_block(code, error), \
                 [&] { (call).log(__FILE_NAME__, __LINE__, "", __VA_ARGS__); })
#define RPMA_INTERRUPTED(call, ...)            \
    rpma::log_if((call).record_interruption(), \
                 [&] { (call).log(__FILE_NAME__, __LINE__, "", __VA_ARGS__); })
