// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// control.hh -- for "rdma-sim explore": a controlled thread runs until it waits, and one thread
// of all programs runs at a time

#pragma once

#include <csignal>
#include <cstdio>

#include "../client.hh"
#include "preload.hh"

namespace control {

using sim::Wait;

constexpr uint64_t SECOND = 1'000'000'000, NEVER = UINT64_MAX;

// Returns true if the scheduler controls the calling thread.
bool is_on();
pid_t own_tid(); // of the kernel, as in owners of mutexes
// Returns true if the process has had more than one controlled thread.
bool has_threads();
void set_has_threads();

void wait_for_turn(Wait::Kind kind, uint64_t until, const char *function, uint64_t object = 0);
// Sends another request, with bytes after it, and waits for the reply.
void ask(const sim::Transmit &request, const void *more, size_t size,
         sim::Transmit::Reply &reply);
// Lets the scheduler choose another thread before the call.
inline void yield_before(const char *function) {
    if (has_threads())
        wait_for_turn(Wait::YIELD, NEVER, function);
}
// streams.cc: the thread writes to a stream, for whose lock others would wait without a turn.
bool keeps_stream();
// The same after a call that releases an object: another thread may use the object, or its
// memory, before this one continues.
inline void yield_after(const char *function) {
    if (is_on() && !keeps_stream())
        yield_before(function);
}
[[noreturn]] void refuse(const char *function);

// The descriptor of a call that waits: it is open until the end of the call, as in the kernel,
// although another thread closes it meanwhile.
class OpenDescriptor {
  public:
    explicit OpenDescriptor(int fd);
    ~OpenDescriptor();
    OpenDescriptor(const OpenDescriptor &) = delete;
    OpenDescriptor &operator=(const OpenDescriptor &) = delete;
    int number() const { return copy_ < 0 ? fd_ : copy_; }
    static void close_all(); // in a child, which has no other threads

  private:
    int fd_, copy_; // copy_: -1 if no other thread can close the descriptor
};

// descriptors.cc
bool is_of_program(int fd); // which is controlled; false for the connection to rdma-sim
bool is_shared(int fd);     // others may wait for it: a socket or a pipe
bool is_random(int fd);     // /dev/random or /dev/urandom
// Returns false, with errno, if a call that waits for the events fails.
bool wait_for(int fd, short events, int flags, const char *function);

// ipc.cc
bool has_file_locks(); // the process has locked a file

// streams.cc: a stream whose calls are controlled; fclose() closes the descriptor.
FILE *open_stream(int fd, const char *mode);
void replace_standard_streams(); // of sockets and pipes

// The numbers in VirtualClock::changes of what a thread waits for; the address is the same in
// each run.
uint64_t number_of(const volatile void *object);
constexpr uint64_t SHARED_OBJECT = sim::VirtualClock::OBJECTS - 1; // all that processes share
void object_changed(uint64_t number);
inline void changed(const volatile void *object) {
    object_changed(number_of(object));
}
void descriptors_changed();

uint64_t now();
uint64_t begin_of_real_time();
// The virtual time of a moment of the clock.
uint64_t until(const timespec *time, bool is_real);
uint64_t after(const timespec *duration); // NULL: never

// A part of a program that is not controlled.
class Uncontrolled {
  public:
    Uncontrolled();
    ~Uncontrolled();
    Uncontrolled(const Uncontrolled &) = delete;
    Uncontrolled &operator=(const Uncontrolled &) = delete;
};

volatile sim::VirtualClock &shared();
void add_process(pid_t pid); // gives it a number, unless it has one

// signals.cc
unsigned handled_signals();           // of the calling thread
bool is_interrupted(unsigned before); // a handler without SA_RESTART has run since then
uint64_t next_timer();
void expire_timers();
void forget_timers(); // in a child, which inherits none
// A signal was sent to this process or to one of its threads: those that wait run its handler.
void signal_sent(int number, const char *function);
// processes.cc: gives the sender the number that the program knows.
void number_sender(siginfo_t &info);
// The same for what read() has returned, if the descriptor is that of signalfd().
void number_senders(int fd, void *data, size_t size);
// Blocks all signals if the program has a handler, and then returns true.
bool block_signals(sigset_t &before);

// Calls the program's handler of SIGSEGV, or lets the signal end the process.
void handle_crash(int number, siginfo_t *info, void *context);

// random.cc
void seed_random(uint64_t seed);
void number_thread(); // the calling one, which is not the first

// tsc.cc
void find_counter();         // before the others
void make_counter_virtual(); // if the program uses it
bool has_virtual_counter();
struct RealCounter { // while another program is started
    RealCounter();
    ~RealCounter();
    RealCounter(const RealCounter &) = delete;
    RealCounter &operator=(const RealCounter &) = delete;
};
uint64_t read_monotonic_clock();

// direct_calls.cc
void find_direct_calls(char **argv); // of the program
bool has_direct_calls();             // SIGSYS is for them
bool has_calls_of_libraries();       // SIGILL is
void catch_direct_calls();           // of the calling thread, if the program makes them

// Returns in a copy of the process for each schedule, if rdma-sim wants copies.
void fork_for_each_schedule();

void begin_thread(); // controls the calling thread
void end_thread();   // the calling thread makes no more calls

} // namespace control
