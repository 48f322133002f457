# Sourced by demo.sh and test.sh: installs what is missing, configures and builds.
set -eu
cd "$(dirname "$0")/.."
say() { printf '== %s\n' "$*" >&2; }

install_packages() {
    missing=
    for package in $(sed 's/#.*//' tools/packages.txt); do
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
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    # shellcheck disable=SC2086
    if ! { $sudo apt-get update && $sudo apt-get install -y --no-install-recommends $missing; } \
        >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        say "could not install the packages above (see tools/packages.txt)"
        exit 1
    fi
    rm -f "$log"
}

# build DIR [cmake options]: configures once, then builds what has changed.
build() {
    dir=$1
    shift
    if [ ! -f "$dir/build.ninja" ]; then
        say "configuring $dir"
        launcher=
        command -v ccache >/dev/null && launcher="-DCMAKE_C_COMPILER_LAUNCHER=ccache"
        cmake -S . -B "$dir" -G Ninja $launcher "$@" >"$dir.log" 2>&1 ||
            { tail -n 30 "$dir.log" >&2; exit 1; }
        mv "$dir.log" "$dir/configure.log"
    fi
    say "building $dir"
    cmake --build "$dir" >"$dir/build.log" 2>&1 || { tail -n 60 "$dir/build.log" >&2; exit 1; }
}
