// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.cc -- exports: completion queues

#include "core/cq.hh"
#include "api/getter.hh"
#include "verbs/tuned.hh"

using namespace rpma;

int rpma_cq_new(struct rpma_peer *peer, const struct rpma_cq_cfg *cfg,
                struct rpma_cq **cq_ptr) {
    RPMA_REFUSE(peer == NULL);
    RPMA_REFUSE(cq_ptr == NULL);
    Call call(__func__);
    return call.deliver(rpma_cq::create_for_program(call, *peer, settings_of(cfg)), cq_ptr);
}

int rpma_cq_delete(struct rpma_cq **cq_ptr) {
    RPMA_REFUSE(cq_ptr == NULL);
    if (*cq_ptr != nullptr && !(*cq_ptr)->is_of_program()) {
        Call call(__func__);
        RPMA_FAIL(call, RPMA_E_INVAL, 0,
                  "the completion queue was not created by rpma_cq_new(): its connection or "
                  "shared receive queue deletes it");
        return call.finish();
    }
    return try_delete(__func__, cq_ptr);
}

int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd) {
    RPMA_GET(cq, fd, cq->fd());
}

int rpma_cq_get_ibv_cq(const struct rpma_cq *cq, struct ibv_cq **ibv_cq_ptr) {
    RPMA_GET(cq, ibv_cq_ptr, &cq->queue());
}

RPMA_POST int rpma_cq_wait(struct rpma_cq *cq) {
    RPMA_REFUSE(cq == NULL);
    return cq->wait(__func__);
}

RPMA_POST int rpma_cq_take_event(struct rpma_cq *cq) {
    RPMA_REFUSE(cq == NULL);
    return cq->take_event(__func__);
}

int rpma_cq_arm(struct rpma_cq *cq, bool solicited_only) {
    RPMA_REFUSE(cq == NULL);
    return cq->arm(__func__, solicited_only);
}

int rpma_cq_set_moderation(struct rpma_cq *cq, uint32_t count, uint32_t period_us) {
    RPMA_REFUSE(cq == NULL);
    RPMA_REFUSE_VALUE(__func__, count > UINT16_MAX, count, "65535 at most");
    RPMA_REFUSE_VALUE(__func__, period_us > UINT16_MAX, period_us, "65535 at most");
    Call call(__func__);
    cq->moderate(call, static_cast<uint16_t>(count), static_cast<uint16_t>(period_us));
    return call.finish();
}

namespace {

[[gnu::cold, gnu::noinline]] int fail_poll(int got, int requested) {
    Call call("rpma_cq_get_wc");
    report_poll(call, got, requested);
    return call.finish();
}

// Programs poll an empty queue in a loop: the message is formatted only if it is logged.
[[gnu::noinline]] int end_poll(int got, int requested) {
    if (got != 0 || is_logged(RPMA_LOG_LEVEL_DEBUG)) [[unlikely]]
        return fail_poll(got, requested);
    return RPMA_E_NO_COMPLETION;
}

// Slow path: invalid arguments, several completions, or a number to store.
[[gnu::noinline]] int get_wcs(rpma_cq *cq, int num_entries, ibv_wc *wc, int *num_entries_got) {
    static constexpr char function[] = "rpma_cq_get_wc";
    RPMA_REFUSE_IN(function, cq == NULL);
    RPMA_REFUSE_VALUE(function, num_entries < 1, num_entries, "1 and more");
    RPMA_REFUSE_IN(function, wc == NULL);
    RPMA_REFUSE_IN(function, num_entries > 1 && num_entries_got == NULL);
    const int got = ibv_poll_cq(&cq->queue(), num_entries, wc);
    if (got < 1 || got > num_entries) [[unlikely]]
        return end_poll(got, num_entries);
    if (num_entries_got != nullptr)
        *num_entries_got = got;
    return 0;
}

} // namespace

// The fast path keeps no argument across the provider's call, so it saves no register.
int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc,
                   int *num_entries_got) {
    if (cq == nullptr || wc == nullptr || num_entries != 1 || num_entries_got != nullptr)
        [[unlikely]]
        return get_wcs(cq, num_entries, wc, num_entries_got);
    const int got = ibv_poll_cq(&cq->queue(), 1, wc);
    if (got == 1) [[likely]]
        return 0;
    return end_poll(got, 1);
}
