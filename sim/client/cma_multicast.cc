// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cma_multicast.cc -- the multicast groups of CM IDs.

#include "cma.hh"

#include <cstdlib>
#include <cstring>

namespace sim {

void free_multicasts(ShimId *id) {
    while (ShimMulticast *const first = id->multicasts) {
        id->multicasts = first->next;
        free(first);
    }
}

// Returns the link to the group with this address, or to the end of the list.
static ShimMulticast **find_group(ShimId *id, const CmAddress &address) {
    ShimMulticast **link = &id->multicasts;
    while (*link && memcmp(&(*link)->address, &address, sizeof(address)) != 0)
        link = &(*link)->next;
    return link;
}

static void remove(ShimMulticast *multicast) {
    ShimId *const id = multicast->id;
    pthread_mutex_lock(&id->mutex);
    ShimMulticast **link = &id->multicasts;
    while (*link != multicast)
        link = &(*link)->next;
    *link = multicast->next;
    pthread_mutex_unlock(&id->mutex);
}

// cma.c, rdma_join_multicast2()
static int join(rdma_cm_id *id, sockaddr *address, uint32_t flags, void *context) {
    ShimId *const own = shim(id);
    ShimMulticast *const made = static_cast<ShimMulticast *>(calloc(1, sizeof(*made)));
    if (!made)
        return fail(ENOMEM);
    made->id = own;
    made->flags = flags;
    made->context = context;
    made->address = pack(address);
    pthread_mutex_lock(&own->mutex);
    made->next = own->multicasts;
    own->multicasts = made;
    pthread_mutex_unlock(&own->mutex);
    CmJoin request = {};
    CmJoin::Reply reply;
    request.id = own->handle;
    request.flags = flags;
    request.cookie = reinterpret_cast<uintptr_t>(made);
    request.address = made->address;
    if (const int error = call_on(id->channel, request, reply)) {
        remove(made);
        free(made);
        return fail(error);
    }
    made->handle = reply.multicast;
    return complete(own);
}

// cma.c, ucma_process_join()
int on_joined(ShimMulticast *multicast, const ibv_ah_attr &group) {
    multicast->gid = group.grh.dgid;
    multicast->lid = group.dlid;
    ibv_qp *const qp = multicast->id->id.qp;
    if (!qp || multicast->flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
        return 0;
    return result(ibv_attach_mcast(qp, &multicast->gid, multicast->lid));
}

} // namespace sim

using namespace sim;

extern "C" {

int rdma_join_multicast(rdma_cm_id *id, sockaddr *addr, void *context) {
    return sim_address_length(addr) ? join(id, addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, context)
                                    : fail(EINVAL);
}

int rdma_join_multicast_ex(rdma_cm_id *id, rdma_cm_join_mc_attr_ex *attr, void *context) {
    if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
        return fail(ENOTSUP);
    if (!(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) ||
        !(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) ||
        attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED || !sim_address_length(attr->addr))
        return fail(EINVAL);
    return join(id, attr->addr, attr->join_flags, context);
}

int rdma_leave_multicast(rdma_cm_id *id, sockaddr *addr) {
    ShimId *const own = shim(id);
    if (!sim_address_length(addr))
        return fail(EINVAL);
    pthread_mutex_lock(&own->mutex);
    ShimMulticast **const link = find_group(own, pack(addr));
    ShimMulticast *const found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&own->mutex);
    if (!found)
        return fail(EADDRNOTAVAIL);
    if (id->qp && found->flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
        ibv_detach_mcast(id->qp, &found->gid, found->lid);
    CmLeave request = {};
    CmLeave::Reply reply = {};
    request.multicast = found->handle;
    const int error = call_on(id->channel, request, reply);
    if (!error)
        wait_for_acks(own, found->events_acked, reply.events, __func__);
    free(found);
    return result(error);
}

} // extern "C"
