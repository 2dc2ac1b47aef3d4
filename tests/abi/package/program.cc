// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// program.cc -- the C++ counterpart of program.c, for librpma.hpp and librpma_coroutine.hpp

#include <librpma.hpp>
#include <librpma_coroutine.hpp>
#include <string_view>

int main() {
    rpma::conn_cfg cfg;
    if (cfg.get_timeout() != RPMA_DEFAULT_TIMEOUT_MS)
        return 1;
    try {
        cfg.set_retry_count(8);
    } catch (const rpma::error &error) {
        return std::string_view(error.what()).starts_with("retry_count is 8") ? 0 : 2;
    }
    return 3;
}
