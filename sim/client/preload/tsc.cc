// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// tsc.cc -- for "rdma-sim explore": the time stamp counter of x86-64 counts virtual nanoseconds
//
// PR_SET_TSC lets the instructions fail with SIGSEGV, whose handler executes them.

#include <csignal>
#include <cstring>
#include <initializer_list>
#include <link.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "control.hh"
#include "instruction.hh"

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

template <size_t SIZE>
bool starts_with(const unsigned char *at, const unsigned char *end,
                 const unsigned char (&bytes)[SIZE]) {
    return static_cast<size_t>(end - at) >= SIZE && memcmp(at, bytes, SIZE) == 0;
}

constexpr size_t STARTS = 64, ENOUGH = STARTS / 4;

// The bytes of an instruction occur by chance, about once in 64 KiB of code, inside others.
// From most places before an instruction, decoding reaches its begin, because code synchronizes
// with itself. In the libraries of Debian 12, that is from 50 of 64 for each of these
// instructions, and from at most 31 for other bytes.
bool is_instruction(const unsigned char *code, const unsigned char *at,
                    const unsigned char *end) {
    size_t reached = 0;
    for (size_t before = 1; before <= STARTS && before <= static_cast<size_t>(at - code);
         before++) {
        const unsigned char *from = at - before;
        size_t length = 1;
        while (from < at && length != 0) {
            length = instruction_length(from, static_cast<size_t>(end - from));
            from += length;
        }
        reached += from == at;
    }
    return reached >= ENOUGH || at - code < static_cast<ptrdiff_t>(STARTS);
}

// Returns 1 if the code of a library, or of the program, contains the instructions.
int has_counter(dl_phdr_info *info, size_t, void *) {
    for (unsigned i = 0; i < info->dlpi_phnum && !is_of_system(info->dlpi_name); i++) {
        const ElfW(Phdr) &segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0)
            continue;
        const auto *const code =
            reinterpret_cast<const unsigned char *>(info->dlpi_addr + segment.p_vaddr);
        const auto *const end = code + segment.p_filesz;
        for (const unsigned char *at = code;
             (at = static_cast<const unsigned char *>(
                  memchr(at, RDTSC[0], static_cast<size_t>(end - at)))) != nullptr;
             at++)
            if ((starts_with(at, end, RDTSC) || starts_with(at, end, RDTSCP)) &&
                is_instruction(code, at, end))
                return 1;
    }
    return 0;
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
