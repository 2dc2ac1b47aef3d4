// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.cc -- exports: capabilities and regions in private data

#include <cstring>
#include <memory>

#include "base/refuse.hh"
#include "core/config.hh"
#include "core/mr.hh"
#include "wire/packed.hh"

using namespace rpma;

int rpma_conn_private_data_pack(const struct rpma_mr_local *const *mrs, uint32_t nmrs,
                                const struct rpma_peer_cfg *pcfg, const void *bytes,
                                uint32_t len, struct rpma_conn_private_data *pdata) {
    RPMA_REFUSE(pdata == NULL);
    RPMA_REFUSE(pdata->ptr == NULL);
    RPMA_REFUSE(mrs == NULL && nmrs != 0);
    RPMA_REFUSE(bytes == NULL && len != 0);
    for (uint32_t i = 0; i < nmrs; i++)
        RPMA_REFUSE(mrs[i] == NULL);
    const uint64_t size = PACKED_HEADER_SIZE + uint64_t{nmrs} * PACKED_REGION_SIZE +
                          (pcfg != nullptr ? PACKED_CAPABILITIES_SIZE : 0) + len;
    if (pdata->len < size) {
        Call call(__func__);
        RPMA_FAIL(
            call, RPMA_E_INVAL, 0,
            "pdata->len is %u, needed are %llu (regions: %u, %s, bytes of the program: %u): "
            "pack less; with InfiniBand and RoCE, a request carries 56 bytes and a reply 196",
            pdata->len, static_cast<unsigned long long>(size), nmrs,
            pcfg != nullptr ? "a configuration" : "no configuration", len);
        return call.finish();
    }
    auto *out = static_cast<unsigned char *>(pdata->ptr);
    out = put_header(out, nmrs, pcfg != nullptr, len);
    for (uint32_t i = 0; i < nmrs; i++)
        out = put_packed_region(out, mrs[i]->describe(), mrs[i]->native_flush_usage);
    if (pcfg != nullptr) {
        PeerSettings settings = pcfg->read();
        if (settings.served == 0 && nmrs > 0)
            settings.served = mrs[0]->served;
        out = put_capabilities(out, settings.direct_write_to_pmem, settings.served);
    }
    if (len > 0)
        std::memcpy(out, bytes, len);
    pdata->len = static_cast<uint8_t>(size);
    return 0;
}

int rpma_conn_private_data_unpack(const struct rpma_conn_private_data *pdata,
                                  struct rpma_mr_remote **mrs, uint32_t *nmrs,
                                  struct rpma_peer_cfg **pcfg_ptr, const void **bytes,
                                  uint32_t *len) {
    RPMA_REFUSE(pdata == NULL);
    RPMA_REFUSE(mrs != NULL && nmrs == NULL);
    RPMA_REFUSE(bytes != NULL && len == NULL);
    Call call(__func__);
    Unpacked unpacked;
    if (!unpacked.read(call, pdata->ptr, pdata->len))
        return call.finish();
    const uint32_t regions = mrs != nullptr ? unpacked.regions() : 0;
    if (regions > 0 && regions > *nmrs) {
        RPMA_REJECT(call, "*nmrs is %u, the number of regions in the private data is %u", *nmrs,
                    regions);
        return call.finish();
    }
    // Create all objects before the first output is written.
    std::unique_ptr<rpma_mr_remote> created[UINT8_MAX / PACKED_REGION_SIZE];
    for (uint32_t i = 0; i < regions && !call.has_failed(); i++)
        created[i] =
            rpma_mr_remote::create(call, unpacked.region(i), unpacked.native_flush_usage(i));
    std::unique_ptr<rpma_peer_cfg> pcfg;
    if (!call.has_failed() && pcfg_ptr != nullptr && unpacked.has_capabilities())
        pcfg =
            rpma_peer_cfg::create(call, {unpacked.direct_write_to_pmem(), unpacked.served()});
    if (call.has_failed())
        return call.finish();
    for (uint32_t i = 0; i < regions; i++)
        mrs[i] = created[i].release();
    if (nmrs != nullptr)
        *nmrs = unpacked.regions();
    if (pcfg_ptr != nullptr)
        *pcfg_ptr = pcfg.release();
    if (bytes != nullptr)
        *bytes = unpacked.bytes_size() != 0 ? unpacked.bytes() : nullptr;
    if (len != nullptr)
        *len = unpacked.bytes_size();
    return 0;
}
