// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ep.cc -- exports: endpoints

#include "core/ep.hh"
#include "api/getter.hh"
#include "core/conn_req.hh"
#include "verbs/address.hh"
#include "verbs/text.hh"

using namespace rpma;

namespace {

int listen(const char *function, rpma_peer *peer, const char *addr, const char *port,
           const EpSettings &cfg, rpma_ep **ep_ptr) {
    RPMA_REFUSE_IN(function, peer == NULL);
    RPMA_REFUSE_IN(function, addr == NULL);
    RPMA_REFUSE_IN(function, port == NULL);
    RPMA_REFUSE_IN(function, ep_ptr == NULL);
    RPMA_REFUSE_AS(function, !is_port(port), INVALID_PORT, Visible(port).chars);
    Call call(function);
    auto ep = rpma_ep::listen(call, *peer, addr, port, cfg);
    if (ep)
        RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, function, "listening on %s",
                 address_text(reinterpret_cast<const sockaddr *>(&ep->addr())).chars);
    return call.deliver(std::move(ep), ep_ptr);
}

[[gnu::noinline]] int next_request(const char *function, rpma_ep *ep, bool has_queues,
                                   const rpma_conn_cfg *cfg, rpma_conn_req **req_ptr) {
    RPMA_REFUSE_IN(function, ep == NULL);
    RPMA_REFUSE_IN(function, req_ptr == NULL);
    Call call(function);
    auto req = ep->next_request(call, has_queues, cfg);
    if (req)
        RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, function, "a connection request arrived");
    return call.deliver(std::move(req), req_ptr);
}

} // namespace

int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
                   struct rpma_ep **ep_ptr) {
    return listen(__func__, peer, addr, port, {}, ep_ptr);
}

int rpma_ep_listen_with(struct rpma_peer *peer, const char *addr, const char *port,
                        const struct rpma_ep_cfg *cfg, struct rpma_ep **ep_ptr) {
    return listen(__func__, peer, addr, port, settings_of(cfg), ep_ptr);
}

int rpma_ep_shutdown(struct rpma_ep **ep_ptr) {
    RPMA_REFUSE(ep_ptr == NULL);
    return try_delete(__func__, ep_ptr);
}

int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd) {
    RPMA_GET(ep, fd, ep->fd());
}

int rpma_ep_get_addr(const struct rpma_ep *ep, struct sockaddr_storage *addr) {
    RPMA_GET(ep, addr, ep->addr());
}

int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
                          struct rpma_conn_req **req_ptr) {
    return next_request(__func__, ep, true, cfg, req_ptr);
}

int rpma_ep_next_incoming(struct rpma_ep *ep, struct rpma_conn_req **req_ptr) {
    return next_request(__func__, ep, false, nullptr, req_ptr);
}
