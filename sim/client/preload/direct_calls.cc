// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// direct_calls.cc -- for "rdma-sim explore": system calls that a program makes without the
// function of the C library, as those of Go do, call that function
//
// The kernel lets those of the program's own code fail with SIGSYS, whose handler makes them.
// Those of the libraries in LIBRARIES are replaced by an instruction that fails with SIGILL.

#include "threads.hh"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <iterator>
#include <link.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <utility>

#include "../../protocol/dispatch.hh"
#include "code.hh"

extern "C" { // glibc has declared them since 2.36
int pidfd_open(pid_t, unsigned) noexcept;
int pidfd_send_signal(int, int, siginfo_t *, unsigned) noexcept;
}

namespace {

using namespace control;

using Arguments = const long (&)[6];

// ---- the functions of system calls ---------------------------------------------------------

template <class T> T converted(long argument) {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<T>(argument);
    else
        return static_cast<T>(argument);
}

template <class Result, class... Types, size_t... INDEXES>
Result apply(Result (*function)(Types...), Arguments arguments,
             std::index_sequence<INDEXES...>) {
    return function(converted<Types>(arguments[INDEXES])...);
}
template <class Result, class... Types>
Result apply(Result (*function)(Types...), Arguments arguments) {
    return apply(function, arguments, std::index_sequence_for<Types...>());
}
template <auto FUNCTION> long call(Arguments arguments) {
    return static_cast<long>(apply(FUNCTION, arguments));
}

pid_t own_pid() {
    return static_cast<pid_t>(REAL(syscall)(SYS_getpid));
}

long exit_thread(Arguments arguments) {
    if (own_tid() != own_pid())
        refuse("exit() as a direct system call");
    _exit(static_cast<int>(arguments[0]));
}

// A new process has a copy of the memory, as with vfork().
long clone_process(Arguments arguments) {
    if ((arguments[0] & CLONE_THREAD) != 0 || arguments[1] != 0)
        refuse("clone() as a direct system call");
    return fork();
}

long sleep_on_clock(Arguments arguments) {
    const int error = apply(clock_nanosleep, arguments);
    errno = error;
    return error == 0 ? 0 : -1;
}

// Returns the size of the set.
long find_processors(Arguments arguments) {
    const size_t size = std::min(static_cast<size_t>(arguments[1]), sizeof(cpu_set_t));
    (void)sched_getaffinity(0, size, converted<cpu_set_t *>(arguments[2]));
    return static_cast<long>(size);
}

// Go sends SIGURG to a thread that should let another goroutine run. A thread that waits for
// its turn executes none.
long signal_thread(Arguments arguments) {
    if (arguments[1] == gettid())
        return REAL(syscall)(SYS_tgkill, own_pid(), own_tid(), arguments[2]);
    if (arguments[2] != SIGURG)
        refuse("tgkill() as a direct system call");
    return 0;
}

struct KernelAction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    uint64_t mask;
};

long set_action(Arguments arguments) {
    constexpr int RESTORER = 0x04000000;
    const auto number = static_cast<int>(arguments[0]);
    const auto *const given = converted<const KernelAction *>(arguments[1]);
    auto *const before = converted<KernelAction *>(arguments[2]);
    struct sigaction action = {}, old = {};
    if (number >= 32 && number < SIGRTMIN) // the C library keeps these for itself
        return REAL(syscall)(SYS_rt_sigaction, arguments[0], arguments[1], arguments[2],
                             arguments[3]);
    if (given != nullptr) {
        action.sa_handler = given->handler;
        action.sa_flags = static_cast<int>(given->flags) & ~RESTORER;
        memcpy(&action.sa_mask, &given->mask, sizeof(given->mask));
    }
    if (sigaction(number, given == nullptr ? nullptr : &action, &old) != 0)
        return -1;
    if (before != nullptr) {
        *before = {old.sa_handler, static_cast<unsigned>(old.sa_flags), nullptr, 0};
        memcpy(&before->mask, &old.sa_mask, sizeof(before->mask));
    }
    return 0;
}

struct DirectCall {
    long number;
    long (*function)(Arguments arguments); // returns -1 and errno
};
// clang-format off
#define CALL(name) {SYS_##name, call<::name>},
#define REFUSED(name) {SYS_##name, [](Arguments) -> long { refuse(#name "() as a direct system call"); }},
constexpr DirectCall CALLS[] = {
    CALL(accept) CALL(accept4) CALL(bind) CALL(clock_gettime) CALL(close) CALL(connect)
    CALL(close_range) CALL(dup3) CALL(epoll_pwait) CALL(execve) CALL(flock) CALL(getpgid) CALL(getpid) CALL(getppid) CALL(getrandom)
    CALL(getsockopt) CALL(gettid) CALL(gettimeofday) CALL(kill) CALL(listen)
    CALL(mq_timedreceive) CALL(mq_timedsend) CALL(msgctl) CALL(msgrcv) CALL(msgsnd) CALL(nanosleep)
    CALL(pidfd_open) CALL(pidfd_send_signal) CALL(ppoll) CALL(read) CALL(readv) CALL(recvfrom) CALL(recvmmsg) CALL(recvmsg)
    CALL(sched_setaffinity) CALL(sched_yield) CALL(semop) CALL(semtimedop) CALL(sendfile) CALL(sendmmsg) CALL(sendmsg) CALL(sendto) CALL(setitimer) CALL(setpgid)
    CALL(setsid) CALL(setsockopt) CALL(shutdown) CALL(socket) CALL(timerfd_create)
    CALL(timerfd_gettime) CALL(timerfd_settime) CALL(wait4) CALL(waitid) CALL(write)
    CALL(writev)
#ifdef SYS_poll
    CALL(alarm) CALL(dup2) CALL(epoll_wait) CALL(fork) CALL(getpgrp) CALL(pause) CALL(poll) CALL(select)
    CALL(time) {SYS_vfork, call<::fork>},
#endif
    {SYS_clock_nanosleep, sleep_on_clock}, {SYS_clone, clone_process}, {SYS_exit, exit_thread},
    {SYS_exit_group, [](Arguments arguments) -> long { _exit(static_cast<int>(arguments[0])); }},
    {SYS_fcntl, [](Arguments arguments) -> long {
         return fcntl(static_cast<int>(arguments[0]), static_cast<int>(arguments[1]), arguments[2]);
     }},
    {SYS_futex, call<control::futex>}, {SYS_rt_sigaction, set_action},
    {SYS_sched_getaffinity, find_processors}, {SYS_tgkill, signal_thread},
    REFUSED(clone3) REFUSED(io_uring_setup) REFUSED(pselect6) REFUSED(rt_sigsuspend) REFUSED(rt_sigtimedwait)
    REFUSED(userfaultfd)
#ifdef SYS_futex_waitv
    REFUSED(futex_waitv)
#endif
};
// clang-format on

// Returns as syscall() does.
long execute(long number, Arguments arguments) {
    const auto *const found = std::ranges::find(CALLS, number, &DirectCall::number);
    return is_on() && found != std::end(CALLS)
               ? found->function(arguments)
               : REAL(syscall)(number, arguments[0], arguments[1], arguments[2], arguments[3],
                               arguments[4], arguments[5]);
}

} // namespace

// Called by libstdc++, for std::atomic::wait(), and by programs in Rust.
EXPORTED long syscall(long number, ...) noexcept {
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (long &each : arguments)
        each = va_arg(list, long);
    va_end(list);
    return execute(number, arguments);
}

// ---- the system calls of the program -------------------------------------------------------

namespace {

uintptr_t end_of_code; // of the program; 0: its system calls do not fail
constexpr size_t MAX_CALLS = 64;
uintptr_t calls[MAX_CALLS]; // of its libraries
size_t call_count;

} // namespace

bool control::has_direct_calls() {
    return end_of_code != 0;
}
bool control::has_calls_of_libraries() {
    return call_count != 0;
}

#ifdef __x86_64__

namespace {

constexpr unsigned char SYSCALL[] = {0x0f, 0x05};

// The first object is the program, and its libraries have higher addresses.
int find_in_program(dl_phdr_info *info, size_t, void *) {
    for (unsigned i = 0; i < info->dlpi_phnum && contains_instruction(*info, SYSCALL); i++) {
        const ElfW(Phdr) &segment = info->dlpi_phdr[i];
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
            end_of_code = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    }
    return 1;
}

constexpr const char *LIBRARIES[] = {"libgomp.so", "liburing.so"};

int replace_in_library(dl_phdr_info *info, size_t, void *) {
    constexpr unsigned char UD2[] = {0x0f, 0x0b};
    const char *const slash = strrchr(info->dlpi_name, '/');
    const char *const name = slash == nullptr ? info->dlpi_name : slash + 1;
    if (std::ranges::none_of(LIBRARIES, [&](const char *each) {
            return strncmp(name, each, strlen(each)) == 0;
        }))
        return 0;
    const auto page_size = static_cast<uintptr_t>(getpagesize());
    find_instructions(*info, SYSCALL, [&](const unsigned char *at) {
        const auto address = reinterpret_cast<uintptr_t>(at);
        auto *const page = reinterpret_cast<void *>(address / page_size * page_size);
        if (call_count == MAX_CALLS ||
            mprotect(page, 2 * page_size, PROT_READ | PROT_WRITE) != 0)
            return false;
        memcpy(reinterpret_cast<void *>(address), UD2, sizeof(UD2));
        calls[call_count++] = address;
        return mprotect(page, 2 * page_size, PROT_READ | PROT_EXEC) == 0;
    });
    return 0;
}

// The vDSO returns the time of the machine. A program that has none makes system calls.
void hide_vdso(char **argv) {
    char **end = argv;
    for (int arrays = 0; arrays < 2; end++) // and the environment
        arrays += *end == nullptr;
    for (auto *each = reinterpret_cast<ElfW(auxv_t) *>(end); each->a_type != AT_NULL; each++)
        if (each->a_type == AT_SYSINFO_EHDR)
            each->a_type = AT_IGNORE;
}

constexpr uint64_t bit_of(int signal) {
    return uint64_t{1} << (signal - 1);
}

// The kernel applies the mask and the stack in the context at the end of the handler.
long set_mask(Arguments arguments, ucontext_t &context) {
    uint64_t mask, given;
    memcpy(&mask, &context.uc_sigmask, sizeof(mask));
    if (const auto *const set = converted<const void *>(arguments[1])) {
        memcpy(&given, set, sizeof(given));
        given = arguments[0] == SIG_BLOCK     ? mask | given
                : arguments[0] == SIG_UNBLOCK ? mask & ~given
                                              : given;
        given &= ~(bit_of(SIGSEGV) | bit_of(SIGSYS)); // as pthread_sigmask()
        memcpy(&context.uc_sigmask, &given, sizeof(given));
    }
    if (auto *const before = converted<void *>(arguments[2]))
        memcpy(before, &mask, sizeof(mask));
    return 0;
}

long set_stack(Arguments arguments, ucontext_t &context) {
    stack_t &own = context.uc_stack;
    const auto place = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]) -
                       reinterpret_cast<uintptr_t>(own.ss_sp);
    const stack_t before = {own.ss_sp,
                            own.ss_size == 0      ? SS_DISABLE
                            : place < own.ss_size ? SS_ONSTACK
                                                  : 0,
                            own.ss_size};
    if (const auto *const given = converted<const stack_t *>(arguments[0])) {
        if (before.ss_flags == SS_ONSTACK) {
            errno = EPERM;
            return -1;
        }
        own = *given;
    }
    if (auto *const to = converted<stack_t *>(arguments[1]))
        *to = before;
    return 0;
}

void handle(int signal, siginfo_t *info, void *pointer) {
    auto &context = *static_cast<ucontext_t *>(pointer);
    greg_t *const registers = context.uc_mcontext.gregs;
    auto *const end = calls + call_count;
    const bool is_of_library =
        signal == SIGILL &&
        std::find(calls, end, static_cast<uintptr_t>(registers[REG_RIP])) != end;
    if (!is_of_library && info->si_code != sim::DISPATCHED)
        return handle_crash(signal, info, pointer);
    const long number = is_of_library ? registers[REG_RAX] : info->si_syscall;
    const int error = errno;
    const long arguments[] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                              registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
    const long result = number == SYS_rt_sigprocmask ? set_mask(arguments, context)
                        : number == SYS_sigaltstack  ? set_stack(arguments, context)
                                                     : execute(number, arguments);
    registers[REG_RAX] = result == -1 ? -errno : result;
    if (is_of_library)
        registers[REG_RIP] += static_cast<greg_t>(sizeof(SYSCALL));
    errno = error;
}

} // namespace

// Sanitizers that are a part of the program create threads by system calls.
void control::find_direct_calls(char **argv) {
    if (dlsym(RTLD_DEFAULT, "__sanitizer_print_stack_trace") == nullptr)
        dl_iterate_phdr(find_in_program, nullptr);
    if (end_of_code != 0 && !sim::dispatch_calls_below(end_of_code))
        end_of_code = 0;
    if (end_of_code != 0)
        hide_vdso(argv);
    dl_iterate_phdr(replace_in_library, nullptr);
}

void control::catch_direct_calls() {
    struct sigaction action = {};
    sigset_t set; // a program may have executed this one with the signals blocked
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    sigaddset(&set, SIGILL);
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    const bool is_done =
        (end_of_code == 0 && call_count == 0) ||
        (REAL(pthread_sigmask)(SIG_UNBLOCK, &set, nullptr) == 0 &&
         (call_count == 0 || REAL(sigaction)(SIGILL, &action, nullptr) == 0) &&
         (end_of_code == 0 || (REAL(sigaction)(SIGSYS, &action, nullptr) == 0 &&
                               sim::dispatch_calls_below(end_of_code))));
    if (!is_done)
        refuse("direct system calls");
}

#else
void control::find_direct_calls(char **) {}
void control::catch_direct_calls() {}
#endif
