// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// serve.cc -- a server of many clients in one thread: assigns a share of a region to each
// client and echoes its messages until it disconnects

#include "crowd.hh"

#include "peer.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <iterator>
#include <unistd.h>

namespace {

// Tags of descriptors: standard input, the endpoint, 2 n for the events of client n, 2 n + 1
// for its queue.
constexpr uint64_t COMMANDS = UINT64_MAX, ENDPOINT = UINT64_MAX - 1;

// Client n has connection n, share n of region 0, and two message buffers in region 1.
struct Client {
    rpma_cq *cq;
    size_t buffer; // index of the buffer for the next message
};

Client clients[MAX_CONNS];

struct {
    uint64_t echoed;
    size_t present;
} counts;

size_t message_at(size_t number) {
    return (2 * number + clients[number].buffer) * MESSAGE;
}

// The descriptor is non-blocking, because a wake-up may be stale.
void watch_non_blocking(int fd, uint64_t tag) {
    make_nonblocking(fd);
    watch(fd, tag);
}

// Receives the next request in one call or in steps. RPMA_E_NO_EVENT: none is pending.
int next_request(bool in_steps, rpma_conn_req **req) {
    if (!in_steps)
        return rpma_ep_next_conn_req(fixture.ep, nullptr, req);
    const int code = rpma_ep_next_incoming(fixture.ep, req);
    return code != 0 ? code : rpma_conn_req_setup(*req, nullptr);
}

// The private data of the reply: the client's number, then the descriptor of region 0, because
// padding may follow it.
void accept(rpma_conn_req **req, size_t number) {
    const std::vector<unsigned char> descriptor = descriptor_of(fixture.mr[0]);
    const auto own = static_cast<uint32_t>(number);
    std::vector<unsigned char> data(sizeof(own) + descriptor.size());
    memcpy(data.data(), &own, sizeof(own));
    std::ranges::copy(descriptor, data.begin() + sizeof(own));
    const rpma_conn_private_data pdata = private_data(data);
    clients[number].buffer = 0;
    must(rpma_conn_req_recv(*req, fixture.mr[1], message_at(number), MESSAGE, nullptr));
    must(rpma_conn_req_connect(req, &pdata, &fixture.conn[number]));
}

// A client killed meanwhile does not end the server.
void accept_client(const Args &args) {
    ScopedReq req;
    const auto number = static_cast<size_t>(std::ranges::find(fixture.conn, nullptr) -
                                            std::begin(fixture.conn));
    if (number == MAX_CONNS)
        args.refuse("too many clients");
    const int code = next_request(args.is("steps"), &req.it);
    if (code == RPMA_E_NO_EVENT)
        return;
    try {
        must(code);
        accept(&req.it, number);
    } catch (const Failed &failed) {
        require(failed.code == RPMA_E_PROVIDER, failed.code);
        return;
    }
    rpma_conn *conn = fixture.conn[number];
    clients[number].cq = queue_of(conn);
    watch_non_blocking(get(rpma_conn_get_event_fd, conn), 2 * number);
    watch_non_blocking(get(rpma_cq_get_fd, clients[number].cq), 2 * number + 1);
    counts.present++;
}

void handle_event(size_t number) {
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    const int code = rpma_conn_next_event(fixture.conn[number], &event);
    if (code == RPMA_E_NO_EVENT || (code == 0 && event == RPMA_CONN_ESTABLISHED))
        return;
    must(code);
    if (event == RPMA_CONN_CLOSED)
        rpma_conn_disconnect(fixture.conn[number]); // completes the client's disconnection
    counts.present--;
    must(rpma_conn_delete(&fixture.conn[number]));
}

// Posts the next receive first: the next message may arrive before this echo has been sent.
void echo(size_t number, const ibv_wc &wc) {
    const size_t at = message_at(number);
    clients[number].buffer ^= 1;
    must(rpma_recv(fixture.conn[number], fixture.mr[1], message_at(number), MESSAGE, nullptr));
    must(send(fixture.conn[number], fixture.mr[1], at, wc.byte_len,
              (wc.wc_flags & IBV_WC_WITH_IMM) != 0, ntohl(wc.imm_data)));
    counts.echoed++;
}

// Operations fail once the client has ended; the event that follows ends the connection.
void serve_queue(size_t number) {
    ibv_wc wc;
    int code = rpma_cq_wait(clients[number].cq);
    if (code == 0)
        while ((code = rpma_cq_get_wc(clients[number].cq, 1, &wc, nullptr)) == 0)
            if (wc.status == IBV_WC_SUCCESS && (wc.opcode & IBV_WC_RECV) != 0)
                echo(number, wc);
    require(code == RPMA_E_NO_COMPLETION, code);
}

void serve_one(const Args &args, uint64_t tag) {
    const size_t number = tag / 2;
    if (tag == ENDPOINT)
        accept_client(args);
    else if (fixture.conn[number] == nullptr)
        return; // it ended at an event of the same wake-up
    else if (tag % 2 == 0)
        handle_event(number);
    else
        serve_queue(number);
}

// Serves until the next command; the next "serve" continues with the remaining clients.
// steps=1: receives requests in steps.
void serve(const Args &args) {
    bool has_command = false;
    const ScopeExit report{[&] {
        reply("echoed", counts.echoed);
        reply("present", counts.present);
    }};
    watch_non_blocking(get(rpma_ep_get_fd, fixture.ep), ENDPOINT);
    watch(STDIN_FILENO, COMMANDS);
    while (!has_command)
        for (const uint64_t tag : wait_for_ready(-1)) {
            if (tag == COMMANDS)
                has_command = true;
            else
                serve_one(args, tag);
        }
}

const Commands here{{"serve", serve}};

} // namespace
