# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# prepare.sh -- creates the parts in the cache of tools/lab: root, kernel, initramfs and formatted
# persistent memory; siw.sh creates soft-iWARP
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # the parts share their variables

# rdma_rxe has native flush and atomic write since 6.2 and on-demand paging since 6.15, of these two since 6.16. FS-DAX
# memory can be registered only with on-demand paging, so the default is the backports kernel; the stable kernel is for
# tests without on-demand paging, oldstable for rpma-check on the kernel of Debian 12.
suite=trixie
declare -A kernel_suites=([backports]=trixie-backports [stable]=trixie [oldstable]=bookworm)
kernel_pattern='^linux-image-[0-9][0-9.]*\+deb13-amd64$'
predecessor_suites=(bookworm trixie)
pmem_size=256M labels_size=1M
# QEMU has registers for 16 CXL host bridges ("Insufficient space for pxb cxl host register space").
most_pairs=8
# In MB. With less memory, the kernel kills a compiler or the virtual machine. The root and its packages
# need the disk space while the root is created.
memory_needed=512 disk_needed=1800

# Modules that the initramfs loads: first those that mount the root, then the other two lists at
# the same time. The guest loads other modules, for example a traffic shaper, from the root.
boot_modules=(virtio_pci 9pnet_virtio 9p overlay virtio_console)
rdma_modules=(rdma_rxe rdma_ucm veth)
pmem_modules=(nfit nd_pmem dax_pmem device_dax ext4)
cxl_modules=(cxl_acpi cxl_pci cxl_mem cxl_pmem nd_pmem dax_pmem device_dax ext4)

# A part has a variable for its directory and a function fill_PART. Root and kernel take longest and are
# created in parallel; the others need both, and are created in this order. Every run needs all parts
# except siw and qemu.
run_parts=(root kernel initramfs pmem)
all_parts=("${run_parts[@]}" siw qemu)

# prepare PART…: creates the parts. parallel_command needs only root and kernel, and runs in parallel with the rest
parallel_command=()
prepare() {
    local part
    check "$@"
    mkdir -p -- "$cache"
    run_child "$lab_dir/../setup" lab
    if parts_present "$@"; then
        "${parallel_command[@]:-:}"
    else
        make_parts "$@"
    fi
    for part; do touch -c -- "${!part}" 2>/dev/null || true; done
}

# check PART…: checks before any download whether this machine can prepare and run the parts
check() {
    kernel_suite=${kernel_suites[$opt_kernel]}
    [[ $opt_kernel != oldstable ]] || kernel_pattern='^linux-image-6\.1\.0-[0-9]+-amd64$'
    name_parts
    [[ $(uname -m) == x86_64 ]] || die "the lab is made for amd64; this machine is $(uname -m)"
    need_root 'the lab'
    [[ ${LIBRPMA_LAB_ACCEL:-} != *kvm* || -c /dev/kvm && -w /dev/kvm ]] ||
        die 'LIBRPMA_LAB_ACCEL requires KVM, but /dev/kvm is not writable: unset it'
    [[ $opt_no_build == yes || -w $checkout ]] || die "cannot write to $checkout, the directory of the build"
    [[ " $* " != *' siw '* || -d $siw ]] || need_mount 'soft-iWARP'
    [[ " $* " != *' initramfs '* ]] || need_memory
    parts_present "$@" || need_disk
}

# A memory limit of this container takes precedence over the machine's memory.
need_memory() {
    local free limit
    free=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
    limit=$(cat /sys/fs/cgroup/{memory.max,memory/memory.limit_in_bytes} 2>/dev/null) || true
    [[ ! $limit =~ ^[0-9]{1,15}$ ]] || ((free = limit >> 20 < free ? limit >> 20 : free))
    ((free >= memory_needed)) ||
        die "the lab needs $memory_needed MB of memory, and $free MB are free: give the machine or the container more"
}

need_disk() {
    local dir=$cache free
    while [[ ! -d $dir ]]; do dir=$(dirname -- "$dir"); done
    free=$(df --block-size=1M --output=avail -- "$dir" | tail -n 1)
    [[ -d $root ]] || ((free >= disk_needed)) ||
        die "the lab needs $disk_needed MB of disk, and ${free// /} MB are free in $dir:" \
            "make room or set LIBRPMA_LAB_CACHE"
}

# The name of a part has a digest of all its inputs.
name_parts() {
    local packages labels=''
    [[ $opt_dimms == nvdimm ]] || labels=cxl pmem_modules=("${cxl_modules[@]}")
    packages=$(root_packages)
    root=$cache/root-$(digest "$suite" "$packages" "$(declare -f fill_root unpack_predecessor)")
    kernel=$cache/kernel-$(digest "$kernel_suite" "$kernel_pattern" \
        "$(declare -f fill_kernel take_kernel)")
    initramfs=$cache/initramfs-$(digest "$(<"$lab_dir/guest/init")" "${root##*-}" "${kernel##*-}" \
        "$(declare -f fill_initramfs add_modules)" \
        "${boot_modules[*]}" "${rdma_modules[*]}" "${pmem_modules[*]}")
    pmem=$cache/pmem-$(digest "$(declare -f fill_pmem)" "$(<"$lab_dir/guest/pmem.sh")" \
        "$pmem_size" "${kernel##*-}" $labels)
    qemu=$cache/qemu-$(digest "$suite" "$(declare -f fill_qemu)")
    siw=$cache/siw-$(digest "$(declare -f fill_siw fetch_siw)" "$siw_script" \
        "${kernel##*-}")
}

parts_present() {
    local part
    for part; do [[ -d ${!part} ]] || return; done
}

# make_parts PART…: creates each part under its own lock, so that another lab can create other parts
make_parts() {
    local part
    for part in root kernel qemu; do
        [[ " $* " != *" $part "* ]] || start_job make_part "$part"
    done
    wait_for_jobs
    start_job make_parts_in_order "$@"
    [[ ${#parallel_command[@]} -eq 0 ]] || start_job "${parallel_command[@]}"
    wait_for_jobs
    with_lock forget forget_old_parts
}

make_parts_in_order() {
    local part
    for part; do make_part "$part"; done
}

make_part() {
    local -A titles=([root]="the Debian $suite root" [kernel]="the kernel from $kernel_suite"
        [initramfs]='the initramfs' [pmem]='the persistent memory'
        [siw]="soft-iWARP for the kernel from $kernel_suite" [qemu]="QEMU from $suite")
    [[ -d ${!1} ]] || with_lock "$1" step "${titles[$1]}" "${!1}" "fill_$1"
}

# Removes parts of other versions of the lab and consoles of failed machines after a week without use.
forget_old_parts() {
    local kind
    for kind in "${all_parts[@]}" console; do
        find "$cache" -maxdepth 1 -name "$kind-*" -mtime +7 \
            -exec rm -rf --one-file-system -- {} +
    done
}

root_packages() { sed -e 's/#.*//' -e '/^ *$/d' "$lab_dir/root-packages" | sort; }

# The archive in the configuration of this machine's apt; a fresh machine has no package lists yet.
mirror() {
    local release uri
    if [[ -n ${LIBRPMA_LAB_MIRROR:-} ]]; then
        printf '%s\n' "$LIBRPMA_LAB_MIRROR"
        return
    fi
    # shellcheck disable=SC1091 # exists on every Debian
    release=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    uri=$(apt-get indextargets --format "\$(RELEASE) \$(COMPONENT) \$(REPO_URI)" \
        'Created-By: Packages' |
        awk -v release="$release" '$1 == release && $2 == "main" && !n++ { print $3 }')
    [[ -n $uri ]] ||
        die "apt names no Debian archive: set LIBRPMA_LAB_MIRROR to one that has $kernel_suite"
    printf '%s\n' "$uri"
}

# The lab uses the network settings of this machine's apt: proxies, time-outs, certificates.
network_options() { apt-config dump | grep -E '^Acquire::(https?|Retries|Check-)' || true; }

fill_root() {
    local uri
    uri=$(mirror)
    network_options >"$1.apt.conf"
    mmdebstrap --variant=minbase --mode=root --format=directory --aptopt="$1.apt.conf" \
        --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
        --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --include="$(root_packages | paste -sd,)" "$suite" "$1" "$uri"
    rm -f -- "$1.apt.conf"
    unpack_predecessor "$1" "$uri"
    # Mount points, so that the root itself can stay read-only.
    mkdir -p "$1"/mnt/fsdax "$1"/run/lab
}

# The original's packages are unpacked outside of the library path, so that no program finds them by
# accident.
unpack_predecessor() {
    local release debs=$1/tmp/debs deb version
    for release in "${predecessor_suites[@]}"; do
        open_archive "$debs" "$2" "$release"
        fetch "$debs" librpma0 librpma-dev
        for deb in "$debs"/*.deb; do
            version=$(dpkg-deb --field "$deb" Version)
            dpkg-deb --extract "$deb" "$1/opt/librpma-${version%%-*}"
        done
        rm -r "$debs"
    done
}

# open_archive DIR URI SUITE [deb-src]: downloads separate apt lists to DIR/apt, verified with the
# Debian keys of this machine
open_archive() {
    local keys
    keys=$(find /usr/share/keyrings -name 'debian-archive-*.gpg' ! -name '*removed*' |
        paste -sd,)
    mkdir -p "$1/apt/lists/partial" "$1/apt/archives/partial"
    printf '%s [signed-by=%s] %s %s main\n' "${4:-deb}" "$keys" "$2" "$3" >"$1/apt/sources.list"
    archive_apt apt-get "$1" update
}

archive_apt() {
    local tool=$1 apt
    apt=$(realpath "$2")/apt
    shift 2
    "$tool" -q -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" \
        -o Dir::State::status=/dev/null \
        -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives" \
        -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Acquire::Languages=none -o APT::Sandbox::User=root "$@"
}

fetch() {
    local dir=$1
    shift
    (cd "$dir" && archive_apt apt-get . download "$@")
}

# Newer image packages are empty and depend on packages with the image, the modules and their list.
fill_kernel() {
    local uri debs=$1/debs image deb
    uri=$(mirror)
    open_archive "$debs" "$uri" "$kernel_suite"
    image=$(archive_apt apt-cache "$debs" pkgnames | grep -E "$kernel_pattern" |
        sort -V | tail -n 1)
    [[ -n $image ]] || die "$kernel_suite has no package like $kernel_pattern"
    # shellcheck disable=SC2046 # a list of package names
    fetch "$debs" "$image" $(archive_apt apt-cache "$debs" depends "$image" |
        sed -n 's/^ *Depends: \(linux-\(base\|binary\|modules\)-[0-9].*\)/\1/p')
    for deb in "$debs"/*.deb; do
        dpkg-deb --extract "$deb" "$1/unpacked"
    done
    rm -r "$debs"
    take_kernel "$1"
}

# Keeps the image and the modules. The modules stay compressed, because few are ever loaded.
take_kernel() {
    local version modules
    modules=$(dirname "$(find "$1/unpacked" -name modules.builtin)")
    version=${modules##*/}
    find "$1/unpacked" -name 'vmlinuz*' -exec mv {} "$1/vmlinuz" \;
    [[ -f $1/vmlinuz ]] || die "the kernel's packages have no image"
    mkdir -p "$1/usr/lib/modules"
    mv "$modules" "$1/usr/lib/modules/"
    rm -r "$1/unpacked"
    # Uses depmod of this machine, because the root may not be complete yet.
    PATH=$PATH:/usr/sbin:/sbin depmod -b "$1/usr" "$version"
    printf '%s\n' "$version" >"$1/version"
}

# root_program NAME ARGUMENT…: runs a program of the root without a mount, which works in a plain container
root_program() {
    "$root/lib64/ld-linux-x86-64.so.2" --library-path "$root/usr/lib/x86_64-linux-gnu" \
        "$root/usr/bin/$1" "${@:2}"
}

fill_initramfs() {
    local tree=$1/tree
    mkdir -p "$tree"/{bin,proc,sys,dev,job,cache,rw,new,modules}
    cp "$root/usr/bin/busybox" "$tree/bin/"
    install -m 755 "$lab_dir/guest/init" "$tree/init"
    add_modules "$tree/modules" boot "${boot_modules[@]}"
    add_modules "$tree/modules" rdma "${rdma_modules[@]}"
    add_modules "$tree/modules" pmem "${pmem_modules[@]}"
    (cd "$tree" && find . | root_program cpio --quiet -o -H newc) >"$1/image"
    rm -r "$tree"
}

# add_modules DIR LIST MODULE…: copies modules and their dependencies, and writes their names to
# DIR/LIST in the order of loading. It unpacks them and strips their signatures, because that costs an
# emulated machine more than loading them.
add_modules() {
    local dir=$1 list=$2 version module file
    version=$(<"$kernel/version")
    shift 2
    for module; do
        # A module that is built into the kernel has no line that begins with insmod.
        PATH=$PATH:/usr/sbin:/sbin modprobe -C /dev/null -S "$version" -d "$kernel/usr" --show-depends "$module"
    done | sed -nE 's|^insmod .*/lib/modules/([^ ]+) *$|\1|p' | awk '!seen[$0]++' >"$dir/$list.paths"
    while read -r file; do
        basename "${file%.xz}"
        cp "$kernel/usr/lib/modules/$file" "$dir/"
    done <"$dir/$list.paths" >"$dir/$list"
    rm "$dir/$list.paths"
    ! compgen -G "$dir/*.xz" >/dev/null || root_program xz -df "$dir"/*.xz
    root_program strip -g "$dir"/*.ko
}

# The QEMU of Debian 12 lacks the event interrupts that cxl_pci of Linux 7.3 needs. This newer QEMU runs from the cache
# with its own loader, so nothing is installed, and every machine uses the same version.
fill_qemu() {
    network_options >"$1.apt.conf"
    mmdebstrap --variant=extract --mode=root --format=directory --aptopt="$1.apt.conf" \
        --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
        --dpkgopt='path-exclude=/usr/share/*' --dpkgopt='path-include=/usr/share/seabios/*' \
        --dpkgopt='path-include=/usr/share/qemu/*' --include=qemu-system-x86 "$suite" "$1" "$(mirror)"
    rm -f -- "$1.apt.conf"
    touch -- "$1" # has the old time of the package's directory, and would be removed as unused
}

# Creates blank memory, which the guest formats; every run without --pmem and --devdax begins with a copy-on-write view
# of it. A CXL device accepts only labels with its own serial number, so the memory of each host is formatted.
fill_pmem() {
    local number file
    [[ $opt_dimms == nvdimm ]] || pairs=$most_pairs
    for ((number = 1; number <= pairs; number++)); do
        for file in "$(of_host "$number" "$1/fsdax")" "$(of_host "$number" "$1/devdax")"; do
            truncate -s "$pmem_size" "$file"
            [[ $opt_dimms == nvdimm ]] || truncate -s "$labels_size" "$file.labels"
        done
    done
    # Every run uses the result, with any provider, and soft-iWARP may not be prepared yet.
    opt_hosts=1 opt_provider=rxe opt_terminal=no opt_shares=() opt_env=() opt_timeout=120
    run_in_vm "$1/fsdax" "$1/devdax" new true
}
