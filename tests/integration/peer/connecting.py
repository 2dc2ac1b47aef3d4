# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The commands about devices, configurations and connections."""

import contextlib
import ctypes
import re
import subprocess

import rpma

from commands import COMMANDS, TIMEOUT_MS, Device, call, command, objects, reply, wait_readable
from waiting import Watched

SETTINGS = {"cq": "cq_size", "rcq": "rcq_size", "sq": "sq_size", "rq": "rq_size", "sge": "max_sge", "retry": "retry_count",
            "rnr": "rnr_retry_count", "inline": "inline_size", "timeout": "timeout", "ack": "ack_timeout",
            "rnr-timer": "rnr_timer", "source-port": "source_port", "tos": "tos", "shared": "compl_channel"}


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
