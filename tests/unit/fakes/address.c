// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.c -- the address lists of librdmacm.

#include "internal.h"

#include <errno.h>
#include <string.h>

struct addresses {
    struct fake_object object;
    struct rdma_addrinfo info[FAKE_MAX_ADDRESSES];
    struct sockaddr_storage source[FAKE_MAX_ADDRESSES], destination[FAKE_MAX_ADDRESSES];
};

static int number_of(const struct sockaddr *addr) {
    int number = 0;
    while (!fake_addr_is(addr, number))
        number++;
    return number;
}

// As in rdma-core 44, librdmacm/addrinfo.c: rdma_getaddrinfo() returns the first address that
// getaddrinfo() finds, as the source for a passive side and as the destination for an active
// one. Without a name it copies the destination of the hints. Addresses of IBACM precede it in
// the list; they are GIDs, which the family of the hints requests (acm.c: ucma_ib_resolve(),
// ucma_ib_set_addr(), ucma_ib_set_connect()).
int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **res) {
    FAKE_CALL(NULL);
    fake_note_name(call, node, service, hints->ai_flags);
    call->getaddrinfo.qp_type = hints->ai_qp_type;
    call->getaddrinfo.port_space = hints->ai_port_space;
    fake_touch(hints, sizeof(*hints));
    if (call->failed)
        return fake_answer(call, EINVAL);
    if (node && fake_device()->gai_error)
        return fake_device()->gai_error;
    if (!node && hints->ai_family != hints->ai_dst_addr->sa_family)
        fake_misuse("family %d, and a destination of family %d", hints->ai_family,
                    hints->ai_dst_addr->sa_family);
    struct addresses *made = FAKE_NEW(FAKE_ADDRINFO, struct addresses, info);
    const bool passive = hints->ai_flags & RAI_PASSIVE;
    const int last = passive ? 0 : fake_device()->routes;
    for (int i = 0; i <= last; i++) {
        struct rdma_addrinfo *info = &made->info[i];
        struct sockaddr_storage *addr = passive ? &made->source[i] : &made->destination[i];
        struct sockaddr *source = (struct sockaddr *)&made->source[i];
        socklen_t *len = passive ? &info->ai_src_len : &info->ai_dst_len;
        if (node)
            *len = fake_number_address(addr, 0);
        else
            memcpy(addr, hints->ai_dst_addr, *len = hints->ai_dst_len);
        *(passive ? &info->ai_src_addr : &info->ai_dst_addr) = (struct sockaddr *)addr;
        if (!passive && hints->ai_src_len > 0) {
            memcpy(source, hints->ai_src_addr, info->ai_src_len = hints->ai_src_len);
            info->ai_src_addr = source;
        }
        if (i < last) {
            *len = fake_number_address(addr, FAKE_ROUTE_TO(number_of(hints->ai_dst_addr)));
            info->ai_src_len = fake_number_address(&made->source[i], FAKE_FIRST_ROUTE + i);
            info->ai_src_addr = source;
            info->ai_next = info + 1;
        }
        info->ai_family = addr->ss_family;
    }
    *res = made->info;
    return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res) {
    FAKE_LOCKED;
    fake_note(__func__, res);
    struct fake_object *found = fake_find(FAKE_ADDRINFO, res);
    if (found)
        fake_destroy(found);
}
