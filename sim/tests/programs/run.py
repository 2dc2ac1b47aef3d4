#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Runs unchanged programs of Debian on the simulated fabric, as an ordinary user if one can
access the build directory. Prints TAP.

usage: run.py RDMA-SIM [CASE...]
"""

import explorations  # noqa: F401
import lifetimes  # noqa: F401
import listed  # noqa: F401
import rdma_core_suite
import rejected  # noqa: F401
import transfers  # noqa: F401
from fixture import main

if __name__ == "__main__":
    # Other tests of meson run the suite of rdma-core, which waits most of its time.
    main(__doc__, needs_name=rdma_core_suite.SUITE_ON)
