// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// coroutine.cc -- switches between a program and the function that schedules it
//
// Only the first entry uses a function of ucontext, because these call the kernel.

#undef _FORTIFY_SOURCE // its longjmp() permits no other stack

#include "coroutine.hh"

#include <cerrno>
#include <cstring>
#include <cxxabi.h>
#include <sys/mman.h>

// Of the sanitizers with which the test may be built.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom,
                                                  size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom,
                                                   size_t *size);
[[gnu::weak]] void *__tsan_get_current_fiber();
[[gnu::weak]] void *__tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_switch_to_fiber(void *fiber, unsigned flags);
}

namespace sim {

static Coroutine *current;

// The exceptions that a thread handles, by the C++ ABI for Itanium, 2.2.2.
struct Exceptions {
    void *caught;
    unsigned uncaught;
};

Coroutine::~Coroutine() {
    if (stack_)
        munmap(stack_, STACK_SIZE);
}

bool Coroutine::start(std::function<void()> run) {
    if (!stack_) {
        void *const stack =
            mmap(nullptr, STACK_SIZE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (stack == MAP_FAILED)
            return false;
        stack_ = static_cast<char *>(stack);
        (void)mprotect(stack_, 4096, PROT_NONE); // an overflow is a signal
    }
    if (__tsan_create_fiber && !fiber_)
        fiber_ = __tsan_create_fiber(0);
    run_ = std::move(run);
    is_new_ = true;
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_;
    context_.uc_stack.ss_size = STACK_SIZE;
    context_.uc_link = nullptr;
    makecontext(&context_, begin, 0);
    return true;
}

void Coroutine::begin() {
    Coroutine &self = *current;
    self.fake_stack_ = nullptr;
    self.enter();
    self.run_();
    for (;;)
        self.yield();
}

void Coroutine::enter() {
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(fake_stack_, &scheduler_stack_, &scheduler_size_);
}

void Coroutine::leave() {
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&fake_stack_, scheduler_stack_, scheduler_size_);
    if (__tsan_switch_to_fiber)
        __tsan_switch_to_fiber(scheduler_fiber_, 0);
}

void Coroutine::resume() {
    void *fake_stack = nullptr;
    current = this;
    if (__tsan_get_current_fiber)
        scheduler_fiber_ = __tsan_get_current_fiber();
    if (!_setjmp(scheduler_)) {
        if (__sanitizer_start_switch_fiber)
            __sanitizer_start_switch_fiber(&fake_stack, stack_, STACK_SIZE);
        if (__tsan_switch_to_fiber)
            __tsan_switch_to_fiber(fiber_, 0);
        if (!is_new_)
            _longjmp(program_, 1);
        is_new_ = false;
        setcontext(&context_);
    }
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}

void Coroutine::yield() {
    const int error = errno;
    void *const globals = abi::__cxa_get_globals();
    Exceptions exceptions;
    memcpy(&exceptions, globals, sizeof(exceptions));
    memset(globals, 0, sizeof(exceptions));
    if (!_setjmp(program_)) {
        leave();
        _longjmp(scheduler_, 1);
    }
    enter();
    memcpy(globals, &exceptions, sizeof(exceptions));
    errno = error;
}

} // namespace sim
