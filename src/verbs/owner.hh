// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// owner.hh -- move-only ownership of one provider object

#pragma once

#include <utility>

#include "base/call.hh"

namespace rpma {

// Traits describe the object and its release: using Object; const char *NAME, the provider's
// call; int destroy(Object *), which returns 0 or an error number.
//
// The destructor destroys the object without a log message: it unwinds half-built objects,
// whose failure has been logged already.
template <class Traits> class Owner {
  public:
    using Object = typename Traits::Object;

    Owner() = default;
    explicit Owner(Object *object) : object_(object) {}
    Owner(Owner &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Owner &operator=(Owner &&other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Owner() {
        if (object_ != nullptr)
            Traits::destroy(object_);
    }

    explicit operator bool() const { return object_ != nullptr; }
    Object *get() const { return object_; }
    Object *operator->() const { return object_; }

    // Destroys the object and drops the pointer even if the provider fails. RPMA_E_PROVIDER.
    void release(Call &call) {
        if (object_ != nullptr)
            destroy(call, std::exchange(object_, nullptr));
    }

    // Destroys the object. Returns false if the provider refuses; the object is still owned, so
    // that a retry is possible. RPMA_E_PROVIDER.
    bool try_release(Call &call) {
        if (object_ != nullptr && !destroy(call, object_))
            return false;
        object_ = nullptr;
        return true;
    }

  private:
    static bool destroy(Call &call, Object *object) {
        const int error = Traits::destroy(object);
        if (error != 0)
            RPMA_FAIL(call, RPMA_E_PROVIDER, error, "%s()", Traits::NAME);
        return error == 0;
    }

    Object *object_ = nullptr;
};

// The error number of a call that returns 0, or -1 with errno.
inline int error_of(int result) {
    return result == 0 ? 0 : errno;
}

} // namespace rpma
