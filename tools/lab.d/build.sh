# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# build.sh -- librpma built with the lab root's compiler and RDMA headers
# shellcheck shell=bash
# shellcheck disable=SC2154 # the other files set checkout, root …

# Builds are in the checkout, which has the same path in the guest.
build_dir() { printf '%s\n' "$checkout/build/$2-$1"; }

# build native|plain WHERE [TARGET…]: WHERE is lab for the lab's root, or machine for this machine.
# Builds all targets without a TARGET. Prints nothing if everything is up to date; otherwise the
# progress, and after a failure the compiler's output.
build() {
    local within=in_chroot switch=disabled
    can_mount || within=in_copy
    [[ $1 == plain ]] || switch=enabled
    if [[ $2 == machine ]]; then
        run_child "$lab_dir/../setup" build
        within=on_machine
        # The headers of this machine may be too old for native operations.
        [[ $1 == plain ]] || switch=auto
    fi
    with_lock "build-$(digest "$checkout")-$2-$1" build_locked "$1" "$(build_dir "$1" "$2")" "${@:3}"
}

build_locked() {
    local flavour=$1 dir=$2 began=$SECONDS log=$cache/build-$$.log copy unfinished folders=integration
    # Of the other tests, only the unit tests and the drivers of a build with native operations can differ in the lab's
    # root.
    [[ $1 == plain ]] || folders+=,unit,drivers
    shift 2
    copy=$cache/copy-$(digest "$dir") unfinished=("$copy")
    if [[ ! -e $dir/build.ninja ]]; then
        message "building librpma ($flavour) in $dir …"
        rm -rf -- "$dir"
        run_with_progress "configuring librpma ($flavour)" "$log" "$within" meson setup "$dir" "$checkout" \
            -Dsim=disabled \
            "-Dnative_flush=$switch" "-Dnative_atomic_write=$switch" "-Dtest_folders=$folders"
        [[ $command_status -eq 0 ]] || build_failed "$flavour" "$log"
    fi
    run_with_progress "building librpma ($flavour)" "$log" "$within" ninja -C "$dir" "$@"
    [[ $command_status -eq 0 ]] || build_failed "$flavour" "$log"
    grep -q 'no work to do' "$log" || message "built librpma ($flavour) in $((SECONDS - began)) s"
    rm -f -- "$log"
}

on_machine() { "$@"; }

build_failed() {
    cat -- "$2" >&2
    rm -f -- "$2"
    die "librpma ($1) does not build"
}

can_mount() { unshare --mount --propagation private true 2>/dev/null; }
need_mount() {
    need_root "$1"
    can_mount || die "$1 needs the right to mount (CAP_SYS_ADMIN):" \
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

chroot_layer='' # the upper directory of the overlay of in_chroot
chroot_exec=''  # "exec" if in_chroot is the last command: its command then receives signals

# in_chroot COMMAND…: runs COMMAND in the lab's root, in the checkout. The mounts are in a mount
# namespace, which ends with the command; an overlay keeps the root unchanged.
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
