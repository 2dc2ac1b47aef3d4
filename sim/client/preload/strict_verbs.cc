// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// strict_verbs.cc -- the functions that create, change and destroy objects of libibverbs,
// checked with --strict

#include "strict.hh"

#include <cerrno>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace {

// The functions of all contexts, which are those of libibverbs.so.1.
decltype(verbs_context::create_qp_ex) real_create_qp_ex;
decltype(verbs_context::create_cq_ex) real_create_cq_ex;
decltype(verbs_context::create_srq_ex) real_create_srq_ex;

ibv_qp *add_qp(ibv_qp *qp, const ibv_qp_cap &cap, bool signals_all, bool is_known,
               const Call &call) {
    const Lock lock;
    Object *const made = add(Kind::QP, qp, call);
    if (made == nullptr)
        return qp;
    use(made, qp->pd);
    use(made, qp->send_cq);
    use(made, qp->recv_cq);
    if (Object *const srq = find(qp->srq)) {
        made->used[3] = srq;
        srq->users++;
    }
    made->cap = cap;
    made->signals_all = signals_all;
    add_alias(key_of_qp(qp->qp_num), made);
    if (Object *const cq = is_known ? nullptr : find(qp->send_cq))
        cq->is_known = false;
    return qp;
}

ibv_qp *create_qp_ex(ibv_context *context, ibv_qp_init_attr_ex *attr) {
    const Call call = {"ibv_create_qp_ex", __builtin_return_address(0)};
    const bool is_built = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
    return add_qp(real_create_qp_ex(context, attr), attr->cap, attr->sq_sig_all != 0, !is_built,
                  call);
}

ibv_cq_ex *create_cq_ex(ibv_context *context, ibv_cq_init_attr_ex *attr) {
    const Call call = {"ibv_create_cq_ex", __builtin_return_address(0)};
    return add_user(Kind::CQ, real_create_cq_ex(context, attr), call, context, attr->channel);
}

ibv_srq *add_srq(ibv_srq *srq, unsigned max_sge, const Call &call) {
    const Lock lock;
    if (Object *const made = add(Kind::SRQ, srq, call)) {
        use(made, srq->pd);
        made->cap.max_recv_sge = max_sge;
    }
    return srq;
}

ibv_srq *create_srq_ex(ibv_context *context, ibv_srq_init_attr_ex *attr) {
    const Call call = {"ibv_create_srq_ex", __builtin_return_address(0)};
    return add_srq(real_create_srq_ex(context, attr), attr->attr.max_sge, call);
}

ibv_mr *add_region(ibv_mr *mr, uint64_t begin, int access, const Call &call) {
    // IBV_ACCESS_FLUSH_GLOBAL and IBV_ACCESS_FLUSH_PERSISTENT are in rdma-core since 45.
    constexpr unsigned KNOWN = (1U << 10) - 1;
    const Lock lock;
    const unsigned unknown =
        static_cast<unsigned>(access) & ~KNOWN & ~unsigned{IBV_ACCESS_OPTIONAL_RANGE};
    if (unknown != 0)
        report(Check::FLAGS, call, "access %#x", unknown);
    if (Object *const made = add(Kind::MR, mr, call)) {
        use(made, mr->pd);
        made->begin = begin;
        made->length = mr->length;
        made->access = static_cast<unsigned>(access);
        add_alias(key_of_region(mr->lkey), made);
    }
    return mr;
}

} // namespace

void watch(ibv_context *context) {
    verbs_context *const verbs = verbs_get_ctx(context);
    if (verbs->create_qp_ex == create_qp_ex)
        return;
    watch_requests(context);
    real_create_qp_ex = verbs->create_qp_ex;
    real_create_cq_ex = verbs->create_cq_ex;
    real_create_srq_ex = verbs->create_srq_ex;
    verbs->create_qp_ex = create_qp_ex;
    verbs->create_cq_ex = create_cq_ex;
    verbs->create_srq_ex = create_srq_ex;
}

EXPORTED ibv_context *ibv_open_device(ibv_device *device) {
    const Call call = CALL;
    ibv_context *const context = VERBS(ibv_open_device)(device);
    const Lock lock;
    if (add(Kind::CONTEXT, context, call) != nullptr)
        watch(context);
    return context;
}

EXPORTED int ibv_close_device(ibv_context *context) {
    return destroy(Kind::CONTEXT, context, CALL,
                   [context] { return VERBS(ibv_close_device)(context); });
}

EXPORTED ibv_pd *ibv_alloc_pd(ibv_context *context) {
    return add_user(Kind::PD, VERBS(ibv_alloc_pd)(context), CALL, context);
}

EXPORTED int ibv_dealloc_pd(ibv_pd *pd) {
    return destroy(Kind::PD, pd, CALL, [pd] { return VERBS(ibv_dealloc_pd)(pd); });
}

EXPORTED ibv_mr *ibv_reg_mr(ibv_pd *pd, void *address, size_t length, int access) {
    return add_region(VERBS(ibv_reg_mr)(pd, address, length, access), key_of(address), access,
                      CALL);
}

EXPORTED ibv_mr *ibv_reg_mr_iova(ibv_pd *pd, void *address, size_t length, uint64_t iova,
                                 int access) {
    return add_region(VERBS(ibv_reg_mr_iova)(pd, address, length, iova, access), iova, access,
                      CALL);
}

EXPORTED ibv_mr *ibv_reg_mr_iova2(ibv_pd *pd, void *address, size_t length, uint64_t iova,
                                  unsigned access) {
    return add_region(VERBS(ibv_reg_mr_iova2)(pd, address, length, iova, access), iova,
                      static_cast<int>(access), CALL);
}

EXPORTED int ibv_rereg_mr(ibv_mr *mr, int flags, ibv_pd *pd, void *address, size_t length,
                          int access) {
    const int error = VERBS(ibv_rereg_mr)(mr, flags, pd, address, length, access);
    const Lock lock;
    Object *const object = error == 0 ? find(mr) : nullptr;
    if (object == nullptr)
        return error;
    if ((flags & IBV_REREG_MR_CHANGE_PD) != 0)
        use_instead(object, pd);
    if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
        object->begin = key_of(address);
        object->length = length;
    }
    if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0)
        object->access = static_cast<unsigned>(access);
    add_alias(key_of_region(mr->lkey), object);
    return error;
}

EXPORTED int ibv_dereg_mr(ibv_mr *mr) {
    const Call call = CALL;
    {
        const Lock lock;
        if (!is_usable(Kind::MR, mr, call))
            return EINVAL;
    }
    check_posted(mr, call);
    const uint32_t lkey = mr->lkey;
    return destroy(Kind::MR, mr, call, [mr, lkey] {
        const int error = VERBS(ibv_dereg_mr)(mr);
        const Lock lock;
        if (error == 0)
            remove_alias(key_of_region(lkey));
        return error;
    });
}

EXPORTED ibv_comp_channel *ibv_create_comp_channel(ibv_context *context) {
    return add_user(Kind::CHANNEL, VERBS(ibv_create_comp_channel)(context), CALL, context);
}

EXPORTED int ibv_destroy_comp_channel(ibv_comp_channel *channel) {
    return destroy(Kind::CHANNEL, channel, CALL,
                   [channel] { return VERBS(ibv_destroy_comp_channel)(channel); });
}

EXPORTED ibv_cq *ibv_create_cq(ibv_context *context, int entries, void *cookie,
                               ibv_comp_channel *channel, int vector) {
    const Call call = CALL;
    ibv_cq *const cq = VERBS(ibv_create_cq)(context, entries, cookie, channel, vector);
    const Lock lock;
    if (Object *const made = add(Kind::CQ, cq, call)) {
        use(made, context);
        use(made, channel);
        made->is_known = true;
    }
    return cq;
}

EXPORTED int ibv_destroy_cq(ibv_cq *cq) {
    return destroy(Kind::CQ, cq, CALL, [cq] { return VERBS(ibv_destroy_cq)(cq); });
}

EXPORTED int ibv_get_cq_event(ibv_comp_channel *channel, ibv_cq **cq, void **cookie) {
    const int error = VERBS(ibv_get_cq_event)(channel, cq, cookie);
    const Lock lock;
    if (Object *const object = error == 0 ? find(*cq) : nullptr)
        object->events++;
    return error;
}

EXPORTED void ibv_ack_cq_events(ibv_cq *cq, unsigned count) {
    {
        const Call call = CALL;
        const Lock lock;
        Object *const object = find(cq);
        if (!is_usable(Kind::CQ, cq, call))
            return;
        if (object != nullptr && count > object->events)
            report(Check::ACKNOWLEDGED, call, "%u of %u", count, object->events);
        if (object != nullptr)
            object->events -= count < object->events ? count : object->events;
    }
    VERBS(ibv_ack_cq_events)(cq, count);
}

EXPORTED ibv_srq *ibv_create_srq(ibv_pd *pd, ibv_srq_init_attr *attr) {
    const Call call = CALL;
    ibv_srq *const srq = VERBS(ibv_create_srq)(pd, attr);
    return add_srq(srq, attr->attr.max_sge, call);
}

EXPORTED int ibv_destroy_srq(ibv_srq *srq) {
    return destroy(Kind::SRQ, srq, CALL, [srq] {
        {
            const Lock lock;
            if (Object *const object = find(srq); object != nullptr && object->users == 0)
                clear(object->receives, nullptr);
        }
        return VERBS(ibv_destroy_srq)(srq);
    });
}

EXPORTED ibv_qp *ibv_create_qp(ibv_pd *pd, ibv_qp_init_attr *attr) {
    const Call call = CALL;
    ibv_qp *const qp = VERBS(ibv_create_qp)(pd, attr);
    return add_qp(qp, attr->cap, attr->sq_sig_all != 0, true, call);
}

EXPORTED int ibv_modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int mask) {
    {
        const Call call = CALL;
        const Lock lock;
        if (!is_usable(Kind::QP, qp, call))
            return EINVAL;
        const struct {
            int bit;
            const char *name;
            unsigned value, most;
        } rows[] = {{IBV_QP_TIMEOUT, "timeout", attr->timeout, 31},
                    {IBV_QP_RETRY_CNT, "retry_cnt", attr->retry_cnt, 7},
                    {IBV_QP_RNR_RETRY, "rnr_retry", attr->rnr_retry, 7},
                    {IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", attr->min_rnr_timer, 31},
                    {IBV_QP_RQ_PSN, "rq_psn", attr->rq_psn, 0xffffff},
                    {IBV_QP_SQ_PSN, "sq_psn", attr->sq_psn, 0xffffff}};
        for (const auto &row : rows)
            if ((mask & row.bit) != 0 && row.value > row.most)
                report(Check::VALUES, call, "%s is %u, at most %u", row.name, row.value,
                       row.most);
    }
    const int error = VERBS(ibv_modify_qp)(qp, attr, mask);
    const Lock lock;
    Object *const object = find(qp);
    if (error == 0 && object != nullptr && (mask & IBV_QP_STATE) != 0 &&
        attr->qp_state == IBV_QPS_RESET) {
        clear(object->sends, find(qp->send_cq));
        clear(object->receives, find(qp->recv_cq));
    }
    return error;
}

EXPORTED int ibv_destroy_qp(ibv_qp *qp) {
    const Call call = CALL;
    {
        const Lock lock;
        if (!is_usable(Kind::QP, qp, call))
            return EINVAL;
    }
    const uint32_t number = qp->qp_num;
    ibv_cq *const send_cq = qp->send_cq, *const recv_cq = qp->recv_cq;
    return destroy(Kind::QP, qp, call, [=] {
        const int error = VERBS(ibv_destroy_qp)(qp);
        const Lock lock;
        if (Object *const object = error == 0 ? find(qp) : nullptr) {
            clear(object->sends, find(send_cq));
            clear(object->receives, find(recv_cq));
            remove_alias(key_of_qp(number));
        }
        return error;
    });
}

EXPORTED ibv_ah *ibv_create_ah(ibv_pd *pd, ibv_ah_attr *attr) {
    return add_user(Kind::AH, VERBS(ibv_create_ah)(pd, attr), CALL, pd);
}

EXPORTED int ibv_destroy_ah(ibv_ah *ah) {
    return destroy(Kind::AH, ah, CALL, [ah] { return VERBS(ibv_destroy_ah)(ah); });
}
