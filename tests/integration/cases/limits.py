# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""A user that is not root."""

import glob
import os
import stat

from harness import lab
from harness.case import case
from harness.side import expect

NOBODY = "65534"
ENOMEM, ENODEV = "12", "19"


def as_user(*limits):
    lab.need_virtual("another user")
    return (*limits, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


@case("limits", "a user that may not open {nodes}: RPMA_E_PROVIDER, errno {errno}",
      [{"nodes": "/dev/infiniband/uverbs*", "errno": ENODEV},
       {"nodes": "/dev/infiniband/rdma_cm", "errno": ENOMEM}])
def nodes_closed(test, nodes, errno):
    """librdmacm and libibverbs say little about why: no error number is EACCES."""
    wrapper = as_user()
    for node in glob.glob(nodes):
        test.undo.callback(os.chmod, node, stat.S_IMODE(os.stat(node).st_mode))
        os.chmod(node, 0o600)
    user = test.start(1, "user", wrapper=wrapper, checked=False)
    user.wait_for_line()
    user.begin("context", addr=user.address)
    code, answer = user.take()
    expect((code, answer.get("errno")), ("RPMA_E_PROVIDER", errno), "context")
    user.begin("quit")
    user.wait_for_end()
