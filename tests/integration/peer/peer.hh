// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.hh -- the objects of one side and the commands that work on them
//
// A test drives one process per side over its standard input; every object has a number, which
// is 0 unless the command says otherwise.

#ifndef PEER_PEER_HH
#define PEER_PEER_HH 1

#include "args.hh"

#include <cerrno>
#include <functional>
#include <initializer_list>
#include <librpma.h>
#include <thread>
#include <utility>

constexpr size_t MAX_CONNS = 1024, MAX_REGIONS = 72, MAX_OTHERS = 8, MAX_ELEMENTS = 128;
constexpr int PATIENCE_MS = 60000; // to resolve an address or to wait, on a busy machine

struct area {
    char *base;
    size_t size;
};

struct world {
    ibv_context *device;
    rpma_peer *peer;
    rpma_ep *ep;
    area memory[MAX_REGIONS];
    rpma_mr_local *mr[MAX_REGIONS];
    rpma_mr_remote *remote[MAX_REGIONS];
    rpma_conn_cfg *cfg[MAX_OTHERS];
    rpma_srq *srq[MAX_OTHERS];
    rpma_cq *lent[MAX_OTHERS]; // made by this program, for its connections
    rpma_conn_req *req[MAX_CONNS];
    rpma_conn *conn[MAX_CONNS];
    rpma_batch *batch[MAX_OTHERS];
    int epoll_fd = -1;
};

extern world world;

// ---- how a command fails -----------------------------------------------------------------

// Results of commands besides the codes of librpma.
enum {
    ERR_TIMEOUT = 1,  // an expected completion or event did not come
    ERR_MISMATCH = 2, // data differ; the answer says where
    ERR_SYSTEM = 3,   // a call to the system failed; the answer says which
    ERR_CLOSED = 4,   // the connection ended, and no completion said so
};

struct Failed {
    int code;
    int error = errno; // of the provider, before anything is cleaned up
};

inline void must(int code) {
    if (code != 0)
        throw Failed{code};
}

inline void must_be(bool holds, int code) {
    if (!holds)
        throw Failed{code};
}

// Names the call of the system that failed.
void must_system(bool worked, const char *call);

const char *code_name(int code);

// An object that goes at the end of its scope.
template <class Object, int remove(Object **)> struct Scoped {
    Object *it = nullptr;
    Scoped() = default;
    Scoped(const Scoped &) = delete;
    Scoped &operator=(const Scoped &) = delete;
    ~Scoped() {
        if (it != nullptr)
            (void)remove(&it);
    }
};
using ScopedPeerCfg = Scoped<rpma_peer_cfg, rpma_peer_cfg_delete>;
using ScopedReq = Scoped<rpma_conn_req, rpma_conn_req_delete>;
using ScopedConn = Scoped<rpma_conn, rpma_conn_delete>;

// ---- what a command names ----------------------------------------------------------------

// A script that names a missing object is wrong.
rpma_conn *the_conn(const Args &args);
rpma_cq *the_queue(const Args &args);
rpma_conn_req *the_request(const Args &args);
rpma_batch *the_batch(const Args &args);
const rpma_conn_cfg *the_cfg(const Args &args);
inline rpma_srq *&the_srq(const Args &args) {
    return world.srq[args.slot("srq", MAX_OTHERS)];
}
inline rpma_mr_local *&the_mr(const Args &args) {
    return world.mr[args.slot("mr", MAX_REGIONS)];
}
inline rpma_mr_remote *&the_remote(const Args &args) {
    return world.remote[args.slot("rmr", MAX_REGIONS)];
}

// A piece of the memory of a side.
struct piece {
    size_t memory; // MAX_REGIONS: no memory
    size_t offset, len;
};
// sgl=0:64:8,-:0:0: pieces of memory 0 and of no memory.
std::vector<piece> the_pieces(const Args &args);
// The same as elements of regions, at most MAX_ELEMENTS.
std::vector<rpma_sge> the_list(const Args &args);

rpma_conn_private_data private_data(std::vector<unsigned char> &bytes);
std::vector<unsigned char> descriptor_of(const rpma_mr_local *mr);

// ---- waiting -----------------------------------------------------------------------------

int64_t now_ms(); // of the monotonic clock

// A function of librpma that gives a descriptor, as a value.
template <class Object> int fd_of(int get(const Object *, int *), const Object *object) {
    int fd = -1;
    must(get(object, &fd));
    return fd;
}
rpma_cq *queue_of(const rpma_conn *conn);

// ERR_TIMEOUT where nothing comes.
void wait_readable(int fd, int timeout_ms = PATIENCE_MS);
void make_nonblocking(int fd);
// Adds a descriptor to world.epoll_fd.
void watch(int fd, uint64_t tag);

// Blocks until a completion comes, which has to be a success.
void await_completion(rpma_cq *cq, ibv_wc *wc);
// Blocks until the next event, which has to be this one.
void await_event(rpma_conn *conn, rpma_conn_event wanted);
// Waits for a completion; if the other side leaves meanwhile, disconnects, and the answer says
// so. Returns whether the operation succeeded. ERR_CLOSED: the event came, and the caller waits
// for nothing more.
bool await_either(rpma_conn *conn, rpma_cq *cq, ibv_wc *wc, bool event_is_last);

// ---- data --------------------------------------------------------------------------------

// Content that depends on seed and place, so that neither old nor moved bytes pass.
void pattern_fill(char *bytes, size_t count, uint64_t seed);
// The first offset that differs, or count.
size_t pattern_check(const char *bytes, size_t count, uint64_t seed);

// ---- commands ----------------------------------------------------------------------------

using Command = void (*)(const Args &args);

// A file's commands become known before main().
struct Commands {
    Commands(std::initializer_list<std::pair<const char *const, Command>> table);
};

// Runs work(n) in count threads; the first failure is thrown when all have ended.
void in_threads(size_t count, const std::function<void(size_t)> &work);

#endif
