// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cma.cc -- CM IDs: addresses, connections and options.

#include "cma.hh"

#include <cstdlib>
#include <cstring>
#include <infiniband/ib.h>
#include <unistd.h>

namespace sim {

namespace {

// Sends a request that begins with the ID and has an empty reply.
template <class Request> int simple(rdma_cm_id *id, Request request = {}) {
    Empty reply;
    request.id = shim(id)->handle;
    return result(call_on(id->channel, request, reply));
}

// Linux requires CAP_NET_BIND_SERVICE.
bool is_privileged() {
    return geteuid() == 0;
}

// cma.c, ucma_valid_param()
bool is_valid(const ShimId *id, const rdma_conn_param *param) {
    if (id->id.ps != RDMA_PS_TCP)
        return true;
    if (!param || !id->device)
        return id->id.qp && id->device;
    return (param->responder_resources == RDMA_MAX_RESP_RES ||
            param->responder_resources <= id->device->max_responder_resources) &&
           (param->initiator_depth == RDMA_MAX_INIT_DEPTH ||
            param->initiator_depth <= id->device->max_initiator_depth);
}

// cma.c, ucma_copy_conn_param_to_kern()
CmParam pack(ShimId *id, const rdma_conn_param *param) {
    CmParam packed = {};
    packed.valid = 1;
    packed.responder_resources = id->responder_resources;
    packed.initiator_depth = id->initiator_depth;
    packed.qp_num = id->id.qp ? id->id.qp->qp_num : param ? param->qp_num : 0;
    packed.srq = id->id.qp ? id->id.qp->srq != nullptr : param ? param->srq : uint8_t{0};
    packed.retry_count = packed.rnr_retry_count = 7;
    size_t length = id->connect_length;
    memcpy(packed.private_data, id->connect_data, length);
    if (param) {
        packed.flow_control = param->flow_control;
        packed.retry_count = param->retry_count < 7 ? param->retry_count : uint8_t{7};
        packed.rnr_retry_count =
            param->rnr_retry_count < 7 ? param->rnr_retry_count : uint8_t{7};
        size_t more = param->private_data ? param->private_data_len : 0;
        if (length + more >= sizeof(packed.private_data))
            more = sizeof(packed.private_data) - 1 - length;
        memcpy(packed.private_data + length, param->private_data, more);
        length += more;
    }
    packed.private_data_len = static_cast<uint8_t>(length);
    return packed;
}

uint8_t smaller(uint8_t one, uint8_t other) {
    return one < other ? one : other;
}

} // namespace

int create_id(rdma_event_channel *channel, rdma_cm_id **id, void *context,
              rdma_port_space port_space, ibv_qp_type qp_type) {
    CmCreate request = {};
    CmCreate::Reply reply;
    if (!has_devices())
        return -1;
    ShimId *const made = new_id(channel, context, port_space, qp_type);
    if (!made)
        return -1;
    request.channel = shim(made->id.channel)->handle;
    request.cookie = reinterpret_cast<uintptr_t>(made);
    request.port_space = port_space;
    request.qp_type = qp_type;
    const int error = call_on(made->id.channel, request, reply);
    if (error) {
        free_id(made);
        return fail(error);
    }
    made->handle = reply.id;
    *id = &made->id;
    return 0;
}

CmAddress pack(const sockaddr *address) {
    CmAddress packed = {};
    if (address)
        memcpy(&packed, address, sim_address_length(address));
    return packed;
}

ShimId *new_id(rdma_event_channel *channel, void *context, rdma_port_space port_space,
               ibv_qp_type qp_type) {
    ShimId *const made = static_cast<ShimId *>(calloc(1, sizeof(*made)));
    if (!made) {
        errno = ENOMEM;
        return nullptr;
    }
    made->id.channel = channel ? channel : rdma_create_event_channel();
    if (!made->id.channel) {
        free(made);
        return nullptr;
    }
    made->is_synchronous = !channel;
    made->id.context = context;
    made->id.ps = port_space;
    made->id.qp_type = qp_type;
    pthread_mutex_init(&made->mutex, nullptr);
    pthread_cond_init(&made->acked, nullptr);
    return made;
}

void free_id(ShimId *id) {
    release_device(id);
    pthread_cond_destroy(&id->acked);
    pthread_mutex_destroy(&id->mutex);
    free(id->id.route.path_rec);
    if (id->is_synchronous)
        rdma_destroy_event_channel(id->id.channel);
    free_multicasts(id);
    free(id->connect_data);
    discard(id);
}

// rdma-core 56, librdmacm/cma.c, ucma_convert_path()
static int show_path(rdma_cm_id *id, const CmRoute &route) {
    if (!route.has_path || id->route.path_rec)
        return 0;
    ibv_sa_path_rec *const path = static_cast<ibv_sa_path_rec *>(calloc(1, sizeof(*path)));
    if (!path)
        return fail(ENOMEM);
    path->dgid = route.dgid;
    path->sgid = route.sgid;
    path->hop_limit = 64;
    path->traffic_class = route.traffic_class;
    path->reversible = 1;
    path->numb_path = 1;
    path->pkey = route.pkey;
    path->mtu_selector = path->rate_selector = path->packet_life_time_selector = 2; // exactly
    path->mtu = route.mtu;
    path->rate = route.rate;
    path->packet_life_time = route.packet_life_time;
    id->route.path_rec = path;
    id->route.num_paths = 1;
    return 0;
}

int show_route(ShimId *id, const CmRoute &route) {
    rdma_addr &addr = id->id.route.addr;
    memcpy(&addr.src_storage, &route.source, sim_address_length(&route.source.any));
    memcpy(&addr.dst_storage, &route.destination, sim_address_length(&route.destination.any));
    addr.addr.ibaddr.sgid = route.sgid;
    addr.addr.ibaddr.dgid = route.dgid;
    if (route.has_device && !id->device) {
        if (use_device(id, route.node_guid))
            return -1;
        id->id.port_num = static_cast<uint8_t>(route.port);
        addr.addr.ibaddr.pkey = route.pkey;
    }
    return show_path(&id->id, route);
}

} // namespace sim

using namespace sim;

extern "C" {

int rdma_create_id(rdma_event_channel *channel, rdma_cm_id **id, void *context,
                   rdma_port_space ps) {
    return create_id(channel, id, context, ps,
                     ps == RDMA_PS_IPOIB || ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC);
}

int rdma_destroy_id(rdma_cm_id *id) {
    CmDestroy request = {};
    CmDestroy::Reply reply;
    request.id = shim(id)->handle;
    const int error = call_on(id->channel, request, reply);
    if (error)
        return fail(error);
    if (id->event)
        rdma_ack_cm_event(id->event);
    wait_for_acks(shim(id), shim(id)->events_acked, reply.events, __func__);
    free_id(shim(id));
    return 0;
}

// Returns EINVAL for an address that is missing or of an unknown family.
static int check_address(const char *function, const sockaddr *address) {
    if (address && address->sa_family == AF_IB)
        return creates_rsocket
                   ? EINVAL
                   : rdma_sim_unsupported(function, "GIDs as addresses (AF_IB) are");
    return sim_address_length(address) ? 0 : EINVAL;
}

int rdma_bind_addr(rdma_cm_id *id, sockaddr *addr) {
    CmBind request = {};
    CmBind::Reply reply;
    if (const int error = check_address("rdma_bind_addr", addr))
        return fail(error);
    request.id = shim(id)->handle;
    request.privileged = is_privileged();
    request.address = pack(addr);
    const int error = call_on(id->channel, request, reply);
    return error ? fail(error) : show_route(shim(id), reply);
}

int rdma_resolve_addr(rdma_cm_id *id, sockaddr *src_addr, sockaddr *dst_addr, int timeout_ms) {
    CmResolveAddr request = {};
    if (const int error = check_address("rdma_resolve_addr", dst_addr))
        return fail(error);
    if (src_addr && !sim_address_length(src_addr))
        return fail(EINVAL);
    request.timeout_ms = static_cast<uint32_t>(timeout_ms);
    request.privileged = is_privileged();
    request.source = pack(src_addr);
    request.destination = pack(dst_addr);
    if (simple(id, request))
        return -1;
    memcpy(&id->route.addr.dst_storage, dst_addr, sim_address_length(dst_addr));
    return complete(shim(id));
}

int rdma_resolve_route(rdma_cm_id *id, int timeout_ms) {
    CmResolveRoute request = {};
    request.timeout_ms = static_cast<uint32_t>(timeout_ms);
    return simple(id, request) ? -1 : complete(shim(id));
}

// Tells rdma-sim to start the next program; the preloaded library has it.
__attribute__((weak)) void rdma_sim_listens();

int rdma_listen(rdma_cm_id *id, int backlog) {
    CmListen request = {};
    CmListen::Reply reply;
    request.id = shim(id)->handle;
    request.backlog = backlog;
    const int error = call_on(id->channel, request, reply);
    if (!error && rdma_sim_listens)
        rdma_sim_listens();
    return error ? fail(error) : show_route(shim(id), reply);
}

int rdma_connect(rdma_cm_id *id, rdma_conn_param *param) {
    ShimId *const own = shim(id);
    CmConnect request = {};
    if (!own->device || !is_valid(own, param))
        return fail(EINVAL);
    own->initiator_depth = param && param->initiator_depth != RDMA_MAX_INIT_DEPTH
                               ? param->initiator_depth
                               : own->device->max_initiator_depth;
    own->responder_resources = param && param->responder_resources != RDMA_MAX_RESP_RES
                                   ? param->responder_resources
                                   : own->device->max_responder_resources;
    request.ece = own->local_ece;
    request.param = pack(own, param);
    if (simple(id, request))
        return -1;
    own->connect_length = 0;
    return complete(own);
}

int rdma_accept(rdma_cm_id *id, rdma_conn_param *param) {
    ShimId *const own = shim(id);
    CmAccept request = {};
    if (!own->device || !is_valid(own, param))
        return fail(EINVAL);
    own->initiator_depth =
        param && param->initiator_depth != RDMA_MAX_INIT_DEPTH
            ? param->initiator_depth
            : smaller(own->initiator_depth, own->device->max_initiator_depth);
    own->responder_resources =
        param && param->responder_resources != RDMA_MAX_RESP_RES
            ? param->responder_resources
            : smaller(own->responder_resources, own->device->max_responder_resources);
    const bool is_ud = id->qp_type == IBV_QPT_UD;
    if (!is_ud && (modify_to_rtr(own, own->responder_resources) ||
                   modify_to_rts(own, own->initiator_depth)))
        return -1;
    request.cookie = reinterpret_cast<uintptr_t>(own);
    request.ece = own->local_ece;
    request.param = pack(own, param);
    if (simple(id, request)) {
        const int error = errno;
        modify_to_error(own);
        return fail(error);
    }
    if (!is_ud)
        return complete(own);
    if (own->is_synchronous && id->event) {
        rdma_ack_cm_event(id->event);
        id->event = nullptr;
    }
    return 0;
}

// cma.c, rdma_establish(): for IDs without a QP.
int rdma_establish(rdma_cm_id *id) {
    return id->qp ? fail(EINVAL) : simple<CmAccept>(id);
}

static int reject(rdma_cm_id *id, const void *private_data, uint8_t length, uint32_t reason) {
    CmReject request = {};
    request.reason = reason;
    if (private_data && length) {
        request.private_data_len = length;
        memcpy(request.private_data, private_data, length);
    }
    return simple(id, request);
}

// enum ib_cm_rej_reason
int rdma_reject(rdma_cm_id *id, const void *private_data, uint8_t private_data_len) {
    return reject(id, private_data, private_data_len, 28);
}
int rdma_reject_ece(rdma_cm_id *id, const void *private_data, uint8_t private_data_len) {
    return reject(id, private_data, private_data_len, 35);
}

int rdma_notify(rdma_cm_id *id, ibv_event_type event) {
    CmNotify request = {};
    request.event = event;
    return simple(id, request);
}

int rdma_disconnect(rdma_cm_id *id) {
    if (!shim(id)->device)
        return fail(EINVAL);
    // On iWARP, the connection manager moves the QP.
    if (!shim(id)->device->is_iwarp && modify_to_error(shim(id)))
        return -1;
    return simple<CmDisconnect>(id) ? -1 : complete(shim(id));
}

int rdma_set_option(rdma_cm_id *id, int level, int optname, void *optval, size_t optlen) {
    CmSetOption request = {};
    request.level = static_cast<uint32_t>(level);
    request.name = static_cast<uint32_t>(optname);
    request.length = static_cast<uint32_t>(optlen);
    if (optlen == 1)
        request.value = *static_cast<const uint8_t *>(optval);
    else if (optlen == sizeof(request.value))
        memcpy(&request.value, optval, sizeof(request.value));
    return simple(id, request);
}

int rdma_migrate_id(rdma_cm_id *id, rdma_event_channel *channel) {
    ShimId *const own = shim(id);
    CmMigrate request = {};
    CmMigrate::Reply reply;
    const bool is_synchronous = !channel;
    if (own->is_synchronous && is_synchronous)
        return fail(EINVAL);
    if (is_synchronous)
        channel = rdma_create_event_channel();
    if (!channel)
        return -1;
    request.id = own->handle;
    request.channel = shim(channel)->handle;
    const int error = call_on(channel, request, reply);
    if (error) {
        if (is_synchronous)
            rdma_destroy_event_channel(channel);
        return fail(error);
    }
    if (own->is_synchronous) {
        if (id->event)
            rdma_ack_cm_event(id->event);
        id->event = nullptr;
        rdma_destroy_event_channel(id->channel);
    }
    own->is_synchronous = is_synchronous;
    id->channel = channel;
    wait_for_acks(own, own->events_acked, reply.events, __func__);
    return 0;
}

int rdma_set_local_ece(rdma_cm_id *id, ibv_ece *ece) {
    if (!id || !ece)
        return fail(EINVAL);
    shim(id)->local_ece = *ece;
    return 0;
}

int rdma_get_remote_ece(rdma_cm_id *id, ibv_ece *ece) {
    if (!id || id->qp || !ece)
        return fail(EINVAL);
    *ece = shim(id)->remote_ece;
    return 0;
}

} // extern "C"
