# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The commands of one side of an integration test, except those of many connections.

Each object has a number, which is 0 unless the command has another one.
"""

import contextlib
import ctypes
import mmap
import os
import random
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import time

import rpma

TIMEOUT_MS = 60000  # for resolving an address or waiting, on a busy machine
# In the order of deletion that the manual requires. Lists of a fixed length keep the heap of malloc() as it is.
OBJECTS = {"batch": 8, "conn": 10240, "req": 10240, "ep": 1, "cfg": 8, "srq": 8, "shared_cq": 8, "mr": 72, "rmr": 72, "peer": 1}
objects = {kind: [None] * count for kind, count in OBJECTS.items()}
memory = [None] * OBJECTS["mr"]
reply = {}  # the words of the reply to the running command
COMMANDS = {}
libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """A command failed for a reason other than an error code of the library."""

    def __init__(self, name, **words):
        super().__init__(name)
        self.name = name
        reply.update(words)


class Args(dict):
    """The words of a command."""

    def __init__(self, line):
        self.verb, *words = line.split()
        super().__init__(word.split("=", 1) for word in words)

    def number(self, key, default=None):
        return int(self[key]) if default is None or key in self else default

    def bytes(self, key):
        return bytes.fromhex(self.get(key, ""))

    def object(self, kind, key=None):
        found = objects[kind][self.number(key or kind, 0)]
        if found is None:
            raise LookupError(f"there is no such {kind}")
        return found

    def set(self, kind, handle):
        objects[kind][self.number(kind, 0)] = handle

    def range(self, number=None, offset=None, length=None):
        """A part of the memory of region mr=, from off=, of len= bytes."""
        area = memory[self.number("mr", 0) if number is None else number]
        offset = self.number("off", 0) if offset is None else offset
        length = self.number("len") if length is None else length
        if offset + length > len(area):
            raise IndexError("outside the memory")
        return area[offset:offset + length]


def command(*verbs):
    def register(function):
        COMMANDS.update(dict.fromkeys(verbs, function))
        return function
    return register


def call(verb, kind, method, *keys, result=None):
    """A command that calls a method of an object with the words of these keys."""
    def function(args):
        found = getattr(args.object(kind), method)(*(args.number(key) for key in keys))
        if result:
            reply[result] = found
    COMMANDS[verb] = function


def milliseconds():
    return time.monotonic_ns() // 1000000


def wait_readable(descriptor, timeout):
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(timeout):
        raise Failure("ERR_TIMEOUT")


# ---- devices, peers, configurations ---------------------------------------------------------

SETTINGS = {"cq": "cq_size", "rcq": "rcq_size", "sq": "sq_size", "rq": "rq_size", "sge": "max_sge", "retry": "retry_count",
            "rnr": "rnr_retry_count", "inline": "inline_size", "timeout": "timeout", "ack": "ack_timeout",
            "rnr-timer": "rnr_timer", "source-port": "source_port", "tos": "tos", "shared": "compl_channel"}


class Device:
    context = name = None


def configured(cfg, args, settings):
    for key, setting in settings.items():
        if key in args:
            getattr(cfg, f"set_{setting}")(args.number(key))
    return cfg


@command("context")
def context(args):
    remote = args.number("remote", 0)
    Device.context = rpma.utils_get_ibv_context(args["addr"],
                                                rpma.UTIL_IBV_CONTEXT_REMOTE if remote else rpma.UTIL_IBV_CONTEXT_LOCAL)
    verbs = ctypes.CDLL("libibverbs.so.1")
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    device = ctypes.cast(Device.context, ctypes.POINTER(ctypes.c_void_p))[0]  # the first member of struct ibv_context
    Device.name = reply["device"] = verbs.ibv_get_device_name(ctypes.c_void_p(device)).decode()


@command("device-limits")
def device_limits(_):
    text = subprocess.run(["ibv_devinfo", "-v", "-d", Device.name], capture_output=True, text=True, check=True).stdout
    for key, name in (("sge", "max_sge"), ("read_sge", "max_sge_rd"), ("srq_sge", "max_srq_sge"), ("vectors", "num_comp_vectors")):
        reply[key] = re.search(rf"^\s*{name}:\s*(\d+)$", text, flags=re.M)[1]


@command("peer")
def peer(args):
    args.set("peer", rpma.peer_new(Device.context))


@command("cfg")
def configure(args):
    cfg = rpma.conn_cfg_new()
    args.set("cfg", cfg)
    cfg.set_timeout(TIMEOUT_MS)
    configured(cfg, args, SETTINGS)
    if "source" in args:
        cfg.set_source_addr(args["source"])
    if "shared_cq" in args:
        cfg.set_cq(args.object("shared_cq"))
    if "shared_rcq" in args:
        cfg.set_rcq(args.object("shared_cq", "shared_rcq"))
    if "srq" in args:
        cfg.set_srq(args.object("srq"))


@command("srq")
def new_srq(args):
    with rpma.srq_cfg_new() as cfg:
        configured(cfg, args, {"rq": "rq_size", "rcq": "rcq_size", "sge": "max_sge"})
        args.set("srq", rpma.srq_new(objects["peer"][0], cfg))


@command("cq-new")
def new_cq(args):
    with rpma.cq_cfg_new() as cfg:
        configured(cfg, args, {"size": "size", "vector": "comp_vector"})
        args.set("shared_cq", rpma.cq_new(objects["peer"][0], cfg))


@command("pcfg")
def peer_descriptor(args):
    """The descriptor of a configuration; served=1 adds the capabilities of the peer's device."""
    with rpma.peer_cfg_new() as pcfg:
        pcfg.set_direct_write_to_pmem(args.number("direct"))
        if args.number("served", 0):
            pcfg.set_served_by(objects["peer"][0])
        reply["desc"] = pcfg.get_descriptor()


@command("apply-pcfg")
def apply_descriptor(args):
    with rpma.peer_cfg_from_descriptor(args.bytes("desc")) as pcfg:
        args.object("conn").apply_remote_peer_cfg(pcfg)


@command("pack")
def pack(args):
    reply["packed"] = rpma.conn_private_data_pack([args.object("mr")])


@command("unpack")
def unpack(args):
    """Unpacks a region from packed=, by default from the connection's private data."""
    regions, *_ = rpma.conn_private_data_unpack(args.bytes("packed") or args.object("conn").get_private_data())
    args.set("rmr", regions[0])


def delete(kind, number):
    handle = objects[kind][number]
    if handle is not None:
        try:
            handle.delete()
        finally:
            if handle.pointer is None:
                objects[kind][number] = None


def deleting(verb, kind):
    COMMANDS[verb] = lambda args: delete(kind, args.number(kind, 0))


def first_failure(actions):
    """Runs all actions; raises the first failure afterwards."""
    first = None
    for action in actions:
        try:
            action()
        except rpma.Error as error:
            first = first or error
    if first:
        raise first


@command("release")
def release(_):
    """Deletes all objects except the context."""
    Watched.forget()
    first_failure((lambda kind=kind, number=number: delete(kind, number))
                  for kind, handles in objects.items() for number, handle in enumerate(handles) if handle is not None)


call("srq-limit", "srq", "set_limit", "limit")
for each, of in {"peer-delete": "peer", "srq-delete": "srq", "cq-delete": "shared_cq", "ep-shutdown": "ep", "conn-delete": "conn",
                 "dereg": "mr", "remote-delete": "rmr", "batch-delete": "batch"}.items():
    deleting(each, of)

# ---- endpoints, requests, connections -------------------------------------------------------

EVENTS = ("ESTABLISHED", "CLOSED", "LOST", "REJECTED", "UNREACHABLE")
default_cfg = []


def cfg_of(args):
    """cfg=, or the default with a longer timeout: on a busy machine, resolving needs more than a second."""
    if "cfg" in args:
        return args.object("cfg")
    if not default_cfg:
        default_cfg.append(rpma.conn_cfg_new())
        default_cfg[0].set_timeout(TIMEOUT_MS)
    return default_cfg[0]


@command("listen")
def listen(args):
    if "backlog" not in args:
        args.set("ep", rpma.ep_listen(objects["peer"][0], args["addr"], args["port"]))
        return
    with rpma.ep_cfg_new() as cfg:
        cfg.set_backlog(args.number("backlog"))
        args.set("ep", rpma.ep_listen_with(objects["peer"][0], args["addr"], args["port"], cfg))


@command("next-req", "next-incoming")
def next_requests(args):
    """Receives count= requests; the reply has the number that arrived. With timeout=0 the call of the library blocks."""
    first, timeout = args.number("req", 0), args.number("timeout", TIMEOUT_MS)
    ep = args.object("ep")
    reply["taken"] = 0
    while reply["taken"] < args.number("count", 1):
        if timeout:
            wait_readable(ep.get_fd(), timeout)
        with contextlib.suppress(rpma.WouldBlock) if timeout else contextlib.nullcontext():
            req = ep.next_conn_req(cfg_of(args)) if args.verb == "next-req" else ep.next_incoming()
            objects["req"][first + reply["taken"]] = req
            reply["taken"] += 1
    reply["pdata"] = objects["req"][first].get_private_data()


@command("req-new", "req-start")
def new_request(args):
    function = rpma.conn_req_new if args.verb == "req-new" else rpma.conn_req_start
    args.set("req", function(objects["peer"][0], args["addr"], args["port"], cfg_of(args)))


@command("req-resolve")
def resolve(args):
    """Repeats until the request is ready or has failed. With timeout=0 it tries once."""
    req = args.object("req")
    while True:
        try:
            req.resolve()
            return
        except rpma.WouldBlock:
            if not args.number("timeout", 1):
                raise
        wait_readable(req.get_event_fd(), TIMEOUT_MS)


@command("req-setup")
def set_up(args):
    args.object("req").setup(cfg_of(args))


def consume(args, method, *arguments):
    """Calls a method that deletes the request, perhaps even if it fails."""
    req = args.object("req")
    try:
        return getattr(req, method)(*arguments)
    finally:
        if req.pointer is None:
            args.set("req", None)


@command("req-reject")
def reject(args):
    consume(args, "reject", args.bytes("pdata") or None)


@command("connect")
def establish(args):
    args.set("conn", consume(args, "connect", args.bytes("pdata") or None))


@command("req-delete")
def delete_requests(args):
    first = args.number("req", 0)
    first_failure((lambda number=number: delete("req", number)) for number in range(first, first + args.number("count", 1)))


@command("req-peer-addr", "req-local-addr", "peer-addr", "local-addr", "ep-addr")
def address(args):
    kind, _, side = args.verb.rpartition("-")[0].rpartition("-")
    handle = args.object(kind or ("ep" if side == "ep" else "conn"))
    reply["addr"], reply["port"] = handle.get_addr() if side == "ep" else getattr(handle, f"get_{side}_addr")()


@command("event")
def next_event(args):
    """With timeout=0 the call of the library blocks."""
    conn, timeout = args.object("conn"), args.number("timeout", TIMEOUT_MS)
    if timeout:
        wait_readable(conn.get_event_fd(), timeout)
    reply["event"] = EVENTS[conn.next_event()]


call("pdata", "conn", "get_private_data", result="pdata")
call("qp", "conn", "get_qp_num", result="qp")
call("disconnect", "conn", "disconnect")

# ---- memory ---------------------------------------------------------------------------------

MAP_SHARED_VALIDATE, MAP_SYNC = 0x03, 0x80000
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class Mallinfo(ctypes.Structure):
    """struct mallinfo2"""
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                                                     "uordblks", "fordblks", "keepcost")]


libc.mallinfo2.restype = Mallinfo


@command("memory")
def map_memory(args):
    """Maps size= bytes, of file=: not by the module mmap, which keeps a descriptor of the file."""
    size, descriptor, flags = args.number("size"), -1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    if "file" in args:
        descriptor = os.open(args["file"], os.O_RDWR | os.O_CREAT, 0o600)
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if is_file and os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        # With MAP_SYNC, which the kernel refuses outside of DAX file systems.
        flags = MAP_SHARED_VALIDATE | MAP_SYNC if args.number("sync", 1) and is_file else mmap.MAP_SHARED
    base = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0)
    error = ctypes.get_errno()
    if descriptor >= 0:
        os.close(descriptor)
    if base == ctypes.c_void_p(-1).value:
        raise Failure("ERR_SYSTEM", errno=error, call="mmap")
    memory[args.number("mr", 0)] = memoryview((ctypes.c_char * size).from_address(base)).cast("B")


@command("reg")
def register(args):
    """With size= it maps the memory first."""
    if "size" in args:
        map_memory(args)
    area = memory[args.number("mr", 0)]
    region = args.range(length=args.number("len", len(area)))
    args.set("mr", rpma.mr_reg(objects["peer"][0], region, args.number("usage")))
    reply["desc"] = args.object("mr").get_descriptor()


@command("remote")
def import_descriptor(args):
    args.set("rmr", rpma.mr_remote_from_descriptor(args.bytes("desc")))


def pattern(seed, length):
    """Bytes that depend on the seed and the offset, so that a comparison detects old and moved bytes."""
    return random.Random(seed).randbytes((length + 7) // 8 * 8)[:length]


def expect_equal(area, wanted):
    found = bytes(area)
    if found != wanted:
        reply["at"] = next(i for i, byte in enumerate(found) if byte != wanted[i])
        reply["byte"] = found[reply["at"]]
        raise Failure("ERR_MISMATCH")


@command("fill")
def fill(args):
    args.range()[:] = pattern(args.number("seed"), args.number("len"))


@command("set")
def set_bytes(args):
    args.range()[:] = bytes([args.number("byte") & 255]) * args.number("len")


@command("check")
def check(args):
    """With flag= it waits until the other side's atomic write has stored the bytes= there, and compares immediately."""
    area, wanted = args.range(), pattern(args.number("seed"), args.number("len"))
    if "flag" in args:
        flag, value, began = args.range(offset=args.number("flag"), length=8), args.bytes("bytes"), milliseconds()
        while flag != value:
            if milliseconds() - began > 10 * TIMEOUT_MS:
                raise Failure("ERR_TIMEOUT")
            os.sched_yield()
    expect_equal(area, wanted)


@command("check-set")
def check_set(args):
    """Checks that nothing was written around the target."""
    expect_equal(args.range(), bytes([args.number("byte") & 255]) * args.number("len"))


@command("bytes")
def show_bytes(args):
    reply["bytes"] = bytes(args.range())


@command("heap")
def heap(_):
    """The number of bytes in use from malloc()."""
    libc.malloc_trim(ctypes.c_size_t(0))
    info = libc.mallinfo2()
    reply["bytes"] = info.uordblks + info.hblkhd


# ---- operations -----------------------------------------------------------------------------

KINDS = {"read": rpma.WORK_READ, "write": rpma.WORK_WRITE, "write-imm": rpma.WORK_WRITE_WITH_IMM, "atomic": rpma.WORK_ATOMIC_WRITE,
         "flush": rpma.WORK_FLUSH, "send": rpma.WORK_SEND, "send-imm": rpma.WORK_SEND_WITH_IMM, "add": rpma.WORK_FETCH_ADD,
         "swap": rpma.WORK_COMPARE_SWAP}
# The function of each type that every release has.
PLAIN = {
    "read": lambda conn, w, mr: conn.read(mr, w.local.offset, w.rmr, w.remote_offset, w.local.len, w.flags, w.op_context),
    "write": lambda conn, w, mr: conn.write(w.rmr, w.remote_offset, mr, w.local.offset, w.local.len, w.flags, w.op_context),
    "write-imm": lambda conn, w, mr: conn.write_with_imm(w.rmr, w.remote_offset, mr, w.local.offset, w.local.len, w.flags, w.imm,
                                                         w.op_context),
    "atomic": lambda conn, w, _: conn.atomic_write(w.rmr, w.remote_offset, w.value.to_bytes(8, sys.byteorder), w.flags, w.op_context),
    "flush": lambda conn, w, _: conn.flush(w.rmr, w.remote_offset, w.flush_len, w.flush_type, w.flags, w.op_context),
    "send": lambda conn, w, mr: conn.send(mr, w.local.offset, w.local.len, w.flags, w.op_context),
    "send-imm": lambda conn, w, mr: conn.send_with_imm(mr, w.local.offset, w.local.len, w.flags, w.imm, w.op_context),
}
held = []  # operations that "post" will post


def sgl_of(args):
    """The SGEs of sgl=, as in sgl=0:64:8,-:0:0: ranges of regions 0 and without region."""
    parts = [part.split(":") for part in args.get("sgl", "").split(",") if part]
    return [rpma.Sge(mr=None if number == "-" else objects["mr"][int(number)], offset=int(offset), len=int(length))
            for number, offset, length in parts]


def region_of(args):
    return objects["mr"][args.number("mr")] if "mr" in args else None


def value_of(args, key):
    return int.from_bytes(args.bytes(key)[:8].ljust(8, b"\0"), sys.byteorder)


def operation_of(args):
    """Also sets members of other types, which the library must not read."""
    members = {"sgl": sgl} if (sgl := sgl_of(args)) else {}
    remote = objects["rmr"][args.number("rmr")] if "rmr" in args else None
    persistent = args.verb == "flush" and args.number("persistent")
    work = rpma.Work(
        type=KINDS[args.verb], imm=args.number("imm", 0), remote=remote, remote_offset=args.number("roff", 0),
        local=rpma.Sge(mr=region_of(args), offset=args.number("off", 0), len=args.number("len", 0)),
        flush_type=rpma.FLUSH_TYPE_PERSISTENT if persistent else rpma.FLUSH_TYPE_VISIBILITY, flush_len=args.number("len", 0),
        flags=args.number("flags", rpma.F_COMPLETION_ALWAYS), op_context=args.number("ctx", 0), value=value_of(args, "bytes"),
        compare=value_of(args, "compare"), **members)
    work.rmr = remote
    return work


@command(*KINDS)
def execute(args):
    """batch=: adds to the batch. method=hold: keeps the operation for "post". method=post, or with sgl=: rpma_post(3)."""
    work, method = operation_of(args), args.get("method")
    if method == "hold":
        held.append(work)
    elif "batch" in args:
        args.object("batch").add(work)
    elif method == "post" or work.sgl or args.verb not in PLAIN:
        args.object("conn").post([work])
    else:
        PLAIN[args.verb](args.object("conn"), work, region_of(args))


def reply_posted(post, *arguments):
    """Calls a function with the output posted, which it also writes when it fails."""
    try:
        reply["posted"] = post(*arguments)
    except rpma.Error as error:
        reply["posted"] = error.posted
        raise


@command("post")
def post_held(args):
    """Posts the held operations and keeps those that the device did not accept."""
    try:
        reply_posted(args.object("conn").post, held)
    finally:
        del held[:reply["posted"]]


@command("recv", "req-recv", "srq-recv")
def receive(args):
    """Posts count= receives, in adjacent memory and with consecutive contexts. With method=many or sgl= in one call, and
    the reply has the number that the queue accepted."""
    queue = args.object({"recv": "conn"}.get(args.verb, args.verb.partition("-")[0]))
    region, offset, length, sgl = region_of(args), args.number("off", 0), args.number("len", 0), sgl_of(args)
    numbers = range(args.number("count", 1))
    if args.get("method") != "many" and not sgl:
        for number in numbers:
            queue.recv(region, offset + number * length, length, args.number("ctx", 0) + number)
        return
    members = {"sgl": sgl} if sgl else {}
    receives = [rpma.Receive(local=rpma.Sge(mr=region, offset=offset + number * length, len=length),
                             op_context=args.number("ctx", 0) + number, **members) for number in numbers]
    reply_posted(queue.recv_many, receives)


class SendRequest(ctypes.Structure):
    """struct ibv_send_wr, as far as a write uses it"""
    _fields_ = [("wr_id", ctypes.c_uint64), ("next", ctypes.c_void_p), ("sg_list", ctypes.c_void_p), ("num_sge", ctypes.c_int),
                ("opcode", ctypes.c_int), ("send_flags", ctypes.c_uint), ("imm_data", ctypes.c_uint32),
                ("remote_addr", ctypes.c_uint64), ("rkey", ctypes.c_uint32), ("rest", ctypes.c_char * 76)]


@command("raw-write")
def raw_write(args):
    """Posts a write by libibverbs, to the queue pair of a connection. ibv_post_send() is an inline function that calls
    qp->context->ops.post_send: member 25 of the functions that follow the first member of struct ibv_context."""
    region = ctypes.cast(args.object("mr").get_ibv_mr(), ctypes.POINTER(ctypes.c_void_p))
    local = region[2]  # context, pd, addr, length; handle and lkey have 32 bits
    lkey = ctypes.cast(region, ctypes.POINTER(ctypes.c_uint32))[9]
    remote, rkey = args.object("rmr").get_key()
    sge = (ctypes.c_uint64 * 2)(local + args.number("off", 0),
                                int.from_bytes(args.number("len").to_bytes(4, sys.byteorder) + lkey.to_bytes(4, sys.byteorder),
                                               sys.byteorder))
    request = SendRequest(wr_id=args.number("ctx", 0), sg_list=ctypes.addressof(sge), num_sge=1, send_flags=2,  # IBV_SEND_SIGNALED
                          remote_addr=remote + args.number("roff", 0), rkey=rkey)
    qp = args.object("conn").get_ibv_qp()
    functions = ctypes.cast(ctypes.cast(qp, ctypes.POINTER(ctypes.c_void_p))[0], ctypes.POINTER(ctypes.c_void_p))
    post = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(functions[1 + 25])
    if error := post(qp, ctypes.addressof(request), ctypes.addressof(ctypes.c_void_p())):
        raise Failure("ERR_SYSTEM", errno=error, call="ibv_post_send")


def await_either(conn, event_is_last):
    """Waits for a completion. If the other side disconnects meanwhile, reports the event and disconnects as well, because a
    device that retries flushes its operations only after this. event_is_last: an event ends the load."""
    cq, poll = conn.get_cq(), select.poll()
    completed, event = cq.get_fd(), conn.get_event_fd()
    poll.register(completed, select.POLLIN)
    poll.register(event, select.POLLIN)
    while True:
        with contextlib.suppress(rpma.WouldBlock):
            return cq.get_wc()[0]
        ready = {descriptor for descriptor, events in poll.poll() if events & select.POLLIN}
        if ready == {event}:
            reply["event"] = "CLOSED" if conn.next_event() == rpma.CONN_CLOSED else "another"
            conn.disconnect()
            if event_is_last:
                raise Failure("ERR_CLOSED")
        else:
            with contextlib.suppress(rpma.WouldBlock):
                cq.wait()


@command("write-blocks")
def write_blocks(args):
    """Writes count= blocks to consecutive ranges, with at most window= of them outstanding. With last=1 an event of the
    connection ends the load, because a completion may not follow."""
    conn, remote, local = args.object("conn"), args.object("rmr"), args.object("mr")
    count, window, length = args.number("count"), args.number("window"), args.number("len")
    posted, reply["done"], reply["status"] = 0, 0, 0
    while reply["done"] < count:
        if posted < count and posted - reply["done"] < window:
            conn.write(remote, posted * length, local, posted * length, length, rpma.F_COMPLETION_ALWAYS, posted)
            posted += 1
            continue
        wc = await_either(conn, args.number("last", 0))
        reply["status"] = wc.status
        if wc.status:
            raise Failure("RPMA_E_PROVIDER")
        if wc.wr_id != reply["done"]:
            raise Failure("ERR_MISMATCH")
        reply["done"] += 1


@command("batch-new")
def new_batch(args):
    args.set("batch", args.object("conn").batch_new(args.number("ops")))


@command("batch-post")
def post_batch(args):
    reply_posted(args.object("batch").post)


call("batch-reset", "batch", "reset")

# ---- completions and events of the device ---------------------------------------------------


def queue_of(args):
    """The queue of the connection, or the one that queue= names."""
    name = args.get("queue", "main")
    if name == "main":
        return args.object("conn").get_cq()
    return {"rcq": lambda: args.object("conn").get_rcq(), "srq": lambda: args.object("srq").get_rcq(),
            "shared_cq": lambda: args.object("shared_cq")}[name]()


@command("wc")
def completions(args):
    """Collects count= completions within timeout=; with 0 it polls once. With busy=1 it never sleeps."""
    cq, wanted, timeout, began, got = queue_of(args), args.number("count", 1), args.number("timeout", TIMEOUT_MS), milliseconds(), 0
    try:
        while got < wanted:
            try:
                for wc in cq.get_wc(min(wanted - got, 16)):
                    worked = not wc.status
                    imm = socket.ntohl(wc.imm_data) if worked and wc.wc_flags & rpma.IBV_WC_WITH_IMM else 0
                    reply[f"wc{got}"] = ":".join(map(str, (wc.status, wc.opcode if worked else "-", wc.wr_id,
                                                           wc.byte_len if worked else 0, imm, wc.qp_num)))
                    got += 1
                continue
            except rpma.WouldBlock:
                left = timeout - (milliseconds() - began)
                if left <= 0:
                    if timeout:
                        raise Failure("ERR_TIMEOUT") from None
                    raise
            if not args.number("busy", 0):
                wait_for_wake_up(args, cq, left)
    finally:
        reply["ms"] = milliseconds() - began


def wait_for_wake_up(args, cq, timeout):
    """A stale wake-up is harmless, because the caller polls the queue again."""
    wait_readable(cq.get_fd(), timeout)
    with contextlib.suppress(rpma.WouldBlock):
        try:
            cq.wait()
        except rpma.Error as error:
            if error.name != "RPMA_E_SHARED_CHANNEL":
                raise
            args.object("conn").wait(0)


@command("conn-wait")
def wait_for_connection(args):
    """Replies with the queue that the connection's shared channel reports."""
    conn = args.object("conn")
    cq, is_rcq = conn.wait(0)
    reply.update(queue="main" if cq == conn.get_cq() else "rcq", rcq=int(is_rcq))


@command("cq-wait", "cq-take-event")
def wait_for_queue(args):
    getattr(queue_of(args), args.verb[3:].replace("-", "_"))()


@command("cq-arm")
def arm(args):
    queue_of(args).arm(args.number("solicited", 0))


def descriptor_named(args):
    getters = {"ep": ("ep", "get_fd"), "req": ("req", "get_event_fd"), "event": ("conn", "get_event_fd"),
               "channel": ("conn", "get_compl_fd"), "device": ("peer", "get_event_fd")}
    if args["fd"] not in getters:
        return queue_of(args).get_fd()
    kind, method = getters[args["fd"]]
    return getattr(args.object(kind), method)()


class Watched:
    """The descriptors of one epoll instance, with their tags: a list, because a dict keeps its memory."""
    epoll, tags = None, [0] * 65536

    @classmethod
    def add(cls, descriptor, tag):
        cls.epoll = cls.epoll or select.epoll()
        with contextlib.suppress(FileExistsError):
            cls.epoll.register(descriptor, select.EPOLLIN)
        cls.tags[descriptor] = tag

    @classmethod
    def ready(cls, timeout):
        """The tags of the ready descriptors."""
        return [cls.tags[descriptor] for descriptor, _ in cls.epoll.poll(timeout, 64)]

    @classmethod
    def forget(cls):
        if cls.epoll:
            cls.epoll.close()
        cls.epoll = None


@command("nonblock")
def make_non_blocking(args):
    os.set_blocking(descriptor_named(args), False)


@command("epoll-add")
def add_to_epoll(args):
    Watched.add(descriptor_named(args), args.number("tag"))


@command("epoll-wait")
def wait_by_epoll(args):
    tags = Watched.ready(args.number("timeout", TIMEOUT_MS) / 1000)
    if not tags:
        raise Failure("ERR_TIMEOUT")
    reply["n"] = len(tags)
    reply.update({f"tag{number}": tag for number, tag in enumerate(tags)})


def reply_index(kind, pointer):
    for number, handle in enumerate(objects[kind]):
        if pointer and handle is not None and handle.pointer == pointer:
            reply[kind] = number


def reply_queue(pointer):
    """Replies with the words that name the queue in other commands."""
    for number, srq in enumerate(objects["srq"]):
        if srq is not None and (rcq := srq.get_rcq()) and rcq.pointer == pointer:
            reply.update(queue="srq", srq=number)
    for number, conn in enumerate(objects["conn"]):
        if conn is not None:
            for name, cq in (("main", conn.get_cq()), ("rcq", conn.get_rcq())):
                if cq and cq.pointer == pointer:
                    reply.update(queue=name, conn=number)
    reply_index("shared_cq", pointer)


@command("device-event")
def device_event(args):
    """Replies with the next event of the device and the numbers of its handles. second=1 reads it through another peer."""
    with contextlib.ExitStack() as end:
        of = end.enter_context(rpma.peer_new(Device.context)) if args.number("second", 0) else objects["peer"][0]
        if args.number("polled", 1):
            wait_readable(of.get_event_fd(), args.number("timeout", TIMEOUT_MS))
        event = of.next_event()
        reply.update(type=event.type, port=event.port)
        reply_index("conn", event.conn)
        reply_index("srq", event.srq)
        if event.cq:
            reply_queue(event.cq)


# ---- processes and signals ------------------------------------------------------------------


@command("fork")
def fork(args):
    """Starts an independent side with its own standard streams. Forking twice leaves the new process without a parent here,
    so that the test adopts and reaps it."""
    if between := os.fork():
        if os.waitpid(between, 0)[1]:
            raise Failure("ERR_SYSTEM", call="fork")
        return
    with contextlib.suppress(OSError):
        for stream, (key, flags) in enumerate({"input": os.O_RDONLY, "output": os.O_WRONLY, "errors": os.O_WRONLY | os.O_APPEND}.items()):
            descriptor = os.open(args[key], flags)
            os.dup2(descriptor, stream)
            os.close(descriptor)
        if os.fork():
            os._exit(0)
        reply["pid"] = os.getpid()
        return
    os._exit(3)


@command("forget")
def forget(_):
    """Clears the handles without deleting the objects, which belong to the parent."""
    for kind, count in OBJECTS.items():
        objects[kind] = [None] * count
    memory[:] = [None] * len(memory)
    default_cfg.clear()
    Watched.forget()


@command("run")
def run_program(_):
    """Runs another program, which fails if it inherits a descriptor of a device."""
    if os.system("! ls -l /proc/self/fd | grep infiniband >&2"):
        raise Failure("ERR_SYSTEM")


@command("fork-status")
def fork_status(_):
    reply["fork"] = ("disabled", "enabled", "unneeded")[ctypes.CDLL("libibverbs.so.1").ibv_is_fork_initialized()]


@command("handle-signal")
def handle_signal(args):
    """Python's handler in C writes the number of the signal to the standard error, even while a call of the library blocks."""
    os.set_blocking(2, False)
    signal.set_wakeup_fd(2)
    signal.signal(args.number("signal"), lambda *_: None)
    signal.siginterrupt(args.number("signal"), not args.number("restart"))
