#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Changes each property of a device, and expects that rpma-check reports a difference.

check_mutants.py RDMA_SIM RPMA_CHECK [PROPERTY...]

check_unseen.tsv has the properties that rpma-check does not compare, with the reasons. Limits (attr.*) depend on the
unit, and are not changed. With PROPERTY, only these are changed."""

import concurrent.futures
import itertools
import json
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
import harness
import reports
from harness import expect, run, test

RDMA_SIM, RPMA_CHECK, *ONLY = sys.argv[1:]
UNSEEN = pathlib.Path(__file__).with_name("check_unseen.tsv")
BASES = ("mlx5", "rxe", "siw", "cxgb4", "mana", "hns", "qedr", "mlx4", "erdma")
TRIALS = 4  # of a property
ADDRESS = "10.77.0.1"


def unseen():
    """{property: reason}"""
    return dict(line.split("\t") for line in UNSEEN.read_text(encoding="utf-8").splitlines()[3:])


def mutants(key):
    """(device, value) of other values that devices have, each time on another device."""
    values = {name: reports.devices.reported(name).get(key) for name in reports.simulated()}
    others = list(dict.fromkeys(value for value in values.values() if value is not None))
    of_bases = []
    for name in BASES:
        own = values[name]
        more = [not own] if isinstance(own, bool) else [own + 1] if isinstance(own, int) else []
        of_bases.append([(name, value) for value in dict.fromkeys(others + more) if value not in (own, -1)])
    return [each for row in itertools.zip_longest(*of_bases) for each in row if each]


def difference(name, key, value):
    """A difference that a changed property causes, or None."""
    with tempfile.TemporaryDirectory() as folder:
        device, found = (os.path.join(folder, each) for each in ("device.json", "found.json"))
        changed = reports.devices.reported(name) | {key: value}
        pathlib.Path(device).write_text(json.dumps(reports.report(name, attributes=changed)), encoding="utf-8")
        done = run(RDMA_SIM, "--hosts", "2", "--device", f"host1={name}", "--device", f"host2={device}",
                   RPMA_CHECK, "--once", "--server", ADDRESS, "::", RPMA_CHECK, "--report", found, ADDRESS, timeout=300)
        if "not replayed" in done.stderr:  # the fabric cannot have this value
            return None
        expect(done.returncode in (0, 1), True, f"{name}: {key} {value}: {done.stderr}")
        report = json.loads(pathlib.Path(found).read_text(encoding="utf-8"))
        return next((each["question"] for each in report["differences"]), None)


def shown(key):
    """The first change of a property that rpma-check reports."""
    for name, value in mutants(key)[:TRIALS]:
        if question := difference(name, key, value):
            print(f"# {key}: {value} on {name}: {question}", flush=True)
            return True
    print(f"# {key}: no difference", flush=True)
    return False


@test("rpma-check reports each changed property, unless check_unseen.tsv names it")
def changes():
    keys = ONLY or [key for key in reports.devices.attributes() if key == "attr.atomic_cap" or not key.startswith("attr.")]
    reasons = unseen()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        found = dict(zip(keys, pool.map(shown, keys)))
    expect([key for key in keys if not found[key] and key not in reasons], [], "changes that are not reported")
    expect([key for key in keys if found[key] and key in reasons], [], "properties of check_unseen.tsv that are reported")


if __name__ == "__main__":
    sys.exit(harness.main())
