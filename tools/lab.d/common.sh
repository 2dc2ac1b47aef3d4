# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# common.sh -- messages, paths, locks and preparation steps of tools/lab
# shellcheck shell=bash

# shellcheck disable=SC2154 # lab_dir and checkout come from tools/lab
cache=${LIBRPMA_LAB_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/librpma-lab}

say() { printf 'lab: %s\n' "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# Wrong arguments have a status of their own, so that a caller can tell them from a failed
# command.
usage_error() {
    say "$* (see tools/lab --help)"
    exit 2
}

need_root() {
    [[ $EUID -eq 0 ]] || die "$1 needs root: run it with sudo"
}

# need_number OPTION VALUE LOWEST HIGHEST
need_number() {
    if [[ ! $2 =~ ^[1-9][0-9]{0,6}$ ]] || (($2 < $3 || $2 > $4)); then
        usage_error "$1 wants a whole number from $3 to $4, not '$2'"
    fi
}

# digest TEXT…: names what was made from these inputs
digest() { printf '%s\0' "$@" | sha256sum | cut -c 1-12; }

# with_lock NAME COMMAND…: one at a time per cache; says so when it has to wait. The lock goes
# with the file descriptor, so a half-killed preparation keeps others out until its last child
# is gone.
with_lock() {
    local name=$1 fd
    shift
    mkdir -p -- "$cache/locks"
    exec {fd}>"$cache/locks/$name"
    if ! flock --nonblock "$fd"; then
        say "waiting for another lab that is busy with: $name"
        flock "$fd"
    fi
    "$@"
    exec {fd}>&-
}

# step WHAT DIR FUNCTION: FUNCTION fills a directory of a temporary name, which then becomes
# DIR. DIR exists only when it is whole, so an interrupted preparation goes on with the step it
# was in.
step() {
    local what=$1 dir=$2 fill=$3 began=$SECONDS
    [[ -e $dir ]] && return
    rm -rf --one-file-system -- "$dir.part"
    mkdir -p -- "$dir.part"
    say "preparing $what …"
    # A process group of its own, so that an interrupt can end all of it.
    set -m
    (set -e; "$fill" "$dir.part") >"$dir.log" 2>&1 </dev/null &
    step_group=$!
    set +m
    trap 'kill -TERM -- "-$step_group" 2>/dev/null' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    wait_with_progress "$what" "$step_group" "$began" || die "$(why_failed "$what" "$dir.log")"
    trap - EXIT INT TERM HUP
    mv -T -- "$dir.part" "$dir"
    rm -f -- "$dir.log"
    say "prepared $what in $((SECONDS - began)) s"
}

# One line every 20 seconds keeps a log that nobody touches alive.
wait_with_progress() {
    local what=$1 pid=$2 began=$3 next=20
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.2
        if ((SECONDS - began >= next)); then
            say "still preparing $what ($next s)"
            ((next += 20))
        fi
    done
    wait "$pid"
}

why_failed() {
    local reason
    reason=$(grep -E '^(lab|E|error|dpkg-deb|qemu)[^ ]*:' "$2" | tail -n 1) ||
        reason=$(tail -n 1 "$2")
    printf 'could not prepare %s: %s (log: %s)' "$1" "${reason:-no reason given}" "$2"
}
