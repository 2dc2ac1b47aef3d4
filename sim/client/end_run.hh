// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// end_run.hh -- ends the run from inside a program

#pragma once

#include "../protocol/protocol.hh"

#include <cstdio>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace sim {

// Lets rdma-sim print the line and end with EXIT_FAILED: a shell would ignore the status of its
// child, or redirect its output. The process is killed meanwhile. A program that has joined the
// fabric ends alone. A child of vfork() may call this.
[[noreturn]] inline void end_run(const char *socket_path, EndRun &request) {
    sockaddr_un address = {};
    ReplyHead reply;
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    for (char *at = request.line; *at != '\0'; at++)
        if (static_cast<unsigned char>(*at) < ' ' || *at == 0x7f)
            *at = '?';
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0 &&
        send(fd, &request, sizeof(request), MSG_NOSIGNAL) > 0)
        (void)!recv(fd, &reply, sizeof(reply), 0);
    dprintf(STDERR_FILENO, "rdma-sim: %s\n", request.line);
    _exit(EXIT_FAILED);
}

} // namespace sim
