// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// names.cc -- names of simulated hosts: that of host N is "hostN"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../../protocol/protocol.hh"
#include "preload.hh"

namespace {

// Recognizes "host1" to "host254".
bool is_host_name(const char *name, char (&digits)[INET_ADDRSTRLEN]) {
    unsigned number;
    char rest;
    if (settings().host == 0 || name == nullptr ||
        sscanf(name, "host%3u%c", &number, &rest) != 1 || number == 0 ||
        number > sim::MAX_HOSTS)
        return false;
    snprintf(digits, sizeof(digits), "10.77.0.%u", number);
    return true;
}

// Returns the number of the host that has the address, or 0.
unsigned host_of(const sockaddr *address, socklen_t length) {
    char text[INET6_ADDRSTRLEN] = "";
    unsigned number = 0;
    char rest;
    if (settings().host == 0 || address == nullptr)
        return 0;
    if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in))
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in *>(address)->sin_addr, text,
                  sizeof(text));
    else if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6))
        inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr, text,
                  sizeof(text));
    const bool is_found = sscanf(text, "10.77.0.%u%c", &number, &rest) == 1 ||
                          sscanf(text, "fd77::%x%c", &number, &rest) == 1;
    return is_found && number <= sim::MAX_HOSTS ? number : 0;
}

} // namespace

EXPORTED int getaddrinfo(const char *name, const char *service, const addrinfo *hints,
                         addrinfo **found) {
    char digits[INET_ADDRSTRLEN];
    return REAL(getaddrinfo)(is_host_name(name, digits) ? digits : name, service, hints, found);
}
EXPORTED int getnameinfo(const sockaddr *address, socklen_t length, char *name, socklen_t room,
                         char *service, socklen_t service_room, int flags) {
    const bool is_wanted = name != nullptr && room > 0 && (flags & NI_NUMERICHOST) == 0;
    const unsigned host = is_wanted ? host_of(address, length) : 0;
    if (host == 0)
        return REAL(getnameinfo)(address, length, name, room, service, service_room, flags);
    if (static_cast<socklen_t>(snprintf(name, room, "host%u", host)) >= room)
        return EAI_OVERFLOW;
    return service == nullptr || service_room == 0
               ? 0
               : REAL(getnameinfo)(address, length, nullptr, 0, service, service_room,
                                   flags & ~NI_NAMEREQD);
}

#define RESOLVES(type, function, parameters, ...)                             \
    EXPORTED type function parameters {                                       \
        char digits[INET_ADDRSTRLEN];                                         \
        const char *const found = is_host_name(name, digits) ? digits : name; \
        return REAL(function)(__VA_ARGS__);                                   \
    }
RESOLVES(hostent *, gethostbyname, (const char *name), found)
RESOLVES(hostent *, gethostbyname2, (const char *name, int family), found, family)
RESOLVES(int, gethostbyname_r,
         (const char *name, hostent *entry, char *room, size_t size, hostent **result,
          int *error),
         found, entry, room, size, result, error)
RESOLVES(int, gethostbyname2_r,
         (const char *name, int family, hostent *entry, char *room, size_t size,
          hostent **result, int *error),
         found, family, entry, room, size, result, error)

EXPORTED int gethostname(char *name, size_t size) noexcept {
    if (settings().host == 0)
        return REAL(gethostname)(name, size);
    const int length = snprintf(name, size, "host%u", settings().host);
    if (static_cast<size_t>(length) < size)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}
EXPORTED int uname(utsname *name) noexcept {
    const int result = REAL(uname)(name);
    if (result == 0 && settings().host != 0)
        snprintf(name->nodename, sizeof(name->nodename), "host%u", settings().host);
    return result;
}
