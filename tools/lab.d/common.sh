# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# common.sh -- messages, paths, locks and preparation steps of tools/lab, and of other tools
# shellcheck shell=bash

# shellcheck disable=SC2154 # lab_dir and checkout come from tools/lab
cache=${LIBRPMA_LAB_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/librpma-lab}

# After a hang-up there is no terminal to write to, and what still has to be done must be done.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2 || true; }

die() {
    say "$*"
    exit 1
}

# Wrong arguments have an exit status of their own, so that a caller can distinguish them from a failed
# command.
usage_error() {
    say "$* (see tools/${0##*/} --help)"
    exit 2
}

need_root() {
    [[ $EUID -eq 0 ]] || die "$1 needs root: run it with sudo"
}

# Gives files that root has built in another user's tree to that user.
give_back() {
    [[ $EUID -ne 0 || -O $checkout || ! -d $checkout/build ]] || chown -R --reference="$checkout" -- "$checkout/build"
}

# need_number OPTION VALUE LOWEST HIGHEST
need_number() {
    if [[ ! $2 =~ ^[1-9][0-9]{0,6}$ ]] || (($2 < $3 || $2 > $4)); then
        usage_error "$1 needs a whole number from $3 to $4, not '$2'"
    fi
}

# digest TEXT…: a name for the result of these inputs
digest() { printf '%s\0' "$@" | sha256sum | cut -c 1-12; }

# with_lock NAME COMMAND…: runs one COMMAND at a time per cache, and says when it has to wait. The
# lock belongs to the file descriptor, so it outlives a killed preparation until the last child ends.
with_lock() {
    local name=$1 fd
    shift
    mkdir -p -- "$cache/locks"
    exec {fd}>"$cache/locks/$name"
    if ! flock --nonblock "$fd"; then
        say "waiting for another lab that is busy with: $name"
        # In the background, because a shell handles no signal while a foreground command runs.
        flock "$fd" &
        on_end "kill $! 2>/dev/null"
        wait "$!"
        off_end
    fi
    "$@"
    exec {fd}>&-
}

# on_end COMMAND: makes this shell run COMMAND when it ends before off_end, also by a signal. COMMAND
# runs outside of every function, so it cannot use local variables.
on_end() {
    # An interrupt often comes together with a SIGTERM from another process that got it, too. A pending signal must not
    # end COMMAND: the first trap consumes it, the second one ignores later signals.
    # shellcheck disable=SC2064 # as it is now
    trap "set +e; trap : HUP INT TERM; trap '' HUP INT TERM; $1" EXIT
    trap 'trap : HUP INT TERM; exit 129' HUP
    trap 'trap : HUP INT TERM; exit 130' INT
    trap 'trap : HUP INT TERM; exit 143' TERM
}
off_end() { trap - EXIT HUP INT TERM; }

# begin COMMAND…: runs COMMAND in the background, in a process group of its own. finish waits for all begun commands;
# when one fails, it ends the others. One cause often fails several of them at once: only the first that reads from
# may_say prints the reason. A signal to this shell ends all of them.
begun=() may_say=''
begin() {
    [[ -n $may_say ]] || exec {may_say}< <(printf .)
    # shellcheck disable=SC2016 # when the signal comes; the last job may not be in begun yet
    on_end 'end_begun "${begun[@]}" ${!-}'
    set -m
    "$@" </dev/null &
    set +m
    begun+=("$!")
}
# Not "wait": a second signal that came before the trap was off would end it.
end_begun() {
    kill -TERM -- "${@/#/-}" 2>/dev/null
    while kill -0 "$@" 2>/dev/null; do sleep 0.05; done
}
# Not "wait -n", which does not know a job that has ended before it is called.
finish() {
    local pid
    while [[ ${#begun[@]} -gt 0 ]]; do
        for pid in "${begun[@]}"; do
            ! kill -0 "$pid" 2>/dev/null || continue
            wait "$pid" || exit
            ended "$pid"
        done
        [[ ${#begun[@]} -eq 0 ]] || sleep 0.05
    done
    off_end
}
# No pipe and no process substitution: they would replace $!.
ended() {
    local other left=()
    for other in "${begun[@]}"; do [[ $other == "$1" ]] || left+=("$other"); done
    begun=("${left[@]}")
}

# part COMMAND…: runs COMMAND so that a signal ends it, and this shell once it has ended; a failure of COMMAND ends
# this shell, too
part() { begin "$@"; finish; }

# step WHAT DIR FUNCTION: FUNCTION fills a directory with a temporary name, which is then renamed to
# DIR. DIR exists only when it is complete, so an interrupted preparation repeats only its last step.
# The log is in memory, where a full disk cannot truncate it; when the step fails, it is kept beside
# DIR.
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
    on_end "rm -rf --one-file-system -- $names" # attend has reset on_end
    [[ $attended -eq 0 ]] || step_failed "$what" "$dir" "$log"
    mv -T -- "$dir.part" "$dir"
    rm -rf -- "$log" "$dir.part.tmp"
    off_end
    say "prepared $what in $((SECONDS - began)) s"
}

# attend WHAT LOG COMMAND…: runs COMMAND with its output in LOG, prints every 10 seconds that WHAT goes
# on, and leaves COMMAND's status in attended. COMMAND has a process group of its own, so that an
# interrupt can end all of it; the interrupt also removes LOG and the caller's files in unfinished.
attend() {
    local what=$1 log=$2 began=$SECONDS next=10 names
    shift 2
    # Not by $(…): bash cannot parse a trap while it parses a command substitution.
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

# end_group GROUP FILE…: ends all processes of the group and removes each FILE.
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

# is_alive GROUP: whether the group has a process that is not a zombie
is_alive() {
    { cat /proc/[0-9]*/stat 2>/dev/null || true; } | sed 's/.*) //' |
        awk -v group="$1" '$1 != "Z" && $3 == group { alive = 1 } END { exit !alive }'
}

# progress LOG: how far ninja has come, or "meson test"
progress() {
    sed -nE -e 's|^\[([1-9][0-9]*)/([0-9]+)\].*|, step \1 of \2|p' -e 's|^ *([0-9]+)/([0-9]+) .*|, test \1 of \2|p' "$1" | tail -n 1
}

# step_failed WHAT DIR LOG: prints the reason in one line. The incomplete files of the step are removed
# to make room for the log.
step_failed() {
    local reason
    reason=$(why_failed "$3")
    rm -rf --one-file-system -- "$2".part*
    [[ -z $may_say ]] || read -r -N 1 -u "$may_say" || exit 1
    off_end
    ! cp -- "$3" "$2.log" 2>/dev/null || { rm -f -- "$3"; set -- "$1" "$2" "$2.log"; }
    die "could not prepare $1: $reason (log: $3)"
}

# why_failed LOG: checks first for causes that the last line of a tool's output does not show.
why_failed() {
    local unreachable free
    free=$(df --block-size=1M --output=avail -- "$cache" | tail -n 1)
    unreachable=$(fetch_failure "$1")
    if grep -q 'No space left on device' "$1" || ((free < 1)); then
        printf 'the disk of %s is full: make room for 2 GB or set LIBRPMA_LAB_CACHE' "$cache"
    elif [[ -n $unreachable ]]; then
        printf 'apt cannot fetch %s' "$unreachable"
    else
        grep -E "^(${0##*/}|E|error|dpkg-deb|qemu)[^ ]*:" "$1" | tail -n 1 | grep . ||
            tail -n 1 "$1" | grep . || printf 'no reason given'
    fi
}

# fetch_failure LOG: what apt could not fetch and why, if the log says so
fetch_failure() {
    sed -nE -e 's/^[EW]: Failed to fetch ([^ ]+) +([45][0-9][0-9] .*)/\1: \2: is this the address of a Debian archive?/p' \
        -e 's/^[EW]: Failed to fetch ([^ ]+) +(.*[^: ])[: ]*$/\1: \2: is there a network?/p' "$1" | head -n 1
}
