// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// probes.hh -- the USDT probes of the provider librpma; rpma_tracing(7) describes them
//
// A probe is a nop that a tracer can replace. Nothing is formatted for it, so that its cost
// does not depend on the log level. Data calls have none: a tracer can use their symbols.

#pragma once

#include <cstdint>

#ifdef RPMA_TRACING
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define RPMA_PROBE(...) STAP_PROBEV(librpma, __VA_ARGS__)
#else
#define RPMA_PROBE(name, ...) unused(__VA_ARGS__)
#endif

struct rpma_conn;
struct rpma_conn_req;
struct sockaddr;

#define RPMA_INLINE [[gnu::always_inline]] inline

namespace rpma::probe {

constexpr void unused(auto...) {}

// A call, or one of its attempts, failed. error is the provider's number or 0. level is the
// level of the log message: if it is enabled, the probe log follows on the same thread.
RPMA_INLINE void failure(const char *function, int code, int error, int level) {
    RPMA_PROBE(failure, function, code, error, level);
}
RPMA_INLINE void log(int level, const char *function, const char *message) {
    RPMA_PROBE(log, level, function, message);
}
// The provider refused a work request, and returned result. opcode is that of libibverbs; for a
// receive, it is -1 and conn is nullptr.
RPMA_INLINE void post_refused(const char *function, const rpma_conn *conn, int opcode,
                              uint64_t wr_id, int result) {
    RPMA_PROBE(post_refused, function, conn, opcode, wr_id, result);
}
RPMA_INLINE void conn_request(const rpma_conn_req *req, const sockaddr *client,
                              int private_data_len) {
    RPMA_PROBE(conn_request, req, client, private_data_len);
}
// A request became a connection, whose establishment starts.
RPMA_INLINE void conn_start(const rpma_conn *conn, uint32_t qp_num, const sockaddr *peer,
                            bool is_incoming) {
    RPMA_PROBE(conn_start, conn, qp_num, peer, is_incoming);
}
// event is the event of librpma, or -1; cm_event and status are those of librdmacm.
RPMA_INLINE void conn_event(const rpma_conn *conn, uint32_t qp_num, int event, int cm_event,
                            int status) {
    RPMA_PROBE(conn_event, conn, qp_num, event, cm_event, status);
}
// methods: the flush types of each method (FlushMasks). served: the operations that the other
// side advertised (SERVES_*), or 0.
RPMA_INLINE void flush_method(const rpma_conn *conn, uint32_t methods, int served) {
    RPMA_PROBE(flush_method, conn, methods, served);
}
// object is the object of libibverbs that the event concerns; nullptr: the device or a port.
RPMA_INLINE void device_event(const char *device, int ibv_event, uint32_t port,
                              const void *object) {
    RPMA_PROBE(device_event, device, ibv_event, port, object);
}

} // namespace rpma::probe

#undef RPMA_INLINE
