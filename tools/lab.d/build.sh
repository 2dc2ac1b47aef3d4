# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# build.sh -- librpma built with the lab root's compiler and RDMA headers
# shellcheck shell=bash
# shellcheck disable=SC2154 # checkout, root … come from the other files

# Builds are in the checkout, where the guest finds them under the same path.
build_dir() { printf '%s\n' "$checkout/build/$2-$1"; }

# build native|plain WHERE [TARGET…]: WHERE is lab for the lab's root, or machine for this machine;
# without a TARGET it builds all. It prints nothing when everything is up to date; otherwise its
# progress, and the compiler's output on failure.
build() {
    local within=in_chroot switch=disabled
    may_mount || within=in_copy
    [[ $1 == plain ]] || switch=enabled
    if [[ $2 == machine ]]; then
        part "$lab_dir/../setup" build
        within=on_machine
        # The headers of this machine may be too old for native operations.
        [[ $1 == plain ]] || switch=auto
    fi
    with_lock "build-$(digest "$checkout")-$2-$1" build_locked "$1" "$(build_dir "$1" "$2")" "${@:3}"
}

build_locked() {
    local flavour=$1 dir=$2 began=$SECONDS log=$cache/build-$$.log copy unfinished folders=integration,conformance
    # Of the other tests, only those of unit may differ in the lab's root, in a build with native operations.
    [[ $1 == plain ]] || folders+=,unit
    shift 2
    copy=$cache/copy-$(digest "$dir") unfinished=("$copy")
    if [[ ! -e $dir/build.ninja ]]; then
        say "building librpma ($flavour) in $dir …"
        rm -rf -- "$dir"
        attend "configuring librpma ($flavour)" "$log" "$within" meson setup "$dir" "$checkout" \
            -Dsim=disabled \
            "-Dnative_flush=$switch" "-Dnative_atomic_write=$switch" "-Dtest_folders=$folders"
        [[ $attended -eq 0 ]] || build_failed "$flavour" "$log"
    fi
    attend "building librpma ($flavour)" "$log" "$within" ninja -C "$dir" "$@"
    [[ $attended -eq 0 ]] || build_failed "$flavour" "$log"
    grep -q 'no work to do' "$log" || say "built librpma ($flavour) in $((SECONDS - began)) s"
    rm -f -- "$log"
}

on_machine() { "$@"; }

build_failed() {
    cat -- "$2" >&2
    rm -f -- "$2"
    die "librpma ($1) does not build"
}

may_mount() { unshare --mount --propagation private true 2>/dev/null; }
need_mount() {
    need_root "$1"
    may_mount || die "$1 needs the right to mount (CAP_SYS_ADMIN):" \
        "use a virtual machine, or a container that was started with --privileged"
}

# in_copy COMMAND…: replaces in_chroot for build_locked where mounting is not permitted, as in a plain
# container. The copy consists of hard links to the root's files; a build there only adds files.
in_copy() {
    local status=0
    rm -rf --one-file-system -- "$copy"
    cp -al -- "$root" "$copy"
    mkdir -p -- "$copy$dir" "$dir"
    tar -C "$checkout" --exclude=./.git --exclude=./build -c . | tar -C "$copy$checkout" -x
    cp -a -- "$dir/." "$copy$dir/"
    # shellcheck disable=SC2016 # for the inner shell
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
        chroot "$copy" sh -c 'cd "$1" && shift && exec "$@"' - "$checkout" "$@" || status=$?
    cp -a -- "$copy$dir/." "$dir/"
    rm -rf --one-file-system -- "$copy"
    return "$status"
}

chroot_layer='' # a directory whose content lies above the root's in in_chroot
chroot_exec=''  # "exec" if nothing follows in_chroot: a signal then reaches its command

# in_chroot COMMAND…: runs COMMAND in the lab's root, in the checkout. The mounts belong to a mount
# namespace and disappear with it; an overlay keeps the root unchanged.
in_chroot() {
    need_root "the lab's root"
    # shellcheck disable=SC2016 # for the inner shell
    CHECKOUT=$checkout ROOT=$root LAYERS=${chroot_layer:+$chroot_layer:}$root SHARES=$(printf '%s\n' "${opt_shares[@]}") \
        $chroot_exec unshare --mount --propagation private -- bash -euc "$chroot_script" - "$@"
}

# shellcheck disable=SC2016 # for the inner shell
chroot_script='
    top=$ROOT/mnt
    mount -t tmpfs tmpfs "$top"
    mkdir "$top"/{upper,work,root}
    mount -t overlay -o "lowerdir=$LAYERS,upperdir=$top/upper,workdir=$top/work" \
        overlay "$top/root"
    mapfile -t shares < <(printf %s "$SHARES")
    for dir in /proc /sys /dev "$CHECKOUT" "${shares[@]}"; do
        mkdir -p "$top/root$dir"
        mount --rbind "$dir" "$top/root$dir"
    done
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        TERM="${TERM:-dumb}" chroot "$top/root" \
        sh -c "cd \"\$1\" && shift && exec \"\$@\"" - "$CHECKOUT" "$@"
'
