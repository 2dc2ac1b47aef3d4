# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# build.sh -- librpma built with the lab root's compiler and RDMA headers
# shellcheck shell=bash
# shellcheck disable=SC2154 # checkout, root … come from the other files

build_dir() { printf '%s\n' "$checkout/build/lab-$1"; }

# Quiet when there is nothing to do; otherwise one line, and the compiler's words when it fails.
build() {
    need_root 'building in the lab'
    with_lock "build-$(digest "$checkout")-$1" build_locked "$1"
}

build_locked() {
    local flavour=$1 dir switch=enabled began=$SECONDS log=$cache/build-$1-$$.log
    dir=$(build_dir "$flavour")
    [[ $flavour == native ]] || switch=disabled
    if [[ ! -e $dir/build.ninja ]]; then
        say "building librpma ($flavour) in $dir …"
        in_chroot meson setup "$dir" "$checkout" -Dnative_flush="$switch" -Dnative_atomic_write="$switch" \
            >"$log" 2>&1 || build_failed "$flavour" "$log"
    fi
    in_chroot ninja -C "$dir" >"$log" 2>&1 || build_failed "$flavour" "$log"
    grep -q 'no work to do' "$log" || say "built librpma ($flavour) in $((SECONDS - began)) s"
    rm -f -- "$log"
}

build_failed() {
    cat -- "$2" >&2
    rm -f -- "$2"
    die "librpma ($1) does not build"
}

# in_chroot COMMAND…: in the lab's root, in the checkout. The mounts are those of a mount namespace and
# go with it; the root itself stays as it is beneath an overlay.
in_chroot() {
    need_root 'the lab root'
    # shellcheck disable=SC2016 # for the inner shell
    CHECKOUT=$checkout ROOT=$root SHARES=$(printf '%s\n' "${opt_shares[@]}") \
        unshare --mount --propagation private -- bash -euc "$chroot_script" - "$@"
}

# shellcheck disable=SC2016 # for the inner shell
chroot_script='
    top=$ROOT/mnt
    mount -t tmpfs tmpfs "$top"
    mkdir "$top"/{upper,work,root}
    mount -t overlay -o "lowerdir=$ROOT,upperdir=$top/upper,workdir=$top/work" overlay "$top/root"
    for dir in /proc /sys /dev "$CHECKOUT"; do
        mkdir -p "$top/root$dir"
        mount --rbind "$dir" "$top/root$dir"
    done
    while read -r dir; do
        [[ -n $dir ]] || continue
        mkdir -p "$top/root$dir"
        mount --rbind "$dir" "$top/root$dir"
    done <<<"$SHARES"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
        chroot "$top/root" sh -c "cd \"\$1\" && shift && exec \"\$@\"" - "$CHECKOUT" "$@"
'
