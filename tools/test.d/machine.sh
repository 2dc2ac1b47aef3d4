# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# machine.sh -- a bare Debian in $machine, which tools/test.d/readme and sim-alone share
# shellcheck disable=SC2016,SC2154 # variables of the machine's shell and of the caller

# make_bare RELEASE: makes the machine, whose apt asks nothing
make_bare() {
    use_root bare "$1"
    rm -rf --one-file-system -- "$machine"
    mkdir -p -- "$machine"
    cp -a -- "$root/." "$machine/"
    cp -- /etc/resolv.conf "$machine/etc/"
    { network_options && echo 'APT::Get::Assume-Yes "true";'; } >"$machine/etc/apt/apt.conf.d/90unattended"
}

# on_machine FOLDER COMMAND: runs it in this folder of root
on_machine() {
    unshare --mount --propagation private -- bash -euc '
        mount --bind "$1" "$1"
        for dir in proc sys dev; do mount --rbind "/$dir" "$1/$dir"; done
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
            chroot "$1" bash -euc "cd ~/$2; $3"' - "$machine" "$1" "$2"
}
