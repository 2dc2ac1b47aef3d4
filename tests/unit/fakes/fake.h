// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fake.h -- the tests' interface to the fakes of libibverbs, librdmacm and the allocator.
//
// The fakes carry the SONAMEs and version nodes of the real libraries, so the same test runs
// over any librpma.so.0. They record and never fail a test themselves: an assertion inside a
// fake would leap over C++ frames. A test looks at the record after the call.

#ifndef FAKE_H
#define FAKE_H 1

#include "../../../sim/fabric/rules.h"

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- life of the fakes ---------------------------------------------------------------------

// Resets the fakes before every test: no object, record or fault, and the default device.
void fake_reset(void);

// The objects that the library still holds, one line per kind; "" if it holds none.
// Objects whose release a fault refused do not count, because nothing more can release them.
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

struct fake_elements {
    int num_sge;
    union {
        struct ibv_sge sge; // the first
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
        struct fake_elements elements;
        struct {
            int num_sge;
            struct ibv_sge sge; // the first
        };
    };
    // The bytes themselves: with IBV_SEND_INLINE, or atomic write.
    unsigned char inlined[FAKE_MAX_INLINE];
    size_t inlined_bytes;
    uint64_t flush_len;
    unsigned flush_type, flush_level;
    uint64_t compare_add, swap; // of a remote atomic
};

struct fake_receive {
    uint64_t wr_id;
    union {
        struct fake_elements elements;
        struct {
            int num_sge;
            struct ibv_sge sge; // the first
        };
    };
};

struct fake_call {
    const char *name;   // of the function as the program names it
    const void *object; // the verbs or CM object it acts on, if any
    bool failed;        // made to fail by a fault
    int error;          // errno of that fault
    bool libc;          // malloc(), getaddrinfo() and their like, not libibverbs or librdmacm
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
            unsigned requests;     // how many the list has
        };
        struct fake_receive recv; // the first of a list
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
            const struct sockaddr *addr;                 // destination, or the address to bind
            const struct sockaddr *source;               // of rdma_resolve_addr(), or NULL
            struct sockaddr_storage given, given_source; // the addresses they point to
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
            int value;       // of an int, else the first byte
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

// Names of the provider calls since fake_forget(), separated by blanks, without libc's.
const char *fake_calls(void);
// How often name was called; the last such call (NULL when none).
unsigned fake_count(const char *name);
const struct fake_call *fake_last(const char *name);
// The nth call of that name, from 1.
const struct fake_call *fake_nth(const char *name, unsigned nth);
// Clears the record; faults keep their count. The device also executes what the send
// queues have, which frees their room (Linux 7.3, drivers/infiniband/sw/rxe/rxe_comp.c,
// do_complete(); it does not wait until the completion is taken).
void fake_forget(void);

// Requests that send queues accepted since fake_forget(), in order, from all calls.
unsigned fake_posted_count(void);
const struct fake_post *fake_posted(unsigned nth); // from 0; NULL when there is none
// The same for receives, in all queues.
unsigned fake_received_count(void);
const struct fake_receive *fake_received(unsigned nth);

// ---- memory of a target --------------------------------------------------------------------

// Makes memory of a target, all zeros, at that address and under that key; a repeated call
// clears it; what is not persistent yet, is forgotten. With it, every request that a queue pair
// accepts is executed over these bytes at once; without it nothing is executed. Returns the
// bytes that are found after a power failure.
const unsigned char *fake_target(uint64_t addr, size_t size, uint32_t rkey);
// From now on the region of that key takes no remote atomics.
void fake_target_without_atomics(uint32_t rkey);
// The target executes this many more operations and none after them.
void fake_stop_target_after(unsigned operations);
// Computes the memory after a power failure now; the target itself continues. Each word that is
// not persistent survives or is lost on its own: bit n % 64 is set if the nth such word, in
// the order of execution, reached the memory. Returns the number of these words. UINT64_MAX
// leaves the newest content.
size_t fake_power_failure(uint64_t survivors);

// ---- faults --------------------------------------------------------------------------------

// Makes the nth call of that name fail (from now, counted from 1); name NULL: any call that can
// fail, allocations included. Several faults may be set. error 0: errno is 0. A post may also
// return a negative number: rdma-core 56, providers/cxgb4/qp.c, c4iw_post_send() and
// c4iw_post_receive(), return -ENOMEM and -EINVAL. A failed ibv_poll_cq() returns -2 and leaves
// errno alone, as mlx4 and mlx5 do.
//
// Parts of a post fail by names of their own, which do not appear in the record: "send request"
// and "receive request" count the requests after the first of each list and refuse only the
// nth, so those before it are in the queue; "doorbell" fails after all requests were queued.
// "address event" and "route event" report a failed resolution on a channel.
void fake_fail(const char *name, unsigned nth, int error);
// The same for the nth call and every later one.
void fake_fail_from(const char *name, unsigned nth, int error);
void fake_faults_off(void);
// How many calls were made to fail since fake_reset(), and the first of them.
unsigned fake_faults_fired(void);
const char *fake_first_fault(void);

// ---- the device ----------------------------------------------------------------------------

struct fake_device {
    struct sim_profile profile; // rxe, without on-demand paging and native operations
    enum ibv_transport_type transport_type; // if not 0: reported instead of the profile's
    uint64_t flush_caps;                    // SIM_CAP_FLUSH_* that it reports in addition
    bool dax;                               // registers memory only with IBV_ACCESS_ON_DEMAND
    bool pmem;                              // accepts IBV_ACCESS_FLUSH_PERSISTENT
    bool no_device;                         // addresses lead to no device (wildcard bind)
    int addresses;        // results of getaddrinfo(); every second one is IPv6
    int gai_error;        // if not 0: getaddrinfo() returns it and keeps errno
    int routes;           // routes of IBACM, which rdma_getaddrinfo() puts first
    int unlisted;         // devices missing in the list; 2: ibv_get_device_list() fails
    int other_device;     // CONNECT_REQUESTs arrive on the second device
    uint64_t odp_general; // capability bits that it reports in addition
    uint32_t odp_rc;
    int client;          // number of the source address of CONNECT_REQUESTs
    bool keeps_bad_wr;   // bad_wr is set only when one request is refused, as in mlx5
    bool fast;           // executes each request before the next one
    bool any_range;      // SGEs may exceed their region or domain, which a provider
                         // reports by a completion
    bool silent;         // resolving an address or a route never completes
    bool takes_early;    // sends before the connection: mlx5 does not look at the state
    bool reuses;         // a new object gets the address of one of its kind that was destroyed
    int more_devices;    // in the list, all with the same long name
    bool ipc_lock;       // this process has CAP_IPC_LOCK,
    bool user_namespace; // and a user namespace of its own
};

struct fake_device *fake_device(void);
struct sim_profile *fake_profile(void); // of that device
// The context of the first (0) or second (1) device, or another one of the first (2).
struct ibv_context *fake_context(int number);
// Whether this is the address with that number (from 0) that getaddrinfo() returned, whatever
// the port. The addresses of IBACM's routes have higher numbers: sources start at
// FAKE_FIRST_ROUTE, and the destination of each route to address n is FAKE_ROUTE_TO(n).
#define FAKE_MOST_ADDRESSES 32
#define FAKE_FIRST_ROUTE FAKE_MOST_ADDRESSES
#define FAKE_ROUTE_TO(n) (2 * FAKE_MOST_ADDRESSES + (n))
bool fake_addr_is(const struct sockaddr *addr, int number);

// Keys of the newest live region at that address; 0: none.
uint32_t fake_lkey(const void *addr);
uint32_t fake_rkey(const void *addr);

// ---- completions ---------------------------------------------------------------------------

// The QP of that number and, through it, its CQs (send_cq, recv_cq); NULL: no such live QP.
struct ibv_qp *fake_qp(uint32_t qp_num);
// The nth live CQ (from 0) whose events arrive on that descriptor.
struct ibv_cq *fake_cq_on(int fd, unsigned nth);
// Adds a completion, and an event when the CQ is armed for any.
void fake_complete(struct ibv_cq *cq, const struct ibv_wc *wc);
// The same, with an event also when it is armed for solicited ones.
void fake_complete_solicited(struct ibv_cq *cq, const struct ibv_wc *wc);
// Adds an event without a completion.
void fake_notify(struct ibv_cq *cq);
bool fake_armed(const struct ibv_cq *cq);
unsigned fake_unacked(const struct ibv_cq *cq);
// An event of a CQ that is not the library's, on that descriptor; returns that CQ.
struct ibv_cq *fake_foreign_event(int fd);
// The next ibv_poll_cq() returns this and no completion. rdma-core 56: mlx4_poll_cq() and
// poll_cq() of mlx5 (providers/mlx4/cq.c, providers/mlx5/cq.c) return CQ_POLL_ERR, which is -2.
void fake_poll_returns(int number);

// ---- events of the devices -----------------------------------------------------------------

// Adds an event: of the queue pair, CQ or SRQ whose structure object is, or of that port.
void fake_async_event(struct ibv_context *context, enum ibv_event_type type, void *object,
                      int port);
// The newest SRQ, and its limit.
struct ibv_srq *fake_srq(void);
uint32_t fake_srq_limit(const struct ibv_srq *srq);

// ---- signals -------------------------------------------------------------------------------

// The next call of this thread that waits for an event of any kind and that has to wait
// unblocks this signal meanwhile. The thread blocks it otherwise, so a signal that was sent
// before the call arrives during the wait.
void fake_wait_unblocks(int signal);

// ---- connection manager --------------------------------------------------------------------

// Adds an event for the ID on the event channel of that descriptor. On InfiniBand
// and RoCE its private data has the full length of the message, padded with zeros: 56 bytes in
// a request, 196 in an acceptance, 148 in a rejection. On iWARP it has its own length.
void fake_cm_event(int fd, enum rdma_cm_event_type type, const void *data, uint8_t len);
// The same with a status. Linux 7.3, drivers/infiniband/core/cma.c: for a rejection it is the
// reason of the InfiniBand CM (cma_ib_handler(), IB_CM_REJ_RECEIVED), on iWARP a negative error
// number (cma_iw_handler()); for UNREACHABLE, ROUTE_ERROR and ADDR_ERROR it is a negative error
// number.
void fake_cm_event_status(int fd, enum rdma_cm_event_type type, int status, const void *data,
                          uint8_t len);
// Live CM IDs on the event channel of that descriptor.
unsigned fake_ids_on(int fd);
// Events that wait on that channel.
unsigned fake_pending_on(int fd);

// ---- the allocator of librpma --------------------------------------------------------------

// Redirects calls that librpma.so.0 (and no other library) makes to the allocator,
// getaddrinfo(), freeaddrinfo(), syslog(), vsnprintf(), capget() and readlink() to the fakes.
// To be called once per process, before librpma.
void fake_hook_allocator(void);
// Bytes the library holds now.
size_t fake_bytes_held(void);
// The text that librpma.so.0 last gave to syslog(), which is hooked in the same way; nothing
// reaches the log of the system.
const char *fake_syslog(int *priority);
void fake_syslog_forget(void);
// How many texts librpma.so.0 has formatted so far, hooked in the same way.
unsigned fake_formatted(void);
// Is true if librpma.so.0 imports a symbol.
bool fake_library_imports(const char *symbol);

#endif // FAKE_H
