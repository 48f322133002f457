-- The thesis of 2016 on Adreno 330 and Tegra K1, and the paper (WX18) about its first half: tables 3.1 to 3.3, 4.1 and
-- 4.2, figures 2.10, 3.4, 3.7, 3.8 and 4.9 to 4.13.
--
--   cnnrun scripts/documents/s16.lua [--quick] [-o FOLDER] [--device cpu,opencl:0]
local c = require "cnnrun"
local args = require "lib.args"
local board = require "lib.board"
local cascade = require "lib.cascade"
local document = require "documents.document"
local follow = require "lib.follow"
local placement = require "lib.placement"
local scenes = require "lib.scenes"
local steps = require "documents.steps"

local spec = "adreno_330"

-- ---- classification ----

-- Returns three times in seconds: all layers on the CPU, the convolutions on the CPU, all layers with convolutions on the
-- GPU.
local function forward(b, list)
  local cpu, gpu, convolutions = {}, {}, 0
  for _, layer in ipairs(list) do
    local is_conv = layer.op:find "^conv"
    cpu[layer.name], gpu[layer.name] = "cpu", is_conv and "gpu" or "cpu"
    if is_conv then convolutions = convolutions + board.work(b, board.named(b.units, "cpu"), layer) end
  end
  return placement.run(b, list, placement.plan(list, cpu)), convolutions, (placement.run(b, list, placement.plan(list, gpu)))
end

-- Adds tables 3.1 and 3.3 for the Inception nets.
local function nets(d, b)
  local rows = {}
  for _, n in ipairs { { "Inception-sub", "nets.inception_bn", 12.05, 11.61, .9635, 5.66, 2.129 },
                       { "Inception-full", "nets.inception_full", 21.93, 20.13, .9179, 10.31, 2.127 } } do
    local cpu, convolutions, gpu = forward(b, placement.layers(n[2]))
    -- Adds a row of this experiment for the present net: the document's number and ours.
    local function row(experiment, what, quantity, number, ours)
      d:row { experiment = experiment, row = n[1] .. ", " .. what, quantity = quantity, document = number, ours = ours,
              kind = document.predicted, on = spec }
    end
    row("table 3.1", "all layers on the CPU", "seconds", n[3], cpu)
    row("table 3.1", "convolutions on the CPU", "seconds", n[4], convolutions)
    row("table 3.1", "share of convolutions", "ratio", n[5], convolutions / cpu)
    row("table 3.3", "convolutions on the GPU", "seconds", n[6], gpu)
    row("table 3.3", "speed-up", "ratio", n[7], cpu / gpu)
    d:claim("table 3.3", n[1] .. " is faster with its convolutions on the GPU", gpu < cpu)
    d:claim("table 3.1", n[1] .. "'s convolutions take most of the time", convolutions > .5 * cpu)
    rows[#rows + 1] = { n[1], cpu, gpu, total = cpu }
  end
  table.insert(rows, 1, { "FastPoorNet", d:value "S16 table 3.1, FastPoorNet on the CPU, seconds",
                          d:value "S16 3.4, FastPoorNet with convolutions on the GPU, seconds" })
  d:claim("table 3.3", "FastPoorNet is faster with its convolutions on the GPU", rows[1][3] < rows[1][2])
  d:rises("table 3.1", "seconds", { { "FastPoorNet", rows[1][2] }, { "Inception-sub", rows[2][2] }, { "Inception-full", rows[3][2] } })
  d:bars("table-3-3", "Table 3.3: a forward pass, seconds", rows, { "CPU", "convolutions on the GPU" })
end

-- Adds the simulated rows of chapter 3, of the nets' classifications.
local function classification(d)
  local b = board.load(spec)
  d:board(spec, function() return true end)
  nets(d, b)
  local list = {}
  for i = 0, 6 do list[i + 1] = { "conv " .. i, 1e3 * d:value(("S16 table 3.2, convolution %d on the CPU, seconds"):format(i)) } end
  d:bars("table-3-2", "Table 3.2: FastPoorNet's convolutions on the CPU, ms", list)
  d:rises("table 3.2", "seconds of convolutions", { { "3", list[4][2] }, { "2", list[3][2] }, { "6", list[7][2] }, { "1", list[2][2] } })
  d:claim("fig 3.4", "values move faster within the device than to it",
          d:value "S16 fig 3.4, from device to device, GB/s" > d:value "S16 fig 3.4, from host to device, GB/s")
  d:bars("fig-3-4", "Figure 3.4: GB/s on the simulated Snapdragon 801", { { "device to device", d:value "S16 fig 3.4, from device to device, GB/s" },
    { "host to device", d:value "S16 fig 3.4, from host to device, GB/s" }, { "device to host", d:value "S16 fig 3.4, from device to host, GB/s" } })
  d:claim("fig 3.8", "the GPU multiplies faster than the CPU", d:value "WX18 4, product on the GPU over the CPU, GFLOP/s" > 1)
  d:cannot("fig 3.7", "share of the GPU's bandwidth", "ratio", .799, "wants an Adreno's counters")
end

-- ---- measured here ----

local shapes = { { 2916, 64, 363 }, { 625, 192, 576 }, { 144, 96, 1728 }, { 144, 160, 864 }, { 144, 144, 1440 },
                 { 144, 160, 1296 }, { 144, 256, 1440 } }

-- A net with one product. shape: { M, N, K } for M x K by K x N; `turned`: swaps M and N, for S16's column-major order.
local function product(shape, turned)
  local m, wide, inner = table.unpack(shape)
  if turned then m, wide = wide, m end
  local a, b = c.input { "a", shape = { m, inner } }, c.input { "b", shape = { inner, wide } }
  return c.net { name = "product", inputs = { a, b }, outputs = { c.gemm { "product" } (a, b) } }
end

-- Measures FastPoorNet's products on each device, and adds their rows.
local function products(d)
  for i, s in ipairs(shapes) do
    d:measured("fig 3.8", ("product %d, %d x %d x %d"):format(i - 1, s[1], s[3], s[2]), nil, product(s))
  end
end

-- Measures S16's optimisation steps: GFLOP/s over all of FastPoorNet's products, and the gain of each step.
local function own_steps(d)
  local own, rate, rates, why = steps(d), {}, {}, nil
  local names = { "naive", "padded", "rows", "tiles", "local", "float4", "unrolled" }
  local operations = 0
  for _, s in ipairs(shapes) do operations = operations + 2 * s[1] * s[2] * s[3] end
  for _, name in ipairs(names) do
    local ms = 0
    for i, s in ipairs(shapes) do
      local t
      t, why = own:time({ ("product %d"):format(i - 1), product(s, true), experiment = "fig 3.8" },
                        { "gpu", "gemm=gemm_f32_s16_" .. name })
      ms = ms and t and ms + t.ms
    end
    rate[name] = ms and operations / ms * 1e-6
    rates[#rates + 1] = ms and { name, rate[name] } or nil
    d:row { experiment = "fig 3.8", row = "all products, step " .. name, quantity = "GFLOP/s", ours = rate[name] or nil,
            document = name == "unrolled" and 7.21 or nil, kind = document.measured, on = own.on.gpu, why = why }
  end
  for _, r in ipairs { { "local memory over tiles", 3, "local", "tiles" }, { "float4 over that", 1.25, "float4", "local" },
                       { "unrolled by 8 over that", 1.16, "unrolled", "float4" } } do
    local over, under = rate[r[3]], rate[r[4]]
    d:row { experiment = "fig 3.8", row = r[1], quantity = "ratio", document = r[2], ours = over and under and over / under or nil,
            kind = document.measured, on = own.on.gpu, why = why }
  end
  d:bars("fig-3-8-steps", "Figure 3.8: GFLOP/s of each step here", rates, { own.on.gpu or "" }, { simulated = false })
end

-- Measures the share of memory saved by activations in one arena, compared with separate memory for each.
local function memory(d)
  local device, rows = d.devices[1], {}
  for _, name in ipairs(d.options.quick and { "alexnet" } or { "alexnet", "inception_bn", "vgg16" }) do
    local t = d:keep(("%s, memory on %s"):format(name, device), function()
      local net <close> = c.load("nets." .. name, { weights = "random:1", device = device })
      local sum, list = 0, net:layers()
      for _, layer in ipairs(list) do
        local elements = 1
        for _, size in ipairs(layer.sizes) do elements = elements * size end
        sum = sum + 4 * elements
      end
      return { sum = sum, arena = net:profile { runs = 1, warm = 0 }.arena_bytes }
    end)
    d:row { experiment = "fig 2.10", row = name .. ", memory that in-place and sharing save", quantity = "ratio", document = .75,
            ours = 1 - t.arena / t.sum, kind = document.measured, on = device }
    d:claim("fig 2.10", name .. ": in place and shared take less", t.arena < t.sum)
    rows[#rows + 1] = { name, t.sum * 1e-6, t.arena * 1e-6 }
  end
  d:bars("fig-2-10", "Figure 2.10: memory of activations, MB", rows, { "each its own", "in place and shared" }, { simulated = false })
end

local videos = { { "Car", 320, 240, 33.21, 24.36, 1.20, 2.44, 1.14, 3.65, 17.58 },
                 { "Data1", 352, 288, 40.13, 32.21, 2.48, 3.57, 2.66, 15.41, 16.45 },
                 { "Data2", 640, 480, 96.45, 60.57, 3.21, 2.88, 2.17, 45.95, 11.15 } }
local modules = { flow = 2, variance = 3, ferns = 4, nearest = 5, learning = 6, all = 7 }

-- Mean milliseconds per frame of each module of the tracker, on a generated scene of that size, as
-- a table; device nil: the processor alone. Its field `wall` is the time by the clock, if scripts
-- may read it, as the modules' times do not include a device's.
local function track(width, height, frames, device)
  local tracker, led, times, n, clock = c.object("tld", { seed = 1 }), nil, {}, 0, pcall(c.now)
  scenes.draw(3, { width = width, height = height, frames = frames, effects = {} }):each(function(frame, picture, box)
    led = led or follow.start(tracker, box, false, device and cascade.new(tracker, { device = device }))
    local begun = clock and c.now()
    led:frame(picture)
    if frame <= 3 then return end
    n = n + 1
    if clock then times.wall = (times.wall or 0) + (c.now() - begun) * 1e3 end
    local t = tracker:times()
    for name, k in pairs(modules) do times[name] = (times[name] or 0) + t[k] end
  end)
  for name, sum in pairs(times) do times[name] = sum / n end
  times.detector = times.variance + times.ferns + times.nearest
  return times
end

-- Adds tables 4.1 and 4.2: times of the tracker by module.
local function tracker(d)
  local rows, first, last = {}, nil, nil
  for _, v in ipairs(videos) do
    local good, t = pcall(d.keep, d, ("tracker, %dx%d"):format(v[2], v[3]), function()
      return track(v[2], v[3], d.options.quick and 8 or 40)
    end)
    -- Adds a row of this experiment, with the measured number `key`.
    local function row(experiment, what, number, key)
      d:row { experiment = experiment, row = ("%s, %dx%d, %s"):format(v[1], v[2], v[3], what), quantity = "ms", document = number,
              ours = good and t[key] or nil, kind = document.measured, on = "cpu, a made scene of the size",
              why = not good and args.plain(t) or "another scene and processor than the thesis'" }
    end
    row("table 4.1", "a frame", v[4], "all")
    row("table 4.1", "detector", v[5], "detector")
    row("table 4.1", "tracker", v[6], "flow")
    row("table 4.1", "learning", v[7], "learning")
    row("table 4.2", "variance", v[8], "variance")
    row("table 4.2", "ferns", v[9], "ferns")
    row("table 4.2", "nearest neighbour", v[10], "nearest")
    if good then
      rows[#rows + 1] = { v[1], t.variance, t.ferns, t.nearest, t.flow, t.learning }
      first, last = first or t, t
    end
  end
  if not (first and last) then return end
  d:claim("table 4.1", "640x480 takes longer than 320x240", last.all > first.all)
  d:claim("table 4.1", "640x480: the detector takes longer than the tracker", last.detector > last.flow)
  d:bars("table-4-2", "Tables 4.1 and 4.2: the tracker by module, ms", rows, { "variance", "ferns", "nearest", "flow", "learning" },
         { simulated = false })
end

-- Milliseconds of each detector stage alone, on the first frame of a generated scene of 640x480.
local function stages(device)
  local t = {}
  scenes.draw(3, { width = 640, height = 480, frames = 1, effects = {} }):each(function(_, picture, box)
    t.variance, t.ferns = cascade.alone(picture, box, device, { seed = 1 })
  end)
  t.nearest = cascade.patches(device, 2000, 500)
  return t
end

-- Returns { processor's, device's } milliseconds by module; nil and why not.
local function beside(d, device)
  if not device then return nil, "no OpenCL device here" end
  if d.options.quick then return nil, "--quick" end
  if not pcall(c.now) then return nil, "a clock wants --trust before the script" end
  local good, t = pcall(d.keep, d, "tracker, 640x480 on " .. device, function()
    local frames = 20
    local here, there = stages "cpu", stages(device)
    here.all, there.all = track(640, 480, frames).wall, track(640, 480, frames, device).wall
    return { here, there }
  end)
  if not good then return nil, args.plain(t) end
  return t
end

-- Adds figures 4.9 to 4.13: the speed-up of the tracker's modules on an OpenCL device.
local function on_devices(d)
  local device, bars = nil, {}
  for _, name in ipairs(d.devices) do device = device or name:find "^opencl" and name or nil end
  local t, why = beside(d, device)
  for i, r in ipairs { { "fig 4.9", "variance, on the GPU", 2, "variance" }, { "fig 4.10", "ferns, on the GPU", 2, "ferns" },
                       { "fig 4.11", "nearest neighbour, on the GPU", 15, "nearest" }, { "fig 4.13", "a frame, on the GPU", 2.09, "all" } } do
    d:row { experiment = r[1], row = r[2], quantity = "ratio", document = r[3], ours = t and t[1][r[4]] / t[2][r[4]], kind = document.measured,
            on = device, why = why or "over this machine's processor, all threads" }
    bars[i] = t and { r[4] == "all" and "a frame" or r[4], t[1][r[4]], t[2][r[4]] }
  end
  d:bars("fig-4-9", "Figures 4.9 to 4.13: the tracker at 640x480, ms", bars, { "processor", device }, { simulated = false, log = "y" })
end

return document.main({ name = "s16",
  about = "The tables and figures of the thesis of 2016 and its paper beside a simulated Snapdragon 801 and this machine." },
  function(d)
    if d.boards then classification(d) end
    own_steps(d)
    if #d.devices == 0 then return end
    products(d)
    memory(d)
    tracker(d)
    on_devices(d)
  end)
