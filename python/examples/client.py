#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Writes a text into the server's memory, and waits until it is visible. usage: client.py ADDRESS PORT TEXT"""

import sys

import rpma


def write_visibly(conn, mr, length):
    (target,), _, _ = rpma.conn_private_data_unpack(
        conn.get_private_data())
    with target:
        conn.write(target, 0, mr, 0, length, rpma.F_COMPLETION_ON_ERROR)
        conn.flush(target, 0, length, rpma.FLUSH_TYPE_VISIBILITY,
                   rpma.F_COMPLETION_ALWAYS)
    cq = conn.get_cq()
    cq.wait()
    if cq.get_wc()[0].status != rpma.IBV_WC_SUCCESS:
        sys.exit("the write failed")


def main(address, port, text):
    source = bytearray(text.encode())
    device = rpma.utils_get_ibv_context(address, rpma.UTIL_IBV_CONTEXT_REMOTE)
    with rpma.peer_new(device) as peer, peer.mr_reg(source, rpma.MR_USAGE_WRITE_SRC) as mr:
        with peer.conn_req_new(address, port).connect() as conn:
            event = conn.next_event()
            if event != rpma.CONN_ESTABLISHED:
                sys.exit(rpma.utils_conn_event_2str(event))
            write_visibly(conn, mr, len(source))
            conn.disconnect()
            conn.next_event()


if __name__ == "__main__":
    main(*sys.argv[1:])
