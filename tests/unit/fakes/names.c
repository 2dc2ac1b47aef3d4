// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// names.c -- getaddrinfo() as librpma.so.0 sees it: names with any number of addresses.

#include "internal.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

void fake_number_address(struct sockaddr_storage *addr, socklen_t *len, int number) {
    memset(addr, 0, sizeof(*addr));
    if (number >= FAKE_FIRST_ROUTE) {
        struct sockaddr_ib *ib = (struct sockaddr_ib *)addr;
        ib->sib_family = AF_IB;
        ib->sib_addr.sib_raw[15] = (unsigned char)number;
        *len = sizeof(*ib);
    } else if (number % 2 == 0) {
        struct sockaddr_in *in = (struct sockaddr_in *)addr;
        in->sin_family = AF_INET;
        in->sin_addr.s_addr = htonl(0x7f000001u + (unsigned)number);
        *len = sizeof(*in);
    } else {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
        in6->sin6_family = AF_INET6;
        in6->sin6_addr.s6_addr[15] = (unsigned char)(1 + number);
        *len = sizeof(*in6);
    }
}

bool fake_addr_is(const struct sockaddr *addr, int number) {
    struct sockaddr_storage wanted;
    socklen_t len;
    fake_number_address(&wanted, &len, number);
    return addr && memcmp(addr, &wanted, len) == 0;
}

struct fake_names {
    struct fake_object object;
    struct addrinfo info[FAKE_MOST_ADDRESSES];
    struct sockaddr_storage addr[FAKE_MOST_ADDRESSES];
};

int fake_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                     struct addrinfo **res) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("getaddrinfo", NULL);
    call->libc = true;
    snprintf(call->getaddrinfo.node, sizeof(call->getaddrinfo.node), "%s", node ? node : "");
    snprintf(call->getaddrinfo.service, sizeof(call->getaddrinfo.service), "%s",
             service ? service : "");
    call->getaddrinfo.flags = hints->ai_flags;
    call->getaddrinfo.family = hints->ai_family;
    call->getaddrinfo.socktype = hints->ai_socktype;
    call->getaddrinfo.protocol = hints->ai_protocol;
    fake_touch(hints, sizeof(*hints));
    if (call->failed) {
        errno = call->error;
        return EAI_SYSTEM;
    }
    if (fake_device()->gai_error)
        return fake_device()->gai_error;
    struct addrinfo *numeric = NULL;
    if (hints->ai_flags & AI_NUMERICHOST) {
        const int result = getaddrinfo(node, service, hints, &numeric);
        if (result != 0)
            return result;
    }
    struct fake_names *made =
        fake_create(FAKE_NAMES, sizeof(*made), offsetof(struct fake_names, info));
    int count = 0;
    for (int i = 0; i < (numeric ? 1 : fake_device()->addresses); i++) {
        struct addrinfo *info = &made->info[count];
        struct sockaddr_storage *addr = &made->addr[count];
        fake_number_address(addr, &info->ai_addrlen, i);
        if (numeric)
            memcpy(addr, numeric->ai_addr, info->ai_addrlen = numeric->ai_addrlen);
        if (hints->ai_family != AF_UNSPEC && hints->ai_family != addr->ss_family)
            continue;
        info->ai_flags = hints->ai_flags;
        info->ai_family = addr->ss_family;
        info->ai_socktype = hints->ai_socktype;
        info->ai_protocol = hints->ai_protocol;
        info->ai_addr = (struct sockaddr *)addr;
        if (count++ > 0)
            info[-1].ai_next = info;
    }
    if (numeric)
        freeaddrinfo(numeric);
    if (count == 0) {
        fake_destroy(&made->object);
        return EAI_ADDRFAMILY;
    }
    *res = made->info;
    return 0;
}

void fake_freeaddrinfo(struct addrinfo *res) {
    FAKE_LOCKED;
    struct fake_object *found = fake_find(FAKE_NAMES, res, "freeaddrinfo");
    if (found)
        fake_destroy(found);
}
