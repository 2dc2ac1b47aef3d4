// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.hh -- the objects of one side and the commands that work on them
//
// A test drives one process per side over its standard input; every object has a number, which
// is 0 unless the command says otherwise.

#ifndef PEER_PEER_HH
#define PEER_PEER_HH 1

#include "args.hh"

#include <atomic>
#include <cerrno>
#include <functional>
#include <initializer_list>
#include <librpma.h>
#include <span>
#include <thread>
#include <tuple>
#include <utility>

constexpr size_t MAX_CONNS = 10240, MAX_REGIONS = 72, MAX_OTHERS = 8;
constexpr int PATIENCE_MS = 60000; // to resolve an address or to wait, on a busy machine

using area = std::span<char>;

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
    must(holds ? 0 : code);
}

// Names the call of the system that failed.
void must_system(bool worked, const char *call);

const char *code_name(int code);

// What a function of librpma gives by its last parameter.
template <class... Types, class... Given> auto get(int function(Types...), Given... given) {
    using Pointer = std::tuple_element_t<sizeof...(Types) - 1, std::tuple<Types...>>;
    std::remove_pointer_t<Pointer> output{};
    must(function(given..., &output));
    return output;
}

// An object that goes at the end of its scope.
template <class Object, int remove(Object **)> struct Scoped {
    Object *it = nullptr;
    Scoped() = default;
    Scoped(const Scoped &) = delete;
    Scoped &operator=(const Scoped &) = delete;
    ~Scoped() { (void)remove(&it); }
};
using ScopedPeerCfg = Scoped<rpma_peer_cfg, rpma_peer_cfg_delete>;
using ScopedReq = Scoped<rpma_conn_req, rpma_conn_req_delete>;
using ScopedConn = Scoped<rpma_conn, rpma_conn_delete>;

// ---- what a command names ----------------------------------------------------------------

// The place of an object; the second parameter only says of which kind.
inline ibv_context *&slot(const Args &, ibv_context **) {
    return world.device;
}
inline rpma_peer *&slot(const Args &, rpma_peer **) {
    return world.peer;
}
inline rpma_ep *&slot(const Args &, rpma_ep **) {
    return world.ep;
}
inline rpma_mr_local *&slot(const Args &args, rpma_mr_local **) {
    return args.in(world.mr, "mr");
}
inline rpma_mr_remote *&slot(const Args &args, rpma_mr_remote **) {
    return args.in(world.remote, "rmr");
}
inline rpma_conn_cfg *&slot(const Args &args, rpma_conn_cfg **) {
    return args.in(world.cfg, "cfg");
}
inline rpma_srq *&slot(const Args &args, rpma_srq **) {
    return args.in(world.srq, "srq");
}
inline rpma_cq *&slot(const Args &args, rpma_cq **) {
    return args.in(world.lent, "lent");
}
inline rpma_conn_req *&slot(const Args &args, rpma_conn_req **) {
    return args.in(world.req, "req");
}
inline rpma_conn *&slot(const Args &args, rpma_conn **) {
    return args.in(world.conn, "conn");
}
inline rpma_batch *&slot(const Args &args, rpma_batch **) {
    return args.in(world.batch, "batch");
}

template <class Object>
concept Handle = requires(const Args &args, Object **kind) {
    slot(args, kind);
};

// A script that names a missing object is wrong.
template <Handle Object> Object *the(const Args &args) {
    Object *object = slot(args, static_cast<Object **>(nullptr));
    if (object == nullptr)
        args.refuse("there is no such object");
    return object;
}
// The queue of the connection, or another one that queue= names.
template <> rpma_cq *the<rpma_cq>(const Args &args);
// Without cfg= the defaults, but for the timeout.
const rpma_conn_cfg *the_cfg(const Args &args);

inline void reply(const std::string &key, const rpma_conn_private_data &pdata) {
    reply_bytes(key, pdata.ptr, pdata.len);
}
inline void reply(const std::string &key, rpma_flush_mode mode) {
    reply(key, mode == RPMA_FLUSH_MODE_NATIVE ? "native" : "emulated");
}

// A piece of the memory of a side.
struct piece {
    size_t memory; // MAX_REGIONS: no memory
    size_t offset, len;
};
// sgl=0:64:8,-:0:0: pieces of memory 0 and of no memory.
std::vector<piece> the_pieces(const Args &args);
// The memory of a piece, which must not be outside.
area bytes_of(const Args &args, const piece &piece);

rpma_conn_private_data private_data(std::vector<unsigned char> &bytes);
std::vector<unsigned char> descriptor_of(const rpma_mr_local *mr);
// 32 bits as the first ones of private data, and back.
std::vector<unsigned char> number_as_data(uint32_t number);
uint32_t number_of(const rpma_conn_private_data &pdata);
inline const void *context_of(uint64_t number) {
    return reinterpret_cast<const void *>(number);
}

// A connection that is being made to addr= and port=.
rpma_conn *connect_to(const Args &args);

// ---- waiting -----------------------------------------------------------------------------

// Milliseconds since it was made.
class Clock {
  public:
    int64_t ms() const;

  private:
    int64_t began_ = now();
    static int64_t now();
};

inline rpma_cq *queue_of(const rpma_conn *conn) {
    return get(rpma_conn_get_cq, conn);
}

// ERR_TIMEOUT where nothing comes.
void wait_readable(int fd, int64_t timeout_ms = PATIENCE_MS);
void make_nonblocking(int fd);
// Adds a descriptor to world.epoll_fd.
void watch(int fd, uint64_t tag);
// Waits for the descriptors of world.epoll_fd, and returns their tags.
std::vector<uint64_t> ready_ones(int timeout_ms);

// Blocks until a completion comes, which has to be a success.
ibv_wc await_completion(rpma_cq *cq);
// Blocks until the next event, which has to be this one.
void await_event(rpma_conn *conn, rpma_conn_event wanted);

// ---- data --------------------------------------------------------------------------------

// Content that depends on seed and place, so that neither old nor moved bytes pass.
void pattern_fill(area bytes, uint64_t seed);
// Fails with the first byte that differs in the answer.
void pattern_check(area bytes, uint64_t seed);

// ---- commands ----------------------------------------------------------------------------

using Command = std::function<void(const Args &args)>;

// A file's commands become known before main().
struct Commands {
    Commands(std::initializer_list<std::pair<const char *const, Command>> table);
};

// Runs work(n, whether another one has failed) in count threads; the first failure is thrown
// when all have ended.
void in_threads(size_t count,
                const std::function<void(size_t, const std::atomic<bool> &)> &work);

#endif
