// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fake.h -- the tests' interface to the fakes of libibverbs, librdmacm and the allocator.
//
// The fakes carry the SONAMEs and version nodes of the real libraries, so the same test runs
// over any librpma.so.0. They record and never fail a test themselves: an assertion inside a
// fake would skip C++ frames. A test checks the record after the call.

#ifndef FAKE_H
#define FAKE_H 1

#include "../../../sim/device/rules.h"

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- reset, leaks and misuses --------------------------------------------------------------

// Resets the fakes before every test: no object, record or fault, and the default device.
void fake_reset(void);

// The objects that the library still holds, one line per kind; "" if it holds none. Objects
// whose release failed by a fault do not count, because they cannot be released any more.
const char *fake_leaks(void);

// Mistakes of the library (double release, unacknowledged events, use after release …).
const char *fake_misuses(void);

// For tests with threads: no call is recorded, no fault is injected, and ThreadSanitizer
// ignores the lock of the data path, which would hide a race.
void fake_quiet(bool quiet);

// ---- recorded calls ------------------------------------------------------------------------

// Limits of a work request, as in rdma_rxe: Linux 7.3, drivers/infiniband/sw/rxe/rxe_param.h,
// RXE_MAX_SGE, RXE_MAX_SRQ_SGE, RXE_MAX_INLINE_DATA.
enum { FAKE_MAX_SGE = 32, FAKE_MAX_SRQ_SGE = 27, FAKE_MAX_INLINE = 512 };

struct fake_sg_list {
    int num_sge;
    union {
        struct ibv_sge sge; // the first SGE
        struct ibv_sge sges[FAKE_MAX_SGE];
    };
};

struct fake_post { // a work request of ibv_post_send(), or of an ibv_wr_*() builder
    uint64_t wr_id;
    int opcode; // enum ibv_wr_opcode; SIM_WR_* for the native operations
    unsigned flags;
    uint32_t imm;
    uint64_t remote_addr;
    uint32_t rkey;
    union {
        struct fake_sg_list sg_list;
        struct {
            int num_sge;
            struct ibv_sge sge; // the first SGE
        };
    };
    // The data of an atomic write, or of a request with IBV_SEND_INLINE.
    unsigned char inlined[FAKE_MAX_INLINE];
    size_t inlined_bytes;
    uint64_t flush_len;
    unsigned flush_type, flush_level;
    uint64_t compare_add, swap; // of a remote atomic
};

struct fake_receive {
    uint64_t wr_id;
    union {
        struct fake_sg_list sg_list;
        struct {
            int num_sge;
            struct ibv_sge sge; // the first SGE
        };
    };
};

struct fake_call {
    const char *name;   // the function that a program calls
    const void *object; // the verbs or CM object it acts on, if any
    bool failed;        // made to fail by a fault
    int error;          // errno of that fault
    bool libc;          // a function of libc, not of libibverbs or librdmacm
    union {
        size_t bytes; // malloc, calloc, mmap
        struct {
            void *addr;
            size_t length;
            unsigned access;
        } reg_mr;
        struct {
            int cqe, comp_vector;
            const void *channel, *cq_context;
        } create_cq;
        struct ibv_srq_init_attr srq;
        struct ibv_qp_init_attr_ex qp;
        struct {
            struct fake_post send; // the first request of a list
            unsigned requests;     // number of requests before a rejected one
        };
        struct fake_receive recv; // the first request of a list
        struct {
            struct rdma_conn_param param;
            unsigned char data[256];
        } connect; // also accept; for reject only private_data_len and data
        struct {
            char node[64], service[32];            // "" for NULL
            int flags, family, socktype, protocol; // getaddrinfo()
            int qp_type, port_space;               // rdma_getaddrinfo()
        } getaddrinfo;
        struct {
            const struct sockaddr *addr;   // destination, or the address to bind
            const struct sockaddr *source; // of rdma_resolve_addr(), or NULL
            struct sockaddr_storage addr_copy, source_copy; // copies of both
            int timeout_ms;
        } resolve;
        struct {
            int advice;
            uint32_t flags;
            struct ibv_sge sge;
        } advise;
        struct {
            int level, name;
            size_t length;
            int value;       // of an int; otherwise the first byte
        } option;            // set_option
        const void *channel; // create_id, migrate_id
        unsigned number;     // ack_cq_events, poll_cq
        struct ibv_modify_cq_attr modify_cq;
        struct {
            struct ibv_qp_attr attr;
            int mask;
        } modify_qp;
        int backlog; // listen
    };
};

// Names of the provider calls since fake_forget(), separated by blanks, without calls of libc.
const char *fake_calls(void);
// How often name was called; the last such call (NULL when none).
unsigned fake_count(const char *name);
const struct fake_call *fake_last(const char *name);
// The nth call of that name, from 1.
const struct fake_call *fake_nth(const char *name, unsigned nth);
// Clears the record; faults keep their count. The device also executes all queued sends, which
// frees their entries in the send queues (Linux 7.3, drivers/infiniband/sw/rxe/rxe_comp.c,
// do_complete(); it does not wait until the completion is polled).
void fake_forget(void);

// Requests that send queues accepted since fake_forget(), in order, from all calls.
unsigned fake_posted_count(void);
const struct fake_post *fake_posted(unsigned nth); // from 0; NULL when there is none
// The same for receives, in all queues.
unsigned fake_received_count(void);
const struct fake_receive *fake_received(unsigned nth);

// ---- faults --------------------------------------------------------------------------------

// Makes the nth call of that name fail (from now, counted from 1); name NULL: any call that
// can fail, allocations included. Several faults may be set. error 0: errno is 0. A post may
// also return a negative number: rdma-core 56, providers/cxgb4/qp.c, c4iw_post_send() and
// c4iw_post_receive(), return -ENOMEM and -EINVAL. A failed ibv_poll_cq() returns -2 and does
// not change errno, as mlx4 and mlx5 do.
//
// A step inside a call fails by a fault of the simulated fabric (sim/model/faults.cc), which
// does not appear in the record: "refuse ibv_post_send" and "refuse ibv_post_recv" count the
// requests after the first of each list and reject only the nth, so the requests before it are
// queued; "doorbell" fails after all requests were queued. With "cut rdma_resolve_addr" and
// "cut rdma_resolve_route", the event of the call reports that the peer did not reply.
void fake_fail(const char *name, unsigned nth, int error);
// The same for the nth call and every later one.
void fake_fail_from(const char *name, unsigned nth, int error);
void fake_faults_off(void);
// The number of calls that faults made fail since fake_reset(), and the name of the first.
unsigned fake_faults_fired(void);
const char *fake_first_fault(void);

// ---- the device ----------------------------------------------------------------------------

struct fake_device {
    struct sim_profile profile; // rxe, without on-demand paging and native operations
    enum ibv_transport_type transport_type; // if not 0: reported instead of the profile's
    bool infiniband;                        // IDs have a GID that is no IP address
    uint64_t flush_caps;                    // SIM_CAP_FLUSH_* that it reports in addition
    bool dax;                               // registers memory only with IBV_ACCESS_ON_DEMAND
    bool pmem;                              // accepts IBV_ACCESS_FLUSH_PERSISTENT
    bool no_device;                         // addresses have no device (wildcard bind)
    int addresses;        // results of getaddrinfo(); every second one is IPv6
    int gai_error;        // if not 0: getaddrinfo() returns it and keeps errno
    int routes;           // routes of IBACM, which rdma_getaddrinfo() puts first
    int unlisted;         // devices missing in the list; 2: ibv_get_device_list() fails
    int other_device;     // CONNECT_REQUESTs arrive on the second device
    uint64_t odp_general; // capability bits that it reports in addition
    uint32_t odp_rc;
    int client;          // number of the source address of CONNECT_REQUESTs
    bool fast;           // executes each request before the next one
    bool any_range;      // SGEs may exceed their region or domain, which a provider
                         // reports by a completion
    bool silent;         // resolving an address or a route never completes
    bool reuses;         // a new object gets the address of a destroyed one of its kind
    int more_devices;    // in the list, all with the same long name
    bool ipc_lock;       // this process has CAP_IPC_LOCK
    bool user_namespace; // this process has a user namespace of its own
};

struct fake_device *fake_device(void);
struct sim_profile *fake_profile(void); // of that device
// The context of the first (0) or second (1) device, or another one of the first (2).
struct ibv_context *fake_context(int number);
// Returns whether this is the address with that number (from 0) of getaddrinfo(); ports are
// not compared. The addresses of IBACM's routes have higher numbers: sources start at
// FAKE_FIRST_ROUTE, and the destination of each route to address n is FAKE_ROUTE_TO(n).
#define FAKE_MAX_ADDRESSES 32
#define FAKE_FIRST_ROUTE FAKE_MAX_ADDRESSES
#define FAKE_ROUTE_TO(n) (2 * FAKE_MAX_ADDRESSES + (n))
bool fake_addr_is(const struct sockaddr *addr, int number);

// Keys of the newest live region at that address; 0: none.
uint32_t fake_lkey(const void *addr);
uint32_t fake_rkey(const void *addr);

// ---- completions ---------------------------------------------------------------------------

// The QP of that number and, through it, its CQs (send_cq, recv_cq); NULL: no such live QP.
struct ibv_qp *fake_qp(uint32_t qp_num);
// The nth live CQ (from 0) whose events arrive on that descriptor.
struct ibv_cq *fake_cq_on(int fd, unsigned nth);
// Adds a completion, and an event if the CQ is armed for all completions.
void fake_complete(struct ibv_cq *cq, const struct ibv_wc *wc);
// Adds a solicited completion, and an event if the CQ is armed for any.
void fake_complete_solicited(struct ibv_cq *cq, const struct ibv_wc *wc);
// Adds an event without a completion.
void fake_notify(struct ibv_cq *cq);
bool fake_armed(const struct ibv_cq *cq);
unsigned fake_unacked(const struct ibv_cq *cq);
// Creates a CQ without the library, adds an event of this CQ on that descriptor, and returns
// the CQ.
struct ibv_cq *fake_foreign_event(int fd);
// Makes the next ibv_poll_cq() return this number and no completion. rdma-core 56:
// mlx4_poll_cq() and poll_cq() of mlx5 (providers/mlx4/cq.c, providers/mlx5/cq.c) return
// CQ_POLL_ERR, which is -2.
void fake_poll_returns(int number);

// ---- events of the devices -----------------------------------------------------------------

// Adds an event of object (queue pair, CQ, SRQ), or of the port if object is NULL.
void fake_async_event(struct ibv_context *context, enum ibv_event_type type, void *object,
                      int port);
// The newest SRQ, and its limit.
struct ibv_srq *fake_srq(void);
uint32_t fake_srq_limit(const struct ibv_srq *srq);

// ---- signals -------------------------------------------------------------------------------

// The next call of this thread that has to wait for an event unblocks this signal during the
// wait. The thread blocks it otherwise, so that a signal sent before the call arrives during
// the wait.
void fake_wait_unblocks(int signal);

// ---- connection manager --------------------------------------------------------------------

// Adds an event for the ID on the event channel of that descriptor. On InfiniBand
// and RoCE its private data has the full length of the message, padded with zeros: 56 bytes in
// a request, 196 in a reply, 148 in a rejection. On iWARP it has the length that was sent.
void fake_cm_event(int fd, enum rdma_cm_event_type type, const void *data, uint8_t len);
// The same with a status. Linux 7.3, drivers/infiniband/core/cma.c: for a rejection it is the
// reason of the InfiniBand CM (cma_ib_handler(), IB_CM_REJ_RECEIVED), on iWARP a negative error
// number (cma_iw_handler()); for UNREACHABLE, ROUTE_ERROR and ADDR_ERROR it is a negative error
// number.
void fake_cm_event_status(int fd, enum rdma_cm_event_type type, int status, const void *data,
                          uint8_t len);
// The number of live CM IDs on the event channel of that descriptor.
unsigned fake_ids_on(int fd);
// The number of pending events on that channel.
unsigned fake_pending_on(int fd);

// ---- the allocator of librpma --------------------------------------------------------------

// Redirects calls that librpma.so.0 (and no other library) makes to the allocator,
// getaddrinfo(), freeaddrinfo(), syslog(), vsnprintf(), capget() and readlink() to the fakes.
// A process calls it once, before any function of librpma.
void fake_hook_allocator(void);
// The number of bytes that the library holds.
size_t fake_bytes_held(void);
// The last text that librpma.so.0 passed to the hooked syslog(), which writes to no log.
const char *fake_syslog(int *priority);
void fake_syslog_forget(void);
// The number of calls of vsnprintf() that librpma.so.0 has made.
unsigned fake_formatted(void);
// Returns whether librpma.so.0 imports a symbol.
bool fake_library_imports(const char *symbol);

#endif // FAKE_H
