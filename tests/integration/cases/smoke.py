# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The main work of the library, each step once; every change should pass these cases."""

from harness import lab
from harness.case import PORT, case, connect, connected, disconnect, listen, share_region
from harness.side import ALWAYS, RECV, expect

LEN = 4096
AROUND = 0x5a


def is_prefix(received, sent, what):
    """The transport may add zeros to private data."""
    expect(received[:len(sent)], sent, what)
    expect(set(received[len(sent):]) <= {"0"}, True, what + ", padding")


@case("smoke", "connect, private data both ways, the {first} disconnects",
      [{"first": "client"}, {"first": "server"}])
def private_data(test, first):
    server, client = test.peers()
    listen(server)
    client("req-new", addr=server.address, port=PORT)
    expect(client("peer-addr"), {"addr": server.address, "port": PORT}, "address of the server")
    client("connect", pdata="00112233")
    is_prefix(server("next-req")["pdata"], "00112233", "data of the request")
    expect(server("peer-addr")["addr"], client.address, "address of who asks")
    server("connect", pdata="8899aabbcc")
    client.event("ESTABLISHED")
    server.event("ESTABLISHED")
    is_prefix(server("pdata")["pdata"], "00112233", "data at the server")
    is_prefix(client("pdata")["pdata"], "8899aabbcc", "data at the client")
    ordered = (client, server) if first == "client" else (server, client)
    disconnect(*ordered)
    for side in ordered:
        side("conn-delete")


@case("smoke", "read")
def read(test):
    server, client = connected(test)
    server("fill", off=512, len=LEN, seed=1)
    client("set", len=3 * LEN, byte=AROUND)
    client("read", mr=0, off=LEN, rmr=0, roff=512, len=LEN, ctx=77)
    expect(client.completion(opcode="READ").ctx, 77, "op_context")
    client("check", off=LEN, len=LEN, seed=1)
    client("check-set", off=0, len=LEN, byte=AROUND)
    client("check-set", off=2 * LEN, len=LEN, byte=AROUND)
    disconnect(client, server)


@case("smoke", "write")
def write(test):
    server, client = connected(test)
    server("set", len=3 * LEN, byte=AROUND)
    client("fill", off=128, len=LEN, seed=2)
    client("write", mr=0, off=128, rmr=0, roff=LEN, len=LEN, ctx=78)
    expect(client.completion(opcode="WRITE").ctx, 78, "op_context")
    server("check", off=LEN, len=LEN, seed=2)
    server("check-set", off=0, len=LEN, byte=AROUND)
    server("check-set", off=2 * LEN, len=LEN, byte=AROUND)
    disconnect(client, server)


@case("smoke", "write with immediate data", needs=(lab.IMMEDIATE_DATA,))
def write_with_imm(test):
    server, client = connected(test)
    server("recv", ctx=5)
    client("fill", len=LEN, seed=3)
    client("write-imm", mr=0, rmr=0, roff=LEN, len=LEN, imm=0xdeadbeef, ctx=79)
    expect(client.completion(opcode="WRITE").ctx, 79, "op_context")
    arrived = server.completion(opcode="RECV_WITH_IMM")
    expect((arrived.ctx, arrived.imm, arrived.len), (5, 0xdeadbeef, LEN), "receive")
    expect(arrived.qp, int(server("qp")["qp"]), "queue pair of the receive")
    server("check", off=LEN, len=LEN, seed=3)
    disconnect(client, server)


def flush(test, persistent, file=None):
    """The writes have no completion of their own; the flush's completion reports the data."""
    server, client = test.peers()
    share_region(server, client, file=file)
    listen(server)
    connect(server, client)
    if persistent:
        client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    server("set", len=LEN, byte=AROUND)
    client("fill", len=LEN, seed=4)
    client("write", mr=0, rmr=0, len=LEN, flags=1)
    client("flush", rmr=0, len=LEN, persistent=int(persistent), flags=ALWAYS, ctx=80)
    expected = "FLUSH" if test.is_native else "READ"
    expect(client.completion(opcode=expected).ctx, 80, "op_context")
    server("check", len=LEN, seed=4)
    disconnect(client, server)


@case("smoke", "flush for visibility")
def flush_visibility(test):
    flush(test, persistent=False)


@case("smoke", "flush for persistence to a file on FS-DAX, read by another process",
      needs=(lab.ON_DEMAND_PAGING,))
def flush_persistent(test):
    file = lab.need(lab.FSDAX, "FS-DAX file system") + "/smoke"
    flush(test, persistent=True, file=file)
    reader = test.side(1, "reader")
    reader("memory", file=file, size=65536)
    reader("check", len=LEN, seed=4)


@case("smoke", "flush for persistence is refused without direct write to PMem")
def flush_refused(test):
    server, client = connected(test)
    client.refuses("RPMA_E_NOSUPP", "flush", rmr=0, len=LEN, persistent=1)
    client("apply-pcfg", desc=server("pcfg", direct=0)["desc"])
    client.refuses("RPMA_E_NOSUPP", "flush", rmr=0, len=LEN, persistent=1)
    client.refuses("ERR_TIMEOUT", "wc", timeout=100)
    disconnect(client, server)


@case("smoke", "atomic write")
def atomic_write(test):
    server, client = connected(test)
    server("set", len=24, byte=AROUND)
    client("atomic", rmr=0, roff=8, bytes="0102030405060708", ctx=81)
    expected = "ATOMIC_WRITE" if test.is_native else "WRITE"
    expect(client.completion(opcode=expected).ctx, 81, "op_context")
    around = "5a" * 8
    expect(server("bytes", len=24)["bytes"], around + "0102030405060708" + around, "memory")
    client.refuses("RPMA_E_INVAL", "atomic", rmr=0, roff=4, bytes="0102030405060708")
    disconnect(client, server)


@case("smoke", "send and receive")
def message(test):
    server, client = connected(test)
    server("recv", mr=0, off=64, len=LEN, ctx=6)
    client("fill", len=100, seed=5)
    client("send", mr=0, len=100, ctx=82)
    expect(client.completion(opcode="SEND").ctx, 82, "op_context")
    arrived = server.completion(opcode="RECV")
    expect((arrived.ctx, arrived.len), (6, 100), "receive")
    server("check", off=64, len=100, seed=5)
    disconnect(server, client)


@case("smoke", "send with immediate data", needs=(lab.IMMEDIATE_DATA,))
def message_with_imm(test):
    server, client = connected(test)
    client("recv", mr=0, len=LEN, ctx=7)
    server("fill", len=10, seed=6)
    server("send-imm", mr=0, len=10, imm=0x01020304)
    server.completion(opcode="SEND")
    arrived = client.completion(opcode="RECV")
    expect((arrived.ctx, arrived.len, arrived.imm), (7, 10, 0x01020304), "receive")
    client("check", len=10, seed=6)
    disconnect(client, server)


@case("smoke", "receives posted on the requests meet the first messages, the {first} sends first",
      [{"first": "client"}, {"first": "server"}])
def early_receive(test, first):
    server, client = test.peers()
    for side in (server, client):
        side("memory", size=4096)
        side("reg", usage=RECV + 64)
    listen(server)
    client("req-new", addr=server.address, port=PORT)
    client("req-recv", mr=0, off=1024, len=512, ctx=1)
    client("connect")
    server("next-req")
    server("req-recv", mr=0, off=1024, len=512, ctx=2)
    server("connect")
    client.event("ESTABLISHED")
    senders = [(client, 7), (server, 8)]
    for sender, seed in senders if first == "client" else reversed(senders):
        sender("fill", len=512, seed=seed)
        sender("send", mr=0, len=512, flags=1)
    expect(server.completion(opcode="RECV").ctx, 2, "receive at the server")
    server.event("ESTABLISHED")
    expect(client.completion(opcode="RECV").ctx, 1, "receive at the client")
    server("check", off=1024, len=512, seed=7)
    client("check", off=1024, len=512, seed=8)
    disconnect(client, server)
