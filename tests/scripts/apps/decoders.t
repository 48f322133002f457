#!/bin/sh
# The decoders of boxes and their drawing: the checks are in decoders.lua.
build=${CNNRUN_BUILD:-build}
exec "$build/cnnrun" "$(dirname "$0")/decoders.lua" 2>/dev/null
