#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks the sources that comments in the manual, the documents and sim/device/devices.tsv name, in the format
described in man/rpma_devices.7.

sources.py packages                 the packages that the comments name
sources.py paths PACKAGE            the paths that they name
sources.py unpack PACKAGE FOLDER    extracts these paths from the tar archive on standard input
sources.py look FOLDER              searches the words in FOLDER/PACKAGE; ends with 1 if one is missing

"check.py sources" checks that the comments are complete, and "check.py versions" that they name the releases before
and after each release in the text. Both need no package.
"""

import fnmatch
import functools
import pathlib
import re
import sys
import tarfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
RECORD = SOURCE / "tests/man/sources.tsv"  # of the last run of tools/test sources
sys.dont_write_bytecode = True
sys.path.append(str(SOURCE / "sim/device"))

import devices

BELOW = {"linux": "drivers/infiniband/", "rdma-core": "providers/"}
SOURCE_COMMENT = re.compile(r'(?:\.\\" |<!-- )(?i:linux|rdma-core|lab|providers)\b')
SOURCE_FORMAT = re.compile(r'(?:\.\\" |<!-- )?((linux|rdma-core)(?:-([\d.]+))?) (\S+?)(?: but (\S+/))?: (.+?)(?: -->)?')
CASE = re.compile(r'(?:\.\\" )?lab (\w+):(.*)')
RUN = re.compile(r"run (.+)")  # of sim/tests/drivers
ITEM = re.compile(r"(?P<how>no |one )?(?P<word>[\w.]+|'[^']+')(?: = (?P<value>\S+))?")
# A release between two that the comments name: the commit of Linux that changed it.
QUOTE = "'"
COMMIT = re.compile(r'(?:\.\\" |<!-- )linux ([\d.]+), commit ".+"')
# The releases that comments without a version mean.
NEWEST = {"linux": "7.3", "rdma-core": "65"}
# The pages in which each entry needs a source, and their parts with conclusions, which need none.
SOURCED, WITHOUT_SOURCES = ("rpma_devices.7", "rpma_soft_devices.7"), ("What follows for a program", "Versions")
# Parts without entries: each has its sources after the title.
DRIVER = re.compile(r"\.Ss \w+ \(")


class SourceReference:
    """A comment that names words in a file or a folder of a package."""

    def __init__(self, where, match):
        self.where, (self.package, kind, release, path, excluded, items) = where, match.groups()
        self.kind, self.release = kind, number(release or NEWEST[kind])
        self.path = path[1:] if path[0] == "/" else BELOW[kind] + path.removeprefix("./")
        self.excluded = self.path + excluded if excluded else None
        self.items = [(item, ITEM.fullmatch(item)) for item in items.split(", ")]

    def refers_to(self, name):
        """True if the comment refers to this file of the package."""
        if self.path.endswith("/"):
            return name.startswith(self.path) and not (self.excluded and name.startswith(self.excluded))
        return name == self.path

    def faults(self, folder):
        """Yields a line for each word that the named file or folder lacks."""
        files = contents(folder / self.package)
        texts = [text for name, text in files.items() if self.refers_to(name)]
        if not texts:
            yield f"{self.where}: {self.package} has no {self.path}"
            return
        for text, item in self.items:
            word = rf"(?<!\w){re.escape(item['word'].strip(QUOTE))}(?!\w)"
            if item["value"]:
                word += rf"[\s=(]+{re.escape(item['value'])}(?!\w)"
            found = sum(len(re.findall(word, text)) for text in texts)
            if not {None: found > 0, "one ": found == 1, "no ": found == 0}[item["how"]]:
                yield (f"{self.where}: {self.package} {self.path}: not so: {text} "
                       f"(found {found} times)")


def number(release):
    """A release as numbers, so that 6.12 is newer than 6.1."""
    return tuple(map(int, release.split(".")))


@functools.cache
def contents(folder):
    """The text of each file below a folder."""
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8", errors="replace")
            for path in folder.rglob("*") if path.is_file()}


def texts(source):
    """The pages, and the documents that readers decide by."""
    return sorted([*source.glob("man/*.[137]"), *source.glob("sim/man/*.[17]"),
                   *source.glob("docs/*.md"), source / "README.md", source / "examples/README.md"])


def lines(manual):
    """(file and number, line) of the pages and documents."""
    for page in texts(manual.parent):
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            yield f"{page.relative_to(manual.parent)}:{number}", line


def sources():
    """(row, source) of sim/device/devices.tsv."""
    return [(row, source) for row in devices.read_rows() for source in row.sources]


def named(manual):
    matches = [(where, SOURCE_FORMAT.fullmatch(line)) for where, line in lines(manual) if line.startswith((".", "<!-- "))]
    matches += [(row.where, SOURCE_FORMAT.fullmatch(source)) for row, source in sources()]
    return [SourceReference(where, match) for where, match in matches if match]


def cases():
    """The titles of the integration tests' cases, each up to the first inserted value."""
    text = "".join(path.read_text(encoding="utf-8")
                   for path in (SOURCE / "tests/integration/cases").glob("*.py"))
    for group, title in re.findall(r'@case\(\s*"(\w+)",\s*((?:f?"[^"]*"\s*)+)', text):
        yield group, "".join(re.findall(r'"([^"]*)"', title)).split("{")[0]


def check_form(book):
    """All comments that name sources have one form, and each entry about a device has one."""
    known, checked = list(cases()), [(where, line) for where, line in lines(book.source / "man") if line.startswith((".", "<!-- "))]
    checked += [(row.where, source) for row, source in sources()]
    for where, line in checked:
        match, case = SOURCE_FORMAT.fullmatch(line), CASE.fullmatch(line)
        if case:
            title = case[2].strip()
            if not any(group == case[1] and (start.startswith(title) or title.startswith(start))
                       for group, start in known):
                yield f"{where}: tests/integration has no case {case[1]}: {title}"
        elif match:
            for text, item in SourceReference(where, match).items:
                if not item:
                    yield f"{where}: {text!r} is not in the format of the head of man/rpma_devices.7"
        elif SOURCE_COMMENT.match(line) and not COMMIT.match(line):
            yield f"{where}: not in the format of the head of man/rpma_devices.7"
    yield from check_runs()
    for name in SOURCED:
        yield from check_entries(book.source / "man" / name)


def check_runs():
    """Each driver of a row has a result of the question that the row names. rpma_devices(7) lists the drivers of hardware
    that have results."""
    recorded = {}
    for path in (SOURCE / "sim/tests/drivers/recorded").glob("*/*.tsv"):
        questions = [line.split("\t")[0] for line in path.read_text(encoding="utf-8").splitlines()]
        recorded.setdefault(path.stem, []).extend(questions)
    listed = re.search(r"user-space drivers ([^.]*) from rdma-core",
                       " ".join((SOURCE / "man/rpma_devices.7").read_text(encoding="utf-8").split()))
    run = {name.partition("-")[0] for name in recorded} - {"rxe", "siw"}
    for name in sorted(run ^ set(re.findall(r"\w+", listed[1])) - {"and"}):
        yield f"man/rpma_devices.7: the list of drivers that the tests run {'lacks' if name in run else 'has'} {name}"
    values = devices.read_devices()
    others = {(row.property, name) for row in devices.read_rows() if row.patterns != ["*"] for name in devices.named(row)}
    for row, source in sources():
        match = RUN.fullmatch(source)
        for name in devices.named(row) if match else ():
            is_other = row.patterns == ["*"] and ((row.property, name) in others or values[name]["simulated"] == "no")
            if not is_other and not fnmatch.filter(recorded.get(values[name]["library"], []), match[1]):
                yield f"{row.where}: {row.property}: sim/tests/drivers has no result of {values[name]['library']}: {match[1]}"


def check_entries(page):
    """Each row and each entry below a .Ss has its sources directly before it."""
    part, has_source, driver = None, False, False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if driver and not SOURCE_COMMENT.match(line):
            yield f"man/{page.name}:{number}: {part} has no source"
        driver = bool(DRIVER.match(line))
        if line.startswith((".Ss", ".Sh")):
            part = line[4:] if line.startswith(".Ss") else None
        elif line.startswith(".It") and part and part not in WITHOUT_SOURCES and not has_source:
            if not line.startswith(".It Sy"):  # the heading of a table, or an entry of a driver's part
                yield f"man/{page.name}:{number}: {line[4:] or 'the entry'} has no source"
        has_source = bool(SOURCE_COMMENT.match(line)) or (has_source and line.startswith('.\\"'))


def unpack(package, folder):
    """Reads a tar archive in which all names begin with the folder of the package."""
    wanted = [each for each in named(SOURCE / "man") if each.package == package]
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|*") as archive:
        for member in archive:
            name = member.name.removeprefix("./").partition("/")[2]
            if member.isfile() and any(each.refers_to(name) for each in wanted):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.extractfile(member).read())


def look(folder):
    """Searches the words, and records how many each release has."""
    checked, releases = named(SOURCE / "man"), dict(
        line.split("\t") for line in (folder / "releases").read_text(encoding="utf-8").splitlines())
    faults = [fault for each in checked for fault in each.faults(folder)]
    faults += [f"tests/man/sources.py: NEWEST has {kind} {release}, and the archive {releases[kind]}: read its changes"
               for kind, release in NEWEST.items() if not re.search(rf"[-_]{re.escape(release)}\b", releases[kind])]
    for fault in faults:
        print(fault)
    rows = [f"{name}\t{release}\t{sum(len(each.items) for each in checked if each.package == name)}\n"
            for name, release in sorted(releases.items())]
    if not faults:
        RECORD.write_text("package\trelease\twords found\n" + "".join(rows), encoding="utf-8")
    print(f"{sum(len(each.items) for each in checked)} sources, {len(faults)} missing")
    return 1 if faults else 0


def main():
    match sys.argv[1:]:
        case ["packages"]:
            print(*sorted({each.package for each in named(SOURCE / "man")}), sep="\n")
        case ["paths", package]:
            print(*sorted({each.path for each in named(SOURCE / "man")
                           if each.package == package}), sep="\n")
        case ["unpack", package, folder]:
            unpack(package, pathlib.Path(folder))
        case ["look", folder]:
            return look(pathlib.Path(folder))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
