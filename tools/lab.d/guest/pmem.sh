# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# pmem.sh -- the first NVDIMM holds an FS-DAX file system, the second is a device DAX; memory behind CXL likewise
# shellcheck shell=bash disable=SC2154 # the job says lab_hosts and lab_keep

# The lab's preparation, whose NVDIMMs are blank, makes the namespaces and the file system. Other
# runs find them in the memory file, so a file of an earlier run is used as that run left it.
bring_up_pmem() {
    if [[ $LAB_MEMORY == cxl ]]; then
        make_region 0 && make_region 1 || return
    fi
    if [[ $lab_keep == new ]]; then
        format_pmem || return
    fi
    wait_for 1 '/dev/pmem*' && wait_for 1 '/dev/dax*' || return
    mount -t ext4 -o dax=always /dev/pmem* /mnt/fsdax || return
    LAB_FSDAX=/mnt/fsdax
    LAB_DEVDAX=$(echo /dev/dax*)
    export LAB_FSDAX LAB_DEVDAX
}

# make_region NUMBER: makes the window of a CXL device a region, as firmware does on hardware. QEMU numbers the devices
# from 1, Linux in any order.
make_region() {
    local serial=0x$(($1 + 1)) file
    wait_for 2 '/sys/bus/cxl/devices/endpoint*/decoder*.0/' && wait_for 2 '/sys/bus/nd/devices/nmem*' || return
    file=$(grep -lx "$serial" /sys/bus/cxl/devices/mem*/serial) || return
    file=${file%/serial}
    cxl create-region -t pmem -m "${file##*/}" -d "decoder0.$1"
}

# wait_for NUMBER PATTERN: waits until that many files match
wait_for() {
    local try matches
    for try in {1..100}; do
        mapfile -t matches < <(compgen -G "$2")
        [[ ${#matches[@]} -lt $1 ]] || return 0
        sleep 0.05
    done
    printf 'lab-guest: waited %s times for %s\n' "$try" "$2"
    return 1
}

# The kernel numbers the regions in any order; their addresses follow the order of QEMU's
# arguments.
format_pmem() {
    local regions choice=(--force --reconfig='namespace%s.0')
    [[ $LAB_MEMORY != cxl ]] || choice=(--region='region%s')
    wait_for 2 '/sys/bus/nd/devices/namespace[0-9].0' || return
    mapfile -t regions < <(cd /sys/bus/nd/devices && grep . region*/resource | sort -t : -k 2 |
        sed 's/region\([0-9]*\).*/\1/')
    ndctl create-namespace "${choice[@]/\%s/"${regions[0]}"}" --mode=fsdax --map=mem &&
        ndctl create-namespace "${choice[@]/\%s/"${regions[1]}"}" --mode=devdax --map=mem --align=4K &&
        mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 -m 0 /dev/pmem*
}

# Unmounts a file system that is kept, so that only a power cut leaves a journal to replay.
take_down_pmem() {
    [[ $lab_keep != *fsdax* && $lab_keep != new ]] || umount /mnt/fsdax
}
