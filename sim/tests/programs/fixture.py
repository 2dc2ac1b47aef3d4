# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Registers tests that run programs on the simulated fabric, and runs them as TAP, as an ordinary user if one can access
the build directory."""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import traceback

LIMIT = 120
SERVER = "10.77.0.1"
CASES = []
NOBODY = {"user": "nobody", "group": "nogroup", "extra_groups": []}
# rping of Debian 12 fails after its last ping if main() deletes the event channel before its other thread waits again:
# github.com/linux-rdma/rdma-core/pull/1622. Such a run is repeated.
RPING_ENDS = r"^(host\d: )?rdma_get_cm_event: "
RPING_RUNS = 3
WAIT = "until test -e {begun}; do sleep 0.01; done"
# A program that creates objects, prints its process ID, and executes its argument.
OBJECTS = r"""
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char *argv[]) {
    static char memory[3 * 4096];
    struct ibv_context *context = ibv_open_device(ibv_get_device_list(NULL)[0]);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 100, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1}, .qp_type = IBV_QPT_RC};
    for (int i = 0; i < 5; i++)
        if (!ibv_create_qp(pd, &attr))
            return 1;
    for (int i = 1; i <= 3; i++)
        if (!ibv_reg_mr(pd, memory, i * 4096, IBV_ACCESS_LOCAL_WRITE))
            return 1;
    printf("%d\n", getpid());
    fflush(stdout);
    return argc < 2 || system(argv[1]) != 0;
}
"""


class Missing(Exception):
    """The test cannot run here; the text names the missing part."""


def case(name, commands, *expected, options="", status=0, needs=()):
    """Registers a test: programs of several hosts, and regular expressions that their output must match."""
    def function(fixture):
        done = fixture.sim(*options.split(), "--prefix", *commands.split())
        fixture.expect(done, status, *expected)
    CASES.append((name, needs or [commands.split()[0]], function))


def test(name, *needs):
    def register(function):
        CASES.append((name, needs, function))
        return function
    return register


def run_when(fixture, begun, *arguments):
    """A command with WAIT waits until the output matches begun."""
    file = fixture.work / "begun"
    file.unlink(missing_ok=True)
    process = fixture.start("--prefix", *(str(word).replace("{begun}", str(file)) for word in arguments))
    output = ""
    while not re.search(begun, output) and (line := process.stdout.readline()):
        output += line
    file.touch()
    rest, _ = process.communicate(timeout=LIMIT)
    fixture.check_left()
    return subprocess.CompletedProcess(arguments, process.returncode, output + rest, None)


def ordinary(*files):
    """Arguments of Popen() for an ordinary user. Only root can enter a checkout below /root."""
    if os.getuid() != 0:
        return {}
    closed = [folder for file in files for folder in file.parents if not folder.stat().st_mode & stat.S_IXOTH]
    if closed:
        print(f"# as root, because no other user may enter {closed[0]}", flush=True)
    return {} if closed else NOBODY


class Fixture:
    def __init__(self, program, work, user):
        self.program, self.work, self.user = program, work, user
        self.shims = pathlib.Path(self.sim("printenv", "LD_LIBRARY_PATH").stdout.split(":")[0].strip())

    def start(self, *arguments, environment=None, errors=subprocess.STDOUT):
        return subprocess.Popen([self.program, *arguments], text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=errors, cwd="/", **self.user,
                                env={**os.environ, "TMPDIR": str(self.work / "tmp"), "HOME": "/nonexistent",
                                     **(environment or {})})

    def sim(self, *arguments, environment=None, errors=subprocess.STDOUT):
        for _ in range(RPING_RUNS if "rping" in arguments else 1):
            done = self.sim_once(*arguments, environment=environment, errors=errors)
            if done.returncode == 0 or not re.search(RPING_ENDS, done.stdout, re.M):
                break
        return done

    def sim_once(self, *arguments, environment=None, errors=subprocess.STDOUT):
        process = self.start(*arguments, environment=environment, errors=errors)
        try:
            output, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.terminate()
            output, _ = process.communicate()
            raise AssertionError(f"no end within {LIMIT} s: {output}") from None
        self.check_left()
        return subprocess.CompletedProcess(arguments, process.returncode, output, None)

    def run(self, *command):
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode == 77:  # Debian's package could not be downloaded
            raise Missing(done.stdout.strip().splitlines()[-1])
        assert done.returncode == 0, f"{command}: {done.stdout}"
        for path in self.work.rglob("*"):
            if not path.is_symlink() and path.is_file():
                path.chmod(path.stat().st_mode | 0o444)
        return done.stdout

    def path_of(self, library):
        return re.search(rf"^\s*{re.escape(library)} .*=> (\S+)$", self.run("/sbin/ldconfig", "-p"), re.M).group(1)

    def check_left(self):
        """Checks files of the fabric only: the fabric is an ancestor of its processes, which end first."""
        names = [path.name for path in (self.work / "tmp").iterdir() if "test-" not in path.name]
        assert not names, f"left: {names}"

    def expect(self, done, status, *patterns):
        statuses = status if isinstance(status, tuple) else (status,)
        end = done.stdout[-4096:]
        assert done.returncode in statuses, f"status {done.returncode} instead of {status}: {end}"
        for pattern in patterns:
            assert re.search(pattern, done.stdout, re.M), f"no '{pattern}' in: {end}"


def attempt(function, needs, program, user):
    missing = [name for name in needs if not shutil.which(name)]
    if missing:
        raise Missing(f"no {missing[0]} here: tools/setup unchanged")
    with tempfile.TemporaryDirectory(prefix="rdma-sim-test-") as name:
        work = pathlib.Path(name)
        work.chmod(0o777)
        (work / "tmp").mkdir()
        (work / "tmp").chmod(0o777)
        function(Fixture(program, work, user))


def main(usage, needs_name=None):
    """Run the tests that the arguments name, or all but those whose names begin with the words needs_name."""
    if len(sys.argv) < 2:
        sys.exit(usage)
    program, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    os.umask(0o022)
    user = ordinary(pathlib.Path(program))
    chosen = [row for row in CASES
              if (row[0] in wanted if wanted else needs_name is None or not row[0].startswith(needs_name))]
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    for number, (name, needs, function) in enumerate(chosen, 1):
        verdict, remarks = "ok", ""
        began = time.monotonic()
        try:
            attempt(function, needs, program, user)
            name += f" ({time.monotonic() - began:.1f} s)"
        except Missing as missing:
            name += f" # SKIP {missing}"
        except Exception:  # pylint: disable=broad-except
            remarks = "".join("\n# " + line for line in traceback.format_exc().splitlines())
            verdict, failed = "not ok", failed + 1
        print(verdict, number, "-", name + remarks, flush=True)
    sys.exit(failed != 0)
