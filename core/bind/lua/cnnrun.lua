-- require "cnnrun" in a stock Lua 5.4: opens libcnnrun's API in this interpreter.
-- Options (threads, cache, plugin_dirs ...) are read from package.loaded["cnnrun.options"], a table that is set before.
local file = select(2, ...) or ""
local prefix = file:match("^(.*)/share/lua/5%.4/cnnrun%.lua$")
local places = { os.getenv("CNNRUN_LIBRARY") or false, prefix and prefix .. "/lib/libcnnrun.so.1",
                 prefix and prefix .. "/lib64/libcnnrun.so.1", "libcnnrun.so.1" }

local reasons = {}
for i = 1, 4 do
  local open, why
  if places[i] then open, why = package.loadlib(places[i], "cnr_lua_open") end
  if open then return open(package.loaded["cnnrun.options"]) end
  reasons[#reasons + 1] = why
end
error("cnnrun: " .. table.concat(reasons, "; ") .. " (CNNRUN_LIBRARY names the file libcnnrun.so.1)", 0)
