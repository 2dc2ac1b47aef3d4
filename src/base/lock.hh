// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lock.hh -- holds a mutex until the end of a block

#pragma once

#include <pthread.h>

namespace rpma {

class Lock {
  public:
    explicit Lock(pthread_mutex_t &mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    Lock(const Lock &) = delete;
    ~Lock() { pthread_mutex_unlock(&mutex_); }

  private:
    pthread_mutex_t &mutex_;
};

} // namespace rpma
