// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// netlink_rdma.cc -- NETLINK_RDMA: rdma-sim executes the requests, because it has the objects
// of all processes

#include "netlink.hh"

#include <cerrno>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.hh"
#include "system.hh"

namespace netlink {

namespace {

bool has_admin_capability() {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    return syscall(SYS_capget, &header, data) == 0 &&
           (data[0].effective & (1U << CAP_NET_ADMIN)) != 0;
}

struct Reply {
    sim::Netlink::Reply head;
    char messages[sim::MAX_MESSAGE];
};

void copy_messages(const Reply &reply, size_t length, Response &response) {
    nlmsghdr head;
    for (size_t at = 0; at + sizeof(head) <= length; at += NLMSG_ALIGN(head.nlmsg_len)) {
        memcpy(&head, reply.messages + at, sizeof(head));
        response.begin(head.nlmsg_type, reply.messages + at + sizeof(head),
                       head.nlmsg_len - sizeof(head));
    }
}

} // namespace

int respond_rdma(const nlmsghdr &request, Response &response) {
    sim::Netlink asked = {};
    asked.host = settings().host;
    asked.is_admin = has_admin_capability();
    auto *const reply = static_cast<Reply *>(malloc(sizeof(Reply)));
    if (reply == nullptr)
        return ENOBUFS;
    int error;
    do {
        size_t length = sizeof(*reply);
        error = ask_system(&asked, sizeof(asked), &request, request.nlmsg_len, reply, length);
        if (error == 0)
            copy_messages(*reply, length - sizeof(reply->head), response);
        asked.start = reply->head.next;
    } while (error == 0 && asked.start != 0);
    free(reply);
    return error;
}

} // namespace netlink
