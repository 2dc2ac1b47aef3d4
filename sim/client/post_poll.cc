// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// post_poll.cc -- the data path of libibverbs.so.1: posting, polling, notification.

#include "encode.hh"
#include "unsupported.hh"

#include <algorithm>
#include <ctime>
#include <sched.h>

using namespace sim;

// ---- completions ---------------------------------------------------------------------------

namespace {

// A program that polls must leave the processor to the fabric and to its peers.
void back_off(unsigned empty_polls) {
    const struct timespec pause = {0, 50'000};
    if (empty_polls > 1000)
        nanosleep(&pause, nullptr);
    else if (empty_polls > 4)
        sched_yield();
}

bool take(ShimCq *cq, Completion &completion) {
    Ring &ring = *cq->ring;
    if (__atomic_load_n(&ring.added, __ATOMIC_ACQUIRE) == ring.taken)
        return false;
    completion = ring.first()[ring.taken % ring.entries];
    __atomic_store_n(&ring.taken, ring.taken + 1, __ATOMIC_RELEASE);
    return true;
}

bool writes_vendor_err(uint32_t rule, ibv_wc_status status) {
    return rule == SIM_VENDOR_ERR_ALWAYS ||
           (status != IBV_WC_SUCCESS &&
            (rule == SIM_VENDOR_ERR_FAILED ||
             (rule == SIM_VENDOR_ERR_NOT_FLUSHED && status != IBV_WC_WR_FLUSH_ERR)));
}

void keep_unwritten(uint32_t members, const ibv_wc &own, ibv_wc &to) {
    if (!(members & SIM_MEMBER_IMM_DATA) &&
        !(to.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)))
        to.imm_data = own.imm_data;
    if (!(members & SIM_MEMBER_SRC_QP))
        to.src_qp = own.src_qp;
    if (!(members & SIM_MEMBER_PKEY_INDEX))
        to.pkey_index = own.pkey_index;
    if (!(members & SIM_MEMBER_SLID))
        to.slid = own.slid;
    if (!(members & SIM_MEMBER_SL))
        to.sl = own.sl;
    if (!(members & SIM_MEMBER_DLID_PATH_BITS))
        to.dlid_path_bits = own.dlid_path_bits;
}

// Copies a completion as the driver does, which leaves members of a failed one undefined.
void copy(const ShimCq *cq, const Completion &completion, ibv_wc &to) {
    const ibv_wc &from = completion.wc;
    const DeviceInfo::Reply &device = shim_of(cq->ex.context->device)->info;
    const bool is_good = from.status == IBV_WC_SUCCESS, is_receive = from.opcode & IBV_WC_RECV,
               has_length = is_receive || from.opcode == IBV_WC_RDMA_READ ||
                            from.opcode == IBV_WC_COMP_SWAP || from.opcode == IBV_WC_FETCH_ADD;
    const uint32_t rule = is_good      ? static_cast<uint32_t>(SIM_WC_VALID)
                          : is_receive ? device.failed_receive
                                       : device.failed_send;
    const bool is_flush = from.status == IBV_WC_WR_FLUSH_ERR,
               has_no_opcode = rule == SIM_WC_BY_STATUS && is_flush;
    const ibv_wc own = to;
    if (rule == SIM_WC_VALID || rule == SIM_WC_FLUSH_IS_RECV ||
        (rule == SIM_WC_BY_STATUS && !is_flush))
        to = from;
    else if (rule == SIM_WC_ZERO)
        to = {};
    else if (rule == SIM_WC_FLAGS)
        to.wc_flags = 0;
    to.wr_id = from.wr_id;
    to.status = from.status;
    to.vendor_err =
        writes_vendor_err(device.vendor_err, from.status) ? from.vendor_err : own.vendor_err;
    const bool lacks_length =
        rule == SIM_WC_BY_STATUS ||
        (!has_length && rule == SIM_WC_VALID &&
         (is_good ? device.sent_length : device.failed_length) == SIM_LENGTH_UNTOUCHED);
    if (rule == SIM_WC_FLUSH_IS_RECV && is_flush)
        to.opcode = IBV_WC_RECV;
    if (has_no_opcode)
        to.byte_len = 0;
    else if (lacks_length)
        to.byte_len = own.byte_len;
    to.qp_num = from.qp_num;
    if (rule != SIM_WC_ZERO)
        keep_unwritten(completion.members, own, to);
}

ShimCq *shim_of_ex(ibv_cq_ex *cq) {
    return reinterpret_cast<ShimCq *>(cq);
}

int next_poll(ibv_cq_ex *ex) {
    ShimCq *const cq = shim_of_ex(ex);
    Completion taken;
    if (!take(cq, taken))
        return ENOENT;
    cq->current = {};
    cq->current.time = taken.time;
    copy(cq, taken, cq->current.wc);
    ex->status = cq->current.wc.status;
    ex->wr_id = cq->current.wc.wr_id;
    return 0;
}

// The lock is held until ibv_end_poll(), unless this fails.
int start_poll(ibv_cq_ex *ex, ibv_poll_cq_attr *attr) {
    ShimCq *const cq = shim_of_ex(ex);
    if (attr->comp_mask)
        return EINVAL;
    rdma_sim_polls(cq->ring);
    pthread_mutex_lock(&cq->lock);
    const int error = next_poll(ex);
    const unsigned empty_polls = cq->empty_polls = error ? cq->empty_polls + 1 : 0;
    if (!error)
        return 0;
    pthread_mutex_unlock(&cq->lock);
    back_off(empty_polls);
    return error;
}

void end_poll(ibv_cq_ex *ex) {
    pthread_mutex_unlock(&shim_of_ex(ex)->lock);
}

template <auto Member> auto read_member(ibv_cq_ex *ex) {
    return shim_of_ex(ex)->current.wc.*Member;
}

uint32_t read_imm(ibv_cq_ex *ex) {
    return shim_of_ex(ex)->current.wc.imm_data;
}

uint32_t read_slid(ibv_cq_ex *ex) {
    return shim_of_ex(ex)->current.wc.slid;
}

uint64_t read_time(ibv_cq_ex *ex) {
    return shim_of_ex(ex)->current.time;
}

uint64_t read_wall_clock(ibv_cq_ex *ex) {
    const auto now = [](clockid_t clock) {
        timespec time;
        clock_gettime(clock, &time);
        return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
               static_cast<uint64_t>(time.tv_nsec);
    };
    return read_time(ex) + now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
}

template <class Number> Number read_zero(ibv_cq_ex *) {
    return 0;
}

} // namespace

int sim::poll_cq(ibv_cq *ibv, int number, ibv_wc *wc) {
    ShimCq *const cq = shim_of(ibv);
    Completion completion;
    int count = 0;
    rdma_sim_polls(cq->ring);
    pthread_mutex_lock(&cq->lock);
    for (; count < number && take(cq, completion); count++)
        copy(cq, completion, wc[count]);
    const unsigned empty_polls = cq->empty_polls = count == 0 ? cq->empty_polls + 1 : 0;
    pthread_mutex_unlock(&cq->lock);
    back_off(empty_polls);
    return count;
}

// rdma-core 65, providers/mlx5/cq.c, mlx5_cq_fill_pfns(): a function that was not requested is
// NULL.
void sim::set_cq_functions(ibv_cq_ex *cq, uint64_t wc_flags) {
    const auto if_requested = [wc_flags](uint64_t flag, auto *function) {
        return wc_flags & flag ? function : nullptr;
    };
    cq->start_poll = start_poll;
    cq->next_poll = next_poll;
    cq->end_poll = end_poll;
    cq->read_opcode = read_member<&ibv_wc::opcode>;
    cq->read_vendor_err = read_member<&ibv_wc::vendor_err>;
    cq->read_wc_flags = read_member<&ibv_wc::wc_flags>;
    cq->read_byte_len = if_requested(IBV_WC_EX_WITH_BYTE_LEN, read_member<&ibv_wc::byte_len>);
    cq->read_imm_data = if_requested(IBV_WC_EX_WITH_IMM, read_imm);
    cq->read_qp_num = if_requested(IBV_WC_EX_WITH_QP_NUM, read_member<&ibv_wc::qp_num>);
    cq->read_src_qp = if_requested(IBV_WC_EX_WITH_SRC_QP, read_member<&ibv_wc::src_qp>);
    cq->read_slid = if_requested(IBV_WC_EX_WITH_SLID, read_slid);
    cq->read_sl = if_requested(IBV_WC_EX_WITH_SL, read_member<&ibv_wc::sl>);
    cq->read_dlid_path_bits =
        if_requested(IBV_WC_EX_WITH_DLID_PATH_BITS, read_member<&ibv_wc::dlid_path_bits>);
    cq->read_completion_ts = if_requested(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, read_time);
    cq->read_completion_wallclock_ns =
        if_requested(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, read_wall_clock);
    cq->read_cvlan = if_requested(IBV_WC_EX_WITH_CVLAN, read_zero<uint16_t>);
    cq->read_flow_tag = if_requested(IBV_WC_EX_WITH_FLOW_TAG, read_zero<uint32_t>);
}

int sim::req_notify_cq(ibv_cq *cq, int solicited_only) {
    ReqNotify request;
    request.cq = cq->handle;
    request.solicited_only = static_cast<uint32_t>(solicited_only);
    Empty reply;
    return call(request, reply);
}

// ---- posting -------------------------------------------------------------------------------

bool sim::append(Encoder &to, const void *bytes, size_t size) {
    if (sizeof(to.bytes) - to.used < size)
        return false;
    if (size > 0)
        memcpy(to.bytes + to.used, bytes, size);
    to.used += size;
    return true;
}

bool sim::append_padding(Encoder &to) {
    const uint64_t zero = 0;
    return to.used % 8 == 0 || append(to, &zero, 8 - to.used % 8);
}

// Calls use(kind, accepted) for each request of the encoder, with its kind and the one that the
// queue has accepted, until it returns false. Returns false then, and for requests that always
// need a reply, as their result depends on more than their kind.
template <class Use>
static bool for_each_kind(ShimQp *qp, const Encoder &encoder, bool is_built, const Use &use) {
    size_t at = 0;
    for (uint32_t i = 0; i < encoder.count; i++) {
        SendWr wr;
        ibv_sge first{};
        memcpy(&wr, encoder.bytes + at, sizeof(wr));
        at += sizeof(wr);
        if (wr.num_sge > MAX_SGES || wr.inline_length > MAX_INLINE ||
            wr.opcode >= sizeof(qp->accepted) / sizeof(*qp->accepted))
            return false;
        if (wr.num_sge > 0)
            memcpy(&first, encoder.bytes + at, sizeof(first));
        at += wr.num_sge * sizeof(first) + (wr.inline_length + 7) / 8 * 8;
        const bool is_inline = wr.flags & IBV_SEND_INLINE;
        const bool is_atomic =
            wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
        if (wr.opcode == IBV_WR_BIND_MW || wr.opcode == IBV_WR_LOCAL_INV ||
            (is_inline && wr.num_sge > 0) ||
            (is_atomic && (wr.num_sge != 1 || first.length != 8 || wr.remote_addr % 8 != 0)) ||
            !use(AcceptedSend{static_cast<uint16_t>(wr.num_sge),
                              static_cast<uint16_t>(wr.inline_length), 0, is_inline, is_built},
                 qp->accepted[wr.opcode]))
            return false;
    }
    return true;
}

static bool is_alike(const AcceptedSend &one, const AcceptedSend &other) {
    return one.is_inline == other.is_inline && one.is_built == other.is_built;
}

// Returns the units of the send queue that the requests need at most, or 0: the fabric might
// refuse them for another reason than a full queue, as sim_check_send() and sim_check_built().
static uint32_t units_of(ShimQp *qp, const Encoder &encoder, bool is_built) {
    uint32_t units = 0;
    const auto add = [&](const AcceptedSend &kind, const AcceptedSend &accepted) {
        AcceptedSend other;
        __atomic_load(&accepted, &other, __ATOMIC_RELAXED);
        units += other.units;
        return other.units > 0 && is_alike(kind, other) && kind.num_sge <= other.num_sge &&
               kind.inline_length <= other.inline_length;
    };
    return for_each_kind(qp, encoder, is_built, add) ? units : 0;
}

static void accept(ShimQp *qp, const Encoder &encoder, bool is_built, uint32_t units) {
    (void)for_each_kind(qp, encoder, is_built, [=](AcceptedSend kind, AcceptedSend &accepted) {
        kind.units = static_cast<uint16_t>(units);
        if (accepted.units > 0 && is_alike(kind, accepted)) {
            kind.num_sge = std::max(kind.num_sge, accepted.num_sge);
            kind.inline_length = std::max(kind.inline_length, accepted.inline_length);
            kind.units = std::max(kind.units, accepted.units);
        }
        __atomic_store(&accepted, &kind, __ATOMIC_RELAXED);
        return true;
    });
}

// A message with the work requests of the encoder.
template <class T>
static rdma_sim_message message_of(const T &request, const Encoder &encoder,
                                   PostSend::Reply &reply) {
    return {&request, sizeof(request), encoder.bytes, encoder.used, &reply, sizeof(reply), 0,
            -1};
}

static int send_list(ShimQp *qp, const Encoder &encoder, bool is_built, uint32_t &taken) {
    PostSend request;
    request.qp = qp->ex.qp_base.handle;
    request.count = encoder.count;
    request.is_built = is_built;
    PostSend::Reply reply{};
    rdma_sim_message message = message_of(request, encoder, reply);
    const uint32_t units = units_of(qp, encoder, is_built);
    if (units > 0 && rdma_sim_post(&message, request.qp, units)) {
        taken += encoder.count;
        return 0;
    }
    const int error = rdma_sim_call(&message);
    taken += reply.taken;
    if (error || reply.error)
        return error ? error : reply.error;
    if (reply.units > 0 && reply.taken == encoder.count)
        accept(qp, encoder, is_built, reply.units);
    return 0;
}

int sim::send_built(ibv_qp *qp, Encoder &encoder) {
    uint32_t taken = 0;
    return send_list(shim_of(qp), encoder, true, taken);
}

static int send_list(uint32_t queue, const Encoder &encoder, uint32_t &taken) {
    PostRecv request;
    request.queue = queue;
    request.count = encoder.count;
    PostSend::Reply reply{};
    rdma_sim_message message = message_of(request, encoder, reply);
    const int error = rdma_sim_call(&message);
    taken += reply.taken;
    return error ? error : reply.error;
}

static bool append_sges(Encoder &to, const ibv_sge *sges, uint32_t number) {
    return number > MAX_SGES || append(to, sges, number * sizeof(*sges));
}

static bool append_inline(Encoder &to, SendWr &head, size_t at, const ibv_sge *sges,
                          int number) {
    size_t length = 0;
    for (int i = 0; i < number; i++)
        length += sges[i].length;
    head.num_sge = 0;
    head.inline_length = static_cast<uint32_t>(length > UINT32_MAX ? UINT32_MAX : length);
    memcpy(to.bytes + at, &head, sizeof(head));
    if (length > MAX_INLINE)
        return true;
    for (int i = 0; i < number; i++)
        if (!append(to, reinterpret_cast<const void *>(sges[i].addr), sges[i].length))
            return false;
    return append_padding(to);
}

void sim::set_window(SendWr &head, const ibv_mw &mw, uint32_t rkey,
                     const ibv_mw_bind_info &info) {
    head.window = mw.handle;
    head.window_rkey = mw.rkey;
    head.rkey = rkey;
    head.region_lkey = info.mr ? info.mr->lkey : 0;
    head.remote_addr = info.addr;
    head.flush_length = info.length;
    head.window_access = info.mw_access_flags;
}

// Reads only the members that the opcode uses: valgrind reports reads of uninitialized ones.
static bool encode_send(Encoder &to, const ibv_qp *qp, const ibv_send_wr &wr) {
    const bool is_atomic =
        wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const bool is_send = wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM ||
                         wr.opcode == IBV_WR_SEND_WITH_INV;
    const bool ignores_inline = shim_of(qp->context->device)->info.ignores_inline;
    const unsigned flags = ignores_inline
                               ? wr.send_flags & ~static_cast<unsigned>(IBV_SEND_INLINE)
                               : wr.send_flags;
    const bool is_inline =
        flags & IBV_SEND_INLINE && !is_atomic && wr.opcode != IBV_WR_RDMA_READ;
    SendWr head = {};
    head.wr_id = wr.wr_id;
    head.opcode = static_cast<uint32_t>(wr.opcode);
    head.flags = flags;
    head.num_sge = static_cast<uint32_t>(wr.num_sge);
    if (wr.opcode == IBV_WR_SEND_WITH_IMM || wr.opcode == IBV_WR_SEND_WITH_INV ||
        wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM || wr.opcode == IBV_WR_LOCAL_INV)
        head.imm_data = wr.imm_data;
    if (qp->qp_type == IBV_QPT_XRC_SEND)
        head.remote_srqn = wr.qp_type.xrc.remote_srqn;
    if (qp->qp_type == IBV_QPT_UD) {
        head.ah = wr.wr.ud.ah ? wr.wr.ud.ah->handle : 0;
        head.remote_qpn = wr.wr.ud.remote_qpn;
        head.remote_qkey = wr.wr.ud.remote_qkey;
    } else if (is_atomic) {
        head.remote_addr = wr.wr.atomic.remote_addr;
        head.rkey = wr.wr.atomic.rkey;
        head.compare_add = wr.wr.atomic.compare_add;
        if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
            head.swap = wr.wr.atomic.swap;
    } else if (wr.opcode == IBV_WR_BIND_MW) {
        set_window(head, *wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info);
    } else if (!is_send && wr.opcode != IBV_WR_LOCAL_INV) {
        head.remote_addr = wr.wr.rdma.remote_addr;
        head.rkey = wr.wr.rdma.rkey;
    }
    if (wr.opcode == IBV_WR_TSO)
        rdma_sim_unsupported("ibv_post_send", "raw packets are");
    const size_t at = to.used;
    if (!append(to, &head, sizeof(head)))
        return false;
    return is_inline ? append_inline(to, head, at, wr.sg_list, wr.num_sge)
                     : append_sges(to, wr.sg_list, head.num_sge);
}

static bool encode_recv(Encoder &to, const ibv_recv_wr &wr) {
    const RecvWr head = {wr.wr_id, static_cast<uint32_t>(wr.num_sge), 0};
    return append(to, &head, sizeof(head)) && append_sges(to, wr.sg_list, head.num_sge);
}

// Sends lists in as few messages as possible; `bad` is the first request that was not taken.
// If all were taken, it is NULL, or unchanged with `keeps_bad`.
template <class Wr, class Encode, class Send>
static int post_list(Wr *wr, Wr **bad, const Encode &encode, const Send &send, bool keeps_bad) {
    static thread_local Encoder encoder;
    encoder.used = 0;
    encoder.count = 0;
    int error = 0;
    for (Wr *first = wr; wr && !error;) {
        const size_t before = encoder.used;
        const bool fits = encode(encoder, *wr);
        if (fits) {
            encoder.count++;
            wr = wr->next;
        } else {
            encoder.used = before;
        }
        if (fits && wr)
            continue;
        uint32_t taken = 0, sent = encoder.count;
        error = sent ? send(encoder, taken) : EINVAL;
        encoder.used = 0;
        encoder.count = 0;
        const bool is_refused = taken < sent; // siw_post_send() returns 0 for a refusal
        while (taken-- > 0)
            first = first->next;
        if (first || !keeps_bad)
            *bad = first;
        if (is_refused)
            break;
    }
    return error;
}

int sim::post_send(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad) {
    return post_list(
        wr, bad, [qp](Encoder &to, const ibv_send_wr &one) { return encode_send(to, qp, one); },
        [qp](Encoder &encoder, uint32_t &taken) {
            return send_list(shim_of(qp), encoder, false, taken);
        },
        shim_of(qp->context->device)->info.keeps_bad_wr);
}

static int post_receives(uint32_t queue, ibv_recv_wr *wr, ibv_recv_wr **bad, bool keeps_bad) {
    return post_list(
        wr, bad, encode_recv,
        [=](const Encoder &encoder, uint32_t &taken) {
            return send_list(queue, encoder, taken);
        },
        keeps_bad);
}

// rdma-core 56, providers/rxe/rxe.c, rxe_post_recv(): bad_wr is NULL if the QP has an SRQ, or
// is in RESET.
int sim::post_recv(ibv_qp *qp, ibv_recv_wr *wr, ibv_recv_wr **bad) {
    const auto &device = shim_of(qp->context->device)->info;
    if (qp->srq) {
        *bad = device.keeps_bad_recv ? wr : nullptr;
        return static_cast<int>(device.srq_recv_error);
    }
    const int error = post_receives(qp->handle, wr, bad, device.keeps_bad_recv);
    if (error && qp->state == IBV_QPS_RESET && !device.keeps_bad_recv)
        *bad = nullptr;
    return error;
}

int sim::post_srq_recv(ibv_srq *srq, ibv_recv_wr *wr, ibv_recv_wr **bad) {
    return post_receives(srq->handle, wr, bad,
                         shim_of(srq->context->device)->info.keeps_bad_recv);
}
