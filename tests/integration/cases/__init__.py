# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The cases; importing this package fills the table in the order of the imports."""

from . import smoke
