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

extern "C" {

NEW(rpma_peer_cfg)
DELETE(rpma_peer_cfg)
SET(rpma_peer_cfg, direct_write_to_pmem, bool)
GET(rpma_peer_cfg, direct_write_to_pmem, bool, made.direct_write_to_pmem)

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

NEW(rpma_cq_cfg)
DELETE(rpma_cq_cfg)
SET(rpma_cq_cfg, size, uint32_t)

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
    Packed packed{};
    memcpy(&packed, pdata->ptr, std::min<size_t>(pdata->len, sizeof(packed)));
    const uint32_t regions = packed.region ? 1 : 0;
    if (memcmp(packed.signature, SIGNATURE, sizeof(SIGNATURE)) || (mrs && regions > *nmrs))
        return RPMA_E_INVAL;
    if (mrs && regions) {
        mrs[0] = world.make_object<rpma_mr_remote>();
        mrs[0]->region = packed.region;
    }
    if (nmrs)
        *nmrs = regions;
    if (pcfg)
        *pcfg = packed.has_cfg ? world.make_object<rpma_peer_cfg>() : nullptr;
    if (pcfg && *pcfg)
        (*pcfg)->direct_write_to_pmem = packed.direct_write_to_pmem;
    if (bytes)
        *bytes = static_cast<const char *>(pdata->ptr) + offsetof(Packed, bytes);
    if (len)
        *len = packed.len;
    return 0;
}

// ---- texts

int rpma_log_set_threshold(rpma_log_threshold threshold, rpma_log_level level) {
    if (threshold == RPMA_LOG_THRESHOLD_AUX)
        world.current->threshold = level;
    return 0;
}

const char *rpma_err_2str(int ret) {
    return ret == RPMA_E_AGAIN ? "a queue has no room" : "a call failed";
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
