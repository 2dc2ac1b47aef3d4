// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// root.cc -- the root directory and librpma's capabilities, for the installed program

#include "info.hh"

std::string kernel_root() {
    return "";
}

rpma::peer_cfg::served served_by(const rpma::peer &peer) {
    return rpma::peer_cfg().set_served_by(peer).get_served().value_or(rpma::peer_cfg::served{});
}
