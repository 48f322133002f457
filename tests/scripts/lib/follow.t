#!/bin/sh
# A tracker led through frames: follow.lua tells.
"${CNNRUN_BUILD:-build}/cnnrun" "$(dirname "$0")/follow.lua"
