# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""rdma-core's own tests: see rdma-core.md."""

import os
import pathlib
import re
import subprocess
import sys

import rdma_core
from fixture import Missing, test

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))
import compare  # noqa: E402

# Reasons of skipped tests that depend on the machine, not on the device.
OF_MACHINE = re.compile("skipped: (There are no huge pages|Allocating dmabuf|cuda-python)")


SUITE_ON = "rdma-core's own tests on "


def need_version(record):
    recorded = re.match("# rdma-core ([0-9.]+)", record.read_text(encoding="utf-8")).group(1)
    if rdma_core.version() != recorded:
        raise Missing(f"no tests of rdma-core {recorded} here: tools/setup unchanged")


def run_rdma_core(fixture, device, *arguments):
    """Returns the results of the tests by their names."""
    if device not in fixture.sim("--device", "help").stdout.split():
        raise Missing(f"rdma-sim has no device {device}")
    suite = fixture.work / "tests"
    if not suite.exists():
        rdma_core.unpack(suite)
    lines = fixture.work / "errors"
    with open(lines, "w", encoding="utf-8") as errors:
        done = fixture.sim("--device", device, rdma_core.PYTHON, str(HERE / "rdma_core.py"), "run", str(suite),
                           *arguments, errors=errors)
    if done.returncode == 77:
        raise Missing(lines.read_text(encoding="utf-8").strip())
    assert done.returncode == 0, f"{done}: {lines.read_text(encoding='utf-8')[-4096:]}"
    return compare.table(done.stdout, "the output")


def rdma_core_suite(device, records, *arguments):
    """Compares the results with those of the records, each of which has what differs in it."""
    @test(SUITE_ON + device)
    def function(fixture):
        first, *others = [HERE / f"rdma-core_{record}.tsv" for record in records]
        need_version(first)
        is_root = os.getuid() == 0 and not fixture.user
        expected = compare.overlay(compare.read(first), HERE / "rdma-core_root.tsv" if is_root else None)
        for record in others:
            expected = compare.overlay(expected, record)
        got = run_rdma_core(fixture, device, *arguments)
        # Other devices may have features for root alone.
        expected = {name: result for name, result in expected.items()
                    if not OF_MACHINE.match(result) and not (is_root and "by root" in result)}
        wrong = list(compare.differences(expected, {name: got[name] for name in got if name in expected}))
        assert not wrong, "\n".join(wrong)


# GID 0 of RoCE is that of a link-local address, which the lab's interface does not have.
rdma_core_suite("rxe", ["rxe", "sim-rxe"], "rxe0", "1")
rdma_core_suite("siw", ["siw"], "siw0", "0")
rdma_core_suite("mlx5", ["rxe", "sim-mlx5"], "mlx5_0", "1")
rdma_core_suite("mlx5-ib", ["rxe", "sim-mlx5", "sim-mlx5-ib"], "mlx5_0", "0")
rdma_core_suite("irdma-roce", ["rxe", "sim-irdma-roce"], "irdma0", "1")
rdma_core_suite("irdma-iwarp", ["siw", "sim-irdma-iwarp"], "irdma0", "0")
rdma_core_suite("bnxt_re", ["rxe", "sim-bnxt_re"], "bnxt_re0", "1")


@test("rdma-core's own tests are skipped without their device, version or package")
def rdma_core_missing(fixture):
    if not rdma_core.version():
        raise Missing("no tests of rdma-core here: tools/setup unchanged")
    script, other = str(HERE / "rdma_core.py"), fixture.work / "other.tsv"
    other.write_text("# rdma-core 0.1, rxe, as an ordinary user\n", encoding="utf-8")
    for function, reason in [
            (lambda: need_version(other), "no tests of rdma-core 0.1 here: tools/setup unchanged"),
            (lambda: run_rdma_core(fixture, "mlx6", "mlx6_0"), "rdma-sim has no device mlx6"),
            (lambda: run_rdma_core(fixture, "rxe", "rxe1"),
             "rdma_core.py: skipped: there is no device rxe1: ibv_devices lists them")]:
        try:
            function()
            raise AssertionError(f"not skipped: {reason}")
        except Missing as missing:
            assert str(missing) == reason, missing
    for arguments, reason in [
            (["lab", "rxe", "/nonexistent"], "no tests of rdma-core here: tools/setup unchanged"),
            (["lab", "mlx5", "/nonexistent"], "the lab has no mlx5: it has rxe and siw"),
            (["run", "/nonexistent", "rxe0"], "no tests of rdma-core in /nonexistent: unpack them")]:
        done = subprocess.run([rdma_core.PYTHON, script, *arguments], env={"PATH": "/nonexistent"}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (77, "", f"rdma_core.py: skipped: {reason}\n"), done
