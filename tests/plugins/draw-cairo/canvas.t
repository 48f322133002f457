#!/bin/sh
# What draw-cairo draws, by a script that looks at the pixels.
exec "${CNNRUN_BUILD:-build}/cnnrun" "$(dirname "$0")/canvas.lua"
