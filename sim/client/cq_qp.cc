// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cq_qp.cc -- channels, completion queues, shared receive queues and queue pairs.

#include "shim.hh"
#include "unsupported.hh"

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

using namespace sim;

namespace {

// Waits until `events` are acknowledged, and for ever after more: rdma-core 56,
// libibverbs/cmd_qp.c, ibv_cmd_destroy_qp(). librdmacm does not wait after more.
template <class T>
void wait_for(T *object, const uint32_t &counter, uint32_t events, const char *function) {
    pthread_mutex_lock(&object->mutex);
    while (counter != events)
        rdma_sim_wait_for_ack(&object->cond, &object->mutex, function);
    pthread_mutex_unlock(&object->mutex);
}

template <class T> void free_object(T *object, void *memory) {
    pthread_cond_destroy(&object->cond);
    pthread_mutex_destroy(&object->mutex);
    discard(memory);
}

// Locks both CQs against polls while the fabric may remove completions of the QP.
class LockedCqs {
  public:
    explicit LockedCqs(const ibv_qp &qp, bool locks = true)
        : first_(locks ? shim_of(std::min(qp.send_cq, qp.recv_cq)) : nullptr),
          second_(locks ? shim_of(std::max(qp.send_cq, qp.recv_cq)) : nullptr) {
        if (first_)
            pthread_mutex_lock(&first_->lock);
        if (second_ != first_)
            pthread_mutex_lock(&second_->lock);
    }
    ~LockedCqs() {
        if (second_ != first_)
            pthread_mutex_unlock(&second_->lock);
        if (first_)
            pthread_mutex_unlock(&first_->lock);
    }
    LockedCqs(const LockedCqs &) = delete;
    LockedCqs &operator=(const LockedCqs &) = delete;

  private:
    ShimCq *first_, *second_;
};

template <class T> void init_object(T *object) {
    pthread_mutex_init(&object->mutex, nullptr);
    pthread_cond_init(&object->cond, nullptr);
}

// The mappings of this process, which rings share.
struct RingMapping {
    RingMapping *next;
    RingPlace place; // of any of its rings
    char *base;
    unsigned rings;
};
RingMapping *mappings;
pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;

// Returns the link to the mapping of the place, or to the end of the list.
RingMapping **find_mapping(const RingPlace &place) {
    RingMapping **link = &mappings;
    while (*link && (place.number == 0 || (*link)->place.number != place.number))
        link = &(*link)->next;
    return link;
}

RingMapping *map_memory(int fd, const RingPlace &place) {
    void *const mapped =
        fd < 0 ? MAP_FAILED
               : mmap(nullptr, place.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    RingMapping *const made = mapped == MAP_FAILED ? nullptr : allocate<RingMapping>();
    if (made)
        *made = {nullptr, place, static_cast<char *>(mapped), 0};
    else if (mapped != MAP_FAILED)
        munmap(mapped, place.size);
    return made;
}

// Closes the descriptor. Returns NULL if it is missing, or if the process cannot map more.
Ring *map_ring(int fd, const RingPlace &place) {
    pthread_mutex_lock(&mappings_lock);
    RingMapping **const link = find_mapping(place);
    if (!*link)
        *link = map_memory(fd, place);
    RingMapping *const found = *link;
    if (found)
        found->rings++;
    pthread_mutex_unlock(&mappings_lock);
    if (fd >= 0)
        close(fd);
    return found ? reinterpret_cast<Ring *>(found->base + place.offset) : nullptr;
}

void unmap_ring(const Ring *ring, const RingPlace &place) {
    pthread_mutex_lock(&mappings_lock);
    RingMapping **link = &mappings;
    while ((*link)->base + place.offset != reinterpret_cast<const char *>(ring))
        link = &(*link)->next;
    RingMapping *const found = *link;
    if (--found->rings == 0) {
        *link = found->next;
        munmap(found->base, found->place.size);
        free(found);
    }
    pthread_mutex_unlock(&mappings_lock);
}

} // namespace

static ibv_cq_ex *create_cq(ibv_context *context, const ibv_cq_init_attr_ex *attr,
                            bool is_extended) {
    ShimCq *const made = allocate<ShimCq>();
    if (!made)
        return fail<ibv_cq_ex>(ENOMEM);
    CreateCq request;
    request.context = shim_of(context)->handle;
    request.channel = attr->channel ? shim_of(attr->channel)->handle : 0;
    request.vector = attr->comp_vector;
    request.cookie = cookie_of(made);
    request.entries = attr->cqe;
    request.flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
    request.is_extended = is_extended;
    request.comp_mask = attr->comp_mask;
    request.wc_flags = attr->wc_flags;
    CreateCq::Reply reply;
    int fd;
    int error = call(request, reply, &fd);
    if (error && is_extended && attr->wc_flags & IBV_WC_EX_WITH_TM_INFO &&
        shim_of(context->device)->info.has_tag_matching)
        rdma_sim_unsupported("ibv_create_cq_ex", "tag matching is");
    if (!error && !(made->ring = map_ring(fd, reply.place))) {
        Destroy::Reply destroyed;
        (void)destroy(reply.cq, destroyed);
        error = fd < 0 ? EMFILE : ENOMEM;
    }
    if (error) {
        free(made);
        return fail<ibv_cq_ex>(error);
    }
    made->place = reply.place;
    ibv_cq_ex &cq = made->ex;
    cq.context = context;
    cq.channel = attr->channel;
    cq.cq_context = attr->cq_context;
    cq.handle = reply.cq;
    cq.cqe = static_cast<int>(reply.entries);
    init_object(&cq);
    pthread_mutex_init(&made->lock, nullptr);
    set_cq_functions(&cq, attr->wc_flags);
    if (attr->channel)
        __atomic_fetch_add(&attr->channel->refcnt, 1, __ATOMIC_RELAXED);
    return &cq;
}

ibv_cq_ex *sim::create_cq_ex(ibv_context *context, ibv_cq_init_attr_ex *attr) {
    return create_cq(context, attr, true);
}

// The feature of this queue pair that the fabric lacks, or nullptr.
static const char *missing_feature(const ibv_qp_init_attr_ex &attr, bool has_xrc) {
    static const struct {
        unsigned type, mask;
        uint64_t ops;
        const char *feature;
    } missing[] = {
        {IBV_QPT_RAW_PACKET, IBV_QP_INIT_ATTR_MAX_TSO_HEADER, IBV_QP_EX_WITH_TSO,
         "raw packets are"},
        {IBV_QPT_DRIVER, 0, 0, "queue pairs of drivers are"},
        {0, IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH, 0,
         "separate work queues are"},
    };
    const bool is_extended = attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if (!has_xrc && (attr.qp_type == IBV_QPT_XRC_SEND || attr.qp_type == IBV_QPT_XRC_RECV ||
                     attr.comp_mask & IBV_QP_INIT_ATTR_XRCD))
        return "XRC is";
    for (const auto &one : missing)
        if (attr.qp_type == one.type || attr.comp_mask & one.mask ||
            (is_extended && attr.send_ops_flags & one.ops))
            return one.feature;
    return attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr.create_flags
               ? "creation flags of queue pairs are"
               : nullptr;
}

ibv_qp *sim::create_qp_ex(ibv_context *context, ibv_qp_init_attr_ex *attr) {
    const DeviceInfo::Reply &info = shim_of(context->device)->info;
    if (const char *feature = missing_feature(*attr, info.has_xrc))
        return fail<ibv_qp>(rdma_sim_unsupported("ibv_create_qp", feature));
    const bool is_xrc_sender = attr->qp_type == IBV_QPT_XRC_SEND,
               is_xrc_receiver = attr->qp_type == IBV_QPT_XRC_RECV;
    const unsigned needed = is_xrc_receiver ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
    const unsigned known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
                           (info.has_xrc ? IBV_QP_INIT_ATTR_XRCD : 0) |
                           (info.has_create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0);
    const bool is_extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    const uint64_t known_ops = is_xrc_sender                 ? info.send_ops[IBV_QPT_RC]
                               : attr->qp_type <= IBV_QPT_UD ? info.send_ops[attr->qp_type]
                                                             : 0;
    if ((attr->comp_mask & ~known) || !(attr->comp_mask & needed) ||
        (is_extended && (known_ops == 0 || (attr->send_ops_flags & ~known_ops))))
        return fail<ibv_qp>(EOPNOTSUPP);
    if (is_xrc_receiver ? !attr->xrcd
                        : !attr->pd || !attr->send_cq || (!is_xrc_sender && !attr->recv_cq))
        return fail<ibv_qp>(EINVAL);
    ibv_pd *const pd = is_xrc_receiver ? nullptr : attr->pd;
    ibv_cq *const send_cq = is_xrc_receiver ? nullptr : attr->send_cq;
    ibv_cq *const recv_cq = is_xrc_receiver || is_xrc_sender ? nullptr : attr->recv_cq;
    ibv_srq *const srq = is_xrc_receiver || is_xrc_sender ? nullptr : attr->srq;
    const int errno_before = errno;
    ShimQp *const made = allocate<ShimQp>();
    if (!made)
        return fail<ibv_qp>(ENOMEM);
    CreateQp request;
    request.pd = pd ? pd->handle : 0;
    request.send_cq = send_cq ? send_cq->handle : 0;
    request.recv_cq = recv_cq ? recv_cq->handle : 0;
    request.srq = srq ? srq->handle : 0;
    request.xrcd = is_xrc_receiver ? shim_of(attr->xrcd)->handle : 0;
    request.type = static_cast<uint32_t>(attr->qp_type);
    request.sq_sig_all = attr->sq_sig_all != 0;
    request.cookie = cookie_of(made);
    request.send_ops = is_extended ? attr->send_ops_flags : 0;
    request.cap = attr->cap;
    CreateQp::Reply reply;
    made->is_extended = is_extended;
    made->send_ops = request.send_ops;
    int error = is_extended ? set_builders(made) : 0;
    if (!error)
        error = call(request, reply);
    if (error) {
        free(made->builder);
        free(made);
        // Of limits only: the kernel's errors set errno.
        return fail<ibv_qp>(info.keeps_errno && error == EINVAL ? errno_before : error);
    }
    ibv_qp &qp = made->ex.qp_base;
    qp.context = context;
    qp.qp_context = attr->qp_context;
    qp.pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : nullptr;
    qp.send_cq = send_cq;
    qp.recv_cq = recv_cq;
    qp.srq = srq;
    qp.handle = reply.qp;
    qp.qp_num = reply.qp_num;
    qp.state = IBV_QPS_RESET;
    qp.qp_type = attr->qp_type;
    init_object(&qp);
    pthread_mutex_init(&made->lock, nullptr);
    made->sq_sig_all = attr->sq_sig_all;
    made->cap = attr->cap = reply.cap;
    return &qp;
}

ibv_srq *sim::create_srq(ibv_pd *pd, void *context, ibv_srq_attr &attr, ibv_xrcd *xrcd,
                         ibv_cq *cq) {
    ibv_srq *const made = allocate<ibv_srq>();
    CreateSrq request;
    request.pd = pd->handle;
    request.cookie = cookie_of(made);
    request.attr = attr;
    request.xrcd = xrcd ? shim_of(xrcd)->handle : 0;
    request.cq = cq ? cq->handle : 0;
    CreateSrq::Reply reply;
    const int error = made ? call(request, reply) : ENOMEM;
    if (error) {
        free(made);
        return fail<ibv_srq>(error);
    }
    made->context = pd->context;
    made->srq_context = context;
    made->pd = pd;
    made->handle = reply.srq;
    init_object(made);
    attr = reply.attr;
    return made;
}

extern "C" {

ibv_comp_channel *ibv_create_comp_channel(ibv_context *context) {
    CreateChannel request;
    request.context = shim_of(context)->handle;
    CreateChannel::Reply reply;
    int fd = -1;
    ShimChannel *const made = create<ShimChannel>(request, reply, &fd);
    if (!made)
        return nullptr;
    made->channel.context = context;
    made->channel.fd = fd;
    made->handle = reply.channel;
    return &made->channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel *channel) {
    const int fd = channel->fd;
    const int error =
        channel->refcnt ? EBUSY : destroy_simple(shim_of(channel)->handle, channel);
    if (!error)
        close(fd);
    return error;
}

ibv_cq *ibv_create_cq(ibv_context *context, int cqe, void *cq_context,
                      ibv_comp_channel *channel, int vector) {
    if (cqe < 0 || vector < 0)
        return fail<ibv_cq>(EINVAL);
    ibv_cq_init_attr_ex attr = {};
    attr.cqe = static_cast<uint32_t>(cqe);
    attr.cq_context = cq_context;
    attr.channel = channel;
    attr.comp_vector = static_cast<uint32_t>(vector);
    return reinterpret_cast<ibv_cq *>(create_cq(context, &attr, false));
}

int ibv_resize_cq(ibv_cq *cq, int cqe) {
    ShimCq *const shim = shim_of(cq);
    ResizeCq request;
    request.cq = cq->handle;
    request.entries = static_cast<uint32_t>(cqe);
    CreateCq::Reply reply;
    int fd;
    pthread_mutex_lock(&shim->lock);
    int error = cqe <= 0 ? EINVAL : call(request, reply, &fd);
    Ring *ring = error ? nullptr : map_ring(fd, reply.place);
    if (!error && !ring) { // back to a ring in memory that the process maps already
        error = fd < 0 ? EMFILE : ENOMEM;
        request.entries = static_cast<uint32_t>(cq->cqe);
        ring = call(request, reply, &fd) ? nullptr : map_ring(fd, reply.place);
    }
    if (ring) {
        unmap_ring(shim->ring, shim->place);
        shim->ring = ring;
        shim->place = reply.place;
        cq->cqe = static_cast<int>(reply.entries);
    }
    pthread_mutex_unlock(&shim->lock);
    return error;
}

int ibv_destroy_cq(ibv_cq *cq) {
    ShimCq *const shim = shim_of(cq);
    Destroy::Reply reply;
    if (const int error = destroy(cq->handle, reply))
        return error;
    wait_for(cq, cq->comp_events_completed, reply.completion_events, __func__);
    wait_for(cq, cq->async_events_completed, reply.async_events, __func__);
    if (cq->channel)
        __atomic_fetch_sub(&cq->channel->refcnt, 1, __ATOMIC_RELAXED);
    unmap_ring(shim->ring, shim->place);
    pthread_mutex_destroy(&shim->lock);
    free_object(cq, shim);
    return 0;
}

int ibv_get_cq_event(ibv_comp_channel *channel, ibv_cq **cq, void **cq_context) {
    TakeEvent::Reply event;
    if (rdma_sim_take_event(channel->fd, shim_of(channel)->handle, &event, nullptr, 0,
                            "ibv_get_cq_event"))
        return -1;
    *cq = reinterpret_cast<ibv_cq *>(event.cookie);
    *cq_context = (*cq)->cq_context;
    return 0;
}

void ibv_ack_cq_events(ibv_cq *cq, unsigned events) {
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += events;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

ibv_srq *ibv_create_srq(ibv_pd *pd, ibv_srq_init_attr *attr) {
    return create_srq(pd, attr->srq_context, attr->attr, nullptr, nullptr);
}

int ibv_modify_srq(ibv_srq *srq, ibv_srq_attr *attr, int mask) {
    ModifySrq request;
    request.srq = srq->handle;
    request.mask = static_cast<uint32_t>(mask);
    request.attr = *attr;
    Empty reply;
    return call(request, reply);
}

int ibv_query_srq(ibv_srq *srq, ibv_srq_attr *attr) {
    QuerySrq request;
    request.srq = srq->handle;
    return call(request, *attr);
}

int ibv_destroy_srq(ibv_srq *srq) {
    Destroy::Reply reply;
    if (const int error = destroy(srq->handle, reply))
        return error;
    wait_for(srq, srq->events_completed, reply.async_events, __func__);
    free_object(srq, srq);
    return 0;
}

ibv_qp *ibv_create_qp(ibv_pd *pd, ibv_qp_init_attr *attr) {
    ibv_qp_init_attr_ex extended = {};
    memcpy(static_cast<void *>(&extended), attr, sizeof(*attr));
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    extended.pd = pd;
    ibv_qp *const qp = create_qp_ex(pd->context, &extended);
    if (qp)
        attr->cap = extended.cap;
    return qp;
}

ibv_qp_ex *ibv_qp_to_qp_ex(ibv_qp *qp) {
    return shim_of(qp)->is_extended ? &shim_of(qp)->ex : nullptr;
}

int ibv_modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int mask) {
    if (mask & IBV_QP_RATE_LIMIT)
        return rdma_sim_unsupported("ibv_modify_qp", "rate limits are");
    ModifyQp request;
    request.qp = qp->handle;
    request.mask = static_cast<uint32_t>(mask);
    request.attr = *attr;
    ModifyQp::Reply reply;
    const bool resets = (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET;
    int error;
    {
        const LockedCqs locked(*qp, resets);
        error = call(request, reply);
    }
    if (!error && (mask & IBV_QP_STATE))
        qp->state = attr->qp_state;
    return error;
}

int ibv_query_qp(ibv_qp *qp, ibv_qp_attr *attr, int, ibv_qp_init_attr *init) {
    QueryQp request;
    request.qp = qp->handle;
    QueryQp::Reply reply;
    if (const int error = call(request, reply))
        return error;
    *attr = reply.attr;
    init->qp_context = qp->qp_context;
    init->send_cq = qp->send_cq;
    init->recv_cq = qp->recv_cq;
    init->srq = qp->srq;
    init->qp_type = qp->qp_type;
    init->cap = reply.attr.cap;
    init->sq_sig_all = shim_of(qp)->sq_sig_all;
    qp->state = attr->qp_state;
    return 0;
}

int ibv_destroy_qp(ibv_qp *qp) {
    ShimQp *const shim = shim_of(qp);
    Destroy::Reply reply;
    int error;
    {
        const LockedCqs locked(*qp);
        error = destroy(qp->handle, reply);
    }
    if (error)
        return error;
    wait_for(qp, qp->events_completed, reply.async_events, __func__);
    pthread_mutex_destroy(&shim->lock);
    free(shim->builder);
    free_object(qp, shim);
    return 0;
}

static int multicast(ibv_qp *qp, const ibv_gid *gid, uint16_t lid, bool attaches) {
    Multicast request;
    request.qp = qp->handle;
    request.lid = lid;
    request.attaches = attaches;
    request.gid = *gid;
    Empty reply;
    return call(request, reply);
}

int ibv_attach_mcast(ibv_qp *qp, const ibv_gid *gid, uint16_t lid) {
    return multicast(qp, gid, lid, true);
}

int ibv_detach_mcast(ibv_qp *qp, const ibv_gid *gid, uint16_t lid) {
    return multicast(qp, gid, lid, false);
}

} // extern "C"
