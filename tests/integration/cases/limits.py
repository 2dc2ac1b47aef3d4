# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""A user other than root, with little memory that may be pinned, or without access to the devices."""

import errno
import glob
import os
import stat
import tempfile

from harness import lab
from harness.case import case, connect, listen, share_region
from harness.side import expect

from .addresses import exchange_data

UNPRIVILEGED = "65534"
LIMIT = 1 << 20
ENOMEM, ENODEV = "12", "19"


# The user cannot access a checkout below /root, or one made with umask 077: hence a copy.
AS_USER = """
    copy=$(mktemp --directory --tmpdir=/run)
    chmod 755 "$copy"
    cp -r "${1%/*}/." "$LD_LIBRARY_PATH/librpma.so.0" "$LIBRPMA_BUILD_DIR/python/rpma" "$copy"
    chmod -R a+rX "$copy"
    export LD_LIBRARY_PATH="$copy" PYTHONPATH="$copy"
    exec setpriv --reuid="$0" --regid="$0" --clear-groups "$copy/${1##*/}"
"""


def as_user(*limits):
    lab.need_virtual("another user")
    return (*limits, "sh", "-euc", AS_USER, UNPRIVILEGED)


@case("limits", "a user other than root registers memory within RLIMIT_MEMLOCK and uses it",
      shows=("mr: RLIMIT_MEMLOCK",))
def memlock(test):
    wrapper = as_user("prlimit", f"--memlock={LIMIT}:{LIMIT}")
    server, client = test.peers(wrapper=wrapper)
    before = len(test.stderr())
    client.refuses("RPMA_E_PROVIDER", "reg", errno=ENOMEM, mr=1, size=2 * LIMIT, usage=255)
    expect(f"may lock {LIMIT >> 10} KiB (RLIMIT_MEMLOCK)" in test.stderr()[before:], True,
           "the log names the limit")
    share_region(server, client)
    listen(server)
    connect(server, client)
    exchange_data(server, client)


@case("limits", "a user other than root listens on a port below 1024", shows=("listen: privileged port",))
def privileged_port(test):
    user = test.side(1, "user", wrapper=as_user())
    user.refuses("RPMA_E_PROVIDER", "listen", errno=str(errno.EACCES), addr=user.address, port=1023)
    user("listen", addr=user.address, port=1024)


@case("limits", "the rdma cgroup limits objects and the opening of devices", shows=("mr: cgroup", "local: bind"))
def rdma_cgroup(test):
    lab.need_virtual("a cgroup")
    directory = tempfile.mkdtemp(dir="/run")
    box = os.path.join(directory, "box")
    test.undo.callback(os.rmdir, directory)
    lab.run("mount", "-t", "cgroup2", "none", directory)
    test.undo.callback(lab.run, "umount", directory)

    def write(name, text):
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            file.write(text)

    write("cgroup.subtree_control", "+rdma")
    os.mkdir(box)
    test.undo.callback(os.rmdir, box)
    side, late = test.side(1, "limited"), test.start(1, "late", checked=False)
    for each in (side, late):
        write("box/cgroup.procs", str(each.pid))
    write("box/rdma.max", f"{side.device} hca_handle=0 hca_object=0")
    side.refuses("RPMA_E_PROVIDER", "reg", errno=str(errno.EAGAIN), mr=0, size=4096, usage=255)
    late.refuses("RPMA_E_PROVIDER", "context", errno=ENODEV, addr=late.address)


@case("limits", "a user that may not open {nodes}: RPMA_E_PROVIDER, errno {errno}",
      [{"nodes": "/dev/infiniband/uverbs*", "errno": ENODEV, "shows": ("local: bind",)},
       {"nodes": "/dev/infiniband/rdma_cm", "errno": ENOMEM,
        "shows": ("local: rdma_cm closed",)}])
def nodes_closed(test, nodes, errno):
    """librdmacm and libibverbs hide the reason: no call sets errno to EACCES."""
    wrapper = as_user()
    for node in glob.glob(nodes):
        test.undo.callback(os.chmod, node, stat.S_IMODE(os.stat(node).st_mode))
        os.chmod(node, 0o600)
    user = test.start(1, "user", wrapper=wrapper, checked=False)
    user.refuses("RPMA_E_PROVIDER", "context", errno=errno, addr=user.address)
    user.quit()
