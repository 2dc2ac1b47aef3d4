# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Variants of the built library that handle completions of old programs wrongly."""

import json
import shlex

import common

SOURCE = "compat/completion.cc"
UNIT = "exports.cc" # includes it
# Release, program that has to fail, text of the source, its replacement.
MUTANTS = [
    ("0.9.0", "release-0.9.0", "    cmpl.op_status = wc.status;\n}\n",
     "    cmpl.op_status = wc.status;\n    cmpl.imm = 0;\n}\n"),
    ("0.9.0", "completions", "    if (!op || *op == RPMA_OP_RECV_RDMA_WITH_IMM)", "    if (!op)"),
    ("0.10.0", "completions", "    cmpl.flags = wc.wc_flags;", "    // no flags"),
    ("0.11.0", "completions", "    case WC_ATOMIC_WRITE:\n", ""),
]


def entry_of(build, source):
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    return next(entry for entry in commands if entry["file"].endswith(f"src/{source}")
                and entry["output"].startswith(f"src/{common.SONAME}.p/"))


def command_of(entry):
    """The words of the compiler's call, without the precompiled header: that is of no use where an
    option is another one."""
    words, kept = iter(shlex.split(entry["command"])), []
    for word in words:
        if word in ("-include", "-include-pch"):
            next(words)
        elif word != "-fpch-preprocess":
            kept.append(word)
    return kept


def make(build, directory, old, new, compiler):
    """Writes directory/librpma.so.0 from the objects of the build, one of them spoiled."""
    entry = entry_of(build, UNIT)
    text = (common.ROOT / "src" / SOURCE).read_text(encoding="utf-8")
    if old not in text:
        raise common.Fault(f"nothing to spoil: {old!r} is gone from {SOURCE}")
    spoiled, target = directory / UNIT, directory / "spoiled.o"
    (directory / "completion.cc").write_text(text.replace(old, new, 1), encoding="utf-8")
    unit = (common.ROOT / "src" / UNIT).read_text(encoding="utf-8")
    spoiled.write_text(unit.replace(SOURCE, "completion.cc"), encoding="utf-8")
    words = command_of(entry)
    words[words.index("-c") + 1] = str(spoiled)
    words[words.index("-o") + 1] = str(target)
    common.run([*words, "-O0", f"-I{common.ROOT / 'src'}"], cwd=entry["directory"])
    objects = sorted((build / "src" / f"{common.SONAME}.p").glob("*.o"))
    same = [path for path in objects if path != build / entry["output"]]
    sanitize = [word for word in shlex.split(compiler) if word.startswith("-fsanitize")]
    common.run(["c++", "-shared", *sanitize, *same, target, f"-Wl,-soname,{common.SONAME}",
                "-Wl,--as-needed", f"-Wl,--version-script,{build / 'src' / 'librpma.map'}",
                "-libverbs", "-lrdmacm", "-o", directory / common.SONAME])
