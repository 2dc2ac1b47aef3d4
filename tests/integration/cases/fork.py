# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Processes that fork: the operations that continue, and those that a child cannot execute."""

from harness import lab
from harness.case import case, connect, connected, disconnect, listen, share_region
from harness.side import LOCAL_USAGES, ON_ERROR, expect

SIZE = 65536
EACCES = "13"


def write_and_flush(server, client, seed, number=0, persistent=0):
    """Writes and flushes the pattern, then reads it back."""
    client("fill", mr=number, len=SIZE, seed=seed)
    client("write", conn=number, mr=number, rmr=number, len=SIZE, flags=ON_ERROR)
    client("flush", conn=number, rmr=number, len=SIZE, persistent=persistent)
    client.completion(conn=number)
    server("check", mr=number, len=SIZE, seed=seed)
    client("set", mr=number, len=SIZE, byte=0)
    client("read", conn=number, mr=number, rmr=number, len=SIZE)
    client.completion(conn=number, opcode="READ")
    client("check", mr=number, len=SIZE, seed=seed)


@case("fork", "the parent continues while a child runs and after it has exited, memory on {kind}",
      [{"kind": "DRAM"}, {"kind": "FS-DAX"}])
def parent_continues(test, kind):
    """
    If parent and child shared pages, a child that writes to all its memory would change the
    parent's. The kernel copies registered pages, so ibv_fork_init() and RDMAV_FORK_SAFE, which one
    side sets, have no effect.
    """
    file = None
    if kind == "FS-DAX":
        file = lab.need(lab.FSDAX, "FS-DAX file system") + "/fork"
    server, client = test.side(1, "server", environment={"RDMAV_FORK_SAFE": "1"}), test.side(2, "client")
    for side in (server, client):
        if lab.IS_VIRTUAL:
            expect(side("fork-status"), {"fork": "unneeded"}, "ibv_is_fork_initialized()")
    share_region(server, client, SIZE, file=file)
    listen(server)
    connect(server, client)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    children = {side: test.fork(side, f"child of the {side.name}") for side in (server, client)}
    for seed in range(1, 4):
        for parent, child in children.items():
            if file is None or parent is client:  # parent and child share a mapped file
                child("set", len=SIZE, byte=seed)
        write_and_flush(server, client, seed, persistent=int(kind == "FS-DAX"))
    for parent, child in children.items():
        child.quit()
        write_and_flush(server, client, 7)
    disconnect(client, server)


@case("fork", "and exec: the program inherits no descriptor of a device, the parent continues")
def other_program(test):
    server, client = connected(test, SIZE)
    for side in (server, client):
        side("run")
    write_and_flush(server, client, 1)
    disconnect(client, server)


@case("fork", "after the parent's first use: a child may connect, but each operation is refused",
      shows=("send: another process",))
def after_first_use(test):
    """
    librdmacm keeps the device open for the whole process, and the kernel accepts operations only
    from the process that opened the device. A completion that a child polls is missing in the
    parent.
    """
    server, client = connected(test, SIZE)
    child = test.fork(client)
    client("write", mr=0, rmr=0, len=64, ctx=1)
    expect(child.completion(opcode="WRITE", busy=1).ctx, 1, "completion in the child")
    child("forget")
    child("context", addr=child.address)
    child("peer")
    child("reg", size=SIZE, usage=LOCAL_USAGES)
    child("unpack", packed=server("pack")["packed"])
    connect(server, child, number=1)
    for verb, values in (("write", {"rmr": 0}), ("read", {"rmr": 0}), ("send", {})):
        child.refuses("RPMA_E_PROVIDER", verb, errno=EACCES, conn=1, mr=0, len=64, **values)
    disconnect(child, server, 1)
    child("release")
    child.quit()
    write_and_flush(server, client, 1)
    disconnect(client, server)


@case("fork", "an object deleted by a child is deleted in the parent: {verb}",
      [{"verb": "dereg"}, {"verb": "conn-delete"}])
def child_deletes(test, verb):
    server, client = connected(test, SIZE)
    server("set", len=64, byte=0)
    client("set", len=64, byte=1)
    child = test.fork(client)
    child.code(verb)  # either result is valid
    child.quit()
    code = client.code("write", mr=0, rmr=0, len=64)
    if code == "ok":
        client.completion("WR_FLUSH_ERR")
    else:
        expect(code, "RPMA_E_PROVIDER", "write")
    server("check-set", len=64, byte=0)
    client.kill()  # the client cannot release deleted objects
    server.event("CLOSED")
