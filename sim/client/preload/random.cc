// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// random.cc -- for "rdma-sim explore": random numbers of a seed, and numbers of threads

#include <cstdlib>
#include <cstring>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#include "control.hh"

namespace {

using namespace control;

uint64_t random_state;
unsigned threads;                // that the process has started
__thread unsigned thread_number; // 0: the first one

void fill(void *to, size_t size) {
    for (size_t i = 0; i < size; i++)
        static_cast<uint8_t *>(to)[i] =
            static_cast<uint8_t>((random_state = random_state * 6364136223846793005 + 1) >> 56);
}

} // namespace

void control::seed_random(uint64_t seed) {
    random_state = seed;
    memset(reinterpret_cast<void *>(getauxval(AT_RANDOM)), 0x5a, 16);
}

void control::number_thread() {
    thread_number = ++threads;
}

EXPORTED ssize_t getrandom(void *to, size_t size, unsigned flags) {
    if (!is_on())
        return REAL(getrandom)(to, size, flags);
    fill(to, size);
    return static_cast<ssize_t>(size);
}
EXPORTED int getentropy(void *to, size_t size) {
    if (!is_on())
        return REAL(getentropy)(to, size);
    fill(to, size);
    return 0;
}

// No thread of the system has such a number: a function that is not replaced fails.
EXPORTED pid_t gettid() noexcept {
    return !is_on()             ? own_tid()
           : thread_number == 0 ? getpid()
                                : 1'000'000'000 + getpid() % 1'000'000 * 1000 +
                                      static_cast<pid_t>(thread_number);
}
EXPORTED void arc4random_buf(void *to, size_t size) noexcept {
    if (is_on())
        fill(to, size);
    else
        REAL(arc4random_buf)(to, size);
}
EXPORTED uint32_t arc4random() noexcept {
    uint32_t value;
    arc4random_buf(&value, sizeof(value));
    return value;
}
EXPORTED uint32_t arc4random_uniform(uint32_t limit) noexcept {
    return limit == 0 ? 0 : static_cast<uint32_t>((uint64_t{arc4random()} * limit) >> 32);
}
// unsigned std::random_device::_M_getval(), which may use an instruction of the processor.
EXPORTED unsigned _ZNSt13random_device9_M_getvalEv(void *) {
    return arc4random();
}
