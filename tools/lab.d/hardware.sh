# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# hardware.sh -- runs a command on this machine's own RDMA device, with the same environment as in
# the lab
# shellcheck shell=bash
# shellcheck disable=SC2154 # tools/lab sets lab_dir and the options

device='' address='' # the RDMA device and the address of its network device

has_rdma_device() { compgen -G '/sys/class/infiniband/*' >/dev/null; }

run_on_hardware() {
    local number status=0
    [[ -z $opt_pmem$opt_devdax ]] ||
        usage_error '--pmem and --devdax need the virtual machine: add --vm'
    choose_device
    message "using this machine's RDMA device $device at $address (--vm for the virtual machine)"
    [[ $opt_no_build == yes ]] || build "$opt_build" machine
    export LAB_RDMA=$device LAB_HOSTS=''
    for ((number = 1; number <= opt_hosts; number++)); do
        LAB_HOSTS+="${LAB_HOSTS:+ }host$number"
        export "LAB_ADDR_host$number=$address"
        [[ -z ${LAB_FSDAX-} ]] || export "LAB_FSDAX_host$number=$LAB_FSDAX"
        [[ -z ${LAB_DEVDAX-} ]] || export "LAB_DEVDAX_host$number=$LAB_DEVDAX"
    done
    export PATH=$lab_dir/guest/bin:$PATH
    export LIBRPMA_BUILD_DIR
    LIBRPMA_BUILD_DIR=$(build_dir "$opt_build" machine)
    export LD_LIBRARY_PATH=$LIBRPMA_BUILD_DIR/src
    [[ ${#opt_env[@]} -eq 0 ]] || export "${opt_env[@]}"
    cd "$checkout" || die "no directory $checkout"
    start_job timeout --kill-after=10 "$opt_timeout" "$@"
    wait "${job_pids[-1]}" || status=$?
    forget_job "${job_pids[-1]}"
    off_end
    [[ $status -ne 124 ]] || message "the command was stopped at its time limit, $opt_timeout s"
    return "$status"
}

# The device that LIBRPMA_LAB_DEVICE names, or the first whose network device has an IPv4
# address.
choose_device() {
    local candidate
    command -v ip >/dev/null || die "no 'ip' to list addresses: apt install iproute2"
    for candidate in ${LIBRPMA_LAB_DEVICE:-$(ls /sys/class/infiniband)}; do
        address=$(device_address "$candidate")
        device=$candidate
        [[ -z $address ]] || return 0
    done
    die "the network device of $device has no IPv4 address: give it one, or use --vm"
}

# sysfs has the name of the network device of a RoCE device next to each GID; with InfiniBand, the
# network device is a child of the PCI device.
device_address() {
    local files network
    files=/sys/class/infiniband/$1
    for network in $(cat "$files"/ports/1/gid_attrs/ndevs/* 2>/dev/null) \
        $(ls "$files/device/net" 2>/dev/null); do
        ip -4 -oneline address show dev "$network" up 2>/dev/null
    done | awk '!n++ { sub("/.*", "", $4); print $4 }'
}
