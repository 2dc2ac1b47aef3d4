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
    say "$* (see tools/${0##*/} --help)"
    exit 2
}

need_root() {
    [[ $EUID -eq 0 ]] || die "$1 needs root: run it with sudo"
}

# What root has built in the tree of another user is that user's.
give_back() {
    [[ $EUID -ne 0 || -O $checkout || ! -d $checkout/build ]] || chown -R --reference="$checkout" -- "$checkout/build"
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
        # In the background, because a shell does not hear a signal while it waits in front.
        flock "$fd" &
        on_end "kill $! 2>/dev/null"
        wait "$!"
        off_end
    fi
    "$@"
    exec {fd}>&-
}

# on_end COMMAND: what this shell does when it ends before off_end, by a signal too. COMMAND runs
# outside of every function, so it names no local variable.
on_end() {
    # An interrupt often comes together with the SIGTERM of who had it, too: what is pending must not end COMMAND, and
    # then nothing disturbs it.
    # shellcheck disable=SC2064 # as it is now
    trap "set +e; trap : HUP INT TERM; trap '' HUP INT TERM; $1" EXIT
    trap 'trap : HUP INT TERM; exit 129' HUP
    trap 'trap : HUP INT TERM; exit 130' INT
    trap 'trap : HUP INT TERM; exit 143' TERM
}
off_end() { trap - EXIT HUP INT TERM; }

# begin COMMAND…: runs it beside what follows. finish waits for all that was begun, or ends what is left when one
# fails. What hinders one mostly hinders the others at the same moment: who takes the word from may_say says why.
begun=() may_say=''
begin() {
    [[ -n $may_say ]] || exec {may_say}< <(printf .)
    # Background jobs do not hear an interrupt of the terminal.
    on_end "end_begun ${begun[*]} \${!-}"
    "$@" &
    begun+=("$!")
}
# A second signal that came before the trap was off would end "wait".
end_begun() {
    kill -TERM "$@" 2>/dev/null
    while kill -0 "$@" 2>/dev/null; do sleep 0.05; done
}
finish() {
    local pid
    while [[ ${#begun[@]} -gt 0 ]]; do
        wait -n -p pid "${begun[@]}" || exit
        mapfile -t begun < <(printf '%s\n' "${begun[@]}" | grep -vx "$pid")
    done
    off_end
}

# step WHAT DIR FUNCTION: FUNCTION fills a directory of a temporary name, which then becomes
# DIR. DIR exists only when it is whole, so an interrupted preparation goes on with the step it
# was in. Its log is kept in memory, where a full disk does not cut it off, and only when the
# step fails, beside what it was to become.
step() {
    local what=$1 dir=$2 began=$SECONDS log unfinished names
    [[ -e $dir ]] && return
    unfinished=("$dir".part{,.apt.conf,.tmp})
    log=$(mktemp -u -p /dev/shm librpma-lab-XXXXXX)
    [[ -w /dev/shm ]] || log=$(mktemp -u)
    printf -v names ' %q' "$log" "${unfinished[@]}"
    on_end "rm -rf --one-file-system -- $names"
    rm -rf --one-file-system -- "${unfinished[@]}"
    mkdir -p -- "$dir.part" "$dir.part.tmp"
    say "preparing $what …"
    TMPDIR=$dir.part.tmp attend "preparing $what" "$log" "$3" "$dir.part"
    on_end "rm -rf --one-file-system -- $names" # attend has ended with none
    [[ $attended -eq 0 ]] || step_failed "$what" "$dir" "$log"
    mv -T -- "$dir.part" "$dir"
    rm -rf -- "$log" "$dir.part.tmp"
    off_end
    say "prepared $what in $((SECONDS - began)) s"
}

# attend WHAT LOG COMMAND…: runs COMMAND with its words in LOG, says every 10 seconds that it is still
# at WHAT, and leaves COMMAND's status in attended. The process group is COMMAND's own, so that
# an interrupt can end all of it; then LOG and the caller's files in unfinished go, too.
attend() {
    local what=$1 log=$2 began=$SECONDS next=10 names
    shift 2
    # Not by $(…): bash cannot parse a trap while it parses that.
    printf -v names ' %q' "$log" "${unfinished[@]}"
    on_end "end_group \"\${!-}\" $names; give_back"
    set -m
    (set -e; "$@") >"$log" 2>&1 </dev/null &
    set +m
    while kill -0 "$!" 2>/dev/null; do
        sleep 0.2
        if ((SECONDS - began >= next)); then
            say "still $what ($next s$(progress "$log"))"
            ((next += 10))
        fi
    done
    attended=0
    wait "$!" || attended=$?
    give_back
    off_end
}

# end_group GROUP FILE…: no process of the group and no FILE is left.
end_group() {
    local tries
    kill -TERM -- "-$1" 2>/dev/null
    for tries in {1..15}; do
        is_alive "$1" || break
        sleep 0.05
    done
    kill -KILL -- "-$1" 2>/dev/null
    rm -rf --one-file-system -- "${@:2}"
}

# is_alive GROUP: who has ended and only waits to be asked for its status does not count
is_alive() {
    { cat /proc/[0-9]*/stat 2>/dev/null || true; } | sed 's/.*) //' |
        awk -v group="$1" '$1 != "Z" && $3 == group { alive = 1 } END { exit !alive }'
}

# progress LOG: how far ninja has come, or "meson test"
progress() {
    sed -nE -e 's|^\[([1-9][0-9]*)/([0-9]+)\].*|, step \1 of \2|p' -e 's|^ *([0-9]+)/([0-9]+) .*|, test \1 of \2|p' "$1" | tail -n 1
}

# step_failed WHAT DIR LOG: says why in one line. What the step has written so far is of no use
# and makes room for the log.
step_failed() {
    local reason
    reason=$(why_failed "$3")
    rm -rf --one-file-system -- "$2".part*
    [[ -z $may_say ]] || read -r -N 1 -u "$may_say" || exit 1
    off_end
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
        printf 'apt cannot fetch %s' "$unreachable"
    else
        grep -E '^(lab|E|error|dpkg-deb|qemu)[^ ]*:' "$1" | tail -n 1 | grep . ||
            tail -n 1 "$1" | grep . || printf 'no reason given'
    fi
}

# fetch_failure LOG: what apt could not fetch and why, if the log says so
fetch_failure() {
    sed -nE -e 's/^[EW]: Failed to fetch ([^ ]+) +([45][0-9][0-9] .*)/\1: \2: is this the address of a Debian archive?/p' \
        -e 's/^[EW]: Failed to fetch ([^ ]+) +(.*)/\1: \2: is there a network?/p' "$1" | head -n 1
}
