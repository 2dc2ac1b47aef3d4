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
# was in. Its log is kept in memory, where a full disk does not cut it off, and only when the
# step fails, beside what it was to become.
step() {
    local what=$1 dir=$2 began=$SECONDS log
    [[ -e $dir ]] && return
    rm -rf --one-file-system -- "$dir.part"
    mkdir -p -- "$dir.part"
    log=$(mktemp -p /dev/shm librpma-lab-XXXXXX 2>/dev/null || mktemp)
    say "preparing $what …"
    attend "preparing $what" "$log" "$3" "$dir.part"
    [[ $attended -eq 0 ]] || step_failed "$what" "$dir" "$log"
    mv -T -- "$dir.part" "$dir"
    rm -f -- "$log"
    say "prepared $what in $((SECONDS - began)) s"
}

# attend WHAT LOG COMMAND…: runs COMMAND with its words in LOG, says every 10 seconds that it is still
# at WHAT, and leaves COMMAND's status in attended. The process group is COMMAND's own, so that
# an interrupt can end all of it.
attend() {
    local what=$1 log=$2 began=$SECONDS next=10
    shift 2
    set -m
    (set -e; "$@") >"$log" 2>&1 </dev/null &
    attended_group=$!
    set +m
    trap 'kill -TERM -- "-$attended_group" 2>/dev/null' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    while kill -0 "$attended_group" 2>/dev/null; do
        sleep 0.2
        if ((SECONDS - began >= next)); then
            say "still $what ($next s$(ninja_progress "$log"))"
            ((next += 10))
        fi
    done
    trap - EXIT INT TERM HUP
    attended=0
    wait "$attended_group" || attended=$?
}

# ninja_progress LOG: how far ninja has come, if it is ninja's log
ninja_progress() { sed -nE 's|^\[([0-9]+)/([0-9]+)\].*|, step \1 of \2|p' "$1" | tail -n 1; }

# step_failed WHAT DIR LOG: says why in one line. What the step has written so far is of no use
# and makes room for the log.
step_failed() {
    local reason
    reason=$(why_failed "$3")
    rm -rf --one-file-system -- "$2".part*
    ! cp -- "$3" "$2.log" 2>/dev/null || { rm -f -- "$3"; set -- "$1" "$2" "$2.log"; }
    die "could not prepare $1: $reason (log: $3)"
}

# why_failed LOG: the causes that a tool's last line hides come first.
why_failed() {
    local unreachable free
    free=$(df --block-size=1M --output=avail -- "$cache" | tail -n 1)
    unreachable=$(fetch_failure "$1")
    if grep -q 'No space left on device' "$1" || ((free < 1)); then
        printf 'the disk of %s is full: make room for 2 GB or set LIBRPMA_LAB_CACHE' "$cache"
    elif [[ -n $unreachable ]]; then
        printf 'apt cannot fetch %s: is there a network?' "$unreachable"
    else
        grep -E '^(lab|E|error|dpkg-deb|qemu)[^ ]*:' "$1" | tail -n 1 | grep . ||
            tail -n 1 "$1" | grep . || printf 'no reason given'
    fi
}

# fetch_failure LOG: what apt could not fetch and why, if the log says so
fetch_failure() { sed -nE 's/^[EW]: Failed to fetch ([^ ]+) +/\1: /p' "$1" | head -n 1; }
