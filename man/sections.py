# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The sections ATTRIBUTES and RETURN VALUES of a page of functions: from contract/attributes.tsv and the prototypes.

A page adds sentences of its own in a section of that name. A page contains the whole section if the table has
"page", or if its section begins with what a function returns.
"""

import csv
import fnmatch
import pathlib
import re

TABLE = pathlib.Path(__file__).resolve().parent.parent / "contract" / "attributes.tsv"
DELETING = re.compile(r"_(delete|dereg|shutdown)$")
CONSUMING = re.compile(r"_(delete|dereg|shutdown|connect|reject)$")
OBJECTS = {"cfg": "a configuration", "pcfg": "a configuration", "srq": "a queue", "cq": "a CQ", "peer": "a peer",
           "mr_local": "a region", "mr_remote": "a remote region"}
MANY = 4  # more outputs are not listed


def read_attributes():
    with TABLE.open(encoding="utf-8", newline="") as table:
        return [(row["functions"].split(", "), row["blocks"], row["threads"]) for row in csv.DictReader(table, delimiter="\t")]


def attributes_of(name, rows):
    """(blocks, threads) of a function, from the row that names it, or else the only row with a pattern for it."""
    found = {tuple(row): name in patterns for patterns, *row in rows if any(fnmatch.fnmatchcase(name, each) for each in patterns)}
    exact = [row for row, is_named in found.items() if is_named or len(found) == 1]
    if len(exact) != 1:
        raise SystemExit(f"contract/attributes.tsv: {len(exact)} rows for {name}")
    return exact[0]


def several(count, one, two, more):
    return (one, two, more)[min(count, 3) - 1]


def attributes(functions, declared, rows):
    """The generated sentences, or None if the page has all."""
    kinds = {attributes_of(name, rows) for name in functions}
    if len(kinds) > 1 or kinds & {(blocks, "page") for blocks in ("no", "posts", "kernel", "page")}:
        return None
    (blocks, _), = kinds
    count = len(functions)
    subject = several(count, "The function is thread-safe", "Both functions are thread-safe", "The functions are thread-safe")
    lines = {
        "no": [subject + several(count, " and does not block.", ", and neither blocks.", ", and none blocks.")],
        "posts": [subject + several(count, " and does not block: it", ", and neither blocks: each", ", and none blocks: each"),
                  "returns as soon as the operation is posted."],
        "kernel": [subject + ".", several(count, "It calls the kernel, and does not wait for the other side.",
                                          *["They call the kernel, and do not wait for the other side."] * 2)],
    }[blocks]
    for name in functions:
        kind = re.search(r"struct rpma_(?:\w+_)?(cfg|pcfg|srq|cq|peer|mr_local|mr_remote) \*", declared[name][1][0])
        if DELETING.search(name) and kind:
            kind = re.search(r"struct rpma_(mr_\w+|\w*?(?:cfg|srq|cq|peer)) ", declared[name][1][0])[1]
            noun = OBJECTS.get(kind) or OBJECTS[kind.rpartition("_")[2]]
            lines.append(f"No thread may use {noun} while another thread {'deregisters' if 'dereg' in name else 'deletes'} it.")
    return "\n".join(lines) + "\n"


def outputs(name, parameters):
    """The names of the parameters that a function writes."""
    found = []
    for position, parameter in enumerate(parameters):
        match = re.fullmatch(r"(.*?)(\*+)(\w+)", parameter)
        if not match or match[1].startswith("const ") or position == 0 and CONSUMING.search(name):
            continue
        is_handle = re.match(r"struct (?:rpma_(?!work|receive|peer_event|completion|conn_private_data)|ibv_context)", match[1])
        if match[2] == "**" or not is_handle and (match[1].strip() != "void" or match[3] == "desc"):
            found.append(match[3])
    return found


def mentioned(names):
    marks = [f".Pf * Fa {name}" for name in names]
    return marks[-1:] if len(marks) == 1 else [f"{mark} ," for mark in marks[:-2]] + [marks[-2], "and", marks[-1]]


def written(functions, declared):
    """The sentence about outputs."""
    by_function = {name: each for name in functions if (each := [output for output in outputs(name, declared[name][1]) if output != "posted"])}
    names = list(dict.fromkeys(output for each in by_function.values() for output in each))
    if not names:
        return []
    consumed = {parameter.rpartition("*")[2] for name in functions if CONSUMING.search(name) for parameter in declared[name][1][:1]}
    if len(by_function) == 1 and consumed & set(names):
        return [f".Fn {next(iter(by_function))}", "writes", *mentioned(names), "on success only."]
    if len(names) > MANY:
        return ["Outputs are written on success only."]
    return [*mentioned(names), f"{'is' if len(names) == 1 else 'are'} written on success only."]


def results(functions, declared):
    """The generated sentences, or None if the functions return no code."""
    if any(declared[name][0] != "int" for name in functions):
        return None
    parameters = " ".join(" ".join(declared[name][1]) for name in functions)
    posts = re.search(r"\bop_context\b|\*posted\b", parameters)
    receives, many = "recv" in functions[0], "*posted" in parameters
    noun = "receive" if receives else "operation"
    subject = several(len(functions), "The function returns", "Both functions return", "The functions return")
    if not posts:
        return "\n".join([f"{subject} 0 on success and a negative error code on failure.", *written(functions, declared)]) + "\n"
    ends = ["the end of the connection"] * any("srq" not in name for name in functions)
    ends += ["the deletion of the shared receive queue"] * any("srq" in name for name in functions)
    return "\n".join([
        f"{subject} 0 if {f'all {noun}s were' if many else f'the {noun} was'} posted, otherwise a negative error code.",
        *[".Pf * Fa posted", "is written in either case, except where a pointer is", ".Dv NULL ."] * many,
        f"{'A receive' if receives else 'An operation'} "
        f"{'that a call was to post before it' if many and not receives else 'whose post'} failed with",
        ".Er RPMA_E_PROVIDER", f"may still {'take a message' if receives else 'be executed'}, so its memory is free only after",
        f"its completion or {' or '.join(ends)}", ".Pq Xr rpma_failures 7 ."]) + "\n"


def own(text, title):
    """(the text without the section of the page, the body of that section or "")"""
    match = re.search(rf"^\.Sh {title}\n((?:(?!\.Sh ).*\n)*)", text, flags=re.M)
    return (text[:match.start()] + text[match.end():], match[1]) if match else (text, "")


def with_sections(text, functions, declared, rows):
    """Adds both sections before ENVIRONMENT or EXAMPLES."""
    text, more_attributes = own(text, "ATTRIBUTES")
    text, more_results = own(text, "RETURN VALUES")
    made_results = None if re.match(r"(The|Both) functions? (always )?returns?\b", more_results) else results(functions, declared)
    start, title, rest = text.partition(".Sh ENVIRONMENT\n" if ".Sh ENVIRONMENT\n" in text else ".Sh EXAMPLES\n")
    return (f"{start}.Sh ATTRIBUTES\n{attributes(functions, declared, rows) or ''}{more_attributes}"
            f".Sh RETURN VALUES\n{made_results or ''}{more_results}{title}{rest}")
