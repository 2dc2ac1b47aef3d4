// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "system.hh"

#include <cerrno>
#include <cstdio>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload.hh"

namespace {

// System calls, because programs and other preloaded libraries replace the functions.
template <class... Arguments> long call(long number, Arguments... arguments) {
    long result;
    do
        result = REAL(syscall)(number, arguments...);
    while (result < 0 && errno == EINTR);
    return result;
}

int exchange(int fd, const msghdr &sent, msghdr &received, size_t &length) {
    sim::ReplyHead head = {};
    sockaddr_un server = {.sun_family = AF_UNIX, .sun_path = ""};
    snprintf(server.sun_path, sizeof(server.sun_path), "%s", settings().socket);
    received.msg_iov[0] = {&head, sizeof(head)};
    if (call(SYS_connect, fd, &server, sizeof(server)) != 0 ||
        call(SYS_sendmsg, fd, &sent, MSG_NOSIGNAL) < 0)
        return errno;
    const long size = call(SYS_recvmsg, fd, &received, 0);
    if (size < static_cast<long>(sizeof(head)))
        return EIO;
    length = static_cast<size_t>(size) - sizeof(head);
    return head.error;
}

} // namespace

int ask_system(const void *request, size_t size, const void *more, size_t more_size,
               void *reply, size_t &length) {
    iovec out[] = {{const_cast<void *>(request), size}, {const_cast<void *>(more), more_size}};
    iovec in[] = {{}, {reply, length}};
    msghdr sent = {}, received = {};
    sent.msg_iov = out;
    received.msg_iov = in;
    sent.msg_iovlen = received.msg_iovlen = 2;
    const int before = errno;
    const int fd =
        static_cast<int>(call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const int error = fd < 0 ? errno : exchange(fd, sent, received, length);
    if (fd >= 0)
        (void)REAL(syscall)(SYS_close, fd);
    errno = before;
    return error;
}
