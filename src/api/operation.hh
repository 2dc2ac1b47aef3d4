// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operation.hh -- operations as work requests, whether they are posted at once or added to a
// batch
//
// Each function checks the arguments that both kinds of exported functions have in common,
// describes the work request, and gives it to its target: a Post or an Addition.

#pragma once

#include "api/post.hh"
#include "core/batch.hh"

namespace rpma {

// Posts an operation at once. The request is an object of its own: the connection can stay in a
// register, while the provider gets the address of the request.
class Post {
  public:
    static constexpr bool HAS_ROOM = false; // for more than one element

    struct Request {
        explicit Request(const Post &) {}

        ibv_sge sges[1]; // first: GCC keeps one address less in a register
        ibv_send_wr wr;
    };

    explicit Post(rpma_conn *conn) : conn_(conn) {}

    rpma_conn &conn() const { return *conn_; }
    void note_elements(int) const {}
    [[gnu::always_inline]] int finish(const char *function, Request &request,
                                      ibv_sge *sges) const {
        request.wr.next = nullptr;
        request.wr.sg_list = sges;
        return post_send(function, conn_, request.wr);
    }
    [[gnu::always_inline]] int finish_empty(const char *function, ibv_wr_opcode opcode,
                                            uint64_t send_flags, uint32_t imm,
                                            const void *op_context) const {
        return post_empty(function, conn_, opcode, send_flags, imm, op_context);
    }

  private:
    rpma_conn *conn_;
};

// Makes an operation the last one of a batch that is not full.
class Addition {
  public:
    static constexpr bool HAS_ROOM = true;

    struct Request {
        explicit Request(const Addition &to)
            : wr(to.batch_->free->wr), sges(to.batch_->free->sges()) {}

        ibv_send_wr &wr;
        ibv_sge *sges;
    };

    explicit Addition(rpma_batch *batch) : batch_(batch) {}

    rpma_conn &conn() const { return batch_->conn; }
    void note_elements(int count) const {
        if (count > 1)
            batch_->has_list = true;
    }
    [[gnu::always_inline]] int finish(const char *, const Request &, const ibv_sge *) const {
        batch_->add_slot();
        return 0;
    }
    [[gnu::always_inline]] int finish_empty(const char *function, ibv_wr_opcode opcode,
                                            uint64_t send_flags, uint32_t imm,
                                            const void *op_context) const {
        Request request(*this);
        describe(request.wr, opcode, 0, send_flags, imm, op_context);
        request.wr.wr.rdma = {0, 0};
        return finish(function, request, request.sges);
    }

  private:
    rpma_batch *batch_;
};

// What RPMA_REFUSE says of a transfer whose regions do not fit together.
[[gnu::cold, gnu::noinline]] inline int refuse_regions(const char *function, bool local_is_dst,
                                                       const rpma_mr_local *local,
                                                       const rpma_mr_remote *remote) {
    const bool no_dst = local_is_dst ? local == nullptr : remote == nullptr;
    const bool no_src = local_is_dst ? remote == nullptr : local == nullptr;
    if (no_dst && no_src)
        return refuse(function, "dst == NULL && src == NULL with an offset or len != 0");
    return refuse(function,
                  no_dst ? "dst == NULL && src != NULL" : "src == NULL && dst != NULL");
}

// A read or a write of one piece of local memory.
template <class Target>
[[gnu::always_inline]] inline int
transfer(const char *function, Target target, ibv_wr_opcode opcode, const rpma_mr_local *local,
         size_t local_offset, const rpma_mr_remote *remote, size_t remote_offset, size_t len,
         int flags, uint32_t imm, const void *op_context) {
    const uint64_t send_flags = flags_for(opcode, flags);
    if (local == nullptr || remote == nullptr) [[unlikely]] {
        if (local != nullptr || remote != nullptr || (local_offset | remote_offset | len) != 0)
            return refuse_regions(function, opcode == IBV_WR_RDMA_READ, local, remote);
        return target.finish_empty(function, opcode, send_flags, imm, op_context);
    }
    if (len > UINT32_MAX) [[unlikely]]
        return refuse(function, "len > UINT32_MAX");
    typename Target::Request request(target);
    request.sges[0] = slice(*local, local_offset, len);
    describe(request.wr, opcode, 1, send_flags, imm, op_context);
    address(request.wr, *remote, remote_offset);
    return target.finish(function, request, request.sges);
}

// A message from one piece of local memory, or from none.
template <class Target>
[[gnu::always_inline]] inline int
message(const char *function, Target target, ibv_wr_opcode opcode, const rpma_mr_local *src,
        size_t offset, size_t len, int flags, uint32_t imm, const void *op_context) {
    const uint64_t send_flags = carrying(flags);
    if (src == nullptr) [[unlikely]]
        return target.finish_empty(function, opcode, send_flags, imm, op_context);
    typename Target::Request request(target);
    request.sges[0] = slice(*src, offset, len);
    describe(request.wr, opcode, 1, send_flags, imm, op_context);
    request.wr.wr.rdma.remote_addr = 0; // init_send_wqe() of rxe copies it
    return target.finish(function, request, request.sges);
}

// A write of 8 bytes in one packet, after all reads before it: what stands for an atomic write.
template <class Target>
[[gnu::always_inline]] inline int
write_fenced(const char *function, Target target, const rpma_mr_remote *dst, size_t dst_offset,
             const ibv_sge &bytes, uint64_t send_flags, const void *op_context) {
    typename Target::Request request(target);
    request.sges[0] = bytes;
    describe(request.wr, IBV_WR_RDMA_WRITE, 1, send_flags | IBV_SEND_FENCE, 0, op_context);
    address(request.wr, *dst, dst_offset);
    return target.finish(function, request, request.sges);
}

// The same with bytes of the caller, which the provider copies while it takes the request.
template <class Target>
[[gnu::always_inline]] inline int
write_inline(const char *function, Target target, const rpma_mr_remote *dst, size_t dst_offset,
             const char *src, int flags, const void *op_context) {
    const ibv_sge bytes = {reinterpret_cast<uintptr_t>(src), RPMA_ATOMIC_WRITE_ALIGNMENT, 0};
    return write_fenced(function, target, dst, dst_offset, bytes,
                        signaled(flags) | IBV_SEND_INLINE, op_context);
}

// Each connection warns once: a program that misaligns a region does so with every write.
[[gnu::cold, gnu::noinline]] inline void warn_of_misalignment(const char *function,
                                                              rpma_conn &conn) {
    if (!conn.warned_of_misalignment.exchange(true))
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, function,
                 "the remote address is not a multiple of %d: the write may not be atomic",
                 RPMA_ATOMIC_WRITE_ALIGNMENT);
}

// The bit of a region's usage, and of a connection's flushes, that allows flushes of a type.
constexpr unsigned usage_of(rpma_flush_type type) {
    return type == RPMA_FLUSH_TYPE_PERSISTENT ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
                                              : RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
}

// Whether usage has that bit; a choice between two bits would cost each flush two instructions.
inline bool is_allowed(unsigned usage, rpma_flush_type type) {
    constexpr int LAST = 5;
    static_assert(usage_of(RPMA_FLUSH_TYPE_PERSISTENT) ==
                  1U << (LAST - RPMA_FLUSH_TYPE_PERSISTENT));
    static_assert(usage_of(RPMA_FLUSH_TYPE_VISIBILITY) ==
                  1U << (LAST - RPMA_FLUSH_TYPE_VISIBILITY));
    return (usage >> (LAST - type) & 1) != 0;
}

// A flush that the connection or the region does not allow.
[[gnu::cold, gnu::noinline]] inline int refuse_flush(const char *function,
                                                     const rpma_conn &conn,
                                                     const rpma_mr_remote *dst,
                                                     rpma_flush_type type) {
    Call call(function);
    if ((conn.allowed_flushes() & usage_of(type)) == 0)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "the other side did not say that it has direct write to PMem: apply its peer "
                  "configuration with rpma_conn_apply_remote_peer_cfg() first");
    else
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "the remote region was not registered with %s (its usage is 0x%" PRIx32 ")",
                  type == RPMA_FLUSH_TYPE_PERSISTENT ? "RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT"
                                                     : "RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY",
                  dst->usage());
    return call.finish();
}

#ifdef RPMA_NATIVE_FLUSH
constexpr uint8_t native_flush_types(rpma_flush_type type) {
    return type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL;
}
#endif

// For devices without flush: a read after the writes; nobody looks at what it brings.
template <class Target>
[[gnu::always_inline]] inline int flush_by_read(const char *function, Target target,
                                                const rpma_mr_remote *dst, size_t dst_offset,
                                                int flags, const void *op_context) {
    typename Target::Request request(target);
    ibv_sge &sge = request.sges[0];
    sge = target.conn().flush_read;
    const uint64_t rest = dst->size - dst_offset;
    if (rest < FLUSH_READ_SIZE) [[unlikely]]
        sge.length = static_cast<uint32_t>(rest);
    describe(request.wr, IBV_WR_RDMA_READ, 1, signaled(flags), 0, op_context);
    address(request.wr, *dst, dst_offset);
    return target.finish(function, request, request.sges);
}

} // namespace rpma
