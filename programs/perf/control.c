// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// control.c -- the connection that carries messages between the two sides

#include "control.h"

#include "failure.h"
#include "waiting.h"

#include <string.h>

#define RECEIVE_AT 0
#define SEND_AT MESSAGE_SIZE

static bool register_memory(struct control *control, struct rpma_peer *peer) {
    return memory_allocate(&control->memory, 2 * MESSAGE_SIZE) &&
           succeeds(rpma_mr_reg(peer, control->memory.ptr, control->memory.size,
                                RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &control->mr),
                    "cannot register the memory of messages");
}

static bool open_queue(struct control *control) {
    return succeeds(rpma_conn_get_cq(control->link.conn, &control->cq), "no CQ") &&
           succeeds(rpma_cq_get_fd(control->cq, &control->cq_fd), "no descriptor of the CQ") &&
           make_nonblocking(control->cq_fd);
}

bool control_open(struct control *control, struct rpma_peer *peer,
                  struct rpma_conn_req **request) {
    memset(control, 0, sizeof(*control));
    if (register_memory(control, peer) &&
        succeeds(
            rpma_conn_req_recv(*request, control->mr, RECEIVE_AT, MESSAGE_SIZE, &control->in),
            "cannot post a receive") &&
        link_open(&control->link, request, "control", 0, 0) && open_queue(control)) {
        control->heard = now_ns();
        return true;
    }
    if (*request)
        (void)rpma_conn_req_delete(request);
    control_close(control);
    return false;
}

void control_close(struct control *control) {
    link_close(&control->link);
    if (control->mr)
        (void)rpma_mr_dereg(&control->mr);
    memory_free(&control->memory);
}

bool control_send(struct control *control) {
    memcpy((char *)control->memory.ptr + SEND_AT, control->out.text, control->out.length);
    return succeeds(rpma_send(control->link.conn, control->mr, SEND_AT, control->out.length,
                              RPMA_F_COMPLETION_ALWAYS, &control->out),
                    "cannot send a message");
}

static enum heard take_message(struct control *control, const struct ibv_wc *wc) {
    control->in.length = wc->byte_len;
    memcpy(control->in.text, (char *)control->memory.ptr + RECEIVE_AT, wc->byte_len);
    if (!message_is_valid(&control->in)) {
        fail("the other side sent what is no message");
        return HEARD_END;
    }
    return succeeds(rpma_recv(control->link.conn, control->mr, RECEIVE_AT, MESSAGE_SIZE,
                              &control->in),
                    "cannot post a receive")
               ? HEARD_MESSAGE
               : HEARD_END;
}

// When the other side closes the connection, outstanding work requests are flushed, with
// soft-iWARP even before the event of the disconnection. If the other side stops answering, an
// operation fails with another status first.
static void note_end(struct control *control, enum ibv_wc_status status) {
    if (status == IBV_WC_WR_FLUSH_ERR)
        control->link.has_ended = true;
    fail(control->link.has_ended ? "the other side closed the connection"
                                 : "the other side is gone (no answer)");
}

enum heard control_take(struct control *control) {
    struct ibv_wc wc;
    int ret;
    while ((ret = rpma_cq_get_wc(control->cq, 1, &wc, NULL)) == 0) {
        if (wc.status != IBV_WC_SUCCESS) {
            note_end(control, wc.status);
            return HEARD_END;
        }
        control->heard = now_ns();
        if (wc.wr_id == (uintptr_t)&control->in)
            return take_message(control, &wc);
        if (wc.wr_id == (uintptr_t)&control->is_beating)
            control->is_beating = false;
    }
    if (ret == RPMA_E_NO_COMPLETION)
        return HEARD_NOTHING;
    succeeds(ret, "cannot take completions");
    return HEARD_END;
}

bool control_beat(struct control *control) {
    uint64_t silent_ms = (now_ns() - control->heard) / 1000000;
    if (silent_ms < BEAT_MS)
        return true;
    if (control->is_beating)
        return silent_ms < PATIENCE_MS || fail("the other side is gone (no answer)");
    control->is_beating = true;
    return succeeds(rpma_read(control->link.conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS,
                              &control->is_beating),
                    "cannot ask for a sign of life");
}
