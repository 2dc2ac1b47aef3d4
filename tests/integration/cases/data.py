# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Every data operation: with each posting method, each form of local memory and each kind of
completion queue, alone and in lists. All bytes are compared, including those that must stay
unchanged.
"""

from harness import lab
from harness.case import case, connect, disconnect, listen, nonempty, share_region
from harness.side import ALWAYS, LOCAL_USAGES, expect

FILLER = 0xa7
GUARD = 4096
REGIONS = 4  # of the client
SIZE = 1 << 19
INLINE, INLINE_SIZE = 8, 64  # soft-iWARP supports 80 bytes
QUEUE = 20
# Milliseconds. Replies can be slow on a busy machine, and soft-RoCE repeats native operations, and
# sometimes atomics, incorrectly.
PATIENT = {"ack": 60000}
# The operation's own function, rpma_post(), rpma_batch_add().
METHODS = ("call", "post", "batch")


def perform(side, method, verb, **values):
    """Posts one operation."""
    if method != "batch":
        side(verb, method=method, **values)
        return
    side("batch-new", ops=1)
    side(verb, batch=0, **values)
    expect(side("batch-post")["posted"], "1", "operations posted")
    side("batch-delete")


def post(side, batch=0):
    """
    Posts once. Returns (code, number of operations that the device accepted); with batch=None it
    posts the held operations.
    """
    code, answer = side.execute("post" if batch is None else "batch-post", **nonempty(batch=batch))
    return code, int(answer["posted"])


def send_until_full(side, **values):
    """Sends messages until the queue is full. Returns the number of messages; the contexts begin at 1."""
    count = 0
    while (code := side.code("send", ctx=count + 1, **values)) == "ok":
        count += 1
    expect(code, "RPMA_E_PROVIDER", "post to a full queue")
    return count


# ---- forms of local memory ---------------------------------------------------------------

# Lengths below, at and above the size of a packet and of a page, in an irregular order.
LENGTHS = (1, 4096, 7, 8191, 64, 1024, 5000, 3, 1023, 16384, 2, 512)
# Lengths of the SGEs. None: an SGE without memory; ALL: as many SGEs as the device supports.
ALL = None
NOT_INLINE = ([], [0], [1], [8], [4096], [1 << 18], [1001, None, 3095], [4096, 9], ALL)
FORMS = (*NOT_INLINE, [1], [5, INLINE_SIZE - 5])


class Ranges:
    """Allocates ranges in the memory of a side. The bytes between them must stay unchanged."""

    def __init__(self, side, regions=1):
        self.side = side
        self.allocated = [[] for _ in range(regions)]

    def allocate(self, length, region=0, odd=1):
        """The default is an odd offset, because no alignment is required."""
        previous = sum(self.allocated[region][-1]) if self.allocated[region] else 0
        at = (previous + GUARD) // 8 * 8 + odd
        self.allocated[region].append((at, length))
        return at

    def fill_with_filler(self):
        for region, ranges in enumerate(self.allocated):
            self.side("set", mr=region, len=sum(ranges[-1]) + GUARD if ranges else 0, byte=FILLER)

    def check_filler(self):
        for region, ranges in enumerate(self.allocated):
            end = 0
            for at, length in ranges:
                self.side("check-set", mr=region, off=end, len=at - end, byte=FILLER)
                end = at + length
            self.side("check-set", mr=region, off=end, len=GUARD if ranges else 0, byte=FILLER)


class Transfer:
    """
    An operation or a receive of the client: an SGE list in its memory and one range in the
    server's. Both have the same bytes afterwards; a received message is one byte shorter.
    """

    def __init__(self, verb, form, number, ranges, max_sges):
        self.verb, self.number = verb, number
        self.flags = ALWAYS
        if form >= len(NOT_INLINE) and verb not in ("read", "recv"):
            self.flags |= INLINE
        lengths = FORMS[form]
        if lengths is ALL:
            lengths = [LENGTHS[index % len(LENGTHS)] for index in range(max_sges)]
        local, remote = ranges
        self.sges = [(index % REGIONS, 0 if length is None else local.allocate(length, index % REGIONS), length)
                     for index, length in enumerate(lengths[:max_sges])]
        self.length = sum(sge[2] or 0 for sge in self.sges)
        self.at = remote.allocate(self.length)
        self.received = self.length - int(verb == "recv" and self.length > 1)

    def local(self):
        if not self.sges:
            return {}
        if len(self.sges) == 1:
            return dict(zip(("mr", "off", "len"), self.sges[0]))
        return {"sgl": ",".join("-:0:0" if length is None else f"{region}:{at}:{length}"
                                for region, at, length in self.sges)}

    def remote(self):
        """Without local memory there is no remote range."""
        return {"rmr": 0, "roff": self.at} if self.sges and "send" not in self.verb else {}

    def fill(self, client, server, seed):
        self.each_sge(server if self.verb in ("read", "recv") else client, "fill", seed)

    def check(self, client, server, seed):
        self.each_sge(client if self.verb in ("read", "recv") else server, "check", seed)

    def each_sge(self, side, command, seed):
        """Fills or checks the bytes of the SGEs, in the client's memory or in the server's."""
        done = 0
        for index, (region, at, length) in enumerate(self.sges):
            used = min(length or 0, self.received - done)
            where = {"mr": region, "off": at} if side.name == "client" else {"mr": 0, "off": self.at + done}
            if used:
                side(command, **where, len=used, seed=seed + 100 * self.number + index)
            if command == "check" and side.name == "client" and used < (length or 0):
                side("check-set", mr=region, off=at + used, len=length - used, byte=FILLER)
            done += length or 0

    def as_two_sges(self):
        """The server's range for a message, as two SGEs that are split at a different offset than the client's."""
        third = self.received // 3
        if self.received == 0:
            return {} if not self.sges else {"mr": 0, "off": self.at, "len": 0}
        return {"sgl": f"0:{self.at}:{third},0:{self.at + third}:{self.received - third}"}


# ---- kinds of queues ---------------------------------------------------------------------

# (connection settings, the queue of the receive completions); srq: the size of the shared receive
# queue's CQ.
QUEUES = {
    "one CQ": ({}, "main"),
    "a CQ for receives, on a shared channel": ({"rcq": QUEUE, "shared": 1}, "rcq"),
    "a CQ for receives": ({"rcq": QUEUE}, "rcq"),
    "one CQ, on a shared channel": ({"shared": 1}, "main"),
    "a shared receive queue": ({"srq": 0, "rcq": QUEUE}, "rcq"),
    "a shared receive queue that has a CQ": ({"srq": QUEUE}, "srq"),
    "a shared receive queue, on a shared channel": ({"srq": 0, "shared": 1}, "main"),
}


def with_queues(test, queues):
    """
    Connects with these queues. Returns both sides and the maximum numbers of SGEs: of any
    operation, and of a read.
    """
    settings, _ = QUEUES[queues]
    server, client = test.peers()
    limits = {name: int(value) for name, value in client("device-limits").items()}
    max_sges = min(limits["sge"], limits["srq_sge"] if "srq" in settings else limits["sge"])
    for side in (server, client):
        if "srq" in settings:
            side("srq", rq=QUEUE, rcq=settings["srq"], sge=max_sges)
        side("cfg", sge=max_sges, cq=2 * QUEUE, sq=QUEUE, rq=QUEUE, inline=INLINE_SIZE, **PATIENT,
             **{key: 0 if key == "srq" else value for key, value in settings.items()})
    for number in range(1, REGIONS):
        client("reg", mr=number, size=SIZE, usage=LOCAL_USAGES)
    share_region(server, client, SIZE)
    listen(server)
    connect(server, client, server_cfg=0, client_cfg=0)
    return server, client, max_sges, limits["read_sge"]


class Connection:
    """Executes lists of transfers over a connection."""

    def __init__(self, test, queues):
        self.server, self.client, self.max_sges, self.max_read_sges = with_queues(test, queues)
        settings, self.receives = QUEUES[queues]
        self.recv = "srq-recv" if "srq" in settings else "recv"
        self.is_native = test.is_native

    def list_of(self, number):
        """Uses another form for each verb, depending on the list's number. A flush ends the list."""
        ranges = Ranges(self.client, REGIONS), Ranges(self.server)
        verbs = [verb for verb in ("write", "read", "write-imm", "recv", "send", "send-imm")
                 if not (verb.endswith("imm") and lab.lacks(lab.IMMEDIATE_DATA))]
        transfers = []
        for index, verb in enumerate(verbs):
            form = (number + index) % len(FORMS)
            if form == 0 and verb in ("send", "recv") and lab.lacks(lab.EMPTY_RECEIVE):
                form = 1
            max_sges = min(self.max_sges, self.max_read_sges) if verb == "read" else self.max_sges
            transfers.append(Transfer(verb, form, index, ranges, max_sges))
        return transfers, ranges

    def post(self, method, operations, seed):
        """Posts all operations at once, or each by its own function."""
        how = {"call": {}, "post": {"method": "hold"}, "batch": {"batch": 0}}[method]
        if method != "batch" or seed == 0:
            for verb, values in operations:
                self.client(verb, **values, **how)
        if method != "call":
            expect(post(self.client, 0 if method == "batch" else None), ("ok", len(operations)), "post")

    def run(self, method, number):
        """A batch is filled once and posted twice, with different bytes."""
        transfers, ranges = self.list_of(number)
        flag = ranges[1].allocate(8, odd=0)
        operations = [(one.verb, {"ctx": one.number, "flags": one.flags, "imm": 0x80000001 + one.number,
                                  **one.local(), **one.remote()})
                      for one in transfers if one.verb != "recv"]
        operations += [("atomic", {"rmr": 0, "roff": flag, "bytes": "0102030405060708", "ctx": 50}),
                       ("flush", {"rmr": 0, "roff": flag, "len": 8, "persistent": 0, "ctx": 51})]
        if method == "batch":
            self.client("batch-new", ops=len(operations))
        for seed in (0, 10000) if method == "batch" else (0,):
            for side in ranges:
                side.fill_with_filler()
            for one in transfers:
                one.fill(self.client, self.server, seed)
            receives = self.post_receives(transfers)
            self.post(method, operations, seed)
            for one in transfers:
                if one.verb == "recv":
                    self.server("send", ctx=60, **one.as_two_sges())
            self.check_completions(operations, receives)
            for one in transfers:
                one.check(self.client, self.server, seed)
            expect(self.server("bytes", off=flag, len=8)["bytes"], "0102030405060708", "atomic write")
            for side in ranges:
                side.check_filler()
        if method == "batch":
            self.client("batch-delete")

    def post_receives(self, transfers):
        """Posts the receives. Returns (op_context, opcode, bytes, immediate data) that each side must receive."""
        wanted = {self.server: [], self.client: []}
        for one in transfers:
            imm = 0x80000001 + one.number if one.verb.endswith("imm") else 0
            if one.verb == "recv":
                self.client(self.recv, ctx=70, **one.local())
                wanted[self.client].append((70, "RECV", one.received, 0))
            elif one.verb == "write-imm":
                self.server(self.recv, ctx=one.number)
                wanted[self.server].append((one.number, "RECV_WITH_IMM", one.length, imm))
            elif one.verb in ("send", "send-imm"):
                self.server(self.recv, ctx=one.number, **one.as_two_sges())
                wanted[self.server].append((one.number, "RECV", one.length, imm))
        return wanted

    def check_completions(self, operations, receives):
        """Each operation and each receive completes once, in order, in its queue."""
        opcodes = dict(zip(("atomic", "flush"), ("ATOMIC_WRITE", "FLUSH") if self.is_native else ("WRITE", "READ")))
        sends = {self.client: [(values["ctx"], opcodes.get(verb) or verb.removesuffix("-imm").upper())
                               for verb, values in operations],
                 self.server: [(60, "SEND")] * len(receives[self.client])}
        for side, received in receives.items():
            both = self.receives == "main"
            found = side.completions(len(sends[side]) + len(received) * both)
            if not both:
                found += side.completions(len(received), queue=self.receives)
            expect([one for one in found if one.status != "SUCCESS"], [], f"{side.name}: failures")
            own = [(one.ctx, one.opcode) for one in found if not one.opcode.startswith("RECV")]
            if lab.lacks(lab.ORDERED_COMPLETIONS):
                own, sends[side] = sorted(own), sorted(sends[side])
            expect(own, sends[side], f"{side.name}: completions")
            expect([(one.ctx, one.opcode, one.len, one.imm) for one in found if one.opcode.startswith("RECV")],
                   received, f"{side.name}: receives")
            side.refuses("RPMA_E_NO_COMPLETION", "wc", timeout=0)


def lists_per_case():
    """Together the cases post each verb by each method with each form."""
    return -(-len(FORMS) * len(METHODS) // len(QUEUES))


EVERYTHING = "all operations over {queues}: posted by each function, with all forms of memory"
ROWS = [{"queues": queues, "first": index * lists_per_case()} for index, queues in enumerate(QUEUES)]


@case("smoke", EVERYTHING, ROWS[:1], limit=120)
@case("data", EVERYTHING, ROWS[1:], limit=120, builds=("native",), fabric=True)
def everything(test, queues, first):
    connection = Connection(test, queues)
    server, client = connection.server, connection.client
    for number in range(first, first + lists_per_case()):
        connection.run(METHODS[number % len(METHODS)], number)
    settings, receives = QUEUES[queues]
    if "srq" in settings:
        server.refuses("RPMA_E_PROVIDER", "srq-delete")  # the connection uses it
    if "shared" in settings:
        # A stale wake-up may name the queue of a completion that was already polled; the next one
        # is valid.
        server(connection.recv, mr=0, len=8)
        client("send", mr=0, len=8)
        client.completion()
        woken = server("conn-wait")
        if woken["queue"] != receives:
            woken = server("conn-wait")
        expect((woken["queue"], woken["rcq"]), (receives, str(int(receives == "rcq"))), "wake-up")
        server.completion(opcode="RECV", queue=receives)
    server.refuses(*(("RPMA_E_SHARED_CHANNEL", "cq-wait") if "shared" in settings else
                     ("RPMA_E_NOT_SHARED_CHNL", "conn-wait")))
    disconnect(client, server)
