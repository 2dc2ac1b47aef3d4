// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// tsc.cc -- for "rdma-sim explore": the time stamp counter of x86-64 counts virtual nanoseconds
//
// PR_SET_TSC lets the instructions fail with SIGSEGV, whose handler executes them.

#include <csignal>
#include <cstring>
#include <initializer_list>
#include <sys/prctl.h>
#include <ucontext.h>

#include "code.hh"
#include "control.hh"

#ifdef __x86_64__

namespace {

using namespace control;

constexpr unsigned char RDTSC[] = {0x0f, 0x31}, RDTSCP[] = {0x0f, 0x01, 0xf9};
bool is_used, is_virtual;

// These contain the instructions, and measure nothing for the program.
bool is_of_system(const char *path) {
    const char *const slash = strrchr(path, '/'), *const name =
                                                      slash == nullptr ? path : slash + 1;
    for (const char *const each :
         {"libc.so", "ld-linux", "linux-vdso", "libm.so", "libstdc++", "librdma-sim"})
        if (strncmp(name, each, strlen(each)) == 0)
            return true;
    return false;
}

// Returns 1 if the code of a library, or of the program, contains the instructions.
int has_counter(dl_phdr_info *info, size_t, void *) {
    return !is_of_system(info->dlpi_name) &&
           (contains_instruction(*info, RDTSC) || contains_instruction(*info, RDTSCP));
}

void handle(int number, siginfo_t *info, void *context) {
    greg_t *const registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    const auto *const at = reinterpret_cast<const unsigned char *>(registers[REG_RIP]);
    const bool is_privileged = info->si_code == SI_KERNEL; // `at` is readable then
    const bool is_tsc = is_privileged && memcmp(at, RDTSC, sizeof(RDTSC)) == 0;
    const bool is_tscp = is_privileged && memcmp(at, RDTSCP, sizeof(RDTSCP)) == 0;
    if (!is_tsc && !is_tscp)
        return handle_crash(number, info, context);
    const uint64_t value = is_on() ? read_monotonic_clock() : now();
    registers[REG_RAX] = static_cast<greg_t>(value & UINT32_MAX);
    registers[REG_RDX] = static_cast<greg_t>(value >> 32);
    if (is_tscp)
        registers[REG_RCX] = 0;
    registers[REG_RIP] += is_tsc ? sizeof(RDTSC) : sizeof(RDTSCP);
}

} // namespace

// Each switch between a program without the instructions and another one takes time.
void control::find_counter() {
    is_used = dl_iterate_phdr(has_counter, nullptr) != 0;
}

void control::make_counter_virtual() {
    if (!is_used)
        return;
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    is_virtual = REAL(sigaction)(SIGSEGV, &action, nullptr) == 0 &&
                 prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0;
}

// A program that begins executes the instructions before it has the handler.
control::RealCounter::RealCounter() {
    if (is_virtual)
        prctl(PR_SET_TSC, PR_TSC_ENABLE);
}
control::RealCounter::~RealCounter() {
    if (is_virtual)
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

bool control::has_virtual_counter() {
    return is_virtual;
}

#else
bool control::has_virtual_counter() {
    return false;
}
void control::find_counter() {}
void control::make_counter_virtual() {}
control::RealCounter::RealCounter() {}
control::RealCounter::~RealCounter() {}
#endif
