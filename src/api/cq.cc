// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.cc -- exports: completion queues

#include "core/cq.hh"
#include "api/export.hh"

RPMA_EXPORT int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd) {
    RPMA_REFUSE(cq == NULL);
    RPMA_REFUSE(fd == NULL);
    *fd = cq->fd();
    return 0;
}
RPMA_VERSIONS(rpma_cq_get_fd)

RPMA_EXPORT int rpma_cq_wait(struct rpma_cq *cq) {
    RPMA_REFUSE(cq == NULL);
    if (cq->shares_channel())
        return rpma::api::report(__func__, rpma::SHARED);
    return rpma::api::finish(__func__, cq->wait());
}
RPMA_VERSIONS(rpma_cq_wait)

namespace {

[[gnu::cold, gnu::noinline]] int poll_failed(const char *function, int got) {
    return rpma::api::report(function, rpma::poll_failure(got));
}

} // namespace

RPMA_EXPORT int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc,
                               int *num_entries_got) {
    RPMA_REFUSE(cq == NULL);
    RPMA_REFUSE(num_entries < 1);
    RPMA_REFUSE(wc == NULL);
    RPMA_REFUSE(num_entries > 1 && num_entries_got == NULL);
    const int got = ibv_poll_cq(&cq->queue(), num_entries, wc);
    // One comparison for both ends: 0 and what is below become large.
    if (static_cast<unsigned>(got) - 1 >= static_cast<unsigned>(num_entries)) [[unlikely]] {
        // Programs poll an empty queue over and over: only who wants the message pays for it.
        if (got == 0 && !rpma::log::enabled(RPMA_LOG_LEVEL_DEBUG))
            return RPMA_E_NO_COMPLETION;
        return poll_failed(__func__, got);
    }
    if (num_entries_got != nullptr)
        *num_entries_got = got;
    return 0;
}
RPMA_VERSIONS(rpma_cq_get_wc)
