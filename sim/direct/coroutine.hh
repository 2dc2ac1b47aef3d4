// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// coroutine.hh -- a program that runs on a stack of its own, in the thread that schedules it

#pragma once

#include <csetjmp>
#include <cstddef>
#include <functional>
#include <ucontext.h>

namespace sim {

class Coroutine {
  public:
    // That of a thread. It exceeds --max-stackframe of valgrind, which therefore recognizes a
    // switch of stacks.
    static constexpr size_t STACK_SIZE = size_t{8} << 20;
    Coroutine() = default;
    ~Coroutine();
    Coroutine(const Coroutine &) = delete;
    Coroutine &operator=(const Coroutine &) = delete;
    // The next resume() begins `run`. What ran before does not continue. Returns false if there
    // is no memory.
    bool start(std::function<void()> run);
    void resume(); // returns when the program calls yield(), or has ended
    void yield();  // called by the program, which keeps its errno and its exceptions

  private:
    static void begin();
    void leave();
    void enter();

    std::function<void()> run_;
    char *stack_ = nullptr;
    bool is_new_ = false;
    ucontext_t context_;
    jmp_buf program_, scheduler_;
    // For the sanitizers.
    void *fake_stack_ = nullptr, *fiber_ = nullptr, *scheduler_fiber_ = nullptr;
    const void *scheduler_stack_ = nullptr;
    size_t scheduler_size_ = 0;
};

} // namespace sim
