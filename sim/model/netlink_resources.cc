// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// netlink_resources.cc -- the objects of a device, by NETLINK_RDMA. See netlink.cc.

#include "netlink_handler.hh"

#include <cerrno>

namespace sim {

// A listener of any address has an ID on each device: core/cma.c, cma_listen_on_dev().
static bool is_listener_of_all(const CmId &id) {
    return !id.device && id.state == SIM_CM_LISTENING;
}

bool Handler::is_listed(const Object &object, const Device &device) const {
    if (!object.session || object.session->host != device.host)
        return false;
    if (object.kind != Object::CM_ID)
        return Verbs::context_of(object)->device == &device;
    const auto &id = static_cast<const CmId &>(object);
    return is_listener_of_all(id) || id.is_attached_to(device);
}

// core/mad.c, ib_mad_port_open(): ib_core has a PD, a CQ and QPs for MADs.
std::vector<Entry> Handler::entries_of(const Resource &resource, const Device &device) const {
    std::vector<Entry> entries;
    const sim_transport transport = device.profile->transport;
    if (transport != SIM_IWARP && (resource.kind == Object::PD || resource.kind == Object::CQ))
        entries.push_back({nullptr, 0});
    for (const auto &[handle, object] : fabric_.objects())
        if (object->kind == resource.kind && is_listed(*object, device))
            entries.push_back({object.get(), resource.kind == Object::QP
                                                 ? static_cast<const Qp &>(*object).number
                                                 : handle});
    // core/restrack.c, rdma_restrack_add(): their numbers contain the port.
    if (resource.kind == Object::QP && transport == SIM_INFINIBAND)
        entries.push_back({nullptr, PORT << 24 | QPT_SMI});
    if (resource.kind == Object::QP && transport != SIM_IWARP)
        entries.push_back({nullptr, PORT << 24 | QPT_GSI});
    return entries;
}

// fill_res_name_pid()
static void fill_owner(const Entry &entry, Attributes &to) {
    if (!entry.object)
        to.put_string(RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core");
    else if (entry.object->pid != 0)
        to.put(RDMA_NLDEV_ATTR_RES_PID, static_cast<uint32_t>(entry.object->pid));
}

// fill_res_qp_entry(). The functions return true if the object belongs to port 1.
bool Handler::fill_qp(const Entry &entry, Attributes &to) {
    const auto *const qp = static_cast<const Qp *>(entry.object);
    const uint8_t type = qp ? static_cast<uint8_t>(qp->type) : entry.number & 0xff;
    const bool has_port = !qp || qp->attr.port_num == PORT;
    if (has_port)
        to.put(RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    to.put(RDMA_NLDEV_ATTR_RES_LQPN, qp ? qp->number : entry.number & 0xff);
    if (qp && qp->pd)
        to.put(RDMA_NLDEV_ATTR_RES_PDN, qp->pd->handle);
    fill_owner(entry, to);
    const bool is_connected = type == IBV_QPT_RC || type == IBV_QPT_UC;
    if (is_connected) {
        to.put(RDMA_NLDEV_ATTR_RES_RQPN, uint32_t{qp->attr.dest_qp_num});
        to.put(RDMA_NLDEV_ATTR_RES_RQ_PSN, uint32_t{qp->attr.rq_psn});
    }
    to.put(RDMA_NLDEV_ATTR_RES_SQ_PSN, qp ? qp->attr.sq_psn : 0U);
    if (is_connected)
        to.put(RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE,
               static_cast<uint8_t>(qp->attr.path_mig_state));
    to.put(RDMA_NLDEV_ATTR_RES_TYPE, type);
    to.put(RDMA_NLDEV_ATTR_RES_STATE,
           static_cast<uint8_t>(qp ? static_cast<int>(qp->attr.qp_state) : QPS_RTS));
    return has_port;
}

// enum rdma_cm_state
static uint8_t state_of(const CmId &id) {
    switch (id.state) {
    case SIM_CM_IDLE:
        return 0;
    case SIM_CM_BOUND:
        return 7;
    case SIM_CM_RESOLVING:
        return 1;
    case SIM_CM_RESOLVED:
        return 2;
    case SIM_CM_ROUTING:
        return 3;
    case SIM_CM_ROUTED:
        return 4;
    case SIM_CM_LISTENING:
        return 8;
    default:
        return id.is_disconnected ? 6 : 5; // DISCONNECT, CONNECT
    }
}

static void put_address(unsigned type, const CmAddress &address, Attributes &to) {
    sockaddr_storage full{};
    memcpy(&full, &address, sizeof(address));
    if (full.ss_family != 0)
        to.put(type, full);
}

// fill_res_cm_id_entry()
bool Handler::fill_cm_id(const Entry &entry, Attributes &to) {
    const auto &id = static_cast<const CmId &>(*entry.object);
    if (id.device)
        to.put(RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    if (id.local.qp_num != 0) {
        to.put(RDMA_NLDEV_ATTR_RES_LQPN, id.local.qp_num);
        to.put(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<uint8_t>(id.qp_type));
    }
    to.put(RDMA_NLDEV_ATTR_RES_PS, uint32_t{id.port_space});
    to.put(RDMA_NLDEV_ATTR_RES_STATE, state_of(id));
    put_address(RDMA_NLDEV_ATTR_RES_SRC_ADDR, id.source, to);
    put_address(RDMA_NLDEV_ATTR_RES_DST_ADDR, id.destination, to);
    to.put(RDMA_NLDEV_ATTR_RES_CM_IDN, entry.number);
    fill_owner(entry, to);
    return id.device;
}

// fill_res_cq_entry(). core/mad.c: 128 and 512 entries, IB_POLL_UNBOUND_WORKQUEUE
bool Handler::fill_cq(const Entry &entry, Attributes &to) {
    const auto *const cq = static_cast<const Cq *>(entry.object);
    to.put(RDMA_NLDEV_ATTR_RES_CQE, cq ? cq->entries : 640U);
    to.put(RDMA_NLDEV_ATTR_RES_USECNT, uint64_t{cq ? cq->users : 2U});
    if (!cq)
        to.put(RDMA_NLDEV_ATTR_RES_POLL_CTX, uint8_t{2});
    to.put(RDMA_NLDEV_ATTR_DEV_DIM, uint8_t{0});
    to.put(RDMA_NLDEV_ATTR_RES_CQN, entry.number);
    if (cq)
        to.put(RDMA_NLDEV_ATTR_RES_CTXN, cq->context->handle);
    fill_owner(entry, to);
    return true;
}

// fill_res_mr_entry()
bool Handler::fill_mr(const Entry &entry, Attributes &to) {
    const auto &mr = static_cast<const Mr &>(*entry.object);
    if (request_.is_admin) {
        to.put(RDMA_NLDEV_ATTR_RES_RKEY, mr.key);
        to.put(RDMA_NLDEV_ATTR_RES_LKEY, mr.key);
    }
    to.put(RDMA_NLDEV_ATTR_RES_MRLEN, mr.length);
    to.put(RDMA_NLDEV_ATTR_RES_MRN, entry.number);
    to.put(RDMA_NLDEV_ATTR_RES_PDN, mr.pd->handle);
    fill_owner(entry, to);
    return true;
}

// fill_stat_mr_entry()
bool Handler::fill_mr_statistics(const Entry &entry, Attributes &to) {
    to.put(RDMA_NLDEV_ATTR_RES_MRN, entry.number);
    return true;
}

// fill_res_pd_entry()
bool Handler::fill_pd(const Entry &entry, Attributes &to) {
    const auto *const pd = static_cast<const Pd *>(entry.object);
    if (request_.is_admin)
        to.put(RDMA_NLDEV_ATTR_RES_LOCAL_DMA_LKEY, uint32_t{0});
    to.put(RDMA_NLDEV_ATTR_RES_USECNT, uint64_t{pd ? pd->users : 1U});
    to.put(RDMA_NLDEV_ATTR_RES_PDN, entry.number);
    if (pd)
        to.put(RDMA_NLDEV_ATTR_RES_CTXN, pd->context->handle);
    fill_owner(entry, to);
    return true;
}

// fill_res_ctx_entry()
bool Handler::fill_context(const Entry &entry, Attributes &to) {
    to.put(RDMA_NLDEV_ATTR_RES_CTXN, entry.number);
    fill_owner(entry, to);
    return true;
}

// fill_res_srq_qps(): ranges of numbers, as many as an attribute has room for
void Handler::fill_qps_of(const Srq &srq, Attributes &to) {
    std::vector<std::pair<uint32_t, uint32_t>> ranges;
    for (const auto &[handle, object] : fabric_.objects()) {
        if (object->kind != Object::QP || static_cast<const Qp &>(*object).srq != &srq)
            continue;
        const uint32_t number = static_cast<const Qp &>(*object).number;
        if (ranges.empty() || number != ranges.back().second + 1)
            ranges.emplace_back(number, number);
        ranges.back().second = number;
    }
    const size_t table = to.nest(RDMA_NLDEV_ATTR_RES_QP | NLA_F_NESTED);
    for (const auto &[first, last] : ranges) {
        if (to.bytes.size() > MAX_MESSAGE_BYTES)
            break;
        const size_t entry = to.nest(RDMA_NLDEV_ATTR_RES_QP_ENTRY | NLA_F_NESTED);
        if (first == last) {
            to.put(RDMA_NLDEV_ATTR_RES_LQPN, first);
        } else {
            to.put(RDMA_NLDEV_ATTR_MIN_RANGE, first);
            to.put(RDMA_NLDEV_ATTR_MAX_RANGE, last);
        }
        to.unnest(entry);
    }
    to.unnest(table);
}

// fill_res_srq_entry()
bool Handler::fill_srq(const Entry &entry, Attributes &to) {
    const auto &srq = static_cast<const Srq &>(*entry.object);
    to.put(RDMA_NLDEV_ATTR_RES_SRQN, entry.number);
    to.put(RDMA_NLDEV_ATTR_RES_TYPE, uint8_t{0}); // IB_SRQT_BASIC
    to.put(RDMA_NLDEV_ATTR_RES_PDN, srq.pd->handle);
    fill_qps_of(srq, to);
    fill_owner(entry, to);
    return true;
}

// res_get_common_doit()
int Handler::get_resource(const NetlinkRequest &request) {
    const Resource &resource = *resource_;
    const Device *const device = device_of(request);
    const bool is_of_port = request.has(RDMA_NLDEV_ATTR_PORT_INDEX);
    if (!device || !request.has(resource.id) || (is_of_port && !has_port(request)) ||
        is_of_port == resource.is_of_device)
        return EINVAL;
    const std::vector<Entry> entries = entries_of(resource, *device);
    const auto found = std::ranges::find_if(
        entries, [&](const Entry &each) { return each.number == request.number(resource.id); });
    if (found == entries.end())
        return ENOENT;
    begin(*device);
    return (this->*resource.fill)(*found, made_) || !is_of_port ? end() : EAGAIN;
}

// res_get_common_dumpit(): without entries, there is no message.
int Handler::dump_resource(const NetlinkRequest &request, const Resource &resource) {
    const Device *const device = device_of(request);
    const bool is_of_port = request.has(RDMA_NLDEV_ATTR_PORT_INDEX);
    if (!device || (is_of_port && !has_port(request)))
        return EINVAL;
    return dump_entries(resource, *device, is_of_port);
}

int Handler::dump_entries(const Resource &resource, const Device &device, bool is_of_port) {
    const std::vector<Entry> entries = entries_of(resource, device);
    uint32_t i = request_.start;
    while (i < entries.size() && messages_.size() < MAX_REPLY) {
        begin(device);
        const size_t table = made_.nest(resource.table);
        for (; i < entries.size() && made_.bytes.size() < MAX_MESSAGE_BYTES / 2; i++) {
            const size_t entry = made_.nest(resource.entry);
            if ((this->*resource.fill)(entries[i], made_) || !is_of_port)
                made_.unnest(entry);
            else
                made_.bytes.resize(entry);
        }
        made_.unnest(table);
        end();
    }
    next_ = i < entries.size() ? i : 0;
    return 0;
}

} // namespace sim
