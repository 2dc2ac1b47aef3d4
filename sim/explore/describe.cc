// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// describe.cc -- the steps of a schedule as text

#include "trace.hh"

#include <arpa/inet.h>
#include <cstdarg>
#include <cstring>

#include "../device/rules.h"
#include "../protocol/protocol_cm.hh"

namespace {

struct Name {
    uint32_t number;
    const char *name;
};

template <size_t N>
std::string name_of(const Name (&names)[N], uint32_t number, const char *kind) {
    for (const Name &each : names)
        if (each.number == number)
            return each.name;
    return std::string(kind) + " " + std::to_string(number);
}

std::string short_name(int event) {
    constexpr std::string_view PREFIX = "RDMA_CM_EVENT_";
    std::string_view name = sim_cm_event_name(event);
    if (name.starts_with(PREFIX))
        name.remove_prefix(PREFIX.size());
    return std::string(name);
}

constexpr Name OPERATIONS[] = {
    {IBV_WR_RDMA_WRITE, "write"},
    {IBV_WR_RDMA_WRITE_WITH_IMM, "write with immediate data"},
    {IBV_WR_SEND, "send"},
    {IBV_WR_SEND_WITH_IMM, "send with immediate data"},
    {IBV_WR_SEND_WITH_INV, "send with invalidate"},
    {IBV_WR_LOCAL_INV, "local invalidate"},
    {IBV_WR_BIND_MW, "bind of a memory window"},
    {IBV_WR_RDMA_READ, "read"},
    {IBV_WR_ATOMIC_CMP_AND_SWP, "compare and swap"},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, "fetch and add"},
    {SIM_WR_FLUSH, "flush"},
    {SIM_WR_ATOMIC_WRITE, "atomic write"},
};

constexpr Name COMPLETIONS[] = {
    {IBV_WC_SEND, "send"},
    {IBV_WC_RDMA_WRITE, "write"},
    {IBV_WC_RDMA_READ, "read"},
    {IBV_WC_COMP_SWAP, "compare and swap"},
    {IBV_WC_FETCH_ADD, "fetch and add"},
    {IBV_WC_RECV, "receive"},
    {IBV_WC_RECV_RDMA_WITH_IMM, "receive of immediate data"},
    {IBV_WC_LOCAL_INV, "local invalidate"},
    {IBV_WC_BIND_MW, "bind of a memory window"},
    {sim::WC_FLUSH, "flush"},
    {sim::WC_ATOMIC_WRITE, "atomic write"},
};

constexpr Name STATUSES[] = {
    {IBV_WC_SUCCESS, "success"},
    {IBV_WC_LOC_LEN_ERR, "LOC_LEN_ERR"},
    {IBV_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR"},
    {IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR"},
    {IBV_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR"},
    {IBV_WC_MW_BIND_ERR, "MW_BIND_ERR"},
    {IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR"},
    {IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR"},
    {IBV_WC_REM_OP_ERR, "REM_OP_ERR"},
    {IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR"},
};

constexpr Name FLAGS[] = {
    {IBV_SEND_SIGNALED, "signaled"},
    {IBV_SEND_FENCE, "fence"},
    {IBV_SEND_SOLICITED, "solicited"},
};

constexpr size_t SHOWN_REQUESTS = 4; // of a call, in its text

template <class T> T at(const std::vector<std::byte> &bytes, size_t offset) {
    T value{};
    if (bytes.size() >= offset + sizeof(T))
        memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

__attribute__((format(printf, 1, 2))) std::string text_of(const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return text;
}

std::string range(uint64_t address, uint64_t length) {
    return text_of("%llu byte%s at 0x%llx", static_cast<unsigned long long>(length),
                   length == 1 ? "" : "s", static_cast<unsigned long long>(address));
}

std::string qp_of(const sim::Fabric &fabric, uint32_t handle, std::string_view prefix) {
    const auto found = fabric.objects().find(handle);
    if (found == fabric.objects().end())
        return "";
    if (found->second->kind == sim::Object::QP)
        return std::string(prefix) + "QP " +
               std::to_string(static_cast<const sim::Qp &>(*found->second).number);
    return std::string(prefix) + (found->second->kind == sim::Object::SRQ ? "SRQ " : "CQ ") +
           std::to_string(handle);
}

// The SGEs at the offset. Adds their length.
std::string sges_of(const std::vector<std::byte> &request, size_t offset, uint32_t count,
                    uint64_t &length) {
    std::string text;
    for (uint32_t i = 0; i < count; i++) {
        const auto sge = at<ibv_sge>(request, offset + i * sizeof(ibv_sge));
        length += sge.length;
        if (i < SHOWN_REQUESTS)
            text += (i == 0 ? "" : " + ") + range(sge.addr, sge.length);
    }
    if (count > SHOWN_REQUESTS)
        text += text_of(" + %zu more SGEs", count - SHOWN_REQUESTS);
    return text.empty() ? "0 bytes" : text;
}

// The address of a datagram.
std::string address_of(const sim::Fabric &fabric, uint32_t handle) {
    const auto found = fabric.objects().find(handle);
    if (found == fabric.objects().end() || found->second->kind != sim::Object::AH)
        return "";
    const ibv_ah_attr &attr = static_cast<const sim::Ah &>(*found->second).attr;
    char text[INET6_ADDRSTRLEN];
    return attr.is_global == 0 ? text_of(" at LID %u", attr.dlid)
                               : std::string(" at GID ") +
                                     inet_ntop(AF_INET6, attr.grh.dgid.raw, text, sizeof(text));
}

std::string remote_of(const sim::Fabric &fabric, const sim::SendWr &wr) {
    const auto target = static_cast<unsigned long long>(wr.remote_addr);
    switch (wr.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case SIM_WR_ATOMIC_WRITE:
        return text_of(" -> 0x%llx, rkey 0x%x", target, wr.rkey);
    case IBV_WR_RDMA_READ:
        return text_of(" <- 0x%llx, rkey 0x%x", target, wr.rkey);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return text_of(" <- 0x%llx, rkey 0x%x, if %s then %s", target, wr.rkey,
                       describe(wr.compare_add, wr.swap).c_str(),
                       describe(wr.swap, wr.compare_add).c_str());
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return text_of(" <- 0x%llx, rkey 0x%x, adds %s", target, wr.rkey,
                       describe(wr.compare_add).c_str());
    default:
        return wr.remote_qpn == 0
                   ? ""
                   : text_of(" -> QP %u", wr.remote_qpn) + address_of(fabric, wr.ah);
    }
}

std::string sends_of(const sim::Fabric &fabric, const std::vector<std::byte> &request) {
    const auto count = at<sim::PostSend>(request, 0).count;
    size_t offset = sizeof(sim::PostSend);
    std::string text;
    for (uint32_t i = 0; i < count && i < SHOWN_REQUESTS; i++) {
        const auto wr = at<sim::SendWr>(request, offset);
        offset += sizeof(wr);
        uint64_t length = 0;
        text += (i == 0 ? ", " : "; ") + describe(wr) + ": ";
        if (wr.opcode == SIM_WR_FLUSH)
            text += range(wr.remote_addr, wr.flush_length) + text_of(", rkey 0x%x", wr.rkey);
        else if (wr.opcode == SIM_WR_ATOMIC_WRITE)
            text += "8 bytes";
        else if (wr.inline_length > 0)
            text += text_of("%u bytes inline", wr.inline_length);
        else
            text += sges_of(request, offset, wr.num_sge, length);
        text += remote_of(fabric, wr);
        for (const Name &flag : FLAGS)
            if ((wr.flags & flag.number) != 0)
                text += std::string(", ") + flag.name;
        offset += wr.num_sge * sizeof(ibv_sge) + (wr.inline_length + 7) / 8 * 8;
    }
    if (count > SHOWN_REQUESTS)
        text += text_of("; and %zu more", count - SHOWN_REQUESTS);
    return text;
}

// A run of receives is folded, unless their lengths differ.
void add_receives(const std::vector<std::byte> &request, Step &step) {
    const auto count = at<sim::PostRecv>(request, 0).count;
    size_t offset = sizeof(sim::PostRecv);
    std::string text;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const auto wr = at<sim::RecvWr>(request, offset);
        uint64_t length = 0;
        const std::string sges = sges_of(request, offset + sizeof(wr), wr.num_sge, length);
        (i == 0 ? step.first : step.last) = wr.wr_id;
        if (i < SHOWN_REQUESTS)
            text += (i == 0 ? ", wr_id=" : "; wr_id=") + describe(wr.wr_id) + ": " + sges;
        offset += sizeof(wr) + wr.num_sge * sizeof(ibv_sge);
        bytes = length;
    }
    if (count == 1) {
        step.last = step.first;
        step.series =
            step.what + text_of(", %llu bytes", static_cast<unsigned long long>(bytes));
    }
    step.what += text;
    if (count > SHOWN_REQUESTS)
        step.what += text_of("; and %zu more, up to wr_id=", count - SHOWN_REQUESTS) +
                     describe(step.last);
}

void describe_event(const sim::Fabric &fabric, const sim::Reply &reply,
                    const std::vector<std::byte> &request, Step &step) {
    const auto event = at<sim::TakeEvent::Reply>(reply.bytes, 0);
    const auto found = fabric.objects().find(at<sim::TakeEvent>(request, 0).channel);
    if (found == fabric.objects().end() || reply.bytes.empty())
        return;
    const auto purpose = static_cast<const sim::Channel &>(*found->second).purpose;
    if (purpose == sim::Channel::CONNECTIONS) {
        const auto about = at<sim::CmEvent>(reply.bytes, sizeof(sim::TakeEvent::Reply));
        step.what += ": " + short_name(static_cast<int>(about.type));
        if (about.status != 0)
            step.what += text_of(", status %d", about.status);
    } else if (purpose == sim::Channel::ASYNC) {
        step.what +=
            std::string(": ") + ibv_event_type_str(static_cast<ibv_event_type>(event.type));
    } else {
        for (const auto &[handle, object] : fabric.objects())
            if (object->kind == sim::Object::CQ && object->cookie == event.cookie &&
                static_cast<const sim::Cq &>(*object).channel == found->second.get())
                step.what += ": CQ " + std::to_string(handle);
    }
}

// The details of a call.
void add_details(const sim::Fabric &fabric, const std::vector<std::byte> &request,
                 const sim::Reply &reply, Step &step) {
    switch (at<uint32_t>(request, 0)) {
    case sim::OP_POST_SEND:
        step.what +=
            qp_of(fabric, at<sim::PostSend>(request, 0).qp, ": ") + sends_of(fabric, request);
        return;
    case sim::OP_POST_RECV:
        step.what += qp_of(fabric, at<sim::PostRecv>(request, 0).queue, ": ");
        return add_receives(request, step);
    case sim::OP_REQ_NOTIFY: {
        const auto notify = at<sim::ReqNotify>(request, 0);
        step.what += qp_of(fabric, notify.cq, ": ");
        step.what += notify.solicited_only != 0 ? ", solicited only" : "";
        return;
    }
    case sim::OP_TAKE_EVENT:
        return describe_event(fabric, reply, request, step);
    case sim::OP_REG_MR: {
        const auto region = at<sim::RegMr>(request, 0);
        step.what += ": " + range(region.address, region.length);
        if (!reply.bytes.empty())
            step.what += text_of(", key 0x%x", at<sim::RegMr::Reply>(reply.bytes, 0).rkey);
        return;
    }
    case sim::OP_CREATE_CQ:
        if (!reply.bytes.empty())
            step.what += qp_of(fabric, at<sim::CreateCq::Reply>(reply.bytes, 0).cq, ": ");
        return;
    case sim::OP_CREATE_QP:
        if (const auto wanted = at<sim::CreateQp>(request, 0); !reply.bytes.empty())
            step.what += qp_of(fabric, at<sim::CreateQp::Reply>(reply.bytes, 0).qp, ": ") +
                         qp_of(fabric, wanted.send_cq, ", sends in ") +
                         qp_of(fabric, wanted.recv_cq, ", receives in ") +
                         qp_of(fabric, wanted.srq, " from ");
        return;
    case sim::OP_PERSIST: {
        const auto own = at<sim::Persist>(request, 0);
        step.what += ": " + range(own.address, own.length);
        return;
    }
    default:
        return;
    }
}

} // namespace

std::string describe(uint64_t number, uint64_t next_to) {
    return text_of((number | next_to) < (uint64_t{1} << 32) ? "%llu" : "0x%llx",
                   static_cast<unsigned long long>(number));
}

std::string describe(const sim::SendWr &wr) {
    return name_of(OPERATIONS, wr.opcode, "operation") + " wr_id=" + describe(wr.wr_id);
}

Step describe(const sim::Fabric &fabric, const sim::CallName *call,
              const std::vector<std::byte> &request, int error, const sim::Reply &reply) {
    const auto op = at<uint32_t>(request, 0);
    Step step{};
    step.what = op == sim::OP_PERSIST ? "makes memory persistent" : "";
    if (call != nullptr && call->is_traced)
        step.what = call->name;
    if (step.what.empty())
        return step;
    add_details(fabric, request, reply, step);
    if ((op == sim::OP_POST_SEND || op == sim::OP_POST_RECV) && !reply.bytes.empty())
        error = at<sim::PostSend::Reply>(reply.bytes, 0).error;
    step.is_post = op == sim::OP_POST_SEND || op == sim::OP_POST_RECV || op == sim::OP_PERSIST;
    step.has_failed = error != 0;
    if (error != 0) {
        step.what += std::string(", which fails: ") + strerror(error);
        step.series.clear();
    }
    return step;
}

std::string name_of_status(uint32_t status) {
    return name_of(STATUSES, status, "status");
}

std::vector<uint32_t> known_statuses() {
    std::vector<uint32_t> all;
    for (const Name &each : STATUSES)
        all.push_back(each.number);
    return all;
}

std::string describe(const sim::Cq &cq, const ibv_wc &wc) {
    // The opcode of a failed completion is undefined.
    const std::string what = wc.status == IBV_WC_SUCCESS
                                 ? " of " + name_of(COMPLETIONS, wc.opcode, "operation")
                                 : "";
    return "completion" + what + " wr_id=" + describe(wc.wr_id) + ": " +
           name_of_status(wc.status) + text_of(", QP %u, CQ %u", wc.qp_num, cq.handle);
}

std::string describe(const Step &step) {
    if (step.count == 1)
        return step.what;
    const std::string text = step.series.empty() ? step.what : step.series;
    return std::to_string(step.count) + " x " + text +
           (step.series.empty()
                ? ""
                : ", wr_id=" + describe(step.first) + " to " + describe(step.last));
}
