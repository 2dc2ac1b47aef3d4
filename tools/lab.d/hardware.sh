# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# hardware.sh -- runs a command on this machine's own RDMA device
# shellcheck shell=bash

has_rdma_device() { [[ -n $(ls -A /sys/class/infiniband 2>/dev/null) ]]; }

run_on_hardware() { die "not yet"; }
