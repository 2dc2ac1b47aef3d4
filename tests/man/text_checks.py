# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks that need only the sources. Each yields one line per fault."""

import re
import shutil
import subprocess

import contract
import mdoc

SECTIONS = {
    "1": ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO", "HISTORY", "BUGS"],
    "3": ["NAME", "LIBRARY", "SYNOPSIS", "DESCRIPTION", "ATTRIBUTES", "RETURN VALUES", "EXAMPLES", "ERRORS",
          "HISTORY", "SEE ALSO"],
    "7": ["NAME", "DESCRIPTION", "SEE ALSO"],
}
OVERVIEW, FUNCTIONS, INDEX = "librpma.7", "rpma_functions.7", "rpma_index.7"
LONGEST = 600  # lines of a page of section 7
REFERENCE = "rpma_troubleshooting.7"  # readers search it, so it may be longer
DOCUMENTS = ("*.md", "docs/*.md", "examples/*/README.md", "sim/README.md", "sim/examples/README.md")


def functions_pages(book):
    return [page for page in book.pages if page.volume == "3"]


def check_pages(book):
    """The pages list each exported function, each program and rdma-sim explore once in NAME; the
    page's own name is the first."""
    wanted = [*contract.exported_functions(book.source), *contract.programs(book.source), "rdma-sim-explore"]
    listed = [name for page in book.pages if page.volume in "13" for name in page.names()]
    for name in sorted({*wanted, *listed}):
        if listed.count(name) != (name in wanted):
            yield f"man: {name} is in NAME of {listed.count(name)} pages instead of {int(name in wanted)}"
    for page in book.pages:
        if page.names()[:1] != [page.stem]:
            yield f"man/{page.name}: NAME must begin with {page.stem}"


def check_topics(book):
    """A page of section 7 is short and begins with the question that it answers. The overview lists
    the questions, and rpma_functions(7) lists all functions with the descriptions of their
    pages."""
    present = {page.name: page for page in book.pages}
    for name in (OVERVIEW, FUNCTIONS):
        if name not in present:
            yield f"man/{name} is missing"
            return
    listed = {tuple(names): about for names, about in present[OVERVIEW].entries("7")}
    for page in book.pages:
        if page.volume != "7":
            continue
        count = len(page.text.splitlines())
        if count > LONGEST and page.name != REFERENCE:
            yield f"man/{page.name} has {count} lines, more than {LONGEST}: divide it"
        question = page.first_sentence()
        if not re.search(r"^This page answers|\?$", question):
            yield f"man/{page.name}: DESCRIPTION must begin with a reader's question: {question}"
        elif page.name != OVERVIEW and not page.name.startswith("rdma-sim") and listed.get((page.stem,)) != question:
            yield f"man/{OVERVIEW} must list {page.stem}(7) with: {question}"
    exported = contract.exported_functions(book.source)
    listed = [name for names, _ in present[FUNCTIONS].entries("3") for name in names]
    for name in sorted({*exported, *listed}):
        if listed.count(name) != (name in exported):
            yield f"man/{FUNCTIONS} must list each exported function once: {name}"


def check_head(book):
    """A page has the expected sections, and man/generate.py writes the title."""
    for page in book.pages:
        if [line.macro for line in page.lines].count("Dt") != 1:
            yield f"man/{page.name}: man/generate.py writes .Dd, .Dt and .Os"
        for title in SECTIONS[page.volume]:
            if not page.section(title):
                yield f"man/{page.name}: section {title} is missing or empty"
        for line in page.lines:
            if line.macro in ("Ss", "It") and "An" in line.args:
                yield f"man/{page.name}:{line.number}: An is a macro, so that the word is not printed"


def check_synopsis(book):
    """SYNOPSIS includes the header, and man/generate.py writes all its prototypes."""
    for page in functions_pages(book):
        includes = [line.args for line in page.section("SYNOPSIS") if line.macro == "In"]
        if includes != [["librpma.h"]]:
            yield f"man/{page.name}: SYNOPSIS must include librpma.h, and nothing else"
        if [name for name, _, _ in page.prototypes()] != page.names():
            yield f"man/{page.name}: SYNOPSIS must leave the prototypes to man/generate.py"


def check_types(book):
    """SYNOPSIS shows each type in the prototypes, with the values of its enumerators."""
    declared, defined = contract.types(book.source), contract.macros(book.source)
    for page in functions_pages(book):
        text = "\n".join(block for _, block in page.literal_blocks("SYNOPSIS"))
        parts = re.split(r"^(?=(?:enum|struct|typedef|#define) )", text, flags=re.M)
        shown = {contract.normalise(part) for part in parts if not part.startswith("#")} - {""}
        lines = {" ".join(line.split()) for line in text.splitlines() if line.startswith("#")}
        for what in sorted(shown - set(declared.values())) + sorted(lines - defined):
            yield f"man/{page.name}: SYNOPSIS: {what} is not what include/librpma.h declares"
        used = " ".join(" ".join(parameters) for _, _, parameters in page.prototypes())
        for name, whole in declared.items():
            if re.search(rf"\b{name}\b", used) and whole not in shown:
                yield f"man/{page.name}: SYNOPSIS must show {name}"


def check_since(book):
    """HISTORY has the release of each value that is newer than the page's functions."""
    first = contract.first_releases(book.source)
    for page in functions_pages(book):
        history = " ".join(line.text() for line in page.section("HISTORY"))
        shown = " ".join([text for _, text in page.literal_blocks("SYNOPSIS")] + [
            arg for line in page.section("DESCRIPTION") if line.macro == "It" for arg in line.args])
        newest = max(first[name] for name in page.names())
        for name in {name for name in re.findall(r"\bRPMA_\w+", shown) if first.get(name, (0,)) > newest}:
            release = ".".join(map(str, first[name]))
            if name not in history or release not in history:
                yield f"man/{page.name}: HISTORY must have {name} and its release {release}"


def check_news(book):
    """Each release in NEWS.md has the table to which rpma_upgrading(7) sends its readers; it may be empty."""
    parts = re.split(r"^## (\d+\.\d+\.\d+)$", (book.source / "NEWS.md").read_text(encoding="utf-8"), flags=re.M)
    for release, text in zip(parts[1::2], parts[2::2]):
        if not re.search(r"^#{3,4} Results that differ$", text, flags=re.M):
            yield f"NEWS.md: {release} has no section \"Results that differ\""
        for line in re.findall(r"^.*\S +#{2,}.*$", text, flags=re.M):
            yield f"NEWS.md: {release}: a heading begins a line: {line}"


def check_repeated(book):
    """README.md has the cost of a write from docs/performance.md, whose text has the differences of its table, and
    rpma_security(7) lists each usage that, by rpma_mr_reg(3), allows remote access."""
    readme, measured = ((book.source / name).read_text(encoding="utf-8") for name in ("README.md", "docs/performance.md"))
    verbs, calls = map(int, re.search(r"\| write \| (\d+) \| (\d+) \|", measured).groups())
    if f"costs the processor {calls} instructions, {calls - verbs} more than bare verbs" not in readme:
        yield f"README.md: the cost of a write is {calls} instructions, {calls - verbs} more than verbs (docs/performance.md)"
    for row, text in (("connection created and deleted, in the library", "connection takes {0} more in the library**, {1} in the packages"),
                      ("… with the log off, the whole call", "a refused write takes {3}, {2} fewer than in the original")):
        found = re.search(rf"^\| {row} \| \S+ \|" + 4 * r" ([\d,]+) \|", measured, flags=re.M)
        ours, packaged, _, original = (int(number.replace(",", "")) for number in found.groups())
        if (wanted := text.format(ours - original, packaged - original, original - packaged, packaged)) not in measured:
            yield f"docs/performance.md: {wanted!r} is missing, by its table"
    pages = {page.name: page for page in book.pages}
    listed = {arg for line in pages["rpma_security.7"].part("What a descriptor gives away") for arg in line.args}
    usage = None
    for line in pages["rpma_mr_reg.3"].part("Access rights"):
        usage = line.args[1] if line.macro == "It" else usage
        if any(arg.startswith("IBV_ACCESS_REMOTE") for arg in line.args) and usage not in listed:
            yield f"man/rpma_security.7: {usage} grants the other side access, and the page does not list it"


def check_posts(book):
    """The page of each function that posts says that an operation may be executed although its post
    failed, and where the reader finds more about it."""
    posting = {row["function"] for row in contract.errors.read_errors()
               if row["code"] == "RPMA_E_PROVIDER" and re.search(r"\bibv_post_\w+\(\)", row["condition"])}
    for page in book.pages:
        if page.volume != "3" or not posting & set(page.names()):
            continue
        posting -= set(page.names())
        sentences = re.sub(r"\s+", " ", re.sub(r"^\.[A-Z][a-z] ", "", page.text, flags=re.MULTILINE))
        if not re.search(r"failed with RPMA_E_PROVIDER may still (?:be executed|take a message), so its memory is "
                         r"free only after .*?rpma_failures 7", sentences):
            yield f"man/{page.name} must say what may happen to an operation whose post failed, as rpma_write(3) does"
    for name in sorted(posting):
        yield f"man: no page has {name}, which posts"


def check_guides(book):
    """A page about functions refers to a page of section 7 in its text. SEE ALSO of each page has the pages of sections 1
    and 7 that its text names."""
    guides = {page.name for page in book.pages if page.volume == "7" and page.name not in (OVERVIEW, INDEX) and not page.name.startswith("rdma-sim")}
    unnamed, programs = set(guides), {page.name for page in book.pages if page.volume == "1"}
    for page in book.pages:
        also = page.section("SEE ALSO")
        listed, text = ({f"{name}.{section}" for _, name, section in page.references(lines)}
                        for lines in (also, [line for line in page.lines if line not in also]))
        if page.name not in (OVERVIEW, FUNCTIONS, INDEX):
            for name in sorted(text & (guides | programs) - listed - {page.name}):
                yield f"man/{page.name}: SEE ALSO lacks {name}"
    for page in functions_pages(book):
        also = page.section("SEE ALSO")
        inside = {f"{name}.7" for _, name, _ in page.references(
            line for line in page.lines if line not in also)} & guides
        if not inside:
            yield f"man/{page.name} names no page of section 7 but {OVERVIEW} before SEE ALSO"
        unnamed -= inside
    for name in sorted(unnamed):
        yield f"man/{name}: no page of section 3 names it before SEE ALSO"


def named_sections(page):
    """(section, page) of each reference to a section of a page."""
    for line in page.lines:
        if line.macro == "Sx":
            yield " ".join(line.args).rstrip(" .,:;)"), page.name
    text = "\n".join(line.raw for line in page.lines)
    yield from re.findall(r"\.Dq ([A-Z0-9].+)\n(?:in|of)\n\.Xr (\S+ \d)", text)
    for name, title in re.findall(r"\.Xr (\S+ \d) ,\n\.Dq ([A-Z0-9].+)", text):
        yield title.removesuffix(" ,").removesuffix(" ."), name


def document_sections(source):
    """(file, section, page) of each reference in documents to a section of a page."""
    for pattern in DOCUMENTS:
        for path in sorted(source.glob(pattern)):
            text = " ".join(path.read_text(encoding="utf-8").split())
            for title, name, number in re.findall(r'"([A-Z][^"]+)" (?:in|of) `?(?:man \d )?(rpma-?\w+|librpma)\((\d)\)', text):
                yield path.relative_to(source), title, f"{name}.{number}"


# Subjects, and the only page that describes them.
HOMES = {"soft-iWARP": "rpma_soft_devices", "soft-RoCE": "rpma_soft_devices", "atomic with": "rpma_memory_model"}


# Rules that one page states and all others refer to: words of a sentence that tells the rule, and its page.
RULES = {
    r"^(?=.*\bcxgb4\b)(?=.*\b(?:fence|flush|atomic write))": "rpma_atomic_write.3",
    r"^(?=.*\b(?:8 bytes|pointer|source)\b)(?=.*\b(?:tears?|torn)\b)(?=.*\b(?:power|source)\b)": "rpma_memory_model.7",
    r"^(?=.*\b(?:library|librpma)\b)(?=.*\bcannot (?:detect|check)\b)": "rpma_peer_cfg_set_direct_write_to_pmem.3",
    r"\b(?:0\.54|2\.15|1\.07) s|\b17 seconds|\b655(?:\.36)? milliseconds": "rpma_conn_cfg_new.3",
    r"\bEPOLLET\b(?!\.)": "rpma_tutorial.7",
    r"(?i)^(?=.*\b(?:address|thread|memory) ?sanitizer)(?=.*\b(?:need|run|option|report))": "rdma-sim-test.7",
    r"\bIBV_ATOMIC_GLOB\b": "rpma_memory_model.7",
    r"\bkeeps its entry|\bonce per length|\bentry\b.* (?:is|are) (?:ever )?freed|\bfrees the (?:entry|entries|send queue)": "rpma_conn_cfg_new.3",
}
# A page may show the name of a value, if it tells nothing about the value: sentences with these words.
NAMED = re.compile(r"\bremote atomics with IBV_ATOMIC_|\bEPOLLIN \| EPOLLET\b")


def check_rules(book):
    """A rule has one page: no other page or document has a sentence that tells it."""
    told = set()  # words of rules that their page tells
    for where, text in texts_of(book).items():
        for sentence in re.split(r"(?<=[.:;?!])\s", " ".join(text.split())):
            for words, home in RULES.items():
                if not re.search(words, sentence) or NAMED.search(sentence):
                    continue
                told |= {words} if where == f"man/{home}" else set()
                if where != f"man/{home}":
                    yield f"{where}: {home} tells this rule; refer to that page: {sentence}"
    for words in sorted(set(RULES) - told):
        yield f"man/{RULES[words]} does not tell the rule about {words}"


def texts_of(book):
    """{file: text} of the pages and documents."""
    texts = {f"man/{page.name}": mdoc.joined(line.text().replace("()", "(7)") for line in page.lines) for page in book.pages}
    for pattern in DOCUMENTS:
        texts |= {path.relative_to(book.source): path.read_text(encoding="utf-8") for path in book.source.glob(pattern)
                  if path.name != "NEWS.md"}
    return texts


def check_homes(book):
    """A reference to the description of a subject names its page."""
    for where, text in texts_of(book).items():
        for name, what in re.findall(r"(rpma_\w+)\(\d\)\s+(?:describes|explains|lists|shows)\s([^.:;]+)", text):
            for subject, home in HOMES.items():
                if subject in " ".join(what.split()) and name != home:
                    yield f"{where}: {name} does not describe {subject!r}; {home}(7) does"


def check_references(book):
    """
    Each cross reference names an existing page of this manual, an existing section of one, or a
    known page of others.
    """
    known = {(name, line[0]) for line in book.foreign.read_text().splitlines()
             if not line.startswith("#") for name in line.split()[1:]}
    ours, providers = {f"{name}.{page.volume}": page for page in book.pages for name in page.names()}, set()
    for where, title, name in [*((f"man/{page.name}", *each) for page in book.pages for each in named_sections(page)),
                               *document_sections(book.source)]:
        name = name.replace(" ", ".")
        if name in ours and title not in ours[name].titles():
            yield f"{where}: {name} has no section {title!r}"
    for page in book.pages:
        for number, name, section in page.references():
            if name.startswith(("ibv_", "rdma_")):
                providers.add((name, section))
            elif f"{name}.{section}" not in ours and (name, section) not in known:
                yield f"man/{page.name}:{number}: there is no page {name}({section})"
    if in_manual("ibv_reg_mr", "3") and in_manual("rdma_connect", "3"):
        yield from (f"man(1) has no page {name}({section})" for name, section in sorted(providers)
                    if not in_manual(name, section))
    else:
        print("note: the pages of libibverbs and librdmacm are not installed, so they were not looked for")


def in_manual(name, section):
    return shutil.which("man") and subprocess.run(["man", "-w", section, name], capture_output=True,
                                                  check=False).returncode == 0
