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
    virtual ~Object() = default;
};

struct rpma_mr_local : Object {
    rpma_peer *peer;
    char *ptr;
    size_t size;
    int usage;
};

struct rpma_cq : Object {
    struct Entry {
        ibv_wc wc;
        size_t operation;
    };
    std::deque<Entry> entries;
    size_t size;
    bool armed = true, notified = false;
    int fd;
    rpma_conn *conn;
};

struct rpma_ep : Object {
    std::string port;
    std::deque<struct Link *> requests;
    int fd;
    void close(bool with_news); // rejects requests that nobody took
};

struct rpma_conn : Object {
    struct Link *link;
    int side; // 0: it connected, 1: it accepted
    rpma_cq cq;
    std::deque<rpma_conn_event> events; // delivered
    int event_fd;
    size_t sq_size;
    bool up = false;                // RPMA_CONN_ESTABLISHED was taken
    bool may_be_persistent = false; // a peer configuration with direct write was applied
    std::string private_data;       // of the other side
};

struct Piece {
    char *ptr;
    size_t size;
};

struct Operation {
    enum Kind { READ, WRITE, ATOMIC_WRITE, FLUSH } kind;
    const rpma_mr_local *region; // the target's
    char *target;
    size_t size;
    Piece piece;   // local memory, until the operation has left
    bool has_data; // of a write: it has left, or was copied by the post
    std::string data;
    bool persistent, always;
    uint64_t wr_id;
};

struct Link {
    // REQUESTED: on the way to the server; WAITING: in the queue of its endpoint; ANSWERED: the
    // client has not got the answer; UP: the client has it.
    enum State { REQUESTED, WAITING, ANSWERED, UP, OVER } state = REQUESTED;
    Writer number;
    std::string port;
    Machine *machines[2] = {};
    rpma_conn *conns[2] = {};            // NULL: not made, deleted, or its program has ended
    std::deque<rpma_conn_event> news[2]; // events on the way to each side
    std::string private_data[2];         // of each side
    bool broken = false;           // for ever: outstanding operations complete with errors
    bool silent = false;           // neither side is notified of that
    std::vector<Operation> posted; // by the client
    size_t executed = 0, completed = 0, released = 0; // counts within posted
    std::vector<Part> placed; // executed writes: words that are not visible yet

    bool can_pass() const;        // whether operations reach the target
    bool reaches(int side) const; // whether events reach the side
    bool has_work() const { return executed < posted.size(); }
    bool has_answers() const { return completed < executed; }

    void arrive(); // a request arrives
    void tell(int side);
    enum Visible { ALL, NONE, SOME };
    void execute(Visible visible);
    void complete();
    void fail_outstanding();
    enum Fate { NOT_EXECUTED, ALL_EXECUTED, PARTLY_EXECUTED };
    void break_up(Fate fate, bool silently);

    void end(int side, bool with_news);
    void execute_part();

  private:
    void place(const Operation &operation, Visible visible);
    void settle(char *begin, char *end);
    void leave_initiator();
    void deliver(const Operation &operation, size_t index, ibv_wc_status status);
};

#endif
