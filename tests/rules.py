#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks the rules of CONTRIBUTING.md and of the READMEs that no other test checks. Run as: rules.py [RULE...]

Exit status: 0, or 1 with one line per fault.
"""

import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict

ROOT = pathlib.Path(__file__).resolve().parent.parent
# src/README.md: a file includes only files of the same layer or a lower one.
LAYERS = {"api": 3, "post": 3, "compat": 3, "core": 2, "wire": 1, "verbs": 1, "base": 0}
LINES = 320  # of a file in src/; .clang-tidy limits the lines of a function
MOST_LINES = 500  # of any file of C, C++ and Python, except:
LONG = {"include/librpma.h": "a program includes one file",
        "include/librpma.hpp": "a program includes one file",
        "programs/check/promises.cc": "a table of calls with their results",
        "sim/cli/options.cc": "a table of options with their help",
        "sim/tests/cli/explore.py": "its cases share one directory of compiled programs",
        "sim/tests/client/process_test.cc": "one executable, which starts itself as each of its programs",
        "sim/tests/conformance/exchange.c": "the questions are rows of one table",
        "tests/drivers/library.c": "one program, whose output is compared with that of questions.c",
        "tests/programs/perf_client.cc": "scenarios on one scripted server",
        "tests/programs/perf_load.cc": "tests on one network in the process"}
# These return a std::ranges::subrange.
SUBRANGE = re.compile(r"std::ranges::(rotate|(stable_)?partition|remove(_if)?|unique|search(_n)?|equal_range|find_end)\b")
# sim/model/README.md: the model makes no system calls and has no threads and no clock.
SYSTEM = r"unistd\.h|fcntl\.h|poll\.h|pthread\.h|s?time\.h|ctime|chrono|thread|mutex|atomic|condition_variable|fstream|sys/"
# sim/DESIGN.md: the model has one memory rule. A file that makes memory persistent and distinguishes operations asks it.
PERSISTS = re.compile(r"\b(?:persist|flush|sim_flush_stores)\(")
DISTINGUISHES = re.compile(r"\b(?:IBV_WR_RDMA_READ|SIM_WR_FLUSH|SIM_FLUSH_PERSISTENT)\b")
# The users of internal sources. Tests: the log of a debug build, and two functions with branches that no public function
# reaches on one machine.
INTERNAL = {"tests/unit/meson.build": {"api/log.cc", "base/call.cc", "base/format.cc", "base/log.cc", "base/visible.cc"},
            "tests/unit/properties/error_text.cc": {"base/error_text.hh"},
            "tests/unit/properties/format.cc": {"base/format.hh", "base/visible.hh"},
            # Text of other machines is escaped as in the log.
            **dict.fromkeys(("programs/info/meson.build", "programs/perf/meson.build"), {"base/visible.cc"}),
            "programs/common/visible.hh": {"base/visible.hh"}}
SUBJECT = re.compile(r"[\w./*:, +-]+: \S.{0,70}[^.]")
# tests/README.md: the name of a test is subject_condition_result, so it has a verb. These are no plural nouns as well.
FINITE = set("""is are was were has have had can cannot may must does do accepts applies arrives completes connects delivers
    equals expires fails follows keep keeps lacks leaves loses lose make makes occurs outlives preserves reaches refuses
    rejects resumes succeeds survives takes""".split())
# Within a noun phrase, a determiner has a preposition or a conjunction before it; after any other word, that is a verb.
DETERMINERS = set("a an the its their each every no any one two both all only those nothing everything it them what".split())
SUBORDINATE = set("that which what whose if when until while as".split())  # the next verb is not that of the result
CONNECTIVES = SUBORDINATE | set("""of in on at by for to from with without after before within beyond between under over
    than and or not""".split())
BARE_NAMES = ("capabilities", "changes_of_shared_receive_queues", "full_queues_and_late_states",
              "objects_that_are_left", "requests_of_the_device", "queue_sizes_if_the_device_rounds_them")


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def sources(*patterns):
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                yield str(path.relative_to(ROOT)), read(path)


def tracked():
    """The text files of the project: those in git, or all of a tarball."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files", "-z"], capture_output=True,
                                text=True, check=True).stdout.split("\0")
    else:
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not path.relative_to(ROOT).parts[0].startswith("build")]
    for name in filter(None, listed):
        path = ROOT / name
        if path.is_file() and not path.is_symlink() and b"\0" not in path.read_bytes()[:8192]:
            yield name


def includes(text):
    return re.findall(r'^ *# *include ["<]([^">]+)[">]', text, flags=re.M)


def check_layers():
    for name, text in sources("src/*/*.hh", "src/*/*.cc"):
        own = name.split("/")[1]
        for file in includes(text):
            other = file.split("/")[0]
            if other in LAYERS and LAYERS.get(own, 9) < LAYERS[other]:
                yield f"{name} includes {file}, of a higher layer"


def check_lengths():
    for name, text in sources("src/**/*.hh", "src/**/*.cc"):
        if text.count("\n") > LINES:
            yield f"{name} has {text.count(chr(10))} lines, more than {LINES}: divide it"
    for name in tracked():
        if pathlib.PurePath(name).suffix in (".c", ".h", ".cc", ".hh", ".hpp", ".py"):
            lines = read(ROOT / name).count("\n")
            if lines > MOST_LINES and name not in LONG:
                yield f"{name} has {lines} lines, more than {MOST_LINES}: divide it by subject"
            elif lines <= MOST_LINES and name in LONG:
                yield f"{name} has {lines} lines: remove it from the list LONG"
    for name in sorted(name for name in LONG if not (ROOT / name).is_file()):
        yield f"the list LONG has {name}, which does not exist"
    # "tools/test style" runs clang-tidy.
    if "readability-function-size.LineThreshold" not in read(ROOT / ".clang-tidy"):
        yield ".clang-tidy has no limit for the lines of a function"


def check_languages():
    for name, text in sources("src/**/*.cc", "sim/**/*.cc", "programs/**/*.cc", "tests/**/*.cc", "bench/**/*.cc"):
        if found := SUBRANGE.search(text):
            yield f"{name} calls {found[0]}, which clang 14 cannot compile with libstdc++ 12: call the function of std"
    for name, text in sources("include/*.h", "src/**/*.h", "sim/**/*.h", "tests/**/*.h", "examples/**/*.h", "bench/**/*.h"):
        if re.search(r"^\s*(namespace|template|class)\b", text, flags=re.M):
            yield f"{name} is C++: name it .hh"
    for name in tracked():
        # The compiler warns of the line in a precompiled header.
        if name.endswith(".hh") and not name.endswith("precompiled.hh") and read(ROOT / name).count("\n#pragma once\n") != 1:
            yield f"{name} has no line \"#pragma once\""


def check_fabric():
    for name, text in sources("sim/device/*", "sim/model/*"):
        for file in includes(text):
            if re.fullmatch(f"(?:{SYSTEM}).*", file):
                yield f"{name} includes {file}: the model makes no system calls and has no threads and no clock"


def check_memory():
    for name, text in sources("sim/*/*.c", "sim/*/*.cc", "sim/*/*.hh", "tests/unit/fakes/*.c"):
        if PERSISTS.search(text) and DISTINGUISHES.search(text) and "sim_made_persistent(" not in text:
            yield f"{name} has a memory rule of its own: call sim_made_persistent() of sim/model/memory_rule.h"


def check_public():
    for name, text in sources(*(f"{folder}/**/{file}" for folder in ("tests", "programs", "examples")
                                for file in ("*.[ch]", "*.cc", "*.hh", "meson.build"))):
        used = {file for file in re.findall(r"(?:\.\./)+src/([\w/]+\.(?:cc|hh))", text)}
        used |= {file for file in includes(text) if file.split("/")[0] in LAYERS and (ROOT / "src" / file).is_file()}
        for file in sorted(used - INTERNAL.get(name, set())):
            yield f"{name} uses src/{file}: tests, programs and examples use the public headers"


def has_result(name):
    """Returns true if the name of a test is a sentence."""
    words, is_subordinate = name.split("_"), False
    for before, word, after in zip(words, words[1:], [*words[2:], ""]):
        is_subordinate |= before in SUBORDINATE
        if word in FINITE or (after in DETERMINERS and word not in CONNECTIVES | DETERMINERS):
            if not is_subordinate:
                return len(words) >= 3
            is_subordinate = False
    return False


def check_names():
    """The names of tests for CMocka and unittest."""
    for name in filter(has_result, BARE_NAMES):
        yield f"the check of the names of tests accepts {name}"
    form = r"^(?!#).*\b(?:TEST_THAT|TEST|cmocka_unit_test)\(\s*(\w+)|^ +def test_(\w+)"
    for file in tracked():
        if pathlib.PurePath(file).suffix in (".c", ".cc", ".py"):
            for name in sorted({c or python for c, python in re.findall(form, read(ROOT / file), flags=re.M)}):
                if not has_result(name):
                    yield f"{file}: the test {name} is not named by its subject, the condition and the result"


# Names that exist once in each folder that needs them.
USUAL_NAMES = re.compile(r"__init__\.py|main\.cc?|(?:client|server)\.cc?")  # the two sides: examples/README.md
# One word is the name of few functions: of these because a table of drivers has one for each, or because it is an idiom
# that has the same meaning everywhere.
USUAL_VERBS = {"main", "must", "fail", "refuse", "complete", "describe"}
FEW = 8
FUNCTION = re.compile(r"^(?!return|else|using|typedef|#|\s)[\w:<>,&*\[\] ]+[ *&]([a-z]+)\([^;{]*\)\s*(?:const\s*)?\{", re.M)


def check_basenames():
    """No three folders have a file of the same name, and few have a function that is named by one word."""
    folders, functions = defaultdict(set), defaultdict(set)
    for name in tracked():
        path = pathlib.PurePath(name)
        if path.suffix in (".c", ".h", ".cc", ".hh", ".hpp", ".py") and not USUAL_NAMES.fullmatch(path.name):
            if path.parts[0] != "examples":  # each example is a program of its own
                folders[path.name].add(str(path.parent))
        if path.suffix in (".c", ".h", ".cc", ".hh"):
            for word in FUNCTION.findall(read(ROOT / name)):
                functions[word].add(name)
    for name, found in sorted(folders.items()):
        if len(found) > 2:
            yield f"{len(found)} folders have a file {name}: {', '.join(sorted(found))}"
    for word, found in sorted(functions.items()):
        if len(found) > FEW and word not in USUAL_VERBS:
            yield f"{len(found)} files define a function {word}(), more than {FEW}: add its object to the name: {', '.join(sorted(found))}"


# README: the entries of its folder that it names, as a pattern and the form in which it names them.
NAMED = {"src": ("*/", "{}/"), "sim": ("*/", "{}"), "contract": ("*.*[!y]", "{}"), "tools": ("*", "{}"),
         "tests": ("*/", "{}"), "programs": ("rpma-*", "{}"), "tests/unit": ("*/", "{}/"), "bench": ("*/", "{}"), "examples": ("[0-9]*/", "{}")}
NO_README = re.compile(r"\.|(sim/)?debian|subprojects|sim/tests/drivers/recorded|tests/(abi/(package|programs)|fuzz/perf_messages)")


def check_readmes():
    for folder, (pattern, form) in NAMED.items():
        readme = ROOT / folder / "README.md"
        text = read(readme) if readme.is_file() else ""
        if folder == "tests":  # the second column
            text = " ".join(re.findall(r"^\| [^|]+ \| ([^|]+) \|", text, flags=re.M))
        for path in sorted((ROOT / folder).glob(pattern)):
            if path.name not in ("README.md", "meson.build", "__pycache__") and (path.is_dir() or not pattern.endswith("/")):
                if form.format(path.name) not in text:
                    yield f"{folder}/README.md does not name {path.name}"
    files = defaultdict(list)
    for name in tracked():
        files[(ROOT / name).parent].append(pathlib.PurePath(name).name)
    for folder, names in sorted(files.items()):
        text = read(folder / "README.md") if "README.md" in names else ""
        if re.search(r"^\| (?:files?|path) \|", text, flags=re.M):
            words = {word.rstrip(".") for word in re.findall(r"[\w.*/-]+", text)}
            for name in sorted(set(names) - {"README.md", "meson.build"}):
                # A source has its header with it.
                others = [name, re.sub(r"\.h$", ".c", name), re.sub(r"\.hh$", ".cc", name)]
                if not any(fnmatch.fnmatch(other, word) for other in others for word in words):
                    yield f"{folder.relative_to(ROOT)}/README.md does not name {name}"


def check_documents():
    """The target of a link exists, and a path in backquotes, which may also begin in the root."""
    tops = {path.name for path in ROOT.iterdir()}
    for name, text in sources("*.md", "docs/*.md", "*/README.md", "*/*/README.md"):
        if name.startswith("build"):
            continue
        folder, unquoted = (ROOT / name).parent, ""
        if name == "NEWS.md":  # older releases had other files
            unquoted = text = text.split("\n## ")[1]
        text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
        targets = set(re.findall(r"\]\(([^)#:]+)[^):]*\)", text))
        paths = {word for code in re.findall(r"`([^`\n]+)`", text) for word in code.split()[:1]
                  if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", word) and word.split("/")[0] in tops - {"build", "subprojects"}}
        paths |= set(re.findall(r"^\| ([\w./-]+/[\w.-]+) \|", text, flags=re.M))
        paths |= set(re.findall(rf"\b(?<![\w./-])((?:{'|'.join(tops)})/[\w./-]+\.(?:md|tsv|c|py))\b", unquoted))
        for path in sorted(targets | paths):
            if not (folder / path).exists() and (path in targets or not (ROOT / path).exists()):
                yield f"{name}: there is no {path}"


def check_installed_examples():
    """examples/meson.build, which installs the sources of the examples, names each folder of them."""
    build = read(ROOT / "examples/meson.build")
    for name in sorted({path.split("/")[1] for path in tracked() if re.match(r"examples/.*/README\.md$", path)}):
        if f"'{name}'" not in build and f"'{name}/" not in build:
            yield f"examples/meson.build does not install examples/{name}"


def check_suites():
    """tests/README.md lists the suites that `meson test` leaves out."""
    left_out = set(re.findall(r"'(\w+)'", re.search(r"exclude_suites: \[(.*?)\]", read(ROOT / "tests/meson.build"))[1]))
    text = " ".join(read(ROOT / "tests/README.md").split())
    found = re.search(r"leaves out the suites ([\w, ]+)\.", text)
    listed = set(re.findall(r"\w+", found[1])) - {"and"} if found else set()
    for name in sorted(left_out ^ listed):
        yield f"tests/README.md: the list of suites that are left out {'lacks' if name in left_out else 'has'} {name}"


# ADDING.md: a new error code changes the first three. The tables have the released codes, and rows of functions.
CODES = {"include/librpma.h", "include/librpma.hpp", "man/rpma_errors.7", "contract/types.tsv", "contract/errors.tsv",
         "contract/original/errors.tsv", "NEWS.md",
         "tests/unit/objects/utils.c"}  # the texts of release 1.3.0


def check_codes():
    """All other files read the list of error codes from the header."""
    codes = set(re.findall(r"^#define (RPMA_E_\w+)", read(ROOT / "include/librpma.h"), flags=re.M))
    status = read(ROOT / "include/librpma.hpp")
    for code in sorted(codes):
        if not re.search(rf"= {code}\b", status):
            yield f"include/librpma.hpp lacks {code}, an enumerator of status"
    for name in tracked():
        text = re.sub(r"^ *//.*$", "", read(ROOT / name), flags=re.M)  # a comment tells the results of a function
        if name not in CODES and len(set(re.findall(r"\bRPMA_E_\w+", text)) & codes) > 0.7 * len(codes):
            yield f"{name} lists error codes: read them from include/librpma.h (contract/public_header.py)"


# The folders that define functions of libibverbs. tests/unit records the calls of the library, and info_machine.cc has
# devices of rpma-info that no other place has.
VERBS = {"sim/client", "bench/provider", "tests/unit/fakes", "tests/programs"}
PARTS = ("sim", "programs", "examples", "src", "include")
CODE = {".c", ".h", ".cc", ".hh", ".hpp", ".py", ".sh", ""}
TEST_LINES = 1.2  # at most, of a line of what they test


def check_sizes():
    """No second implementation, tests no longer than what they test, and a README for each folder."""
    lines, files = {True: 0, False: 0}, Counter()
    for name in tracked():
        parts, text = name.split("/"), read(ROOT / name)
        files["/".join(parts[:-1])] += parts[-1] != "meson.build"
        if re.search(r"^(?:struct )?ibv_pd \*ibv_alloc_pd\(.*\{$", text, flags=re.M) and str(pathlib.PurePath(name).parent) not in VERBS:
            yield f"{name} implements libibverbs: use the fabric, or the provider of the benches"
        if pathlib.PurePath(name).suffix in CODE and ("tests" in parts[:2] or parts[0] in PARTS):
            lines["tests" in parts[:2]] += text.count("\n")
    if lines[True] > TEST_LINES * lines[False]:
        yield f"{lines[True]} lines of tests for {lines[False]} lines of {', '.join(PARTS)}: at most {TEST_LINES} times as many"
    for folder, count in sorted(files.items()):
        if not folder or NO_README.match(folder) or (ROOT / folder / "README.md").is_file():
            continue
        above = next(parent for parent in (ROOT / folder).parents if (parent / "README.md").is_file())
        if count > 2 or (ROOT / folder).name not in read(above / "README.md"):
            yield f"{folder} has no README.md" + (f", and {above.relative_to(ROOT)}/README.md does not name it" if count < 3 else "")


def check_faults():
    """The faults of the fakes, apart from calls, have the names of the fabric's table."""
    table = set(re.findall(r'\{\.name = "([a-z-]+)"', read(ROOT / "sim/model/faults.cc")))
    for name, text in sources("tests/unit/**/*.[ch]", "tests/unit/**/*.tsv", "tests/fuzz/*.c"):
        found = re.findall(r'fake_(?:fail|fail_from|fault_due)\("([^"]*)"|; fail ((?:\w+ )?\w+) E\w+', text)
        for words in sorted({"".join(each).split(" ")[0] for each in found}):
            if words not in table and not re.fullmatch(r"(ibv|rdma|epoll|f?cntl|_exp)_?\w*|[cm]alloc|mmap|getaddrinfo", words):
                yield f"{name}: the fault {words} has no row in sim/model/faults.cc"


def check_programs():
    for path in sorted(ROOT.glob("man/rpma-*.1")):
        if not (ROOT / "programs/completion" / path.stem).is_file():
            yield f"{path.stem} has no bash completion"


def check_workflow():
    tiers = re.findall(r"^(?:quick|full)=\(([^)]*)\)", read(ROOT / "tools/test"), flags=re.M)
    listed = re.search(r"^ +step: \[([^]]*)\]", read(ROOT / ".github/workflows/ci.yml"), flags=re.M)
    if listed[1].split(", ") != " ".join(tiers).split():
        yield ".github/workflows/ci.yml has other steps than the tiers of tools/test"
    by_hand = re.search(r"^Only if named:\n(.*?)\n\n", read(ROOT / "tools/test"), flags=re.M | re.S)
    command = "tools/test " + " ".join(re.findall(r"^  (\S+)", by_hand[1], flags=re.M))
    if f"`{command}`" not in read(ROOT / "RELEASING.md"):
        yield f"RELEASING.md does not have all steps that run by hand: {command}"


def check_addresses():
    """tests/packages/files.py, which writes the addresses of the file contact, lists each file that has one."""
    addresses, listed = re.findall(r"^\w+ (\S+)$", read(ROOT / "contact"), flags=re.M), read(ROOT / "tests/packages/files.py")
    for name in tracked():
        if name != "contact" and f'"{name}"' not in listed and any(each in read(ROOT / name) for each in addresses):
            yield f"tests/packages/files.py does not list {name}, which has an address of the file contact"


def check_subjects():
    """The commits that the upstream branch does not have, or the last one without an upstream; a tarball has none."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        return
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "log", "--no-merges"]

    def log(*arguments):
        return subprocess.run([*git, "--format=%h %s", *arguments], capture_output=True, text=True, check=False)

    new = log("@{upstream}..")
    for line in (log("-1") if new.returncode else new).stdout.splitlines():
        number, _, subject = line.partition(" ")
        if len(subject) > 72 or not SUBJECT.fullmatch(subject):
            yield f"commit {number}: the subject is not \"area: change\" of at most 72 characters without a full stop: {subject}"


def check_missing():
    """A test whose program cannot be executed is skipped and names the program, whatever the folders of PATH contain."""
    with tempfile.TemporaryDirectory(prefix="librpma-rules-") as folder:
        for program in ("readelf", "mandoc"):
            (pathlib.Path(folder) / program).write_text("")  # not executable
        for command, program in (("tests/abi/released.py check /dev/null", "readelf"), ("tests/man/check.py mandoc", "mandoc")):
            done = subprocess.run([sys.executable, *command.split()], cwd=ROOT, env={**os.environ, "PATH": folder},
                                  capture_output=True, text=True, check=False)
            if done.returncode != 77 or program not in done.stdout + done.stderr:
                yield f"{command}, without {program}: status {done.returncode}: {(done.stderr or done.stdout)[-200:]}"


RULES = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


def main():
    names = sys.argv[1:] or list(RULES)
    if set(names) - set(RULES):
        sys.exit(f"{__doc__}\nRULE: {', '.join(RULES)}")
    faults = [f"rules {name}: {fault}" for name in names for fault in RULES[name]()]
    print("\n".join(faults) if faults else f"rules: {', '.join(names)}: no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
