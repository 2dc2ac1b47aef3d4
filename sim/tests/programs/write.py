# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""With pyverbs, write into the memory of a server, connected by TCP: write.py [ADDRESS of the server]"""

import socket
import sys
import threading

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

PORT = 7400


def connect():
    if len(sys.argv) > 1:
        return socket.create_connection((sys.argv[1], PORT))
    with socket.create_server(("0.0.0.0", PORT)) as listener:
        return listener.accept()[0]


def main():
    peer = connect()
    reader = peer.makefile("rb")
    context = Context(name="rxe0")
    pd, cq = PD(context), CQ(context, 8)
    mr = MR(pd, 8, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
    qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_send_wr=4, max_recv_wr=4)))
    peer.sendall(f"{qp.qp_num},{mr.buf},{mr.rkey},{context.query_gid(1, 1).gid}\n".encode())
    number, address, key, gid = reader.readline().decode().strip().split(",")
    attr = QPAttr(port_num=1)
    attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
    attr.dest_qp_num, attr.path_mtu = int(number), e.IBV_MTU_1024
    attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
    attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 6, 6
    attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=GID(gid), sgid_index=1), is_global=1, port_num=1)
    qp.to_rts(attr)
    peer.sendall(b"r")
    reader.read(1)
    if len(sys.argv) < 2:
        reader.read(1)
        print("written:", mr.read(8, 0).decode())
        return
    mr.write("by python", 8)
    wr = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(mr.buf, 8, mr.lkey)], send_flags=e.IBV_SEND_SIGNALED)
    wr.set_wr_rdma(int(key), int(address))
    done = threading.Event()

    def wait():
        qp.post_send(wr)
        while not cq.poll()[0]:
            pass
        done.set()
    thread = threading.Thread(target=wait)
    thread.start()
    done.wait()
    thread.join()
    peer.sendall(b"d")


main()
