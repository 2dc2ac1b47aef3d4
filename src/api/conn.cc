// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn.cc -- exports: connections

#include "api/getter.hh"
#include "base/probes.hh"
#include "core/conn_req.hh"

using namespace rpma;

int rpma_conn_delete(struct rpma_conn **conn_ptr) {
    RPMA_REFUSE(conn_ptr == NULL);
    return release_and_delete<rpma_conn, rpma_conn_req>(__func__, conn_ptr);
}

int rpma_conn_disconnect(struct rpma_conn *conn) {
    RPMA_REFUSE(conn == NULL);
    RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, __func__, "disconnecting");
    Call call(__func__);
    conn->disconnect(call);
    return call.finish();
}

int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(event == NULL);
    Call call(__func__);
    return call.deliver(conn->next_event(call), event);
}

int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd) {
    RPMA_GET(conn, fd, conn->events()->fd);
}

int rpma_conn_get_local_addr(const struct rpma_conn *conn, struct sockaddr_storage *addr) {
    RPMA_GET(conn, addr, conn->id().local_addr());
}

int rpma_conn_get_peer_addr(const struct rpma_conn *conn, struct sockaddr_storage *addr) {
    RPMA_GET(conn, addr, conn->id().peer_addr());
}

int rpma_conn_get_private_data(const struct rpma_conn *conn,
                               struct rpma_conn_private_data *pdata) {
    RPMA_GET(conn, pdata, conn->private_data());
}

int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(pcfg == NULL);
    const PeerSettings settings = pcfg->read();
    conn->flush.apply(Call(__func__), settings.direct_write_to_pmem, settings.served);
    probe::flush_method(conn, conn->flush.allowed().bits(), settings.served);
    return 0;
}

int rpma_conn_get_flush_mode(const struct rpma_conn *conn, enum rpma_flush_mode *mode) {
    RPMA_GET(conn, mode, conn->flush.mode());
}

int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num) {
    RPMA_GET(conn, qp_num, conn->qp->qp_num);
}

int rpma_conn_get_ibv_qp(const struct rpma_conn *conn, struct ibv_qp **qp_ptr) {
    RPMA_GET(conn, qp_ptr, conn->qp);
}

int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr) {
    RPMA_GET(conn, cq_ptr, conn->cq());
}

int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr) {
    RPMA_GET(conn, rcq_ptr, conn->rcq());
}

int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(fd == NULL);
    Call call(__func__);
    return call.deliver(conn->shared_fd(call), fd);
}

int rpma_conn_wait(struct rpma_conn *conn, int, struct rpma_cq **cq, bool *is_rcq) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(cq == NULL);
    const int code = conn->wait(__func__, cq);
    if (code == 0 && is_rcq != nullptr)
        *is_rcq = *cq == conn->rcq();
    return code;
}
