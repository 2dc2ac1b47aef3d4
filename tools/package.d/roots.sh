# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# roots.sh -- the Debian roots of tools/package: to build, to build for arm64, and to upgrade the old packages
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # the parts share their variables

# The packages of a machine that builds programs with the old librpma, and those that the checks use.
old_machine='librpma0 librpma-dev libc6-dev gcc pkgconf man-db ibverbs-providers libibverbs-dev
    librdmacm-dev'
# The last two are for 1.4.0 (need_previous).
build_machine='build-essential lintian faketime autopkgtest libjson-c-dev python3-pygments'
# For another architecture; fill_cross_root installs the remaining packages.
cross_machine='build-essential lintian crossbuild-essential-arm64 qemu-user'
opt_shares=()

# The packages that debian/control names, without versions and profiles; debhelper-compat is debhelper's.
build_dependencies() {
    awk '/^Build-Depends/ { on = 1; next } /^[^ ]/ { on = 0 }
        on { gsub(/,|\(.*\)|<.*>|:any/, ""); sub(/-compat$/, "", $1); print $1 }' "$checkout/debian/control"
}

# use_root building|crossing|upgrading|bare|packing RELEASE: sets root, for in_chroot
use_root() {
    local fill=fill_package_root more_inputs=()
    need_root "a root of Debian $2"
    release=$2 kind=$1
    case $kind in
        building) included="$build_machine $(build_dependencies | paste -sd' ')" ;;
        crossing)
            included=$cross_machine fill=fill_cross_root
            more_inputs=("$(declare -f fill_cross_root)" "$(sed '/^$/q' "$checkout/debian/control")")
            ;;
        upgrading) included=$old_machine ;;
        bare) included='git ca-certificates' ;;
        packing) included='git xz-utils' ;;
    esac
    root=$cache/root-$kind-$release-$(digest "$included" "$(declare -f fill_package_root)" "${more_inputs[@]}")
    run_child "$checkout/tools/setup" lab
    mkdir -p -- "$cache"
    [[ -d $root ]] || with_lock prepare step "the Debian $release root for $kind" "$root" "$fill"
    touch -c -- "$root"
}

# Unlike the lab's root, this root has manual pages and package lists, like a user's machine.
fill_package_root() {
    local uri
    uri=$(mirror)
    network_options >"$1.apt.conf"
    # shellcheck disable=SC2086 # a list of words
    mmdebstrap --variant=minbase --mode=root --format=directory --aptopt="$1.apt.conf" \
        --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
        --dpkgopt=force-unsafe-io --include="$(printf '%s\n' $included | paste -sd,)" \
        "$release" "$1" "$uri"
    rm -f -- "$1.apt.conf"
    mkdir -p "$1/mnt"
}

# apt reads the build dependencies for arm64 in debian/control, which also tests its architectures and profiles.
fill_cross_root() {
    fill_package_root "$1"
    mkdir "$1/source"
    cp -r "$checkout/debian" "$1/source/"
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --propagation private -- bash -euc '
        for dir in /proc /sys /dev; do mount --rbind "$dir" "$1$dir"; done
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            chroot "$1" sh -euc "$2"' - "$1" '
        dpkg --add-architecture arm64
        apt-get -q update
        apt-get -q -y --host-architecture arm64 --build-profiles cross --arch-only build-dep /source
        apt-get -q -y install libcmocka-dev:arm64
        apt-get clean'
}
