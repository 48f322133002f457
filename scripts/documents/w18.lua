-- Hu Wang's thesis of 2018: tables 3.1 to 3.9, 4.1, 5.1 and 5.2, figures whose numbers are in its text, and the ratios
-- that it claims.
--
--   cnnrun scripts/documents/w18.lua [--quick] [-o FOLDER] [--device cpu] [--board drawn,seed=3]
local c = require "cnnrun"
local args = require "lib.args"
local board = require "lib.board"
local document = require "documents.document"
local nets = require "boards.nets"
local plot = require "lib.plot"
local steps = require "documents.steps"

local ch3, ch4 = "odroid_xu3,library=ch3", "odroid_xu3"
local n = 100 * 256 * 256

-- ---- chapter 3 ----

-- A net of one product of two matrices.
local function product(m, inner, wide)
  local a, b = c.input { "a", shape = { m, inner } }, c.input { "b", shape = { inner, wide } }
  return c.net { name = "product", inputs = { a, b }, outputs = { c.gemm { "product" } (a, b) } }
end
-- A net of one layer on a picture of 256 x 256.
local function one(layer) return c.net { name = "operator", input = { "x", shape = { 1, 100, 256, 256 } }, layer } end

local im2col = { op = "im2col", flops = 0, bytes = 8 * 9 * 254 * 254 * 100 }
local pooling = { op = "max_pool", flops = 9 * 100 * 254 * 254, bytes = 10 * 254 * 254 * 4 * 100 }
local sparse = .15 * 9216 * 4096
local spmv = { op = "spmv", products = 2 * sparse, flops = 2 * sparse, bytes = 8 * sparse + 4 * (9216 + 4096) }

-- The operators of chapter 3's figures: figure, name, work, and the measured product.
local function operators()
  return {
    { "fig 3.2", "product", { nets.gemm(512, 512, 1024) }, product(512, 1024, 512) },
    { "fig 3.4", "im2col", { im2col } },
    { "fig 3.5", "pooling", { pooling }, one(c.maxpool { kernel = 3, stride = 1 }) },
    { "fig 3.6", "ReLU", { nets.each("relu", n) }, one(c.relu {}) },
    { "fig 3.9", "LeNet-5", nets.table_3_5(), "nets.lenet5" },
    { "fig 3.11", "AlexNet", nets.table_3_7(), "documents.alexnet", true },
    { "fig 3.19", "dense 4096 x 9216", { nets.dense(9216, 4096) },
      c.net { name = "dense", input = { "x", shape = { 1, 9216 } }, c.dense { "fc", out = 4096 } } },
    { "fig 3.19", "SpMV 4096 x 9216 at 15%", { spmv } },
  }
end

-- Measures the speed-ups of the thesis' own kernels over each other on this machine.
local function own_kernels(d)
  local own = steps(d)
  local loop = { "cpu", "gemm=gemm_f32_w18" }
  local scalar, dot = { "gpu", "gemm=gemm_f32_w18_scalar" }, { "gpu", "gemm=gemm_f32_w18_dot" }
  local multiply = { "product", product(512, 1024, 512), experiment = "fig 3.2",
                     edp = { [loop[2]] = 1402.763, [scalar[2]] = 2.663, [dot[2]] = .729 } }
  own:gain(multiply, "product, scalar on the GPU over the CPU's loop", 16.82, loop, scalar)
  own:gain(multiply, "product, float4 over scalar", 2, scalar, dot)
  for _, o in ipairs { { "fig 3.4", "im2col", c.im2col { kernel = 3 }, "im2col", 5, 1.792, .033 },
                       { "fig 3.5", "pooling", c.maxpool { kernel = 3, stride = 1 }, "max_pool", 12, 4.125, .012 },
                       { "fig 3.6", "ReLU", c.relu {}, "relu", 6, .034, .0003 } } do
    local kernel = o[4] .. "=" .. o[4] .. "_f32_w18"
    own:gain({ o[2], one(o[3]), experiment = o[1], edp = { [kernel] = o[6], [kernel .. "_gpu"] = o[7] } },
             o[2] .. ", the GPU over the CPU", o[5], { "cpu", kernel }, { "gpu", kernel .. "_gpu" })
  end
  -- A change of one option and the dense net to measure it on.
  local function dense(name, change)
    return { name, c.net { name = "dense", input = { "x", shape = { 1, 9216 } }, c.dense { "fc", out = 4096 } },
             experiment = "fig 3.19", change = change }
  end
  local full = dense "dense 4096 x 9216"
  local pruned = dense("SpMV 4096 x 9216 at 15%", function(net)
    net:set_weight("fc.weight", net:weight("fc.weight"):pruned(.15))
    net:encode("sparse-csr", "fc")
  end)
  for _, u in ipairs { { "gpu", "dense_f32_w18_dot", "dense_f32_w18_csr_gpu", 2.63, "GPU" },
                       { "cpu", "dense_f32_w18", "dense_f32_w18_csr", 7, "CPU" } } do
    local a, why = own:time(full, { u[1], "dense=" .. u[2] })
    local b, problem = own:time(pruned, { u[1], "dense=" .. u[3] })
    d:row { experiment = "fig 3.19", row = "SpMV over dense on the " .. u[5], quantity = "ratio", document = u[4],
            ours = a and b and a.ms / b.ms or nil, kind = document.measured, why = why or problem, on = own.on[u[1]] }
  end
  -- Adds the gain of the thesis' kernels on one net.
  local function net(name, experiment, module, number)
    own:gain({ name, module, experiment = experiment }, name .. ", the thesis' kernels on the GPU over the CPU's loops", number,
             { "cpu", "conv=conv_f32_naive", "dense=dense_f32_w18", "max_pool=max_pool_f32_w18", "relu=relu_f32_w18" },
             { "gpu", "conv=conv_f32_w18_dot", "dense=dense_f32_w18_dot", "max_pool=max_pool_f32_w18_gpu", "relu=relu_f32_w18_gpu" })
  end
  net("LeNet-5", "fig 3.9", "nets.lenet5", 11)
  if not d.options.quick then net("AlexNet", "fig 3.11", "documents.alexnet", 15) end
end

-- Adds seconds, joules, watts and EDP of each operator on the processor and the GPU of a board, and a figure for each.
local function simulate(d, spec)
  local b = board.load(spec)
  local gpu, cpu
  for _, unit in ipairs(b.units) do
    if unit.host then cpu = unit.name == "cpu" and "cpu" or cpu or unit.name else gpu = gpu or unit.name end
  end
  if not (gpu and cpu) then error(spec .. ": want a board with a device beside its processor", 0) end
  for _, o in ipairs(operators()) do
    local rows = { { "seconds" }, { "joules" }, { "watts" }, { "EDP" } }
    for i, unit in ipairs { cpu, gpu } do
      local t, e = board.run(b, o[3], { { unit = unit, share = 1 } })
      d:columns(o[1], ("%s on the %s"):format(o[2], i == 1 and "CPU" or "GPU"), spec, t, e)
      for k, value in ipairs { t, e, e / t, e * t } do rows[k][i + 1] = value end
    end
    d:bars(("%s-%s-%s"):format(o[1]:gsub("[ .]", "-"), o[2]:gsub("%W+", "-"), spec:gsub("%W+", "-")),
           ("%s: %s, %s"):format(o[1], o[2], spec), rows, { "CPU", "GPU" }, { log = "y" })
  end
end

-- Checks what chapter 3 claims in words, from the rows there are, and adds each claim.
local function chapter_3_claims(d)
  -- Claims for each row of names that its value is as the function says.
  local function better(experiment, what, names)
    for _, row in ipairs(names) do
      local value = d:value(row[1])
      d:claim(experiment, what .. ": " .. row[2], row[3](value))
    end
  end
  -- A test: the value is above x.
  local function above(x) return function(v) return v > x end end
  better("table 3.1", "product", { { "W18 table 3.1, EDP of the CPU over float4's", "the GPU's EDP is less", above(1) },
    { "W18 fig 3.2, scalar product over float4, seconds", "float4 is faster than scalar", above(1) },
    { "W18 fig 3.2, product on the CPU over scalar, seconds", "scalar on the GPU is faster than the CPU", above(1) },
    { "W18 fig 3.2, product on the CPU over the GPU, watts", "the CPU draws more", above(1) } })
  better("table 3.2", "im2col", { { "W18 table 3.2, EDP of im2col on the CPU over the GPU's", "the GPU wins", above(1) } })
  better("table 3.3", "pooling", { { "W18 table 3.3, EDP of pooling on the CPU over the GPU's", "the GPU wins", above(1) } })
  better("table 3.4", "ReLU", { { "W18 table 3.4, EDP of ReLU on the CPU over the GPU's", "the GPU wins", above(1) } })
  better("table 3.6", "LeNet-5", { { "W18 table 3.6, EDP of LeNet-5 on the CPU over the GPU's", "the GPU wins", above(1) } })
  better("table 3.8", "AlexNet", { { "W18 table 3.8, EDP of AlexNet on the CPU over the GPU's", "the GPU wins", above(1) } })
  better("fig 3.19", "SpMV", { { "W18 fig 3.19, dense over SpMV on the GPU, seconds", "faster than dense on the GPU", above(1) },
    { "W18 fig 3.19, dense over SpMV on the CPU, seconds", "faster than dense on the CPU", above(1) } })
  d:claim("fig 3.9", "LeNet-5 draws less on the GPU than AlexNet does",
          d:value "W18 fig 3.9, LeNet-5 on the GPU, watts" < .5 * d:value "W18 fig 3.11, AlexNet on the GPU, watts",
          "its 17 ms are shorter than the thesis' meter can tell")
  d:claim("fig 3.11", "AlexNet gains more by the GPU than LeNet-5",
          d:value "W18 fig 3.11, AlexNet on the CPU over the GPU, seconds" > d:value "W18 fig 3.9, LeNet-5 on the CPU over the GPU, seconds")
  d:claim("fig 3.12", "AlexNet is faster on the Snapdragon 820's GPU than on the ODROID's",
          d:value "W18 3.2, AlexNet on Snapdragon 820's GPU, seconds" < d:value "W18 fig 3.12, AlexNet on the GPU, seconds")
end

-- Figure 3.20: AlexNet on the board, with its dense layers computed by sparse matrix-vector products (SpMV).
local function sparse_alexnet(d)
  local b, dense, rows = board.load(ch3), nets.table_3_7(), {}
  local sparse_net = {}
  for i, layer in ipairs(dense) do
    sparse_net[i] = layer.op == "dense" and { op = "spmv", flops = .15 * layer.flops, products = .15 * (layer.products or layer.flops),
                                              bytes = .3 * layer.bytes } or layer
  end
  for i, unit in ipairs { "cpu", "gpu4" } do
    local t, e = board.run(b, dense, { { unit = unit, share = 1 } })
    local ts, es = board.run(b, sparse_net, { { unit = unit, share = 1 } })
    local name = i == 1 and "CPU" or "GPU"
    d:columns("fig 3.20", "AlexNet-Sparse on the " .. name, ch3, ts, es)
    d:claim("fig 3.20", ("pruned AlexNet on the %s takes less time and energy, by less than a third"):format(name),
            ts < t and es < e and ts > .67 * t)
    rows[#rows + 1] = { name .. ", s", t, ts }
    rows[#rows + 1] = { name .. ", J", e, es }
  end
  d:bars("fig-3-20", "Figure 3.20: AlexNet before and after pruning", rows, { "dense", "sparse" }, { log = "y" })
end

-- Adds the rows of chapter 3.
local function chapter_3(d)
  -- True: a row of this name belongs to chapter 3.
  local function keep(name) return not name:find "table 5%.1" and not name:find "fig 5%.4" end
  if d.boards then
    d:board(ch3, keep)
    d:board("odroid_xu3,library=ch3_scalar", keep)
    d:board("snapdragon_820", keep)
    simulate(d, ch3)
    chapter_3_claims(d)
    d:bars("fig-3-12", "Figure 3.12: AlexNet on the GPUs of two boards, seconds",
           { { "ODROID-XU3", d:value "W18 fig 3.12, AlexNet on the GPU, seconds" },
             { "Snapdragon 820", d:value "W18 3.2, AlexNet on Snapdragon 820's GPU, seconds" } })
    sparse_alexnet(d)
  end
  for _, o in ipairs(operators()) do
    if o[4] and not (o[5] and d.options.quick) then d:measured(o[1], o[2], nil, o[4]) end
  end
  if #d.devices > 0 then own_kernels(d) end
  d:cannot("fig 3.12", "AlexNet on the CPU, ODROID-XU3 over Snapdragon 820", "ratio", 4,
           "no number tells the Snapdragon's loop from its vector code, which the board describes")
end

-- ---- compression ----

-- Writes a net in the native format, with the layers of `keep` pruned by magnitude to a share and stored as CSR. Returns
-- its size in bytes and its path.
local function stored(d, module, weights, keep)
  local net <close> = c.load(module, { weights = weights })
  for layer, share in pairs(keep) do
    local weight = net:weight(layer .. ".weight")
    net:set_weight(layer .. ".weight", weight:pruned(share))
    net:encode("sparse-csr", layer)
  end
  local path = ("%s/%s%s.cnr"):format(d.options.output, module:match "[^.]+$", next(keep) and "-pruned" or "")
  net:save(path)
  return (select(2, c.exists(path))), path
end

-- Seconds to load the file, which is in the page cache, and to compute the first result: the least of three runs.
local function load_seconds(d, path)
  local least = math.huge
  for _ = 1, 3 do
    local begin = c.now()
    local net <close> = c.load(path, { device = d.devices[1] })
    net:profile { runs = 1, warm = 0 }
    least = math.min(least, c.now() - begin)
  end
  return least
end

-- Adds the memory of the pruned net, in MB: its weights as stored in memory, and its activations.
local function memory(d, pruned, why)
  local bytes
  if not why then
    bytes = d:keep("AlexNet, pruned, memory", function()
      local net <close> = c.load(pruned, { device = d.devices[1] })
      local t = net:profile { runs = 1, warm = 0 }
      return { t.weight_bytes + t.arena_bytes }
    end)[1]
  end
  d:row { experiment = "table 3.9", row = "memory, pruned", quantity = "MB", document = 90, ours = bytes and bytes * 1e-6,
          kind = document.measured, on = not why and d.devices[1] or nil, why = why or nil }
end

-- Rows of table 3.9: what is loaded of a dense and a pruned net.
local function loading(d, dense, pruned)
  local missing = not (dense and pruned) and "table 3.9's files are missing" or #d.devices == 0 and "--device none measures nothing"
  local why = missing or not pcall(c.now) and "a clock wants --trust before the script"
  local t = not why and d:keep("AlexNet, seconds of loading", function() return { load_seconds(d, dense), load_seconds(d, pruned) } end)
  local whole, small = t and t[1], t and t[2]
  d:row { experiment = "fig 3.18", row = "AlexNet, pruned, time of loading less", quantity = "%", document = 60,
          ours = small and 100 * (1 - small / whole) or nil,
          kind = document.measured, on = small and d.devices[1] .. ", files in memory" or nil, why = why or nil }
  if small then
    d:bars("fig-3-18", "Figure 3.18: AlexNet from a file in memory to its first result, seconds", { { "dense", whole }, { "pruned", small } }, nil,
           { simulated = false })
  end
  memory(d, pruned, missing)
end

-- Adds sizes of a net stored dense and pruned; returns both paths.
local function size(d, experiment, module, weights, keep, dense_row, sparse_row, ratio)
  local why = not d.options.output and "-o FOLDER is missing, where nets are written"
  local dense, sparse, dense_path, sparse_path
  if not why then
    local good, t = pcall(d.keep, d, module .. ", stored", function()
      local bytes, path = stored(d, module, weights, {})
      return { bytes, path, stored(d, module, weights, keep) }
    end)
    if good then dense, dense_path, sparse, sparse_path = table.unpack(t) else why = args.plain(t) end
  end
  -- Adds a row of this experiment, unless its files are missing.
  local function row(r, quantity, number, value)
    d:row { experiment = experiment, row = r, quantity = quantity, document = number, ours = not why and value() or nil,
            kind = document.measured, on = "this machine", why = why }
  end
  if dense_row then row("stored", "MB", dense_row, function() return dense * 1e-6 end) end
  if sparse_row then row("stored, pruned, CSR", "MB", sparse_row, function() return sparse * 1e-6 end) end
  row("stored, pruned, over dense", "ratio", ratio, function() return sparse / dense end)
  return dense_path, sparse_path
end

-- Adds the size of AlexNet in CNNdroid's format, as our exporter writes it.
local function stored_by_cnndroid(d)
  local why = not d.options.output and "-o FOLDER is missing, where nets are written" or d.options.quick and "--quick"
  local bytes = 0
  if not why then
    bytes = d:keep("AlexNet, stored in CNNdroid's format", function()
      local folder, sum = d.options.output .. "/cnndroid", 0
      c.folder(folder)
      local net <close> = c.load("nets.alexnet", { weights = "random:1" })
      net:export(folder .. "/alexnet.def")
      for _, layer in ipairs(net:layers()) do
        local there, size = c.exists(("%s/model_param_%s.msg"):format(folder, layer.name))
        sum = sum + (there and size or 0)
      end
      return { sum }
    end)[1]
  end
  d:row { experiment = "table 3.9", row = "stored, CNNdroid", quantity = "MB", document = 290, ours = not why and bytes * 1e-6 or nil,
          kind = document.measured, on = "this machine", why = why or nil }
end

-- Figures 3.14 and 3.15: accuracy of LeNet-5 with one dense layer pruned to falling shares, then with both layers pruned
-- and trained while pruned weights stay 0.
local function pruned_lenet(d)
  local data, rows = d.options.mnist and "mnist:" .. d.options.mnist, {}
  local limit = d.options.quick and 1000 or nil
  -- Adds a row of figure 3.14, in percent: the document's number and ours.
  local function row(name, number, ours)
    d:row { experiment = "fig 3.14", row = name, quantity = "%", document = number, ours = ours, kind = document.measured,
            on = data and (d.devices[1] or "cpu"), why = not data and "--mnist DIR is missing" or
            limit and ("of the first %d pictures"):format(limit) or nil }
  end
  if not data then
    for _, r in ipairs { { "LeNet-5, accuracy on MNIST", 99.1 }, { "LeNet-5 with ip2 at 5%, not trained on", 82 },
                         { "LeNet-5, pruned and trained on", 99.05 } } do row(r[1], r[2]) end
    return
  end
  local net <close> = c.load("nets.lenet5", { device = d.devices[1] })
  local name = ("LeNet-5 on %s of %s"):format(limit and "some" or "all", d.options.mnist)
  -- Right answers, in percent.
  local function right(of) return 100 * of:evaluate { data = data, limit = limit }.top1 end
  local dense = d:keep(name, function() return { right(net) } end)[1]
  row("LeNet-5, accuracy on MNIST", 99.1, dense)
  for i, layer in ipairs { "ip1", "ip2" } do
    local curve = d:keep(("%s, %s pruned"):format(name, layer), function()
      local weight, points = layer .. ".weight", {}
      for percent = 95, 5, d.options.quick and -30 or -5 do
        local small <close> = net:copy()
        small:set_weight(weight, net:weight(weight):pruned(percent / 100))
        points[#points + 1] = { percent, right(small) }
      end
      return points
    end)
    rows[i] = { curve, label = layer }
  end
  local last = { rows[1][1][#rows[1][1]][2], rows[2][1][#rows[2][1]][2] }
  row("LeNet-5 with ip2 at 5%, not trained on", 82, last[2])
  d:claim("fig 3.14", "ip1 can spare more of its weights than ip2", last[1] > last[2])
  d:figure("fig-3-14", "Figure 3.14: LeNet-5, % right with one layer pruned", plot.lines(rows, { x = "% of weights kept", y = "% right", title = "Figure 3.14: one layer pruned" }))
  if d.options.quick then return d:cannot("fig 3.14", "LeNet-5, pruned and trained on", "%", 99.05, "--quick") end
  local small, path = nil, d.options.output and d.options.output .. "/lenet5-trained.cnr"
  local after = d:keep(name .. ", pruned and trained on", function()
    small = net:copy()
    for layer, keep in pairs { ip1 = .05, ip2 = .10 } do
      small:set_weight(layer .. ".weight", net:weight(layer .. ".weight"):pruned(keep))
      small:mask(layer .. ".weight", true)
    end
    small:train { data = data, epochs = 3, rate = function(step, count) return .015 * (1 + math.cos(math.pi * step / count)) end }
    if path then small:save(path) end
    return { right(small) }
  end)[1]
  small = small or c.load(path)
  row("LeNet-5, pruned and trained on", 99.05, after)
  d:claim("fig 3.14", "pruned and trained on, LeNet-5 loses less than a point", dense - after < 1)
  for _, layer in ipairs { "ip1", "ip2" } do
    d:figure("fig-3-15-" .. layer, ("Figure 3.15: weights of %s, before and after"):format(layer),
             plot.histogram({ net:weight(layer .. ".weight"), small:weight(layer .. ".weight") }, { bins = 60, labels = { "before", "after" }, log = "y" }))
  end
  small:close()
end

-- Figure 3.21, from the phone on which CNNdroid was measured. According to Qualcomm, the board's Adreno 530 computes up to
-- 40% faster than that phone's GPU.
local function against_cnndroid(d)
  if not d.boards then return d:cannot("fig 3.21", "running, CNNdroid over W18", "ratio", 1.4, "--board none simulates nothing") end
  local on_gpu = { { unit = "gpu", share = 1 } }
  local phone = board.run(board.load "htc_one_m9", nets.alexnet(), on_gpu) / 1.4
  local ours = board.run(board.load "snapdragon_820", nets.table_3_7(), on_gpu)
  d:row { experiment = "fig 3.21", row = "running, CNNdroid over W18", quantity = "ratio", document = 1.4, ours = phone / ours,
          kind = document.predicted, on = "htc_one_m9, snapdragon_820", why = "Qualcomm: an Adreno 530 computes up to 40% faster than a 430" }
  d:bars("fig-3-21", "Figure 3.21: AlexNet on a Snapdragon 820's GPU, seconds", { { "CNNdroid", phone }, { "W18", ours } })
end

-- Adds the rows on compression, which trains or prunes nets.
local function compression(d)
  pruned_lenet(d)
  size(d, "3.3.2", "nets.lenet5", "random:1", { ip1 = .05, ip2 = .10 }, nil, nil, .1565)
  if d.options.quick then
    for _, r in ipairs { { "stored", "MB", 244 }, { "stored, pruned, CSR", "MB", 85 }, { "stored, pruned, over dense", "ratio", .348 } } do
      d:cannot("table 3.9", r[1], r[2], r[3], "--quick")
    end
    d:cannot("fig 3.18", "AlexNet, pruned, time of loading less", "%", 60, "--quick")
    d:cannot("table 3.9", "memory, pruned", "MB", 90, "--quick")
  else
    loading(d, size(d, "table 3.9", "documents.alexnet", "random:1", { fc6 = .15, fc7 = .15, fc8 = .15 }, 244, 85, .348))
  end
  d:cannot("3.3.2", "AlexNet, top-1", "%", 55.78, "wants ImageNet and a net trained on it", true)
  d:cannot("3.3.2", "AlexNet, pruned, top-1", "%", 54.80, "wants ImageNet and a net trained on it", true)
  d:cannot("fig 3.18", "AlexNet, pruned, joules of loading", "ratio", .5, "boards have no storage; cnnrun energy log tells it where a meter is")
  d:cannot("fig 3.21", "loading, CNNdroid over W18", "ratio", 25.6, "CNNdroid's program needs Android")
  against_cnndroid(d)
  stored_by_cnndroid(d)
  d:cannot("table 3.9", "memory, CNNdroid", "MB", 300, "CNNdroid's program needs Android")
end

-- ---- chapters 4 and 5, from bench/placement.lua and bench/governors.lua ----

-- Adds the rows of chapter 4, simulated on its board.
local function chapter_4(d)
  d:board(ch4, function(name) return name:find "W18 [tf]%a+ 4%." ~= nil end)
  local seconds, joules, watts = {}, {}, {}
  require "bench.placement"({}, function(r)
    local way = r.row:match "^W18 fig 4%.[456], (.*)$"
    if r.row == "W18 4.4, device set" then
      d:row { experiment = "4.4", row = "device set", quantity = "devices", document = r.document, ours = r.ours,
              kind = document.predicted, on = ch4 }
      d:claim("4.4", "the device set is both GPU clusters", r.ours == r.document)
    elseif way then
      d:row { experiment = r.row:match "fig [%d.]+", row = way, quantity = r.quantity, ours = r.ours, kind = document.silent, on = ch4 }
      local list = ({ seconds = seconds, joules = joules, watts = watts })[r.quantity]
      local layer, policy = way:match "^(.*), (.*)$"
      list[layer] = list[layer] or {}
      list[layer][policy] = r.ours
      list[#list + 1] = list[layer][2] == nil and policy == "our work" and layer or nil
    end
  end)
  for _, f in ipairs { { "4-4", "seconds", seconds }, { "4-5", "watts", watts }, { "4-6", "joules", joules } } do
    local rows, all = {}, true
    for i, layer in ipairs(f[3]) do
      rows[i] = { layer, f[3][layer]["our work"], f[3][layer].greedy }
      all = all and rows[i][3] > rows[i][2]
    end
    d:bars("fig-" .. f[1], ("Figure %s: %s of each layer"):format(f[1]:gsub("-", "."), f[2]), rows, { "our work", "greedy" })
    if f[2] ~= "seconds" then d:claim("fig " .. f[1]:gsub("-", "."), "greedy takes more " .. f[2] .. " in every layer", all) end
  end
  -- Our value of W18's row of that name.
  local function value(name) return d:value("W18 " .. name) end
  local alone, all = {}, {}
  for _, q in ipairs { "seconds", "joules", "EDP" } do
    alone[#alone + 1] = { q, value("table 4.1, CPU, " .. q), value("table 4.1, GPU, " .. q) }
    all[#all + 1] = q ~= "EDP" and { q, value("table 4.1, GPU, " .. q), value("fig 4.7, our work, " .. q), value("fig 4.7, greedy, " .. q) } or nil
  end
  all[#all + 1] = { "watts", value "table 4.1, GPU, joules" / value "table 4.1, GPU, seconds", value "fig 4.7, our work, watts", value "fig 4.7, greedy, watts" }
  d:bars("fig-4-1", "Figure 4.1: one inference on the CPU and the GPU", alone, { "CPU", "GPU" }, { log = "y" })
  d:bars("fig-4-7", "Figure 4.7: sets of devices", all, { "single GPU", "our work", "greedy" })
  d:claim("table 4.1", "the GPU's EDP is less", value "table 4.1, EDP of the CPU over the GPU's" > 1)
  d:rises("fig 4.7", "seconds", { { "greedy", value "fig 4.7, greedy, seconds" }, { "our work", value "fig 4.7, our work, seconds" },
                                  { "single GPU", value "table 4.1, GPU, seconds" } })
  d:rises("fig 4.7", "joules", { { "single GPU", value "table 4.1, GPU, joules" }, { "our work", value "fig 4.7, our work, joules" },
                                 { "greedy", value "fig 4.7, greedy, joules" } })
  d:claim("fig 4.7", "our work's EDP is less than greedy's", value "fig 4.7, EDP of greedy over that of our work" > 1)
end

-- Adds the rows of chapter 5, from the benchmark of governors.
local function chapter_5(d)
  local by, steps = {}, {}
  require "bench.governors"({ "--tables", d.options.quick and "--quick" or nil }, function(r)
    local experiment, rest = r.row:match "^([tf]%a+ [%d.]+), (.*)$"
    local kind = ({ fitted = document.fitted, predicted = document.predicted, simulated = document.predicted, measured = document.measured })[r.kind]
    if not experiment then experiment, rest = "table 5.2", r.row end
    local told = experiment ~= "fig 5.8" and (experiment ~= "table 5.2" or rest == "default" or rest == "dtw")
    d:row { experiment = experiment, row = rest, quantity = r.quantity, document = told and r.document or nil, ours = r.ours,
            kind = kind, on = "scene monitor" }
    if experiment == "table 5.1" then by[rest .. " " .. r.quantity] = r.ours end
    if experiment == "fig 5.4" then
      local mhz = tonumber(rest:match "%d+")
      steps[mhz] = steps[mhz] or { mhz }
      steps[mhz][r.quantity] = r.ours
    end
    if r.row:find "^fig 5.8" then d:claim("fig 5.8", rest .. ": most decisions are right", r.ours >= .9) end
    if r.quantity == "largest distance" then by.far = r.ours elseif r.quantity == "least distance" then by.near = r.ours end
  end)
  local names = { lowest = "lowest fixed (177)", ["480"] = "fixed 480", highest = "highest fixed (543)", default = "default governor" }
  local close = "the thesis has them within 3% of one another, which is less than the board's error"
  -- Claims that the quantity rises in this order of the policies.
  local function order(quantity, ...)
    local list = {}
    for i, name in ipairs { ... } do list[i] = { name, by[names[name] .. " " .. quantity] } end
    d:rises("table 5.1", quantity, list, close)
  end
  order("seconds", "highest", "480", "default", "lowest")
  order("joules", "lowest", "480", "default", "highest")
  order("watts", "lowest", "default", "480", "highest")
  for _, name in ipairs { "480", "default", "highest" } do order("EDP", name, "lowest") end
  d:claim("fig 5.7", "a threshold parts loops of inference from other scenes", by.far < by.near)
  local rows, falls = {}, true
  for _, mhz in ipairs { 177, 266, 350, 420, 480, 543 } do
    local s = steps[mhz]
    falls = falls and (#rows == 0 or s.seconds < rows[#rows][2])
    rows[#rows + 1] = { tostring(mhz), s.seconds, s.watts, s.joules }
  end
  d:claim("fig 5.4", "seconds fall with the frequency", falls)
  d:claim("fig 5.4", "watts at 266 and 350 MHz are the same", math.abs(rows[2][3] / rows[3][3] - 1) < .01)
  d:claim("fig 5.4", "joules rise much from 177 to 266 MHz", rows[2][4] > 1.1 * rows[1][4])
  d:bars("fig-5-4", "Figure 5.4: the monitor at each frequency", rows, { "seconds", "watts", "joules" })
end

-- Figures 5.3, 5.7 and 5.8, from simulated scenes. Distances of loads (dynamic time warping) are computed without a band,
-- as in the thesis. Returns the readings of the scene under the policy.
local function loads_of(policy, scene, seconds) return c.govern { policy = policy, scene = scene, seconds = seconds, ticks = true }.ticks end

-- Adds the curves of figure 5.3: load and frequency over time.
local function curves_5_3(d)
  local load, frequency = {}, {}
  for i, tick in ipairs(loads_of("default", "monitor", 12)) do
    load[i], frequency[i] = { i * .1, 100 * (tick.load or 0) }, { i * .1, tick.hz * 1e-6 }
  end
  d:figure("fig-5-3", "Figure 5.3: load and frequency under the default governor",
           plot.lines({ { load, label = "load, %" }, { frequency, label = "MHz" } }, { x = "s", simulated = true, markers = false, title = "Figure 5.3: default governor" }))
end

-- Adds the distances of figure 5.7, between loads of scenes.
local function distances_5_7(d)
  -- The loads of a scene that are compared, in percent.
  local function window(scene)
    local ticks, loads = loads_of("default", scene, 10), {}
    for k = 1, 40 do loads[k] = 100 * (ticks[k + 5].load or 0) end
    return loads
  end
  local template, series, free, banded = window "loop,seed=1004", {}, {}, {}
  for s, kind in ipairs { "loop", "mail", "game2d", "game3d", "video", "idle" } do
    local points = {}
    for i = 1, d.options.quick and 3 or 10 do
      local loads = window(kind == "loop" and "loop,seed=" .. i or ("other,kind=%s,seed=%d"):format(kind, i))
      local distance = c.dtw(template, loads, {})
      points[i] = { i, distance }
      local side = kind == "loop" and 1 or -1
      free[side] = math.max(free[side] or -math.huge, side * distance)
      banded[side] = math.max(banded[side] or -math.huge, side * c.dtw(template, loads, { band = .25 }))
    end
    series[s] = { points, label = kind }
  end
  d:figure("fig-5-7", "Figure 5.7: distances from a loop's template, without a band", plot.scatter(series, { x = "scene", y = "distance", whole = "x", simulated = true, title = "Figure 5.7: distances" }))
  d:claim("fig 5.7", "a threshold parts the scenes without a band, as in the thesis", free[1] < -free[-1])
  d:claim("fig 5.7", "and with the band of 25% that the policy has", banded[1] < -banded[-1])
end

-- Adds the curves of figure 5.8: when the governor switches.
local function switching_5_8(d)
  local series = {}
  for i, scene in ipairs { "other,kind=mail,seed=1", "other,kind=game3d,seed=1", "loop,seed=1" } do
    local points = {}
    for k, tick in ipairs(loads_of("dtw", scene, 30)) do points[k] = { k * .1, tick.hz * 1e-6 } end
    series[i] = { points, label = scene:match "kind=(%w+)" or "inference" }
  end
  d:figure("fig-5-8", "Figure 5.8: frequency by scene under the DTW policy, MHz", plot.lines(series, { x = "s", y = "MHz", simulated = true, markers = false, title = "Figure 5.8: DTW policy" }))
end

return document.main({ name = "w18",
  about = "The tables and figures of Hu Wang's thesis (2018) beside a simulated ODROID-XU3 and this machine.",
  flags = { { "--mnist DIR", "the files of MNIST, for LeNet-5's accuracy" } } }, function(d)
  chapter_3(d)
  compression(d)
  if d.boards then
    chapter_4(d)
    chapter_5(d)
    curves_5_3(d)
    distances_5_7(d)
    switching_5_8(d)
    d:board(ch4, function(name) return name == "W18 fig 5.4, watts at 266 MHz over 350 MHz" end)
  end
  if d.other then simulate(d, d.other) end
end)
