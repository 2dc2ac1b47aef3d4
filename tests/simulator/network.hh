// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// network.hh -- connections: the operations posted, their progress, and each side's knowledge

#ifndef SIMULATOR_NETWORK_HH
#define SIMULATOR_NETWORK_HH 1

#include "process.hh"

#include <deque>
#include <librpma.h>

// Objects that the library returned. They stay until the schedule ends, so that use after
// delete shows.
struct Object {
    Process *owner = nullptr;
    bool alive = true;
    bool is_deleted = true; // by a program that ends well
    const char *maker;
    virtual ~Object() = default;
    virtual bool is_readable() const { return true; } // its descriptor
    virtual bool is_of_peer() const { return false; } // made with one, and deleted before it
    virtual struct File *as_file() { return nullptr; }
    virtual const struct rpma_srq *as_srq() const { return nullptr; }
};

struct Piece {
    char *ptr;
    size_t size;
};

struct rpma_peer : Object {
    std::deque<rpma_peer_event_type> events;
    int event_fd;
    ibv_pd pd{};
    bool gone = false; // its device was removed
    bool is_readable() const override { return !events.empty(); }
};

struct rpma_mr_local : Object {
    bool is_of_peer() const override { return true; }
    Piece piece;
    int usage;
};

// A completion channel: the queues that have something to tell.
struct Channel : Object {
    std::deque<struct rpma_cq *> events;
    int fd;
    Channel() { is_deleted = false; }
    bool is_readable() const override { return !events.empty(); }
};

struct rpma_cq : Object {
    bool is_of_peer() const override { return true; }
    struct Entry {
        ibv_wc wc;
        struct Flow *flow; // of an operation; NULL: of a receive
        size_t operation;
    };
    std::deque<Entry> entries;
    size_t size;
    bool armed = true;
    const rpma_conn *of; // NULL: of a shared receive queue, or of many connections
    Channel *channel;
    bool shares_channel = false;

    void add(const ibv_wc &wc, Flow *flow, size_t operation);
};

struct rpma_ep : Object {
    bool is_of_peer() const override { return true; }
    std::string port;
    std::deque<struct Link *> requests;
    unsigned address_changes = 0; // that its program has not taken
    int fd;
    bool is_readable() const override { return address_changes || !requests.empty(); }
    void close(bool with_news); // rejects requests that nobody took
};

// An event of a connection that has no rpma_conn_event.
constexpr rpma_conn_event ADDRESS_CHANGED = RPMA_CONN_UNDEFINED;

struct Receive {
    Piece piece;
    uint64_t wr_id;
};

struct rpma_srq : Object {
    bool is_of_peer() const override { return true; }
    const rpma_srq *as_srq() const override { return this; }
    std::deque<Receive> receives;
    size_t size;
    rpma_cq *rcq;
    int users = 0;
};

// While a program has only a request, the connection that it may become.
struct rpma_conn : Object {
    bool is_of_peer() const override { return true; }
    struct Link *link;
    int side;                              // 0: it connected, 1: it accepted
    rpma_cq *cq = nullptr, *rcq = nullptr; // rcq: NULL if receives complete in cq
    std::deque<Receive> receives;
    rpma_srq *srq = nullptr;
    std::deque<rpma_conn_event> events; // delivered
    int event_fd = 0;
    uint32_t qp_num = 0; // those of deleted connections are used again, 0: no queues yet
    size_t sq_size;
    bool up = false;       // RPMA_CONN_ESTABLISHED was taken
    bool over = false;     // another event was taken
    int64_t heard_at = 0;  // when its program last took something of the other side
    int64_t asked_at = 0;  // when an operation was posted, and none was outstanding
    bool answered = false; // a completion of it was taken; of a shared queue, a message
    bool may_be_persistent = false; // a peer configuration with direct write was applied
    std::string private_data;       // of the other side

    bool is_readable() const override; // an event, or a request that is resolved
    void complete(const Receive &receive, ibv_wc wc) const;
};

struct Shape {
    enum Kind { NONE, READ, WRITE, ATOMIC_WRITE, FLUSH, SEND } kind;
    int local_usage, remote_usage; // of the memory that it needs, or 0: it has none there
    ibv_wc_opcode opcode;
    bool takes_receive = false, has_imm = false;
};
constexpr int FLUSH_USAGE =
    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
// By rpma_work_type.
constexpr Shape shapes[] = {
    {},
    {Shape::READ, RPMA_MR_USAGE_READ_DST, RPMA_MR_USAGE_READ_SRC, IBV_WC_RDMA_READ},
    {Shape::WRITE, RPMA_MR_USAGE_WRITE_SRC, RPMA_MR_USAGE_WRITE_DST, IBV_WC_RDMA_WRITE},
    {Shape::WRITE, RPMA_MR_USAGE_WRITE_SRC, RPMA_MR_USAGE_WRITE_DST, IBV_WC_RDMA_WRITE, true,
     true},
    {Shape::ATOMIC_WRITE, 0, RPMA_MR_USAGE_WRITE_DST, IBV_WC_RDMA_WRITE},
    {Shape::FLUSH, 0, FLUSH_USAGE, IBV_WC_RDMA_READ},
    {Shape::SEND, RPMA_MR_USAGE_SEND, 0, IBV_WC_SEND, true},
    {Shape::SEND, RPMA_MR_USAGE_SEND, 0, IBV_WC_SEND, true, true}};

struct Operation {
    rpma_work work;
    Shape shape;
    const rpma_mr_local *region; // the target's
    char *target;
    size_t size;
    Piece piece;   // local memory, until the operation has left
    bool has_data; // of a write or message: it has left, or was copied by the post
    std::string data;
};

// The operations of one side of a connection.
struct Flow {
    struct Link *link;
    int side;
    std::vector<Operation> posted;
    size_t executed = 0, completed = 0, released = 0; // counts within posted
    std::vector<Part> placed; // executed writes: words that are not visible yet

    bool can_pass() const; // whether operations reach the target
    bool has_work() const { return executed < posted.size(); }
    bool has_answers() const { return completed < executed; }
    bool may_fail() const; // whether something is outstanding, and will not be done any more
    bool uses(const Piece &region) const; // whether an operation or a receive needs it

    enum Visible { ALL, NONE, SOME };
    void execute(Visible visible);
    void execute_part();
    void complete();
    void fail_outstanding();
    void leave_initiator();
    void settle(char *begin, char *end);
    void settle_all() { settle(nullptr, reinterpret_cast<char *>(UINTPTR_MAX)); }

  private:
    rpma_conn *target() const;
    Machine &machine() const; // of the target
    Writer writer() const;
    void place(const Operation &operation, Visible visible);
    void take_receive(Operation &operation);
    void deliver(const Operation &operation, size_t index, ibv_wc_status status);
};

struct Link {
    // RESOLVING: the way to the server is looked for; RESOLVED: it is known, or over, until the
    // program connects; REQUESTED: on the way to the server; WAITING: in the queue of its
    // endpoint; ANSWERED: the client has not got the answer; UP: the client has it.
    enum State { RESOLVING, RESOLVED, REQUESTED, WAITING, ANSWERED, UP, OVER };
    State state = RESOLVING;
    Writer number;
    std::string port;
    Machine *machines[2] = {};
    rpma_conn *conns[2] = {};            // NULL: not made, deleted, or its program has ended
    std::deque<rpma_conn_event> news[2]; // events on the way to each side
    std::string private_data[2];         // of each side
    bool broken = false; // for ever: outstanding operations complete with errors
    bool silent = false; // neither side is notified of that
    Flow flows[2] = {{this, 0}, {this, 1}};

    // Whether messages about connections pass; the way to the server is found then.
    bool is_open() const {
        return machines[0]->on && machines[1]->on && !machines[0]->cut_off &&
               !machines[1]->cut_off;
    }
    void arrive(); // a request arrives
    void tell(int side);
    enum Fate { NOT_EXECUTED, ALL_EXECUTED, PARTLY_EXECUTED };
    void break_up(Fate fate, bool silently);

    void end(int side, bool with_news);
};

#endif
