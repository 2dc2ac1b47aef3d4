// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "spin.hh"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <tuple>

namespace {

constexpr size_t MAX_STEPS = 2000, PASSES = 2;
constexpr size_t RED_ZONE = 128, STACK = 512; // bytes below and above the stack pointer

#if defined(__x86_64__)
using Registers = user_regs_struct;
uintptr_t instruction_of(const Registers &registers) {
    return registers.rip;
}
uintptr_t stack_of(const Registers &registers) {
    return registers.rsp;
}
constexpr unsigned char SYSTEM_CALL[] = {0x0f, 0x05};
#elif defined(__aarch64__)
using Registers = user_regs_struct;
uintptr_t instruction_of(const Registers &registers) {
    return registers.pc;
}
uintptr_t stack_of(const Registers &registers) {
    return registers.sp;
}
constexpr unsigned char SYSTEM_CALL[] = {0x01, 0x00, 0x00, 0xd4};
#else
struct Registers {
    uintptr_t unknown;
};
uintptr_t instruction_of(const Registers &) {
    return 0; // no thread is stopped
}
uintptr_t stack_of(const Registers &) {
    return 0;
}
constexpr unsigned char SYSTEM_CALL[] = {0};
#endif

bool read_memory(pid_t thread, uintptr_t address, void *to, size_t length) {
    const iovec own = {to, length}, other = {reinterpret_cast<void *>(address), length};
    return process_vm_readv(thread, &own, 1, &other, 1, 0) == static_cast<ssize_t>(length);
}

// A step over a system call could block.
bool is_system_call(pid_t thread, uintptr_t instruction) {
    unsigned char bytes[sizeof(SYSTEM_CALL)];
    return !read_memory(thread, instruction, bytes, sizeof(bytes)) ||
           memcmp(bytes, SYSTEM_CALL, sizeof(bytes)) == 0;
}

// Returns true if /proc shows this: "running", or "-1" for a stopped thread outside a system
// call. Interrupted, a call could fail.
bool shows(pid_t thread, const char *shown) {
    char path[64], text[16] = "";
    snprintf(path, sizeof(path), "/proc/%d/syscall", thread);
    FILE *const file = fopen(path, "re");
    if (file == nullptr)
        return false;
    const bool has_text = fgets(text, sizeof(text), file) != nullptr;
    fclose(file);
    return has_text && strncmp(text, shown, strlen(shown)) == 0;
}

} // namespace

// Returns false if the thread has ended, or has got a signal, which release() delivers.
bool Spin::wait_for_stop() {
    siginfo_t event = {};
    int status;
    while (waitid(P_PID, static_cast<id_t>(thread_), &event,
                  WEXITED | WSTOPPED | WNOWAIT | __WALL) != 0)
        if (errno != EINTR)
            return false;
    const bool has_ended = event.si_code != CLD_TRAPPED && event.si_code != CLD_STOPPED;
    if (has_ended && keeps_status_)
        return false;
    if (waitpid(thread_, &status, __WALL) < 0 || has_ended)
        return false;
    const bool is_trap = WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
    signal_ = WIFSTOPPED(status) && !is_trap ? WSTOPSIG(status) : 0;
    return is_trap;
}

bool Spin::step() {
    return ptrace(PTRACE_SINGLESTEP, thread_, nullptr, nullptr) == 0 && wait_for_stop();
}

bool Spin::read_registers(State &state) const {
    Registers registers;
    iovec to = {&registers, sizeof(registers)};
    if (ptrace(PTRACE_GETREGSET, thread_, NT_PRSTATUS, &to) != 0)
        return false;
    const auto *const bytes = reinterpret_cast<const std::byte *>(&registers);
    state.registers.assign(bytes, bytes + sizeof(registers));
    state.instruction = instruction_of(registers);
    return state.instruction != 0;
}

bool Spin::read_stack(const State &state, std::vector<std::byte> &stack) const {
    Registers registers;
    memcpy(&registers, state.registers.data(), sizeof(registers));
    stack.resize(RED_ZONE + STACK);
    return read_memory(thread_, stack_of(registers) - RED_ZONE, stack.data(), stack.size());
}

bool Spin::has_same_stack() const {
    std::vector<std::byte> stack;
    return read_stack(loop_.front(), stack) && stack == stack_;
}

bool Spin::step_to(State &state) {
    return !is_system_call(thread_, state.instruction) && step() && read_registers(state);
}

// Compares the registers after each instruction: a loop that counts in memory changes one.
bool Spin::repeats(size_t &at) {
    State now = loop_[at];
    at = (at + 1) % loop_.size();
    return step_to(now) && now == loop_[at] && (at != 0 || has_same_stack());
}

bool Spin::is_loop(bool is_thorough) {
    State now;
    if (!read_registers(now) || !step_to(now) || !read_stack(now, stack_))
        return false;
    loop_ = {now};
    while (step_to(now) && now != loop_.front() && loop_.size() < MAX_STEPS &&
           (is_thorough || now.instruction != loop_.front().instruction))
        loop_.push_back(now);
    if (now != loop_.front() || !has_same_stack())
        return false;
    size_t at = 0;
    for (size_t steps = 0; steps < PASSES * loop_.size(); steps++)
        if (!repeats(at))
            return false;
    return step_to_head();
}

// A loop may also write, for example lock and unlock. Its head, where it does not hold a lock,
// is the same wherever the thread was stopped.
bool Spin::step_to_head() {
    const auto place = [](const State &state) {
        Registers registers;
        memcpy(&registers, state.registers.data(), sizeof(registers));
        return std::tuple(~stack_of(registers), state.instruction, state.registers);
    };
    const auto head = std::ranges::min_element(loop_, {}, place);
    const auto steps = static_cast<size_t>(head - loop_.begin());
    for (size_t at = 0; at < steps;)
        if (!repeats(at))
            return false;
    std::rotate(loop_.begin(), head, loop_.end());
    return read_stack(loop_.front(), stack_);
}

bool Spin::stop(pid_t thread, bool keeps_status, bool is_thorough) {
    keeps_status_ = keeps_status;
    if (!shows(thread, "running") ||
        ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_EXITKILL) != 0)
        return false; // another process traces it
    thread_ = thread;
    if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 && wait_for_stop() &&
        shows(thread, "-1") && is_loop(is_thorough))
        return true;
    release();
    return false;
}

bool Spin::is_unchanged() {
    size_t at = 0;
    do
        if (!repeats(at)) {
            release();
            return false;
        }
    while (at != 0);
    return true;
}

void Spin::release() {
    if (thread_ > 0)
        ptrace(PTRACE_DETACH, thread_, nullptr, signal_);
    thread_ = signal_ = 0;
}
