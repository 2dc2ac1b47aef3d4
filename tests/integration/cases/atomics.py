# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Remote atomics: results, counters and locks of many clients, and the atomics that a side advertises."""

import struct

from harness import lab
from harness.case import case, connect, listen, together
from harness.side import ALL_USAGES, ATOMIC, LOCAL_USAGES, READ_SRC, expect

from .data import METHODS, PATIENT, perform
from .lacking import still_works, log_line

CLIENTS, TIMES, EACH = 4, 10, 8
SIZE = 65536
CAPABILITIES_AT = 6 + 21  # offset of the capabilities in the packed data of one region
NEEDS, BUILDS = (lab.REMOTE_ATOMICS,), ("native",)


def word(side, off=0):
    return int.from_bytes(bytes.fromhex(side("bytes", mr=0, off=off, len=8)["bytes"]), "little")


def operand(number):
    return (number % (1 << 64)).to_bytes(8, "little").hex()


def server_of(test, usage=ALL_USAGES | ATOMIC):
    """Starts a listening server. Returns it and the packed data of its region, which is all zeros."""
    server = test.side(1, "server")
    server("reg", size=SIZE, usage=usage)
    listen(server)
    return server, server("pack")["packed"]


def client_of(test, server, packed, number=0):
    client = test.side(2, f"client{number}")
    client("reg", size=SIZE, usage=LOCAL_USAGES)
    client("cfg", **PATIENT)
    connect(server, client, number, client_cfg=0)
    client("unpack", conn=number, packed=packed)
    return client


def forged(packed):
    data = bytearray.fromhex(packed)
    data[CAPABILITIES_AT] |= 1
    return data.hex()


@case("atomics", "both types change the word and return the old value, by each function", builds=BUILDS, needs=NEEDS,
      fabric=True)
def results(test):
    server, packed = server_of(test)
    client = client_of(test, server, packed)
    for method in METHODS:
        for verb, value, compare, before, after in (
                ("add", 5, 0, 0, 5), ("add", -6, 0, 5, -1), ("add", 3, 0, -1, 2),
                ("swap", 9, 1, 2, 2), ("swap", -9, 2, 2, -9), ("swap", 0, -9, -9, 0)):
            perform(client, method, verb, mr=0, off=64, len=8, rmr=0, roff=16, bytes=operand(value),
                    compare=operand(compare), ctx=7)
            opcode = "FETCH_ADD" if verb == "add" else "COMP_SWAP"
            expect(client.completion(opcode=opcode).ctx, 7, "op_context")
            expect(word(client, 64), before % (1 << 64), f"result of {verb} by {method}")
            expect(word(server, 16), after % (1 << 64), f"the word after {verb} by {method}")
    expect((word(server, 8), word(server, 24)), (0, 0), "the words next to it")
    still_works(server, client)


@case("atomics", f"{CLIENTS} clients count at once: no addition is lost, no result is returned twice", builds=BUILDS,
      needs=NEEDS, fabric=True)
def count(test):
    server, packed = server_of(test)
    clients = dict(enumerate(client_of(test, server, packed, number) for number in range(CLIENTS)))
    for number, client in clients.items():
        client("batch-new", conn=number, ops=EACH)
        for place in range(EACH):
            client("add", batch=0, mr=0, off=8 * place, len=8, rmr=0, roff=8, bytes=operand(1))
    results = []
    for _ in range(TIMES):
        together(clients.values(), "batch-post")
        for number, client in clients.items():
            client.completions(EACH, conn=number)
            own = struct.unpack(f"<{EACH}Q", bytes.fromhex(client("bytes", mr=0, len=8 * EACH)["bytes"]))
            expect(list(own), sorted(own), "results of one client, in the order of posting")
            results += own
    expect(sorted(results), list(range(CLIENTS * TIMES * EACH)), "all results")
    expect(word(server, 8), len(results), "the sum")


@case("atomics", "a region without the usage: refused locally, or by the target if its descriptor is forged",
      builds=BUILDS, needs=NEEDS, shows=("post: atomic not advertised",), fabric=True)
def not_stated(test):
    server, packed = server_of(test, ALL_USAGES)
    client = client_of(test, server, packed)
    client.refuses("RPMA_E_NOSUPP", "add", mr=0, len=8, rmr=0, bytes=operand(1))
    client("remote-delete", rmr=0)
    client("unpack", packed=forged(packed))
    client("add", mr=0, len=8, rmr=0, bytes=operand(1))
    client.completion("REM_ACCESS_ERR")
    expect(word(server), 0, "the word")


@case("lacking", "remote atomics: rpma_mr_reg and rpma_post refuse them and log the reason",
      lacks=lab.REMOTE_ATOMICS, shows=("mr: no atomics",))
def lacking(test):
    server, packed = server_of(test, ALL_USAGES)
    server.refuses("RPMA_E_NOSUPP", "reg", mr=1, size=SIZE, usage=READ_SRC | ATOMIC)
    client = client_of(test, server, forged(packed))
    client.refuses("RPMA_E_NOSUPP", "add", mr=0, len=8, rmr=0, bytes=operand(1))
    log_line(test, "rpma_mr_reg", "has no remote atomics")
    log_line(test, "rpma_post", "has no remote atomics")
    still_works(server, client)
