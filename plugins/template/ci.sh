#!/bin/sh
# What continuous integration runs: builds the plugin against the cnnrun below CNNRUN_PREFIX (/usr/local),
# judges all that it brings, and leaves a page beside it, build/plugins/NAME.html.
set -eu
prefix=${CNNRUN_PREFIX:-/usr/local}
cd "$(dirname "$0")"
cmake -S . -B build "-DCMAKE_PREFIX_PATH=$prefix"
cmake --build build
for plugin in build/plugins/*.so; do
    "$prefix/bin/cnnrun" conform "$plugin" -o "${plugin%.so}.html"
done
