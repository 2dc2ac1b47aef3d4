// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fixture.h -- the objects that tests need, made through the public header.
//
// Tests and sweeps use the same steps. In a test every step must succeed; in a sweep any may
// fail.

#ifndef FIXTURE_H
#define FIXTURE_H 1

#include "unit.h"

#define FIXTURE_MEMORY_SIZE 4096
#define FIXTURE_EVERY_USAGE 0xff
#define FIXTURE_ADDRESS "192.168.0.1"
#define FIXTURE_PORT "7204"
#define FIXTURE_REMOTE_ADDR 0x10000u
#define FIXTURE_REMOTE_SIZE 64u
#define FIXTURE_REMOTE_RKEY 77u

// The operations that the library under test executes natively on a device with native
// operations.
#ifdef TEST_NATIVE_FLUSH
enum { BUILD_FLUSHES = true };
#else
enum { BUILD_FLUSHES = false };
#endif
#ifdef TEST_NATIVE_ATOMIC_WRITE
enum { BUILD_WRITES_ATOMICALLY = true };
#else
enum { BUILD_WRITES_ATOMICALLY = false };
#endif

// Bytes of peer configurations with direct write to PMem.
enum { UNADVERTISED = 0x01, SERVES = 0xa1, SERVES_FLUSH = 0x02, SERVES_ATOMIC_WRITE = 0x04 };

struct handles {
    struct rpma_peer *peer;
    struct rpma_mr_local *mr;      // the memory below, for every usage
    struct rpma_mr_remote *remote; // of an invented descriptor, for every usage
    struct rpma_peer_cfg *pcfg;    // with direct write to PMem
    struct rpma_srq_cfg *srq_cfg;
    struct rpma_srq *srq;
    struct rpma_conn_cfg *cfg;
    struct rpma_ep *ep;
    struct rpma_conn_req *req;
    struct rpma_conn *conn;
    struct rpma_batch *batch;
    struct rpma_cq_cfg *cq_cfg;
    struct rpma_ep_cfg *ep_cfg;
    struct rpma_cq *shared_cq, *shared_rcq; // of the program, for its connections
    // Other outputs, so that a sweep detects a failed call that writes them.
    struct ibv_context *context;
    struct rpma_cq *fired;
    struct ibv_wc wc;
    struct rpma_completion completion;
    enum rpma_conn_event event;
    int odp;
};

struct sweep;

struct fixture {
    struct handles h;
    struct sweep *sweep; // NULL in plain tests
    unsigned char memory[FIXTURE_MEMORY_SIZE];
};

// The fixture of the running test. It is empty at the start of a test; after the test the
// remaining objects are deleted without faults.
extern struct fixture w;
// Deletes the remaining objects between two cases of a test, and resets the fakes.
void fixture_reset(void);

// The configuration of a connection, and the steps that create it.
struct shape {
    const char *name;
    bool incoming;         // through an endpoint
    bool shared;           // the CQs share a completion channel
    uint32_t rcq_size;     // 0: no receive CQ
    bool srq;              // with a shared receive queue
    uint32_t srq_rcq_size; // size of the receive CQ of the SRQ; 0: none
    uint8_t private_data;  // bytes in both directions
    uint32_t shared_cq;    // size of a main CQ of the program; 0: the connection has its own
    uint32_t shared_rcq;   // size of a receive CQ of the program; 0: none
    enum rpma_flush_mode flush_mode;
    uint32_t max_sge; // of the connection and of the shared receive queue; 0: the default
};

// A step of a scenario: true if it succeeded. In a plain test a failed step fails the test.
#define STEP(w, call) (fixture_begin(w), fixture_step(w, (call), #call, __FILE__, __LINE__))
void fixture_begin(struct fixture *w);
bool fixture_step(struct fixture *w, int ret, const char *text, const char *file, int line);

// Deletes all objects, then makes peer, mr, remote and pcfg. fixture_conn() calls it first.
bool fixture_peer(struct fixture *w);
bool fixture_cfg(struct fixture *w, const struct shape *shape);
bool fixture_listen(struct fixture *w);
bool fixture_request(struct fixture *w, const struct shape *shape);   // up to h.req
bool fixture_make_req(struct fixture *w, const struct shape *shape);  // h.req from h.cfg
bool fixture_establish(struct fixture *w, const struct shape *shape); // h.conn from h.req
bool fixture_connect(struct fixture *w, const struct shape *shape);   // and h.pcfg applied
bool fixture_conn(struct fixture *w, const struct shape *shape);      // all steps
// Applies capabilities of the peer: creates h.pcfg from a descriptor with this byte.
bool fixture_apply(struct fixture *w, uint8_t descriptor);
// Deletes all existing objects, in the right order; false if a step failed.
bool fixture_delete(struct fixture *w);

// Descriptors of h.conn, of h.req and of h.ep.
int fixture_event_fd(const struct fixture *w);
int fixture_req_fd(const struct fixture *w);
int fixture_ep_fd(const struct fixture *w);
struct rpma_cq *fixture_cq(const struct fixture *w);
struct rpma_cq *fixture_rcq(const struct fixture *w);
int fixture_cq_fd(struct rpma_cq *cq);
// The QP of h.conn in the fakes.
struct ibv_qp *fixture_qp(const struct fixture *w);

// Expects that this name was the last one looked up, for TCP, with these flags.
void fixture_expect_name(const char *node, const char *service, int flags);

void fixture_nonblocking(int fd);
// Writes the 21 bytes of a region's descriptor.
void fixture_descriptor(unsigned char desc[21], uint64_t addr, uint64_t size, uint32_t rkey,
                        uint8_t usage);

#endif // FIXTURE_H
