// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// names.c -- addresses by number, and getaddrinfo() for librpma.so.0: names with any
// number of addresses.

#include "internal.h"

#include <infiniband/ib.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

socklen_t fake_number_address(struct sockaddr_storage *addr, int number) {
    memset(addr, 0, sizeof(*addr));
    if (number >= FAKE_FIRST_ROUTE) {
        struct sockaddr_ib *ib = (struct sockaddr_ib *)addr;
        ib->sib_family = AF_IB;
        ib->sib_addr.sib_raw[15] = (unsigned char)number;
        return sizeof(*ib);
    }
    if (number % 2 == 0) {
        struct sockaddr_in *in = (struct sockaddr_in *)addr;
        in->sin_family = AF_INET;
        in->sin_addr.s_addr = htonl(0x7f000001u + (unsigned)number);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
    in6->sin6_family = AF_INET6;
    in6->sin6_addr.s6_addr[15] = (unsigned char)(1 + number);
    return sizeof(*in6);
}

bool fake_addr_is(const struct sockaddr *addr, int number) {
    struct sockaddr_storage wanted;
    const socklen_t len = fake_number_address(&wanted, number);
    if (addr && wanted.ss_family != AF_IB)
        sim_set_port((struct sockaddr *)&wanted, sim_port(addr));
    return addr && memcmp(addr, &wanted, len) == 0;
}

void fake_note_name(struct fake_call *call, const char *node, const char *service, int flags) {
    snprintf(call->getaddrinfo.node, sizeof(call->getaddrinfo.node), "%s", node ? node : "");
    snprintf(call->getaddrinfo.service, sizeof(call->getaddrinfo.service), "%s",
             service ? service : "");
    call->getaddrinfo.flags = flags;
}

struct names {
    struct fake_object object;
    struct addrinfo info[FAKE_MAX_ADDRESSES];
    struct sockaddr_storage addr[FAKE_MAX_ADDRESSES];
};

// Appends the address of that number, or the numeric one, if the hints permit its family.
static void add_address(struct names *names, int *count, const struct addrinfo *hints,
                        const struct addrinfo *numeric, const char *service, int number) {
    struct addrinfo *info = &names->info[*count];
    struct sockaddr_storage *addr = &names->addr[*count];
    info->ai_addrlen = fake_number_address(addr, number);
    sim_set_port((struct sockaddr *)addr, htons((uint16_t)(service ? atoi(service) : 0)));
    if (numeric)
        memcpy(addr, numeric->ai_addr, info->ai_addrlen = numeric->ai_addrlen);
    if (hints->ai_family != AF_UNSPEC && hints->ai_family != addr->ss_family)
        return;
    info->ai_flags = hints->ai_flags;
    info->ai_family = addr->ss_family;
    info->ai_socktype = hints->ai_socktype;
    info->ai_protocol = hints->ai_protocol;
    info->ai_addr = (struct sockaddr *)addr;
    if ((*count)++ > 0)
        info[-1].ai_next = info;
}

int fake_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                     struct addrinfo **res) {
    FAKE_CALL_OF("getaddrinfo", NULL);
    call->libc = true;
    fake_note_name(call, node, service, hints->ai_flags);
    call->getaddrinfo.family = hints->ai_family;
    call->getaddrinfo.socktype = hints->ai_socktype;
    call->getaddrinfo.protocol = hints->ai_protocol;
    fake_touch(hints, sizeof(*hints));
    if (fake_answer(call, 0) != 0)
        return EAI_SYSTEM;
    if (fake_device()->gai_error)
        return fake_device()->gai_error;
    struct addrinfo *numeric = NULL;
    if (hints->ai_flags & AI_NUMERICHOST) {
        const int result = getaddrinfo(node, service, hints, &numeric);
        if (result != 0)
            return result;
    }
    struct names *made = FAKE_NEW(FAKE_NAMES, struct names, info);
    int count = 0;
    for (int i = 0; i < (numeric ? 1 : fake_device()->addresses); i++)
        add_address(made, &count, hints, numeric, service, i);
    if (numeric)
        freeaddrinfo(numeric);
    if (count == 0) {
        fake_destroy(made);
        return EAI_ADDRFAMILY;
    }
    *res = made->info;
    return 0;
}

void fake_freeaddrinfo(struct addrinfo *res) {
    FAKE_LOCKED_FOR("freeaddrinfo");
    struct fake_object *found = fake_find(FAKE_NAMES, res);
    if (found)
        fake_destroy(found);
}
