// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// result.hh -- errors as values: what failed, and the code that the caller gets for it

#pragma once

#include <tl/expected.hpp>

#include "librpma.h"

namespace rpma {

// Made where something fails, logged and turned into its code where the call leaves the
// library.
struct Failure {
    int code;                     // RPMA_E_*
    const char *cause;            // static text: a provider call, or what is not valid
    int error = 0;                // error number of the provider, 0: there is none
    const char *reason = nullptr; // static text where an error number says too little
    bool answer = false;          // no error: what the caller asked for did not come
};

template <class T> using Result = tl::expected<T, Failure>;
using Status = Result<void>;

inline tl::unexpected<Failure> fail(const Failure &failure) {
    return tl::unexpected(failure);
}

inline tl::unexpected<Failure> out_of_memory() {
    return fail({RPMA_E_NOMEM, "out of memory"});
}

// Runs through steps that must all be taken: the first failure is the one that counts.
class FirstFailure {
  public:
    void note(Status step) {
        if (status_ && !step)
            status_ = step;
    }
    Status status() const { return status_; }

  private:
    Status status_;
};

} // namespace rpma
