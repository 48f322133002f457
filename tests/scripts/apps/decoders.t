#!/bin/sh
# The decoders of boxes and what draws them: decoders.lua tells.
build=${CNNRUN_BUILD:-build}
exec "$build/cnnrun" "$(dirname "$0")/decoders.lua" 2>/dev/null
