// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req.cc -- exports: connection requests

#include "core/conn_req.hh"
#include "api/getter.hh"
#include "core/conn.hh"

using namespace rpma;

int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
                      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr) {
    RPMA_REFUSE(peer == NULL);
    RPMA_REFUSE(addr == NULL);
    RPMA_REFUSE(port == NULL);
    RPMA_REFUSE(req_ptr == NULL);
    Call call(__func__);
    RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, __func__, "requesting a connection to %s:%s", addr, port);
    return call.deliver(rpma_conn_req::outgoing(call, *peer, addr, port, or_default(cfg)),
                        req_ptr);
}

int rpma_conn_req_delete(struct rpma_conn_req **req_ptr) {
    RPMA_REFUSE(req_ptr == NULL);
    return delete_anyway(__func__, req_ptr);
}

RPMA_GETTER(rpma_conn_req_get_private_data, rpma_conn_req, req, struct rpma_conn_private_data,
            pdata, req->private_data())

RPMA_GETTER(rpma_conn_req_get_peer_addr, rpma_conn_req, req, struct sockaddr_storage, addr,
            req->peer_addr())

int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
                          const struct rpma_conn_private_data *pdata,
                          struct rpma_conn **conn_ptr) {
    RPMA_REFUSE(req_ptr == NULL);
    RPMA_REFUSE(*req_ptr == NULL);
    // Whatever happens from here on, the request is used up.
    std::unique_ptr<rpma_conn_req> req(std::exchange(*req_ptr, nullptr));
    RPMA_REFUSE(conn_ptr == NULL);
    RPMA_REFUSE(pdata != NULL && pdata->ptr == NULL);
    RPMA_REFUSE_AS(__func__, pdata != NULL && pdata->len == 0,
                   "pdata->len is 0; possible: 1 and more, or pdata == NULL");
    Call call(__func__);
    auto conn = req->connect(call, pdata);
    req.reset(); // before errno becomes the provider's
    return call.deliver(std::move(conn), conn_ptr);
}
