#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Shows that each check of the manual can fail: spoils a copy, the check has to notice. That the
manual itself is without fault is for tests/man/check.py all to say.

Ends with 0, 1 (a fault was not noticed) or 77 (a tool is missing, some were not tried).
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
SITE = "man/site/"
PAGE, ALIAS, OVERVIEW = "man/rpma_ep_listen.3", "man/rpma_ep_shutdown.3", "man/librpma.7"
PITFALLS = "tests/simulator/pitfalls/client.c"
PROGRAM, DEVICES, FUNCTIONS = "man/rpma-info.1", "man/rpma_devices.7", "man/rpma_functions.7"


def remove(path):
    return path, None


def edit(path, pattern, replacement):
    def change(text):
        spoiled, times = re.subn(pattern, replacement, text, count=1, flags=re.M)
        if not times:
            raise ValueError(f"{path} has nothing like {pattern!r} to spoil")
        return spoiled
    return path, change


def append(path, text):
    return path, lambda old: old + text


HEADER = "#include <librpma.h>\nint f(void);\n"
CODE = ".Sh BUGS\n.Bd -literal\n%s\n.Ed\n"
# check, fault of the copy, how to make it
FAULTS = [
    ("pages", "a page is missing", remove(ALIAS)),
    ("topics", "the overview is missing", remove(OVERVIEW)),
    ("topics", "a function that is not listed",
     edit(FUNCTIONS, r" , Xr rpma_mr_dereg 3$", "")),
    ("topics", "a function that is listed twice",
     edit(FUNCTIONS, r"( , Xr rpma_mr_dereg 3)$", r"\1\1")),
    ("topics", "a function in other words than its page has",
     edit(FUNCTIONS, r"^register and deregister memory", "register memory")),
    ("topics", "functions of two pages in one entry",
     edit(FUNCTIONS, r"^(\.It Xr rpma_recv 3)$", r"\1 , Xr rpma_nothing 3")),
    ("topics", "a page that nobody finds",
     append("man/rpma_nobody.7", ".Sh NAME\n.Nm rpma_nobody\n.Nd nothing\n"
            ".Sh DESCRIPTION\nWho are you?\n")),
    ("topics", "a page that is listed with another question",
     edit(DEVICES, r"^What does my device", "What does a device")),
    ("topics", "a page that begins without a question",
     edit("man/rpma_scaling.7", r"clients\?$", "clients.")),
    ("topics", "a page that is too long", append(DEVICES, ".Pp\nLong.\n" * 100)),
    ("pages", "a page of nothing",
     append("man/rpma_nothing.3", ".so man3/rpma_ep_listen.3\n")),
    ("pages", "an alias leads nowhere", edit(ALIAS, r"^\.so .*", ".so man3/rpma_nothing.3")),
    ("pages", "an alias leads to a stranger",
     edit(ALIAS, r"^\.so .*", ".so man3/rpma_flush.3")),
    ("pages", "NAME lacks an alias", edit(PAGE, r"^\.Nm rpma_ep_shutdown.*\n", "")),
    ("pages", "a new export",
     append("contract/symbols.tsv", "rpma_new\tLIBRPMA_1.0\tyes\t9\n")),
    ("pages", "a program's page is missing", remove(PROGRAM)),
    ("pages", "a program that does not exist",
     edit("programs/info/meson.build", "'rpma-info'", "'x'")),
    ("head", "a program's page without its exit status",
     edit(PROGRAM, r"^\.Sh EXIT STATUS", ".Sh EXIT")),
    ("whatis", "a program's page without its name", edit(PROGRAM, r"^\.Nm rpma-info", ".Nm x")),
    ("head", "a wrong title", edit(PAGE, r"^\.Dt \S+", ".Dt RPMA_OTHER")),
    ("head", "a wrong version", edit(PAGE, r"^\.Os .*", '.Os "librpma 9.9.9"')),
    ("head", "a lost section", edit(PAGE, r"^\.Sh ATTRIBUTES", ".Sh ATTRIBUTE")),
    ("synopsis", "another type", edit(PAGE, r'"const char \*addr"', '"char *addr"')),
    ("synopsis", "a lost parameter", edit(PAGE, r'^\.Fa "const char \*port"\n', "")),
    ("synopsis", "another result", edit(PAGE, r"^\.Ft int", ".Ft long")),
    ("synopsis", "another header", edit(PAGE, r"^\.In librpma.h", ".In rpma.h")),
    ("synopsis", "a header that changed",
     edit("include/librpma.h", r"rpma_ep_shutdown\(struct", "rpma_ep_shutdown(const struct")),
    ("types", "another value", edit("man/rpma_flush.3", r"VISIBILITY = 1$", "VISIBILITY = 2")),
    ("types", "another member", edit("man/rpma_post.3", r"^    size_t len;", "    int len;")),
    ("types", "another macro", edit("man/rpma_mr_reg.3", r"READ_SRC +\(1 << 0\)",
                                    "READ_SRC (1 << 9)")),
    ("types", "an enumeration that is not shown",
     edit("man/rpma_flush.3", r"^enum rpma_flush_type (?:.*\n){4}", "")),
    ("types", "an enumerator that is new",
     append("contract/types.tsv", "enumerator\trpma_op\tRPMA_OP_NEW\t\t6\t9\t\n")),
    ("errors", "a lost code", edit(PAGE, r"^\.It Er RPMA_E_NOMEM.*", ".It Er RPMA_E_INVAL")),
    ("errors", "a code too many",
     edit(PAGE, r"^\.It Er RPMA_E_NOMEM", ".It Er RPMA_E_AGAIN\nspoiled\n.It Er RPMA_E_NOMEM")),
    ("errors", "two causes in one entry",
     edit(PAGE, r"^\.It Er RPMA_E_PROVIDER\n(?=\.Xr rdma_create_id)", "Or\n")),
    ("errors", "a table that changed",
     append("contract/errors.tsv", "rpma_ep_listen\tRPMA_E_NOSUPP\tspoiled\tkept\t\n")),
    ("errors", "a failure of what cannot fail",
     append("contract/errors.tsv",
            "rpma_utils_conn_event_2str\tRPMA_E_INVAL\tspoiled\tkept\t\n")),
    ("terms", "another word for it", append(PAGE, "It waits for a notice.\n")),
    ("terms", "a sentence that was refuted", append(PAGE, "It waits for 655 milliseconds.\n")),
    ("terms", "the old library twice", append(PAGE, "librpma 1.3.0 and\nlibrpma 1.3.0\n")),
    ("claims", "a flush of everything",
     edit("man/rpma_memory_model.7", r"^What was written earlier, on the same connection, to the "
          r"bytes that the flush\nnames", "The data of all\nearlier writes")),
    ("claims", "a header that says so",
     edit("include/librpma.h", r"the range has reached", "all earlier writes have reached")),
    ("claims", "a fence that every driver has",
     edit("man/rpma_atomic_write.3", r"takes effect after all", "starts only\nafter all")),
    ("claims", "a page that does not say what a flush covers",
     edit("man/rpma_flush.3", r"^names: flush each", "touches: flush each")),
    ("guides", "a page that leads to the overview alone",
     edit("man/rpma_version.3", r"^\.Pq Xr rpma_devices 7", ".Pq Xr librpma 7")),
    ("guides", "a page that SEE ALSO forgets",
     edit("man/rpma_version.3", r"^\.Xr rpma_devices 7.*\n?", "")),
    ("guides", "a page that no function leads to",
     append("man/rpma_nobody.7", ".Sh NAME\n.Nm rpma_nobody\n.Nd nothing\n")),
    ("references", "a section that does not exist",
     edit("man/rpma_memory_model.7", r"^\.Ss Direct write", ".Ss Direct writes")),
    ("references", "a page that does not exist", append(OVERVIEW, ".Xr rpma_nothing 3\n")),
    ("references", "the wrong section", append(OVERVIEW, ".Xr rpma_ep_listen 2\n")),
    ("references", "an unknown foreign page", append(OVERVIEW, ".Xr ibv_nothing 3\n")),
    ("sources", "a row without a source",
     edit(DEVICES, r'(?:^\.\\" .*\n)+(?=\.It mlx4 Ta "as)', "")),
    ("sources", "a source in other words", edit(DEVICES, r"^(\.\\\" linux \S+):", r"\1,")),
    ("sources", "an item that says nothing", edit(DEVICES, r": no (?=mana_ib)", ": not ")),
    ("sources", "a case that does not exist", edit(DEVICES, r"lab line: a", "lab line: no")),
    ("pitfalls", "a line that no program has",
     edit("man/rpma_pitfalls.7", r"dst, 0, LEN", "dst, 8, LEN")),
    ("pitfalls", "a program that was changed",
     edit(PITFALLS, r"place = POINTER;", "place = POINTER_2;")),
    ("pitfalls", "an entry that is gone", edit("man/rpma_pitfalls.7", r"^\.Ss 2\. .*\n", "")),
    ("mandoc", "an unknown macro", append(OVERVIEW, ".Zz nothing\n")),
    ("mandoc", "an open list", append(PAGE, ".Bl -tag -width Ds\n.It Er RPMA_E_INVAL\n")),
    ("groff", "an undefined macro", append(OVERVIEW, ".Zz nothing\n")),
    ("groff", "an undefined string", append(PAGE, "\\*[nothing]\n")),
    ("width", "a line that is too wide",
     append(OVERVIEW, ".Bd -literal\n" + "x" * 90 + "\n.Ed\n")),
    ("width", "a tool's help that is too wide", edit("tools/soak", r"^END$", "x" * 90 + "\nEND")),
    ("whatis", "a name without a page", remove(ALIAS)),
    ("whatis", "NAME lacks a name", edit(PAGE, r"^\.Nm rpma_ep_shutdown.*\n", "")),
    ("whatis", "NAME lacks a description", edit(PAGE, r"^\.Nd .*\n", "")),
    ("examples", "a warning",
     append(OVERVIEW, CODE % (HEADER + "int f(void) { int unused; return 0; }"))),
    ("examples", "an undeclared call",
     append(OVERVIEW, CODE % (HEADER + "int f(void) { return rpma_no(); }"))),
    ("examples", "a document whose program does not compile",
     edit("docs/lab.md", r"ibv_get_device_name\(device->device\)", "ibv_get_device_name(device)")),
    ("search", "an index without the further names of a page",
     edit(SITE + "build.py", r"for name in names:", "for name in names[:1]:")),
    ("search", "an index that leads astray",
     edit(SITE + "build.py", r"places.get\(name, page.url\)", "page.url + '#NAME'")),
    ("search", "a search that sorts the wrong way",
     edit(SITE + "search.js", r"b.score - a.score", "a.score - b.score")),
    ("examples", "a fragment", append(OVERVIEW, CODE % "ret = rpma_ep_shutdown(&ep);")),
]

# The site takes seconds to build, so one copy has all of these faults. The check has to name each.
SITE_FAULTS = [
    ("a builder that forgets aliases", r"rpma_ep_shutdown.3.html is missing",
     edit(SITE + "build.py", r"for alias in manual.aliases:", "for alias in []:")),
    ("a builder that leads astray", r"links to librpma.html,",
     edit(SITE + "frame.py", r"librpma.7.html", "librpma.html")),
    ("a start page without the examples", r"start page does not link to examples/",
     edit(SITE + "start.py", r"guides.examples.values\(\)", "[]")),
    ("a start page that names no function twice, but one never", r"start page names \w+ 0 times",
     edit(SITE + "start.py", r"for each in beside\)", "for each in beside[:1])")),
    ("a document that leads nowhere", r"docs/lab.html links to #nothing,",
     append("docs/lab.md", "[nothing](#nothing)\n")),
    ("a colour that is hard to read", r"quiet on paper",
     edit(SITE + "style.css", r"--quiet: #566074", "--quiet: #a6b0c4")),
    ("a style from elsewhere", r"style.css loads something from elsewhere",
     edit(SITE + "style.css", r"^:root", '@import "https://example.org/style.css";\n:root')),
    ("a reference within the page that leads nowhere", r"librpma.7.html links to #Nothing,",
     append(OVERVIEW, ".Sx Nothing\n")),
]


# These checks treat each page by itself, and slowly: their copies hold only the spoiled one.
ONE_BY_ONE = ("mandoc", "groff", "width", "examples")


def spoiled_copy(root, check, spoils):
    if check in ONE_BY_ONE:
        shutil.copytree(SOURCE / "include", root / "include")
        (root / "man").mkdir()
        for path, _ in spoils:
            (root / path).parent.mkdir(exist_ok=True)
            shutil.copy(SOURCE / path, root / path)
    else:
        for part in ("man", "include", "contract", "docs", "examples", "programs",
                     "tests/simulator/pitfalls"):
            shutil.copytree(SOURCE / part, root / part)
        for each in ("meson.build", *SOURCE.glob("*.md")):
            shutil.copy(SOURCE / each, root)
    for path, change in spoils:
        file = root / path
        if change is None:
            file.unlink()
        else:
            file.write_text(change(file.read_text() if file.exists() else ""))


def try_faults(check, faults):
    """Tries each (story, words that the check has to print, spoil) in one copy: 0 if the check
    notices the fault, 77 if it could not run, 1 otherwise."""
    with tempfile.TemporaryDirectory(prefix="librpma-spoiled-") as folder:
        try:
            spoiled_copy(pathlib.Path(folder), check, [spoil for _, _, spoil in faults])
        except (OSError, ValueError) as error:
            print(f"man {check}: {faults[0][0]}: cannot be tried: {error}")
            return [1] * len(faults)
        command = [sys.executable, str(HERE / "check.py"), "--source", folder, check]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    results = []
    for story, pattern, _ in faults:
        said = [line for line in done.stdout.splitlines()
                if line.startswith(f"man {check}: ") and re.search(pattern, line)]
        if done.returncode == 77:
            print(f"{story}: SKIPPED: {done.stdout.strip()}")
            results.append(77)
        elif done.returncode == 1 and said:
            print(f"{story}: noticed: {said[0]}")
            results.append(0)
        else:
            print(f"{story}: NOT NOTICED by {check}")
            results.append(1)
    return results


def main():
    results = [result for check, story, spoil in FAULTS
               for result in try_faults(check, [(story, "", spoil)])]
    results += try_faults("html", SITE_FAULTS)
    print(f"{results.count(0)} of {len(results)} faults noticed, {results.count(77)} skipped")
    return 1 if 1 in results else 77 if 77 in results else 0


if __name__ == "__main__":
    sys.exit(main())
