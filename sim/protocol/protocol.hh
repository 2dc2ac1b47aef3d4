// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// protocol.hh -- the requests of a process to the simulated fabric, and the replies.
//
// A request is one message: its structure, which begins with the number of the operation, and
// for some operations bytes after it. A reply is one message: ReplyHead, then the structure
// Reply of the request unless the request failed, then bytes. A descriptor is passed along with
// a reply that creates a channel or the memory of a CQ. Handles are valid in the whole fabric;
// 0 is none. Cookies are addresses of the process, which the fabric returns in events and never
// reads.

#pragma once

#include "../device/rules.h"

#include <cstddef>
#include <cstdint>

namespace sim {

inline constexpr uint32_t PROTOCOL_VERSION = 2;
inline constexpr size_t MAX_MESSAGE = 65536;
inline constexpr int EXIT_FAILED = 125;    // the exit status if rdma-sim itself fails
inline constexpr uint32_t MAX_HOSTS = 254; // host N has 10.77.0.N

// The sockets of host N have 127.X.Y.N on the loopback interface. X and Y are those of the run,
// which its socket names (FNV-1a): several runs can use the same ports.
inline constexpr uint32_t LOOPBACK_MASK = 0xffffff00;
inline uint32_t loopback_of_run(const char *socket) {
    uint32_t hash = 0x811c9dc5;
    for (; *socket != '\0'; socket++)
        hash = (hash ^ static_cast<unsigned char>(*socket)) * 0x1000193;
    return 0x7f000000 | (hash % 0xffff + 1) << 8; // not 127.0.0.0, which is the machine's own
}

// Names and values of rdma-core >= 45, for older headers.
inline constexpr unsigned WC_FLUSH = 8, WC_ATOMIC_WRITE = 9;

enum Op : uint32_t {
    OP_HELLO = 1,
    OP_DEVICE,
    OP_OPEN_CONTEXT,
    OP_QUERY_DEVICE,
    OP_QUERY_PORT,
    OP_QUERY_GID,
    OP_ALLOC_PD,
    OP_REG_MR,
    OP_REREG_MR,
    OP_ADVISE_MR,
    OP_ALLOC_MW,
    OP_CREATE_CHANNEL,
    OP_CREATE_CQ,
    OP_RESIZE_CQ,
    OP_REQ_NOTIFY,
    OP_TAKE_EVENT,
    OP_CREATE_SRQ,
    OP_MODIFY_SRQ,
    OP_QUERY_SRQ,
    OP_CREATE_QP,
    OP_MODIFY_QP,
    OP_QUERY_QP,
    OP_CREATE_AH,
    OP_POST_SEND,
    OP_POST_RECV,
    OP_DESTROY,
    OP_PERSIST,
    OP_WAIT,
    OP_END_RUN,
    OP_READ_COUNTER,
    OP_NETLINK,
    OP_MULTICAST,
    OP_OPEN_XRCD,
    OP_OPEN_RING,    // ring.hh
    OP_OPEN_MAILBOX, // mailbox.hh
    OP_TRANSMIT,
    OP_CM_FIRST = 100, // the connection manager: protocol_cm.hh
    OP_CM_LAST = 199,
};

struct ReplyHead {
    int32_t error;              // an error number or 0
    uint32_t passes_descriptor; // 0 or 1
};

struct Empty {};

// The beginning of a request.
template <uint32_t NUMBER> struct Request {
    static constexpr uint32_t OP = NUMBER;
    uint32_t op = NUMBER;
};

// Joins the fabric. A child of fork() names the session of its parent.
struct Hello : Request<OP_HELLO> {
    uint32_t version = PROTOCOL_VERSION;
    uint32_t host, session;
    uint64_t probe; // the address of a word that holds PROBE
    static constexpr uint64_t PROBE = 0x726d612d73696d21;
    struct Reply {
        uint32_t session, devices;
        uint32_t needs_mailbox; // the fabric does not access the memory of the process
    };
};

// Describes a device of the process's host.
struct DeviceInfo : Request<OP_DEVICE> {
    uint32_t index;
    struct Reply {
        char name[64], driver[32], profile[32];
        uint64_t node_guid;                 // in network byte order
        uint32_t node_type, transport_type; // enum ibv_node_type, enum ibv_transport_type
        uint32_t index, vectors;
        uint64_t send_ops[IBV_QPT_UD + 1]; // sim_send_ops() of each type of QP
        // As in sim_profile.
        uint32_t keeps_bad_wr, keeps_bad_recv, srq_recv_error, failed_send, failed_receive,
            has_rt_values, has_tag_matching, sent_length, failed_length, vendor_err,
            has_create_flags, has_xrc, keeps_errno, ignores_inline, inline_by_flag;
        uint32_t gid_count, gid_entries; // gid_count: of the entries that are not empty
    };
};

struct OpenContext : Request<OP_OPEN_CONTEXT> {
    uint32_t device;
    struct Reply {
        uint32_t context, async_channel;
    };
};

struct QueryDevice : Request<OP_QUERY_DEVICE> {
    uint32_t context;
    using Reply = ibv_device_attr_ex;
};

struct QueryPort : Request<OP_QUERY_PORT> {
    uint32_t context, port;
    using Reply = ibv_port_attr;
};

// An entry of the GID table; EINVAL beyond its end, ENODATA for an empty entry.
struct QueryGid : Request<OP_QUERY_GID> {
    uint32_t context, port, index;
    struct Reply {
        ibv_gid gid;
        uint32_t type; // enum ibv_gid_type: 0 InfiniBand or RoCE v1, 1 RoCE v2
        uint32_t ifindex;
    };
};

struct AllocPd : Request<OP_ALLOC_PD> {
    uint32_t context;
    struct Reply {
        uint32_t pd;
    };
};

struct RegMr : Request<OP_REG_MR> {
    uint32_t pd;
    uint64_t address, length, iova;
    uint32_t access, unused = 0;
    struct Reply {
        uint32_t mr, lkey, rkey;
    };
};

struct ReregMr {
    static constexpr uint32_t OP = OP_REREG_MR;
    uint32_t op = OP, mr, flags, pd; // flags: enum ibv_rereg_mr_flags
    uint64_t address, length;
    uint32_t access, unused = 0;
    using Reply = RegMr::Reply;
};

// sge entries follow.
struct AdviseMr : Request<OP_ADVISE_MR> {
    uint32_t pd, advice, flags, num_sge;
    using Reply = Empty;
};

struct AllocMw : Request<OP_ALLOC_MW> {
    uint32_t pd, type, unused = 0; // type: enum ibv_mw_type
    struct Reply {
        uint32_t mw, rkey;
    };
};

struct CreateChannel : Request<OP_CREATE_CHANNEL> {
    uint32_t context;
    struct Reply {
        uint32_t channel;
    };
};

// Completions in memory that the process shares with the fabric. Counters only grow; entry n is
// at n % entries. Only the process changes `taken`.
struct Completion {
    ibv_wc wc;
    uint64_t time;            // nanoseconds
    uint32_t members, unused; // those that the driver writes: enum sim_members
};
struct Ring {
    uint32_t added, taken;
    uint32_t entries, overrun;
    Completion *first() { return reinterpret_cast<Completion *>(this + 1); }
    static size_t bytes(uint32_t entries) {
        return sizeof(Ring) + entries * sizeof(Completion);
    }
};

// The memory of rings that a reply passes: a process maps it once, for all rings with its
// number.
struct RingPlace {
    uint64_t number, size, offset; // number 0: only this ring; offset: of the ring
};

// The reply passes the descriptor of the ring's memory.
struct CreateCq : Request<OP_CREATE_CQ> {
    uint32_t context, channel, vector;
    uint64_t cookie;
    uint32_t entries, flags;         // flags: enum ibv_create_cq_attr_flags
    uint32_t is_extended, comp_mask; // of ibv_create_cq_ex(), as wc_flags
    uint64_t wc_flags;
    struct Reply {
        uint32_t cq, entries; // entries: the actual size
        RingPlace place;
    };
};

struct ResizeCq : Request<OP_RESIZE_CQ> {
    uint32_t cq, entries;
    using Reply = CreateCq::Reply;
};

struct ReqNotify : Request<OP_REQ_NOTIFY> {
    uint32_t cq, solicited_only;
    using Reply = Empty;
};

// Takes the first event of a channel after the byte of its descriptor; EAGAIN if there is none.
struct TakeEvent : Request<OP_TAKE_EVENT> {
    uint32_t channel;
    struct Reply {
        uint64_t cookie; // of the CQ, QP or SRQ
        uint32_t type;   // of an asynchronous event: enum ibv_event_type
        uint32_t port;   // of an asynchronous event of a port
        // The bytes of a CmEvent follow on an event channel.
    };
};

// Opens the XRC domain of a file, which programs of a host share, or, without a file, its own.
struct OpenXrcd : Request<OP_OPEN_XRCD> {
    uint32_t context, has_file;
    uint32_t creates, is_exclusive, unused = 0; // O_CREAT, O_EXCL
    uint64_t file_device, inode;
    struct Reply {
        uint32_t xrcd;
    };
};

// xrcd and cq: 0 unless the SRQ is of XRC.
struct CreateSrq : Request<OP_CREATE_SRQ> {
    uint32_t pd;
    uint64_t cookie;
    ibv_srq_attr attr;
    uint32_t xrcd, cq, unused = 0;
    struct Reply {
        uint32_t srq;      // also its number
        ibv_srq_attr attr; // the actual sizes
    };
};

struct ModifySrq : Request<OP_MODIFY_SRQ> {
    uint32_t srq, mask;
    ibv_srq_attr attr;
    using Reply = Empty;
};

struct QuerySrq : Request<OP_QUERY_SRQ> {
    uint32_t srq;
    using Reply = ibv_srq_attr;
};

struct CreateQp : Request<OP_CREATE_QP> {
    uint32_t pd, send_cq, recv_cq, srq, type, sq_sig_all; // 0: the type has no such object
    uint32_t xrcd;
    uint64_t cookie, send_ops; // send_ops: 0 unless the QP is extended
    ibv_qp_cap cap;
    uint32_t reserved = 0;
    struct Reply {
        uint32_t qp, qp_num;
        ibv_qp_cap cap; // the actual sizes
    };
};

struct ModifyQp : Request<OP_MODIFY_QP> {
    uint32_t qp, mask, unused = 0;
    ibv_qp_attr attr;
    struct Reply {
        uint32_t state; // the new state
    };
};

struct QueryQp : Request<OP_QUERY_QP> {
    uint32_t qp;
    struct Reply {
        ibv_qp_attr attr;
    };
};

struct CreateAh : Request<OP_CREATE_AH> {
    uint32_t pd;
    ibv_ah_attr attr;
    struct Reply {
        uint32_t ah;
    };
};

// Adds a QP of UD to a multicast group, or removes it.
struct Multicast : Request<OP_MULTICAST> {
    uint32_t qp, lid, attaches;
    ibv_gid gid;
    using Reply = Empty;
};

// No device accepts as many.
inline constexpr size_t MAX_SGES = 512, MAX_INLINE = 32768;

// A send request, without pointers; num_sge entries of struct ibv_sge follow, or inline_length
// bytes padded to a multiple of 8. Data beyond these limits is not sent.
struct SendWr {
    uint64_t wr_id;
    uint32_t opcode, flags; // opcode: enum ibv_wr_opcode
    uint32_t num_sge, inline_length;
    uint32_t imm_data; // or the key to invalidate
    uint32_t rkey;
    uint64_t remote_addr;
    uint64_t compare_add, swap; // the word of an atomic write is compare_add
    uint64_t flush_length;
    uint8_t flush_type, flush_level; // enum ibv_placement_type, ibv_selectivity_level
    uint16_t unused;
    uint32_t ah, remote_qpn, remote_qkey;
    // IBV_WR_BIND_MW, whose range is remote_addr and flush_length, and whose new key is rkey.
    uint32_t window, window_rkey, region_lkey, window_access; // window: a handle
    uint32_t remote_srqn;
};

// `count` requests (SendWr) follow. Even if the call fails, Reply::taken of them were posted;
// but none of requests that ibv_wr_*() built (`is_built`).
struct PostSend : Request<OP_POST_SEND> {
    uint32_t qp, count, is_built = 0;
    struct Reply {
        uint32_t taken;
        int32_t error;
        uint32_t units; // of the send queue: the most that one of the requests has used
    };
};

struct RecvWr {
    uint64_t wr_id;
    uint32_t num_sge, unused; // struct ibv_sge entries follow
};

struct PostRecv {
    static constexpr uint32_t OP = OP_POST_RECV;
    uint32_t op = OP, queue, count, unused = 0; // queue: a QP or an SRQ
    using Reply = PostSend::Reply;
};

// Destroys an object of any kind: EBUSY while another one uses it. The reply has the numbers of
// taken events, which the program must have acknowledged.
struct Destroy : Request<OP_DESTROY> {
    uint32_t handle;
    struct Reply {
        uint32_t completion_events, async_events;
    };
};

// The program made a range of its own memory persistent, for example by msync().
struct Persist : Request<OP_PERSIST> {
    uint32_t thread; // gettid(2)
    uint64_t address, length;
    using Reply = Empty;
};

// From a thread of a program that a scheduler runs: it waits, or has called a function that a
// scheduler cannot control.
struct Wait {
    static constexpr uint32_t OP = OP_WAIT;
    enum Kind : uint32_t {
        START,    // a program
        THREAD,   // starts; `object`: its number in the kernel
        EVENT,    // until VirtualClock::changes of the object, or `until`; 0: any event
        SLEEP,    // until `until`
        POLL,     // for a short time
        YIELD,    // not: the thread may continue at once
        CREATED,  // as YIELD: it has created a thread
        LISTENS,  // as YIELD: a socket
        EXIT,     // the thread ends
        FORKED,   // as YIELD: it has created a process, whose number in the kernel is `object`
        SIGNALED, // as YIELD: it has sent a signal to other processes
        ENDS,     // as YIELD: its process ends, after its other threads by default
        MEMORY,   // not sent: the thread is in a loop that reads memory
        UNSUPPORTED,
    };
    uint32_t op = OP, kind;
    uint64_t until; // UINT64_MAX: forever
    uint64_t object;
    char function[48];
    using Reply = Empty;
};

// From a program that a scheduler runs: before it sends bytes by TCP, or a datagram by UDP, to
// another host. The bytes follow, at most MAX_STREAM of TCP.
struct Transmit : Request<OP_TRANSMIT> {
    enum Verdict : uint32_t {
        SEND,       // the program sends them itself
        SEND_TWICE, // a datagram that is repeated
        TAKEN,      // they arrive later, or are lost
        FULL,       // the buffer is full
    };
    static constexpr size_t MAX_STREAM = 32768, MAX_DATAGRAM = 65000;
    int32_t socket;        // the descriptor of the program
    uint32_t host;         // of the receiver
    uint32_t is_stream;    // 0: a datagram
    uint32_t ends;         // no bytes follow, because the program has called shutdown()
    uint64_t inode;        // of the socket
    uint32_t waits;        // of a stream: for the receiver, if it does not read
    uint32_t address_size; // of a datagram to `address`; 0: the socket is connected
    uint8_t address[28];   // on the loopback interface
    char function[20];
    struct Reply {
        uint32_t verdict;
    };
};

// Ends the run, because a program would run outside the fabric; the line, without control
// characters, names it. There is no reply, or ESRCH if the process has joined the fabric.
struct EndRun : Request<OP_END_RUN> {
    uint32_t unused = 0;
    char line[2048];
    using Reply = Empty;
};

// A line of EndRun, with the name of the program.
inline constexpr char PRELOAD_IS_LOST[] =
    "%.512s: librdma-sim-preload.so is not loaded: keep the content of LD_PRELOAD and "
    "LD_LIBRARY_PATH in the script or program that changes it";

// Reads a counter of a device, by its path in sysfs: ports/1/GROUP/NAME. Needs no Hello.
struct ReadCounter : Request<OP_READ_COUNTER> {
    uint32_t host, device;
    char group[16], name[48];
    struct Reply {
        uint64_t value;
    };
};

// A message of NETLINK_RDMA to the kernel of a host, which follows. The reply has the messages
// of the kernel. Needs no Hello.
struct Netlink : Request<OP_NETLINK> {
    uint32_t host, is_admin; // is_admin: the process has CAP_NET_ADMIN
    uint32_t start, unused;  // start: of the entries of a dump
    struct Reply {
        uint32_t next; // the start of the remaining entries; 0: there are none
        uint32_t unused;
    };
};

// The time in nanoseconds, in memory that these programs map. One thread of all runs at a time.
struct VirtualClock {
    uint64_t now;
    uint64_t seed;       // of the schedule
    uint64_t ahead[256]; // by host: how much its CLOCK_REALTIME is ahead
    // How often objects changed for which threads wait; 0: descriptors, processes and the like.
    static constexpr uint64_t OBJECTS = 1024;
    uint64_t changes[OBJECTS];
    // Numbers of processes in the kernel. Programs use the indexes, the same in each run.
    static constexpr uint32_t PROCESSES = 1000;
    uint32_t processes;
    int32_t pids[PROCESSES];
    static constexpr uint64_t EPOCH = 1'767'225'600'000'000'000; // of CLOCK_REALTIME
    // For a trace: the return addresses of the thread that sends a request.
    static constexpr uint32_t MAX_ADDRESSES = 32;
    uint32_t is_traced, address_count;
    uint64_t addresses[MAX_ADDRESSES];
    // TCP and UDP: the hosts that a host cannot reach, and the inodes of the last connections
    // whose bytes were not acknowledged for too long.
    static constexpr size_t HOSTS = 256, TIMEOUTS = 16;
    uint8_t unreachable[HOSTS][HOSTS];
    uint64_t timed_out[TIMEOUTS];
    uint32_t timeouts;
};

} // namespace sim
