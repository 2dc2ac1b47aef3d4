# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# siw.sh -- soft-iWARP, built as a module for the lab's kernel: Debian's kernels lack it
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # the parts share their variables

# Reads the kernel's source package from standard input, unpacks only the driver and writes the
# module to descriptor 3. There is no BTF, which would need pahole, and no debugging information.
# shellcheck disable=SC2016 # for the inner shell
siw_script='
    mkdir /siw
    xz -dc | tar -x -C /siw --strip-components=5 --wildcards "*/drivers/infiniband/sw/siw"
    make -j2 -C "/usr/src/linux-headers-$1" M=/siw CC=gcc \
        CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= KCFLAGS=-g0 modules
    strip --strip-debug /siw/siw.ko
    cat /siw/siw.ko >&3
'

fill_siw() {
    local version deb tree=$1/tree
    version=$(<"$kernel/version")
    fetch_siw "$1/debs" "$version"
    for deb in "$1"/debs/linux-[hk]*.deb; do
        dpkg-deb --extract "$deb" "$tree"
    done
    dpkg-deb --fsys-tarfile "$1"/debs/linux-source-*.deb |
        tar -xO --wildcards '*/linux-source-*.tar.xz' |
        chroot_layer=$tree in_chroot sh -euc "$siw_script" - "$version" 3>"$1/siw.ko"
    rm -r "$1/debs" "$tree"
}

# fetch_siw DIR VERSION: downloads the source and the headers of the kernel in the cache. The
# archive has only the source of its newest kernels.
fetch_siw() {
    local version=$2 base=${2%-amd64} source wanted found kbuild=linux-kbuild-${2%-amd64}
    open_archive "$1" "$(mirror)" "$kernel_suite"
    source=linux-source-$(cut -d. -f1,2 <<<"$version")
    wanted=$(package_version "$1" "linux-headers-$version")
    found=$(package_version "$1" "$source")
    [[ -n $wanted && $wanted == "$found" ]] ||
        die "$kernel_suite has replaced the kernel $version by ${found:-another series}:" \
            "run 'tools/lab clean' and 'tools/lab prepare'"
    # The tools of Debian 12 belong to a series of kernels.
    [[ $kernel_suite != bookworm ]] || kbuild=linux-kbuild-${source#linux-source-}
    fetch "$1" "$source" "linux-headers-$version" "linux-headers-$base-common" "$kbuild"
}

package_version() {
    archive_apt apt-cache "$1" show "$2" 2>/dev/null | awk '$1 == "Version:" && !n++ { print $2 }'
}
