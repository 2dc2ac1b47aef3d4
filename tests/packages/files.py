#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Compares debian/ and packaging/ with the rest of the project.

usage: files.py write          writes the version in meson.build to all places except the changelogs and NEWS.md, and the
                               addresses in contact to all places
       files.py symbols        prints debian/librpma0.symbols, from contract/symbols.tsv
       files.py debian         these symbols require no newer librpma0 than in Debian's 1.2.0
       files.py version        all places and the newest entries of the changelogs have that version, and all places have
                               those addresses
"""

import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "abi"))

import common
import debian

# The newest entry of each changelog.
NEWEST = {common.ROOT / "debian" / "changelog": r"\Alibrpma \(([^)-]+)-[^)]+\) ",
          common.ROOT / "sim" / "debian" / "changelog": r"\Ardma-sim \(([^)-]+)-[^)]+\) ",
          common.ROOT / "packaging" / "rpm" / "librpma.spec": r"^%changelog\n\*.* - ([0-9.]+)-\d+$"}
# Places that repeat the version: the files, and the text before and after it. The header and its
# page have three numbers.
PLACES = [("packaging/rpm/librpma.spec", r"^(Version: +)\S+()$"),
          ("programs/trace/rpma-trace", r"^(version=)\S+()$"), ("sim/meson.build", r"^(  version: ')[^']+(',)$"),
          *((file, rf"^(#define RPMA_VERSION_{name} )\d+()$") for file in ("include/librpma.h", "man/rpma_version.3")
            for name in ("MAJOR", "MINOR", "PATCH"))]
# The --help of each program, with the address; tests/rules.py finds a place that is not listed here.
HELPS = ("programs/check/command_line.cc", "programs/info/options.cc", "programs/perf/arguments.cc", "programs/trace/rpma-trace")
# Places that repeat an address in the file contact, at least once.
CONTACTS = {"mail": [("debian/control", r"^(Maintainer: .*<)[^>]+(>)$"),
                     ("debian/copyright", r"^(Upstream-Contact: .*<)[^>]+(>)$"),
                     ("debian/changelog", r"^( -- .*<)[^>]+(>  .*)$"),
                     ("packaging/rpm/librpma.spec", r"^(\* .*<)[^>]+(> - .*)$"),
                     ("SECURITY.md", r"(by mail to <)[^>]+(>)"), ("docs/hardware.md", r"(by mail to <)[^>]+(>)")],
            "issues": [("README.md", r"(Report bugs at <)[^>]+(>)"), ("SECURITY.md", r"(Report bugs at <)[^>]+(>)"),
                       ("docs/hardware.md", r"(Report it at <)[^>]+(>)"),
                       ("packaging/rpm/librpma.spec", r"^(BugURL: +)\S+()$"),
                       *((file, r"(Report bugs at )[^\s\\]+()") for file in HELPS)]}
HEAD = [f"{common.SONAME} librpma0 #MINVER#", "* Build-Depends-Package: librpma-dev"]
# Debian writes "1.0" for the first release at the present node LIBRPMA_1.0.
DEBIAN_VERSIONS = {"1.0.0": "1.0"}
# Functions that the original dropped exist again since this release.
OWN_FIRST = "1.4.0"


def since(releases):
    """The first release of the latest uninterrupted sequence with the symbol."""
    theirs = common.original_releases()
    own = sorted(releases - set(theirs), key=common.version)
    if own:
        return own[0]
    start = OWN_FIRST
    for release in reversed(theirs):
        if release not in releases:
            break
        start = release
    return start


def symbols():
    """All lines of debian/librpma0.symbols, including those of the version nodes."""
    found = {}
    for row in common.read_symbols():
        releases = set(row["releases"])
        for name in (row["symbol"], row["node"]):
            found.setdefault((name, row["node"]), set()).update(releases)
    lines = []
    for (symbol, node), releases in sorted(found.items()):
        release = since(releases)
        lines.append(f" {symbol}@{node} {DEBIAN_VERSIONS.get(release, release)}")
    return HEAD + lines


def entries(lines):
    return dict(line.split() for line in lines if line.startswith(" "))


def check_debian():
    with tempfile.TemporaryDirectory(prefix="librpma-packages-") as directory:
        if not debian.cached("librpma0"):
            debian.fetch("librpma0")
        common.run(["dpkg-deb", "--control", debian.cached("librpma0")[-1], directory])
        text = (pathlib.Path(directory) / "symbols").read_text(encoding="utf-8")
    theirs = entries(text.splitlines())
    ours = entries(symbols())
    faults = [f"{name}: since {ours.get(name)}, in Debian since {since}"
              for name, since in theirs.items() if ours.get(name) != since]
    if faults or not theirs:
        raise common.Fault("against Debian's librpma0.symbols:\n  " + common.summary_of(faults))
    return f"the {len(theirs)} symbols of Debian's librpma0 {debian.VERSION} require no newer one"


def check_changelogs():
    version, faults = common.project_version(), []
    for path, pattern in NEWEST.items():
        found = re.search(pattern, path.read_text(encoding="utf-8"), re.M)
        if not found or found.group(1) != version:
            faults.append(f"the newest entry of {path.name} has {found.group(1) if found else 'no version'}, "
                          f"meson.build has version {version}")
    if faults:
        raise common.Fault(common.summary_of(faults))
    return f"the newest entries of the changelogs and meson.build agree on {version}"


def stanzas(path):
    """{name: stanza} of the binary packages in a control file."""
    found = [part for part in path.read_text(encoding="utf-8").strip().split("\n\n") if part.startswith("Package: ")]
    return {part.splitlines()[0].removeprefix("Package: "): part for part in found}


def check_rdma_sim():
    """debian/ makes the packages of sim/debian/ too: with the same stanzas and files, and one address."""
    own, ours = (stanzas(common.ROOT / folder / "control") for folder in ("sim/debian", "debian"))
    faults = [f"debian/control and sim/debian/control differ in {name}" for name in own if ours.get(name) != own[name]]
    faults += [f"debian/{name}.install is no link to sim/debian/{name}.install" for name in own
               if (common.ROOT / "debian" / f"{name}.install").resolve() != common.ROOT / "sim/debian" / f"{name}.install"]
    mail = re.search(r"^mail (.+)$", (common.ROOT / "sim/contact").read_text(encoding="utf-8"), re.M)[1]
    for name in ("control", "changelog", "copyright"):
        found = set(re.findall(r"<(\S+@\S+)>", (common.ROOT / "sim/debian" / name).read_text(encoding="utf-8")))
        faults += [f"sim/debian/{name} has {sorted(found)}, and sim/contact {mail}"] * (found != {mail})
    if faults:
        raise common.Fault(common.summary_of(faults))
    return f"debian/ and sim/debian/ make the same packages {' and '.join(own)}"


def contacts():
    """{name: address} of the file contact."""
    text = (common.ROOT / "contact").read_text(encoding="utf-8")
    return dict(line.split(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def with_contacts(texts):
    """Replaces the addresses in {file: (its text, the expected text)}."""
    for name, address in contacts().items():
        for file, pattern in CONTACTS[name]:
            path = common.ROOT / file
            old, new = texts.get(path, [path.read_text(encoding="utf-8")] * 2)
            new, count = re.subn(pattern, rf"\g<1>{address}\g<2>", new, flags=re.M)
            if not count:
                raise common.Fault(f"{file} has no line like {pattern}, for the {name} address of the file contact")
            texts[path] = old, new
    return texts


def with_version(version):
    """{file: (its text, the expected text)} of PLACES."""
    texts, numbers = {}, dict(zip(("MAJOR", "MINOR", "PATCH"), version.split(".")))
    for files, pattern in PLACES:
        written = next((number for name, number in numbers.items() if name in pattern), version)
        for path in common.ROOT.glob(files):
            old, new = texts.get(path, [path.read_text(encoding="utf-8")] * 2)
            new, count = re.subn(pattern, rf"\g<1>{written}\g<2>", new, flags=re.M)
            if count != 1:
                raise common.Fault(f"{path.name} has {count} lines like {pattern}, wanted one")
            texts[path] = old, new
    return texts


def check_places():
    texts = with_contacts(with_version(common.project_version()))
    faults = [path.name for path, (old, new) in texts.items() if old != new]
    if faults:
        raise common.Fault("another version than in meson.build, or address than in contact; tests/packages/files.py write corrects it:\n  "
                           + common.summary_of(faults))
    return f"{len(texts)} other files agree with meson.build on {common.project_version()} and with contact on addresses"


def write():
    for path, (old, new) in with_contacts(with_version(common.project_version())).items():
        if old != new:
            path.write_text(new, encoding="utf-8")


def main():
    checks = {"debian": [check_debian], "version": [check_changelogs, check_places, check_rdma_sim]}
    if sys.argv[1:] == ["write"]:
        write()
    elif sys.argv[1:] == ["symbols"]:
        print(*symbols(), sep="\n")
    elif len(sys.argv) == 2 and sys.argv[1] in checks:
        common.finish(f"packages {sys.argv[1]}", checks[sys.argv[1]])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
