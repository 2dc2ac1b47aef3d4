# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# network.sh -- soft-RoCE or soft-iWARP for one host, or for several, each in a network namespace
# shellcheck shell=bash disable=SC2154 # the job sets lab_hosts and lab_provider

# Neither driver can move a device to another namespace, so all hosts can see all RDMA devices ("shared"
# mode). But each device uses its network device, and the connection manager permits a process only
# addresses of its own namespace: the bridge is the only link between hosts.
bring_up_network() {
    local number
    LAB_HOSTS=
    # The initramfs has loaded rdma_rxe. The job contains siw, which Debian's kernels lack.
    # Linux up to 6.14 has the checksums of siw in a module.
    [[ $lab_provider != siw ]] || { modprobe --quiet libcrc32c || :; insmod /run/lab/siw.ko; } || return
    create_links | ip -batch - || return
    if ((lab_hosts == 1)); then
        add_device 1 || return
    else
        for ((number = 1; number <= lab_hosts; number++)); do
            add_device "$number" "host$number" || return
        done
    fi
    wait_for_devices || return
    export LAB_RDMA=$lab_provider LAB_HOSTS=${LAB_HOSTS# }
}

# Each process costs the emulated machine 0.1 s, so one ip process runs all commands.
create_links() {
    local number
    if ((lab_hosts == 1)); then
        echo 'link add veth0 type veth peer name port1'
        echo 'link set port1 mtu 9000 up'
        return
    fi
    echo 'link add bridge0 type bridge'
    echo 'link set bridge0 up'
    for ((number = 1; number <= lab_hosts; number++)); do
        echo "netns add host$number"
        echo "link add port$number mtu 9000 type veth peer name veth0 address $(link_address "$number") netns host$number"
        echo "link set port$number master bridge0 up"
    done
}

link_address() { printf '02:00:00:00:00:%02x' "$1"; }

# neighbours NUMBER: prints the commands that add the link addresses of the other hosts. Without them, the ARP
# reply would arrive before the kernel's rdma_resolve_ip() has queued its request, and the first
# rdma_resolve_addr() would last until its time limit.
neighbours() {
    local other
    for ((other = 1; other <= lab_hosts; other++)); do
        ((other == $1)) || echo "neigh add 10.77.0.$other lladdr $(link_address "$other") dev veth0 nud stale"
    done
}

# add_device NUMBER [NAMESPACE]: adds the address and the RDMA device to the host's end of the link
add_device() {
    local number=$1 namespace=${2-} address=10.77.0.$1
    local inside=(${namespace:+ip netns exec "$namespace"})
    # The addresses on this link are known: no IPv6 duplicate detection is needed.
    ip ${namespace:+-n "$namespace"} -batch - <<END || return
link set lo up
addr add $address/24 dev veth0
link set veth0 addrgenmode none mtu 9000 up
$(neighbours "$number")
END
    "${inside[@]}" rdma link add "$lab_provider$number" type "$lab_provider" netdev veth0 || return
    export "LAB_ADDR_host$number=$address"
    LAB_HOSTS+=" host$number"
}

# A RoCE device is usable once its GID table has the IPv4 address, an iWARP device once its port is
# active.
wait_for_devices() {
    local number tries
    for ((number = 1; number <= lab_hosts; number++)); do
        for tries in {1..100}; do
            is_usable "/sys/class/infiniband/$lab_provider$number/ports/1" && continue 2
            sleep 0.05
        done
        printf 'lab-guest: %s is not usable after %s checks\n' "$lab_provider$number" "$tries"
        return 1
    done
}

is_usable() {
    if [[ $lab_provider == rxe ]]; then
        grep -qi ffff: "$1"/gids/[0-3] 2>/dev/null
    else
        grep -q ACTIVE "$1/state" 2>/dev/null
    fi
}
