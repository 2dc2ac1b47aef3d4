# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Compares the waits, codes, statuses and events in the pages of section 7 with contract/ and the headers."""

import pathlib
import re

import contract
import public_header
import tool_checks


VERBS = pathlib.Path("/usr/include/infiniband/verbs.h")
READS_NOTHING = "errno in {EAGAIN"
BLOCKS = re.compile(r"(\w+)(?:\(\)| function) blocks (?:until|without a time limit)")


def waiting():
    """{function: (its code if nothing is available, True if a signal causes the same code)}"""
    return {name: (row["code"], "EINTR" in row["condition"])
            for name, rows in contract.documented_errors().items()
            for row in rows if READS_NOTHING in row["condition"]}


def items(lines):
    """(heading, text) of each entry of a list, both as words."""
    found = []
    for line in lines:
        if line.macro == "It":
            found.append((line.args, []))
        elif found:
            found[-1][1].append(line.text())
    return [(head, " ".join(text)) for head, text in found]


def entry(page, part, phrase):
    """The functions of the entry that contains the phrase."""
    return {name for head, text in items(page.part(part)) if phrase in text
            for macro, name in zip(head, head[1:]) if macro == "Xr"}


def check_waits(book):
    """The functions that block, and their codes, are those of the table."""
    functions = waiting()
    current = functions.keys() - contract.deprecated(book.source)
    pages = {page.name: page for page in book.pages}
    overview, limits = pages["librpma.7"], pages["rpma_limits.7"]
    rows = [line.args for line in overview.part("Blocking and non-blocking use") if line.args[:1] == ["Xr"]
            and "Ta" in line.args]
    if {row[1]: f"RPMA_E_{row[-1]}" for row in rows} != {name: functions[name][0] for name in current}:
        yield f"man/librpma.7: the table of functions that block is not that of contract/errors.tsv: {sorted(current)}"
    signalled = {name for name in current if functions[name][1]}
    for part, phrase, wanted in (("Time", "Wait without a limit", current),
                                 ("What signals do", "RPMA_E_NO_COMPLETION", signalled),
                                 ("What signals do", "RPMA_E_PROVIDER , and errno is EINTR . The log reports", current - signalled)):
        if (found := entry(limits, part, phrase)) != wanted:
            yield f"man/rpma_limits.7: {part}: {phrase!r}: {sorted(found ^ wanted)}"
    named = set()
    for page in book.pages:
        text = " ".join(line.text() for line in page.section("ATTRIBUTES"))
        named |= {page.names()[0] if name == "The" else name for name in BLOCKS.findall(text)}
    for name in sorted(named ^ functions.keys()):
        yield f"ATTRIBUTES of {name}: whether it blocks differs from contract/errors.tsv"


def check_addresses(book):
    """The pages about a changed link address name each function that reports it as RPMA_E_NO_EVENT."""
    wanted = {name for name, rows in contract.documented_errors().items() for row in rows
              if row["code"] == "RPMA_E_NO_EVENT" and "ADDR_CHANGE" in row["condition"]}
    for page in book.pages:
        for at, line in enumerate(page.lines):
            near = page.lines[max(0, at - 8):at + 9]
            if page.name in ("rpma_failures.7", "rpma_network.7") and "RPMA_E_NO_EVENT" in line.args:
                for name in sorted(wanted - {name for _, name, _ in page.references(near)}):
                    yield f"man/{page.name}:{line.number}: RPMA_E_NO_EVENT: {name} is missing"


def statuses():
    """The statuses of completions, in the order of their numbers."""
    if not VERBS.exists():
        raise tool_checks.Missing("infiniband/verbs.h is not installed: run tools/setup library")
    return re.findall(r"IBV_WC_\w+", re.search(r"enum ibv_wc_status \{(.*?)\}", VERBS.read_text(encoding="utf-8"), re.S).group(1))


def named(source):
    """{part of rpma_errors(7): the codes, statuses or events that it explains}"""
    types = contract.read_table(source / "contract/types.tsv")
    events = {name: {row["member"] for row in types if (row["kind"], row["name"]) == ("enumerator", name)}
              for name in ("rpma_conn_event", "rpma_peer_event_type")}
    return {"Codes": {code["name"] for code in public_header.read_codes()},
            "Statuses of completions": set(statuses()),
            "Events of a connection": events["rpma_conn_event"],
            "Events of a device": events["rpma_peer_event_type"]}


def check_codes(book):
    """rpma_errors(7) has each code, each status with its number, each event, and each error number with advice."""
    page = next(page for page in book.pages if page.name == "rpma_errors.7")
    for part, wanted in named(book.source).items():
        heads = [word for head, _ in items(page.part(part)) for word in head]
        found = [word for word in heads if re.fullmatch(r"(?:RPMA|IBV)_\w+", word)]
        for name in sorted(wanted ^ set(found)) + sorted({name for name in found if found.count(name) > 1}):
            yield f"man/{page.name}: {part}: {name} is {'missing' if name in wanted - set(found) else 'wrong'}"
    shown = [(name, number) for head, _ in items(page.part("Statuses of completions"))
             for name, number in zip(head, head[2:] + ["", ""]) if name.startswith("IBV_WC_")]
    for name, number in shown:
        if number != (wanted := f"({statuses().index(name)})"):
            yield f"man/{page.name}: {name} needs its number {wanted}"
    table = re.search(r"causes\[\] = \{(.*?)\n\};", (book.source / "src/verbs/causes.cc").read_text(encoding="utf-8"), re.S).group(1)
    heads = {word for head, _ in items(page.part("Error numbers of the provider")) for word in head}
    for name in sorted(set(re.findall(r"\bE[A-Z0-9]+\b", table)) - heads):
        yield f"man/{page.name}: Error numbers of the provider: {name} is missing, src/verbs/causes.cc has advice for it"
