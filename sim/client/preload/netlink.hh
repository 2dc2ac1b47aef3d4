// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// netlink.hh -- netlink sockets whose requests this library executes in the process
//
// A protocol is a function and a row of PROTOCOLS in netlink.cc. The sockets of the other
// protocols are those of the kernel.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace netlink {

// The messages that respond to one request. begin() and put() build a message; no call ends
// it, because each of them updates its length.
class Response {
  public:
    Response(int fd, uint32_t port, const nlmsghdr &request);
    ~Response() { free(bytes_); }
    Response(const Response &) = delete;
    Response &operator=(const Response &) = delete;

    // True if the request asks for all objects. Then each message gets NLM_F_MULTI.
    bool is_dump() const { return is_dump_; }
    // Begins a message with the header of its protocol, such as an ifinfomsg, or with none if
    // `size` is 0.
    void begin(unsigned type, const void *header, size_t size);
    // Appends an attribute to the last message.
    void put(unsigned type, const void *data, size_t size);
    template <class T> void put(unsigned type, const T &value) {
        put(type, &value, sizeof(value));
    }
    void put_string(unsigned type, const char *text) { put(type, text, strlen(text) + 1); }
    // Begins an attribute that contains the next ones until unnest(), which takes its result.
    size_t nest(unsigned type);
    void unnest(size_t start);
    // Removes the last message, which is incomplete.
    void cancel() { used_ = begin_; }

    // Called by netlink.cc after the protocol: appends NLMSG_DONE, or NLMSG_ERROR if the
    // request failed or asks for an acknowledgement. `error` is an error number or 0. Returns
    // an error number if the socket has no room.
    int finish(int error);

  private:
    void begin(unsigned type, unsigned flags);
    void append(const void *data, size_t size);
    void send(size_t size);
    static constexpr size_t MAX_MESSAGE = 32768;
    // NLMSG_GOODSIZE of the kernel: the datagram for a reader that has not received a larger
    // one.
    static constexpr size_t MAX_DATAGRAM = 3776;

    const int fd_;
    const uint32_t port_;
    const nlmsghdr &request_;
    const bool is_dump_;
    size_t begin_ = 0, used_ = 0; // of the last message; of all messages that are not sent
    int error_ = 0;
    char *const bytes_;
};

// Executes a request, whose nlmsg_len is valid. Returns an error number or 0.
using Respond = int(const nlmsghdr &request, Response &response);

// Returns the header of the protocol that follows the header of the request, or NULL if the
// request is too short for it.
template <class T> const T *header_of(const nlmsghdr &request) {
    return request.nlmsg_len < NLMSG_LENGTH(sizeof(T))
               ? nullptr
               : reinterpret_cast<const T *>(&request + 1);
}

// Returns the first attribute with this type and at least `least` bytes after a header of
// `size` bytes, or NULL.
const nlattr *find_attribute(const nlmsghdr &request, size_t size, unsigned type,
                             size_t least = 0);
inline const char *data_of(const nlattr &attribute) {
    return reinterpret_cast<const char *>(&attribute) + NLA_HDRLEN;
}
inline size_t size_of(const nlattr &attribute) {
    return attribute.nla_len - size_t{NLA_HDRLEN};
}
// Copies the value of an attribute; false: the request has none that is large enough.
template <class T> bool get(const nlmsghdr &request, size_t size, unsigned type, T &value) {
    const nlattr *const found = find_attribute(request, size, type, sizeof(value));
    if (found != nullptr)
        memcpy(&value, data_of(*found), sizeof(value));
    return found != nullptr;
}

// For network.cc, which replaces the functions of sockets. They return false for a socket of
// another kind; otherwise `result` is that of the function, with errno.
bool is_socket(int fd);
// bind()
bool set_port(int fd, const sockaddr *address, socklen_t length, int &result);
// sendmsg(), to the address `to`
bool execute(int fd, const iovec *parts, size_t count, const void *to, socklen_t length,
             ssize_t &result);
// getsockname(), or getpeername() if `is_peer`
bool name_of(int fd, sockaddr *address, socklen_t *length, bool is_peer, int &result);
// Replaces the sender of a received message by the kernel if it is a socket of this kind.
// `room`: the bytes at `address`.
void replace_sender(void *address, socklen_t room, socklen_t &length);

// ---- protocols ----
Respond respond_route;
Respond respond_rdma;

} // namespace netlink
