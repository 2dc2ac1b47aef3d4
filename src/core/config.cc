// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// config.cc -- configurations of remote peers

#include "core/config.hh"

#include "wire/descriptor.hh"

using namespace rpma;

namespace {

const char *served_text(uint8_t served, uint8_t what) {
    return served == 0 ? "not stated" : (served & what) != 0 ? "yes" : "no";
}

} // namespace

std::unique_ptr<rpma_peer_cfg> rpma_peer_cfg::create(Call &call, bool direct_write,
                                                     uint8_t served_natively) {
    auto pcfg = make<rpma_peer_cfg>(call);
    if (pcfg) {
        pcfg->direct_write_to_pmem = direct_write;
        pcfg->served = served_natively;
        RPMA_LOG(RPMA_LOG_LEVEL_INFO, call.function(),
                 "direct write to PMem: %s, native flush: %s, native atomic write: %s",
                 direct_write ? "yes" : "no", served_text(served_natively, SERVES_FLUSH),
                 served_text(served_natively, SERVES_ATOMIC_WRITE));
    }
    return pcfg;
}
