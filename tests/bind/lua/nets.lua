-- The API in a stock interpreter: nets, errors, coroutines that are older than the module, shipped scripts.
local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, name)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. name)
end

local older = coroutine.wrap(function(c) return #c.tensor { shape = { 3 }, data = { 1, 2, 3 } } end)
local digits = arg[1] .. "/nets/digits/"
package.loaded["cnnrun.options"] = { threads = 1 }
local c = require "cnnrun"

local net = c.load("nets.lenet5")
local top = net:picture(digits .. "three.png"):topk(1)
ok(top[1].index == 3, "LeNet-5 sees a three")
ok(c.devices()[1].concurrency == 1, "options are the table put there before")
ok(older(c) == 3, "a coroutine from before the module uses it")
ok(coroutine.wrap(function() return #net:run(c.tensor { shape = { 1, 1, 28, 28 } }) end)() == 10, "so does a new one")

local good, why = pcall(c.load, "missing.lua")
ok(not good and why:find("missing.lua", 1, true), "an error names the file")
good, why = pcall(function() return c.conv2dd end)
ok(not good and why:find("did you mean 'conv2d'", 1, true), "a slip gets a suggestion")

local own = c.load(c.net { input = { "x", shape = { 1, 4 } }, c.relu {} })
local y = own:run(c.tensor { shape = { 1, 4 }, data = { -1, 2, -3, 4 } })
ok(y[1] == 0 and y[2] == 2 and y[4] == 4, "a net that the program describes")
ok(#c.plugins() > 5, "plugins")

local calls = 0
net:train { data = "images:" .. arg[2], epochs = 1, batch = 2, on_epoch = function() calls = calls + 1 end }
ok(calls == 1, "training calls back")

local name = os.tmpname()
c.write(name, "written")
local file = io.open(name)
ok(file:read("a") == "written", "files anywhere: nothing of a sandbox")
file:close()
os.remove(name)

package.path = arg[1] .. "/?.lua;" .. package.path
ok(require("lib.json").encode { 1, 2 } == "[1,2]", "scripts that ship")
print("1.." .. n)
