// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req.cc -- exports: connection requests

#include "core/conn_req.hh"
#include "api/getter.hh"
#include "core/conn.hh"
#include "verbs/address.hh"

using namespace rpma;

#define REFUSE_DATA(pdata)                                     \
    RPMA_REFUSE(pdata != NULL && pdata->ptr == NULL);          \
    RPMA_REFUSE_AS(__func__, pdata != NULL && pdata->len == 0, \
                   "pdata->len is 0; possible: 1 and more, or pdata == NULL")

namespace {

template <auto create>
int create_request(const char *function, rpma_peer *peer, const char *addr, const char *port,
                   const rpma_conn_cfg *cfg, rpma_conn_req **req_ptr) {
    RPMA_REFUSE_IN(function, peer == NULL);
    RPMA_REFUSE_IN(function, addr == NULL);
    RPMA_REFUSE_IN(function, port == NULL);
    RPMA_REFUSE_IN(function, req_ptr == NULL);
    RPMA_REFUSE_AS(function, !is_port(port), INVALID_PORT, Visible(port).chars);
    Call call(function);
    RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, function, "requesting a connection to %s:%s",
             Visible(addr).chars, Visible(port).chars);
    return call.deliver(create(call, *peer, addr, port, settings_of(cfg)), req_ptr);
}

} // namespace

int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
                      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr) {
    return create_request<rpma_conn_req::outgoing>(__func__, peer, addr, port, cfg, req_ptr);
}

int rpma_conn_req_start(struct rpma_peer *peer, const char *addr, const char *port,
                        const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr) {
    return create_request<rpma_conn_req::start>(__func__, peer, addr, port, cfg, req_ptr);
}

int rpma_conn_req_get_event_fd(const struct rpma_conn_req *req, int *fd) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE(fd == NULL);
    const rdma_event_channel *events = req->events();
    RPMA_REFUSE_AS(__func__, events == nullptr,
                   "a request of rpma_conn_req_new() has no events: use rpma_conn_req_start()");
    make_nonblocking(*events); // rpma_ep_next_conn_req() leaves it blocking
    *fd = events->fd;
    return 0;
}

int rpma_conn_req_get_local_addr(const struct rpma_conn_req *req,
                                 struct sockaddr_storage *addr) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE(addr == NULL);
    RPMA_REFUSE_AS(__func__, req->has_failed(), REQUEST_FAILED);
    RPMA_REFUSE_AS(__func__, !req->is_ready(), REQUEST_NOT_RESOLVED);
    *addr = req->id().local_addr();
    return 0;
}

int rpma_conn_req_resolve(struct rpma_conn_req *req) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE_AS(__func__, req->has_failed(), REQUEST_FAILED);
    Call call(__func__);
    req->resolve(call);
    return call.finish();
}

int rpma_conn_req_setup(struct rpma_conn_req *req, const struct rpma_conn_cfg *cfg) {
    RPMA_REFUSE(req == NULL);
    RPMA_REFUSE_AS(__func__, req->has_failed(), REQUEST_FAILED);
    RPMA_REFUSE_AS(__func__, !req->is_ready(), REQUEST_NOT_RESOLVED);
    RPMA_REFUSE_AS(__func__, req->is_set_up(),
                   "the request is set up already; a request is set up once");
    Call call(__func__);
    const ConnSettings settings = settings_of(cfg);
    if (check_cfg(call, req->peer, settings))
        req->set_up(call, settings);
    return call.finish();
}

int rpma_conn_req_delete(struct rpma_conn_req **req_ptr) {
    RPMA_REFUSE(req_ptr == NULL);
    return release_and_delete(__func__, req_ptr);
}

int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
                                   struct rpma_conn_private_data *pdata) {
    RPMA_GET(req, pdata, req->private_data());
}

int rpma_conn_req_get_peer_addr(const struct rpma_conn_req *req,
                                struct sockaddr_storage *addr) {
    RPMA_GET(req, addr, req->id().peer_addr());
}

int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
                          const struct rpma_conn_private_data *pdata,
                          struct rpma_conn **conn_ptr) {
    RPMA_REFUSE(req_ptr == NULL);
    RPMA_REFUSE(*req_ptr == NULL);
    // From here on the request is consumed, also on failure.
    std::unique_ptr<rpma_conn_req> req(std::exchange(*req_ptr, nullptr));
    RPMA_REFUSE(conn_ptr == NULL);
    REFUSE_DATA(pdata);
    RPMA_REFUSE_AS(__func__, !req->is_set_up(), "%s", req->not_set_up_reason());
    Call call(__func__);
    if (!req->connect(call, pdata)) {
        req.reset(); // its destruction may change errno, which finish() sets
        return call.finish();
    }
    *conn_ptr = req.release();
    return 0;
}

int rpma_conn_req_reject(struct rpma_conn_req **req_ptr,
                         const struct rpma_conn_private_data *pdata) {
    RPMA_REFUSE(req_ptr == NULL);
    RPMA_REFUSE(*req_ptr == NULL);
    // From here on the request is consumed, also on failure.
    std::unique_ptr<rpma_conn_req> req(std::exchange(*req_ptr, nullptr));
    REFUSE_DATA(pdata);
    RPMA_REFUSE_AS(__func__, !req->is_incoming(),
                   "the request is an outgoing one: only an incoming one can be rejected");
    Call call(__func__);
    req->reject(call, pdata);
    return call.finish();
}
