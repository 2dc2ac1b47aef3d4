// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.c -- the device that librpma finds for each address

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "info.h"

static bool device_of(const char *address, enum rpma_util_ibv_context_type type,
                      char device[IBV_SYSFS_NAME_MAX]) {
    struct ibv_context *context = NULL;
    if (rpma_utils_get_ibv_context(address, type, &context) != 0)
        return false;
    (void)snprintf(device, IBV_SYSFS_NAME_MAX, "%s", ibv_get_device_name(context->device));
    return true;
}

bool device_behind(const char *address, char device[IBV_SYSFS_NAME_MAX], bool *is_remote) {
    *is_remote = false;
    if (device_of(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, device))
        return true;
    *is_remote = true;
    return device_of(address, RPMA_UTIL_IBV_CONTEXT_REMOTE, device);
}

/* Writes the address in digits; false if it is neither IPv4 nor IPv6, or inet_ntop() fails. */
static bool write_address(struct address *address, const struct ifaddrs *from) {
    const struct sockaddr *any = from->ifa_addr;
    if (any == NULL || (any->sa_family != AF_INET && any->sa_family != AF_INET6))
        return false;
    (void)snprintf(address->netdev, sizeof(address->netdev), "%s", from->ifa_name);
    if (any->sa_family == AF_INET) {
        struct sockaddr_in ip4;
        memcpy(&ip4, any, sizeof(ip4));
        return inet_ntop(AF_INET, &ip4.sin_addr, address->text, sizeof(address->text)) != NULL;
    }
    struct sockaddr_in6 ip6;
    char digits[INET6_ADDRSTRLEN];
    memcpy(&ip6, any, sizeof(ip6));
    if (inet_ntop(AF_INET6, &ip6.sin6_addr, digits, sizeof(digits)) == NULL)
        return false;
    const bool scoped = IN6_IS_ADDR_LINKLOCAL(&ip6.sin6_addr);
    (void)snprintf(address->text, sizeof(address->text), "%s%s%s", digits, scoped ? "%" : "",
                   scoped ? address->netdev : "");
    return true;
}

struct addresses find_addresses(void) {
    struct addresses all = {NULL, 0};
    struct ifaddrs *list = NULL;
    size_t room = 0;
    if (getifaddrs(&list) != 0)
        return all;
    for (const struct ifaddrs *each = list; each != NULL; each = each->ifa_next)
        room++;
    all.items = calloc(room + 1, sizeof(*all.items));
    for (const struct ifaddrs *each = list; all.items != NULL && each != NULL;
         each = each->ifa_next) {
        struct address *address = &all.items[all.count];
        if (!write_address(address, each))
            continue;
        (void)device_of(address->text, RPMA_UTIL_IBV_CONTEXT_LOCAL, address->device);
        all.count++;
    }
    freeifaddrs(list);
    return all;
}

bool is_own_address(const struct addresses *all, const char *text) {
    const size_t length = strlen(text);
    for (size_t i = 0; i < all->count; i++) {
        const char *own = all->items[i].text;
        if (strncmp(own, text, length) == 0 && (own[length] == '\0' || own[length] == '%'))
            return true;
    }
    return false;
}
