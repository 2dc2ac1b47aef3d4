#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The tables of rpma-check, which the build makes of those of contract/ and sim/tests/conformance.

tables.py devices    the devices, by driver of the kernel and transport
tables.py attributes the properties of each device, unless they depend on the unit
tables.py expected   the results of the questions: the records, and expected.tsv
tables.py refusals   the functions that refuse NULL
tables.py write FOLDER   expected.tsv, of FOLDER/DEVICE.json: reports of runs on rdma-sim
"""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "contract"), str(ROOT / "sim" / "device")]
import devices as table  # pylint: disable=wrong-import-position
import errors  # pylint: disable=wrong-import-position

RECORDS = ROOT / "sim" / "tests" / "conformance"
HEADER = "# SPDX-License-Identifier: BSD-3-Clause\n# Copyright 2026, the librpma developers\nquestion\tdevices\tresult\n"
# Results that depend on the unit, on firmware, or on the moment.
OF_THE_MOMENT = re.compile(r"concurrent: 512 bytes are whole|unfenced: a write passes a read|path: .*|port down: .*|"
                           r"atomics: adds are exact beside the processor|full queue: (entries|status)")
OF_THE_UNIT = re.compile(r"device: max_.*|(qp|srq|cq): .*(entries|elements|posted|bytes).*|request: inline bytes.*|"
                         r"full queue: entries|" + OF_THE_MOMENT.pattern.replace("(entries|status)", "entries"))
SOFTWARE = ("rxe", "siw")  # their results are those of the record


def simulated():
    return [name for name, device in table.read_devices().items() if device["simulated"] == "yes"]


def hardware():
    return [name for name in simulated() if name not in SOFTWARE]


def record(*names):
    """{question: result} of files of sim/tests/conformance."""
    found = {}
    for name in names:
        for line in (RECORDS / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                question, result = line.split("\t")
                found[question] = result
    return found


def rows():
    """(question, device or "*", result, source)"""
    for question, result in record("conformance_rxe.tsv", "exchange_rxe.tsv").items():
        is_of_unit = OF_THE_UNIT.fullmatch(question)
        yield question, "*", "any" if is_of_unit else result, "record of rdma_rxe"
        for device in SOFTWARE if is_of_unit else ():
            yield question, device, result, "record of rdma_rxe"
    for question, result in record("conformance_siw.tsv", "exchange_siw.tsv").items():
        yield question, "siw", result, "record of siw"
    for line in (HERE / "expected.tsv").read_text(encoding="utf-8").splitlines()[3:]:
        question, devices, result = line.split("\t")
        for device in hardware() if devices == "hardware" else devices.split():
            yield question, device, result, "sim/device/devices.tsv and rdma-sim"


def literal(text):
    return json.dumps(text, ensure_ascii=True)


def expected():
    for row in rows():
        print(f"{{{', '.join(map(literal, row))}}},")


def devices():
    for name, device in table.read_devices().items():
        transport = device["transport"]
        print(f"{{{literal(device['kernel_driver'])}, {literal(transport)}, {literal(name)}}},")


def depends_on_unit(row):
    return all(re.match("example|assumed", source) for source in row.sources) or \
        table.of_table(row.value) != table.of_fabric(row.value) or row.value.startswith(("+", "max_", "device"))


def attributes():
    named = {}
    for row in table.read_rows():
        for device in table.named(row) if row.patterns != ["*"] else []:
            named.setdefault((device, row.property), row)
    for row in table.read_rows():
        if row.property not in table.attributes():
            continue
        for device in table.named(row):
            if named.get((device, row.property), row) is not row or depends_on_unit(row) or \
                    table.read_devices()[device]["has_rc"] == "no":
                continue
            value = table.reported(device)[row.property]
            text = {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
            source = row.sources[0][:120]
            print(f"{{{literal(device)}, {literal(row.property)}, {literal(text)}, {literal(source)}}},")


def refusals():
    """The functions whose first condition is a NULL argument."""
    found = {row["function"]: True for row in errors.read_errors()
             if row["code"] == "RPMA_E_INVAL" and re.match(r"\w+ == NULL( \|\||$)", row["condition"])
             and row["decision"] != "never" and not row["function"].startswith("rpma_log")}
    old = ("rpma_conn_completion_get", "rpma_conn_completion_wait", "rpma_conn_get_completion_fd",
           "rpma_write_atomic", "rpma_cq_get_completion")
    for function in found:
        if function not in old:
            print(f"REFUSES_NULL({function})")


def result_of(question, device, result):
    """The result to write: real devices may differ in what depends on the unit."""
    pattern = OF_THE_MOMENT if device in SOFTWARE else OF_THE_UNIT
    return "any" if pattern.fullmatch(question) else result


def write(folder):
    """Writes the rows that the records do not have: a row for all devices, and those that differ."""
    base = record("conformance_rxe.tsv", "exchange_rxe.tsv")
    siw = record("conformance_siw.tsv", "exchange_siw.tsv")
    found = {}
    for device in simulated():
        report = json.loads((pathlib.Path(folder) / f"{device}.json").read_text(encoding="utf-8"))
        for question, result in report["answers"].items():
            if not result.startswith("not asked:"):
                found.setdefault(question, {})[device] = result_of(question, device, result)
    lines = []
    for question, results in found.items():
        of_devices = {}
        for device, result in results.items():
            recorded = siw.get(question) if device == "siw" and question in siw else base.get(question)
            if device in SOFTWARE and recorded is not None and result != "any":
                continue
            of_devices.setdefault(result, []).append(device)
        common = base.get(question) or max(of_devices, key=lambda result: len(of_devices[result]), default=None)
        if question not in base and common is not None:
            lines.append(f"{question}\t*\t{common}")
        lines += [f"{question}\t{'hardware' if names == hardware() else ' '.join(names)}\t{result}"
                  for result, names in of_devices.items()
                  if result != common and not (question in base and result == "any")]
    (HERE / "expected.tsv").write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    makers = {"devices": devices, "attributes": attributes, "expected": expected, "refusals": refusals}
    if len(sys.argv) == 3 and sys.argv[1] == "write":
        write(sys.argv[2])
    elif len(sys.argv) == 2 and sys.argv[1] in makers:
        print("// Made by programs/check/tables.py.")
        makers[sys.argv[1]]()
    else:
        sys.exit(__doc__.strip())
