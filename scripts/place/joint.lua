-- Chooses devices, shares and frequencies for a net together, for the least EDP on a board. Each tried
-- set of frequencies gets a placement of its own, since layers may be better on another unit then. The
-- search starts from separate choices (a placement at the highest frequencies, then frequencies for this
-- placement), so its result is never worse than theirs.
--
--   cnnrun scripts/place/joint.lua nets.lenet5 --on drawn,seed=3 -o FOLDER
--
-- FOLDER gets place.lua, a policy for --policy, and hold.lua, a governor for --governor that holds the
-- frequencies.
local c = require "cnnrun"
local args = require "lib.args"
local best = require "place.best"
local board = require "lib.board"
local json = require "lib.json"
local placement = require "lib.placement"

-- ---- the cost of a choice: { answer, at = { step of each clock }, edp, seconds, joules } ----

-- Sets the board's clocks to these steps, and the machine by them.
local function set_clocks(b, at)
  for i, clock in ipairs(b.clocks) do clock.at = clock.steps[at[i]].mhz end
  board.machine(b, true)
end

-- Names of the units that are not part of another.
local function units_of(b)
  local part, names = {}, {}
  for _, unit in ipairs(b.units) do
    for _, member in ipairs(unit.members or {}) do part[member] = true end
  end
  for _, unit in ipairs(b.units) do
    if not part[unit.name] then names[#names + 1] = unit.name end
  end
  return names
end

-- Simulates the placement `answer` at these steps of the clocks, which it sets; returns a choice.
local function judged(p, answer, at)
  set_clocks(p.board, at)
  local edp, seconds, joules = placement.judge(p.board, p.net, answer, p.units[1])
  return { answer = answer, at = table.move(at, 1, #at, 1, {}), edp = edp, seconds = seconds, joules = joules }
end

-- The best placement found at these steps of the clocks, as a choice, which is kept for later
-- calls.
local function placed(p, at)
  local key = table.concat(at, " ")
  if not p.known[key] then
    set_clocks(p.board, at)
    local rows, seen = placement.view(p.board, p.net, p.units)
    local found = judged(p, best.place(rows, seen), at)
    for _, unit in ipairs(p.units) do
      local alone = judged(p, setmetatable({}, { __index = function() return unit end }), at)
      if alone.edp < found.edp then
        alone.answer = {}
        for _, layer in ipairs(p.net) do alone.answer[layer.name] = unit end
        found = alone
      end
    end
    p.known[key] = found
  end
  return p.known[key]
end

-- Changes the step of one clock at a time as long as that lowers the EDP; try(at) returns a choice.
local function descend(p, from, try)
  local choice, better = from, true
  while better do
    better = false
    for i, clock in ipairs(p.board.clocks) do
      for step = 1, #clock.steps do
        local at = table.move(choice.at, 1, #choice.at, 1, {})
        at[i] = step
        local other = try(at)
        if other.edp < choice.edp * (1 - 1e-9) then choice, better = other, true end
      end
    end
  end
  return choice
end

-- Tries all combinations of steps: the best result that this search of placements can have.
local function exhaustive(p)
  local at, least = {}, nil
  -- Tries all steps of the clocks from i on.
  local function each(i)
    if i > #p.board.clocks then
      local choice = placed(p, at)
      if not least or choice.edp < least.edp then least = choice end
      return
    end
    for step = 1, #p.board.clocks[i].steps do
      at[i] = step
      each(i + 1)
    end
  end
  each(1)
  return least
end

-- Returns the problem and the choices to compare: place, place_then_govern, joint and (if with_all) exhaustive.
local function choose(spec, net, with_all)
  local b = board.load(spec)
  local p = { board = b, net = net, units = units_of(b), known = {} }
  local highest, lowest = {}, {}
  for i, clock in ipairs(b.clocks) do highest[i], lowest[i] = #clock.steps, 1 end
  local first = placed(p, highest)
  local after = descend(p, first, function(at) return judged(p, first.answer, at) end)
  local result = after
  for _, start in ipairs { placed(p, after.at), first, placed(p, lowest) } do
    local found = descend(p, start, function(at) return placed(p, at) end)
    if found.edp < result.edp then result = found end
  end
  return p, { place = first, place_then_govern = after, joint = result, exhaustive = with_all and exhaustive(p) or nil }
end

-- ---- files ----

-- A value, or a table of values, as Lua text.
local function literal(value)
  if type(value) ~= "table" then return type(value) == "string" and ("%q"):format(value) or ("%.17g"):format(value) end
  local parts = {}
  for key, inner in pairs(value) do parts[#parts + 1] = ("[%q] = %s"):format(key, literal(inner)) end
  table.sort(parts)
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- The answer with names of devices instead of names of units.
local function devices(answer)
  if type(answer) == "string" or answer.device then return "sim:" .. (answer.device or answer) end
  local out = {}
  for name, share in pairs(answer) do out[name == "axis" and name or "sim:" .. name] = share end
  return out
end

-- Writes the choice's placement and clocks as scripts into the folder.
local function write(folder, p, choice)
  local answer, hold = {}, {}
  for _, layer in ipairs(p.net) do answer[layer.name] = devices(choice.answer[layer.name] or p.units[1]) end
  for i, clock in ipairs(p.board.clocks) do hold[clock.name] = clock.steps[choice.at[i]].mhz * 1e6 end
  c.folder(folder)
  c.write(folder .. "/place.lua", ("-- Chosen by place/joint.lua for %s.\nlocal answer = %s\nreturn { place = function() return answer end }\n")
    :format(p.board.name, literal(answer)))
  c.write(folder .. "/hold.lua", ("-- Holds what place/joint.lua chose for %s.\nlocal hold = %s\nreturn { step = function() return hold end }\n")
    :format(p.board.name, literal(hold)))
end

-- Prints the choices, as a table or with --json.
local function tell(options, p, choices)
  for _, name in ipairs { "place", "place_then_govern", "joint", "exhaustive" } do
    local choice = choices[name]
    if choice then
      local mhz = {}
      for i, clock in ipairs(p.board.clocks) do mhz[clock.name] = clock.steps[choice.at[i]].mhz end
      if options.json then
        print(json.encode { choice = name, edp = choice.edp, seconds = choice.seconds, joules = choice.joules, mhz = mhz })
      else
        local list = {}
        for i, clock in ipairs(p.board.clocks) do list[i] = ("%s %g"):format(clock.name, mhz[clock.name]) end
        print(("%-18s %10.4g s %10.4g J %12.4g J s  %s MHz"):format(name, choice.seconds, choice.joules, choice.edp, table.concat(list, ", ")))
      end
    end
  end
end

return function(words)
  return args.main(words, { usage = "scripts/place/joint.lua NET --on BOARD [-o FOLDER]", least = 1,
    about = "Chooses devices, shares and frequencies of a net together for the least EDP, and compares with separate choices.",
    flags = { { "--on BOARD", "a board by its name: drawn,seed=3 (odroid_xu3)" },
              { "--exhaustive", "try all frequencies of all clocks, too" },
              { "-o, --output FOLDER", "where place.lua and hold.lua go" }, { "--json", "one object for each choice" } } },
    function(options)
      local p, choices = choose(options.on or "odroid_xu3", placement.layers(options[1]), options.exhaustive)
      tell(options, p, choices)
      if options.output then write(options.output, p, choices.joint) end
    end)
end
