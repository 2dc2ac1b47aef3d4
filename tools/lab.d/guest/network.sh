# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# network.sh -- soft-RoCE for one host, or for several in network namespaces of their own
# shellcheck shell=bash disable=SC2154 # the job says lab_hosts and lab_keep

# rdma_rxe cannot move a device to another namespace, so the RDMA devices stay visible to all
# ("shared" mode); but each belongs to a network device, its packets leave there, and the
# connection manager lets a process use only addresses of its own namespace. Hence hosts meet
# nowhere but on the bridge.
bring_up_network() {
    local number
    LAB_HOSTS=
    if ((lab_hosts == 1)); then
        ip link add veth0 type veth peer name port1 || return
        ip link set port1 mtu 9000 up
        give_device 1
    else
        ip link add bridge0 type bridge || return
        ip link set bridge0 up
        for ((number = 1; number <= lab_hosts; number++)); do
            ip netns add "host$number" || return
            ip link add "port$number" mtu 9000 type veth \
                peer name veth0 netns "host$number" || return
            ip link set "port$number" master bridge0 up
            ip -n "host$number" link set lo up
            give_device "$number" -n "host$number" || return
        done
    fi
    wait_for_addresses || return
    export LAB_RDMA=rxe LAB_HOSTS=${LAB_HOSTS# }
}

# give_device NUMBER [-n NAMESPACE]: address and RDMA device for its end of the cable
give_device() {
    local number=$1 address=10.77.0.$1
    shift
    ip "$@" addr add "$address/24" dev veth0
    # Nobody else is on this cable, so an IPv6 address needs no probing.
    ip "$@" link set veth0 addrgenmode none mtu 9000 up
    if [[ $# -eq 0 ]]; then
        rdma link add "rxe$number" type rxe netdev veth0 || return
    else
        ip netns exec "$2" rdma link add "rxe$number" type rxe netdev veth0 || return
    fi
    export "LAB_ADDR_host$number=$address"
    LAB_HOSTS+=" host$number"
}

# A device can be used once its GID table holds the IPv4 address.
wait_for_addresses() {
    local number tries
    for ((number = 1; number <= lab_hosts; number++)); do
        for tries in {1..100}; do
            grep -qi ffff: "/sys/class/infiniband/rxe$number/ports/1/gids/"[0-3] 2>/dev/null &&
                continue 2
            sleep 0.05
        done
        printf 'lab-guest: rxe%s has no IPv4 address after %s looks\n' "$number" "$tries"
        return 1
    done
}
