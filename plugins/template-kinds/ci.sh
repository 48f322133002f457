#!/bin/sh
# What continuous integration runs: builds the plugins against the cnnrun below CNNRUN_PREFIX (/usr/local),
# judges each, and leaves a page beside it, build/plugins/NAME.html. samples/ has a file for each importer
# and source, and a tree in which the meters and the knobs find their board.
set -eu
prefix=${CNNRUN_PREFIX:-/usr/local}
cd "$(dirname "$0")"
cmake -S . -B build "-DCMAKE_PREFIX_PATH=$prefix"
cmake --build build
set --
for sample in samples/a.*; do set -- "$@" --sample "$sample"; done
for plugin in build/plugins/*.so; do
    "$prefix/bin/cnnrun" conform "$plugin" --sysfs-root samples/root "$@" -o "${plugin%.so}.html"
done
