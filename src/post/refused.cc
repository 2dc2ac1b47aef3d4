// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// refused.cc -- log messages and codes for posts that failed

#include "post/refused.hh"

#include <algorithm>
#include <cinttypes>

#include "base/probes.hh"
#include "post/slot.hh"
#include "post/tuned.hh"
#include "verbs/text.hh"

namespace rpma {

namespace {

// The error number of a post that returned result; 0 if result is no error number. Most
// providers return an error number; cxgb4 returns it negated (c4iw_post_send()), and mthca
// returns -1 for every cause (mthca_tavor_post_send()).
int post_error(int result) {
    return result == -1 ? 0 : result < 0 ? -result : result;
}

uint64_t bytes_of(const ibv_send_wr &wr) {
    uint64_t bytes = 0;
    for (int i = 0; i < wr.num_sge; i++)
        bytes += wr.sg_list[i].length;
    return bytes;
}

// The number of bytes that the provider copies during the call.
uint64_t inline_bytes(const ibv_send_wr &wr) {
    return (wr.send_flags & IBV_SEND_INLINE) != 0 ? bytes_of(wr) : 0;
}

// The length of a slot's operation in bytes. A native one has no SGEs.
uint64_t length_of(const ibv_send_wr &wr) {
    const auto &slot = reinterpret_cast<const Slot &>(wr);
    return slot.type == RPMA_WORK_FLUSH          ? slot.flush_len
           : slot.type == RPMA_WORK_ATOMIC_WRITE ? sizeof(slot.value)
                                                 : bytes_of(wr);
}

// Records the failure or the would-block result. Is true if its log level is enabled.
bool note(Call &call, int result, bool is_answer) {
    return is_answer ? call.answers(RPMA_E_AGAIN, 0)
                     : call.fails(RPMA_E_PROVIDER, post_error(result));
}

// The advice after a failed post; room is the number of operations that the queue holds.
Text advice(int result, const char *queue, uint32_t room, const char *setting) {
    Text text;
    if (post_error(result) == 0)
        text.add(" failed, the provider gives no reason");
    if (post_error(result) == EACCES)
        text.add("; post from the process, and as the user, that opened the device");
    if (!is_full(result))
        return text;
    text.add("; the %s queue is full, it holds %" PRIu32
             ": take completions before more is posted, or make it larger with %s()",
             queue, room, setting);
    return text;
}

Text send_advice(int result, const rpma_conn &conn, uint64_t bytes) {
    const ibv_qp_cap &has = conn.granted();
    if (bytes <= has.max_inline_data)
        return advice(result, "send", has.max_send_wr, "rpma_conn_cfg_set_sq_size");
    Text text;
    text.add("; %" PRIu64 " bytes are to go inline, the connection takes %" PRIu32
             " at most: make it more with rpma_conn_cfg_set_inline_size()",
             bytes, has.max_inline_data);
    return text;
}

// "batch[2] to batch[4] (queued): ", "work[2]: ".
Text part_text(const Part *part) {
    Text text;
    if (part == nullptr)
        return text;
    text.add("%s[%" PRIu32 "]", part->array, part->first);
    if (part->first != part->last)
        text.add(" to %s[%" PRIu32 "]", part->array, part->last);
    text.add("%s: ", part->state);
    return text;
}

// Check first for too many inline bytes: a provider may return ENOMEM (mlx5) or ENOSPC
// (wr_set_inline_data() of rxe) for them, like for a full queue.
bool is_again(const rpma_conn &conn, int result, uint64_t bytes) {
    return is_full(result) && bytes <= conn.granted().max_inline_data;
}

// 0 for a message
uint32_t remote_key(const ibv_send_wr &wr) {
    switch (wr.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        return 0;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return wr.wr.atomic.rkey;
    default:
        return wr.wr.rdma.rkey;
    }
}

// The first SGE of a request, or an empty one.
template <class Request> ibv_sge first_element(const Request &wr) {
    return wr.num_sge > 0 ? wr.sg_list[0] : ibv_sge{};
}

} // namespace

// Extended queue pairs of rxe return ENOSPC (check_qp_queue_full()).
bool is_full(int result) {
    return post_error(result) == ENOMEM || post_error(result) == ENOSPC;
}

int refused_send(const char *function, const ibv_send_wr &wr, int result, const Part *part) {
    const rpma_conn &conn = kept_conn(wr);
    Call call(function);
    probe::post_refused(function, &conn, wr.opcode, wr.wr_id, result);
    if (!note(call, result, part != nullptr && is_again(conn, result, inline_bytes(wr))))
        return call.finish();
    const ibv_sge sge = first_element(wr);
    call.log(__FILE__, __LINE__, send_advice(result, conn, inline_bytes(wr)).chars,
             "%sibv_post_send(opcode=%s, remote_addr=0x%" PRIx64 ", addr=0x%" PRIx64
             ", length=%" PRIu32 ", wr_id=0x%" PRIx64 ", send_flags=%s)",
             part_text(part).chars, opcode_text(wr.opcode), wr.wr.rdma.remote_addr, sge.addr,
             sge.length, wr.wr_id, send_flags_text(wr.send_flags).chars);
    // A key grants access to the memory, so it is logged for debugging only.
    RPMA_LOG(RPMA_LOG_LEVEL_DEBUG, function, "rkey=0x%" PRIx32 ", lkey=0x%" PRIx32,
             remote_key(wr), sge.lkey);
    return call.finish();
}

int refused_natively(const char *function, const rpma_conn &conn, const ibv_send_wr &first,
                     const ibv_send_wr *end, int result, const Part *part) {
    uint64_t bytes = 0;
    for (const ibv_send_wr *wr = &first; wr != end; wr = wr->next)
        bytes = std::max(bytes, inline_bytes(*wr));
    Call call(function);
    probe::post_refused(function, &conn, first.opcode, first.wr_id, result);
    if (note(call, result, part != nullptr && is_again(conn, result, bytes)))
        call.log(__FILE__, __LINE__, send_advice(result, conn, bytes).chars,
                 "%sibv_wr_complete(first: opcode=%s, remote_addr=0x%" PRIx64
                 ", length=%" PRIu64 ", wr_id=0x%" PRIx64 ")",
                 part_text(part).chars, opcode_text(first.opcode), first.wr.rdma.remote_addr,
                 part != nullptr ? length_of(first) : bytes_of(first), first.wr_id);
    return call.finish();
}

int refuse_receive(const char *function, const ReceiveQueue &names, uint32_t room,
                   const ibv_recv_wr &wr, int result, const Part *part) {
    Call call(function);
    probe::post_refused(function, nullptr, -1, wr.wr_id, result);
    const ibv_sge sge = first_element(wr);
    if (note(call, result, part != nullptr && is_full(result)))
        call.log(__FILE__, __LINE__, advice(result, "receive", room, names.setting).chars,
                 "%s%s(addr=0x%" PRIx64 ", length=%" PRIu32 ", wr_id=0x%" PRIx64 ")",
                 part_text(part).chars, names.post, sge.addr, sge.length, wr.wr_id);
    return call.finish();
}

} // namespace rpma
