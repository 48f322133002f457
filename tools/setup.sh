# Sourced by demo.sh and test.sh: installs what is missing, configures and builds.
set -eu
cd "$(dirname "$0")/.."
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 # a second clone takes what the first compiled
say() { printf '== %s\n' "$*" >&2; }

# progress LOG COMMAND...: runs it and shows how far it is (in one line on a terminal), by the lines of apt-get or
# Ninja, which go into LOG.
progress() {
    into=$1
    shift
    code=$({ { "$@" </dev/null 2>&1 && echo 0 >&3 || echo $? >&3; } | tee "$into" | perl -ne '
        BEGIN { $| = 1; select STDERR; $step = -t STDERR ? 1 : 20 }
        $all = 2 * $1 if /, (\d+) newly installed/;
        if (m{^\[(\d+)/(\d+)\]}) { ($done, $all) = ($1, $2) } elsif (/^(Unpacking|Setting up) /) { $done++ } else { next }
        my $part = int(100 * $done / ($all || next));
        next if $part < ($last // 0) + $step;
        $last = $part;
        print $step > 1 ? "   $part %\n" : "\r   $part %" . ($part < 100 ? "" : "\n")'; } 3>&1)
    return "$code"
}

# install_packages [GROUP]: all of tools/packages.txt, or only what stands before "# For GROUP".
install_packages() {
    missing=
    for package in $(sed "${1:+/^# For $1/,\$d; }s/#.*//" tools/packages.txt); do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    say "installing:$missing"
    sudo=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || { say "root or sudo is needed to install:$missing"; exit 1; }
        sudo=sudo
    fi
    log=$(mktemp)
    # shellcheck disable=SC2086
    if ! { progress "$log" $sudo apt-get update && progress "$log" $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends $missing; }; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        say "could not install the packages above (see tools/packages.txt)"
        exit 1
    fi
    rm -f "$log"
    rm -f build*/CMakeCache.txt # configured again, to see what is there now
}

# build DIR "TARGET..." [cmake options]: configures once, then builds what has changed.
build() {
    dir=$1 targets=$2
    shift 2
    if [ ! -f "$dir/build.ninja" ] || [ ! -f "$dir/CMakeCache.txt" ]; then
        say "configuring $dir"
        mkdir -p "$dir"
        launcher=
        if command -v ccache >/dev/null; then
            launcher="-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
        fi
        # shellcheck disable=SC2086
        cmake -S . -B "$dir" -G Ninja $launcher "$@" >"$dir/configure.log" 2>&1 ||
            { tail -n 30 "$dir/configure.log" >&2; exit 1; }
    fi
    say "building $dir"
    # shellcheck disable=SC2086
    progress "$dir/build.log" cmake --build "$dir" ${targets:+--target $targets} ||
        { tail -n 60 "$dir/build.log" >&2; exit 1; }
}
