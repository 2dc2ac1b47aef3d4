// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// owner.hh -- move-only ownership of one provider object

#pragma once

#include <utility>

#include "verbs/failure.hh"

namespace rpma::verbs {

// Traits name the object: using Object, static Status destroy(Object *).
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
    ~Owner() { (void)close(); }

    explicit operator bool() const { return object_ != nullptr; }
    Object *get() const { return object_; }
    Object *operator->() const { return object_; }

    // Destroys the object and forgets it, also when the provider refuses.
    Status close() {
        Object *object = std::exchange(object_, nullptr);
        return object != nullptr ? Traits::destroy(object) : Status{};
    }

    // Destroys the object; it stays owned when the provider refuses, so that a retry works.
    Status try_close() {
        Status status = object_ != nullptr ? Traits::destroy(object_) : Status{};
        if (status)
            object_ = nullptr;
        return status;
    }

  private:
    Object *object_ = nullptr;
};

} // namespace rpma::verbs
