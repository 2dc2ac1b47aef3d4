#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Runs settings.c on rdma-sim for sentences of rpma_conn_cfg_new(3) about settings without an effect:

settings.py SOURCE LIBRARY RDMA_SIM COMPILER...

The link is cut once the sides are connected, and joined again when the side that reads has waited for longer than its
settings allow.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

SHORT = ["ack=20", "retry=0"]  # an operation fails after 160 ms at most, if the settings apply to it
# sentence of the page, device, action and settings of the server, of the client
CLAIMS = [
    ("The accepting side's value has no effect.", "rxe", ["read", *SHORT], ["wait", "ack=20", "retry=7"]),
    ("The time applies to the operations that this side posts.", "rxe", ["wait", *SHORT], ["read", "retry=3"]),
    ("On iWARP, TCP retransmits, and the setting has no effect.", "siw", ["wait"], ["read", *SHORT]),
    ("On iWARP both values are accepted and have no effect: TCP retransmits, and a message without a receive ends the "
     "connection.", "siw", ["wait", "rnr=7"], ["send", "rnr=7"]),
    ("On iWARP there is no such time, and the setting has no effect.", "siw", ["wait", "timer=655"],
     ["send", "timer=655"]),
]
WAIT = "until [ -e $0 ]; do sleep 0.005; done"


def main():
    (source, library, rdma_sim), compiler = (pathlib.Path(each).resolve() for each in sys.argv[1:4]), sys.argv[4:]
    page = (source / "man/rpma_conn_cfg_new.3").read_text(encoding="utf-8")
    page = " ".join(line for line in page.splitlines() if not line.startswith('.\\"'))
    path = f"{library.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    failures = []
    with tempfile.TemporaryDirectory(prefix="librpma-settings-") as folder:
        program = pathlib.Path(folder) / "settings"
        subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", f"-I{source}/include", "-o", program,
                        source / "tests/man/settings.c", library], check=True)
        for number, (claim, device, server, client) in enumerate(CLAIMS):
            here = pathlib.Path(folder) / str(number)
            here.mkdir()
            done = subprocess.run(
                [rdma_sim, "--device", device, "--fault", "after host3 cut host1 host2",
                 "--fault", "after host4 join host1 host2", "--until", "host1", program, "server", *server,
                 "::", program, "client", *client, "::", "sh", "-c", WAIT, "connected",
                 "::", "sh", "-c", WAIT, "waited"],
                cwd=here, capture_output=True, text=True, check=False, timeout=60,
                env={**os.environ, "LD_LIBRARY_PATH": path})
            if done.returncode or done.stdout:
                failures.append(f"{claim}\n  status {done.returncode}: {done.stdout}{done.stderr}")
            if claim not in page:
                failures.append(f"rpma_conn_cfg_new(3) has no sentence: {claim}")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
