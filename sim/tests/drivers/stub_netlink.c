// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_netlink.c -- the kernel's side of NETLINK_RDMA (linux core/nldev.c): libibverbs finds
// the device, and the number of its driver, in these messages.
//
// The program gets one end of a pair of datagram sockets, and the stub writes the response to
// the other one.

#include "stub.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_DESCRIPTORS = 1024, MAX_RESPONSE = 4096 };

static int other_end[MAX_DESCRIPTORS]; // 0: none

struct response {
    char bytes[MAX_RESPONSE];
    size_t begin, used; // of the last message; of all
};

static void append(struct response *to, const void *data, size_t size) {
    memcpy(to->bytes + to->used, data, size);
    to->used += NLMSG_ALIGN(size);
    const uint32_t length = (uint32_t)(to->used - to->begin);
    memcpy(to->bytes + to->begin, &length, sizeof(length)); // nlmsg_len
}

static void begin_response(struct response *to, const struct nlmsghdr *request, uint16_t type) {
    to->begin = to->used;
    append(
        to,
        &(struct nlmsghdr){.nlmsg_type = type,
                           .nlmsg_flags = request->nlmsg_flags & NLM_F_DUMP ? NLM_F_MULTI : 0,
                           .nlmsg_seq = request->nlmsg_seq,
                           .nlmsg_pid = request->nlmsg_pid},
        sizeof(struct nlmsghdr));
}

static void put(struct response *to, uint16_t type, const void *data, size_t size) {
    append(to, &(struct nlattr){(uint16_t)(NLA_HDRLEN + size), type}, sizeof(struct nlattr));
    append(to, data, size);
}

static void put_u32(struct response *to, uint16_t type, uint32_t value) {
    put(to, type, &value, sizeof(value));
}

static void put_u64(struct response *to, uint16_t type, uint64_t value) {
    put(to, type, &value, sizeof(value));
}

static void describe(struct response *to, const struct stub_driver *driver) {
    const uint8_t node_type = driver->is_iwarp ? 4 : 1; // RDMA_NODE_RNIC, RDMA_NODE_IB_CA
    put_u32(to, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
    put(to, RDMA_NLDEV_ATTR_DEV_NAME, STUB_DEVICE, sizeof(STUB_DEVICE));
    put_u32(to, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
    put_u64(to, RDMA_NLDEV_ATTR_NODE_GUID, STUB_GUID);
    put(to, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, &node_type, sizeof(node_type));
}

// The file that the stub opens for it is /dev/null, 1:3.
static void describe_file(struct response *to, const struct stub_driver *driver) {
    put_u64(to, RDMA_NLDEV_ATTR_CHARDEV, 1 << 8 | 3);
    put_u64(to, RDMA_NLDEV_ATTR_CHARDEV_ABI, driver->abi);
    put(to, RDMA_NLDEV_ATTR_CHARDEV_NAME, "uverbs0", sizeof("uverbs0"));
    put_u32(to, RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, driver->id);
}

static bool is_about_uverbs(const struct nlmsghdr *request) {
    const char *const end = (const char *)request + request->nlmsg_len;
    const char *at = NLMSG_DATA(request);
    while (at + NLA_HDRLEN <= end) {
        const struct nlattr *const attribute = (const void *)at;
        if (attribute->nla_type == RDMA_NLDEV_ATTR_CHARDEV_TYPE)
            return strcmp(at + NLA_HDRLEN, "uverbs") == 0;
        at += NLA_ALIGN(attribute->nla_len);
    }
    return false;
}

// A request with another command fails: the program then uses sysfs.
static void respond(struct response *to, const struct nlmsghdr *request,
                    const struct stub_driver *driver) {
    const unsigned command = RDMA_NL_GET_OP(request->nlmsg_type);
    const struct {
        int error;
        struct nlmsghdr of;
    } refused = {-EINVAL, *request}, done = {0};
    if (command == RDMA_NLDEV_CMD_GET) {
        begin_response(to, request, request->nlmsg_type);
        describe(to, driver);
        begin_response(to, request, NLMSG_DONE);
        append(to, &done.error, sizeof(done.error));
    } else if (command == RDMA_NLDEV_CMD_GET_CHARDEV && is_about_uverbs(request)) {
        begin_response(to, request, request->nlmsg_type);
        describe_file(to, driver);
    } else {
        begin_response(to, request, NLMSG_ERROR);
        append(to, &refused, sizeof(refused));
    }
}

// ---- functions of the C library ------------------------------------------------------------

static bool is_netlink(int fd) {
    return fd >= 0 && fd < MAX_DESCRIPTORS && other_end[fd] > 0;
}

static void fill_address(void *to, socklen_t *length) {
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    memcpy(to, &address, sizeof(address));
    *length = sizeof(address);
}

int socket(int domain, int type, int protocol) {
    int ends[2];
    if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
        return STUB_NEXT(socket)(domain, type, protocol);
    if (socketpair(AF_UNIX, SOCK_DGRAM | (type & SOCK_CLOEXEC), 0, ends) != 0)
        return -1;
    if (ends[0] < MAX_DESCRIPTORS)
        other_end[ends[0]] = ends[1];
    return ends[0];
}

void stub_close_netlink(int fd) {
    if (!is_netlink(fd))
        return;
    STUB_NEXT(close)(other_end[fd]);
    other_end[fd] = 0;
}

int bind(int fd, const struct sockaddr *address, socklen_t length) {
    return is_netlink(fd) ? 0 : STUB_NEXT(bind)(fd, address, length);
}

int getsockname(int fd, struct sockaddr *restrict address, socklen_t *restrict length) {
    if (!is_netlink(fd))
        return STUB_NEXT(getsockname)(fd, address, length);
    fill_address(address, length);
    return 0;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    struct response response = {.used = 0};
    if (!is_netlink(fd))
        return STUB_NEXT(sendmsg)(fd, message, flags);
    const struct nlmsghdr *const request = message->msg_iov[0].iov_base; // libnl sends one part
    respond(&response, request, stub_driver());
    if (write(other_end[fd], response.bytes, response.used) < 0)
        return -1;
    return (ssize_t)message->msg_iov[0].iov_len;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    const ssize_t got = STUB_NEXT(recvmsg)(fd, message, flags);
    if (got >= 0 && is_netlink(fd))
        fill_address(message->msg_name, &message->msg_namelen);
    return got;
}
