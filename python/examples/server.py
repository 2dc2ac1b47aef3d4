#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Offers 4 KiB of memory, and prints the text that the client has written. usage: server.py ADDRESS PORT"""

import sys

import rpma

USAGE = rpma.MR_USAGE_WRITE_DST | rpma.MR_USAGE_READ_SRC | rpma.MR_USAGE_FLUSH_TYPE_VISIBILITY


def main(address, port):
    memory = bytearray(4096)
    device = rpma.utils_get_ibv_context(address, rpma.UTIL_IBV_CONTEXT_LOCAL)
    with rpma.peer_new(device) as peer, peer.mr_reg(memory, USAGE) as mr, peer.ep_listen(address, port) as ep:
        with ep.next_conn_req().connect(rpma.conn_private_data_pack([mr])) as conn:
            for expected in rpma.CONN_ESTABLISHED, rpma.CONN_CLOSED:
                event = conn.next_event()
                if event != expected:
                    sys.exit(rpma.utils_conn_event_2str(event))
    print(memory.rstrip(b"\0").decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
