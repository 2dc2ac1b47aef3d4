// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.hh -- the objects of one side and the commands that use them
//
// A test controls one process per side through its standard input. Each object has a number,
// which is 0 unless the command has another one.

#pragma once

#include "args.hh"

#include <cerrno>
#include <functional>
#include <initializer_list>
#include <librpma.h>
#include <span>
#include <tuple>
#include <utility>

constexpr size_t MAX_CONNS = 10240, MAX_REGIONS = 72, MAX_OTHERS = 8;
constexpr int TIMEOUT_MS = 60000; // for resolving an address or waiting, on a busy machine

using area = std::span<char>;

struct fixture {
    ibv_context *device;
    rpma_peer *peer;
    rpma_ep *ep;
    area memory[MAX_REGIONS];
    rpma_mr_local *mr[MAX_REGIONS];
    rpma_mr_remote *remote[MAX_REGIONS];
    rpma_conn_cfg *cfg[MAX_OTHERS];
    rpma_srq *srq[MAX_OTHERS];
    rpma_cq *shared_cq[MAX_OTHERS]; // for several connections
    rpma_conn_req *req[MAX_CONNS];
    rpma_conn *conn[MAX_CONNS];
    rpma_batch *batch[MAX_OTHERS];
    int epoll_fd = -1;
};

extern fixture fixture;

// ---- failures of commands ----------------------------------------------------------------

// Results of commands in addition to the codes of librpma.
enum {
    ERR_TIMEOUT = 1,  // an expected completion or event did not arrive
    ERR_MISMATCH = 2, // data differs; the reply has the offset
    ERR_SYSTEM = 3,   // a system call failed; the reply names it
    ERR_CLOSED = 4,   // the connection ended without a completion that reports the end
};

struct Failed {
    int code;
    int error = errno; // the provider's errno, before any cleanup
};

inline void must(int code) {
    if (code != 0)
        throw Failed{code};
}

inline void require(bool holds, int code) {
    must(holds ? 0 : code);
}

// Throws ERR_SYSTEM with the name of the system call unless it worked.
void require_system(bool worked, const char *call);

const char *code_name(int code);

// Calls a function of librpma and returns its last parameter, which is an output.
template <class... Types, class... Given> auto get(int function(Types...), Given... given) {
    using Pointer = std::tuple_element_t<sizeof...(Types) - 1, std::tuple<Types...>>;
    std::remove_pointer_t<Pointer> output{};
    must(function(given..., &output));
    return output;
}

// Deletes its object at the end of the scope.
template <class Object, int remove(Object **)> struct Scoped {
    Object *it = nullptr;
    Scoped() = default;
    Scoped(const Scoped &) = delete;
    Scoped &operator=(const Scoped &) = delete;
    ~Scoped() { (void)remove(&it); }
};
using ScopedPeerCfg = Scoped<rpma_peer_cfg, rpma_peer_cfg_delete>;
using ScopedReq = Scoped<rpma_conn_req, rpma_conn_req_delete>;

// ---- objects of a command ----------------------------------------------------------------

// The array of the objects of a type, the key with the index of one, and the function that
// deletes one.
template <class Object> struct HandleArray {
    std::span<Object *> all;
    const char *key;
    int (*remove)(Object **object) = nullptr;
};
// In the order of deletion that the manual requires.
inline constexpr std::tuple handle_arrays{
    HandleArray<rpma_batch>{fixture.batch, "batch", rpma_batch_delete},
    HandleArray<rpma_conn>{fixture.conn, "conn", rpma_conn_delete},
    HandleArray<rpma_conn_req>{fixture.req, "req", rpma_conn_req_delete},
    HandleArray<rpma_ep>{{&fixture.ep, 1}, "ep", rpma_ep_shutdown},
    HandleArray<rpma_conn_cfg>{fixture.cfg, "cfg", rpma_conn_cfg_delete},
    HandleArray<rpma_srq>{fixture.srq, "srq", rpma_srq_delete},
    HandleArray<rpma_cq>{fixture.shared_cq, "shared_cq", rpma_cq_delete},
    HandleArray<rpma_mr_local>{fixture.mr, "mr", rpma_mr_dereg},
    HandleArray<rpma_mr_remote>{fixture.remote, "rmr", rpma_mr_remote_delete},
    HandleArray<rpma_peer>{{&fixture.peer, 1}, "peer", rpma_peer_delete},
    HandleArray<ibv_context>{{&fixture.device, 1}, "device"}, // never deleted
};

template <class Object, class... All>
constexpr bool is_one_of(const std::tuple<HandleArray<All>...> &) {
    return (std::is_same_v<Object, All> || ...);
}
template <class Object>
concept Handle = is_one_of<Object>(handle_arrays);

template <Handle Object> Object *&handle_of(const Args &args) {
    const HandleArray<Object> &of = std::get<HandleArray<Object>>(handle_arrays);
    return of.all[args.below(of.all.size(), of.key)];
}

// Ends the process if the object does not exist, because the script is wrong.
template <Handle Object> Object *object_of(const Args &args) {
    Object *object = handle_of<Object>(args);
    if (object == nullptr)
        args.refuse("there is no such object");
    return object;
}
// The queue of the connection, or the one that queue= names.
template <> rpma_cq *object_of<rpma_cq>(const Args &args);
// Without cfg= the default configuration, but with a longer timeout.
const rpma_conn_cfg *cfg_of(const Args &args);

inline void reply(const std::string &key, const rpma_conn_private_data &pdata) {
    reply_bytes(key, pdata.ptr, pdata.len);
}

// A range in the memory of a side.
struct memory_range {
    size_t memory; // MAX_REGIONS: without memory
    size_t offset, len;
};
// The argument sgl=, as in sgl=0:64:8,-:0:0: ranges of memory 0 and without memory.
std::vector<memory_range> parse_sgl(const Args &args);
// The bytes of a range. Ends the process if the range exceeds the memory.
area bytes_of(const Args &args, const memory_range &range);

rpma_conn_private_data private_data(std::vector<unsigned char> &bytes);
std::vector<unsigned char> descriptor_of(const rpma_mr_local *mr);
inline const void *context_of(uint64_t number) {
    return reinterpret_cast<const void *>(number);
}

// Starts a connection to addr= and port=.
rpma_conn *connect_to(const Args &args);

// ---- waiting -----------------------------------------------------------------------------

// Milliseconds since its construction.
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

// Throws ERR_TIMEOUT unless the descriptor becomes readable.
void wait_readable(int fd, int64_t timeout_ms = TIMEOUT_MS);
void make_nonblocking(int fd);
// Adds a descriptor to fixture.epoll_fd.
void watch(int fd, uint64_t tag);
// Waits for the descriptors of fixture.epoll_fd and returns the tags of the ready ones.
std::vector<uint64_t> wait_for_ready(int timeout_ms);

// Blocks until the next completion, which must be successful.
ibv_wc await_completion(rpma_cq *cq);
// Blocks until the next event, which must be the wanted one.
void await_event(rpma_conn *conn, rpma_conn_event wanted);

// ---- data --------------------------------------------------------------------------------

// The pattern depends on seed and offset, so that a check detects old and moved bytes.
void pattern_fill(area bytes, uint64_t seed);
// Fails at the first byte that differs, and adds its offset to the reply.
void pattern_check(area bytes, uint64_t seed);

// ---- commands ----------------------------------------------------------------------------

using Command = std::function<void(const Args &args)>;

// Registers the commands of a file before main().
struct Commands {
    Commands(std::initializer_list<std::pair<const char *const, Command>> table);
};
