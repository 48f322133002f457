#!/bin/sh
# Running a tracker through frames: the checks are in follow.lua.
"${CNNRUN_BUILD:-build}/cnnrun" "$(dirname "$0")/follow.lua"
