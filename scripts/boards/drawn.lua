-- A board drawn by a seed, --board drawn,seed=7: a processor of two clusters, one to three
-- accelerators, with values in the ranges of phones and boards of 2013 to 2024.
local board = require "lib.board"
local dice = require "lib.dice"

-- A clock of device d with steps drawn between low and high.
local function clock(d, name, low, high)
  local steps, n = {}, d.whole(3, 8)
  local v_low, v_high = d.from(.65, .9), d.from(.95, 1.3)
  for i = 1, n do
    local part = (i - 1) / (n - 1)
    steps[i] = { mhz = math.floor(low + (high - low) * part), volts = v_low + (v_high - v_low) * part ^ 1.5 }
  end
  return { name = name, steps = steps }
end

-- The speed and power of a unit; `efficiency` is GFLOP/s per watt.
local function unit(d, name, title, of)
  local gflops = d.scale(of.gflops[1], of.gflops[2])
  local watts = gflops / d.scale(of.efficiency[1], of.efficiency[2])
  local gbytes = d.scale(of.gbytes[1], of.gbytes[2])
  local static = watts * d.from(.03, .3)
  return {
    name = name, title = title, cores = d.whole(1, 8), rail = name, clock = name, host = of.host, launch = d.scale(of.launch[1], of.launch[2]),
    classes = {
      { op = "conv*", gflops = gflops, gbytes = gbytes },
      { op = "depthwise*", gflops = gflops * d.from(.1, .6), gbytes = gbytes },
      { op = "dense", gflops = gflops * d.from(.4, 1), gbytes = gbytes },
      { op = "*", gflops = gflops * d.from(.1, .5), gbytes = gbytes, activity = d.from(.4, 1) },
    },
    power = { static = static, dynamic = watts - static },
    split = { seconds = d.scale(20e-6, 2e-3), joules = d.scale(20e-6, 2e-3) },
    transfer = of.host and {} or { gbytes = d.scale(.5, 12), seconds = d.scale(2e-6, 300e-6) },
  }
end

return function(values)
  local seed = values.seed or 1
  local d = dice(seed)
  local b = { name = "drawn", seed = seed, rails = {}, clocks = {}, units = {} }
  -- Adds a unit with its rail and clock.
  local function add(u, low, high)
    b.units[#b.units + 1] = u
    b.rails[#b.rails + 1] = { name = u.name, idle = (u.power.static + u.power.dynamic) * d.from(.01, .15) }
    b.clocks[#b.clocks + 1] = clock(d, u.name, low, high)
  end
  for i = 1, d.whole(1, 3) do
    add(unit(d, "gpu" .. i, "a drawn accelerator", { gflops = { 1, 400 }, efficiency = { 2, 80 }, gbytes = { 2, 40 }, launch = { 5e-6, 300e-6 } }),
        d.whole(100, 300), d.whole(400, 1500))
  end
  add(unit(d, "big", "drawn big cores", { gflops = { 1, 150 }, efficiency = { .5, 20 }, gbytes = { 2, 25 }, launch = { 1e-6, 30e-6 }, host = true }),
      d.whole(300, 800), d.whole(1500, 3200))
  add(unit(d, "little", "drawn little cores", { gflops = { .3, 30 }, efficiency = { 1, 40 }, gbytes = { 1, 12 }, launch = { 1e-6, 30e-6 }, host = true }),
      d.whole(200, 500), d.whole(1000, 2000))
  b.rails[#b.rails + 1] = { name = "memory", idle = d.from(.02, .3), per_byte = d.scale(10e-12, 150e-12) }
  return board.new(b)
end
