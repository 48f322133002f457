-- Pruning by a schedule: looks how much each layer can lose, cuts and trains in turns, tests once, reports.
--
--   return require "lib.prune".schedule { layers = { ip1 = 0.05 }, train = { epochs = 1 } }
--
-- scripts/prune/README.md tells what a schedule may say. Each thing that was worked out is kept in the
-- folder as soon as it is known, so that whoever was stopped or killed goes on where it was.
local c = require "cnnrun"
local args = require "lib.args"
local csv = require "lib.csv"
local json = require "lib.json"
local pruning = require "lib.pruning"
local report = require "lib.prune_report"

---Pruning by a schedule.
---@class lib.prune
local M = {}

-- ---- what is known so far ----

local Work = {}
Work.__index = Work

function Work:path(name) return self.folder .. "/" .. name end

-- What `find` gives, asked for once for this pruning, whoever asks when.
function Work:once(key, find)
  local known = self.state.known[key]
  if known == nil then
    known = find()
    self.state.known[key] = known
    json.write(self:path("state.json"), self.state)
  end
  return known
end

local function plain(v) -- as JSON can have it
  if type(v) == "function" then return "a function" end
  if type(v) ~= "table" then return v end
  local copy = {}
  for key, value in pairs(v) do
    copy[math.type(key) and v[1] == nil and tostring(key) or key] = plain(value)
  end
  return copy
end

-- What the folder holds of this pruning, and not of another one.
function Work:open_state(restart)
  local path, run = self:path("state.json"), 1
  local identity = json.encode { schedule = plain(self.schedule), data = self.options.data, base = self.base,
                                 seed = self.seed, limit = self.options.limit or 0,
                                 validation = self.validation, validation_seed = self.validation_seed }
  if c.exists(path) == "file" then
    local found = json.read(path)
    run = (found.run or 0) + 1
    if not restart and found.identity == identity then
      self.state = found
      return
    end
    if not restart then
      error(path .. ": is the work of another pruning (net, data, schedule or options differ); " ..
            "--restart begins anew, --folder names another place", 0)
    end
  end
  self.state = { identity = identity, run = run, known = {} }
  json.write(path, self.state)
end

function Work:say(format, ...)
  if not self.options.quiet and not self.options.json then
    print((format:format(...):gsub("(%d),(%d)", "%1.%2")))
  end
end

function Work:tell(row)
  if self.options.tell then self.options.tell(json.encode(row))
  elseif self.options.json then print(json.encode(row)) end
end

-- ---- judging and training ----

function Work:judge(net)
  local r = net:evaluate { data = self.options.data, split = "train", limit = self.options.limit, batch = 64,
                           validation = self.validation, validation_seed = self.validation_seed }
  return { top1 = r.top1, loss = r.loss, n = r.n }
end

-- Trains with masks held; checkpoints have names of their own, so that none is taken for another's.
function Work:train(net, own, name, on_epoch)
  local options = { data = self.options.data, limit = self.options.limit, validation = self.validation,
                    validation_seed = self.validation_seed, seed = self.seed, policy = "fixed", epochs = 1,
                    rate = 0.01, on_epoch = on_epoch,
                    checkpoint = self:path(("%s-%d.ckpt"):format(name, self.state.run)) }
  for key, value in pairs(own) do options[key] = value end
  return net:train(options)
end

-- As the command line has it: devices, kernels, limits. Its weights are of the net as it was.
local function loaded(path, options)
  local how = {}
  for key, value in pairs(options.load) do how[key] = value end
  how.weights = path == options[1] and how.weights or nil
  return c.load(path, how)
end

function Work:load(file)
  local net = loaded(self:path(file), self.options)
  if (self.schedule.unit or "element") ~= "channel" then
    for _, layer in ipairs(self.layers) do net:mask(layer.weight, true) end
  end
  return net
end

-- ---- how much each layer can lose ----

local function scan_shares()
  local list = {}
  for keep = 95, 5, -5 do list[#list + 1] = keep / 100 end
  return list
end

-- One layer at a time, nothing trained: what the net is then right on.
function Work:scan(net)
  local rows, shares = {}, self.schedule.scan and self.schedule.scan.shares or scan_shares()
  for _, layer in ipairs(self.layers) do
    local score = self.schedule.criterion == "saliency" and self:scores(net)[layer.weight] or nil
    for _, keep in ipairs(shares) do
      local r = self:once(("scan %s %g"):format(layer.name, keep), function()
        local cut <close> = pruning.cut(net, layer, keep, self.schedule, score)
        return self:judge(cut)
      end)
      rows[#rows + 1] = { layer = layer.name, keep = keep, accuracy = r.top1, loss = r.loss }
      self:tell { scan = layer.name, keep = keep, accuracy = r.top1, loss = r.loss }
    end
    self:say("%-16s right on %.2f%% with %g kept", layer.name, 100 * rows[#rows].accuracy, rows[#rows].keep)
  end
  csv.write(self:path("scan.csv"), { "layer", "keep", "accuracy", "loss" }, rows)
  return rows
end

-- The least share at which a layer alone still loses no more than that, for those that are to be found.
function Work:choose(rows)
  local points = self.schedule.scan and self.schedule.scan.points or 1
  for _, layer in ipairs(self.layers) do
    if layer.keep == "found" then
      layer.keep = 1
      for _, row in ipairs(rows) do
        local enough = row.accuracy >= self.base.top1 - points / 100 - 1e-12
        if row.layer == layer.name and enough then layer.keep = math.min(layer.keep, row.keep) end
      end
    end
  end
end

-- ---- cutting and training in turns ----

function Work:scores(net)
  if self.schedule.criterion == "saliency" and not self.samples then
    self.samples = c.samples(self.options.data, "train")
  end
  return pruning.scores(net, self.layers, self.schedule, self.samples)
end

-- The shares at each step: of each layer, or of all of them together.
function Work:plan()
  local plan, longest = {}, 0
  if self.schedule.keep and not self.schedule.layers then
    plan.all = pruning.rates(self.schedule, self.schedule.keep)
    longest = #plan.all
  else
    for _, layer in ipairs(self.layers) do
      plan[layer.name] = pruning.rates(self.schedule, layer.keep)
      longest = math.max(longest, #plan[layer.name])
    end
  end
  return plan, longest
end

function Work:cut(net, plan, step)
  local together = plan.all and plan.all[step]
  local measured = together or self.schedule.criterion == "saliency"
  local scores = measured and self:scores(net) or {}
  local shares = together and pruning.global(self.layers, scores, together, self.schedule.least or 0.01)
  local current = net
  for _, layer in ipairs(self.layers) do
    local list = plan[layer.name]
    local keep = shares and shares[layer.name] or list and list[math.min(step, #list)]
    if keep and keep < 1 then
      local cut = pruning.cut(current, layer, keep, self.schedule, scores[layer.weight])
      if current ~= net then current:close() end
      current = cut
    end
  end
  return current ~= net and current or net:copy()
end

function Work:kept(net)
  local n, all = 0, 0
  for _, layer in ipairs(pruning.able(net)) do n = n + net:weight(layer.weight):density() * layer.n end
  for _, layer in ipairs(self.all) do all = all + layer.n end
  return n / all
end

-- The last net that is right often enough, and a row for each step that was taken.
function Work:steps(net)
  local plan, n = self:plan()
  local rows, file, stop = {}, nil, self.schedule.stop
  for step = 1, n do
    local slot = ("step-%d.cnr"):format(step % 2) -- the one before stays until this one is known
    local row = self:once("step " .. step, function()
      local from = file and self:load(file) or net
      local cut <close> = self:cut(from, plan, step)
      if file then from:close() end
      local before = self:judge(cut)
      self:train(cut, self.schedule.train or {}, "step-" .. step)
      local after = self:judge(cut)
      cut:save(self:path(slot))
      return { step = step, kept = self:kept(cut), cut = before.top1, accuracy = after.top1,
               loss = after.loss }
    end)
    rows[step] = row
    self:say("step %d of %d  %.2f%% kept  right on %.2f%%, %.2f%% before training", step, n, 100 * row.kept,
             100 * row.accuracy, 100 * row.cut)
    self:tell(row)
    if stop and row.accuracy < self.base.top1 - stop / 100 - 1e-12 then
      self:say("stopped: more than %g points were lost", stop)
      self.stopped = step
      break
    end
    file = slot
  end
  csv.write(self:path("steps.csv"), { "step", "kept", "cut", "accuracy", "loss" }, rows)
  if not file then error("the first step loses more than the schedule allows: nothing is kept", 0) end
  return file, rows
end

function Work:finish(file)
  local own = self.schedule.finish
  if not own then return file end
  local row = self:once("finish", function()
    local net <close> = self:load(file)
    self:train(net, own, "finish")
    net:save(self:path("finished.cnr"))
    return self:judge(net)
  end)
  self:say("trained on: right on %.2f%%", 100 * row.top1)
  self:tell { finish = true, accuracy = row.top1, loss = row.loss }
  return "finished.cnr"
end

-- ---- what it came to ----

function Work:measure(net, file)
  local p = net:profile { runs = 30, energy = true }
  local load
  for _ = 1, 4 do -- the first finds files and code cold; of the others the least
    local one = c.energy(function()
      local fresh <close> = loaded(file, self.options)
      fresh:time(1)
    end)
    if not load or (one.seconds or 0) < (load.seconds or math.huge) then load = one end
  end
  return { ms = p.ms_median, load_ms = load.seconds and 1000 * load.seconds,
           load_joules = load.joules, arena_bytes = p.arena_bytes, weight_bytes = p.weight_bytes,
           joules = p.energy and p.energy.joules or nil, energy_source = p.energy and p.energy.source or nil,
           simulated = p.simulated }
end

-- Of the test split once, when nothing is left to be decided: both nets.
function Work:test(net)
  local spec = self.options.eval or self.options.data
  if spec == "" then return nil end
  local r = net:evaluate { data = spec, split = "eval", batch = 64 }
  return { top1 = r.top1, n = r.n }
end

-- Weights in other forms, by layer, and what a file of it takes.
function Work:written(net, path)
  net:save(path)
  local _, bytes = c.exists(path)
  return bytes
end

function Work:results(dense, file)
  local net <close> = self:load(file)
  local out = self:path("pruned.cnr")
  local result = { output = self.options.output, kept = self:kept(net), steps = self.taken,
                   stopped = self.stopped, bytes = {}, validated = self.base.n,
                   validation = { self.base.top1, self:judge(net).top1 } }
  result.bytes[1] = self:written(dense, self:path("dense.cnr"))
  local forms = self.schedule.encode and { { "*", self.schedule.encode } } or {}
  if type(self.schedule.encode) == "table" then forms = self.schedule.encode end
  local packed <close> = net:copy()
  for _, form in ipairs(forms) do
    local good, why = pcall(packed.encode, packed, form[2], form[1] ~= "*" and form[1] or nil)
    if not good then c.note("not encoded: " .. args.plain(why)) end -- what was trained is not lost by that
  end
  result.bytes[2] = self:written(packed, out)
  if #forms > 0 then result.encoded = self:judge(packed).top1 end
  local test = self:once("test", function()
    local before, after = self:test(dense), self:test(packed)
    return { before = before, after = after }
  end)
  if test.after then
    result.test, result.tested = { test.before.top1, test.after.top1 }, test.after.n
  end
  result.dense, result.pruned = self:measure(dense, self:path("dense.cnr")), self:measure(packed, out)
  self:written(packed, self.options.output)
  return result, net:copy()
end

local function number(x) return x and json.encode(x, 4) or "-" end

function Work:tell_results(r)
  self:tell { output = r.output, folder = self.folder, kept = r.kept, bytes = r.bytes[2],
              bytes_dense = r.bytes[1],
              validation = r.encoded or r.validation[2], validation_dense = r.validation[1],
              validated = r.validated, test = r.test and r.test[2], test_dense = r.test and r.test[1],
              tested = r.tested or 0, ms = r.pruned.ms, ms_dense = r.dense.ms,
              load_ms = r.pruned.load_ms, load_ms_dense = r.dense.load_ms,
              arena_bytes = r.pruned.arena_bytes, arena_bytes_dense = r.dense.arena_bytes,
              joules = r.pruned.joules, joules_dense = r.dense.joules, steps = r.steps,
              stopped = r.stopped or json.null, report = self:path("report.html") }
  self:say("%s: %.2f%% of the weights kept, %d bytes of %d (%.2f%%)", r.output, 100 * r.kept, r.bytes[2],
           r.bytes[1], 100 * r.bytes[2] / r.bytes[1])
  self:say("right on %.2f%% of %d for validation (%.2f%% dense)%s", 100 * (r.encoded or r.validation[2]),
           r.validated, 100 * r.validation[1], r.test and (", %.2f%% of %d for the test (%.2f%% dense)"):format(
           100 * r.test[2], r.tested, 100 * r.test[1]) or "")
  self:say("ms a run %s (%s dense), arena %s bytes (%s dense), report %s", number(r.pruned.ms),
           number(r.dense.ms), number(r.pruned.arena_bytes), number(r.dense.arena_bytes),
           self:path("report.html"))
  if r.bytes[2] >= r.bytes[1] then
    self:say("its zeros take bytes, too, until cnnrun convert %s -o FILE --encode sparse-csr", r.output)
  end
end

-- ---- all of it ----

local function run(schedule, options)
  pruning.check(schedule)
  c.folder(options.folder)
  c.output(options.output, options[1])
  local net = loaded(options[1], options)
  local work = setmetatable({ schedule = schedule, options = options, folder = options.folder,
                              seed = options.seed or 1, validation = options.validation or 0.1,
                              validation_seed = options.validation_seed or 1 }, Work)
  local test = options.eval or options.data
  if test ~= "" then c.samples(test, "eval") end -- a test that is not there is told now, not behind the work
  work.all = pruning.able(net)
  local left
  work.layers, left = pruning.layers(net, schedule)
  work.base = work:judge(net)
  work:open_state(options.restart)
  work:say("%s: right on %.2f%% of %d for validation", options[1], 100 * work.base.top1, work.base.n)
  for _, why in ipairs(left) do work:say("left as it is: %s", why) end
  local scanned, open = {}, false
  for _, layer in ipairs(work.layers) do open = open or layer.keep == "found" end
  if not schedule.keep and open and (options.no_scan or schedule.scan == false) then
    error("the schedule leaves shares to be found: they want the scan", 0)
  end
  if not (options.no_scan or schedule.scan == false) then scanned = work:scan(net) end
  work:choose(scanned)
  local file, rows = work:steps(net)
  work.taken = #rows
  file = work:finish(file)
  local result, pruned = work:results(net, file)
  report.write(work, { scan = scanned, steps = rows, result = result, dense = net, pruned = pruned })
  work:tell_results(result)
end

-- An application's call: the options are JSON, numbers and texts by the names of cnnrun prune, the net
-- is `model`, and rows go to `tell`.
local function called(text, tell)
  local options = json.decode(text)
  options[1], options.load, options.quiet, options.tell = options.model, options.load or {}, true, tell
  return options
end

---A function main(options) that prunes by this schedule: with the options of cnnrun prune, which runs it,
---or of an application (cnnrun/script.h).
---@param schedule table
---@return fun(options: table|string, tell?: fun(row: string)): integer?
function M.schedule(schedule)
  return function(options, tell)
    local by_application = type(options) == "string"
    if by_application then options = called(options, tell) end
    if not options.load then error("a schedule, for cnnrun prune: " .. (schedule.about or ""), 0) end
    local good, why = pcall(run, schedule, options)
    if good then return not by_application and 0 or nil end
    why = type(why) == "string" and why:gsub("^[^\n:]*lib/[%w_]+%.lua:%d+: ", "") or why -- no place of ours
    return error(why, 0)
  end
end

return M
