# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Modules that the integration tests share."""
