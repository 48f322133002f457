#!/bin/sh
# From a fresh clone to recognised pictures: installs what is missing, builds, runs the demo.
. "$(dirname "$0")/setup.sh"
install_packages building
build build installed
say "recognising the digits in scripts/nets/digits with scripts/nets/lenet5.lua (trained on MNIST)"
build/cnnrun run scripts/nets/lenet5.lua scripts/nets/digits/*.png
say "try: build/cnnrun run scripts/nets/lenet5.lua YOUR.png, or build/cnnrun --help"
