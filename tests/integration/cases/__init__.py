# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The cases; importing this package fills the table in the order of the imports."""

from . import smoke
from . import data
from . import lacking
from . import atomics
from . import queues
from . import lists
from . import inline
from . import batches
from . import batches_faults
from . import batches_ends
from . import scale
from . import examples
from . import unlike
from . import faults_peer
from . import faults_data
from . import lost_peer
from . import establishing
from . import threads
from . import fork
from . import crowd
from . import connecting
from . import line
from . import overrun
from . import events
from . import removal
from . import signals
from . import addresses
from . import limits
from . import device
from . import device_defects
from . import manual
from . import perf
from . import perf_faults
from . import troubleshooting
from . import info
