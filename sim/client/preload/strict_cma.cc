// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// strict_cma.cc -- the functions of librdmacm that --strict checks

#include "strict.hh"

#include <cerrno>
#include <rdma/rdma_cma.h>

namespace {

// The ID whose destruction waits for the acknowledgement.
const rdma_cm_id *owner_of(const rdma_cm_event *event) {
    return event->listen_id != nullptr ? event->listen_id : event->id;
}

void check_values(const rdma_conn_param *param, const Call &call) {
    if (param != nullptr && (param->retry_count > 7 || param->rnr_retry_count > 7))
        report(Check::VALUES, call, "retry_count is %u, rnr_retry_count %u, at most 7",
               param->retry_count, param->rnr_retry_count);
}

bool has_qp(const rdma_cm_id *id, const rdma_conn_param *param) {
    return id->qp != nullptr || (param != nullptr && param->qp_num != 0) ||
           id->qp_type == IBV_QPT_UD || id->ps == RDMA_PS_UDP || id->ps == RDMA_PS_IPOIB;
}

void set_bound(const rdma_cm_id *id) {
    const Lock lock;
    if (Object *const object = find(id))
        object->is_bound = true;
}

void check_connection(const rdma_cm_id *id, const rdma_conn_param *param, const Call &call) {
    const Lock lock;
    check_values(param, call);
    if (!has_qp(id, param))
        report(Check::NO_QP, call, "the ID has no queue pair");
}

} // namespace

EXPORTED rdma_event_channel *rdma_create_event_channel() {
    return add_user(Kind::EVENT_CHANNEL, CM(rdma_create_event_channel)(), CALL);
}

EXPORTED void rdma_destroy_event_channel(rdma_event_channel *channel) {
    destroy(Kind::EVENT_CHANNEL, channel, CALL, [channel] {
        CM(rdma_destroy_event_channel)(channel);
        return 0;
    });
}

EXPORTED int rdma_create_id(rdma_event_channel *channel, rdma_cm_id **id, void *cookie,
                            rdma_port_space space) {
    const Call call = CALL;
    const int error = CM(rdma_create_id)(channel, id, cookie, space);
    if (error == 0)
        add_user(Kind::ID, *id, call, channel);
    return error;
}

EXPORTED int rdma_create_ep(rdma_cm_id **id, rdma_addrinfo *info, ibv_pd *pd,
                            ibv_qp_init_attr *attr) {
    const Call call = CALL;
    const int error = CM(rdma_create_ep)(id, info, pd, attr);
    if (error == 0) {
        add_user(Kind::ID, *id, call);
        set_bound(*id);
    }
    return error;
}

EXPORTED void rdma_destroy_ep(rdma_cm_id *id) {
    destroy(Kind::ID, id, CALL, [id] {
        CM(rdma_destroy_ep)(id);
        return 0;
    });
}

EXPORTED int rdma_destroy_id(rdma_cm_id *id) {
    const Call call = CALL;
    {
        const Lock lock;
        if (!is_usable(Kind::ID, id, call)) {
            errno = EINVAL;
            return -1;
        }
        if (find(id) != nullptr && find(id->qp) != nullptr && find(id->qp)->kind == Kind::QP)
            report(Check::IN_USE, call, "the ID still has its queue pair");
    }
    return destroy(Kind::ID, id, call, [id] { return CM(rdma_destroy_id)(id); });
}

EXPORTED int rdma_migrate_id(rdma_cm_id *id, rdma_event_channel *channel) {
    const int error = CM(rdma_migrate_id)(id, channel);
    const Lock lock;
    if (Object *const object = error == 0 ? find(id) : nullptr)
        use_instead(object, channel);
    return error;
}

EXPORTED int rdma_bind_addr(rdma_cm_id *id, sockaddr *address) {
    const int error = CM(rdma_bind_addr)(id, address);
    if (error == 0)
        set_bound(id);
    return error;
}

EXPORTED int rdma_resolve_addr(rdma_cm_id *id, sockaddr *source, sockaddr *destination,
                               int timeout) {
    const int error = CM(rdma_resolve_addr)(id, source, destination, timeout);
    if (error == 0)
        set_bound(id);
    return error;
}

EXPORTED int rdma_listen(rdma_cm_id *id, int backlog) {
    {
        const Call call = CALL;
        const Lock lock;
        const Object *const object = find(id);
        if (object != nullptr && !object->is_bound)
            report(Check::UNBOUND, call, "the ID has no address");
    }
    return CM(rdma_listen)(id, backlog);
}

EXPORTED int rdma_connect(rdma_cm_id *id, rdma_conn_param *param) {
    check_connection(id, param, CALL);
    return CM(rdma_connect)(id, param);
}

EXPORTED int rdma_accept(rdma_cm_id *id, rdma_conn_param *param) {
    check_connection(id, param, CALL);
    return CM(rdma_accept)(id, param);
}

EXPORTED int rdma_get_cm_event(rdma_event_channel *channel, rdma_cm_event **event) {
    const Call call = CALL;
    const int error = CM(rdma_get_cm_event)(channel, event);
    if (error != 0)
        return error;
    const rdma_cm_event &got = **event;
    if (got.event == RDMA_CM_EVENT_CONNECT_REQUEST)
        add_user(Kind::ID, got.id, call, channel);
    const Lock lock;
    // librdmacm acknowledges the events of a synchronous ID.
    const Object *const made = add(Kind::EVENT, *event, call);
    if (Object *const object = made->is_internal ? nullptr : find(owner_of(&got)))
        object->events++;
    // The device of an ID was opened by librdmacm.
    if (got.id->verbs != nullptr)
        watch(got.id->verbs);
    return error;
}

EXPORTED int rdma_ack_cm_event(rdma_cm_event *event) {
    const Call call = CALL;
    {
        const Lock lock;
        Object *const known = event == nullptr ? nullptr : find(key_of(event));
        if (known != nullptr && known->kind == Kind::EVENT && known->is_dead) {
            report(Check::ACKNOWLEDGED, call, "the event was acknowledged before");
            errno = EINVAL;
            return -1;
        }
        if (known != nullptr && known->kind == Kind::EVENT) {
            Object *const object = known->is_internal ? nullptr : find(owner_of(event));
            if (object != nullptr && object->events > 0)
                object->events--;
            remove(known);
        }
    }
    return CM(rdma_ack_cm_event)(event);
}
