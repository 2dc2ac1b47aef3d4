// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// text.cc -- texts for log lines

#include "verbs/text.hh"

#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>

#include "base/error_text.hh"

namespace rpma {

void Text::add(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vadd(format, values);
    va_end(values);
}

void Text::vadd(const char *format, va_list values) {
    length = static_cast<std::size_t>(
        vformat(chars + length, sizeof(chars) - length, format, values) - chars);
}

bool Text::add_member(const char *member) {
    static constexpr char ELLIPSIS[] = " ...";
    const bool fits = length + 1 + std::strlen(member) + sizeof(ELLIPSIS) <= sizeof(chars);
    add("%s%s", fits ? " " : "", fits ? member : ELLIPSIS);
    return fits;
}

Text device_text(const ibv_context *context, const ibv_context &expected) {
    Text text;
    if (context == nullptr)
        text.add("no RDMA device");
    else
        text.add("%s%s", context->device == expected.device ? "another context of " : "",
                 ibv_get_device_name(context->device));
    return text;
}

Text address_text(const sockaddr *address) {
    Text text;
    if (address == nullptr) {
        text.add("any");
        return text;
    }
    const socklen_t size =
        address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    // getnameinfo() leaves these unchanged for an unknown family (AF_IB).
    char host[NI_MAXHOST] = "?", service[NI_MAXSERV] = "?";
    (void)getnameinfo(address, size, host, sizeof(host), service, sizeof(service),
                      NI_NUMERICHOST | NI_NUMERICSERV);
    text.add(address->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, service);
    return text;
}

namespace {

struct Flag {
    unsigned bit;
    const char *name;
};

template <std::size_t N> Text flags_text(unsigned flags, const Flag (&names)[N]) {
    Text text;
    for (const Flag &flag : names) {
        if ((flags & flag.bit) == 0)
            continue;
        if (text.length > 0)
            text.append("|");
        text.append(flag.name);
    }
    if (text.length == 0)
        text.append("0");
    return text;
}

} // namespace

Text access_text(unsigned access) {
    // The flags of flushes are numbers, because older headers lack the names.
    static constexpr Flag names[] = {
        {IBV_ACCESS_LOCAL_WRITE, "IBV_ACCESS_LOCAL_WRITE"},
        {IBV_ACCESS_REMOTE_WRITE, "IBV_ACCESS_REMOTE_WRITE"},
        {IBV_ACCESS_REMOTE_READ, "IBV_ACCESS_REMOTE_READ"},
        {IBV_ACCESS_REMOTE_ATOMIC, "IBV_ACCESS_REMOTE_ATOMIC"},
        {IBV_ACCESS_ON_DEMAND, "IBV_ACCESS_ON_DEMAND"},
        {1 << 8, "IBV_ACCESS_FLUSH_GLOBAL"},
        {1 << 9, "IBV_ACCESS_FLUSH_PERSISTENT"},
    };
    return flags_text(access, names);
}

Text send_flags_text(unsigned flags) {
    static constexpr Flag names[] = {
        {IBV_SEND_FENCE, "IBV_SEND_FENCE"},
        {IBV_SEND_SIGNALED, "IBV_SEND_SIGNALED"},
        {IBV_SEND_SOLICITED, "IBV_SEND_SOLICITED"},
        {IBV_SEND_INLINE, "IBV_SEND_INLINE"},
    };
    return flags_text(flags, names);
}

const char *opcode_text(int opcode) {
    switch (opcode) {
    case IBV_WR_RDMA_READ:
        return "IBV_WR_RDMA_READ";
    case IBV_WR_RDMA_WRITE:
        return "IBV_WR_RDMA_WRITE";
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return "IBV_WR_RDMA_WRITE_WITH_IMM";
    case IBV_WR_SEND:
        return "IBV_WR_SEND";
    case IBV_WR_SEND_WITH_IMM:
        return "IBV_WR_SEND_WITH_IMM";
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return "IBV_WR_ATOMIC_FETCH_AND_ADD";
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return "IBV_WR_ATOMIC_CMP_AND_SWP";
    case 14: // older headers lack the names
        return "IBV_WR_FLUSH";
    default: // 15: the library posts no other opcode
        return "IBV_WR_ATOMIC_WRITE";
    }
}

} // namespace rpma
