// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// pd_mr_ah.cc -- protection domains, memory regions and windows, address handles.

#include "shim.hh"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <endian.h>
#include <netinet/ip.h>

using namespace sim;

static ibv_mr *reg_mr(ibv_pd *pd, void *address, size_t length, uint64_t iova,
                      unsigned access) {
    RegMr request;
    request.pd = pd->handle;
    request.address = cookie_of(address);
    request.length = length;
    request.iova = iova;
    request.access = access & ~static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);
    RegMr::Reply reply;
    ibv_mr *const made = create<ibv_mr>(request, reply);
    if (!made)
        return nullptr;
    made->context = pd->context;
    made->pd = pd;
    made->addr = address;
    made->length = length;
    made->handle = reply.mr;
    made->lkey = reply.lkey;
    made->rkey = reply.rkey;
    return made;
}

int sim::destroy_simple(uint32_t handle, void *memory) {
    Destroy::Reply reply;
    const int error = destroy(handle, reply);
    if (!error)
        discard(memory);
    return error;
}

ibv_mw *sim::alloc_mw(ibv_pd *pd, ibv_mw_type type) {
    AllocMw request;
    request.pd = pd->handle;
    request.type = type;
    AllocMw::Reply reply;
    ibv_mw *const made = create<ibv_mw>(request, reply);
    if (!made)
        return nullptr;
    made->context = pd->context;
    made->pd = pd;
    made->rkey = reply.rkey;
    made->handle = reply.mw;
    made->type = type;
    return made;
}

int sim::dealloc_mw(ibv_mw *mw) {
    return destroy_simple(mw->handle, mw);
}

// rdma-core 56, providers/rxe/rxe.c, rxe_bind_mw(); providers/mlx5/verbs.c, mlx5_bind_mw()
int sim::bind_mw(ibv_qp *qp, ibv_mw *mw, ibv_mw_bind *bind) {
    ibv_send_wr wr = {}, *bad;
    wr.wr_id = bind->wr_id;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = bind->send_flags;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = bind->bind_info;
    const int error = bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED
                          ? EINVAL
                          : post_send(qp, &wr, &bad);
    if (!error)
        mw->rkey = wr.bind_mw.rkey;
    return error;
}

extern "C" {

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

ibv_pd *ibv_alloc_pd(ibv_context *context) {
    AllocPd request;
    request.context = shim_of(context)->handle;
    AllocPd::Reply reply;
    ibv_pd *const made = create<ibv_pd>(request, reply);
    if (!made)
        return nullptr;
    made->context = context;
    made->handle = reply.pd;
    return made;
}

int ibv_dealloc_pd(ibv_pd *pd) {
    return destroy_simple(pd->handle, pd);
}

ibv_mr *ibv_reg_mr(ibv_pd *pd, void *address, size_t length, int access) {
    return reg_mr(pd, address, length, cookie_of(address), static_cast<unsigned>(access));
}

ibv_mr *ibv_reg_mr_iova(ibv_pd *pd, void *address, size_t length, uint64_t iova, int access) {
    return reg_mr(pd, address, length, iova, static_cast<unsigned>(access));
}

ibv_mr *ibv_reg_mr_iova2(ibv_pd *pd, void *address, size_t length, uint64_t iova,
                         unsigned access) {
    return reg_mr(pd, address, length, iova, access);
}

// rdma-core 56, libibverbs/verbs.c, ibv_rereg_mr(): results of enum ibv_rereg_mr_err_code.
int ibv_rereg_mr(ibv_mr *mr, int flags, ibv_pd *pd, void *address, size_t length, int access) {
    if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) ||
        ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!address || length == 0)) ||
        (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))) {
        errno = EINVAL;
        return IBV_REREG_MR_ERR_INPUT;
    }
    ReregMr request;
    request.mr = mr->handle;
    request.flags = static_cast<uint32_t>(flags);
    request.pd = flags & IBV_REREG_MR_CHANGE_PD ? pd->handle : 0;
    request.address = cookie_of(address);
    request.length = length;
    request.access = static_cast<uint32_t>(access);
    RegMr::Reply reply;
    if (const int error = call(request, reply)) {
        errno = error;
        return IBV_REREG_MR_ERR_CMD;
    }
    mr->lkey = reply.lkey;
    mr->rkey = reply.rkey;
    if (flags & IBV_REREG_MR_CHANGE_PD)
        mr->pd = pd;
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->addr = address;
        mr->length = length;
    }
    return 0;
}

int ibv_dereg_mr(ibv_mr *mr) {
    return destroy_simple(mr->handle, mr);
}

ibv_ah *ibv_create_ah(ibv_pd *pd, ibv_ah_attr *attr) {
    CreateAh request;
    request.pd = pd->handle;
    request.attr = *attr;
    CreateAh::Reply reply;
    ibv_ah *const made = create<ibv_ah>(request, reply);
    if (!made)
        return nullptr;
    made->context = pd->context;
    made->pd = pd;
    made->handle = reply.ah;
    return made;
}

int ibv_destroy_ah(ibv_ah *ah) {
    return destroy_simple(ah->handle, ah);
}

static ibv_gid mapped(uint32_t ip4) {
    ibv_gid gid = {};
    gid.raw[10] = gid.raw[11] = 0xff;
    memcpy(gid.raw + 12, &ip4, sizeof(ip4));
    return gid;
}

// rdma-core, libibverbs/verbs.c, get_grh_header_version(): a header of IPv4 is at the end of
// the area.
int ibv_init_ah_from_wc(ibv_context *context, uint8_t port, ibv_wc *wc, ibv_grh *grh,
                        ibv_ah_attr *attr) {
    memset(attr, 0, sizeof(*attr));
    attr->dlid = wc->slid;
    attr->sl = wc->sl;
    attr->src_path_bits = wc->dlid_path_bits;
    attr->port_num = port;
    if (!(wc->wc_flags & IBV_WC_GRH))
        return 0;
    attr->is_global = 1;
    const uint32_t flow = be32toh(grh->version_tclass_flow);
    const auto &ip4 = *reinterpret_cast<const iphdr *>(reinterpret_cast<char *>(grh) + 20);
    ibv_gid to = grh->dgid;
    if (flow >> 28 == 6) {
        attr->grh.dgid = grh->sgid;
        attr->grh.hop_limit = grh->hop_limit;
        attr->grh.traffic_class = static_cast<uint8_t>(flow >> 20);
        attr->grh.flow_label = flow & 0xfffff;
    } else if (ip4.version == 4) {
        to = mapped(ip4.daddr);
        attr->grh.dgid = mapped(ip4.saddr);
        attr->grh.hop_limit = ip4.ttl;
        attr->grh.traffic_class = ip4.tos;
    } else {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    ibv_gid own;
    for (int index = 0; !ibv_query_gid(context, port, index, &own); index++)
        if (!memcmp(&own, &to, sizeof(own))) {
            attr->grh.sgid_index = static_cast<uint8_t>(index);
            return 0;
        }
    errno = EINVAL; // a datagram to a group: its address is none of the port
    return -1;
}

ibv_ah *ibv_create_ah_from_wc(ibv_pd *pd, ibv_wc *wc, ibv_grh *grh, uint8_t port) {
    ibv_ah_attr attr;
    if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
        return nullptr;
    return ibv_create_ah(pd, &attr);
}

} // extern "C"
