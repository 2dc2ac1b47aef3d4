#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
#
# iser.sh -- a target of tgt with iSER and one disk: iser.sh DIRECTORY, in which it creates the file "ready"
set -eu

export TGT_IPC_SOCKET="$1/tgt"
truncate -s 16M "$1/disk"
tgtd -f --iser pool_sz_mb=128 &
daemon=$!
admin() { tgtadm --lld iser --tid 1 "$@"; }
until tgtadm --lld iser --mode sys --op show >"$1/show" 2>&1; do
    kill -0 "$daemon"
    sleep 0.05
done
admin --mode target --op new --targetname iqn.2026-11.sim:disk
admin --mode logicalunit --op new --lun 1 --backing-store "$1/disk"
# The login of iSER needs both.
admin --mode target --op bind --initiator-address ALL
admin --mode target --op bind --initiator-name iqn.2026-11.sim:client
touch "$1/ready"
wait "$daemon"
