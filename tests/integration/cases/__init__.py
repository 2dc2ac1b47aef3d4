# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The cases. Importing this package registers them in the order of the imports."""

from . import (smoke, data, flush, lacking, atomics, queues, batches, scale, crowd, examples, interop, faults, denied,
               lost, establishing, threads, fork, events, signals, addresses, limits, device, device_defects, perf,
               rpma_check, perf_faults, power_cut, troubleshooting, info, tracing)
