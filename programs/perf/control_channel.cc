// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// control_channel.cc -- the connection that carries messages between the two sides

#include "control_channel.hh"

#include "failure.hh"
#include "nonblocking.hh"
#include "waiting.hh"

// Messages are received at the start of the memory, and sent from the buffer after it.
static constexpr size_t SEND_AT = MESSAGE_SIZE;
static const char receive_context{}, send_context{}, keepalive_context{};

ControlChannel::ControlChannel(rpma::peer &peer)
    : memory_(Mapping::allocate(2 * MESSAGE_SIZE)),
      mr_(peer, memory_.data(), memory_.size(), RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV),
      keepalive_target_(mr_.get_descriptor()) {}

void ControlChannel::connect() {
    const rpma::conn_cfg cfg = link_cfg();
    attempt("cannot connect", [&] { link.request.setup(cfg); });
    require_ok(link.request.recv(mr_, 0, MESSAGE_SIZE, &receive_context),
               "cannot post a receive");
    link.connect(greeting_text("control", 0, 0));
    cq_ = link.conn.get_cq();
    cq_fd_ = cq_.get_fd();
    make_nonblocking(cq_fd_);
    last_activity_ = now_ns();
}

void ControlChannel::advance() {
    const auto step = link.advance();
    if (step == CmLink::Step::ready)
        connect();
    if (step == CmLink::Step::ended)
        link.end();
}

void ControlChannel::send(const Json &message) {
    const std::string text = message.dump();
    if (text.size() > MESSAGE_SIZE)
        fail("a message is too long to be sent");
    if (unsent_.size() == UNSENT_MAX)
        fail("the other side does not receive messages");
    unsent_.push_back(text);
    if (unsent_.size() == 1)
        post_send();
}

void ControlChannel::post_send() {
    const std::string &text = unsent_.front();
    text.copy(memory_.data() + SEND_AT, text.size());
    require_ok(
        link.conn.send(mr_, SEND_AT, text.size(), RPMA_F_COMPLETION_ALWAYS, &send_context),
        "cannot send a message");
}

void ControlChannel::end_send() {
    unsent_.pop_front();
    if (!unsent_.empty())
        post_send();
}

std::string ControlChannel::copy_message(size_t count) {
    std::string bytes(memory_.data(), count);
    require_ok(link.conn.recv(mr_, 0, MESSAGE_SIZE, &receive_context), "cannot post a receive");
    return bytes;
}

// When the other side closes the connection, outstanding work requests are flushed, with
// soft-iWARP even before the event of the disconnection. If the other side stops answering, an
// operation fails with another status first.
void ControlChannel::end(ibv_wc_status status) {
    link.has_ended |= status == IBV_WC_WR_FLUSH_ERR;
    fail("{}", link.has_ended ? "the other side closed the connection"
                              : "the other side does not reply to keepalives");
}

std::optional<std::string> ControlChannel::take() {
    ibv_wc wc;
    rpma::status status = rpma::status::no_completion;
    // A message may arrive before the event ESTABLISHED; replying is not possible yet.
    while (link.is_established && (status = cq_.get_wc(wc)) == rpma::status::ok) {
        if (wc.status != IBV_WC_SUCCESS)
            end(wc.status);
        last_activity_ = now_ns();
        if (wc.wr_id == reinterpret_cast<uintptr_t>(&receive_context))
            return copy_message(wc.byte_len);
        if (wc.wr_id == reinterpret_cast<uintptr_t>(&send_context))
            end_send();
        is_keepalive_outstanding_ &=
            wc.wr_id != reinterpret_cast<uintptr_t>(&keepalive_context);
    }
    if (status != rpma::status::no_completion)
        require_ok(status, "cannot read completions");
    return {};
}

// Arms the CQ before take() polls it, so that no completion in between is missed.
void ControlChannel::take_cq_event() {
    if (const auto status = cq_.take_event(); status != rpma::status::no_completion)
        require_ok(status, "cannot wait for messages");
    require_ok(cq_.arm(false), "cannot wait for messages");
}

void ControlChannel::keep_alive() {
    if (!link.is_established || !is_past(last_activity_, KEEPALIVE_MS))
        return;
    if (is_keepalive_outstanding_ && is_past(last_activity_, PEER_TIMEOUT_MS))
        fail("the other side does not reply to keepalives");
    if (!is_keepalive_outstanding_)
        // siw always uses one SGE for a read. If the work request has none, siw uses that of an
        // earlier message, and the other side closes the connection.
        require_ok(link.conn.read(mr_, 0, keepalive_target_, 0, 0, RPMA_F_COMPLETION_ALWAYS,
                                  &keepalive_context),
                   "cannot send a keepalive");
    is_keepalive_outstanding_ = true;
}
