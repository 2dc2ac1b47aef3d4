# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Plants one mistake at a time in the examples and in librpma. A test program must find each one.

A table, whose format is described in mistakes.txt, lists them. A mistake fails the test if its text is not in the file,
or if the program does not find it. rdma_sim_explore() repeats each finding: it must occur again. A configuration that
loses data as documented needs no edits; the name of such a mistake is in its finding.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

PROGRAMS = "client", "server", "reader"
OLD = "-old"  # of programs with a library for headers without native operations


def read_mistakes(path):
    """Yield (name, file, configuration and options, edits); mistakes.txt describes its format."""
    def lines_of(edit, marks):
        return "\n".join(line[2:] for line in edit.split("\n") if line[:1] in marks)

    for block in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
        head, *body = block.strip("\n").split("\n")
        edits = "\n".join(body).split("\n@@\n") if body else []
        yield *head.split(" | "), [(lines_of(edit, "- "), lines_of(edit, "+ ")) for edit in edits]


def plant(tree, name, file, edits):
    path = tree / file
    source = path.read_text(encoding="utf-8")
    for old, new in edits:
        if source.count(old) != 1:
            sys.exit(f"'{name}': this is {source.count(old)} times in {file}, not once:\n{old}")
        source = source.replace(old, new)
    path.write_text(source, encoding="utf-8")


def units_of(source, file):
    """Return the sources of librpma that are compiled and include the file; exports.cc includes others."""
    texts = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in source.rglob("*.[ch][ch]")}
    files = [file]
    for name in files:
        files += [each for each, text in texts.items() if f'"{name}"' in text and each not in files]
    return [each for each in files if each.endswith(".cc") and f'"{each}"' not in texts["exports.cc"]]


class Builder:
    """Builds the modules of an example with a mistake, without optimization."""

    def __init__(self, options, scratch):
        self.options, self.scratch, self.lock = options, scratch, threading.Lock()

    # The compiler can be several words, such as "ccache gcc".
    def run(self, *arguments):
        subprocess.run([*self.options.c, "-std=c99", "-O0", "-fPIC", "-w", *arguments], check=True)

    def compile_library(self, file, tree, arguments):
        """Compile the objects of librpma that contain the changed file."""
        for unit in units_of(tree / "src", file.removeprefix("src/")):
            target = tree / unit.replace("/", "-").replace(".cc", ".o")
            subprocess.run([*self.options.cxx, "-O0", "-fPIC", "-w", "-I", tree / "src", "-I", self.options.include,
                            *arguments, "-c", tree / "src" / unit, "-o", target], check=True)
            yield target

    def home(self, source):
        """Return the directory with the folder of a program."""
        return next(home for home in (self.options.table.parent, self.options.examples)
                    if (home / source.parts[0]).is_dir())

    def compile(self, source, target, tree):
        self.run("-c", tree / source, "-o", target, "-I", self.home(source) / source.parent,
                 "-I", self.options.examples / "common", "-I", self.options.include,
                 "-I", self.options.include.parent / "sim" / "direct")
        return target

    def unchanged(self, source):
        target = self.scratch / str(source).replace("/", "-").replace(".c", ".o")
        with self.lock:
            return target if target.exists() else self.compile(source, target, self.home(source))

    def build(self, tree, file, edits, name):
        """
        Build a module of each program that contains the changed file, and return the folder of all modules. For a file
        of common/ or of librpma, `file` is "FILE of EXAMPLE".
        """
        file, _, example = file.partition(" of ")
        examples, changed = self.options.examples, tree / file
        target = example or file.split("/")[0]
        folder, library = pathlib.Path(target.removesuffix(OLD)), []
        libraries = self.options.libraries
        if file.startswith("src/"):
            shutil.copytree(examples.parent / "src", tree / "src")
            plant(tree, name, file, edits)
            without_native = ["-URPMA_NATIVE_FLUSH", "-URPMA_NATIVE_ATOMIC_WRITE"]
            if target.endswith(OLD):  # its other objects are of such a library, too
                libraries = [each.replace("durability-rpma.a", f"durability-rpma{OLD}.a") for each in libraries]
            library = [*self.compile_library(file, tree, without_native if target.endswith(OLD) else [])]
        else:
            changed.parent.mkdir()
            changed.write_bytes((examples / file).read_bytes())
            plant(tree, name, file, edits)
            self.compile(pathlib.Path(file), tree / "changed.o", tree)
        home = self.home(folder)
        shared = [path.relative_to(base) for base, name in ((home, folder), (examples, "common"))
                  for path in (base / name).glob("*.c") if path.stem not in PROGRAMS]
        for program in PROGRAMS:
            sources = [folder / f"{program}.c", *shared]
            module = f"{target}-{program}.so"
            if (library or pathlib.Path(file) in sources) and (home / sources[0]).exists():
                objects = [tree / "changed.o" if source == pathlib.Path(file) else self.unchanged(source)
                           for source in sources]
                self.run("-shared", "-o", tree / module, *objects, *library, *libraries)
        for module in self.options.modules.glob("*.so"):
            if not (tree / module.name).exists():
                (tree / module.name).symlink_to(module)
        return tree


def explore(options, modules, how):
    """Return the output, the finding, and whether the finding was repeated."""
    found = subprocess.run([options.program, *how.split()], env={**os.environ, "MODULES": str(modules), "SHORTENING": "1"},
                           capture_output=True, text=True)
    finding = re.search(r"^.*: (?:seed|schedule) \d+: (.*)$", found.stdout, flags=re.M)
    return found, finding, finding and "(not found again" not in finding[0]


def look_for(mistake, builder):
    """Return whether the mistake is found, also when its schedule is repeated, and a text about it."""
    name, file, how, edits = mistake
    with tempfile.TemporaryDirectory(dir=builder.scratch) as temporary:
        tree = pathlib.Path(temporary)
        modules = builder.build(tree, file, edits, name) if edits else builder.options.modules
        found, finding, is_repeated = explore(builder.options, modules, how)
    if not finding or not edits and name not in finding[1]:
        return False, f"NOT FOUND with {how}\n{found.stdout[-200:]}{found.stderr}"
    return is_repeated, finding[0] if is_repeated else "found, but not again when it was replayed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mistakes whose names contain this")
    parser.add_argument("--jobs", type=int, default=2)
    for name in ("table", "program", "modules", "examples", "include"):
        parser.add_argument(name, type=lambda path: pathlib.Path(path).resolve())
    arguments, rest = [], sys.argv[1:]
    for _ in range(3):
        split = rest.index("--")
        arguments.append(rest[:split])
        rest = rest[split + 1:]
    options = parser.parse_args(arguments[0])
    options.c, options.cxx, options.libraries = *arguments[1:], rest
    mistakes = [mistake for mistake in read_mistakes(options.table) if options.only in mistake[0]]
    missed = 0
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        builder = Builder(options, pathlib.Path(scratch))
        verdicts = pool.map(lambda mistake: look_for(mistake, builder), mistakes)
        for mistake, (good, words) in zip(mistakes, verdicts):
            print(f"{mistake[0]}: {words}", flush=True)
            missed += not good
    print(f"{len(mistakes) - missed} of {len(mistakes)} mistakes were found")
    return 1 if missed or not mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
