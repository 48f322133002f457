-- Compares chapter 4 of Hu Wang's thesis with the simulated ODROID-XU3: table 4.1, the device set, and
-- figures 4.4 to 4.7, some of whose numbers are in the text. "fitted": the board's parameters were
-- fitted to the row. "predicted": no parameter depends on the row. "measured": the net was run on the
-- simulator, with --board.
--
--   cnnrun scripts/bench/placement.lua [--json] [-o FOLDER]
--   cnnrun --board odroid_xu3,dry scripts/bench/placement.lua --net scripts/nets/yolo_v1_tiny.lua
local c = require "cnnrun"
local args = require "lib.args"
local board = require "lib.board"
local fit = require "lib.fit"
local json = require "lib.json"
local nets = require "boards.nets"
local placement = require "lib.placement"
local plot = require "lib.plot"
local recipes = require "boards.recipes"
local documents = require "boards.rows"

local xu3 = board.load "odroid_xu3"
local devices = { "gpu4", "gpu2", "cpu" }

-- Returns a policy's answer for the net, as shares of units, and the policy's notes.
local function ask(name, net)
  local rows, seen = placement.view(xu3, net, devices)
  local answer, steps = require("place." .. name).place(rows, seen)
  local shares = {}
  for _, unit in ipairs(devices) do
    local share = type(answer[net[1].name]) == "table" and answer[net[1].name][unit] or answer[net[1].name] == unit and 1
    if share then shares[#shares + 1] = { unit = unit, share = share } end
  end
  return shares, steps
end

-- The document's number of this name, or nil.
local function document(name)
  for _, r in ipairs(documents) do
    if r.name == name then return r.value end
  end
end

-- The benchmark: figures of chapter 4 against ours.
local function work(options, take)
  local net, rows = nets.chain(nets.table_4_2()), {}
  -- Adds a row: a number of the document's and ours.
  local function row(name, quantity, written, ours, kind)
    local number = type(written) == "number" and type(ours) == "number"
    rows[#rows + 1] = { row = name, quantity = quantity, document = written, ours = ours,
                        error = number and ours / written - 1 or nil, kind = kind }
  end
  local recipe
  for _, entry in ipairs(recipes) do
    if entry.name == "odroid_xu3" then recipe = entry.recipe end
  end
  local kinds = {}
  for _, judged in ipairs((fit.judge(recipe, documents))) do kinds[judged.row] = judged.kind end
  -- Adds a row that compares `ours` with the document's number of that name.
  local function documented(name, quantity, ours) row(name, quantity, document(name), ours, kinds[name]) end

  -- table 4.1
  for i, unit in ipairs { "gpu4", "cpu" } do
    local t, e = board.run(xu3, net, { { unit = unit, share = 1 } })
    local name = "W18 table 4.1, " .. (i == 1 and "GPU" or "CPU")
    documented(name .. ", seconds", "seconds", t)
    documented(name .. ", joules", "joules", e)
    row(name .. ", EDP", "joule seconds", i == 1 and 2.81 or 622.31, t * e, "fitted")
  end

  -- the set, and figure 4.7
  local ways = { { name = "single GPU", shares = { { unit = "gpu4", share = 1 } } },
                 { name = "our work", shares = ask("edp_set", net) }, { name = "greedy", shares = ask("greedy", net) } }
  local words = {}
  for i, s in ipairs(ways[2].shares) do words[i] = s.unit end
  row("W18 4.4, device set", "devices", "gpu4 gpu2", table.concat(words, " "), "predicted")
  for _, way in ipairs(ways) do way.t, way.e, way.each = board.run(xu3, net, way.shares) end
  local ours, greedy = ways[2], ways[3]
  for _, way in ipairs { ours, greedy } do
    local name = "W18 fig 4.7, " .. way.name
    documented(name .. ", seconds", "seconds", way.t)
    documented(name .. ", joules", "joules", way.e)
    if way == greedy then documented(name .. ", watts", "watts", way.e / way.t)
    else row(name .. ", watts", "watts", 1.22, way.e / way.t, "fitted") end
  end
  documented("W18 fig 4.7, EDP of greedy over that of our work", "ratio", greedy.t * greedy.e / (ours.t * ours.e))
  row("W18 4.4, time of our work over greedy's, less 1 (its numbers make 0.103)", "ratio", .097, ours.t / greedy.t - 1, "predicted")

  -- figures 4.4 to 4.6, by layer; the text has no numbers for them
  local figures = { { "4.4", "seconds", {} }, { "4.5", "watts", {} }, { "4.6", "joules", {} } }
  for i, layer in ipairs(net) do
    if layer.op ~= "max_pool" then
      for _, f in ipairs(figures) do
        -- The quantity of layer i in this way of placing.
        local function of(way)
          local l = way.each[i]
          return f[2] == "seconds" and l.seconds or f[2] == "joules" and l.joules or l.joules / l.seconds
        end
        f[3][#f[3] + 1] = { layer.name, of(ours), of(greedy) }
        row("W18 fig " .. f[1] .. ", " .. layer.name .. ", our work", f[2], nil, of(ours), "predicted")
        row("W18 fig " .. f[1] .. ", " .. layer.name .. ", greedy", f[2], nil, of(greedy), "predicted")
      end
    end
  end

  -- Runs the net on the simulator, if --net is given.
  if options.net then
    for _, way in ipairs(ways) do
      local policy_options, names = {}, {}
      for i, unit in ipairs(devices) do
        local t, e = board.run(xu3, net, { { unit = unit, share = 1 } })
        names[i] = "sim:" .. unit
        policy_options["seconds@" .. names[i]], policy_options["joules@" .. names[i]] = t, e
      end
      local single = #way.shares == 1
      local model <close> = c.load(options.net, { weights = options.weights or "random:1", devices = names, device = names[1],
        policy = not single and (way == ours and "edp_set" or "greedy") or nil,
        policy_options = not single and policy_options or nil })
      local profile = model:profile { runs = 2, energy = true }
      local told = profile.energy or {}
      local name = way == ways[1] and "W18 table 4.1, GPU" or "W18 fig 4.7, " .. way.name
      row(name .. ", seconds, by the simulator", "seconds", document(name .. ", seconds"), profile.ms_median * 1e-3, "measured")
      if told.joules then
        row(name .. ", joules, by the simulator", "joules", document(name .. ", joules"), told.joules, "measured")
      end
    end
  end

  for _, r in ipairs(rows) do
    if take then take(r)
    elseif options.json then print(json.encode(r))
    else
      -- v as text with four digits; nil: "-".
      local function shown(v) return type(v) == "number" and ("%.4g"):format(v) or v or "-" end
      print(("%-9s %-74s %10s %10s %s"):format(r.kind, r.row, shown(r.document), shown(r.ours),
                                              r.error and ("%+.1f%%"):format(r.error * 100) or ""))
    end
  end
  if options.output then
    c.folder(options.output)
    local labels = { "our work", "greedy" }
    for _, f in ipairs(figures) do
      plot.bars(f[3], { title = "Figure " .. f[1] .. ": " .. f[2] .. " of each layer", labels = labels })
        :save(options.output .. "/fig-" .. f[1]:gsub("%.", "-") .. ".svg")
    end
    local list = {}
    for i, way in ipairs(ways) do list[i] = { way.name, way.t, way.e, way.e / way.t, way.t * way.e } end
    plot.bars(list, { title = "Figure 4.7: the net by each strategy", labels = { "seconds", "joules", "watts", "EDP" } })
      :save(options.output .. "/fig-4-7.svg")
  end
end

-- take (or nil): a function that is called with each row instead of printing it.
return function(words, take)
  return args.main(words, { usage = "placement.lua [options]",
    about = "Chapter 4 of W18 beside the simulated ODROID-XU3.",
    flags = { { "--json", "an object a row" }, { "-o, --output FOLDER", "where figures 4.4 to 4.7 go, as SVG" },
              { "--net FILE", "by the simulator too (with --board odroid_xu3,dry): yolo_v1_tiny.lua" },
              { "--weights FILE", "of it (random:1)" } } }, function(options) return work(options, take) end)
end
