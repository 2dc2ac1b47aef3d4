# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# common.sh -- messages, paths, locks and preparation steps of tools/lab, and of other tools
# shellcheck shell=bash

# shellcheck disable=SC2154 # tools/lab sets lab_dir and checkout
cache=${LIBRPMA_LAB_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/librpma-lab}

# Ignores errors: after a hang-up there is no terminal, and the caller must still clean up.
message() { printf '%s: %s\n' "${0##*/}" "$*" >&2 || true; }

die() {
    message "$*"
    exit 1
}

# Wrong arguments have their own exit status, so that a caller can distinguish them from a failed
# command.
usage_error() {
    message "$* (see tools/${0##*/} --help)"
    exit 2
}

need_root() {
    [[ $EUID -eq 0 ]] || die "$1 needs root: run it with sudo"
}

# Changes the owner of files that root has built in another user's tree to that user.
restore_owner() {
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

# with_lock NAME COMMAND…: runs one COMMAND at a time per cache, and prints a message if it must wait. The
# file descriptor holds the lock, so that the lock of a killed preparation lasts until the last child ends.
with_lock() {
    local name=$1 fd
    shift
    mkdir -p -- "$cache/locks"
    exec {fd}>"$cache/locks/$name"
    if ! flock --nonblock "$fd"; then
        message "waiting for another lab that is busy with: $name"
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
    # An interrupt often arrives together with a SIGTERM from another interrupted process. A pending signal must not
    # end COMMAND: the first trap consumes it, the second one ignores later signals.
    # shellcheck disable=SC2064 # as it is now
    trap "set +e; trap : HUP INT TERM; trap '' HUP INT TERM; $1" EXIT
    trap 'trap : HUP INT TERM; exit 129' HUP
    trap 'trap : HUP INT TERM; exit 130' INT
    trap 'trap : HUP INT TERM; exit 143' TERM
}
off_end() { trap - EXIT HUP INT TERM; }

# pause SECONDS: a builtin, because bash prints "Terminated" if a signal ends a sleep that it waits for
exec {never_written}<> <(:)
pause() { read -r -t "$1" -u "$never_written" || true; }

# start_job COMMAND…: runs COMMAND in the background, in its own process group. wait_for_jobs waits for all jobs; when
# one fails, it ends the others. If several jobs fail, often of one cause, only the first that reads from may_report
# prints the reason. A signal to this shell ends all jobs.
job_pids=() may_report=''
start_job() {
    [[ -n $may_report ]] || exec {may_report}< <(printf .)
    # shellcheck disable=SC2016 # expanded when the signal arrives; the last job may not be in job_pids yet
    on_end 'end_jobs "${job_pids[@]}" ${!-}'
    set -m
    "$@" </dev/null &
    set +m
    job_pids+=("$!")
}
# Polls, because a second signal that arrives before it is ignored would end "wait".
end_jobs() {
    kill -TERM -- "${@/#/-}" 2>/dev/null
    while kill -0 "$@" 2>/dev/null; do sleep 0.05; done
}
# Polls, because "wait -n" ignores a job that ended before the call.
wait_for_jobs() {
    local pid
    while [[ ${#job_pids[@]} -gt 0 ]]; do
        for pid in "${job_pids[@]}"; do
            ! kill -0 "$pid" 2>/dev/null || continue
            wait "$pid" || exit
            forget_job "$pid"
        done
        [[ ${#job_pids[@]} -eq 0 ]] || sleep 0.05
    done
    off_end
}
# Uses neither a pipe nor a process substitution, because they would change $!.
forget_job() {
    local other left=()
    for other in "${job_pids[@]}"; do [[ $other == "$1" ]] || left+=("$other"); done
    job_pids=("${left[@]}")
}

# run_child COMMAND…: runs COMMAND. A signal ends COMMAND first, then this shell; a failure of COMMAND also ends this
# shell.
run_child() { start_job "$@"; wait_for_jobs; }

# step WHAT DIR FUNCTION: FUNCTION fills a directory with a temporary name, which is then renamed to
# DIR. DIR exists only when it is complete, so an interrupted preparation repeats only its last step.
# The log is in memory, so that a full disk cannot truncate it; if the step fails, it is moved to
# DIR.log.
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
    message "preparing $what …"
    TMPDIR=$dir.part.tmp run_with_progress "preparing $what" "$log" "$3" "$dir.part"
    on_end "rm -rf --one-file-system -- $names" # run_with_progress has reset it
    [[ $command_status -eq 0 ]] || step_failed "$what" "$dir" "$log"
    mv -T -- "$dir.part" "$dir"
    rm -rf -- "$log" "$dir.part.tmp"
    off_end
    message "prepared $what in $((SECONDS - began)) s"
}

# run_with_progress WHAT LOG COMMAND…: runs COMMAND with its output in LOG, reports every 10 seconds that WHAT
# continues, and sets command_status. COMMAND has its own process group, so that an interrupt can end all of
# it; the interrupt also removes LOG and the caller's files in unfinished.
run_with_progress() {
    local what=$1 log=$2 began=$SECONDS next=10 names
    shift 2
    # Uses no $(…), because bash cannot parse a trap while it parses a command substitution.
    printf -v names ' %q' "$log" "${unfinished[@]}"
    on_end "end_group \"\${!-}\" $names; restore_owner"
    set -m
    (set -e; "$@") >"$log" 2>&1 </dev/null &
    set +m
    while kill -0 "$!" 2>/dev/null; do
        pause 0.2
        if ((SECONDS - began >= next)); then
            message "still $what ($next s$(progress "$log"))"
            ((next += 10))
        fi
    done
    command_status=0
    wait "$!" || command_status=$?
    restore_owner
    off_end
}

# end_group GROUP FILE…: ends all processes of the group and removes each FILE.
end_group() {
    kill -TERM -- "-$1" 2>/dev/null
    for _ in {1..15}; do
        is_alive "$1" || break
        sleep 0.05
    done
    kill -KILL -- "-$1" 2>/dev/null
    rm -rf --one-file-system -- "${@:2}"
}

# is_alive GROUP: succeeds if the group has a process that is not a zombie
is_alive() {
    { cat /proc/[0-9]*/stat 2>/dev/null || true; } | sed 's/.*) //' |
        awk -v group="$1" '$1 != "Z" && $3 == group { alive = 1 } END { exit !alive }'
}

# progress LOG: prints the progress of ninja or "meson test"
progress() {
    sed -nE -e 's|^\[([1-9][0-9]*)/([0-9]+)\].*|, step \1 of \2|p' -e 's|^ *([0-9]+)/([0-9]+) .*|, test \1 of \2|p' "$1" | tail -n 1
}

# step_failed WHAT DIR LOG: prints the reason in one line. Removes the incomplete files of the step first, to
# have space for the log.
step_failed() {
    local reason
    reason=$(failure_reason "$3")
    rm -rf --one-file-system -- "$2".part*
    [[ -z $may_report ]] || read -r -N 1 -u "$may_report" || exit 1
    off_end
    ! cp -- "$3" "$2.log" 2>/dev/null || { rm -f -- "$3"; set -- "$1" "$2" "$2.log"; }
    die "could not prepare $1: $reason (log: $3)"
}

# failure_reason LOG: prints the cause, which is not always in the last line of a tool's output
failure_reason() {
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

# fetch_failure LOG: prints what apt could not fetch and why, if the log has it
fetch_failure() {
    sed -nE -e 's/^[EW]: Failed to fetch ([^ ]+) +([45][0-9][0-9] .*)/\1: \2: is this the address of a Debian archive?/p' \
        -e 's/^[EW]: Failed to fetch ([^ ]+) +(.*[^: ])[: ]*$/\1: \2: is there a network?/p' "$1" | head -n 1
}
