// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failures.cc -- log messages and codes for rejected operations and failed posts

#include "post/failures.hh"

#include <algorithm>
#include <cstdarg>

#include "base/probes.hh"
#include "post/entry.hh"
#include "post/full_queue.hh"

namespace rpma {

Text CallSite::prefix() const {
    Text text;
    if (array != nullptr)
        text.add("%s[%" PRIu32 "]: ", array, index);
    return text;
}

int refuse(const CallSite &site, const char *file, int line, const char *format, ...) {
    if (site.is_later)
        return RPMA_E_INVAL;
    Call call(site.function);
    if (call.record_failure(RPMA_E_INVAL, 0)) {
        Text text;
        va_list values;
        va_start(values, format);
        text.vadd(format, values);
        va_end(values);
        call.log(file, line, "", "%s%s", site.prefix().chars, text.chars);
    }
    return call.finish();
}

int refuse_flush(const CallSite &site, const rpma_conn &conn, FlushMasks region,
                 rpma_flush_type type) {
    if (site.is_later)
        return RPMA_E_NOSUPP;
    const bool is_persistent = type == RPMA_FLUSH_TYPE_PERSISTENT;
    const bool has_region = region.has_read(type);
    const FlushMasks allowed = conn.flush.allowed();
    const bool has_conn = allowed.has_read(type) || allowed.has_native(type);
    Call call(site.function);
    if (!has_conn)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%sthe other side does not advertise direct write to PMem: apply its "
                  "peer configuration with rpma_conn_apply_remote_peer_cfg() first",
                  site.prefix().chars);
    else if (!has_region)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0, "%sthe remote region was not registered with %s",
                  site.prefix().chars,
                  is_persistent ? "RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT"
                                : "RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY");
    else
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%sthe other side has no native %s flush for this region, and the connection "
                  "has no other flush method: use RPMA_FLUSH_MODE_AUTO",
                  site.prefix().chars, is_persistent ? "persistent" : "visibility");
    return call.finish();
}

int refuse_atomic(const CallSite &site, const rpma_conn &conn) {
    if (site.is_later)
        return RPMA_E_NOSUPP;
    Call call(site.function);
    if (!conn.peer.device().atomics)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%s%s has no remote atomics (IBV_ATOMIC_NONE): execute the operation on the "
                  "other side",
                  site.prefix().chars, ibv_get_device_name(conn.qp->context->device));
    else
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%sthe other side does not advertise RPMA_MR_USAGE_ATOMIC for the remote "
                  "region: register it with that usage, and transfer it with "
                  "rpma_conn_private_data_pack(), not as a descriptor",
                  site.prefix().chars);
    return call.finish();
}

namespace {

// The length of an entry's operation in bytes. A native one has no SGEs.
uint64_t length_of(const ibv_send_wr &wr) {
    const auto &entry = reinterpret_cast<const Entry &>(wr);
    return entry.type == RPMA_WORK_FLUSH          ? entry.flush_len
           : entry.type == RPMA_WORK_ATOMIC_WRITE ? sizeof(entry.value)
                                                  : bytes_of(wr);
}

// A full queue is a would-block result for a function of 1.4.
struct Rejection {
    bool is_would_block;
    int result;

    bool record(Call &call) const {
        return is_would_block ? call.record_would_block(RPMA_E_AGAIN, 0)
                              : call.record_failure(RPMA_E_PROVIDER, post_error(result));
    }
    // A line without an error number needs it.
    const char *failed() const {
        return !is_would_block && post_error(result) == 0 ? " failed" : "";
    }
};

// The advice after a failed post; room is the number of operations that the queue holds.
Text post_advice(int result, const char *queue, uint32_t room, const char *setting) {
    Text text;
    if (post_error(result) == EACCES)
        text.add("; post from the process, and as the user, that opened the device");
    if (!is_full_queue_error(result))
        return text;
    text.append("; the ", queue, " queue is full, it holds ", room,
                ": poll completions before the next post, or raise the size with ", setting,
                "()");
    return text;
}

Text send_advice(int result, const rpma_conn &conn, uint64_t bytes, const Part *part) {
    const rpma_conn::Granted &granted = conn.granted();
    Text text;
    if (!is_ready_to_send(*conn.qp))
        text.add("; the connection is not established: post after RPMA_CONN_ESTABLISHED");
    else if (part != nullptr && part->may_be_queued())
        text.add("; do not post them again");
    else if (bytes <= granted.max_inline_data)
        return post_advice(result, "send", granted.max_send_wr, "rpma_conn_cfg_set_sq_size");
    else
        text.add("; %" PRIu64 " bytes are to be sent inline, the connection allows %" PRIu32
                 " at most: raise it with rpma_conn_cfg_set_inline_size()",
                 bytes, granted.max_inline_data);
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
ibv_sge first_sge(const ibv_send_wr &wr) {
    return wr.num_sge > 0 ? wr.sg_list[0] : ibv_sge{};
}

// bytes: the number of inline bytes.
int log_send(const char *function, const rpma_conn &conn, const RejectedSend &wr,
             uint64_t bytes, const Rejection &rejection, const Part *part) {
    Call call(function);
    if (rejection.record(call)) {
        Text text = part_text(part);
        text.append("ibv_post_send(opcode=", opcode_text(wr.opcode), ", remote_addr=0x",
                    Hex{wr.remote_addr}, ", addr=0x", Hex{wr.sge.addr},
                    ", length=", wr.sge.length, ", wr_id=0x", Hex{wr.wr_id},
                    ", send_flags=", send_flags_text(wr.send_flags).chars, ")",
                    rejection.failed());
        call.log(__FILE_NAME__, __LINE__,
                 send_advice(rejection.result, conn, bytes, part).chars, "%s", text.chars);
    }
    // A key grants access to the memory, so it is logged for debugging only.
    RPMA_LOG(RPMA_LOG_LEVEL_DEBUG, function, "rkey=0x%" PRIx32 ", lkey=0x%" PRIx32, wr.rkey,
             wr.sge.lkey);
    return call.finish();
}

} // namespace

RejectedSend rejected_send(const ibv_send_wr &wr) {
    return {wr.wr_id,  wr.wr.rdma.remote_addr, first_sge(wr), remote_key(wr),
            wr.opcode, wr.send_flags};
}

int fail_unlogged(const char *function, const rpma_conn &conn, ibv_wr_opcode opcode,
                  uint64_t wr_id, int result) {
    const int error = post_error(result);
    probe::post_refused(function, &conn, opcode, wr_id, result);
    probe::failure(function, RPMA_E_PROVIDER, error, RPMA_LOG_LEVEL_ERROR);
    last_failure = {error, false};
    if (error != 0)
        errno = error;
    return RPMA_E_PROVIDER;
}

int fail_send(const char *function, const rpma_conn &conn, RejectedSend wr, int result) {
    probe::post_refused(function, &conn, wr.opcode, wr.wr_id, result);
    if (wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM)
        wr.rkey = 0;
    const uint64_t bytes = (wr.send_flags & IBV_SEND_INLINE) != 0 ? wr.sge.length : 0;
    return log_send(function, conn, wr, bytes, {false, result}, nullptr);
}

int fail_part(const char *function, const rpma_conn &conn, const ibv_send_wr &wr, int result,
              const Part &part) {
    if (!part.may_be_queued() && is_quiet_full_queue(function, conn, wr, result))
        return RPMA_E_AGAIN;
    const uint64_t bytes = inline_bytes(wr);
    const Rejection rejection = {!part.may_be_queued() && is_would_block(conn, result, bytes),
                                 result};
    probe::post_refused(function, &conn, wr.opcode, wr.wr_id, result);
    return log_send(function, conn, rejected_send(wr), bytes, rejection, &part);
}

int fail_native(const char *function, const rpma_conn &conn, const ibv_send_wr &first,
                const ibv_send_wr *end, int result, const Part *part) {
    uint64_t bytes = 0;
    for (const ibv_send_wr *wr = &first; wr != end; wr = wr->next)
        bytes = std::max(bytes, inline_bytes(*wr));
    const Rejection rejection = {part != nullptr && !part->may_be_queued() &&
                                     is_would_block(conn, result, bytes),
                                 result};
    Call call(function);
    probe::post_refused(function, &conn, first.opcode, first.wr_id, result);
    if (rejection.record(call))
        call.log(__FILE_NAME__, __LINE__, send_advice(result, conn, bytes, part).chars,
                 "%sibv_wr_complete(first: opcode=%s, remote_addr=0x%" PRIx64
                 ", length=%" PRIu64 ", wr_id=0x%" PRIx64 ")%s",
                 part_text(part).chars, opcode_text(first.opcode), first.wr.rdma.remote_addr,
                 part != nullptr ? length_of(first) : bytes_of(first), first.wr_id,
                 rejection.failed());
    return call.finish();
}

int fail_receive(const char *function, const ReceiveQueue &queue, uint32_t size,
                 RejectedReceive wr, int result, const Part *part) {
    const Rejection rejection = {part != nullptr && is_full_queue_error(result), result};
    Call call(function);
    probe::post_refused(function, nullptr, -1, wr.wr_id, result);
    if (rejection.record(call))
        call.log(__FILE_NAME__, __LINE__,
                 post_advice(result, "receive", size, queue.setting).chars,
                 "%s%s(addr=0x%" PRIx64 ", length=%" PRIu32 ", wr_id=0x%" PRIx64 ")%s",
                 part_text(part).chars, queue.post, wr.sge.addr, wr.sge.length, wr.wr_id,
                 rejection.failed());
    return call.finish();
}

} // namespace rpma
