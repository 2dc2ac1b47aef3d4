// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// network.hh -- the simulated fabric under the programs, and their connections on it. A
// scheduler chooses each step: a message arrives, a request is executed, completions arrive.

#pragma once

#include "process.hh"

#include "client/client.hh"
#include "model/comp.hh"
#include "model/qp_state.hh"
#include "model/req.hh"
#include "model/word_order.hh"

#include <optional>
#include <unordered_map>

// One side of a connection.
struct End {
    Process *owner = nullptr; // NULL: not accepted yet, or the program has ended
    uint32_t id = 0;          // handle of the CM ID; 0: not created, or deleted
    sim::Qp *qp = nullptr;    // the same
    bool established = false; // the program has taken RDMA_CM_EVENT_ESTABLISHED
    bool ended = false;       // the program has taken an event that ends the connection
    int64_t received_at = 0;  // when the program last received from the other side
    int64_t posted_at = 0;    // the last time of a post without outstanding operations
};

struct Link {
    Writer number;
    Machine *machines[2]; // [0] of the client, [1] of the server
    End ends[2];
    int timeout_ms;      // of rdma_resolve_addr()
    bool broken = false; // forever: outstanding operations complete with errors
    bool silent = false; // neither side is notified

    // Returns true if messages of the connection manager pass.
    bool is_open() const {
        return machines[0]->on && machines[1]->on && !machines[0]->disconnected &&
               !machines[1]->disconnected;
    }
};

enum Visible { ALL, NONE, SOME };
enum Refusal {
    AFTER_LIST,
    FIRST_REQUEST,
    SECOND_REQUEST
}; // how much of the next post is queued
enum Outcome { NOT_EXECUTED, ALL_EXECUTED, PARTLY_EXECUTED };

class Network : public sim::Environment, sim::Scheduler {
  public:
    std::vector<std::unique_ptr<Link>> links;
    std::vector<uint16_t> open_links; // indices of links that a side still uses

    void begin(unsigned machines, bool has_native_operations);

    // ---- calls of programs
    int call(rdma_sim_message &message);
    int take_event(int fd, uint32_t channel, sim::TakeEvent::Reply &event, void *data,
                   size_t size);
    void polls(const sim::Ring &ring);
    void polled(const ibv_wc *wc, int count);
    void process_ended(Process &process);

    // ---- events of a link. `side` has posted the operation, or receives the event
    bool has_request(const Link &link) const;
    bool has_cm_event(const Link &link, int side) const;
    // `passes`: of the next operation, or of the next one that may pass earlier reads
    bool can_execute(const Link &link, int side, bool passes) const;
    bool is_write_next(const Link &link, int side, bool passes) const;
    bool can_complete(const Link &link, int side) const;
    bool can_fail(const Link &link, int side) const;
    bool is_broken(const Link &link, int side) const;
    bool can_break(const Link &link) const;
    void deliver_request(Link &link);
    void deliver_event(Link &link, int side);
    void execute(Link &link, int side, Visible visible, bool passes);
    void complete(Link &link, int side);
    void fail(Link &link, int side);
    void break_link(Link &link, Outcome outcome, bool silently);
    void forget_closed_links();

    // ---- events of a machine
    void set_port(const Machine &machine, bool is_up);
    void set_power(const Machine &machine, bool is_on);
    void refuse_post(const Machine &machine, Refusal refusal);
    void accept_posts() { fabric_->accept_posts(); } // of all machines
    void change_address(const Machine &machine);
    void advance(int64_t now); // to a time in ms
    int64_t next_time() const;

    // ---- state that invariants check
    sim::Fabric &fabric() { return *fabric_; }
    const sim::Fabric &fabric() const { return *fabric_; }
    // The name of an object that the program has not deleted, or NULL.
    const char *leaked_object(const Process &process) const;
    unsigned contexts(const Process &process) const;

    // ---- Environment
    int open_channel(uint32_t channel) override;
    void close_channel(uint32_t channel) override;
    void raise(uint32_t channel) override;
    void lower(uint32_t channel) override;
    sim::Ring *open_ring(uint32_t session, size_t bytes, sim::RingPlace &place,
                         int &fd) override;
    void close_ring(sim::Ring *ring, size_t bytes) override;

    // ---- Scheduler: the events of a schedule take each step
    void message_sent(sim::Fabric &fabric, const sim::Cm::Message &message,
                      uint64_t timeout) override;
    void requests_ready(sim::Fabric &, sim::Qp &) override {}
    void qp_failed(sim::Fabric &, sim::Qp &) override {}
    void links_changed(sim::Fabric &) override {}
    uint64_t delay(sim::Delayed) override { return 0; }
    // The weaknesses that a scheduler chooses are events here: EXECUTE with passes() is FENCE.
    // The examples send no datagrams. The other weaknesses act in each schedule.
    unsigned choose(sim::Weakness, unsigned) override { return 0; }
    std::vector<bool> late_words(sim::Fabric &, size_t count) override;
    uint64_t word_delay() const override { return UINT64_MAX; }

    // ---- called by the sim::Program of each process
    bool write(Process &process, uint64_t address, const void *from, size_t length,
               Writer writer);

  private:
    struct Place {
        Link *link;
        int side;
    };
    sim::Send *next_send(const Link &link, int side, bool passes) const;
    bool can_pass(const Link &link, int side) const;
    void execute_part(Link &link, int side);
    bool end_queue_pair(Link &link, int side);
    std::optional<uint64_t> first_message(const Link &link, int side, bool is_request) const;
    Place *place_of(uint32_t handle);
    End *end_of_number(uint32_t qp_num);
    unsigned host_of(const Machine &machine) const;
    unsigned device_of(const Machine &machine) const;
    void open_session(Process &process);
    void before(const rdma_sim_message &message);
    bool intercepts(const rdma_sim_message &message, sim::Reply &reply);
    void after(Process &self, const rdma_sim_message &message, int error);
    void after_resolve(Process &self, const sim::CmResolveAddr &request);
    void after_accept(Process &self, const sim::CmAccept &request, int error);
    void after_event(Process &self, const sim::Channel &channel,
                     const sim::TakeEvent::Reply &event, const void *data);
    void before_destroy(const sim::Destroy &request);

    std::unique_ptr<sim::Fabric> fabric_;
    std::unordered_map<uint32_t, Place> places_;    // by handle
    std::unordered_map<uint32_t, int> descriptors_; // by channel
    std::optional<Visible> visible_;                // of the write that is executed
};
