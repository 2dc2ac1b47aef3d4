#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers

# Starts a command on another host of the fabric, in place of rsh, for mpirun.
# usage: RDMA_SIM=RDMA-SIM rsh.sh HOST COMMAND...
host=$1
shift
exec "$RDMA_SIM" --join "" --host "$host" sh -c "$*"
