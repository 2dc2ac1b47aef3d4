#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers

"""The devices of devices.tsv, and the tables that are made of them.

devices.py fabric   the profiles of rdma-sim: C, for profile.h
devices.py drivers  the drivers, and the traps of each: C++, for programs that warn of them
devices.py replay   what a report of a device changes in a profile: C++, for run/report.cc
"""

import csv
import fnmatch
import functools
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = re.compile(r"(?:linux|rdma-core)(?:-[\d.]+)? \S+(?: but \S+/)?: .+|lab \w+:.*|run .+|conformance|"
                    r"(?:InfiniBand|assumed): .+|example|choice|report [\w-]+")
# Properties of pages, programs and tests, which no profile has.
NOT_OF_PROFILES = ("library", "row", "simulated", "has_rc", "lacks_inline_silently", "joins_write_and_message",
                   "reads_empty_list", "retry_count", "negates_errors")
REQUIRED = ("library", "kernel_driver", "prefix", "transport")  # of each device: no default is right
NEGATED = ("full_queue_error", "inline_error", "sge_error", "opcode_error", "invalid_error", "early_error",
           "failed_error", "receive_sge_error", "srq_error", "srq_recv_error")
# Of these, reports of devices have the others; sizing is code.
NOT_OF_REPORTS = ("library", "row", "simulated", "kernel_driver", "prefix", "transport", "sizing", "negates_errors")
# Limits that follow from others.
SHARED_LIMITS = ("max_send_sge", "max_recv_sge", "attr.max_srq", "attr.max_srq_wr", "attr.max_srq_sge")
# Properties of reports that each device of the fabric has alike.
FIXED = {"attr.phys_port_cnt": 1, "has_rc": 1, "lacks_inline_silently": 0, "joins_write_and_message": 0,
         "reads_empty_list": 0}
BITS = ("attr.device_cap_flags", "ud_odp_caps", "cq_wc_flags", "cq_refused_mask", "cq_refused_flags", "events",
        "sent_members", "received_members", "datagram_members")
# The prefixes of constants of C, by property.
PREFIXES = {"atomic_cap": "IBV_ATOMIC_", "device_cap_flags": "IBV_DEVICE_", "source_error": "IBV_WC_",
            "receive_error": "IBV_WC_", "length_error": "IBV_WC_", "rounding": "SIM_", "failed_send": "SIM_WC_",
            "sent_length": "SIM_LENGTH_",
            "sent_members": "SIM_MEMBER_", "received_members": "SIM_MEMBER_", "datagram_members": "SIM_MEMBER_",
            "failed_receive": "SIM_WC_", "failed_length": "SIM_LENGTH_", "vendor_err": "SIM_VENDOR_ERR_", "cq_wc_flags": "IBV_WC_EX_", "cq_refused_mask": "IBV_CQ_INIT_ATTR_MASK_",
            "cq_refused_flags": "IBV_CREATE_CQ_ATTR_", "events": "IBV_EVENT_",
            "ud_odp_caps": "IBV_ODP_SUPPORT_"}
TRANSPORTS = {"IB": "SIM_INFINIBAND", "RoCE": "SIM_ROCE", "iWARP": "SIM_IWARP"}
# How the device uses the timeout of a program; firmware and limits are not simulated.
TIMEOUTS = {"ignored": "SIM_TIMEOUT_IGNORED", "TCP": "SIM_TIMEOUT_OF_TCP"}
# The traps for programs: the name of each, the property, its values.
TRAPS = (("NO_RC", "has_rc", "no"), ("NO_FENCE", "fences_writes", "no"), ("NO_INLINE", "max_inline", "no"),
         ("NO_TIMEOUT", "timeout", "ignored TCP"), ("NO_SRQ", "has_srq", "no"),
         ("NO_SEND_IMM", "has_send_imm", "no"), ("NO_WRITE_IMM", "has_write_imm", "no"),
         ("OWN_TIMEOUT", "timeout", "firmware"), ("LIMITED_TIMEOUT", "timeout", "up_to_4.3_s"),
         ("ENDLESS_RETRIES", "retry_count", "yes,_not_7"), ("JOINED_POSTS", "joins_write_and_message", "yes"),
         ("READ_OF_NOTHING", "reads_empty_list", "yes"), ("LOST_NATIVE", "has_native_flush", "yes"))


class Row:
    """Devices with the same value of a property, and where the value is from."""

    def __init__(self, number, row):
        self.where = f"device/devices.tsv:{number}"
        self.property, self.patterns = row["property"], row["devices"].split()
        self.value, self.sources = row["value"], row["sources"].split(" | ")

    def fails(self, reason):
        sys.exit(f"{self.where}: {self.property}: {reason}")


@functools.cache
def read_rows():
    with open(HERE / "devices.tsv", encoding="utf-8", newline="") as table:
        lines = [(number, line) for number, line in enumerate(table, 1) if not line.startswith("#")]
    reader = csv.DictReader((line for _, line in lines), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [Row(lines[index][0], row) for index, row in enumerate(reader, 1)]


@functools.cache
def read_devices():
    """{device: {property: value}}. A row of all devices (*) has the values of those that no other row names."""
    found = {name: {} for row in read_rows() if row.property == "library" for name in row.patterns}
    for row in read_rows():
        for source in row.sources:
            if not SOURCE.fullmatch(source):
                row.fails(f"\"{source}\" is not in the form of sim/device/columns.md")
            if source.startswith("report ") and not (HERE / "reports" / f"{source[7:]}.json").is_file():
                row.fails(f"reports/ has no {source[7:]}.json")
        for name in named(row):
            values, (added, value) = found[name], (row.value.startswith("+ "), row.value.removeprefix("+ "))
            if row.patterns == ["*"]:
                values.setdefault(row.property, value)
            elif added:
                values[row.property] = values.get(row.property, "") + f" {value}"
            elif values.get(f"of {row.property}"):
                row.fails(f"{name} has a value in an earlier row")
            else:
                values[row.property], values[f"of {row.property}"] = value, True
    for name, values in found.items():
        if missing := [each for each in REQUIRED if each not in values]:
            sys.exit(f"device/devices.tsv: {name} has no {', '.join(missing)}")
    return {name: {key: value for key, value in values.items() if not key.startswith("of ")}
            for name, values in found.items()}


def named(row):
    """The devices of a row."""
    names = [name for each in read_rows() if each.property == "library" for name in each.patterns]
    found = [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in row.patterns)]
    for pattern in row.patterns:
        if not fnmatch.filter(names, pattern):
            row.fails(f"there is no device \"{pattern}\"")
    return found


def of_table(value):
    """The value without the example of the fabric, which is in parentheses."""
    return re.sub(r" \(.*\)$", "", value)


def of_fabric(value):
    example = re.fullmatch(r".+ \((.*)\)", value)
    return example[1] if example else value


def kernel_drivers():
    """The drivers of the kernel that have another name than the library."""
    found = {}
    for device in read_devices().values():
        if device["kernel_driver"] != device["library"] and device["library"] != "rxe":
            found.setdefault(device["library"], {})[device["kernel_driver"]] = True
    return [f"{', '.join(names)} ({library})" for library, names in found.items()]


def drivers_with(condition):
    """The libraries whose devices have a property with a value: "has_srq=yes"."""
    key, _, wanted = condition.partition("=")
    return list(dict.fromkeys(device["library"] for device in read_devices().values()
                              if of_table(device.get(key, "no")) == wanted))


def cells(key):
    """{row of a table of drivers: the values of its devices}"""
    found = {}
    for device in read_devices().values():
        values = found.setdefault(device.get("row", device["library"]), [])
        if (value := of_table(device[key])) not in values:
            values.append(value)
    return {name: ", ".join(value for value in values if value != "no") or "no" for name, values in found.items()}


# ---- reports of devices ----------------------------------------------------------------------


@functools.cache
def attributes():
    """{property of a report: the kind of its value, a definition of programs/check/report.schema.json}"""
    values = {}
    for device in read_devices().values():
        for key, value in device.items():
            if key not in NOT_OF_REPORTS:
                values.setdefault(key, set()).add(of_fabric(value))
    return {key: kind(key, found) for key, found in values.items()}


def kind(key, values):
    if values <= {"yes", "no"}:
        return "yes_no"
    if key in BITS:
        return "bits"
    if key in ("timeout", "retry_count"):
        return "behaviour"
    if key.removeprefix("attr.") in PREFIXES:
        return "constant"
    return "error" if key.endswith("_error") else "number"


def reported(name):
    """The attributes of the report of a device, in the order of the table."""
    device, found = read_devices()[name], {}
    for key, kind_of_value in attributes().items():
        value = resolved(key, device)
        if kind_of_value == "yes_no":
            found[key] = value == "yes"
        elif kind_of_value == "number":
            found[key] = number(value)
        elif kind_of_value == "error" and key in NEGATED and device["negates_errors"] == "yes" and value[0] == "E":
            found[key] = f"-{value}"
        else:
            found[key] = value
    return found


def resolved(key, device):
    """The value for the fabric, without words for another property."""
    value = of_fabric(device.get(key, "no"))
    if key.startswith("attr.max_srq") and of_fabric(device["has_srq"]) == "no":
        return "0"
    others = {"max_sge": "attr.max_sge", "max_recv_sge": "max_recv_sge"}
    return resolved(others[value], device) if value in others else value


def number(expression):
    """The value of a constant expression of C."""
    return eval(expression.replace("sizeof(struct ibv_sge)", "16"), {"UINT64_MAX": 2**64 - 1})


# ---- tables of C ----------------------------------------------------------------------------


def in_c(key, value, device):
    """The value of a member of struct sim_profile."""
    plain, value = key.removeprefix("attr."), of_fabric(value)
    if plain in ("kernel_driver", "prefix"):
        return f'"{value}"'
    if plain == "transport":
        return TRANSPORTS[value]
    if plain == "timeout":
        return TIMEOUTS.get(value, "SIM_TIMEOUT_AS_REQUESTED")
    if plain == "sizing":
        return "NULL" if value == "no" else f"&{value}{device['library']}"
    if value in ("yes", "no"):
        return {"yes": "true", "no": "false"}[value]
    if plain in NEGATED and device["negates_errors"] == "yes":
        return f"-{value}"
    if plain in PREFIXES:
        negation, names = ("~(unsigned)", value[8:]) if value.startswith("all but ") else ("", value)
        prefix = PREFIXES[plain]
        words = [f"{prefix}{name}" for name in names.split() if name != "none"] or ["0"]
        if plain == "events":
            words = [f"1ULL << {name}" for name in words]
        if plain == "cq_wc_flags":
            words = ["IBV_WC_STANDARD_FLAGS" if name.endswith("_STANDARD") else name for name in words]
        return negation + " | ".join(words) if len(words) == 1 else f"{negation}({' | '.join(words)})"
    return value


def profile(name, device):
    """The profile of a device: limits that follow from others are not in the table."""
    values = {key: value for key, value in device.items() if key not in NOT_OF_PROFILES}
    values |= {key: resolved(key, device) for key in SHARED_LIMITS}
    values["attr.max_qp_init_rd_atom"] = values["attr.max_qp_rd_atom"]
    values["retry_count_7_is_endless"] = "yes" if device["retry_count"] == "yes, not 7" else "no"
    values["driver"] = values.pop("kernel_driver")
    members = ",\n     ".join(f".{key} = {in_c('kernel_driver' if key == 'driver' else key, value, device)}"
                              for key, value in values.items())
    return f"    {{.name = \"{name}\",\n     .attr.fw_ver = \"1.0\",\n     {members}}},\n"


def fabric():
    profiles = [profile(name, device) for name, device in read_devices().items() if device["simulated"] == "yes"]
    return f"const struct sim_profile sim_profiles[] = {{\n{''.join(profiles)}}};\n" \
           "const size_t sim_profile_count = sizeof(sim_profiles) / sizeof(sim_profiles[0]);\n"


def drivers():
    """A row for each driver of the kernel, and for each transport if the traps differ."""
    rows = {}
    for device in read_devices().values():
        transport = "iWARP" if device["transport"] == "iWARP" else "InfiniBand"
        traps = [trap for trap, key, values in TRAPS
                 if of_table(device[key]).replace(" ", "_") in values.split()]
        traps = traps[:1] if "NO_RC" in traps else traps
        rows.setdefault(device["kernel_driver"], {}).setdefault(
            (device["library"], ", ".join(traps)), []).append(transport)
    lines = [f"    {{\"{driver}\", \"{transports[0] if len(found) > 1 else ''}\", \"{name}\", {{{traps}}}}},\n"
             for driver, found in rows.items() for (name, traps), transports in found.items()]
    return "".join(lines)


def replay():
    """The macros of sim/run/report.cc for each property, and the rows of answers.tsv."""
    lines = []
    for key, kind_of_value in attributes().items():
        member = "retry_count_7_is_endless" if key == "retry_count" else key
        if key in FIXED:
            lines.append(f"FIXED({kind_of_value.upper()}, \"{key}\", {FIXED[key]})")
            continue
        names = values_in_c(key) if kind_of_value in ("constant", "bits", "behaviour") else {}
        lines.append(f"MEMBER({kind_of_value.upper()}, \"{key}\", {member}"
                     + "".join(f', {{"{name}", {value}}}' for name, value in names.items()) + ")")
    answers = []
    with open(HERE / "answers.tsv", encoding="utf-8", newline="") as table:
        rows = csv.DictReader((line for line in table if not line.startswith("#")), delimiter="\t", quoting=csv.QUOTE_NONE)
        for row in rows:
            results = [each.rpartition("=") for each in row["results"].split(" | ")]
            form = results[0][2] if not results[0][1] else "WORDS"
            words = "".join(f', {{"{word}", {"true" if value == "yes" else "false"}}}' for word, _, value in results if word)
            answers.append(f'ANSWER({form.replace(" ", "_")}, "{row["property"]}", "{row["question"]}"{words})')
    return "\n".join(["const Attribute ATTRIBUTES[] = {", *(f"    {line}," for line in lines), "};",
                      "const Answer ANSWERS[] = {", *(f"    {line}," for line in answers), "};", ""])


def values_in_c(key):
    """{name in a report: value of C}"""
    if key == "retry_count":
        return {of_fabric(device[key]): str(device[key] == "yes, not 7").lower() for device in read_devices().values()}
    names = {}
    for device in read_devices().values():
        for name in [of_fabric(device[key])] if key not in BITS else device[key].removeprefix("all but ").split():
            if name != "none":
                names[name] = in_c(key, name, device)
    return names


if __name__ == "__main__":
    made = {"fabric": fabric, "drivers": drivers, "replay": replay}.get(sys.argv[1] if len(sys.argv) == 2 else None)
    if not made:
        sys.exit(__doc__.strip())
    print("// Made by sim/device/devices.py of sim/device/devices.tsv.\n")
    if made is fabric:
        print('#include "profile.h"\n\n#include <errno.h>\n')
    print(made(), end="")
