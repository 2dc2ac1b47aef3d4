// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer_cfg.cc -- the descriptor of a peer configuration

#include "core/config.hh"
#include "core/descriptor.hh"

using namespace rpma;

void rpma_peer_cfg::describe(unsigned char *descriptor) const {
    *descriptor = put_peer_cfg(direct_write_to_pmem, served);
}

namespace {

const char *served_text(uint8_t served, uint8_t what) {
    return served == 0 ? "not stated" : (served & what) != 0 ? "yes" : "no";
}

} // namespace

std::unique_ptr<rpma_peer_cfg> rpma_peer_cfg::from_descriptor(Call &call,
                                                              const unsigned char *descriptor) {
    auto pcfg = make<rpma_peer_cfg>(call);
    if (pcfg) {
        const uint8_t served = served_of(*descriptor);
        pcfg->direct_write_to_pmem = *descriptor != 0;
        pcfg->served = served;
        RPMA_LOG(RPMA_LOG_LEVEL_INFO, call.function(),
                 "direct write to PMem: %s, native flush: %s, native atomic write: %s",
                 *descriptor != 0 ? "yes" : "no", served_text(served, SERVES_FLUSH),
                 served_text(served, SERVES_ATOMIC_WRITE));
    }
    return pcfg;
}
