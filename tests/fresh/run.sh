#!/bin/sh
# Runs both commands of README.md on a fresh Debian 12: as root with the clone under /root, which only root
# may enter, and as a user who may use sudo, with the clone at home.
#   tests/fresh/run.sh [root|user|both] [demo|test|both]
#   tests/fresh/run.sh --keep root|user COMMAND...   runs COMMAND in the clone of the machine of an earlier run
# A machine is a folder (mmdebstrap's minbase with git and sudo) that becomes the root of processes with their
# own /proc, /dev and mounts. Its apt has the sources and the proxy of this machine. It clones HEAD of this
# repository, and sees ../shared beside the clone. Root is needed here, for mount.
# CNNRUN_FRESH=DIR holds machines, packages that were fetched, and logs (default: /var/tmp/cnnrun-fresh; 25 GB).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${CNNRUN_FRESH:-/var/tmp/cnnrun-fresh}
person=person limit=7200 # seconds that a command may take
say() { printf '== %s\n' "$*" >&2; }
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }

keep=
if [ "${1-}" = --keep ]; then
    keep=1
    shift
    [ $# -ge 2 ] || usage
fi
people=${1:-both}
case $people in root | user) ;; both) [ -z "$keep" ] || usage; people='root user' ;; *) usage ;; esac
if [ -z "$keep" ]; then
    [ $# -le 2 ] || usage
    commands=${2:-both}
    case $commands in demo | test) ;; both) commands='demo test' ;; *) usage ;; esac
fi
[ "$(id -u)" = 0 ] || { say "fresh: root is needed for mount"; exit 1; }
for program in mmdebstrap git unshare; do
    command -v $program >/dev/null || { say "fresh: $program is missing (apt-get install $program)"; exit 1; }
done
mkdir -p "$work/logs" "$work/archives/partial"

# The sources of Debian 12 that this machine has, or none: mmdebstrap then takes its own.
sources() {
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        if [ -f "$list" ] && grep -v '^ *#' "$list" | grep -qw bookworm &&
            grep -v '^ *#' "$list" | grep -qw main; then echo "$list"; fi
    done
}
# How this machine's apt reaches its sources: proxies, and whether old indexes are good enough.
apt_options() {
    apt-config dump | grep -E '^Acquire::((https?|ftp)::|Check-(Valid-Until|Date) )' || true
    for scheme in http https; do
        eval "proxy=\${${scheme}_proxy-}"
        # shellcheck disable=SC2154
        [ -z "$proxy" ] || echo "Acquire::$scheme::Proxy \"$proxy\";"
    done
}
make_base() {
    [ ! -d "$work/base" ] || return 0
    say "making a bare Debian 12 in $work/base"
    rm -rf "$work/base.new"
    apt_options >"$work/apt.conf"
    # shellcheck disable=SC2046
    mmdebstrap --variant=minbase --include=ca-certificates,git,sudo --aptopt="$work/apt.conf" \
        bookworm "$work/base.new" $(sources) >"$work/logs/base.log" 2>&1 ||
        { tail -n 20 "$work/logs/base.log" >&2; exit 1; }
    mv "$work/base.new" "$work/base"
}

# machine root|user: a copy of the base with the person and the clone
machine() {
    machine=$work/$1
    home=/root
    [ "$1" = root ] || home=/home/$person
    [ -z "$keep" ] || return 0
    say "a fresh machine in $machine"
    rm -rf "$machine"
    cp -a --reflink=auto "$work/base" "$machine"
    apt_options >"$machine/etc/apt/apt.conf.d/90host"
    echo 'Binary::apt-get::APT::Keep-Downloaded-Packages "true";' >>"$machine/etc/apt/apt.conf.d/90host"
    cat /etc/resolv.conf >"$machine/etc/resolv.conf" 2>/dev/null || true
    cat /etc/hosts >"$machine/etc/hosts" 2>/dev/null || true
    grep -qw "$(hostname)" "$machine/etc/hosts" || echo "127.0.1.1 $(hostname)" >>"$machine/etc/hosts"
    if [ "$1" = user ]; then
        chroot "$machine" useradd --create-home --shell /bin/bash $person
        echo "$person ALL=(ALL) NOPASSWD: ALL" >"$machine/etc/sudoers.d/$person"
    fi
    chmod 700 "$machine$home"
    git -C "$root" bundle create -q "$machine/cnnrun.bundle" HEAD
    as "$1" / "git -c advice.detachedHead=false clone -q /cnnrun.bundle ~/cnnrun" || exit 1
}

# as root|user FOLDER COMMAND: a login shell's command on the machine, in its own process and mount namespace,
# which end with it, or after $limit seconds. A folder that begins without / is of the home.
as() {
    login=root
    [ "$1" = root ] || login=$person
    machine=$machine home=$home login=$login folder=$2 command=$3 shared=$root/../shared archives=$work/archives \
        inside=$inside timeout --foreground -s KILL "$limit" unshare --mount --pid --fork --kill-child sh -euc "$outside" </dev/null
}
# shellcheck disable=SC2016
outside='
    mount --bind "$machine" "$machine"
    cd "$machine"
    mount -t proc proc proc
    mount --rbind /sys sys
    mount -t tmpfs -o mode=755 tmpfs dev
    for node in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "dev/${node%:*}" c 1 "${node#*:}"; done
    mknod -m 666 dev/tty c 5 0
    mkdir dev/pts dev/shm
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
    mount -t tmpfs -o mode=1777 tmpfs dev/shm
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    for n in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${n%:*}" "dev/${n#*:}"; done
    mount --bind "$archives" var/cache/apt/archives
    if [ -d "$shared" ]; then
        mkdir -p ".$home/shared"
        mount --bind "$shared" ".$home/shared"
        mount -o remount,bind,ro ".$home/shared"
    fi
    mkdir -p .outside
    # a new root, not a chroot: who is in one can make no user namespaces, as tests do
    pivot_root . .outside
    exec chroot . /bin/sh -euc "$inside"'
# shellcheck disable=SC2016
inside='
    PATH=/usr/sbin:/usr/bin:/sbin:/bin
    umount -l /.outside
    code=0
    # this shell stays, as init: it waits for processes whose parents are gone
    env -i PATH="$PATH" TERM=dumb runuser -l "$login" -c "cd $folder && $command" || code=$?
    exit $code'

make_base
if [ -n "$keep" ]; then
    shift
    machine "$people"
    as "$people" cnnrun "$*"
    exit
fi
summary=$work/logs/summary
{ echo "commit $(git -C "$root" rev-parse HEAD)"; nproc | sed 's/$/ processors/'; } >"$summary"
bad=0
for who in $people; do
    machine "$who"
    for command in $commands; do
        log=$work/logs/$who-$command.log
        say "$who: tools/$command.sh, log in $log"
        begin=$(date +%s)
        code=0
        as "$who" cnnrun "CI=true tools/$command.sh" >"$log" 2>&1 || code=$?
        [ $code = 0 ] || bad=1
        took=$(($(date +%s) - begin))
        { echo "$who tools/$command.sh: exit $code after $((took / 60)) min $((took % 60)) s; $(tail -n 1 "$log")"
            grep -E '^== (suite .* took|everything took)|^(skipped|left out|missing|    [0-9]+ (test|file))' "$log" | sed 's/^/    /'; } |
            tee -a "$summary"
    done
done
say "summary in $summary"
exit $bad
