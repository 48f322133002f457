#!/bin/sh
# Lasting numbers of boxes.
exec "${CNNRUN_BUILD:-build}/cnnrun" "$(dirname "$0")/tracks.lua"
