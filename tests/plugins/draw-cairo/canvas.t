#!/bin/sh
# Drawings of draw-cairo, checked by a script that reads the pixels.
exec "${CNNRUN_BUILD:-build}/cnnrun" "$(dirname "$0")/canvas.lua"
