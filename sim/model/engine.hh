// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// engine.hh -- the execution of posted requests.

#ifndef RPMA_SIM_ENGINE_HH
#define RPMA_SIM_ENGINE_HH 1

#include "fabric.hh"

namespace sim {

class Engine {
  public:
    explicit Engine(Fabric &fabric) : fabric_(fabric) {}
    // Executes and completes the due requests of the send queue.
    void run(Qp &qp);
    enum Result { DONE, NO_RECEIVE, NO_ANSWER };
    // For Options::is_stepped: step() executes a request, complete_sends() completes the
    // executed ones. fail_outstanding() completes all with errors; `lost_responses`: the first
    // one as if its retries had failed.
    Result step(Qp &qp, Send &send);
    void complete_sends(Qp &qp);
    void fail_outstanding(Qp &qp, bool lost_responses);
    void release_objects(Qp &qp);
    void interrupt_receive(Qp &qp); // completes the next receive with an error
    void keep_data(Qp &qp); // copies the data of requests, before the program's memory is gone
    // Continues the requests of peers that wait for a receive.
    void receive_posted();
    void fail(Qp &qp);    // moves the QP to the error state and flushes its queues
    void reset(Qp &qp);   // empties the queues without completions
    void release(Qp &qp); // called before the QP is deleted
    void raise_async(Object &about, ibv_event_type type);
    void overrun(Cq &cq);
    void flush_receives(Qp &qp);
    void count_attempts(Qp &qp);
    // Frees the entries whose completions the program has polled.
    void free_polled(Cq &cq);

    struct Place { // a range of a program's memory, or of the fabric's own (no program)
        std::shared_ptr<Program> program;
        uint64_t address, length;
        bool may_fail;      // on-demand paging; otherwise the memory is pinned
        bool is_persistent; // the memory is, or may be, persistent
    };

  private:
    using Places = std::vector<Place>;
    // With on-demand paging, the memory of a place may be missing.
    enum Copied { COPIED, NO_SOURCE, NO_TARGET };
    static bool is_iwarp(const Qp &qp) {
        return qp.context->device->profile->transport == SIM_IWARP;
    }
    Fabric &fabric_;

    // req.cc
    bool advance_send(Qp &qp, Send &send);
    Result attempt(Qp &qp, Send &send);
    bool wait(Qp &qp, Send &send, Result result);
    uint64_t wait_for_receive(Qp &qp, Send &send);
    uint64_t wait_for_response(Qp &qp, Send &send);
    void start_timer(Qp &qp, uint64_t time);
    void finish(Qp &qp, Send &send, ibv_wc_status status);
    void disconnect(Qp &qp); // iWARP: closes the connection; the QP keeps its state
    bool add(Cq &cq, const ibv_wc &wc, bool is_solicited, const Unpolled &unpolled);
    void free_entries(const Unpolled &polled);
    void remove_completions(const Qp &qp);
    void remove_completions(Cq &cq, uint32_t number);
    void fail_later(uint32_t number);
    bool complete_receive(Qp &qp, const Receive &receive, ibv_wc wc, bool is_solicited);
    bool has_receive(const Qp &qp) const;
    bool take_receive(Qp &qp, Receive &receive);
    void return_receive(Qp &qp, Receive receive);
    uint64_t try_time(const Qp &qp) const;
    // counters.cc
    static void count_executed(const Qp &qp, const Qp &peer, const Send &send);
    static void count_dropped(const Qp &qp, const Qp *peer, const Send &send);
    static void count_datagram(const Qp &qp, uint64_t length);
    static void count_delivery(const Qp &peer, uint64_t length, bool has_receive);
    static void count_send(const Qp &qp, const Send &send, ibv_wc_status status);
    static void count_receive(const Qp &qp, ibv_wc_status status);
    // `peer` has no receive; NULL: there is no response.
    void begin_attempts(Qp &qp, const Send &send, const Qp *peer, uint64_t period,
                        uint64_t limit);
    void end_attempts(Qp &qp);
    // resp.cc
    Result execute(Qp &qp, Send &send);
    Result execute_on(Qp &qp, Qp &peer, Send &send);
    Srq *srq_of(const Qp &peer, uint32_t number) const;
    Result lose(const Qp &qp, const Qp *peer, Send &send, Result result = NO_ANSWER);
    Copied fill(Qp &qp, const Receive &receive, const Places &from, const Places &to);
    Result execute_send(Qp &qp, Qp &peer, Send &send);
    Result execute_write(Qp &qp, Qp &peer, Send &send);
    Result execute_read(Qp &qp, Qp &peer, Send &send);
    Result execute_atomic(Qp &qp, Qp &peer, Send &send);
    Result execute_flush(Qp &peer, Send &send);
    Result execute_datagram(Qp &qp, Send &send);
    Copied deliver_datagram(const Qp &qp, const Send &send, const Ah &ah, Places from,
                            Qp &peer);
    Result execute_window(Qp &qp, Send &send);
    bool bind(const Qp &qp, const SendWr &wr);
    bool invalidate(uint32_t key);
    Result done(Send &send, ibv_wc_status status);
    Result refuse(Qp &peer, Send &send, ibv_wc_status status);
    Result lacks_receive(Qp &peer, Send &send);
    Result deliver(Qp &peer, Send &send, const Receive &receive, const ibv_wc &wc);
    void report_violation(Qp &peer, const Send &send);
    ibv_wc_status local_places(const Qp &qp, const std::vector<ibv_sge> &sges, bool is_written,
                               Places &places) const;
    ibv_wc_status source_of(const Qp &qp, const Send &send, Places &places) const;
    const Mw *window_of(const Qp &peer, uint32_t key) const;
    ibv_wc_status remote_place(const Qp &peer, const SendWr &wr, uint64_t length,
                               Places &places) const;
    static Place place_in(const Region &mr, uint64_t address, uint64_t length);
    static Copied copy(const Places &from, const Places &to);
    static uint64_t length_of(const Places &places);
    static bool lacks_read_resources(const Qp &peer);
    void note_written(Qp &qp, const Places &places);
    void make_persistent(Qp &qp);
};

bool has_imm(uint32_t opcode); // of a request

} // namespace sim

#endif // RPMA_SIM_ENGINE_HH
