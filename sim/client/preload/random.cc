// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// random.cc -- for "rdma-sim explore": random numbers of a seed, numbers of threads, and names
// of temporary files

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control.hh"

namespace {

using namespace control;

uint64_t random_state;
unsigned threads;                // that the process has started
__thread unsigned thread_number; // 0: the first one

uint64_t next(uint64_t &state) {
    return state = state * 6364136223846793005 + 1;
}

void fill(void *to, size_t size) {
    for (size_t i = 0; i < size; i++)
        static_cast<uint8_t *>(to)[i] = static_cast<uint8_t>(next(random_state) >> 56);
}

// Another sequence, so that a file that exists already changes no random number.
uint64_t name_state;

// Calls the function with the names that replace XXXXXX before the suffix, until it makes a
// file.
template <class Make> int make_named(char *name, int suffix, Make make) {
    constexpr int DIGITS = 6, ATTEMPTS = 10'000;
    const auto length = static_cast<int>(strlen(name)) - suffix;
    char *const digits = name + length - DIGITS;
    if (suffix < 0 || length < DIGITS || memcmp(digits, "XXXXXX", DIGITS) != 0) {
        errno = EINVAL;
        return -1;
    }
    int result = -1;
    for (int i = 0; i < ATTEMPTS && result < 0; i++) {
        uint64_t rest = next(name_state) >> 20;
        for (int digit = 0; digit < DIGITS; digit++, rest /= 26)
            digits[digit] = static_cast<char>('a' + rest % 26);
        result = make(name);
        if (result < 0 && errno != EEXIST)
            break;
    }
    return result;
}

} // namespace

void control::seed_random(uint64_t seed) {
    random_state = name_state = seed;
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

#define MAKE_FILE(function, parameters, arguments, suffix, flags)                        \
    EXPORTED int function parameters {                                                   \
        if (!is_on())                                                                    \
            return REAL(function) arguments;                                             \
        return make_named(name, suffix, [&](const char *path) {                          \
            return open(path, ((flags) & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600); \
        });                                                                              \
    }
MAKE_FILE(mkstemp, (char *name), (name), 0, 0)
MAKE_FILE(mkstemp64, (char *name), (name), 0, 0)
MAKE_FILE(mkostemp, (char *name, int flags), (name, flags), 0, flags)
MAKE_FILE(mkostemp64, (char *name, int flags), (name, flags), 0, flags)
MAKE_FILE(mkstemps, (char *name, int suffix), (name, suffix), suffix, 0)
MAKE_FILE(mkstemps64, (char *name, int suffix), (name, suffix), suffix, 0)
MAKE_FILE(mkostemps, (char *name, int suffix, int flags), (name, suffix, flags), suffix, flags)
MAKE_FILE(mkostemps64, (char *name, int suffix, int flags), (name, suffix, flags), suffix,
          flags)
EXPORTED char *mkdtemp(char *name) noexcept {
    if (!is_on())
        return REAL(mkdtemp)(name);
    const auto make = [](const char *path) { return mkdir(path, 0700); };
    return make_named(name, 0, make) < 0 ? nullptr : name;
}
