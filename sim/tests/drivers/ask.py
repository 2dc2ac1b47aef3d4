#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""
Asks the questions of questions.c, and compares the results with the recorded ones.

ask.py driver NAME QUESTIONS STUB [--record]   of the driver libNAME of this machine
ask.py profile NAME RDMA-SIM QUESTIONS         of a device of rdma-sim
ask.py library NAME LIBRARY STUB               runs library.c over that driver, and compares the sizes of its queues

recorded/VERSION/NAME.tsv has the results of a driver of rdma-core VERSION. known.tsv names the results of profiles that
differ, with a reason. A driver that the machine lacks, or without recorded results, is skipped with one line.
"""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.append(str(FOLDER.parents[1] / "device"))

import devices

SKIPPED = 77
# name: (vendor, device), with the transport if the library has several. libhns finds its device by these numbers, and the others by the number of the driver.
DRIVERS = {
    "mlx5": (0x15b3, 0x101b),
    "mlx4": (0x15b3, 0x1003),
    "irdma": (0x8086, 0x1592),
    "irdma-iwarp": (0x8086, 0x1592),
    "bnxt_re": (0x14e4, 0x1750),
    "hns": (0x19e5, 0xa222),
    "cxgb4": (0x1425, 0x6401),
    "erdma": (0x1ded, 0x107f),
    "mana": (0x1414, 0x00ba),
    "qedr": (0x1077, 0x1656),
    "qedr-iwarp": (0x1077, 0x1656),
    "rxe": (0, 0),
    "siw": (0, 0),
}
# The driver of each profile.
PROFILES = {name: name if name in DRIVERS else device["library"] for name, device in devices.read_devices().items()
            if device["simulated"] == "yes" and device["library"] in DRIVERS}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def make_sysfs(root, name):
    """Write what libibverbs reads of the device that stub_netlink.c describes."""
    vendor, number = DRIVERS[name]
    device = root / "class/infiniband/stub0"
    write(root / "class/misc/rdma_cm/abi_version", 4)
    write(device / "ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0001")
    write(device / "device/vendor", f"{vendor:#06x}")
    write(device / "device/device", f"{number:#06x}")
    write(device / "device/modalias", f"pci:v{vendor:08X}d{number:08X}sv00000000sd00000000bc02sc00i00")


def table(text):
    return dict(line.split("\t") for line in text.splitlines() if "\t" in line)


def run(command, environment=None):
    """Return the library that answered, and the results."""
    done = subprocess.run(command, env=os.environ | (environment or {}), stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines() or ["nothing"]
    if done.returncode != 0 or not lines[0].startswith("# "):
        sys.exit(f"{' '.join(map(str, command))} ended with status {done.returncode}, after: {lines[-1]}")
    return pathlib.Path(lines[0][2:]), table(done.stdout)


def skip(name, reason):
    print(f"skipped: {name}: {reason}")
    sys.exit(SKIPPED)


def differences(recorded, got):
    for question in recorded | got:
        expected, result = recorded.get(question, "nothing"), got.get(question, "nothing")
        if result != expected:
            yield question, f"\"{question}\": {result}, but {expected} is recorded"


def report(wrong, count):
    print(*wrong, f"{count} results, {len(wrong)} differences", sep="\n")
    return 1 if wrong or not count else 0


def find_driver(name, program):
    """Return the recorded results of the driver of this machine, or end with the reason why there are none."""
    if name not in DRIVERS:
        sys.exit(f"ask.py: \"{name}\" is none of the drivers {', '.join(DRIVERS)}")
    library = subprocess.run([program, "--library"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    library = pathlib.Path(library.removeprefix("# "))
    version = re.search(r"so\.\d+\.\d+\.(\d+)\.\d+$", library.name)
    if not version:
        skip(name, f"{library} has no version of rdma-core in its name")
    if not list(library.parent.glob(f"libibverbs/lib{name.removesuffix('-iwarp')}-rdmav*.so")):
        skip(name, f"rdma-core {version[1]} has no such driver on this machine")
    path = FOLDER / "recorded" / version[1] / f"{name}.tsv"
    if not path.exists() and sys.argv[-1] != "--record":
        skip(name, f"no results of rdma-core {version[1]} are recorded")
    return path


def run_on_driver(name, program, stub):
    with tempfile.TemporaryDirectory() as root:
        make_sysfs(pathlib.Path(root), name)
        return run([program], {"LD_PRELOAD": stub, "STUB_DRIVER": name, "SYSFS_PATH": root})[1]


def ask_driver(name, questions, stub, *options):
    path = find_driver(name, questions)
    got = run_on_driver(name, questions, stub)
    if options == ("--record",):
        write(path, "\n".join("\t".join(row) for row in got.items()))
    return report([text for _, text in differences(table(path.read_text(encoding="utf-8")), got)], len(got))


def ask_library(name, library, stub):
    path = find_driver(name, library)
    recorded = table(path.read_text(encoding="utf-8"))
    got = run_on_driver(name, library, stub)
    wrong = [f"{case}: {result}" for case, result in got.items() if case not in recorded and result != "equal"]
    compared = {question: recorded[question] for question in got if question in recorded}
    wrong += [text for _, text in differences(compared, {question: got[question] for question in compared})]
    return report(wrong, len(got) if compared else 0)


def ask_profile(name, rdma_sim, questions):
    if name not in PROFILES:
        sys.exit(f"ask.py: \"{name}\" is none of the profiles {', '.join(PROFILES)}")
    path = max((FOLDER / "recorded").glob(f"*/{PROFILES[name]}.tsv"), key=lambda path: int(path.parent.name))
    known = [line.split("\t") for line in (FOLDER / "known.tsv").read_text(encoding="utf-8").splitlines()
             if line and not line.startswith("#")]
    # The stub replaces Linux, which refuses the posts of a child to these two devices.
    strong = ["--strong", "fork"] if name in ("rxe", "siw") else []
    got = run([rdma_sim, "--device", name, *strong, questions])[1]
    recorded = table(path.read_text(encoding="utf-8"))
    if recorded.pop("completions", None):  # the stub does not write those of this driver
        got = {question: result for question, result in got.items() if not question.startswith("completion")}
    if devices.read_devices()[name]["transport"] == "iWARP":  # questions.c does not ask these of the fabric
        recorded = {question: result for question, result in recorded.items()
                    if not question.endswith("state RTR") and not question.startswith("completion")}
    wrong, used = [], set()
    for question, text in differences(recorded, got):
        reasons = [row for row in map(tuple, known)
                   if fnmatch.fnmatch(name, row[0]) and fnmatch.fnmatch(question, row[1])]
        used.update(reasons)
        if reasons:
            print(f"known: {text}: {reasons[0][2]}")
        else:
            wrong.append(text)
    unused = [row for row in map(tuple, known) if row[0] == name and row not in used]
    wrong += [f"known.tsv: {' '.join(row[:2])}: no result differs" for row in unused]
    return report(wrong, len(got))


if __name__ == "__main__":
    if len(sys.argv) < 5 or sys.argv[1] not in ("driver", "profile", "library"):
        sys.exit(__doc__.strip())
    sys.exit({"driver": ask_driver, "profile": ask_profile, "library": ask_library}[sys.argv[1]](*sys.argv[2:]))
