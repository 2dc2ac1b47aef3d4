/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/*
 * librpma.h -- Remote Persistent Memory Access: read, write and flush the memory of another
 * machine over RDMA. librpma(7) explains the model; each function has a manual page.
 *
 * Conventions, unless a declaration says otherwise:
 * - A function returns 0 or one of the RPMA_E_* codes that its manual page lists; outputs are
 *   written on success only.
 * - After RPMA_E_PROVIDER, errno is the error number of libibverbs or librdmacm; if they return
 *   none, it is unchanged. The log always has the cause.
 * - If an object or an output is required, a NULL argument is RPMA_E_INVAL.
 * - Lengths and offsets are in bytes; offsets count from the start of the memory region.
 * - rpma_*_delete, rpma_mr_dereg and rpma_ep_shutdown take the address of the handle, set the
 *   handle to NULL, and do nothing if it is NULL already.
 * - Threads may call functions concurrently as long as no two of them use the same connection
 *   request, endpoint or batch, and no object is used while it is being deleted. Threads may
 *   share peers, configurations, memory regions, queues and connections, but only one thread at
 *   a time may take the events of a connection, and no thread may read its private data while
 *   another takes RPMA_CONN_ESTABLISHED or RPMA_CONN_REJECTED. Several threads may read the
 *   private data of a request concurrently.
 */

#ifndef LIBRPMA_H
#define LIBRPMA_H 1

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks declarations of releases before 1.0; LIBRPMA_NO_DEPRECATED suppresses the warnings. */
#if defined(LIBRPMA_NO_DEPRECATED) || !defined(__GNUC__)
#define LIBRPMA_DEPRECATED(instead)
#else
#define LIBRPMA_DEPRECATED(instead) __attribute__((deprecated(instead)))
#endif

/* ---- version ----------------------------------------------------------------------------- */

/* The version of this header; rpma_version() returns that of the library. */
#define RPMA_VERSION_MAJOR 1
#define RPMA_VERSION_MINOR 6
#define RPMA_VERSION_PATCH 0

/* A version as one number; a later version has a greater number. */
#define RPMA_VERSION_NUMBER(major, minor, patch) ((major) << 16 | (minor) << 8 | (patch))
#define RPMA_VERSION \
    RPMA_VERSION_NUMBER(RPMA_VERSION_MAJOR, RPMA_VERSION_MINOR, RPMA_VERSION_PATCH)

/* The version of the loaded library, in the form of RPMA_VERSION_NUMBER(). Cannot fail. */
uint32_t rpma_version(void);

/* ---- return codes ---------------------------------------------------------------------- */

/* The first words of each comment, up to a colon, are the text of rpma_err_2str(). */

/* Failures: */
#define RPMA_E_UNKNOWN (-100000)  /* Unknown error: a failure without a known cause */
#define RPMA_E_NOSUPP (-100001)   /* Not supported: by this device, region or other side */
#define RPMA_E_PROVIDER (-100002) /* Provider error occurred: see the log, and errno */
#define RPMA_E_NOMEM (-100003)    /* Out of memory */
#define RPMA_E_INVAL (-100004)    /* Invalid argument */

/* Would-block results, which are no failures: */
#define RPMA_E_NO_COMPLETION (-100005)   /* No next completion available */
#define RPMA_E_NO_EVENT (-100006)        /* No next event available */
#define RPMA_E_AGAIN (-100007)           /* Temporary error, try again */
#define RPMA_E_SHARED_CHANNEL (-100008)  /* Completion channel is shared */
#define RPMA_E_NOT_SHARED_CHNL (-100009) /* Completion channel is not shared */

/* Returns the text of a return code, including 0: static storage, never NULL. Cannot fail. */
const char *rpma_err_2str(int ret);

/*
 * Returns the log message of the latest call that failed in the calling thread; "" if none has
 * failed, or if the log thresholds disabled its message. *provider_error (may be NULL) = its
 * error number of libibverbs or librdmacm, 0 if they returned none. Would-block results change
 * neither. Storage of the thread, valid until its next failure. Never NULL. Cannot fail.
 */
const char *rpma_err_last_failure(int *provider_error);

/* ---- devices --------------------------------------------------------------------------- */

/* Milliseconds for resolving an address, and the same time again for resolving a route. */
#define RPMA_DEFAULT_TIMEOUT_MS 1000

enum rpma_util_ibv_context_type {
    RPMA_UTIL_IBV_CONTEXT_LOCAL, /* the address belongs to this machine */
    RPMA_UTIL_IBV_CONTEXT_REMOTE /* the address is reachable from this machine */
};

/*
 * Finds the RDMA device of addr (host name or numeric address). The context remains the
 * property of librdmacm: do not close it. May wait for the name server and, for a remote
 * address, up to RPMA_DEFAULT_TIMEOUT_MS for each address of the name.
 */
int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context **ibv_ctx_ptr);

/*
 * *is_odp_capable = 1 if the device serves RDMA reads and writes on reliable connections with
 * on-demand paging, otherwise 0.
 */
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable);

/* ---- peer configuration: capabilities of this side, for the other one ------------------- */

struct rpma_peer_cfg;
struct rpma_peer;

/* Creates a configuration without direct write to PMem; the caller deletes it. */
int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr);

int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr);

/* States whether flushed RDMA writes to this side are in its PMem, or in memory that the
 * platform saves on a power failure (rpma_pmem(7)). */
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported);

int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg, bool *supported);

/* Adds the operations of the other side that the device of peer serves natively: flushes,
 * atomic writes. rpma_conn_private_data_pack() always sends them, the descriptor only together
 * with direct write to PMem. */
int rpma_peer_cfg_set_served_by(struct rpma_peer_cfg *pcfg, const struct rpma_peer *peer);

/* *is_advertised = true if the configuration contains the operations that its side serves
 * natively; if so, *flush and *atomic_write = true if that side serves them, otherwise both are
 * false. */
int rpma_peer_cfg_get_served(const struct rpma_peer_cfg *pcfg, bool *is_advertised, bool *flush,
                             bool *atomic_write);

/* Writes the network-transferable form to desc: rpma_peer_cfg_get_descriptor_size() bytes. */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc);

/* *desc_size = bytes that rpma_peer_cfg_get_descriptor() writes. */
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size);

/* Creates a configuration from the desc_size bytes received; a longer desc is accepted. */
int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
                                  struct rpma_peer_cfg **pcfg_ptr);

/* ---- peer: one RDMA device with a protection domain ------------------------------------- */

/* Creates a peer on ibv_ctx, which is borrowed and must outlive the peer. */
int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr);

/*
 * Deletes the peer; delete its regions, queues and connections first. If the provider refuses,
 * the peer still exists and the call may be repeated.
 */
int rpma_peer_delete(struct rpma_peer **peer_ptr);

/* *pd_ptr = the protection domain of the peer, owned by it: for calls of libibverbs that this
 * library does not wrap. */
int rpma_peer_get_ibv_pd(const struct rpma_peer *peer, struct ibv_pd **pd_ptr);

/* ---- memory regions --------------------------------------------------------------------- */

struct rpma_mr_local;  /* memory of this process, registered with a peer */
struct rpma_mr_remote; /* memory of the other side, known by its descriptor */

/* The permitted uses of a region; the flags may be combined. */
#define RPMA_MR_USAGE_READ_SRC (1 << 0)              /* rpma_read() from it, remotely */
#define RPMA_MR_USAGE_READ_DST (1 << 1)              /* rpma_read() into it, locally */
#define RPMA_MR_USAGE_WRITE_SRC (1 << 2)             /* rpma_write() from it, locally */
#define RPMA_MR_USAGE_WRITE_DST (1 << 3)             /* rpma_write() into it, remotely */
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY (1 << 4) /* rpma_flush(), visibility */
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT (1 << 5) /* rpma_flush(), persistence */
#define RPMA_MR_USAGE_SEND (1 << 6)                  /* rpma_send() from it */
#define RPMA_MR_USAGE_RECV (1 << 7)                  /* rpma_recv() into it */
#define RPMA_MR_USAGE_ATOMIC (1 << 8)                /* remote atomics, with another usage */

/*
 * Registers size bytes at ptr for usage (RPMA_MR_USAGE_*). The memory still belongs to the
 * caller and must outlive the region. A descriptor does not contain RPMA_MR_USAGE_ATOMIC, only
 * the output of rpma_conn_private_data_pack() does.
 */
int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
                struct rpma_mr_local **mr_ptr);

/* Deregisters the region. If the provider refuses, the region still exists and the call may be
 * repeated. */
int rpma_mr_dereg(struct rpma_mr_local **mr_ptr);

/* *ptr = start of the registered memory. */
int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr);

/* *size = registered bytes. */
int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size);

/* Writes the network-transferable form to desc: rpma_mr_get_descriptor_size() bytes, of any
 * alignment. */
int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc);

/* *desc_size = bytes that rpma_mr_get_descriptor() writes. */
int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size);

/* *ibv_mr_ptr = the region of libibverbs, owned by mr. */
int rpma_mr_get_ibv_mr(const struct rpma_mr_local *mr, struct ibv_mr **ibv_mr_ptr);

/* Advises the provider about len bytes at offset (advice and flags: ibv_advise_mr(3)). */
int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice,
                   uint32_t flags);

/* Creates a remote region from the desc_size bytes received; a longer desc is accepted. The
 * caller deletes it. */
int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
                                   struct rpma_mr_remote **mr_ptr);

/* Deletes the remote region; this does not affect the memory. */
int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr);

/* *size = bytes of the remote region. */
int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size);

/* *flush_type = the RPMA_MR_USAGE_FLUSH_TYPE_* bits of the remote region. */
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type);

/* *addr and *rkey = address and remote key of the region, for work requests that the program
 * itself posts to the queue pair of rpma_conn_get_ibv_qp(). */
int rpma_mr_remote_get_key(const struct rpma_mr_remote *mr, uint64_t *addr, uint32_t *rkey);

/* An SGE: len bytes of local memory at offset of a region. An SGE of 0 bytes at offset 0 needs
 * no region. */
struct rpma_sge {
    const struct rpma_mr_local *mr;
    size_t offset;
    size_t len;
};

/*
 * One receive: the destination of a message. This is the SGE local or, with nsge > 0, the nsge
 * SGEs at sgl, filled in their order. Without an SGE the receive accepts an empty message.
 * Start from {0}, so that reserved is 0.
 */
struct rpma_receive {
    struct rpma_sge local;
    const struct rpma_sge *sgl; /* only read during the call */
    uint32_t nsge;              /* at most max_sge of the queue's configuration */
    uint32_t reserved;          /* 0 */
    const void *op_context;     /* returned as wr_id of the completion */
};

/* ---- shared receive queue ---------------------------------------------------------------- */

struct rpma_srq_cfg;
struct rpma_srq;
struct rpma_cq;

/* Creates a configuration: rq_size 100, rcq_size 100, max_sge 1. */
int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr);

int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr);

/* The number of receives that the shared queue holds. */
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size);
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size);

/* Entries of the receive CQ that the shared queue owns; 0: no receive CQ. */
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size);
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg, uint32_t *rcq_size);

/* The most SGEs of one receive (struct rpma_receive), at least 1; creating a queue fails with
 * more than 128. */
int rpma_srq_cfg_set_max_sge(struct rpma_srq_cfg *cfg, uint32_t max_sge);
int rpma_srq_cfg_get_max_sge(const struct rpma_srq_cfg *cfg, uint32_t *max_sge);

/* Creates a shared receive queue; cfg NULL: defaults; cfg is only read during the call. The
 * peer must outlive it. */
int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr);

/* Deletes the queue; delete its connections first. If the provider refuses, the queue still
 * exists and the call may be repeated; if it refuses only the receive CQ, the queue is deleted.
 */
int rpma_srq_delete(struct rpma_srq **srq_ptr);

/* *rcq_ptr = the queue's receive CQ, owned by the queue, or NULL. */
int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr);

/* Requests one RPMA_PEER_EVENT_SRQ_LIMIT of the peer, once the queue holds fewer than limit
 * receives; 0: cancels the request. */
int rpma_srq_set_limit(struct rpma_srq *srq, uint32_t limit);

/* Posts a receive for any connection of the queue; with dst NULL, offset 0 and len 0 it accepts
 * an empty message. */
int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
                  const void *op_context);

/*
 * Posts count receives in their order, in one call of the provider. *posted (may be NULL) =
 * number of receives that the queue accepted, also if the call fails: an invalid receive is
 * rejected, and earlier ones are posted.
 */
int rpma_srq_recv_many(struct rpma_srq *srq, const struct rpma_receive *receives,
                       uint32_t count, uint32_t *posted);

/* ---- connection configuration ------------------------------------------------------------ */

struct rpma_conn_cfg;

/* The flush method of a connection. */
enum rpma_flush_mode {
    RPMA_FLUSH_MODE_AUTO,     /* native unless a side is known not to serve it */
    RPMA_FLUSH_MODE_EMULATED, /* reads a few bytes back */
    RPMA_FLUSH_MODE_NATIVE    /* the device's native operation only */
};

/* Creates a configuration: timeout 1000 ms, SQ and RQ of 10 entries, a main CQ with room for
 * both, 1 SGE, 8 bytes inline, no receive CQ, no shared channel, no SRQ, flush mode AUTO. */
int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr);

int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr);

/* The timeout in milliseconds (>= 0) of address resolution, and of route resolution, on the
 * connecting side; establishing the connection has no timeout. */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);

/* Entries of the main CQ; with 0, creating a connection request fails. */
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg, uint32_t *cq_size);

/* Entries of a separate receive CQ; 0: none. */
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg, uint32_t *rcq_size);

/* The number of operations that may be outstanding on the send queue. */
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg, uint32_t *sq_size);

/* The number of receives that may be outstanding on the receive queue. */
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg, uint32_t *rq_size);

/* The most SGEs of one operation or receive, at least 1. Creating a connection request fails
 * with more than 128, or if the device has fewer. */
int rpma_conn_cfg_set_max_sge(struct rpma_conn_cfg *cfg, uint32_t max_sge);
int rpma_conn_cfg_get_max_sge(const struct rpma_conn_cfg *cfg, uint32_t *max_sge);

/* Sets the time in milliseconds after which the device retries an operation that the other side
 * has not acknowledged: at most 8796093, rounded up to a power of two times 4.096 us; 0: the
 * default of the system. Applies to operations that this side posts. iWARP has no such timeout,
 * and some devices use their own. */
int rpma_conn_cfg_set_ack_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_ack_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);

/* The number of retries of an unacknowledged operation before it fails, 0 to 7; the number of
 * the connecting side applies to both sides. */
int rpma_conn_cfg_set_retry_count(struct rpma_conn_cfg *cfg, uint32_t retry_count);
int rpma_conn_cfg_get_retry_count(const struct rpma_conn_cfg *cfg, uint32_t *retry_count);

/* The number of retries of the other side if this side has no receive for its message, 0 to 6;
 * 7: no limit. */
int rpma_conn_cfg_set_rnr_retry_count(struct rpma_conn_cfg *cfg, uint32_t rnr_retry_count);
int rpma_conn_cfg_get_rnr_retry_count(const struct rpma_conn_cfg *cfg,
                                      uint32_t *rnr_retry_count);

/* The time in milliseconds that the other side waits before it retries a message, or a write
 * with immediate data, for which this side has no receive: at most 655, rounded up to a time of
 * InfiniBand; 0: the default of the system. iWARP has no such time, and some devices use their
 * own. */
int rpma_conn_cfg_set_rnr_timer(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_rnr_timer(const struct rpma_conn_cfg *cfg, int *timeout_ms);

/* The type of service (DSCP and ECN) of a connection's packets; effective on the connecting
 * side. 0: the default of the system. */
int rpma_conn_cfg_set_tos(struct rpma_conn_cfg *cfg, uint8_t tos);
int rpma_conn_cfg_get_tos(const struct rpma_conn_cfg *cfg, uint8_t *tos);

/* The flush method of the connection; any mode but AUTO overrides RPMA_FLUSH in the environment
 * and the other side's capabilities. With NATIVE, creating a connection request fails with
 * RPMA_E_NOSUPP if the device has no flush. */
int rpma_conn_cfg_set_flush_mode(struct rpma_conn_cfg *cfg, enum rpma_flush_mode mode);
int rpma_conn_cfg_get_flush_mode(const struct rpma_conn_cfg *cfg, enum rpma_flush_mode *mode);

/* The most bytes of one write or send with RPMA_F_INLINE. Creating a connection request fails
 * if the device's limit is lower. Every connection has at least 8, which atomic writes need. */
int rpma_conn_cfg_set_inline_size(struct rpma_conn_cfg *cfg, uint32_t inline_size);
int rpma_conn_cfg_get_inline_size(const struct rpma_conn_cfg *cfg, uint32_t *inline_size);

/* true: all CQs of a connection share one completion channel, rpma_conn_wait() waits for them,
 * and rpma_cq_wait() fails. */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared);
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg, bool *shared);

/* The source address of connections, an address of this machine: numeric, copied. NULL: the
 * system chooses. */
int rpma_conn_cfg_set_source_addr(struct rpma_conn_cfg *cfg, const char *addr);

/* *addr = the source address and port; its family is AF_UNSPEC if there is no address. */
int rpma_conn_cfg_get_source_addr(const struct rpma_conn_cfg *cfg,
                                  struct sockaddr_storage *addr);

/* The source port of connections, 0 to 65535; 0: the system chooses. Only one connection at a
 * time can have it. */
int rpma_conn_cfg_set_source_port(struct rpma_conn_cfg *cfg, uint32_t port);
int rpma_conn_cfg_get_source_port(const struct rpma_conn_cfg *cfg, uint32_t *port);

/* The shared receive queue of a connection, borrowed: it must outlive the connection. NULL:
 * none. */
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq);
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg, struct rpma_srq **srq_ptr);

/* The main CQ of a connection, created by rpma_cq_new() for many connections; borrowed: it must
 * outlive them. NULL: the connection creates its own, with cq_size entries. */
int rpma_conn_cfg_set_cq(struct rpma_conn_cfg *cfg, struct rpma_cq *cq);
int rpma_conn_cfg_get_cq(const struct rpma_conn_cfg *cfg, struct rpma_cq **cq_ptr);

/* The CQ in which receives complete, created and borrowed like the main CQ. NULL: rcq_size
 * decides. */
int rpma_conn_cfg_set_rcq(struct rpma_conn_cfg *cfg, struct rpma_cq *rcq);
int rpma_conn_cfg_get_rcq(const struct rpma_conn_cfg *cfg, struct rpma_cq **rcq_ptr);

/* ---- endpoint and connection requests ---------------------------------------------------- */

struct rpma_ep;
struct rpma_conn_req;
struct rpma_conn;

struct rpma_conn_private_data {
    void *ptr;   /* the bytes; received data belongs to the request or connection */
    uint8_t len; /* bytes at ptr */
};

/* Listens on addr and port; the peer is borrowed and must outlive the endpoint. */
int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
                   struct rpma_ep **ep_ptr);

struct rpma_ep_cfg;

/* Creates a configuration: backlog 0, ipv6_only false. */
int rpma_ep_cfg_new(struct rpma_ep_cfg **cfg_ptr);

int rpma_ep_cfg_delete(struct rpma_ep_cfg **cfg_ptr);

/* The backlog: the number of pending requests; the kernel drops further ones (iWARP: rejects
 * them). 0, or more than the kernel's limit (sysctl net.rdma_ucm.max_backlog): this limit. */
int rpma_ep_cfg_set_backlog(struct rpma_ep_cfg *cfg, uint32_t backlog);
int rpma_ep_cfg_get_backlog(const struct rpma_ep_cfg *cfg, uint32_t *backlog);

/* true: an endpoint on an IPv6 address, in particular "::", accepts IPv6 clients only; false:
 * sysctl net.ipv6.bindv6only decides. */
int rpma_ep_cfg_set_ipv6_only(struct rpma_ep_cfg *cfg, bool ipv6_only);
int rpma_ep_cfg_get_ipv6_only(const struct rpma_ep_cfg *cfg, bool *ipv6_only);

/* Like rpma_ep_listen(), with a configuration; NULL: defaults; cfg is only read during the
 * call. */
int rpma_ep_listen_with(struct rpma_peer *peer, const char *addr, const char *port,
                        const struct rpma_ep_cfg *cfg, struct rpma_ep **ep_ptr);

/* Stops listening; requests and connections are unaffected. If the provider refuses, the
 * endpoint still exists and the call may be repeated. */
int rpma_ep_shutdown(struct rpma_ep **ep_ptr);

/* *fd = descriptor that is readable if a request is pending; owned by the endpoint. Set
 * O_NONBLOCK on it to make rpma_ep_next_conn_req() and rpma_ep_next_incoming() non-blocking. */
int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd);

/* *addr = the address and port of the endpoint; the port is the one that the system chose for
 * port "0". */
int rpma_ep_get_addr(const struct rpma_ep *ep, struct sockaddr_storage *addr);

/*
 * The steps to a connection, none of which waits for the other side:
 *
 *   connecting: rpma_conn_req_start(), rpma_conn_req_resolve() until it returns 0
 *   accepting:  rpma_ep_next_incoming(); then rpma_conn_req_reject(), or as below
 *   both:       rpma_conn_req_setup(), receives, rpma_conn_req_connect(), and
 *               rpma_conn_next_event() when rpma_conn_get_event_fd() is readable
 *
 * rpma_conn_req_new() and rpma_ep_next_conn_req() do all steps up to the receives at once. A
 * request may be deleted at each step. rpma_connecting(7) shows the complete loop.
 */

/*
 * Takes the next incoming request without creating queues: its private data and address can be
 * read before resources are allocated for it. It uses one descriptor until it is connected,
 * rejected or deleted. Blocks unless the descriptor of the endpoint is O_NONBLOCK. The caller
 * sets the request up and connects it, rejects it or deletes it.
 */
int rpma_ep_next_incoming(struct rpma_ep *ep, struct rpma_conn_req **req_ptr);

/*
 * Takes the next incoming request and sets it up; blocks unless the descriptor is O_NONBLOCK.
 * cfg NULL: defaults; cfg is only read during the call. The caller connects or deletes the
 * request.
 */
int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
                          struct rpma_conn_req **req_ptr);

/*
 * Creates an outgoing request: resolves address and route, waits up to the timeout for each,
 * and sets the request up. cfg NULL: defaults; cfg is only read during the call. The peer must
 * outlive the request.
 */
int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
                      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);

/*
 * Starts an outgoing request and returns without waiting for the network, except for looking up
 * a host name with getaddrinfo(3). Each address of the name is tried in turn. Uses timeout,
 * tos, source address and source port of cfg; cfg NULL: defaults; cfg is only read during the
 * call. The peer must outlive the request.
 */
int rpma_conn_req_start(struct rpma_peer *peer, const char *addr, const char *port,
                        const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);

/* *fd = descriptor, O_NONBLOCK, that is readable if rpma_conn_req_resolve() can advance. It is
 * owned by the request, and later by the connection. */
int rpma_conn_req_get_event_fd(const struct rpma_conn_req *req, int *fd);

/*
 * Processes pending events and advances the request, to the next step or address; never blocks.
 * 0: the request can be set up. An incoming one always can: if its client timed out or exited,
 * the failure occurs when it is set up or connected.
 */
int rpma_conn_req_resolve(struct rpma_conn_req *req);

/*
 * Creates the queues of a ready request from cfg; cfg NULL: defaults; cfg is only read during
 * the call. A failure leaves the request unchanged: it may be set up with another cfg, rejected
 * or deleted.
 */
int rpma_conn_req_setup(struct rpma_conn_req *req, const struct rpma_conn_cfg *cfg);

/*
 * Rejects an incoming request, before or after its setup. Sends pdata (copied; may be NULL; at
 * most 148 bytes on InfiniBand and RoCE) to the client, where rpma_conn_get_private_data()
 * returns it after RPMA_CONN_REJECTED. If pdata is too long, the call fails and rejects without
 * data. The call consumes the request and sets *req_ptr to NULL even if it fails.
 */
int rpma_conn_req_reject(struct rpma_conn_req **req_ptr,
                         const struct rpma_conn_private_data *pdata);

/* Deletes the request and rejects an incoming one. The request is deleted even if a step fails.
 */
int rpma_conn_req_delete(struct rpma_conn_req **req_ptr);

/* *pdata = private data of an incoming request, or {NULL, 0}; valid until the request, or the
 * connection created from it, is deleted. It may be longer than the data sent: InfiniBand and
 * RoCE append zeros, up to 56 bytes. */
int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
                                   struct rpma_conn_private_data *pdata);

/* *addr = address of the other side; for an incoming request, of the client. */
int rpma_conn_req_get_peer_addr(const struct rpma_conn_req *req, struct sockaddr_storage *addr);

/* *addr = address and port of this side; fails before the request is resolved. */
int rpma_conn_req_get_local_addr(const struct rpma_conn_req *req,
                                 struct sockaddr_storage *addr);

/* Posts a receive before the connection is established, so that the first message is not lost.
 */
int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
                       size_t len, const void *op_context);

/* Posts count receives before the connection is established: see rpma_srq_recv_many(). */
int rpma_conn_req_recv_many(struct rpma_conn_req *req, const struct rpma_receive *receives,
                            uint32_t count, uint32_t *posted);

/*
 * Connects (outgoing) or accepts (incoming) without waiting for the other side:
 * rpma_conn_next_event() returns the result. pdata (copied; may be NULL) is sent to the other
 * side. The call consumes the request and sets *req_ptr to NULL even if it fails.
 */
int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
                          const struct rpma_conn_private_data *pdata,
                          struct rpma_conn **conn_ptr);

/* ---- connection -------------------------------------------------------------------------- */

enum rpma_conn_event {
    RPMA_CONN_UNDEFINED = -1, /* never delivered */
    RPMA_CONN_ESTABLISHED,    /* the connection is ready for operations */
    RPMA_CONN_CLOSED,         /* closed by either side */
    RPMA_CONN_LOST,           /* failed, or the device was removed */
    RPMA_CONN_REJECTED,       /* the other side rejected it */
    RPMA_CONN_UNREACHABLE     /* no response of the other side */
};

/* Text of an event; static storage, never NULL, cannot fail. */
const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

/* Takes the next event; blocks unless the descriptor of rpma_conn_get_event_fd() is O_NONBLOCK.
 */
int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event);

/* *fd = descriptor that is readable if an event is pending; owned by the connection. */
int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd);

/* *addr = address and port of this side, or of the other side, also once the connection is
 * closed. */
int rpma_conn_get_local_addr(const struct rpma_conn *conn, struct sockaddr_storage *addr);
int rpma_conn_get_peer_addr(const struct rpma_conn *conn, struct sockaddr_storage *addr);

/* *pdata = private data of the connection, or {NULL, 0}; valid until the connection is deleted.
 * On the connecting side it is available once RPMA_CONN_ESTABLISHED was taken. It may be longer
 * than the data sent: InfiniBand and RoCE append zeros, up to 56 bytes of a request and 196 of
 * a reply. */
int rpma_conn_get_private_data(const struct rpma_conn *conn,
                               struct rpma_conn_private_data *pdata);

/*
 * Packs the regions and capabilities of this side into the pdata->len bytes at pdata->ptr; on
 * success pdata->len is the packed size: 6 bytes, 22 for each of the nmrs regions of mrs, 2 for
 * pcfg (may be NULL), and the len bytes of the program at bytes (may be NULL if len is 0). If
 * pcfg does not contain the natively served operations, those of the device of the first region
 * are packed.
 */
int rpma_conn_private_data_pack(const struct rpma_mr_local *const *mrs, uint32_t nmrs,
                                const struct rpma_peer_cfg *pcfg, const void *bytes,
                                uint32_t len, struct rpma_conn_private_data *pdata);

/*
 * Unpacks the output of rpma_conn_private_data_pack(). mrs has room for *nmrs remote regions,
 * which the caller deletes; *nmrs = their number. With mrs NULL no region is created. *pcfg_ptr
 * = a configuration, which the caller deletes, or NULL if none was packed. *bytes, *len = the
 * other program's bytes, inside of pdata, without the zeros that the network appended. Each
 * pointer but pdata may be NULL; mrs needs nmrs, and bytes needs len.
 */
int rpma_conn_private_data_unpack(const struct rpma_conn_private_data *pdata,
                                  struct rpma_mr_remote **mrs, uint32_t *nmrs,
                                  struct rpma_peer_cfg **pcfg_ptr, const void **bytes,
                                  uint32_t *len);

/* Applies a copy of the other side's configuration: the connection may flush persistently if
 * that side has direct write to PMem, and uses only native operations that it serves. It
 * applies to operations posted later, including those in batches. */
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg);

/* Starts or finishes the disconnection; RPMA_CONN_CLOSED follows. */
int rpma_conn_disconnect(struct rpma_conn *conn);

/* Deletes the connection in any state, with its queues; if it is established, the other side
 * gets RPMA_CONN_CLOSED. The connection is deleted even if a step fails. */
int rpma_conn_delete(struct rpma_conn **conn_ptr);

/* *qp_num = number of the queue pair, as in the qp_num of its completions. */
int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num);

/* *mode = the present flush method of the connection, EMULATED or NATIVE. */
int rpma_conn_get_flush_mode(const struct rpma_conn *conn, enum rpma_flush_mode *mode);

/* *qp_ptr = the queue pair of libibverbs, owned by the connection. */
int rpma_conn_get_ibv_qp(const struct rpma_conn *conn, struct ibv_qp **qp_ptr);

/* *cq_ptr = main CQ, owned by the connection unless rpma_cq_new() created it. */
int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr);

/* *rcq_ptr = the connection's receive CQ, owned by it unless rpma_cq_new() created it, or NULL.
 */
int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr);

/* *fd = descriptor of the shared completion channel; owned by the connection. */
int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd);

/*
 * Waits on the shared channel until one of the CQs has a completion: *cq is that CQ, *is_rcq
 * (is_rcq may be NULL) is true if it is the receive CQ. flags is unused. Drain the CQ with
 * rpma_cq_get_wc() afterwards.
 */
int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq, bool *is_rcq);

/* ---- remote memory access ---------------------------------------------------------------- */

/* Selects the operations with a completion: pass one of these. Failed ones always have one. */
#define RPMA_F_COMPLETION_ON_ERROR (1 << 0)
#define RPMA_F_COMPLETION_ALWAYS (1 << 1 | RPMA_F_COMPLETION_ON_ERROR)

/* For writes and sends, with one of the above: the call copies the data, so that its memory may
 * be reused at once; rpma_conn_cfg_set_inline_size(3) names drivers that do not copy. The
 * device may refuse more than inline_size bytes of the connection's configuration
 * (RPMA_E_PROVIDER). Other operations ignore the flag, except that rpma_post() and the
 * functions of batches reject it. */
#define RPMA_F_INLINE (1 << 3)

/* For messages and writes with immediate data, with one of the completion flags: the completion
 * of the receive on the other side is solicited. Other operations ignore the flag, except that
 * rpma_post() and the functions of batches reject it. */
#define RPMA_F_SOLICITED (1 << 2)

/* Not used by any function; kept for sources that contain it. */
#define RPMA_W_WAIT_FOR_COMPLETION (1)

/* In bytes; also the size of an atomic write. */
#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

enum rpma_flush_type {
    RPMA_FLUSH_TYPE_PERSISTENT, /* the range has reached the persistence domain */
    RPMA_FLUSH_TYPE_VISIBILITY  /* the range is visible to the other side */
};

/*
 * The functions below post an operation and return at once; op_context is returned as wr_id of
 * the completion. len is at most UINT32_MAX. The regions must stay registered until the
 * operation has completed. The library does not check ranges: an access outside a region
 * completes with an error.
 */

/* Reads len bytes; both regions NULL with zero offsets and len: an empty read. */
int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
              const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
              const void *op_context);

/* Writes len bytes; both regions NULL with zero offsets and len: an empty write. */
int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
               const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
               const void *op_context);

/* Like rpma_write(), and completes a receive of the other side with imm (host byte order here,
 * ntohl(ibv_wc.imm_data) there). */
int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                        const struct rpma_mr_local *src, size_t src_offset, size_t len,
                        int flags, uint32_t imm, const void *op_context);

/* Writes the 8 bytes of src (copied) atomically and after all earlier flushes and reads;
 * rpma_atomic_write(3) names the drivers that do not. dst_offset is a multiple of
 * RPMA_ATOMIC_WRITE_ALIGNMENT. */
int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                      const char src[8], int flags, const void *op_context);

/*
 * Flushes the earlier writes of this connection to the len bytes at dst_offset, and no others:
 * natively, or emulated by reading after the writes (enum rpma_flush_mode).
 */
int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
               size_t len, enum rpma_flush_type type, int flags, const void *op_context);

/* ---- messages ---------------------------------------------------------------------------- */

/* Sends len bytes as a message; src NULL with offset 0 and len 0: an empty message. */
int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
              size_t len, int flags, const void *op_context);

/* Like rpma_send(), with imm as in rpma_write_with_imm(). */
int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
                       size_t len, int flags, uint32_t imm, const void *op_context);

/* Posts a receive; with dst NULL, offset 0 and len 0 it accepts an empty message. Messages fill
 * receives in the order of their posting. */
int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
              const void *op_context);

/* Posts count receives: see rpma_srq_recv_many(). */
int rpma_recv_many(struct rpma_conn *conn, const struct rpma_receive *receives, uint32_t count,
                   uint32_t *posted);

/* ---- many operations at once ------------------------------------------------------------- */

/* 0 is not a type, so that a forgotten type is rejected. */
enum rpma_work_type {
    RPMA_WORK_READ = 1,       /* remote memory to local memory */
    RPMA_WORK_WRITE,          /* local memory to remote memory */
    RPMA_WORK_WRITE_WITH_IMM, /* the same; completes a receive of the other side with imm */
    RPMA_WORK_ATOMIC_WRITE,   /* writes value to 8 remote bytes, see rpma_atomic_write() */
    RPMA_WORK_FLUSH,          /* flush_len remote bytes, see rpma_flush() */
    RPMA_WORK_SEND,           /* local memory as a message */
    RPMA_WORK_SEND_WITH_IMM,  /* the same, with imm */
    RPMA_WORK_FETCH_ADD,      /* adds value to a remote word; fetches its old value */
    RPMA_WORK_COMPARE_SWAP    /* stores value if the word equals compare; same fetch */
};

/*
 * One operation. Each type reads only its own members; type, flags, op_context and the reserved
 * members belong to all types. Start from {0}. Local memory is the SGE local or, with nsge > 0,
 * the nsge SGEs at sgl in their order; their lengths add up to at most UINT32_MAX. A read or
 * write without local memory must have no remote memory either.
 *
 * Remote atomics (RPMA_WORK_FETCH_ADD, RPMA_WORK_COMPARE_SWAP) operate on the 8 bytes at a
 * remote address that is a multiple of 8, in a region with RPMA_MR_USAGE_ATOMIC. The word, in
 * the byte order of that machine, is set to the sum (modulo 2^64) or, if it equals compare, to
 * value. Its old value is written to 8 bytes of local memory, in host byte order. An atomic
 * takes effect after all earlier operations of the connection. Some devices make it atomic only
 * with respect to other remote atomics: rpma_post(3).
 */
struct rpma_work {
    enum rpma_work_type type;
    uint32_t imm; /* host byte order here, ntohl(ibv_wc.imm_data) on the other side */
    const struct rpma_mr_remote *remote;
    size_t remote_offset; /* a multiple of 8 for an atomic write */
    struct rpma_sge local;
    const struct rpma_sge *sgl; /* only read during the call */
    uint32_t nsge;              /* at most max_sge of the connection's configuration */
    enum rpma_flush_type flush_type;
    size_t flush_len;       /* at most UINT32_MAX */
    uint64_t value;         /* of an atomic write: its 8 bytes are written in memory order */
    int flags;              /* RPMA_F_*; no other bits */
    uint32_t reserved0;     /* 0 */
    const void *op_context; /* returned as wr_id of the completion */
    uint64_t compare;       /* of RPMA_WORK_COMPARE_SWAP */
    uint64_t reserved1;     /* 0 */
};

/*
 * Posts count operations in their order, in as few calls of the provider as possible. *posted
 * (may be NULL) = number of operations that the device accepted, also if the call fails;
 * continue with work + *posted: no operation is posted twice. An invalid operation is rejected,
 * and earlier ones are posted. If a provider fails to notify the device of operations that it
 * has queued, or may have queued, they count as accepted.
 */
int rpma_post(struct rpma_conn *conn, const struct rpma_work *work, uint32_t count,
              uint32_t *posted);

struct rpma_batch;

/*
 * Creates an empty batch with room for max_ops (at least 1) operations of conn. One thread at a
 * time may use a batch; each thread may have its own batch of the same connection. Once the
 * connection is deleted, its batches can only be deleted.
 */
int rpma_batch_new(struct rpma_conn *conn, uint32_t max_ops, struct rpma_batch **batch_ptr);

/* Deletes the batch; operations that were posted are unaffected. */
int rpma_batch_delete(struct rpma_batch **batch_ptr);

/* Adds an operation to the batch without posting it. The value of an atomic write is copied. A
 * rejected operation leaves the batch unchanged. */
int rpma_batch_add(struct rpma_batch *batch, const struct rpma_work *work);

/* Replaces the operation with this index, counted from 0; the batch stays ready to be posted. A
 * rejected operation leaves the batch unchanged. */
int rpma_batch_set(struct rpma_batch *batch, uint32_t index, const struct rpma_work *work);

/* *size = number of operations in the batch, *room = number of further ones that fit; each may
 * be NULL. */
int rpma_batch_get_size(const struct rpma_batch *batch, uint32_t *size, uint32_t *room);

/*
 * Posts the operations in their order, in one call of the provider. The batch keeps them: the
 * next call posts the same list again, with the contents that the regions have at that time.
 * *posted (may be NULL) = number of operations that the device accepted in this call, also if
 * the call fails; after a failure the next call continues with the first operation that the
 * device did not accept, so that no operation is posted twice. A batch with a native flush or
 * atomic write is accepted or refused as a whole. If it also has operations with several SGEs,
 * or is longer than the send queue, this applies to each of its sections (rpma_batch_post(3)).
 * If a provider fails to notify the device of operations that it has queued, or may have
 * queued, they count as accepted.
 */
int rpma_batch_post(struct rpma_batch *batch, uint32_t *posted);

/* Removes all operations from the batch. */
int rpma_batch_reset(struct rpma_batch *batch);

/* ---- completions ------------------------------------------------------------------------- */

struct rpma_cq_cfg;

/* Creates a configuration: size 100, completion vector 0. */
int rpma_cq_cfg_new(struct rpma_cq_cfg **cfg_ptr);

int rpma_cq_cfg_delete(struct rpma_cq_cfg **cfg_ptr);

/* The number of completions that the queue holds. */
int rpma_cq_cfg_set_size(struct rpma_cq_cfg *cfg, uint32_t size);
int rpma_cq_cfg_get_size(const struct rpma_cq_cfg *cfg, uint32_t *size);

/* The completion vector, which selects the processor that handles the queue's interrupts. */
int rpma_cq_cfg_set_comp_vector(struct rpma_cq_cfg *cfg, uint32_t comp_vector);
int rpma_cq_cfg_get_comp_vector(const struct rpma_cq_cfg *cfg, uint32_t *comp_vector);

/* Creates a completion queue for many connections (rpma_conn_cfg_set_cq(),
 * rpma_conn_cfg_set_rcq()), with a completion channel of its own; cfg NULL: defaults; cfg is
 * only read during the call. The peer must outlive it. */
int rpma_cq_new(struct rpma_peer *peer, const struct rpma_cq_cfg *cfg, struct rpma_cq **cq_ptr);

/* Deletes a queue of rpma_cq_new(); delete its connections first. If the provider refuses, the
 * queue still exists and the call may be repeated; if it refuses only the completion channel,
 * the queue is deleted. */
int rpma_cq_delete(struct rpma_cq **cq_ptr);

/* *fd = descriptor that is readable if there may be a completion; owned by the CQ. */
int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd);

/* Waits until the CQ may have completions; blocks unless its descriptor is O_NONBLOCK. Drain
 * the CQ with rpma_cq_get_wc() afterwards. */
int rpma_cq_wait(struct rpma_cq *cq);

/* The first half of rpma_cq_wait(): takes one event of the CQ without arming it again. */
int rpma_cq_take_event(struct rpma_cq *cq);

/* The second half: requests an event for the next completion or, with solicited_only, for the
 * next solicited or failed one. Poll once more afterwards: earlier completions in the CQ cause
 * no event. */
int rpma_cq_arm(struct rpma_cq *cq, bool solicited_only);

/* Delays the event of an armed CQ until it has count completions, or period_us microseconds
 * have passed since the first; 0 and 0: no delay. Both are at most 65535. */
int rpma_cq_set_moderation(struct rpma_cq *cq, uint32_t count, uint32_t period_us);

/* Polls up to num_entries (>= 1) completions into wc without blocking; *num_entries_got (may be
 * NULL if num_entries is 1) = their number. */
int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc,
                   int *num_entries_got);

/* *ibv_cq_ptr = the queue of libibverbs, owned by cq. */
int rpma_cq_get_ibv_cq(const struct rpma_cq *cq, struct ibv_cq **ibv_cq_ptr);

/* ---- events of the device ---------------------------------------------------------------- */

enum rpma_peer_event_type {
    RPMA_PEER_EVENT_OTHER = 1,    /* see ibv_event; a later release may add its type */
    RPMA_PEER_EVENT_PORT_UP,      /* a port is active (again) */
    RPMA_PEER_EVENT_PORT_DOWN,    /* a port is not active */
    RPMA_PEER_EVENT_ADDR_CHANGED, /* the LID or the GIDs of a port changed */
    RPMA_PEER_EVENT_DEVICE_GONE,  /* the device was removed or failed permanently */
    RPMA_PEER_EVENT_QP_ERROR,     /* a queue pair is in the error state */
    RPMA_PEER_EVENT_CQ_ERROR,     /* a CQ overran: its completions are lost */
    RPMA_PEER_EVENT_SRQ_ERROR,    /* a shared receive queue accepts no receives */
    RPMA_PEER_EVENT_SRQ_LIMIT     /* fewer receives than rpma_srq_set_limit() requires */
};

struct rpma_peer_event {
    enum rpma_peer_event_type type;
    int ibv_event; /* the event of libibverbs, an enum ibv_event_type */
    uint32_t port; /* of an event of a port, counted from 1; otherwise 0 */
    uint32_t reserved0;
    /* The handle of the event's object. All are NULL for a port or the device, and for objects
     * that the program created with libibverbs or is deleting. */
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    struct rpma_srq *srq;
    /* The object itself: an ibv_qp, ibv_cq, ibv_srq or ibv_wq, or NULL. The event is
     * acknowledged, so compare the pointer, and do not dereference it if a thread may have
     * destroyed the object. */
    const void *ibv_object;
    uint64_t reserved[2];
};

/* *fd = descriptor that is readable if an event is pending. It belongs to the device: all peers
 * on one ibv_context share it and its O_NONBLOCK. */
int rpma_peer_get_event_fd(const struct rpma_peer *peer, int *fd);

/*
 * Takes the next event of the device, acknowledges it and writes it to *event; blocks unless
 * the descriptor is O_NONBLOCK. A call with any peer takes the events of all peers on the
 * device: each event is returned once, with a handle of whichever peer it concerns.
 * RPMA_PEER_EVENT_DEVICE_GONE is the last one.
 */
int rpma_peer_next_event(struct rpma_peer *peer, struct rpma_peer_event *event);

/* ---- logging ----------------------------------------------------------------------------- */

enum rpma_log_level {
    RPMA_LOG_DISABLED = -1,
    RPMA_LOG_LEVEL_FATAL,
    RPMA_LOG_LEVEL_ERROR,
    RPMA_LOG_LEVEL_WARNING,
    RPMA_LOG_LEVEL_NOTICE,
    RPMA_LOG_LEVEL_INFO,
    RPMA_LOG_LEVEL_DEBUG
};

enum rpma_log_threshold {
    RPMA_LOG_THRESHOLD,     /* most detailed level logged; starts at RPMA_LOG_LEVEL_WARNING */
    RPMA_LOG_THRESHOLD_AUX, /* the same for copies to stderr; starts disabled */
    RPMA_LOG_THRESHOLD_MAX
};

/* A log function of the program. Any thread may call it, so it must be thread-safe; its
 * arguments are valid during the call only, and message_format ends with a newline. */
typedef void rpma_log_function(enum rpma_log_level level, const char *file_name,
                               const int line_no, const char *function_name,
                               const char *message_format, ...);

/* The default function: syslog, and stderr up to RPMA_LOG_THRESHOLD_AUX. */
#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

/* Sets the log function of the process. Cannot fail; returns 0. */
int rpma_log_set_function(rpma_log_function *log_function);

/* Sets or gets a threshold of the process: messages up to this level pass. */
int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);
int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level);

/* ---- declarations of releases before 1.0, for their sources ------------------------------ */

enum rpma_op {
    RPMA_OP_READ,
    RPMA_OP_WRITE,
    RPMA_OP_FLUSH,
    RPMA_OP_SEND,
    RPMA_OP_RECV,
    RPMA_OP_RECV_RDMA_WITH_IMM
};

struct rpma_completion {
    void *op_context;             /* op_context of the operation */
    enum rpma_op op;              /* type of the operation */
    uint32_t byte_len;            /* bytes received */
    enum ibv_wc_status op_status; /* after a failure, only this and op_context are valid */
    unsigned flags;               /* IBV_WC_* flags */
    uint32_t imm;                 /* host byte order; valid with IBV_WC_WITH_IMM in flags */
};

/* *fd = descriptor of the main CQ. */
int rpma_conn_get_completion_fd(const struct rpma_conn *conn, int *fd)
    LIBRPMA_DEPRECATED("use rpma_conn_get_cq and rpma_cq_get_fd");

/* rpma_cq_wait() on the main CQ. */
int rpma_conn_completion_wait(struct rpma_conn *conn)
    LIBRPMA_DEPRECATED("use rpma_conn_get_cq and rpma_cq_wait");

/* rpma_cq_get_completion() on the main CQ. */
int rpma_conn_completion_get(struct rpma_conn *conn, struct rpma_completion *cmpl)
    LIBRPMA_DEPRECATED("use rpma_conn_get_cq and rpma_cq_get_wc");

/* Polls one completion. */
int rpma_cq_get_completion(struct rpma_cq *cq, struct rpma_completion *cmpl)
    LIBRPMA_DEPRECATED("use rpma_cq_get_wc");

/* Like rpma_atomic_write(), from 8 bytes at src_offset of a region (RPMA_MR_USAGE_WRITE_SRC)
 * that must stay registered until the operation has completed; never native. */
int rpma_write_atomic(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                      const struct rpma_mr_local *src, size_t src_offset, int flags,
                      const void *op_context) LIBRPMA_DEPRECATED("use rpma_atomic_write");

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_H */
