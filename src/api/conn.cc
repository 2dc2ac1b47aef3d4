// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn.cc -- exports: connections

#include "core/conn.hh"
#include "api/getter.hh"
#include "base/probes.hh"

using namespace rpma;

int rpma_conn_delete(struct rpma_conn **conn_ptr) {
    RPMA_REFUSE(conn_ptr == NULL);
    return delete_anyway(__func__, conn_ptr);
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

RPMA_GETTER(rpma_conn_get_event_fd, rpma_conn, conn, int, fd, conn->event_fd())

RPMA_GETTER(rpma_conn_get_local_addr, rpma_conn, conn, struct sockaddr_storage, addr,
            conn->id().local_addr())

RPMA_GETTER(rpma_conn_get_peer_addr, rpma_conn, conn, struct sockaddr_storage, addr,
            conn->id().peer_addr())

RPMA_GETTER(rpma_conn_get_private_data, rpma_conn, conn, struct rpma_conn_private_data, pdata,
            conn->private_data())

int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(pcfg == NULL);
    const uint8_t served = pcfg->served;
    conn->flush.apply(Call(__func__), pcfg->direct_write_to_pmem, served);
    probe::flush_method(conn, conn->flush.allowed(), served);
    return 0;
}

RPMA_GETTER(rpma_conn_get_flush_mode, rpma_conn, conn, enum rpma_flush_mode, mode,
            conn->flush.mode())

RPMA_GETTER(rpma_conn_get_qp_num, rpma_conn, conn, uint32_t, qp_num, conn->qp->qp_num)

RPMA_GETTER(rpma_conn_get_ibv_qp, rpma_conn, conn, struct ibv_qp *, qp_ptr, conn->qp)

RPMA_GETTER(rpma_conn_get_cq, rpma_conn, conn, struct rpma_cq *, cq_ptr, conn->cq())

RPMA_GETTER(rpma_conn_get_rcq, rpma_conn, conn, struct rpma_cq *, rcq_ptr, conn->rcq())

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
