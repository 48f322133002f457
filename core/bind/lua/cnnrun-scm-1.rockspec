rockspec_format = "3.0"
package = "cnnrun"
version = "scm-1"
source = { url = "." }
description = {
  summary = "Runs convolutional networks: the Lua API of libcnnrun",
  license = "MIT",
}
dependencies = { "lua >= 5.4, < 5.5" }
external_dependencies = { CNNRUN = { library = "libcnnrun.so.1" } }
build = { type = "builtin", modules = { cnnrun = "cnnrun.lua" } }
