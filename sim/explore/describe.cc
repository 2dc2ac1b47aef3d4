// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// describe.cc -- the steps of a schedule as text

#include "schedule.hh"

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
    {IBV_WC_RECV_RDMA_WITH_IMM, "receive"},
    {sim::WC_FLUSH, "flush"},
    {sim::WC_ATOMIC_WRITE, "atomic write"},
};

constexpr Name STATUSES[] = {
    {IBV_WC_SUCCESS, "success"},
    {IBV_WC_LOC_LEN_ERR, "LOC_LEN_ERR"},
    {IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR"},
    {IBV_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR"},
    {IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR"},
    {IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR"},
    {IBV_WC_REM_OP_ERR, "REM_OP_ERR"},
    {IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR"},
};

template <class T> T at(const std::vector<std::byte> &bytes, size_t offset) {
    T value{};
    if (bytes.size() >= offset + sizeof(T))
        memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

std::string describe_post(const char *call, const std::vector<std::byte> &request) {
    const auto count = at<sim::PostSend>(request, 0).count;
    std::string text = std::string(call) + ":";
    size_t offset = sizeof(sim::PostSend);
    for (uint32_t i = 0; i < count; i++) {
        const auto wr = at<sim::SendWr>(request, offset);
        text += (i == 0 ? " " : ", ") + name_of(OPERATIONS, wr.opcode, "operation");
        offset += sizeof(wr) + wr.num_sge * sizeof(ibv_sge) + (wr.inline_length + 7) / 8 * 8;
    }
    return text;
}

} // namespace

std::string describe(const sim::CallName *call, const std::vector<std::byte> &request,
                     int error, const sim::Reply &reply) {
    const auto op = at<uint32_t>(request, 0);
    std::string text = op == sim::OP_PERSIST ? "makes memory persistent" : "";
    if (call != nullptr && call->is_traced)
        text = call->name;
    if (op == sim::OP_POST_SEND) {
        text = describe_post(call->name, request);
        error = at<sim::PostSend::Reply>(reply.bytes, 0).error;
    } else if (op == sim::OP_TAKE_EVENT && reply.bytes.size() > sizeof(sim::TakeEvent::Reply)) {
        const auto event = at<sim::CmEvent>(reply.bytes, sizeof(sim::TakeEvent::Reply));
        text += ": " + short_name(static_cast<int>(event.type));
    }
    if (error != 0 && !text.empty())
        text += std::string(", which fails: ") + strerror(error);
    return text;
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

std::string describe(const ibv_wc &wc) {
    // The opcode of a failed completion is undefined.
    if (wc.status != IBV_WC_SUCCESS)
        return "a completion arrives: " + name_of_status(wc.status);
    return "a completion arrives: " + name_of(COMPLETIONS, wc.opcode, "operation") +
           ", success";
}
