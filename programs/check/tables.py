#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The tables of rpma-check, which the build makes of those of contract/ and sim/tests/conformance.

tables.py devices    the devices, by driver of the kernel and transport
tables.py attributes the properties of each device, unless they depend on the unit
tables.py expected   the results of the questions: the records, and expected.tsv
tables.py refusals   the functions that refuse NULL
tables.py write FOLDER   expected.tsv, of FOLDER/DEVICE.json: reports of runs on rdma-sim
tables.py record FOLDER  recorded.tsv, of FOLDER/DEVICE-DIGIT.json: reports of runs on rxe and siw, in the lab
"""

import functools
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
NOT_RECORDED = "not recorded"
HEADER = "# SPDX-License-Identifier: BSD-3-Clause\n# Copyright 2026, the librpma developers\nquestion\tdevices\tresult\n"
# Results that depend on the unit, on firmware, or on the moment.
OF_THE_MOMENT = re.compile(r"concurrent: 512 bytes are whole|unfenced: a write passes a read|path: .*|port down: .*|"
                           r"atomics: adds are exact beside the processor|full queue: (entries|status)")
# Further ones of rxe and siw: the processor copies the data, byte by byte in an emulated machine. siw completes a write before the read
# that precedes it. The completions of a message without a receive, and of a write to a silent peer, depend on the moment when the other
# side ends the connection.
OF_SOFTWARE = re.compile(OF_THE_MOMENT.pattern + r"|concurrent: aligned 8 bytes are whole")
OF_SIW = re.compile(OF_SOFTWARE.pattern + r"|order: writes and reads|(no|late) receive: .*|silent peer: .*")
# siw completes a request that follows the end of the connection only in the state ERROR: Linux 6.1 to 7.3,
# drivers/infiniband/sw/siw/siw_verbs.c, siw_post_send().
LATE = "none | Work Request Flushed Error"
OF_THE_UNIT = re.compile(r"device: max_.*|(qp|srq|cq): .*(entries|elements|posted|bytes).*|request: inline bytes.*|"
                         r"full queue: entries|" + OF_THE_MOMENT.pattern.replace("(entries|status)", "entries"))
# Their results are recorded. NAME-6.1 has the results of Linux 6.1 that differ from those of the newest kernel of the lab.
SOFTWARE = ("rxe", "siw")
OLD_KERNEL = "-6.1"


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


def read_table(name):
    """(question, device, result) of each row."""
    for line in (HERE / name).read_text(encoding="utf-8").splitlines()[3:]:
        question, names, result = line.split("\t")
        for device in hardware() if names == "hardware" else names.split():
            yield question, device, result


@functools.cache
def evidence():
    """{(question, device): source} of the properties that a result shows; None if the property is assumed."""
    found = {}
    for line in (ROOT / "sim/device/answers.tsv").read_text(encoding="utf-8").splitlines()[3:]:
        key, question, _ = line.split("\t")
        for row in sorted((row for row in table.read_rows() if row.property == key), key=lambda row: row.patterns != ["*"]):
            is_assumed = re.match("example|assumed|librpma", row.sources[0])
            found |= {(question, device): None if is_assumed else row.sources[0][:120] for device in table.named(row)}
    return {key: source for key, source in found.items() if source}


def rows():
    """(question, device or "*", result, source). A later row of a device takes precedence."""
    expected_rows = list(read_table("expected.tsv"))
    base = record("conformance_rxe.tsv", "exchange_rxe.tsv")
    for question, result in base.items():
        is_of_unit = OF_THE_UNIT.fullmatch(question)
        yield question, "*", "any" if is_of_unit else result, f"{NOT_RECORDED}: as rdma_rxe"
    for question, device, result in expected_rows:
        yield question, device, result, f"{NOT_RECORDED}: rdma-sim"
    written = {row[:2]: row[2] for row in expected_rows}
    for (question, device), source in evidence().items():
        if device in hardware() and (question in base or (question, "*") in written):
            result = written.get((question, device), written.get((question, "*"), base.get(question)))
            if result != "any" and (question in base and not OF_THE_UNIT.fullmatch(question) or (question, device) in written):
                yield question, device, result, source
    for device in SOFTWARE:
        siw = record("conformance_siw.tsv", "exchange_siw.tsv") if device == "siw" else {}
        for question, result in (base | siw).items():
            is_late = device == "siw" and question.endswith(": next") and result == "none"
            yield question, device, LATE if is_late else result, f"record of {device}"
    for question, device, result in read_table("recorded.tsv"):
        yield question, device, result, f"record of {device.removesuffix(OLD_KERNEL)}"


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


def text_of(value):
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


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
            text, source = text_of(table.reported(device)[row.property]), row.sources[0][:120]
            print(f"{{{literal(row.property)}, {literal(device)}, {literal(text)}, {literal(source)}}},")


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
    if (question, device) == ("flush of writes: method", "rxe"):  # depends on the build of librpma, too
        return "emulated | native"
    pattern = {"rxe": OF_SOFTWARE, "siw": OF_SIW}.get(device, OF_THE_UNIT)
    # A message before the client is ready is sent again only if the device has a timeout.
    is_lost = question.startswith("early message: of the server") and table.read_devices()[device]["timeout"] == "ignored"
    # The device reads the buffer once it executes the write.
    is_not_inline = question == "inline data: the buffer is free after the post" and \
        table.read_devices()[device]["lacks_inline_silently"] == "yes"
    is_unfenced = question == "fenced write: data of the read" and table.read_devices()[device]["fences_writes"] == "no"
    return "any" if pattern.fullmatch(question) or is_lost or is_not_inline or is_unfenced else result


def save(name, lines):
    (HERE / name).write_text(HEADER + "".join(f"{line}\n" for line in lines), encoding="utf-8")


def write(folder):
    """Writes the results of devices that are not recorded: a row for all devices, and those that differ."""
    base = record("conformance_rxe.tsv", "exchange_rxe.tsv")
    found = {}
    for device in hardware():
        path = pathlib.Path(folder) / f"{device}.json"
        if not path.exists():
            sys.exit(f"tables.py: {path} is missing: rdma-sim --hosts 2 --device {device} rpma-check --once --server 10.77.0.1 :: "
                     f"rpma-check --report {path} 10.77.0.1")
        report = json.loads(path.read_text(encoding="utf-8"))
        for question, result in report["answers"].items():
            if not result.startswith("not asked:"):
                found.setdefault(question, {})[device] = result_of(question, device, result)
    lines = []
    for question, results in found.items():
        of_devices = {}
        for device, result in results.items():
            of_devices.setdefault(result, []).append(device)
        common = base.get(question) or max(of_devices, key=lambda result: len(of_devices[result]))
        if question not in base:
            lines.append(f"{question}\t*\t{common}")
        lines += [f"{question}\t{'hardware' if names == hardware() else ' '.join(names)}\t{result}"
                  for result, names in of_devices.items()
                  if result != common and not (question in base and result == "any")]
    save("expected.tsv", lines)


def record_reports(folder):
    """Writes the results of rxe and siw that the records of sim/tests/conformance do not have."""
    newest, lines = {}, []
    for device in (*SOFTWARE, *(name + OLD_KERNEL for name in SOFTWARE)):
        name, is_old = device.removesuffix(OLD_KERNEL), device.endswith(OLD_KERNEL)
        found = {}
        for path in sorted(pathlib.Path(folder).glob(f"{device}-?.json")):
            report = json.loads(path.read_text(encoding="utf-8"))
            for question, result in report["answers"].items():
                found.setdefault(question, {})[result_of(question, name, result)] = True
            for key, value in report["attributes"].items() if is_old else ():
                if not (key.startswith("attr.") or key in ("vectors", "gid_entries") or value == table.reported(name).get(key)):
                    found.setdefault(key, {})[text_of(value)] = True
        results = {question: "any" if "any" in each else " | ".join(each) for question, each in found.items()}
        known = newest.get(name, record("conformance_rxe.tsv", "exchange_rxe.tsv") | (
            record("conformance_siw.tsv", "exchange_siw.tsv") if name == "siw" else {}))
        lines += [f"{question}\t{device}\t{result}" for question, result in results.items()
                  if not set(result.split(" | ")) <= set(known.get(question, "").split(" | "))]
        newest.setdefault(name, known | results)
    save("recorded.tsv", lines)


if __name__ == "__main__":
    makers = {"devices": devices, "attributes": attributes, "expected": expected, "refusals": refusals}
    writers = {"write": write, "record": record_reports}
    if len(sys.argv) == 3 and sys.argv[1] in writers:
        writers[sys.argv[1]](sys.argv[2])
    elif len(sys.argv) == 2 and sys.argv[1] in makers:
        print("// Made by programs/check/tables.py.")
        makers[sys.argv[1]]()
    else:
        sys.exit(__doc__.strip())
