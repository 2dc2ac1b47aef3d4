// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// world.h -- the objects that tests need around them, made through the public header.
//
// The same steps serve tests, where each must succeed, and sweeps, where any may fail.

#ifndef WORLD_H
#define WORLD_H 1

#include "unit.h"

#define WORLD_MEMORY_SIZE 4096
#define WORLD_EVERY_USAGE 0xff
#define WORLD_ADDRESS "192.168.0.1"
#define WORLD_PORT "7204"
#define WORLD_REMOTE_ADDR 0x10000u
#define WORLD_REMOTE_SIZE 64u
#define WORLD_REMOTE_RKEY 77u

// The operations that the library under test does natively on a device that has them.
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
enum { SILENT = 0x01, SERVES = 0xa1, SERVES_FLUSH = 0x02, SERVES_ATOMIC_WRITE = 0x04 };

struct handles {
    struct rpma_peer *peer;
    struct rpma_mr_local *mr;      // the memory below, for every usage
    struct rpma_mr_remote *remote; // of a made-up descriptor, for every usage
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
    struct rpma_cq *lent_cq, *lent_rcq; // of the program, for its connections
    // Other outputs of calls, here so that a sweep sees when a failed call writes them.
    struct ibv_context *context;
    struct rpma_cq *fired;
    struct ibv_wc wc;
    struct rpma_completion completion;
    enum rpma_conn_event event;
    int odp;
};

struct sweep;

struct world {
    struct handles h;
    struct sweep *sweep; // NULL in plain tests
    unsigned char memory[WORLD_MEMORY_SIZE];
};

// The world of the test that runs: empty at its beginning; what is left of it is deleted behind
// the test, without faults.
extern struct world w;
// The same between two cases of a test; then the fakes are as at its beginning.
void world_anew(void);

// How a connection is configured and made.
struct shape {
    const char *name;
    bool incoming;         // through an endpoint
    bool shared;           // one completion channel
    uint32_t rcq_size;     // 0: no receive CQ
    bool srq;              // with a shared receive queue
    uint32_t srq_rcq_size; // that owns a receive CQ
    uint8_t private_data;  // bytes both ways
    uint32_t lent_cq;      // size of a main CQ of the program; 0: the connection has its own
    uint32_t lent_rcq;     // the same for receives
    enum rpma_flush_mode flush_mode;
    uint32_t max_sge; // of the connection and of the shared receive queue; 0: the default
};

// A step: true when it succeeded. In a plain test a failed step fails the test.
#define STEP(w, call) (world_begin(w), world_step(w, (call), #call, __FILE__, __LINE__))
void world_begin(struct world *w);
bool world_step(struct world *w, int ret, const char *text, const char *file, int line);

// Deletes what there is, then makes peer, mr, remote and pcfg; world_conn() begins with it.
bool world_peer(struct world *w);
bool world_cfg(struct world *w, const struct shape *shape);
bool world_listen(struct world *w);
bool world_request(struct world *w, const struct shape *shape); // up to h.req
bool world_ask(struct world *w, const struct shape *shape);     // from h.cfg to h.req
bool world_up(struct world *w, const struct shape *shape);      // from h.req to h.conn, up
bool world_connect(struct world *w, const struct shape *shape); // and h.pcfg applied
bool world_conn(struct world *w, const struct shape *shape);    // all of it
// Applies a statement of the other side: makes h.pcfg from a descriptor with this byte.
bool world_apply(struct world *w, uint8_t statement);
// Deletes whatever there is, in the right order; false when a step failed.
bool world_drop(struct world *w);

// Descriptors of h.conn, of h.req and of h.ep.
int world_event_fd(const struct world *w);
int world_req_fd(const struct world *w);
int world_ep_fd(const struct world *w);
struct rpma_cq *world_cq(const struct world *w);
struct rpma_cq *world_rcq(const struct world *w);
int world_cq_fd(struct rpma_cq *cq);
// The QP of h.conn as the fakes know it.
struct ibv_qp *world_qp(const struct world *w);

// The last name that was looked up, for TCP, with these flags.
void world_expect_name(const char *node, const char *service, int flags);

void world_nonblocking(int fd);
// Writes the 21 bytes of a region's descriptor.
void world_descriptor(unsigned char desc[21], uint64_t addr, uint64_t size, uint32_t rkey,
                      uint8_t usage);

#endif // WORLD_H
