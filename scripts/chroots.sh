# shellcheck shell=bash
#
# chroots.sh - other systems of Debian in folders, for scripts/matrix and scripts/packages.
# Sourced after lib.sh, never run.
#
# A tree is made once, by debootstrap from the mirror that apt uses here, and kept in
# build-check/chroots.  A command in it has its own mounts, processes and, but for apt, network (a
# loopback alone).  The kernel ends all of them with the command, also if it is killed.  So nothing
# is left to clean up: no mount, no server.
#
# Needs root, and a sandbox that allows namespaces.

# shellcheck disable=SC2154 # lib.sh sets it.
chroots=$root/build-check/chroots

# Print why no chroot can be made here, if so.
chroot_obstacle() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "needs root"
    elif ! command -v debootstrap >/dev/null; then
        echo "debootstrap is missing"
    elif ! unshare --mount --pid --net --fork --kill-child true 2>/dev/null; then
        echo "namespaces are not allowed here"
    fi
}

# Print the mirror of Debian that apt uses here.
debian_mirror() {
    local mirror
    # shellcheck disable=SC2016 # The variables of apt.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' \
        'Label: Debian' 2>/dev/null | head -n 1) || true
    echo "${DEBOOTSTRAP_MIRROR:-${mirror:-http://deb.debian.org/debian}}"
}

# in_chroot TREE COMMAND...: run a command there, where /src is this tree, which only can be read,
# and chroot_net=host keeps the network.  Ends all of it after chroot_bound_s (1800) seconds.
# The root must be a mount, else `ip netns` fails in it.
in_chroot() {
    local tree=$1
    local -a net=(--net)
    shift
    [ "${chroot_net:-}" != host ] || net=()
    # shellcheck disable=SC2016 # The variables of the inner shell.
    timeout --signal=KILL "${chroot_bound_s:-1800}" unshare --mount --pid "${net[@]}" --fork --kill-child --propagation private bash -euc '
        tree=$1 src=$2
        shift 2
        ip link set lo up
        mount --bind "$tree" "$tree"
        mkdir -p "$tree/src" "$tree/proc" "$tree/sys"
        mount --rbind /dev "$tree/dev"
        mount -t proc proc "$tree/proc"
        mount -t sysfs sysfs "$tree/sys" 2>/dev/null || true
        mkdir -p "${tree%/*}/cache/partial"
        mount --bind "${tree%/*}/cache" "$tree/var/cache/apt/archives"
        mount --bind "$src" "$tree/src"
        mount -o remount,bind,ro "$tree/src"
        cd "$tree"
        mkdir -p old
        pivot_root . old
        umount -l /old
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            LC_ALL=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive "$@"
    ' bash "$tree" "$root" "$@"
}

# apt in a chroot, through the network of this machine.  Packages that were downloaded are kept.
chroot_apt() {
    local tree=$1
    shift
    cp /etc/resolv.conf "$tree/etc/resolv.conf"
    (
        flock 7
        chroot_net=host in_chroot "$tree" apt-get -q -y -o Acquire::Check-Valid-Until=false \
            -o APT::Keep-Downloaded-Packages=true -o Dpkg::Use-Pty=0 --no-install-recommends "$@"
    ) 7>"$chroots/apt-lock"
}

# bare_tree SUITE ARCH: make the bare system if it is not there, and print its folder.
bare_tree() {
    mkdir -p "$chroots"
    (flock 8 && make_bare_tree "$@") 8>"$chroots/bare-lock"
}

make_bare_tree() {
    local tree=$chroots/$1-$2/bare
    if [ ! -d "$tree" ]; then
        say "making a bare $1 ($2)"
        rm -rf "$tree.new"
        mkdir -p "$tree.new"
        debootstrap --variant=minbase --arch="$2" "$1" "$tree.new" "$(debian_mirror)" \
            >"$tree.log" 2>&1 || die "debootstrap of $1 failed: $(tail -n 3 "$tree.log")"
        # dpkg need not wait for the disk: a tree that is half made is made again.
        echo force-unsafe-io >"$tree.new/etc/dpkg/dpkg.cfg.d/unsafe-io"
        # No service starts when its package is installed.
        printf '#!/bin/sh\nexit 101\n' >"$tree.new/usr/sbin/policy-rc.d"
        chmod 755 "$tree.new/usr/sbin/policy-rc.d"
        mv "$tree.new" "$tree"
    fi
    echo "$tree"
}

# tree_with SUITE ARCH NAME PACKAGE...: make a system with these packages if it is not there or has
# others, and print its folder.
tree_with() {
    local suite=$1 arch=$2 tree=$chroots/$1-$2/$3 bare
    shift 3
    if [ "$(cat "$tree.packages" 2>/dev/null)" != "$*" ]; then
        bare=$(bare_tree "$suite" "$arch")
        say "installing in $suite ($arch): $*"
        rm -rf "$tree" "$tree.packages" "$tree.new"
        cp -a "$bare" "$tree.new"
        { chroot_apt "$tree.new" update && chroot_apt "$tree.new" install "$@"; } >"$tree.log" 2>&1 ||
            die "apt in $suite failed: $(tail -n 3 "$tree.log")"
        mv "$tree.new" "$tree"
        echo "$*" >"$tree.packages"
    fi
    echo "$tree"
}
