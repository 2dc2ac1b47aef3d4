// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// configurations.cc -- the functions of librpma that only store, pack or report: none of them
// is a point where anything may happen

#include "library.hh"

#include <cstring>

namespace {

struct Packed {
    char signature[8];
    const rpma_mr_local *region;
    bool has_cfg, direct_write_to_pmem;
    uint8_t len; // of the program's own bytes
    char bytes[24];
};
constexpr char SIGNATURE[] = "packed!";

} // namespace

// Defines functions of one shape, named after the object and its member.
#define NEW(object)                          \
    int object##_new(object **made) {        \
        *made = world.make_object<object>(); \
        return 0;                            \
    }
#define DELETE(object)                   \
    int object##_delete(object **made) { \
        return forget(made, __func__);   \
    }
#define SET(object, member, type)                         \
    int object##_set_##member(object *made, type value) { \
        USE(made).member = value;                         \
        return 0;                                         \
    }
#define GET(object, member, type)                                \
    int object##_get_##member(const object *made, type *value) { \
        *value = USE(made).member;                               \
        return 0;                                                \
    }

#pragma GCC visibility push(default)
extern "C" {

DELETE(rpma_mr_remote)

NEW(rpma_peer_cfg)
DELETE(rpma_peer_cfg)
SET(rpma_peer_cfg, direct_write_to_pmem, bool)
GET(rpma_peer_cfg, direct_write_to_pmem, bool)

NEW(rpma_conn_cfg)
DELETE(rpma_conn_cfg)
SET(rpma_conn_cfg, timeout, int)
SET(rpma_conn_cfg, cq_size, uint32_t)
SET(rpma_conn_cfg, sq_size, uint32_t)
SET(rpma_conn_cfg, rcq_size, uint32_t)
SET(rpma_conn_cfg, compl_channel, bool)
SET(rpma_conn_cfg, srq, rpma_srq *)
SET(rpma_conn_cfg, cq, rpma_cq *)

NEW(rpma_srq_cfg)
DELETE(rpma_srq_cfg)
SET(rpma_srq_cfg, rq_size, uint32_t)
SET(rpma_srq_cfg, rcq_size, uint32_t)
GET(rpma_srq, rcq, rpma_cq *)

NEW(rpma_cq_cfg)
DELETE(rpma_cq_cfg)
SET(rpma_cq_cfg, size, uint32_t)

GET(rpma_peer, event_fd, int)
GET(rpma_ep, fd, int)
GET(rpma_conn, event_fd, int)
GET(rpma_conn, cq, rpma_cq *)
GET(rpma_conn, rcq, rpma_cq *)

int rpma_cq_get_fd(const rpma_cq *cq, int *fd) {
    *fd = USE(cq).channel->fd;
    return 0;
}

int rpma_conn_req_get_event_fd(const rpma_conn_req *req, int *fd) {
    *fd = USE(req).conn->event_fd;
    return 0;
}

int rpma_mr_remote_get_size(const rpma_mr_remote *mr, size_t *size) {
    *size = USE(mr).region->size;
    return 0;
}

int rpma_conn_get_compl_fd(const rpma_conn *conn, int *fd) {
    *fd = USE(conn).cq->channel->fd;
    return conn->cq->shares_channel ? 0 : RPMA_E_NOT_SHARED_CHNL;
}

int rpma_conn_get_qp_num(const rpma_conn *conn, uint32_t *qp_num) {
    *qp_num = USE(conn).qp_num;
    return 0;
}

// ---- data that the two sides exchange

// All devices here serve flushes and atomic writes natively.
int rpma_peer_cfg_set_served_by(rpma_peer_cfg *pcfg, const rpma_peer *peer) {
    USE(pcfg);
    USE(peer);
    return 0;
}

int rpma_conn_private_data_pack(const rpma_mr_local *const *mrs, uint32_t nmrs,
                                const rpma_peer_cfg *pcfg, const void *bytes, uint32_t len,
                                rpma_conn_private_data *pdata) {
    Packed packed{{},
                  nmrs ? &USE(mrs[0]) : nullptr,
                  pcfg != nullptr,
                  pcfg && USE(pcfg).direct_write_to_pmem,
                  static_cast<uint8_t>(len),
                  {}};
    if (nmrs > 1 || len > sizeof(packed.bytes))
        world.found("not simulated: several regions, or many bytes of the program");
    if (len)
        memcpy(packed.bytes, bytes, len);
    memcpy(packed.signature, SIGNATURE, sizeof(SIGNATURE));
    if (pdata->len < sizeof(packed))
        return RPMA_E_INVAL;
    memcpy(pdata->ptr, &packed, sizeof(packed));
    pdata->len = sizeof(packed);
    return 0;
}

int rpma_conn_private_data_unpack(const rpma_conn_private_data *pdata, rpma_mr_remote **mrs,
                                  uint32_t *nmrs, rpma_peer_cfg **pcfg, const void **bytes,
                                  uint32_t *len) {
    Packed packed;
    if (pdata->len < sizeof(packed))
        return RPMA_E_INVAL;
    memcpy(&packed, pdata->ptr, sizeof(packed));
    if (memcmp(packed.signature, SIGNATURE, sizeof(SIGNATURE)))
        return RPMA_E_INVAL;
    const uint32_t regions = packed.region ? 1 : 0;
    if (mrs && regions > *nmrs)
        return RPMA_E_INVAL;
    if (mrs && regions) {
        mrs[0] = world.make_object<rpma_mr_remote>();
        mrs[0]->region = packed.region;
    }
    if (nmrs)
        *nmrs = regions;
    if (pcfg) {
        *pcfg = packed.has_cfg ? world.make_object<rpma_peer_cfg>() : nullptr;
        if (*pcfg)
            (*pcfg)->direct_write_to_pmem = packed.direct_write_to_pmem;
    }
    if (bytes)
        *bytes = static_cast<const char *>(pdata->ptr) + offsetof(Packed, bytes);
    if (len)
        *len = packed.len;
    return 0;
}

int rpma_conn_get_private_data(const rpma_conn *conn, rpma_conn_private_data *pdata) {
    const std::string &data = USE(conn).private_data;
    *pdata = {const_cast<char *>(data.data()), static_cast<uint8_t>(data.size())};
    return 0;
}

int rpma_conn_apply_remote_peer_cfg(rpma_conn *conn, const rpma_peer_cfg *pcfg) {
    USE(conn).may_be_persistent = USE(pcfg).direct_write_to_pmem;
    return 0;
}

// ---- texts

int rpma_log_set_threshold(rpma_log_threshold, rpma_log_level) {
    return 0;
}

const char *rpma_err_2str(int ret) {
    switch (ret) {
    case RPMA_E_PROVIDER:
        return "the provider failed";
    case RPMA_E_NOSUPP:
        return "not supported";
    case RPMA_E_INVAL:
        return "an argument is not valid";
    case RPMA_E_AGAIN:
        return "a queue has no room";
    default:
        return "another failure";
    }
}

const char *rpma_utils_conn_event_2str(rpma_conn_event event) {
    static const char *const texts[] = {"established", "closed", "lost", "rejected",
                                        "unreachable"};
    return texts[event];
}

const char *ibv_wc_status_str(ibv_wc_status status) {
    return status == IBV_WC_WR_FLUSH_ERR ? "flushed with an error" : "retries exceeded";
}

} // extern "C"
#pragma GCC visibility pop
