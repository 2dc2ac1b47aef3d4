# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# roots.sh -- the Debian roots of tools/package: one that builds, one that has the old packages
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # the parts share their variables

# What a machine with the old librpma has that builds programs, and what the checks ask.
old_machine='librpma0 librpma-dev libc6-dev gcc pkgconf cmake make man-db ibverbs-providers libibverbs-dev
    librdmacm-dev libjson-c5'
build_machine='build-essential lintian faketime autopkgtest'
opt_shares=()

# The packages that debian/control names, without versions and profiles; debhelper-compat is debhelper's.
build_dependencies() {
    awk '/^Build-Depends/ { on = 1; next } /^[^ ]/ { on = 0 }
        on { gsub(/,|\(.*\)|<.*>|:any/, ""); sub(/-compat$/, "", $1); print $1 }' "$checkout/debian/control"
}

# use_root building|upgrading RELEASE: sets root, for in_chroot
use_root() {
    need_root "a root of Debian $2"
    release=$2 kind=$1
    if [[ $kind == building ]]; then
        included="$build_machine $(build_dependencies | paste -sd' ')"
    else
        included=$old_machine
    fi
    root=$cache/root-$kind-$release-$(digest "$included" "$(declare -f fill_package_root)")
    "$checkout/tools/setup" lab
    mkdir -p -- "$cache"
    [[ -d $root ]] || with_lock prepare step "the Debian $release root for $kind" "$root" fill_package_root
    touch -c -- "$root"
}

# Unlike the lab's root it has manual pages, and apt knows the archive, as on a machine that people use.
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
