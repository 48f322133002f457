#!/bin/sh
# From a fresh clone to recognised pictures: installs what is missing, builds, runs the demo.
. "$(dirname "$0")/setup.sh"
# who can't install anything hears of it before the build
[ "$(id -u)" = 0 ] || command -v sudo >/dev/null || install_packages tests
install_packages "all plugins"
# what other plugins take is installed while the core and the kernels are compiled
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install_packages tests 2>"$log" &
[ -f build/cnnrun ] || build build "cnnrun cpu-neon ops-std int8"
wait $! || { cat "$log" >&2; exit 1; }
[ ! -s "$log" ] || rm -f build/CMakeCache.txt # configured again, to see what is there now
build build installed
say "recognising the digits in scripts/nets/digits with scripts/nets/lenet5.lua (trained on MNIST)"
build/cnnrun run scripts/nets/lenet5.lua scripts/nets/digits/*.png
say "try: build/cnnrun run scripts/nets/lenet5.lua YOUR.png, or build/cnnrun --help"
