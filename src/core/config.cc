// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// config.cc -- configurations of remote peers

#include "core/config.hh"

#include "wire/descriptor.hh"

using namespace rpma;

namespace {

const char *served_text(uint8_t served, uint8_t what) {
    return served == 0 ? "not advertised" : (served & what) != 0 ? "yes" : "no";
}

} // namespace

std::unique_ptr<rpma_peer_cfg> rpma_peer_cfg::create(Call &call, const PeerSettings &settings) {
    auto pcfg = make<rpma_peer_cfg>(call, settings);
    if (pcfg)
        RPMA_LOG(RPMA_LOG_LEVEL_INFO, call.function(),
                 "direct write to PMem: %s, native flush: %s, native atomic write: %s",
                 settings.direct_write_to_pmem ? "yes" : "no",
                 served_text(settings.served, SERVES_FLUSH),
                 served_text(settings.served, SERVES_ATOMIC_WRITE));
    return pcfg;
}
