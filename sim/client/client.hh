// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// client.hh -- the connection of a process to the simulated fabric. libibverbs.so.1 exports
// these functions to librdmacm.so.1 and to the preloaded library.

#pragma once

#include "../protocol/ring.hh"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <pthread.h>

extern "C" {

// Sends a request of protocol.hh, with `more` bytes after it, and copies at most `reply_size`
// bytes of the reply, without its ReplyHead. Returns an error number; then errno is unchanged.
// `length` is the number of bytes copied; `fd` is the descriptor that was passed, or -1.
// Connects at the first call; ENODEV: there is no fabric.
struct rdma_sim_message {
    const void *request;
    size_t request_size;
    const void *more;
    size_t more_size;
    void *reply;
    size_t reply_size;
    size_t length;
    int fd;
};
int rdma_sim_call(struct rdma_sim_message *message);
// Sends a post of `units` to the send queue of the QP without a reply. Returns false, and sends
// nothing, if the fabric might refuse it.
bool rdma_sim_post(const struct rdma_sim_message *message, uint32_t qp, uint32_t units);

// Waits until a channel is readable and takes its first event, with at most `size` bytes of
// data. Returns 0, or -1 with errno as read() sets it: EAGAIN if the descriptor is
// non-blocking. `function`: the one that waits.
int rdma_sim_take_event(int fd, uint32_t channel, sim::TakeEvent::Reply *event, void *data,
                        size_t size, const char *function);

// For a scheduler that runs one thread at a time: each thread has a connection, which
// rdma_sim_disconnect_thread() closes.
void rdma_sim_connect_threads(void);
void rdma_sim_disconnect_thread(void);
int rdma_sim_connection(void); // of the thread

// For a scheduler: where the bytes of a socket of TCP or UDP go, which are sent to `address`,
// or to its peer if this is NULL. Returns false if the receiver is on no other host.
struct rdma_sim_route {
    unsigned from, to; // numbers of hosts
    bool is_stream;
    unsigned char address[28]; // on the loopback interface
    unsigned address_size;     // 0: the socket is connected
};
bool rdma_sim_find_route(int fd, const struct sockaddr *address, unsigned length,
                         struct rdma_sim_route *route);

// Called before a poll of a CQ, which sends no request. A scheduler replaces it.
void rdma_sim_polls(const struct sim::Ring *ring);

// A function of the same process that executes requests, instead of a connection. It returns an
// error number. `place` returns the number of its fabric, which never repeats, and in the last
// 24 bits the program and the host of the calling thread.
using rdma_sim_handler = int(struct rdma_sim_message *message);
void rdma_sim_set_handler(rdma_sim_handler *handler, uint64_t (*place)(void));
// Sets a function that is called before a wait for an event of the descriptor `fd`, before a
// poll of a CQ, with its ring, and before a wait of a destruction for the acknowledgement of
// events, with neither of them; NULL: none. `function`: the one that waits or polls.
using rdma_sim_waiter = void(int fd, const struct sim::Ring *ring, const char *function);
void rdma_sim_set_waiter(rdma_sim_waiter *waiter);
// Waits until another thread acknowledges an event.
void rdma_sim_wait_for_ack(pthread_cond_t *ack, pthread_mutex_t *mutex, const char *function);
// Counts the locks of this process that the calling thread holds while it calls, and returns
// their number. A thread that holds one must not wait for another thread.
int rdma_sim_hold(int change);
// Devices of one place are not those of another one. 0: the process is on one host.
uint64_t rdma_sim_place(void);
}

namespace sim {

inline bool is_same_fabric(uint64_t place, uint64_t other) {
    return place >> 24 == other >> 24;
}

template <class T> int call(const T &request, typename T::Reply &reply, int *fd = nullptr) {
    rdma_sim_message message{&request, sizeof(request), nullptr, 0,
                             &reply,   sizeof(reply),   0,       -1};
    const int error = rdma_sim_call(&message);
    if (fd)
        *fd = message.fd;
    return error;
}

// Frees memory of a program, after it is overwritten: otherwise a program that reads it once
// more, which allocators make an error only later, finds what it expects.
inline void discard(void *memory) {
    if (memory)
        memset(memory, 0x5a, malloc_usable_size(memory));
    asm volatile("" : : "r"(memory) : "memory"); // no compiler omits the writes
    free(memory);
}

} // namespace sim
