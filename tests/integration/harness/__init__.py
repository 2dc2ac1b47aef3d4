# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""What the integration tests share."""
