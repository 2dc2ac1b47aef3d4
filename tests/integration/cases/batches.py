# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Batches: all operations in one list, their order, and lists that are posted many times."""

import collections

from harness import lab
from harness.case import case, connect, disconnect, listen, share_region
from harness.side import ALL_USAGES, LOCAL_USAGES, ON_ERROR, expect

PIECE = 4096
AROUND = 0xa7
FLAG = "0102030405060708"


def prepared(test, size=1 << 20, sge=2, sq=100, queues=100, file=None):
    """A connection with room for batches; the client has a second region."""
    server, client = test.peers()
    for side in (server, client):
        side("cfg", sge=sge, sq=sq, rq=queues, cq=3 * queues)
    client("memory", mr=1, size=size)
    client("reg", mr=1, usage=LOCAL_USAGES)
    share_region(server, client, size, file=file)
    listen(server)
    connect(server, client, server_cfg=0, client_cfg=0)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    return server, client


def post(side, batch=0):
    """
    Posts once. Returns (code, number of operations that the device took); batch None posts the held
    operations.
    """
    side.begin(*(("post",) if batch is None else ("batch-post",)),
               **({} if batch is None else {"batch": batch}))
    code, answer = side.take()
    return code, int(answer["posted"])


Row = collections.namedtuple("Row", "verb opcode in_pieces")


class Kinds:
    """
    Every kind of operation, each with its own piece of memory: operation n uses the piece n on
    either side. Reads copy the server's piece to the client's.
    """

    def __init__(self, test):
        native = test.is_native
        whole = (False,)
        kinds = [  # an operation behind the atomic write completes after the reads, on any device
            ("write", "WRITE", (False, True)), ("write-imm", "WRITE", (False, True)),
            ("read", "READ", (False, True)), ("flush", "FLUSH" if native else "READ", whole),
            ("atomic", "ATOMIC_WRITE" if native else "WRITE", whole),
            ("send", "SEND", (False, True)), ("send-imm", "SEND", (False, True)),
        ]
        self.rows = [Row(verb, opcode, in_pieces) for verb, opcode, forms in kinds
                     for in_pieces in forms
                     if not (verb.endswith("-imm") and lab.lacks(lab.IMMEDIATE_DATA))]

    def arguments(self, place):
        """
        The arguments of the command; an operation of two elements divides its piece at an odd
        offset.
        """
        verb, _, in_pieces = self.rows[place]
        at = place * PIECE
        local = {"mr": 0, "off": at, "len": PIECE}
        if in_pieces:
            local = {"sgl": f"0:{at}:1001,1:{at + 1001}:{PIECE - 1001}"}
        if in_pieces and verb == "read" and lab.PROVIDER == "siw":  # reads into one element
            local = {"sgl": f"0:{at}:{PIECE}"}
        remote = {} if verb.startswith("send") else {"rmr": 0, "roff": at}
        if verb == "flush":
            return {**remote, "len": PIECE, "persistent": 0}
        if verb == "atomic":
            return {**remote, "bytes": FLAG}
        return {**local, **remote}

    def prepare(self, server, client, seed):
        """
        Fills the client's pieces, and the server's pieces that are read, each with its own pattern.
        """
        for side, regions in ((server, 1), (client, 2)):
            for number in range(regions):
                side("set", mr=number, len=PIECE * (len(self.rows) + 1), byte=AROUND)
        for place, row in enumerate(self.rows):
            side = server if row.verb == "read" else client
            self.in_parts(side, "fill", place, seed)

    def in_parts(self, side, command, place, seed):
        """
        Fills or checks a piece; of a piece in two parts the client's second one is in region 1.
        """
        at, split = place * PIECE, 1001
        in_two = "," in self.arguments(place).get("sgl", "")
        region = 1 if in_two and side.name == "client" else 0
        side(command, mr=0, off=at, len=split, seed=seed + place)
        side(command, mr=region, off=at + split, len=PIECE - split, seed=seed + 100 + place)

    def receive(self, server):
        """Posts the receives in the order of the operations that need one."""
        for place, (verb, _, _) in enumerate(self.rows):
            if verb.startswith("send"):
                server("recv", mr=0, off=place * PIECE, len=PIECE, ctx=place)
            elif verb.endswith("-imm"):
                server("recv", ctx=place)

    def check(self, server, client, seed):
        for place, (verb, _, _) in enumerate(self.rows):
            at = place * PIECE
            if verb == "atomic":
                expect(server("bytes", off=at, len=8)["bytes"], FLAG, "atomic write")
                server("check-set", off=at + 8, len=PIECE - 8, byte=AROUND)
            elif verb == "flush":
                server("check-set", off=at, len=PIECE, byte=AROUND)
            else:
                self.in_parts(client if verb == "read" else server, "check", place, seed)
        server("check-set", off=len(self.rows) * PIECE, len=PIECE, byte=AROUND)


@case("batches", "every kind of operation in one {array}, posted {times} times",
      [{"array": "batch", "times": 3}, {"array": "array", "times": 3}])
def all_kinds(test, array, times):
    """
    Each operation completes once, in order, with its opcode; the data are compared byte by byte.
    """
    server, client = prepared(test)
    kinds = Kinds(test)

    def add(**way):
        for place, row in enumerate(kinds.rows):
            client(row.verb, ctx=place, imm=1000 + place, **kinds.arguments(place), **way)

    if array == "batch":
        client("batch-new", ops=len(kinds.rows))
        add(batch=0)
        expect(client("batch-size"), {"size": str(len(kinds.rows)), "room": "0"}, "batch")
        client.refuses("RPMA_E_INVAL", "write", batch=0, mr=0, rmr=0, len=8)  # the batch is full
        client.refuses("RPMA_E_NO_COMPLETION", "poll-wc")  # adding touches no device
    for seed in range(times):
        if array == "array":
            add(way="hold")
        kinds.prepare(server, client, 1000 * seed)
        kinds.receive(server)
        expect(post(client, 0 if array == "batch" else None), ("ok", len(kinds.rows)), "post")
        found = client.completions(len(kinds.rows))
        expect([(one.ctx, one.opcode) for one in found],
               [(place, row.opcode) for place, row in enumerate(kinds.rows)], "completions")
        wanted = [(place, 1000 + place if row.verb.endswith("imm") else 0)
                  for place, row in enumerate(kinds.rows) if "send" in row.verb or "imm" in row.verb]
        received = server.completions(len(wanted))
        expect([(one.ctx, one.imm) for one in received], wanted, "receives")
        kinds.check(server, client, 1000 * seed)
    for side in (server, client):
        side.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    disconnect(client, server)


@case("batches", "an operation is replaced: the others stay, and the list is posted anew")
def replaced(test):
    """rpma_batch_set() puts a write, a flush (native in one build) and a write again in a place."""
    server, client = prepared(test)
    flush = "FLUSH" if test.is_native else "READ"
    server("set", len=4 * PIECE, byte=AROUND)
    client("batch-new", ops=2)
    for place in (0, 1):
        client("fill", off=place * PIECE, len=PIECE, seed=place)
        client("write", batch=0, mr=0, off=place * PIECE, rmr=0, roff=place * PIECE, len=PIECE,
               ctx=place)
    steps = (("write", {"mr": 0, "roff": 2 * PIECE}, "WRITE"),
             ("flush", {"roff": 0, "persistent": 0}, flush),
             ("write", {"mr": 0, "roff": 3 * PIECE}, "WRITE"))
    for number, (verb, values, opcode) in enumerate(steps, 5):
        expect(post(client), ("ok", 2), "post")
        client.completions(2)
        client(verb, batch=0, index=0, rmr=0, len=PIECE, ctx=number, **values)
        client.refuses("RPMA_E_INVAL", "write", batch=0, index=0, mr=0, rmr=0, len=8, flags=4)
        client.refuses("RPMA_E_INVAL", "write", batch=0, index=2, mr=0, rmr=0, len=8)
        expect(post(client), ("ok", 2), "post")
        expect(sorted((one.ctx, one.opcode) for one in client.completions(2)),
               [(1, "WRITE"), (number, opcode)], "completions")
    client("flush", rmr=0, len=8, persistent=0)
    client.completion()
    for place, seed in enumerate((0, 1, 0, 0)):
        server("check", off=place * PIECE, len=PIECE, seed=seed)
    disconnect(client, server)


@case("batches", "write, flush, atomic write, flush: persistence on device DAX")
def persistence(test):
    server, client = prepared(test, size=4 << 20, file=lab.need(lab.DEVDAX, "device DAX"))
    server("set", len=2 * PIECE, byte=0)
    client("fill", len=PIECE, seed=1)
    client("batch-new", ops=4)
    client("write", batch=0, mr=0, rmr=0, len=PIECE, flags=ON_ERROR)
    client("flush", batch=0, rmr=0, len=PIECE, persistent=1, flags=ON_ERROR)
    client("atomic", batch=0, rmr=0, roff=PIECE, bytes=FLAG, flags=ON_ERROR)
    client("flush", batch=0, rmr=0, roff=PIECE, len=8, persistent=1, ctx=5)
    expect(client("batch-post")["posted"], "4", "operations posted")
    opcode = "FLUSH" if test.is_native else "READ"
    expect(client.completion(opcode=opcode).ctx, 5, "op_context")
    server("check", len=PIECE, seed=1)
    expect(server("bytes", off=PIECE, len=8)["bytes"], FLAG, "atomic write")
    disconnect(client, server)


@case("batches", "posted {versions} times, {length} bytes that change in between: who sees the "
      "flag of the atomic write sees the data", limit=120,
      table=[{"versions": 1000, "length": 5000}, {"versions": 10, "length": 1 << 20}])
def versions_follow(test, versions, length):
    """The server only polls memory, checks every version, and resets the flag."""
    server, client = prepared(test, size=2 << 20)
    first = length // 3 + 1
    client("batch-new", ops=4)
    mine = f"0:64:{first},1:8:{length - first}"
    client("write", batch=0, sgl=mine, rmr=0, roff=64, flags=ON_ERROR)
    client("flush", batch=0, rmr=0, roff=64, len=length, persistent=0, flags=ON_ERROR)
    client("atomic", batch=0, rmr=0, roff=0, bytes=FLAG, flags=ON_ERROR)
    client("flush", batch=0, rmr=0, roff=0, len=8, persistent=0)
    server.begin("follow", mr=0, off=0, bytes=FLAG, versions=versions,
                 sgl=f"0:64:{first},0:{64 + first}:{length - first}")
    client.begin("publish", batch=0, sgl=mine, mr=0, off=0, versions=versions, ops=4)
    expect(server.end(timeout=600)["versions"], str(versions), "versions checked")
    expect(client.end()["versions"], str(versions), "versions posted")
    for side in (server, client):
        side.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    disconnect(client, server)


@case("batches", "more is added between two posts, and a batch is emptied")
def added_later(test):
    server, client = prepared(test)
    server("set", len=64, byte=0)
    client("batch-new", ops=3)
    expect(client("batch-post")["posted"], "0", "operations of an empty batch")
    for place in range(3):
        client("fill", off=8 * place, len=8, seed=place)
        client("write", batch=0, mr=0, off=8 * place, rmr=0, roff=8 * place, len=8, ctx=place)
        expect(client("batch-post")["posted"], str(place + 1), "operations posted")
        found = client.completions(place + 1)
        expect([one.ctx for one in found], list(range(place + 1)), "completions")
    client("flush", rmr=0, len=8, persistent=0)
    client.completion()
    for place in range(3):
        server("check", off=8 * place, len=8, seed=place)
    client("batch-reset")
    expect(client("batch-post")["posted"], "0", "operations of an emptied batch")
    client("write", batch=0, mr=0, rmr=0, roff=32, len=8, ctx=9)
    expect(client("batch-post")["posted"], "1", "operations posted")
    expect(client.completion().ctx, 9, "op_context")
    client.refuses("RPMA_E_INVAL", "batch-new", batch=1, ops=0)
    client.refuses("RPMA_E_INVAL", "atomic", batch=0, rmr=0, roff=4, bytes=FLAG)
    client.refuses("RPMA_E_INVAL", "write", batch=0, sgl="0:0:1,0:0:1,0:0:1", rmr=0)
    expect(client("batch-post")["posted"], "1", "a refused operation leaves it as it was")
    client.completion()
    disconnect(client, server)


@case("batches", "two threads with a batch each on one connection, {rounds} rounds",
      [{"rounds": 200}])
def two_threads(test, rounds):
    """Each round's data are read back; each round's message arrives once, in order."""
    threads, length, share, message = 2, 3000, 8192, 16
    server, client = prepared(test, queues=threads * rounds)
    server("memory", mr=1, size=threads * rounds * message)
    server("reg", mr=1, usage=ALL_USAGES)
    server("recv", mr=1, len=message, count=threads * rounds)
    for number in range(threads):
        client("batch-new", batch=number, ops=6)
        at = {"batch": number, "rmr": 0, "roff": number * share, "flags": ON_ERROR}
        client("write", sgl=f"{number}:0:1000,{number}:1000:{length - 1000}", **at)
        if number == 0:  # this thread's list has native operations, the other one's has none
            client("flush", **at, len=length, persistent=0)
            client("atomic", **{**at, "roff": number * share + 4096}, bytes=FLAG)
        client("send", batch=number, mr=number, off=2 * length, len=message, flags=ON_ERROR)
        client("read", **{**at, "flags": 3}, mr=number, off=length, len=length, ctx=number)
    done = client("post-in-threads", threads=threads, len=length, rounds=rounds)
    for number in range(threads):
        expect((done[f"posted{number}"], done[f"done{number}"]), (str(rounds), str(rounds)),
               f"thread {number}: posts and completions")
    heard = {number: [] for number in range(threads)}
    for start in range(0, threads * rounds, 40):
        server.completions(40)
    for place in range(threads * rounds):
        raw = bytes.fromhex(server("bytes", mr=1, off=place * message, len=message)["bytes"])
        heard[int.from_bytes(raw[:8], "little")].append(int.from_bytes(raw[8:], "little"))
    for number, rounds_heard in heard.items():
        expect(rounds_heard, list(range(rounds)), f"messages of thread {number}")
    for side in (server, client):
        side.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    disconnect(client, server)
