// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer_cfgs.c -- applies peer configurations that permit persistent flushes or not, and flush
// methods of another server

#include "client.h"
#include "random.h"

#include <string.h>

// rpma_peer_cfg_get_descriptor(3): direct write to PMem, and a device without native operations
enum { WITHOUT_NATIVE = DESCRIPTORS + 1, WITHOUT_NATIVE_DESCRIPTOR = 0xa1 };

static unsigned char descriptors[DESCRIPTORS + 2];
static bool is_direct_write;        // of the server
static enum rpma_flush_mode wanted; // of the connection

void start_peer_cfgs(const void *bytes, bool direct_write, enum rpma_flush_mode mode) {
    memcpy(descriptors, bytes, DESCRIPTORS);
    descriptors[WITHOUT_NATIVE] = direct_write ? WITHOUT_NATIVE_DESCRIPTOR : 0;
    is_direct_write = direct_write;
    wanted = mode;
}

static void apply(unsigned number) {
    enum rpma_flush_mode mode;
    struct rpma_peer_cfg *pcfg;
    bool direct_write;
    CALL(rpma_peer_cfg_from_descriptor(&descriptors[number], 1, &pcfg));
    CALL(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct_write));
    if (direct_write != (is_direct_write && number % 2))
        report_broken("a descriptor has another direct write than its configuration");
    CALL(rpma_conn_apply_remote_peer_cfg(conn, pcfg));
    CALL(rpma_peer_cfg_delete(&pcfg));
    CALL(rpma_conn_get_flush_mode(conn, &mode));
    const bool is_native = !is_emulated && (wanted == RPMA_FLUSH_MODE_NATIVE ||
                                            descriptors[number] != WITHOUT_NATIVE_DESCRIPTOR);
    if (mode != (is_native ? RPMA_FLUSH_MODE_NATIVE : RPMA_FLUSH_MODE_EMULATED))
        report_broken("a connection has another flush method than both sides have");
}

void forbid_persistent(void) {
    apply(2 * below(DESCRIPTORS / 2));
}

void permit_persistent(void) {
    apply(2 * below(DESCRIPTORS / 2 + 1) + 1);
}

void change_peer_cfg(void) {
    if (below(2)) {
        forbid_persistent();
        check_refused(targets[0], RPMA_FLUSH_TYPE_PERSISTENT);
    }
    permit_persistent();
}
