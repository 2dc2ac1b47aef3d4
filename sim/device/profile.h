// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// profile.h -- the members of the devices that devices.tsv describes, for the fabric
// and for the fakes of the unit tests. devices.py makes sim_profiles of that table.

#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H 1

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sim_transport { SIM_INFINIBAND, SIM_ROCE, SIM_IWARP };
// Rounding of queue sizes.
enum sim_rounding { SIM_NOT_ROUNDED, SIM_POWER_OF_TWO, SIM_POWER_OF_TWO_LESS_ONE };
// The members of a failed completion that the driver leaves undefined (the opcode, the length
// and what depends on them): they are valid, zeros, or memory that is not written, with or
// without the flags; or a flush has only a length, and another error all but the length; or
// they are valid, but a flush has the opcode of a receive.
enum sim_failed_wc {
    SIM_WC_VALID,
    SIM_WC_ZERO,
    SIM_WC_UNTOUCHED,
    SIM_WC_FLAGS,
    SIM_WC_BY_STATUS,
    SIM_WC_FLUSH_IS_RECV
};
// The length in the completion of a write or a message: 0, not written, or that of the request.
enum sim_sent_length { SIM_LENGTH_ZERO, SIM_LENGTH_UNTOUCHED, SIM_LENGTH_REQUESTED };
// Members of a completion that the driver writes whatever it reports; imm_data is always
// written if the completion has immediate data or a key.
enum sim_members {
    SIM_MEMBER_IMM_DATA = 1,
    SIM_MEMBER_SRC_QP = 2,
    SIM_MEMBER_PKEY_INDEX = 4,
    SIM_MEMBER_SLID = 8,
    SIM_MEMBER_SL = 16,
    SIM_MEMBER_DLID_PATH_BITS = 32
};
// The completions in which the driver writes vendor_err.
enum sim_vendor_err {
    SIM_VENDOR_ERR_ALWAYS,
    SIM_VENDOR_ERR_FAILED,
    SIM_VENDOR_ERR_NOT_FLUSHED, // failed, but not flushed
    SIM_VENDOR_ERR_NEVER
};
enum sim_timeout { SIM_TIMEOUT_AS_REQUESTED, SIM_TIMEOUT_IGNORED, SIM_TIMEOUT_OF_TCP };

// How a driver sizes queues (sizes.h).
struct sim_sizing;
extern const struct sim_sizing sim_sizes_mlx5, sim_sizes_mlx4, sim_sizes_irdma,
    sim_sizes_bnxt_re, sim_sizes_hns, sim_sizes_cxgb4, sim_sizes_erdma, sim_sizes_mana,
    sim_sizes_qedr, sim_sizes_siw;

struct sim_profile {
    const char *name;   // as in rdma-sim-devices(7); with the transport if there are several
    const char *driver; // the target of /sys/class/infiniband/*/device/driver
    const char *prefix; // devices are called prefix0, prefix1 ...
    enum sim_transport transport;
    struct ibv_device_attr attr; // all limits; the GUIDs are set for each device
    uint32_t vectors;
    uint32_t gid_entries;    // of the GID table
    uint32_t max_inline;     // the maximum that a QP can request
    uint32_t inline_per_sge; // the minimum for each SGE of a send
    // The limits of a QP; attr.max_sge is not more than both.
    uint32_t max_send_sge, max_recv_sge;
    const struct sim_sizing *sizing; // NULL: the sizes are rounded
    enum sim_rounding rounding;
    int excess_error;     // of an object beyond the limit of the device; of an MR: ENOMEM
    int full_queue_error; // of ibv_post_send() and ibv_post_recv()
    int inline_error;     // of ibv_post_send() for too much inline data
    int sge_error;        // of ibv_post_send() for too many SGEs
    // Of ibv_post_send() before RTS, which refuses each request; 0: it queues them, and its
    // doorbell fails, unless accepts_early.
    int early_error;
    bool accepts_early; // the requests are executed after RTS
    int doorbell_error; // of a doorbell before RTS
    int failed_error;   // of a post to a failed QP; 0: the request is flushed
    int opcode_error;   // for an unknown opcode; 0: the request fails when it is executed
    int invalid_error;  // for other invalid requests
    int receive_sge_error, srq_error; // of receives; 0: as above
    int srq_recv_error;               // of ibv_post_recv() for a QP with an SRQ
    // Of ibv_wr_complete(), if the queue is full, a request too large (0: the same error), or
    // before RTS (0: as early_error says).
    int builder_error, builder_size_error, builder_early_error;
    // Of ibv_advise_mr(): for a region without on-demand paging; for one of another PD, or
    // that is not writable although the advice, or the driver for any advice, requires it.
    int advise_error, advise_access_error;
    bool advises_writable_only;
    // Of a request whose data cannot be read; of a receive whose memory cannot be written, or
    // is too short.
    enum ibv_wc_status source_error, receive_error, length_error;
    bool has_srq, has_send_imm, has_write_imm, has_ud, has_uc;
    bool has_windows;      // memory windows
    bool has_create_flags; // ibv_create_qp_ex() accepts IBV_QP_INIT_ATTR_CREATE_FLAGS
    uint32_t ud_odp_caps;  // of struct ibv_odp_caps
    bool has_native_flush, has_native_atomic_write, has_odp, has_qp_ex, has_resize_cq;
    bool has_implicit_odp; // a region may be the whole address space
    bool has_rereg_mr, has_tag_matching,
        has_rt_values;    // has_rt_values: ibv_query_rt_values_ex()
    int cq_error;         // of ibv_create_cq() for a refused size or vector
    bool rounds_empty_cq; // a CQ of 0 entries is created
    bool refuses_empty_srq;
    // ibv_create_cq_ex(): the members of a completion that a program can request (wc_flags), or
    // 0 if there is no such function; what the driver refuses of comp_mask and flags.
    uint64_t cq_wc_flags;
    unsigned cq_refused_mask, cq_refused_flags;
    int cq_mask_error; // of both
    enum sim_failed_wc failed_send, failed_receive;
    enum sim_sent_length sent_length, failed_length; // failed_length: with SIM_WC_VALID
    enum sim_vendor_err vendor_err;
    // enum sim_members: of requests, of receives, and of datagrams that a receive has.
    unsigned sent_members, received_members, datagram_members;
    bool flags_sent_imm;          // a completion of a send has IBV_WC_WITH_IMM
    bool receives_have_grh;       // the completion of a receive has IBV_WC_GRH
    uint8_t ud_sl_ip4, ud_sl_ip6; // sl of a datagram over RoCE, from an address of this family
    // A failure completes the oldest request of which nothing was reported, although it is an
    // unsignaled one that succeeded, and flushes the others, the failed one among them.
    bool fails_oldest;
    // ibv_post_send() checks address and length, or only the length of the first SGE.
    bool checks_atomics, checks_atomic_length;
    bool atomics_need_one_sge;  // others use the first one
    bool checks_inline_reads;   // a read with IBV_SEND_INLINE is refused
    bool frees_entries_in_poll; // ibv_poll_cq() frees the entries of requests and receives
    bool fences_writes;         // false: a write with a fence does not wait for earlier reads
    bool waits_without_depth;   // with max_rd_atomic 0, reads and atomics are never sent
    bool retry_count_7_is_endless;
    // ibv_destroy_qp(), or ibv_modify_qp() to RESET, removes those of the QP from its CQs
    bool destroy_removes_completions, reset_removes_completions;
    bool reuses_reset_qp;   // false: RESET is final
    bool receives_need_sge; // a receive without an SGE is refused
    bool hides_refusals;    // ibv_post_send() returns 0 if it accepted any request
    // ibv_post_send(), ibv_post_recv() set bad_wr only if they refuse a request.
    bool keeps_bad_wr, keeps_bad_recv;
    bool receives_in_reset; // ibv_post_recv() accepts receives before INIT
    bool keeps_errno;       // ibv_create_qp() does not set errno
    bool ignores_inline;    // IBV_SEND_INLINE: the device reads the data of the SGEs
    bool inline_by_flag; // ibv_wr_*(): data is inline by IBV_SEND_INLINE, whichever call set it
    bool reduces_inline; // a QP with more than max_inline gets less
    bool reads_first_sge;      // a read uses only as many SGEs as max_sge_rd
    bool reports_srq_receives; // a QP with an SRQ reports the requested sizes of receives
    bool overrun_is_fatal;     // an overrun fails the CQ and its QPs
    bool errors_are_solicited; // completions with errors notify as solicited ones do
    bool checks_read_access;   // a remote read needs IBV_ACCESS_REMOTE_READ
    bool notifies_sender;      // IBV_SEND_SOLICITED notifies it, not the receiver
    bool has_query_srq;
    bool flushes_late_posts; // false: a post to a failed QP has no completion
    enum sim_timeout timeout;
    bool connects_in_call;  // rdma_connect() fails if no program listens
    bool ignores_rtr;       // iWARP: ibv_modify_qp() to RTR changes no state
    bool reports_init;      // iWARP: ibv_query_qp() reports INIT from the creation on
    bool has_doorbell_call; // ibv_post_send() ends with a system call, which can fail
    bool can_be_removed;    // Linux removes it while programs use it
    uint64_t events;        // the asynchronous events that the driver raises: 1 << the type
};

extern const struct sim_profile sim_profiles[];
extern const size_t sim_profile_count;
// Returns NULL if there is no such profile.
const struct sim_profile *sim_find_profile(const char *name);
// Returns true for soft-RoCE and soft-iWARP: they have no parent device.
bool sim_is_software(const struct sim_profile *device);

#ifdef __cplusplus
}
#endif

#endif // SIM_PROFILE_H
