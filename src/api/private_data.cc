// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.cc -- exports: descriptors in private data

#include "core/private_data.hh"
#include "api/export.hh"

using namespace rpma;

int rpma_conn_private_data_pack(const struct rpma_mr_local *mr,
                                const struct rpma_peer_cfg *pcfg,
                                struct rpma_conn_private_data *pdata) {
    RPMA_REFUSE(pdata == NULL);
    RPMA_REFUSE(pdata->ptr == NULL);
    Call call(__func__);
    const std::size_t size = packed_size(mr, pcfg);
    if (pdata->len < size) {
        RPMA_FAIL(call, RPMA_E_INVAL, 0,
                  "pdata->len is too small: %u bytes, the descriptors take %zu", pdata->len,
                  size);
        return call.finish();
    }
    pack(mr, pcfg, static_cast<unsigned char *>(pdata->ptr));
    pdata->len = static_cast<uint8_t>(size);
    return 0;
}

int rpma_conn_private_data_unpack(const struct rpma_conn_private_data *pdata,
                                  struct rpma_mr_remote **mr_ptr,
                                  struct rpma_peer_cfg **pcfg_ptr,
                                  struct rpma_conn_private_data *rest) {
    RPMA_REFUSE(pdata == NULL);
    Call call(__func__);
    Unpacked found;
    if (!unpack(call, *pdata, &found))
        return call.finish();
    std::unique_ptr<rpma_mr_remote> mr;
    std::unique_ptr<rpma_peer_cfg> pcfg;
    if (mr_ptr != nullptr && found.mr != nullptr)
        mr = rpma_mr_remote::from_descriptor(call, found.mr);
    if (!call.failed() && pcfg_ptr != nullptr && found.pcfg != nullptr)
        pcfg = rpma_peer_cfg::from_descriptor(call, found.pcfg);
    if (call.failed())
        return call.finish();
    if (mr_ptr != nullptr)
        *mr_ptr = mr.release();
    if (pcfg_ptr != nullptr)
        *pcfg_ptr = pcfg.release();
    if (rest != nullptr)
        *rest = found.rest;
    return 0;
}
