// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// network.hh -- connections: what was posted, how far it got, and what each side knows of it

#ifndef SIMULATOR_NETWORK_HH
#define SIMULATOR_NETWORK_HH 1

#include "process.hh"

#include <deque>
#include <librpma.h>

// What the library hands out. Objects stay until the schedule ends, so that use after delete
// shows.
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
    void close(bool with_news); // requests that nobody took are rejected
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
    // client does not know yet; UP: it does.
    enum State { REQUESTED, WAITING, ANSWERED, UP, OVER } state = REQUESTED;
    Writer number;
    std::string port;
    Machine *machines[2] = {};
    rpma_conn *conns[2] = {};            // NULL: not made, deleted, or its program has ended
    std::deque<rpma_conn_event> news[2]; // on the way to each side
    std::string private_data[2];         // of each side
    bool broken = false;                 // for ever: what is left completes with errors
    bool silent = false;                 // nobody is told about that
    std::vector<Operation> posted;       // by the client
    size_t executed = 0, completed = 0, released = 0; // how many of them
    std::vector<Part> placed; // executed writes: words that are not visible yet

    bool can_pass() const;        // whether operations reach the target
    bool reaches(int side) const; // whether news does
    bool has_work() const { return executed < posted.size(); }
    bool has_answers() const { return completed < executed; }

    void arrive(); // of a request
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
