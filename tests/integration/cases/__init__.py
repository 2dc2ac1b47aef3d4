# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The cases; importing this package fills the table in the order of the imports."""

from . import smoke
from . import data
from . import flush
from . import lacking
from . import atomics
from . import queues
from . import batches
from . import scale
from . import crowd
from . import examples
from . import unlike
from . import faults
from . import denied
from . import lost
from . import establishing
from . import threads
from . import fork
from . import events
from . import signals
from . import addresses
from . import limits
from . import device
from . import device_defects
from . import perf
from . import perf_faults
from . import troubleshooting
from . import info
