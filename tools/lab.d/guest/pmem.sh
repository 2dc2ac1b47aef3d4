# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# pmem.sh -- pairs of persistent memory: the first device of each has an FS-DAX file system, the second is a device DAX
# shellcheck shell=bash disable=SC2154 # the job sets lab_hosts, lab_keep and lab_pairs

# The lab's preparation creates namespaces and file systems in blank memory. Other runs use those in the memory
# files, and do not change the content of an earlier run.
bring_up_pmem() {
    local regions host pair directories=(/mnt/fsdax{,2,3,4,5,6,7,8})
    make_regions || return
    # The kernel numbers the regions in any order; their addresses follow the order of QEMU's arguments.
    mapfile -t regions < <(cd /sys/bus/nd/devices && grep . region*/resource | sort -t : -k 2 |
        sed 's/region\([0-9]*\).*/\1/')
    for ((pair = 0; pair < lab_pairs; pair++)); do
        if [[ $lab_keep == new ]]; then
            format "${regions[2 * pair]}" "${regions[2 * pair + 1]}" || return
        fi
        mount_fsdax "/dev/pmem${regions[2 * pair]}" "${directories[pair]}" || return
    done
    # If there are more hosts than pairs, the remaining hosts share the last pair.
    for ((host = lab_hosts; host > 0; host--)); do
        pair=$((host < lab_pairs ? host : lab_pairs))
        LAB_FSDAX=${directories[pair - 1]} LAB_DEVDAX=/dev/dax${regions[2 * pair - 1]}.0
        wait_for 1 "$LAB_DEVDAX" || return
        export LAB_FSDAX LAB_DEVDAX "LAB_FSDAX_host$host=$LAB_FSDAX" "LAB_DEVDAX_host$host=$LAB_DEVDAX"
    done
}

# Creates a region in the window of each CXL device, as firmware does on hardware. QEMU numbers the devices from 1,
# Linux in any order.
make_regions() {
    local number count=$((2 * lab_pairs)) file
    if [[ $LAB_MEMORY == cxl ]]; then
        wait_for "$count" '/sys/bus/cxl/devices/endpoint*/decoder*.0/' && wait_for "$count" '/sys/bus/nd/devices/nmem*' ||
            return
        for ((number = 0; number < count; number++)); do
            file=$(grep -lx "$(printf '%#x' $((number + 1)))" /sys/bus/cxl/devices/mem*/serial) || return
            file=${file%/serial}
            cxl create-region -t pmem -m "${file##*/}" -d "decoder0.$number" || return
        done
    fi
    wait_for "$count" '/sys/bus/nd/devices/namespace*.0'
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

# format FSDAX-REGION DEVDAX-REGION
format() {
    local choice=(--force --reconfig='namespace%s.0')
    [[ $LAB_MEMORY != cxl ]] || choice=(--region='region%s')
    ndctl create-namespace "${choice[@]/\%s/"$1"}" --mode=fsdax --map=mem &&
        ndctl create-namespace "${choice[@]/\%s/"$2"}" --mode=devdax --map=mem --align=4K &&
        wait_for 1 "/dev/pmem$1" &&
        mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 -m 0 "/dev/pmem$1"
}

# mount_fsdax DEVICE DIRECTORY
mount_fsdax() {
    wait_for 1 "$1" && mkdir -p "$2" && mount -t ext4 -o dax=always "$1" "$2"
}

# Unmounts file systems that are kept, so that only a power cut leaves a journal to replay.
take_down_pmem() {
    [[ $lab_keep != *fsdax* && $lab_keep != new ]] || umount /mnt/fsdax*
}
