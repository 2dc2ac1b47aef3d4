#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
#
# ceph.sh -- a monitor of Ceph on host1 whose messages use RDMA: ceph.sh DIRECTORY
set -eu

cat >"$1/ceph.conf" <<END
[global]
fsid = 11111111-2222-3333-4444-555555555555
mon host = 10.77.0.1:6789
auth cluster required = none
auth service required = none
auth client required = none
ms type = async+rdma
ms async rdma device name = rxe0
ms async rdma gid idx = 1
ms async rdma send buffers = 256
ms async rdma receive queue len = 256
ms async rdma receive buffers = 1024
ms async rdma buffer size = 16384
ms bind msgr2 = false
run dir = $1
log file = $1/\$name.log
admin socket = $1/\$name.asok
mon data = $1/mon
END
mkdir "$1/mon"
monmaptool --create --addv a '[v1:10.77.0.1:6789]' --fsid 11111111-2222-3333-4444-555555555555 "$1/monmap"
ceph-mon --mkfs -i a --monmap "$1/monmap" -c "$1/ceph.conf"
exec ceph-mon -f -i a -c "$1/ceph.conf" --public-addr 10.77.0.1:6789
