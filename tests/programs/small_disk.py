# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""A disk that is soon full, for programs that write files: a tmpfs in namespaces of their own."""

import functools
import subprocess

NAMESPACES = ("unshare", "--user", "--map-root-user", "--mount")


@functools.cache
def has_small_disk():
    """Returns true if this machine permits an unprivileged mount."""
    is_permitted = subprocess.run([*NAMESPACES, "mount", "-t", "tmpfs", "none", "/mnt"], check=False,
                                  stderr=subprocess.DEVNULL).returncode == 0
    if not is_permitted:
        print("# this machine permits no mounts: without a small disk")
    return is_permitted


def on_small_disk(size, before, *command):
    """Runs a command in a folder of this size, after a shell command; prints its status and the files that it leaves."""
    script = ('mount -t tmpfs -o size=$0 none /mnt && cd /mnt && eval "$1" && shift && "$@"; status=$?; '
              'echo "status $status, files: $(ls -A | tr "\\n" " ")"')
    return (*NAMESPACES, "sh", "-c", script, size, before, *command)
