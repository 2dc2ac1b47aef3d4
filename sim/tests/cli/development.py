#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Builds examples/unit_test.c with the installed development files and runs it: development.py BUILD PAGE

BUILD is installed into another directory. PAGE is rdma-sim-test(7), which describes the functions of rdma-sim.h.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

BUILD, PAGE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "unit_test.c"


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=100,
                          **options)
    if done.returncode:
        raise AssertionError(f"{shlex.join(map(str, command))} ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout


class Development(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="rdma-sim-development-")
        cls.addClassCleanup(directory.cleanup)
        cls.work = pathlib.Path(directory.name)
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", cls.work)
        options = {each["name"]: each["value"] for each in json.loads(run("meson", "introspect", "--buildoptions", BUILD))}
        cls.sanitizer = [f"-fsanitize={options['b_sanitize']}"] * (options["b_sanitize"] != "none")
        cls.libdir, cls.includedir = (f"{cls.work}{pathlib.Path(options['prefix'], options[name])}"
                                      for name in ("libdir", "includedir"))
        cls.header = pathlib.Path(cls.includedir, "rdma-sim.h")

    def pkg_config(self, *options):
        return shlex.split(run("pkg-config", *options, "rdma-sim", env={
            **os.environ, "PKG_CONFIG_PATH": f"{self.libdir}/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": str(self.work)}))

    def test_program_of_the_installed_files_is_run(self):
        for compiler, standard in ("cc", "-std=c99"), ("cc", "-std=c17"):
            with self.subTest(standard):
                program = self.work / "program"
                run(compiler, standard, "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *self.sanitizer, EXAMPLE, "-o", program,
                    "-Wl,--as-needed,--no-undefined", *self.pkg_config("--cflags", "--libs"))
                # The path in the program is that of an installation without a DESTDIR.
                output = run(program, env={**os.environ, "LD_LIBRARY_PATH": f"{self.libdir}/rdma-sim",
                                           "ASAN_OPTIONS": "detect_leaks=0"})
                self.assertEqual(output, "passed\n")

    def test_program_names_the_three_libraries(self):
        """Also if only a library of the program uses them: those of the machine would be loaded otherwise."""
        (self.work / "empty.c").write_text("int main(void) { return 0; }\n")
        program = self.work / "empty"
        run("cc", self.work / "empty.c", "-o", program, "-Wl,--as-needed", *self.pkg_config("--libs"))
        dynamic = run("readelf", "--dynamic", "--wide", program)
        for name in ("librdma-sim.so.0", "libibverbs.so.1", "librdmacm.so.1"):
            self.assertIn(f"[{name}]", dynamic)
        self.assertRegex(dynamic, r"\((RUNPATH|RPATH)\).*/rdma-sim\]")

    def test_header_is_c_and_cpp(self):
        for arguments in (["cc", "-std=c99", "-xc"], ["c++", "-std=c++11", "-xc++"]):
            run(*arguments, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", self.header)

    def test_page_has_each_function_with_its_errors(self):
        header, page = self.header.read_text(), PAGE.read_text()
        comments = dict(re.findall(r"/\* ([^/]*?) \*/\n(?:int|const char \*) ?(\w+)\(", header))
        errors = {name: re.findall(r"^ \*   (E\w+)", comment, re.M) for comment, name in comments.items()}
        self.assertEqual(len(errors), 10)
        for name, expected in errors.items():
            with self.subTest(name):
                part = re.search(rf"^\.It Fn {name}\b.*?(?=^\.It Fn|^\.Sh)", page, re.M | re.S)
                self.assertIsNotNone(part)
                self.assertEqual(re.findall(r"^\.It Bq Er (E\w+)", part[0], re.M), expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
