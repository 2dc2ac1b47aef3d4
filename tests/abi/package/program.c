// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// program.c -- the smallest program that shows that a package can be linked to and run

#include <librpma.h>
#include <string.h>

int main(void) {
    struct rpma_conn_cfg *cfg = NULL;
    int timeout_ms = 0;
    if (rpma_conn_cfg_new(&cfg) != 0 || rpma_conn_cfg_get_timeout(cfg, &timeout_ms) != 0 ||
        timeout_ms != RPMA_DEFAULT_TIMEOUT_MS || rpma_conn_cfg_delete(&cfg) != 0)
        return 1;
    // Links all libraries that only endpoints or completion queues need.
    return rpma_ep_listen(NULL, NULL, NULL, NULL) != RPMA_E_INVAL ||
           rpma_cq_get_wc(NULL, 1, NULL, NULL) != RPMA_E_INVAL ||
           strcmp(rpma_err_2str(0), "Success") != 0;
}
