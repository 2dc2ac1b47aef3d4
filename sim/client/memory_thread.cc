// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "memory_thread.hh"

#include "../protocol/mailbox.hh"
#include "../protocol/mappings.hh"
#include "own_descriptors.hh"

#include <csignal>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

namespace {

using namespace sim;

int through[2]; // a pipe

// System calls report a bad address without a signal. Those for the memory of another process
// move all ranges at once, but a sandbox may forbid them, also for the own memory.
size_t access_memory(Mailbox &box, size_t bytes) {
    const bool is_write = box.kind == Mailbox::WRITE;
    const iovec own = {box.data, bytes};
    const ssize_t done = is_write
                             ? process_vm_writev(getpid(), &own, 1, box.ranges, box.count, 0)
                             : process_vm_readv(getpid(), &own, 1, box.ranges, box.count, 0);
    if (done >= 0 || errno == EFAULT)
        return done > 0 ? static_cast<size_t>(done) : 0;
    size_t moved = 0;
    for (uint32_t i = 0; i < box.count; i++) {
        char *at = static_cast<char *>(box.ranges[i].iov_base);
        for (char *const end = at + box.ranges[i].iov_len; at < end;) {
            const size_t length = end - at < 4096 ? static_cast<size_t>(end - at) : 4096;
            const ssize_t put = write(through[1], is_write ? box.data + moved : at, length);
            const ssize_t got = put > 0 ? read(through[0], is_write ? at : box.data + moved,
                                               static_cast<size_t>(put))
                                        : -1;
            if (got < 0 && put > 0)
                (void)!read(through[0], box.data + moved, static_cast<size_t>(put));
            if (got <= 0)
                return moved;
            at += got;
            moved += static_cast<size_t>(got);
        }
    }
    return moved;
}

int check_memory(const iovec &range, bool is_written) {
    const auto begin = reinterpret_cast<uint64_t>(range.iov_base);
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0)
        return errno;
    const int error = check_mappings(maps, begin, begin + range.iov_len, is_written);
    close(maps);
    return error;
}

void execute(Mailbox &box) {
    if (box.kind >= Mailbox::CHECK) {
        box.error = check_memory(box.ranges[0], box.kind == Mailbox::CHECK_WRITABLE);
        return;
    }
    size_t bytes = 0;
    for (uint32_t i = 0; i < box.count; i++)
        bytes += box.ranges[i].iov_len;
    box.done = access_memory(box, bytes);
}

void *serve(void *argument) {
    Mailbox &box = *static_cast<Mailbox *>(argument);
    uint32_t state;
    while ((state = __atomic_load_n(&box.state, __ATOMIC_ACQUIRE)) != Mailbox::CLOSED) {
        if (state != Mailbox::REQUESTED) {
            futex(&box.state, FUTEX_WAIT, state, nullptr);
            continue;
        }
        if (!__atomic_compare_exchange_n(&box.state, &state, Mailbox::TAKEN, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        execute(box);
        state = Mailbox::TAKEN;
        if (__atomic_compare_exchange_n(&box.state, &state, Mailbox::DONE, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            futex(&box.state, FUTEX_WAKE, 1, nullptr);
    }
    munmap(&box, sizeof(box));
    close_kept(through[0]);
    close_kept(through[1]);
    return nullptr;
}

} // namespace

int rdma_sim_start_memory_thread(int fd) {
    if (pipe2(through, O_CLOEXEC))
        return errno;
    for (int &each : through)
        each = kept(each);
    void *const mapped =
        mmap(nullptr, sizeof(Mailbox), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int error = mapped == MAP_FAILED ? errno : 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    if (!error)
        error = pthread_create(&thread, nullptr, serve, mapped);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!error)
        return pthread_detach(thread);
    if (mapped != MAP_FAILED)
        munmap(mapped, sizeof(Mailbox));
    close_kept(through[0]);
    close_kept(through[1]);
    return error;
}
