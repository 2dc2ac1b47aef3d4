#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Tests the Python module rpma: its declarations against the compiler's, its examples and its rules on rdma-sim. Prints TAP.

usage: python_module.py RDMA-SIM BUILD [CASE...]    BUILD is the build directory of librpma
       python_module.py calls ADDRESS               makes the calls of a case; run by it
"""

import ctypes
import pathlib
import re
import shutil
import sys
import threading

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "sim/tests/programs"), str(ROOT / "contract")]

LAYOUT = """\
#include <librpma.h>
#include <stdio.h>
int main(void) {
%s
    return 0;
}
"""


def raised(expected, name, call, *arguments, **members):
    """The exception of a call, which must be of this kind and have this name."""
    try:
        call(*arguments, **members)
    except expected as error:
        assert getattr(error, "name", name) == name, error
        return error
    raise AssertionError(f"no {name}")


def serve(rpma, ep, memory_region, ready):
    with ep.next_conn_req().connect(rpma.conn_private_data_pack([memory_region], None, b"text")) as conn:
        ready.append(conn.next_event())
        ready.append(conn.next_event())


def calls(address):
    import rpma  # pylint: disable=import-outside-toplevel,import-error # found by PYTHONPATH
    memory = bytearray(64)
    everything = rpma.MR_USAGE_WRITE_DST | rpma.MR_USAGE_READ_SRC | rpma.MR_USAGE_READ_DST | rpma.MR_USAGE_WRITE_SRC
    raised(rpma.Error, "RPMA_E_PROVIDER", rpma.utils_get_ibv_context, "192.0.2.1", rpma.UTIL_IBV_CONTEXT_LOCAL)
    peer = rpma.peer_new(rpma.utils_get_ibv_context(address, rpma.UTIL_IBV_CONTEXT_LOCAL))
    mr = peer.mr_reg(memory, everything)
    raised(BufferError, None, memory.extend, b"more")
    raised(TypeError, None, peer.mr_reg, b"read-only", everything)
    assert mr.get_ptr() == ctypes.addressof(ctypes.c_char.from_buffer(memory)) and mr.get_size() == 64

    # Several outputs, NULL arguments and configurations.
    cfg = rpma.conn_cfg_new()
    cfg.set_sq_size(2)
    cfg.set_max_sge(2)
    cfg.set_compl_channel(False)
    assert (cfg.get_sq_size(), cfg.get_srq(), cfg.get_compl_channel(), cfg.get_source_addr()) == (2, None, False, None)
    pcfg = rpma.peer_cfg_new()
    pcfg.set_direct_write_to_pmem(True)
    with rpma.peer_cfg_from_descriptor(pcfg.get_descriptor()) as copy:
        assert copy.get_direct_write_to_pmem() is True and copy.get_served() == (False, False, False)
    with rpma.mr_remote_from_descriptor(mr.get_descriptor()) as copy:
        assert copy.get_key()[0] == mr.get_ptr()

    # A connection of this process to itself: outputs, private data, events, errors.
    ep, events = peer.ep_listen(address, "7310"), []
    assert ep.get_addr() == (address, 7310)
    server = threading.Thread(target=serve, args=(rpma, ep, mr, events), daemon=True)
    server.start()
    request = peer.conn_req_new(address, "7310", cfg)
    conn = request.connect(b"client")
    assert request.pointer is None and conn.next_event() == rpma.CONN_ESTABLISHED
    (target,), capabilities, text = rpma.conn_private_data_unpack(conn.get_private_data())
    assert text == b"text" and capabilities is None and target.get_size() == 64
    assert conn.get_peer_addr() == (address, 7310) and conn.get_rcq() is None
    cq = conn.get_cq()
    assert cq == conn.get_cq() and cq != peer
    raised(rpma.WouldBlock, "RPMA_E_NO_COMPLETION", cq.get_wc)
    error = raised(rpma.Error, "RPMA_E_NOT_SHARED_CHNL", conn.wait, 0)
    assert str(error) == "rpma_conn_wait: RPMA_E_NOT_SHARED_CHNL: Completion channel is not shared", error
    error = raised(rpma.Error, "RPMA_E_INVAL", conn.write, target, 0, mr, 0, 8, 0)
    assert error.code == rpma.E_INVAL and "flags" in str(error) and error.posted is None
    memory[:16] = b"0123456789abcdef"
    works = [rpma.Work(type=rpma.WORK_WRITE, remote=target, remote_offset=32, flags=rpma.F_COMPLETION_ALWAYS, op_context=7,
                       sgl=[rpma.Sge(mr=mr, offset=8, len=8), rpma.Sge(mr=mr, len=8)]), rpma.Work(type=0)]
    assert raised(rpma.Error, "RPMA_E_INVAL", conn.post, works).posted == 1
    cq.wait()
    completion, = cq.get_wc(4)
    assert (completion.wr_id, completion.status) == (7, rpma.IBV_WC_SUCCESS), completion
    assert memory[32:48] == b"89abcdef01234567"
    conn.atomic_write(target, 48, b"atomical", rpma.F_COMPLETION_ALWAYS, op_context=8)
    cq.wait()
    assert cq.get_wc()[0].wr_id == 8 and memory[48:56] == b"atomical"
    raised(ValueError, None, conn.atomic_write, target, 48, b"short", rpma.F_COMPLETION_ALWAYS)
    with conn.batch_new(2) as batch:
        batch.add(works[0])
        assert batch.get_size() == (1, 1)
    raised(TypeError, None, rpma.Work, kind=1)
    raised(TypeError, None, conn.write, target)

    conn.disconnect()
    assert conn.next_event() == rpma.CONN_CLOSED
    server.join()
    assert events == [rpma.CONN_ESTABLISHED, rpma.CONN_CLOSED], events
    for handle in target, conn, ep, mr, peer, cfg, pcfg:
        handle.delete()
        handle.delete()
        assert handle.pointer is None
    memory.extend(b"more")
    raised(rpma.Error, "RPMA_E_INVAL", mr.get_size)
    assert rpma.err_2str(rpma.E_INVAL) == "Invalid argument"
    print("calls: done")


if len(sys.argv) > 2 and sys.argv[1] == "calls":
    calls(sys.argv[2])
    sys.exit()

from fixture import SERVER, main, test  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(2)).resolve() if len(sys.argv) > 2 else sys.exit(__doc__)
ENVIRONMENT = {"PYTHONPATH": str(BUILD / "python"), "LD_LIBRARY_PATH": str(BUILD / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
# An ordinary user may have no access to the interpreter of root.
PYTHON = shutil.which("python3", path="/usr/bin") or sys.executable


@test("constants and structures are those of the compiler", "cc")
def declarations(fixture):
    done = fixture.run("env", *(f"{name}={value}" for name, value in ENVIRONMENT.items()), PYTHON, "-c", """
import ctypes, rpma
for name, value in rpma.declarations.CONSTANTS.items():
    print(name, value)
for name, members in rpma.declarations.STRUCTURES.items():
    kind = getattr(rpma, rpma._camel(name))
    print(f"sizeof(struct {name})", ctypes.sizeof(kind))
    for _, member, _ in members:
        print(f"offsetof(struct {name}, {member})", getattr(kind, member).offset)
""")
    rows = [line.rpartition(" ")[::2] for line in done.splitlines()]
    assert len(rows) > 150, done
    source, program = fixture.work / "layout.c", fixture.work / "layout"
    source.write_text(LAYOUT % "\n".join(f'    printf("%s %lld\\n", "{name}", (long long)({name}));' for name, _ in rows))
    fixture.run("cc", "-I", ROOT / "include", source, "-o", program)
    assert fixture.run(program) == done


@test("every function of the header but rpma_log_set_function() is bound")
def functions(fixture):
    import public_header  # pylint: disable=import-outside-toplevel
    names = [name.removeprefix("rpma_") for name in public_header.prototypes()]
    done = fixture.run("env", *(f"{name}={value}" for name, value in ENVIRONMENT.items()), PYTHON, "-c",
                       f"import rpma; print([name for name in {names} if not callable(getattr(rpma, name, None))])")
    assert done == "['log_set_function']\n", done


@test("calls return outputs, raise errors, and keep and release memory")
def behavior(fixture):
    done = fixture.sim(PYTHON, __file__, "calls", SERVER, environment=ENVIRONMENT)
    fixture.expect(done, 0, "calls: done")


@test("the examples transfer a text")
def examples(fixture):
    folder = ROOT / "python" / "examples"
    done = fixture.sim("--prefix", PYTHON, folder / "server.py", SERVER, "7204", "::",
                       PYTHON, folder / "client.py", SERVER, "7204", "written from Python", environment=ENVIRONMENT)
    fixture.expect(done, 0, "host1: written from Python")


@test("the lines of rpma_python(7) are those of the client")
def page(fixture):
    del fixture
    shown = re.search(r"^\.Bd -literal\n(.*?)^\.Ed", (ROOT / "man/rpma_python.7").read_text(encoding="utf-8"), re.M | re.S)[1]
    assert shown in (ROOT / "python/examples/client.py").read_text(encoding="utf-8")


if __name__ == "__main__":
    main(__doc__)
