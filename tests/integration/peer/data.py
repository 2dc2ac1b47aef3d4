# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The commands about memory, operations and batches."""

import contextlib
import ctypes
import mmap
import os
import random
import select
import stat
import sys

import rpma

from commands import TIMEOUT_MS, Failure, call, command, libc, memory, milliseconds, objects, reply

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
