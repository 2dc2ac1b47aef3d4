# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# pmem.sh -- the first NVDIMM holds an FS-DAX file system, the second is a device DAX
# shellcheck shell=bash

# Namespaces and file system come formatted with the memory; only the lab's preparation, whose NVDIMMs
# are blank, makes them. So a memory file of an earlier run is used as that run left it.
bring_up_pmem() {
    modprobe -a nfit nd_pmem dax_pmem device_dax ext4 || return
    wait_for_regions || return
    if [[ $lab_keep == both ]]; then
        format_pmem || return
    fi
    mount -t ext4 -o dax=always /dev/pmem* /mnt/fsdax || return
    LAB_FSDAX=/mnt/fsdax
    LAB_DEVDAX=$(echo /dev/dax*)
    [[ -c $LAB_DEVDAX ]] || return
    export LAB_FSDAX LAB_DEVDAX
}

wait_for_regions() {
    local tries
    for tries in {1..100}; do
        [[ -e /sys/bus/nd/drivers/nd_region/region1 ]] && break
        sleep 0.05
    done
    # A region's namespaces appear while it is bound; ndctl's own wait asks the kernel for just that.
    ndctl wait-scrub >/dev/null 2>&1
    for tries in {1..100}; do
        [[ $lab_keep == both || $(echo /dev/pmem* /dev/dax*) != *'*'* ]] && return
        sleep 0.05
    done
    return 1
}

# The kernel numbers the regions as it likes; their addresses are in the order of QEMU's arguments.
format_pmem() {
    local regions
    mapfile -t regions < <(cd /sys/bus/nd/devices && grep . region*/resource | sort -t : -k 2 |
        sed 's/region\([0-9]*\).*/\1/')
    ndctl create-namespace --force --reconfig="namespace${regions[0]}.0" --mode=fsdax --map=mem &&
        ndctl create-namespace --force --reconfig="namespace${regions[1]}.0" --mode=devdax --map=mem \
            --align=4K &&
        mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 -m 0 /dev/pmem*
}

# Unmounts what is kept, so that only a power cut leaves a journal to replay.
take_down_pmem() {
    [[ $lab_keep == none ]] || umount /mnt/fsdax
}
