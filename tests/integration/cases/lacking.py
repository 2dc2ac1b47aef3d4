# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""A provider without a feature: the error code, the log line, and all other operations."""

from harness import lab
from harness.case import PORT, case, connect, connected, disconnect, listen
from harness.network import cables, cut, impaired, mend, stop_delay
from harness.side import ALL_USAGES, RECV, SEND, expect

from .data import post
from .survivors import write_and_check

BLOCK = 4096


def log_line(test, *words):
    """Expects one error line in the log, with the call and the provider's function."""
    words = ("ERROR", *words)
    lines = [line for line in test.stderr().splitlines() if all(word in line for word in words)]
    expect(len(lines), 1, f"lines with {' and '.join(words)}")


def still_works(server, client):
    """A refused operation has no completion, and the connection continues."""
    client.refuses("RPMA_E_NO_COMPLETION", "wc", timeout=0)
    write_and_check(server, client)
    disconnect(client, server)


@case("lacking", "immediate data, of rpma_send_with_imm, rpma_write_with_imm and a batch: refused with a log line, and "
      "the connection works", lacks=lab.IMMEDIATE_DATA)
def immediate_data(test):
    server, client = connected(test)
    client.refuses("RPMA_E_PROVIDER", "send-imm", mr=0, len=8, imm=1)
    client.refuses("RPMA_E_PROVIDER", "write-imm", mr=0, rmr=0, len=8, imm=1)
    for function in ("rpma_send_with_imm", "rpma_write_with_imm"):
        log_line(test, function, "ibv_post_send")
    client("batch-new", ops=3)
    for number, verb in enumerate(("write", "write-imm", "write")):
        client(verb, batch=0, mr=0, rmr=0, len=8, imm=1, ctx=number)
    for posted in (1, 0):
        expect(post(client), ("RPMA_E_PROVIDER", posted), "post")
    expect(client.completion(opcode="WRITE").ctx, 0, "op_context")
    still_works(server, client)


@case("lacking", "rpma_recv without memory: refused with a log line, and the connection works",
      lacks=lab.EMPTY_RECEIVE)
def empty_receive(test):
    server, client = connected(test)
    server.refuses("RPMA_E_PROVIDER", "recv")
    log_line(test, "rpma_recv", "ibv_post_recv")
    server("recv", mr=0, len=8, ctx=4)
    client("send", len=0)
    client.completion(opcode="SEND")
    found = server.completion(opcode="RECV")
    expect((found.ctx, found.len), (4, 0), "an empty message takes a receive with memory")
    still_works(server, client)


@case("lacking", "FS-DAX memory: rpma_mr_reg refuses it with a log line, but not device DAX and DRAM",
      lacks=lab.ON_DEMAND_PAGING, shows=("mr: FS-DAX without paging",))
def fsdax(test):
    server, client = test.peers()
    path = lab.need(lab.FSDAX, "FS-DAX file system") + "/x"
    server.refuses("RPMA_E_PROVIDER", "reg", mr=0, size=1 << 20, file=path, usage=ALL_USAGES)
    log_line(test, "rpma_mr_reg", "ibv_reg_mr")
    server("reg", mr=1, size=1 << 20, usage=ALL_USAGES)
    path = lab.need(lab.DEVDAX, "device DAX")
    client("remote", rmr=2, desc=server("reg", mr=2, size=4 << 20, file=path, usage=ALL_USAGES)["desc"])
    client("reg", size=BLOCK, usage=ALL_USAGES)
    listen(server)
    connect(server, client)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    client("fill", len=BLOCK, seed=5)
    client("write", mr=0, rmr=2, len=BLOCK, flags=1)
    client("flush", rmr=2, len=BLOCK, persistent=1, ctx=6)
    opcode = "FLUSH" if test.is_native else "READ"
    expect(client.completion(opcode=opcode).ctx, 6, "op_context")
    server("check", mr=2, len=BLOCK, seed=5)
    disconnect(client, server)


@case("lacking", "a message without a receive ends the connection",
      lacks=lab.WAITING_MESSAGES)
def no_receive(test):
    """The sender's own operation completes, because the message has left; the message is lost."""
    server, client = connected(test)
    client("send", mr=0, len=8)
    client.completion(opcode="SEND")
    client.event("CLOSED")
    server.event("CLOSED")


@case("lacking", "a server that sends first loses a connection whose client receives the message with "
      "the reply", lacks=lab.SERVER_FIRST)
def server_first(test):
    """rpma_messages(7): the message overtakes the reply, so TCP delivers both at once."""
    server, client = test.peers()
    _, to_client = cables(test)
    server("reg", size=64, usage=SEND)
    client("reg", size=64, usage=RECV)
    listen(server)
    client("req-new", addr=server.address, port=PORT)
    client("req-recv", mr=0, len=64, ctx=7)
    # The delay begins before the attempt, because siw aborts an attempt without a reply after 10
    # seconds.
    with impaired([to_client], "delay", "2s"):
        client("connect")
        server("next-req")
        server("connect")
        server.event("ESTABLISHED")
        stop_delay(to_client)
        server("send", mr=0, len=8)
        client.event("LOST")
        expect(client.completion("WR_FLUSH_ERR").ctx, 7, "op_context")
        server.event("CLOSED")


@case("lacking", "the 49th connection of a process is refused with a log line; another one works "
      "after one is deleted", lacks=lab.MANY_CONNECTIONS)
def no_room(test):
    client = test.side(2, "client")
    for number in range(48):
        client("req-new", req=number, addr=client.address, port=PORT)
    client.refuses("RPMA_E_PROVIDER", "req-new", req=48, addr=client.address, port=PORT)
    log_line(test, "rpma_conn_req_new", "ibv_create_cq")
    client("req-delete", req=7)
    client("req-new", req=48, addr=client.address, port=PORT)


@case("lacking", "a write after the connection has ended is accepted, and has no completion",
      lacks=lab.LATE_COMPLETIONS)
def written_late(test):
    """The post succeeds nevertheless; only the event reports the end. All objects are released."""
    server, client = connected(test)
    server.kill()
    client.event("CLOSED")
    client("write", mr=0, rmr=0, len=16)
    client("disconnect")
    client("write", mr=0, rmr=0, len=16)
    client.refuses("ERR_TIMEOUT", "wc", timeout=3000)
    client("conn-delete")


@case("lacking", "an unused receive completes when the other side disconnects",
      lacks=lab.LASTING_RECEIVES)
def unused_receive(test):
    server, client = connected(test)
    server("recv", mr=0, len=64, ctx=5)
    client("disconnect")
    expect(server.completion("WR_FLUSH_ERR", timeout=5000).ctx, 5, "op_context")
    server.event("CLOSED")


@case("lacking", "a write posted after a read completes before it", lacks=lab.ORDERED_COMPLETIONS)
def completes_first(test):
    """The reply to the read cannot arrive while the cable is unplugged."""
    cable = cables(test)[1]
    client = connected(test)[1]
    cut(cable)
    client("read", mr=0, rmr=0, len=16, ctx=1)
    client("write", mr=0, rmr=0, len=16, ctx=2)
    expect(client.completion().ctx, 2, "first completion")
    mend(cable)
    expect(client.completion().ctx, 1, "second completion")
