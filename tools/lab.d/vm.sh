# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# vm.sh -- runs one command in a new virtual machine
# shellcheck shell=bash
# shellcheck disable=SC2153,SC2154 # the parts share their variables; bash sets VM_PID

job='' # directory with the command and the guest's files
vm_pid=''
console='' # file with the console of a failed machine
boot_limit=600
ready='' # yes after the guest has booted

# On a busy host the emulated timers and processors sometimes pause. These arguments disable the kernel's
# checks for it.
kernel_arguments='console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on no_timer_check
tsc=reliable nowatchdog rcupdate.rcu_cpu_stall_suppress=1'

# run_in_vm FSDAX-FILE DEVDAX-FILE KEEP COMMAND…: KEEP lists the files that keep the guest's writes to
# persistent memory, fsdax or devdax or both; new keeps both after the guest has formatted them.
# Returns the command's exit status.
run_in_vm() {
    local fsdax=$1 devdax=$2 keep=$3 status=0
    shift 3
    job=$(mktemp -d "${TMPDIR:-/tmp}/librpma-lab-XXXXXX")
    on_end end_job
    write_job "$keep" "$@"
    start_vm "$fsdax" "$devdax" "$keep"
    follow_vm || status=$?
    # On two emulated processors, about one boot in several hundred crashes while the kernel patches its code.
    if [[ $status -eq 125 && $ready == no ]]; then
        message 'the command had not started: starting the machine again'
        status=0
        exec {control}<&-
        start_vm "$fsdax" "$devdax" "$keep"
        follow_vm || status=$?
    fi
    return "$status"
}

end_job() {
    [[ -z $vm_pid ]] || kill -KILL "$vm_pid" 2>/dev/null || true
    [[ -z $job ]] || rm -rf -- "$job"
}

write_job() {
    local keep=$1 pair
    shift
    {
        printf 'LAB_ROOT=%q\nLAB_KERNEL=%q\n' "${root##*/}" "${kernel##*/}"
        printf 'LAB_CHECKOUT=%q\n' "$checkout"
    } >"$job/guest.env"
    {
        printf 'lab_hosts=%q\nlab_keep=%q\nlab_provider=%q\n' "$opt_hosts" "$keep" "$opt_provider"
        printf 'lab_pairs=%q\n' "$pairs"
        printf 'lab_terminal=%q\nexport LAB_MEMORY=%q\n' "$opt_terminal" "$opt_dimms"
        printf 'lab_shares=(%s)\n' "$(quote "${opt_shares[@]}")"
        printf 'lab_command=(%s)\n' "$(quote "$@")"
        for pair in "${opt_env[@]}"; do
            printf 'export %s=%q\n' "${pair%%=*}" "${pair#*=}"
        done
    } >"$job/job.sh"
    [[ $opt_provider != siw ]] || cp -- "$siw/siw.ko" "$job/"
}

quote() { [[ $# -eq 0 ]] || printf '%q ' "$@"; }

# The guest's serial console goes to a file; the command's output, its errors and the guest's
# control messages use three virtio ports, so that the kernel's messages are separate. The output
# passes through cat, because QEMU makes its own end non-blocking, which must not affect the caller.
start_vm() {
    local program=(qemu-system-x86_64) arguments=() fd out err terminal_in terminal_out
    vm_arguments "$@"
    exec {out}> >(exec cat)
    cats=("$!")
    exec {err}> >(exec cat >&2)
    cats+=("$!")
    if [[ $opt_terminal == yes ]]; then
        exec {terminal_in}<&0 {terminal_out}>&1
    else
        exec {terminal_in}</dev/null {terminal_out}>/dev/null
    fi
    # The coprocess' standard output is the control channel. The guest is killed when this process ends.
    coproc VM {
        exec 3>&1 4>&"$out" 5>&"$err" <&"$terminal_in" >&"$terminal_out" 2>"$job/qemu.log"
        exec {out}>&- {err}>&-
        exec setpriv --pdeathsig KILL "${program[@]}" "${arguments[@]}"
    }
    vm_pid=$VM_PID
    fd=${VM[0]:-}
    [[ -n $fd ]] || die "QEMU did not start: $(tail -n 1 "$job/qemu.log")"
    exec {control}<&"$fd" {out}>&- {err}>&- {terminal_in}<&- {terminal_out}>&-
}

# Fills start_vm's list of QEMU's arguments.
vm_arguments() {
    local fsdax=$1 devdax=$2 keep=$3 share number=0
    if [[ $opt_steady == yes ]]; then
        # Each instruction takes one virtual nanosecond; idle time is skipped.
        arguments=(-accel tcg,thread=single -icount shift=0,sleep=off -smp 1)
    else
        arguments=(-accel "${LIBRPMA_LAB_ACCEL:-tcg,thread=multi}" -smp "$opt_cpus")
    fi
    arguments+=(-nodefaults -no-user-config -no-reboot -display none -serial "file:$job/console.log"
        -kernel "$kernel/vmlinuz" -initrd "$initramfs/image"
        -append "${kernel_arguments//$'\n'/ }")
    arguments+=(-device virtio-serial-pci)
    [[ $opt_terminal == no ]] ||
        arguments+=(-chardev 'stdio,id=terminal,signal=off'
            -device 'virtconsole,chardev=terminal,nr=0')
    add_port 1 3
    add_port 2 4
    add_port 3 5
    add_share cache "$cache" on
    add_share job "$job" off
    add_share checkout "$checkout" off
    for share in "${opt_shares[@]}"; do
        add_share "share$((number++))" "$share" off
    done
    # Last, because QEMU attaches a device without a bus to the newest bus.
    add_"$opt_dimms"_machine
    for ((number = 1; number <= pairs; number++)); do
        add_"$opt_dimms" "$((2 * number - 2))" "$(of_host "$number" "$fsdax")" \
            "$([[ $keep == *fsdax* || $keep == new ]] && printf on || printf off)"
        add_"$opt_dimms" "$((2 * number - 1))" "$(of_host "$number" "$devdax")" \
            "$([[ $keep == *devdax* || $keep == new ]] && printf on || printf off)"
    done
}

add_nvdimm_machine() {
    arguments+=(-cpu max -machine 'pc,nvdimm=on' -m "$opt_memory,slots=2,maxmem=$((opt_memory + 8192))M")
}

add_nvdimm() {
    add_file "pmem$1" "$2" "$3"
    arguments+=(-device "nvdimm,memdev=pmem$1")
}

# Linux creates no region of CXL memory under a hypervisor, because it cannot flush all caches there
# (arch/x86/mm/pat/set_memory.c: cpu_cache_has_invalidate_memregion). Each device has its own host bridge and window.
add_cxl_machine() {
    local tree=$qemu/usr number windows=''
    for ((number = 0; number < 2 * pairs; number++)); do
        windows+=,cxl-fmw.$number.targets.0=bridge$number,cxl-fmw.$number.size=256M
    done
    program=("$tree/lib64/ld-linux-x86-64.so.2" --library-path "$tree/lib/x86_64-linux-gnu"
        "$tree/bin/qemu-system-x86_64" -L "$tree/share/qemu" -L "$tree/share/seabios")
    arguments+=(-cpu 'max,hypervisor=off' -m "$opt_memory"
        -machine "q35,cxl=on$windows")
}

add_cxl() {
    add_file "pmem$1" "$2" "$3"
    add_file "labels$1" "$2.labels" "$3"
    arguments+=(-device "pxb-cxl,id=bridge$1,bus=pcie.0,bus_nr=$((8 * ($1 + 1)))"
        -device "cxl-rp,id=port$1,bus=bridge$1,chassis=0,slot=$1"
        -device "cxl-type3,bus=port$1,persistent-memdev=pmem$1,lsa=labels$1,sn=$(($1 + 1))")
}

add_file() {
    arguments+=(-object
        "memory-backend-file,id=$1,mem-path=${2//,/,,},size=$(stat -L -c %s "$2"),share=$3")
}

add_port() {
    arguments+=(-add-fd "fd=$2,set=$1" -chardev "file,id=port$1,path=/dev/fdset/$1,append=on"
        -device "virtserialport,chardev=port$1,nr=$1")
}

add_share() {
    arguments+=(-virtfs
        "local,path=${2//,/,,},mount_tag=$1,security_model=none,multidevs=remap,readonly=$3")
}

# Reads the guest's control messages until the guest ends, and reports the progress of the boot every 10 seconds. The
# time limit of the command begins when the guest has booted.
follow_vm() {
    local began=$SECONDS deadline=$((SECONDS + boot_limit)) left word value read_status
    ready=no
    while ((left = deadline - SECONDS, left > 0)); do
        word='' read_status=0
        read -r -t $((left < 10 ? left : 10)) -u "$control" word value || read_status=$?
        case $word in
            ready) ready=yes deadline=$((SECONDS + opt_timeout)) ;;
            left-running) message 'the command left processes running; their output ends here' ;;
            status) handle_end "$value"; return ;;
            kill-power) cut_power; return ;;
            # read's status is above 128 after a time-out; otherwise the other end is closed
            *) ((read_status == 0 || read_status > 128)) || { handle_end ''; return; } ;;
        esac
        [[ $ready == yes || $read_status -le 128 ]] ||
            message "still booting the machine ($((SECONDS - began)) s)"
    done
    stop_vm
    if [[ $ready == no ]]; then
        keep_console
        message "the virtual machine was not up after $boot_limit s, killed (console: $console)"
        return 125
    fi
    message "the command was stopped at its time limit, $opt_timeout s"
    return 124
}

cut_power() {
    stop_vm
    message 'power cut: the virtual machine was killed as the command requested'
    return 137
}

# The command's output is complete when the two cats have ended.
stop_vm() {
    kill -KILL "$vm_pid" 2>/dev/null || true
    wait "$vm_pid" 2>/dev/null || true
    vm_pid=''
    wait "${cats[@]}" 2>/dev/null || true
}

# handle_end STATUS: with a status, the command has ended and the machine is no longer needed; without
# one, the machine died
handle_end() {
    local problem
    stop_vm
    # A kernel that starts prints something before it fails; a running kernel may print nothing.
    [[ -n $1 || $ready == yes || -s $job/console.log ]] ||
        die "QEMU did not start the machine: $(tail -n 1 "$job/qemu.log")"
    problem=$(grep -aE 'Kernel panic|Oops|BUG:|WARNING:|lab-guest:' "$job/console.log" |
        tail -n 1 | tr -d '\r') || true
    if [[ -n $1 && -z $problem ]]; then
        return "$1"
    fi
    keep_console
    if [[ -n $1 ]]; then
        message "the guest's kernel reported: $problem (console: $console)"
        return "$1"
    fi
    message "the virtual machine died: ${problem:-$(tail -n 1 "$job/qemu.log")} (console: $console)"
    return 125
}

keep_console() {
    console=$cache/console-$(date +%Y%m%d-%H%M%S)-$$.log
    cat "$job/console.log" "$job/qemu.log" >"$console" 2>/dev/null || true
}
