#!/bin/sh
# Feeds and workers of scripts.
build=${CNNRUN_BUILD:-build}
here=$(dirname "$0")
live=
[ -e "$build/plugins/source-video.so" ] && live=device:lavfi:testsrc2=size=64x48:rate=100,realtime
exec "$build/cnnrun" "$here/feed.lua" "$here/../../../scripts/nets/digits" "$here/../../../scripts/nets/lenet5.lua" $live
