// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// xrc.cc -- XRC domains and their shared receive queues.

#include "shim.hh"

#include <fcntl.h>
#include <sys/stat.h>

using namespace sim;

namespace {

// rdma-core 56, libibverbs/cmd_xrcd.c, ibv_cmd_open_xrcd(): without a file, the descriptor is
// -1.
ibv_xrcd *open_xrcd(ibv_context *context, ibv_xrcd_init_attr *attr) {
    const unsigned needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    struct stat status = {};
    if (attr->comp_mask & ~needed)
        return fail<ibv_xrcd>(EOPNOTSUPP);
    if (attr->comp_mask != needed)
        return fail<ibv_xrcd>(EINVAL);
    if (attr->fd != -1 && fstat(attr->fd, &status) != 0)
        return nullptr;
    OpenXrcd request;
    request.context = shim_of(context)->handle;
    request.has_file = attr->fd != -1;
    request.creates = attr->oflags & O_CREAT;
    request.is_exclusive = attr->oflags & O_EXCL;
    request.file_device = status.st_dev;
    request.inode = status.st_ino;
    OpenXrcd::Reply reply;
    ShimXrcd *const made = create<ShimXrcd>(request, reply);
    if (!made)
        return nullptr;
    made->xrcd.context = context;
    made->handle = reply.xrcd;
    return &made->xrcd;
}

int close_xrcd(ibv_xrcd *xrcd) {
    Destroy::Reply reply;
    const int error = destroy(shim_of(xrcd)->handle, reply);
    if (!error)
        discard(xrcd);
    return error;
}

ibv_srq *create_srq_ex(ibv_context *context, ibv_srq_init_attr_ex *attr) {
    const unsigned needed = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                            IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type != IBV_SRQT_XRC)
        return refuse_srq_ex(context, attr);
    if (attr->comp_mask & ~needed)
        return fail<ibv_srq>(EOPNOTSUPP);
    if (attr->comp_mask != needed || !attr->pd || !attr->xrcd || !attr->cq)
        return fail<ibv_srq>(EINVAL);
    return create_srq(attr->pd, attr->srq_context, attr->attr, attr->xrcd, attr->cq);
}

int get_srq_num(ibv_srq *srq, uint32_t *number) {
    *number = srq->handle;
    return 0;
}

} // namespace

void sim::set_xrc(verbs_context &verbs) {
    verbs.open_xrcd = open_xrcd;
    verbs.close_xrcd = close_xrcd;
    verbs.create_srq_ex = create_srq_ex;
    verbs.get_srq_num = get_srq_num;
}
