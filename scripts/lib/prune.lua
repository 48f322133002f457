-- Prunes a net by a schedule: finds how much each layer can lose, prunes and trains in turns, tests
-- once, writes a report.
--
--   return require "lib.prune".schedule { layers = { ip1 = 0.05 }, train = { epochs = 1 } }
--
-- core/docs/pruning.md lists the keys of a schedule. Each result is kept in the folder as soon as
-- it is known, so that a run that was stopped or killed continues there.
local c = require "cnnrun"
local args = require "lib.args"
local csv = require "lib.csv"
local json = require "lib.json"
local pruning = require "lib.pruning"
local report = require "lib.prune_report"

---Pruning by a schedule.
---@class lib.prune
local M = {}

-- ---- results so far ----

local Work = {}
Work.__index = Work

-- Path of a file in the work's folder.
function Work:path(name) return self.folder .. "/" .. name end

-- Writes the state, so that the work can go on after a stop.
function Work:keep_state() json.write(self:path("state.json"), self.state) end

-- The result of `find`, computed once for this pruning; again only if the thing that it depends on
-- (`of`, a sum) has changed.
function Work:once(key, of, find)
  local known = self.state.known[key]
  if known and known.of == of then return known.value end
  self.state.known[key] = nil
  self:keep_state() -- The old entry does not describe what find writes.
  local value = find()
  self.state.known[key] = { of = of, value = value }
  self:keep_state()
  return value
end

-- A copy of v in a form for JSON: functions become a text.
local function plain(v) -- In a form for JSON.
  if type(v) == "function" then return "a function" end
  if type(v) ~= "table" then return v end
  local copy = {}
  for key, value in pairs(v) do
    copy[math.type(key) and v[1] == nil and tostring(key) or key] = plain(value)
  end
  return copy
end

-- A copy of the options with some more.
local function with(own, more)
  local options = {}
  for key, value in pairs(own or {}) do options[key] = value end
  for key, value in pairs(more) do options[key] = value end
  return options
end

-- True: v is or contains a function.
local function has_function(v)
  if type(v) ~= "table" then return type(v) == "function" end
  for _, value in pairs(v) do
    if has_function(value) then return true end
  end
  return false
end

-- A hash of the values, 16 hexadecimal digits.
local function sum(...)
  local text, h = json.encode(plain { ... }), 0x4bf29ce484222325
  for i = 1, #text do h = (h ~ text:byte(i)) * 0x100000001b3 end
  return ("%016x"):format(h)
end

-- The value of this key of the schedule; a function counts by its results in a trial.
function Work:says(word, otherwise) return { self.schedule[word] or otherwise, self.marks[word] } end

-- Reads the folder's results of this pruning into self. If the schedule has changed, those that
-- still follow from it stay. Its checkpoints have names of their own; restart forgets all.
function Work:open_state(restart)
  local path, run = self:path("state.json"), 1
  local identity = json.encode { data = self.options.data, base = self.base, seed = self.seed,
                                 limit = self.options.limit or 0, validation = self.validation,
                                 validation_seed = self.validation_seed }
  local schedule = sum(self.schedule, self.marks)
  if c.exists(path) == "file" then
    local found = json.read(path)
    run = (found.run or 0) + 1
    if not restart and found.identity == identity then
      self.state = found
      c.barrier() -- All processes have read the file.
      if found.schedule ~= schedule then found.run, found.schedule = run, schedule end
      return self:keep_state()
    end
    if not restart then
      error(path .. ": belongs to another pruning (net, data or options differ); " ..
            "--restart begins again, --folder uses another folder", 0)
    end
  end
  c.barrier() -- All processes have looked for the file.
  self.state = { identity = identity, schedule = schedule, run = run, known = {}, files = {} }
  self:keep_state()
end

-- Prints a line, formatted as by string.format, unless --quiet or --json.
function Work:say(format, ...)
  if not self.options.quiet and not self.options.json then
    print((format:format(...):gsub("(%d),(%d)", "%1.%2")))
  end
end

-- Tells a row, for a program or as JSON.
function Work:tell(row)
  if self.options.tell then self.options.tell(json.encode(row))
  elseif self.options.json then print(json.encode(row)) end
end

-- ---- evaluation and training ----

-- Loss and right answers on the validation part.
function Work:judge(net)
  local r = net:evaluate { data = self.options.data, split = "train", limit = self.options.limit, batch = 64,
                           validation = self.validation, validation_seed = self.validation_seed }
  return { top1 = r.top1, loss = r.loss, n = r.n }
end

-- Trains with masks held; each training has checkpoints of its own name, so that none is mistaken
-- for another's.
function Work:train(net, own, name, on_epoch)
  return net:train(with({ data = self.options.data, limit = self.options.limit, validation = self.validation,
                          validation_seed = self.validation_seed, seed = self.seed, policy = "fixed", epochs = 1,
                          rate = 0.01, on_epoch = on_epoch,
                          checkpoint = self:path(("%s-%d.ckpt"):format(name, self.state.run)) }, own))
end

-- Tensors by name as short text that does not depend on rounding.
local function digits(tensors)
  local names, list = {}, {}
  for name in pairs(tensors) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local total = 0
    for _, norm in ipairs(tensors[name]:norms()) do total = total + norm end
    list[#list + 1] = ("%.4g"):format(total)
  end
  return table.concat(list, " ")
end

-- The results of the schedule's functions after three steps (the first does not show momentum), and
-- the learning rates.
local function mark(net, before, rate)
  local weights, rates = {}, {}
  for _, name in ipairs(net:weights()) do weights[name] = net:weight(name):plus(before:weight(name), -1) end
  for i, step in ipairs(type(rate) == "function" and { 0, 7, 30, 50, 75, 99 } or {}) do rates[i] = rate(step, 100) end
  return { digits(weights), rates }
end

-- Tries three steps of each training, a batch of the criterion and each encoding, so that mistakes
-- are reported before the work.
function Work:try(net)
  for _, word in ipairs { "train", "finish" } do
    local copy <close> = net:copy()
    local options = with({ policy = "fixed", rate = 0.01, data = self.samples }, self.schedule[word] or {})
    options = with(options, { epochs = 3, batch = 2, limit = 2, validation = 0 })
    options.on_epoch, options.curves, options.checkpoint, options.accumulate = nil, nil, nil, nil
    local good, why = pcall(copy.train, copy, options)
    if not good then error(word .. ": " .. args.plain(why), 0) end
    if has_function(self.schedule[word]) then self.marks[word] = mark(copy, net, self.schedule[word].rate) end
  end
  if pruning.by_gradient(self.schedule) then
    local copy <close> = net:copy() -- Gradients also update the statistics of batches.
    local scores = pruning.scores(copy, self.layers, self.schedule, self.samples, {}, { batches = 2, batch = 2 })
    if has_function(self.schedule.criterion) then self.marks.criterion = digits(scores) end
  end
  local copy <close> = net:copy()
  for _, form in ipairs(self:forms()) do copy:encode(form[2], form[1] ~= "*" and form[1] or nil) end
end

-- ---- statistics of batches ----

-- Pairs of weights: mean and variance of each batch normalisation.
local function statistics(net)
  local list = {}
  for _, l in ipairs(net:layers()) do
    if l.operator == "batch_normalization" then
      for i = 4, #l.weights >= 4 and 4 or 3 do list[#list + 1] = { l.weights[i - 1], l.weights[i] } end
    end
  end
  return list
end

-- A tensor as long as the weight, all x.
local function filled(net, name, x)
  local data = {}
  for i = 1, net:weight(name):shape()[1] do data[i] = x end
  return c.tensor { data = data }
end

-- Measures the statistics of batch normalisations anew. A running mean keeps a part of itself at each
-- step. One step from 0 and one from 1 measure that part. The mean from 0 is then corrected for what it
-- lacks of the mean over all steps.
function Work:recalibrate(net)
  local list, count = statistics(net), self.schedule.recalibrate
  if count == false or #list == 0 then return end
  count = type(count) == "number" and count or 1024
  if not self.spread then -- Pictures from all over the data.
    local all = math.min(#self.samples, self.options.limit or math.huge)
    self.spread = c.samples(self.options.data, "train", { every = math.max(1, all // count) })
    self.count = math.min(count, all)
  end
  -- Sets all statistics to x and lets some steps update them.
  local function run(x, batch, steps, to)
    for _, pair in ipairs(list) do
      to:set_weight(pair[1], filled(to, pair[1], x))
      to:set_weight(pair[2], filled(to, pair[2], x))
    end
    to:train { data = self.spread, limit = batch * steps, batch = batch, epochs = 1, rate = 0, policy = "fixed",
               momentum = 0, weight_decay = 0, validation = 0, seed = self.seed }
  end
  local batch = math.min(64, self.count)
  local steps, kept = self.count // batch, {}
  local probe <close> = net:copy()
  for x = 0, 1 do
    run(x, batch, 1, probe)
    for i, pair in ipairs(list) do kept[i] = probe:weight(pair[1])[1] - (kept[i] or 0) end
  end
  run(0, batch, steps, net)
  for i, pair in ipairs(list) do
    local factor = 1 / (1 - math.min(math.max(kept[i], 0), 0.9999) ^ steps)
    for k = 1, 2 do net:set_weight(pair[k], net:weight(pair[k]):times(factor)) end
  end
end

-- Loads the net with the command line's devices, kernels and limits, after all processes have come
-- so far. Its weights are those in the file.
local function loaded(path, options)
  c.barrier() -- several processes: rank 0 wrote the file
  local how = {}
  for key, value in pairs(options.load) do how[key] = value end
  how.weights = path == options[1] and how.weights or nil
  local net = c.load(path, how)
  net:trainable() -- Layers get weights of their own where nodes turn constants, as training would do.
  return net
end

-- The net of a file, with its masks set again.
function Work:load(file)
  local net = loaded(self:path(file), self.options)
  if (self.schedule.unit or "element") ~= "channel" then
    for _, layer in ipairs(self.layers) do net:mask(layer.weight, true) end
  end
  return net
end

-- ---- the scan ----

-- The shares of weights that a scan keeps: 0.95 down to 0.05.
local function scan_shares()
  local list = {}
  for keep = 95, 5, -5 do list[#list + 1] = keep / 100 end
  return list
end

-- Prunes one layer at a time, without training. Returns the rows { layer, keep, accuracy, loss }
-- and writes them to scan.csv; what an earlier start measured is taken over.
function Work:scan(net)
  local rows, shares = {}, type(self.schedule.scan) == "table" and self.schedule.scan.shares or scan_shares()
  local s, scores = self.schedule, nil
  local of = sum(self:says("criterion", "magnitude"), s.unit or "element", s.saliency or {},
                 s.recalibrate == nil or s.recalibrate, self.dense)
  for _, layer in ipairs(self.layers) do
    for _, keep in ipairs(shares) do
      local r = self:once(("scan %s %g"):format(layer.name, keep), of, function()
        scores = scores or (pruning.by_gradient(s) and self:scores(net, {}) or {})
        local cut <close> = pruning.cut(net, layer, keep, s, scores[layer.weight])
        self:recalibrate(cut)
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

-- For layers with "found": the least share at which the layer alone loses no more than that.
function Work:choose(rows)
  local points = type(self.schedule.scan) == "table" and self.schedule.scan.points or 1
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

-- ---- pruning and training in turns ----

-- The scores by which weights are cut, from the net in those states, as tensors by weight.
function Work:scores(net, states)
  local copy <close> = net:copy() -- Gradients also update the statistics of batches.
  return pruning.scores(copy, self.layers, self.schedule, self.samples, states)
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

-- A copy of the net, cut as a step of the plan says.
function Work:cut(net, plan, step)
  local together = plan.all and plan.all[step]
  local measured = together or pruning.by_gradient(self.schedule)
  local scores = measured and self:scores(net, self.states) or {}
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
  if self.schedule.unit == "channel" then self.states = {} end -- Their sizes no longer fit.
  return current ~= net and current or net:copy()
end

-- Share of the weights that are not zero, 0 to 1.
function Work:kept(net)
  local n, all = 0, 0
  for _, layer in ipairs(pruning.able(net)) do n = n + net:weight(layer.weight):density() * layer.n end
  for _, layer in ipairs(self.all) do all = all + layer.n end
  return n / all
end

-- What each of the n steps of the plan follows from, including the steps before it, as hashes.
function Work:follows(plan, n)
  local s, list = self.schedule, {}
  local before = sum(self:says("criterion", "magnitude"), s.unit or "element", s.saliency or {}, self:says("train", {}),
                     s.least or 0.01, s.recalibrate == nil or s.recalibrate, self.dense)
  for step = 1, n do
    local shares = plan.all and plan.all[step] or {}
    for name, rates in pairs(plan) do
      if name ~= "all" then shares[name] = rates[math.min(step, #rates)] end
    end
    list[step] = sum(before, shares)
    before = list[step]
  end
  return list
end

-- The previous file stays until this step is known.
local function slot_of(step) return ("step-%d.cnr"):format(step % 2) end

-- The number of steps of this plan that are known, with the net of the last one.
function Work:done(follows)
  local known, files, n = self.state.known, self.state.files, 0
  while known["step " .. n + 1] and known["step " .. n + 1].of == follows[n + 1] do n = n + 1 end
  while n > 0 and files[slot_of(n)] ~= follows[n] do n = n - 1 end
  for key in pairs(known) do
    local step = math.tointeger(tonumber(key:match "^step (%d+)$"))
    if step and step > n then known[key] = nil end
  end
  return n
end

-- Stores the state of a user's criterion: numbers and texts in the returned list, tensors in files.
function Work:keep_states(slot)
  local list = {}
  for layer, state in pairs(self.states) do
    for key, value in pairs(state) do
      local number = #list + 1
      list[number] = { layer, key, type(value) ~= "userdata" and value or nil }
      if type(value) == "userdata" then value:save(self:path(("%s-%d.npy"):format(slot, number))) end
    end
  end
  return list
end

-- Takes up the optimiser's state that was saved.
function Work:take_states(slot, list)
  self.states = {}
  for i, row in ipairs(list or {}) do
    local value = row[3]
    if value == nil then value = c.tensor(self:path(("%s-%d.npy"):format(slot, i))) end
    self.states[row[1]] = self.states[row[1]] or {}
    self.states[row[1]][row[2]] = value
  end
end

-- Sets all of the net's weights back to those of the kept epoch; pruned ones stay pruned.
function Work:rewind(net)
  local early <close> = loaded(self:path("rewind.cnr"), self.options)
  local kept = {}
  for _, layer in ipairs(self.layers) do kept[layer.weight] = net:weight(layer.weight) end
  for _, name in ipairs(net:weights()) do
    local w, by = early:weight(name), kept[name]
    net:set_weight(name, by and w:pruned(by:density(), { by = by }) or w)
  end
end

-- Makes one step from the net of the previous one: prunes, trains, writes the net.
function Work:step(from, plan, step, of)
  local cut <close> = self:cut(from, plan, step)
  local slot = slot_of(step)
  if self.schedule.rewind then self:rewind(cut) end
  self:recalibrate(cut)
  local before = self:judge(cut)
  self:train(cut, self.schedule.train or {}, "step-" .. step)
  local after = self:judge(cut)
  self.state.files[slot] = nil
  self:keep_state()
  cut:save(self:path(slot))
  self.state.files[slot] = of
  return { step = step, kept = self:kept(cut), cut = before.top1, accuracy = after.top1, loss = after.loss,
           states = self:keep_states(slot) }
end

-- The last net that is accurate enough, and a row for each step that was taken.
function Work:steps(net)
  local plan, n = self:plan()
  local follows = self:follows(plan, n)
  local rows, file, stop = {}, nil, self.schedule.stop
  local done = self:done(follows)
  if done > 0 then self:take_states(slot_of(done), self.state.known["step " .. done].value.states) end
  for step = 1, n do
    local row = self:once("step " .. step, follows[step], function()
      if not file then return self:step(net, plan, step, follows[step]) end
      local from <close> = self:load(file)
      return self:step(from, plan, step, follows[step])
    end)
    rows[step] = row
    self:say("step %d of %d  %.2f%% kept  right on %.2f%%, %.2f%% before training", step, n, 100 * row.kept,
             100 * row.accuracy, 100 * row.cut)
    self:tell { step = row.step, kept = row.kept, cut = row.cut, accuracy = row.accuracy, loss = row.loss }
    if stop and row.accuracy < self.base.top1 - stop / 100 - 1e-12 then
      self:say("stopped: more than %g points were lost", stop)
      self.stopped = step
      break
    end
    file, self.last = slot_of(step), follows[step]
  end
  csv.write(self:path("steps.csv"), { "step", "kept", "cut", "accuracy", "loss" }, rows)
  if not file then error("the first step loses more than the schedule allows: nothing is kept", 0) end
  return file, rows
end

-- Trains the last time, if the schedule wants that; returns the file of the net.
function Work:finish(file)
  local own = self.schedule.finish
  if not own then return file end
  local row = self:once("finish", sum(self.last, self:says("finish")), function()
    local net <close> = self:load(file)
    self:train(net, own, "finish")
    net:save(self:path("finished.cnr"))
    return self:judge(net)
  end)
  self:say("trained on: right on %.2f%%", 100 * row.top1)
  self:tell { finish = true, accuracy = row.top1, loss = row.loss }
  return "finished.cnr"
end

-- ---- results ----

-- Time, energy and bytes of a net and its file, as a table.
function Work:measure(net, file)
  local p = net:profile { runs = 30, energy = true }
  local load
  for _ = 1, 4 do -- The first run finds files and code cold; of the others the minimum counts.
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

-- The test split, once, after all decisions: both nets.
function Work:test(net)
  local spec = self.options.eval or self.options.data
  if spec == "" then return nil end
  local r = net:evaluate { data = spec, split = "eval", batch = 64 }
  return { top1 = r.top1, n = r.n }
end

-- Encodes weights by layer, and gives the size of the file.
function Work:written(net, path)
  net:save(path)
  c.barrier()
  local _, bytes = c.exists(path)
  return bytes
end

-- The schedule's encodings as a list { { layers, encoding }, ... }.
function Work:forms()
  local encode = self.schedule.encode
  return type(encode) == "table" and encode or encode and { { "*", encode } } or {}
end

-- What came out, before and after, as a table; writes pruned.cnr.
function Work:results(dense, file)
  local net <close> = self:load(file)
  local out = self:path("pruned.cnr")
  local result = { output = self.options.output, kept = self:kept(net), steps = self.taken,
                   stopped = self.stopped, bytes = {}, validated = self.base.n,
                   validation = { self.base.top1, self:judge(net).top1 } }
  result.bytes[1] = self:written(dense, self:path("dense.cnr"))
  local forms = self:forms()
  local packed <close> = net:copy()
  for _, form in ipairs(forms) do
    local good, why = pcall(packed.encode, packed, form[2], form[1] ~= "*" and form[1] or nil)
    if not good then c.note("not encoded: " .. args.plain(why)) end -- The trained net is not lost by that.
  end
  result.bytes[2] = self:written(packed, out)
  if #forms > 0 then result.encoded = self:judge(packed).top1 end
  local test = self:once("test", sum(self.last, self:says("finish", {}), forms), function()
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

-- A number as text of four digits; nil: "-".
local function number(x) return x and json.encode(x, 4) or "-" end

-- Tells the results r, as text or JSON.
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
  local kept = r.encoded or r.validation[2]
  self:say("right on %.2f%% of %d for validation (%s; %.2f%% dense)%s", 100 * kept, r.validated,
           pruning.interval(kept, r.validated), 100 * r.validation[1],
           r.test and (", %.2f%% of %d for the test (%s; %.2f%% dense)"):format(100 * r.test[2], r.tested,
           pruning.interval(r.test[2], r.tested), 100 * r.test[1]) or "")
  self:say("ms a run %s (%s dense), arena %s bytes (%s dense), report %s", number(r.pruned.ms),
           number(r.dense.ms), number(r.pruned.arena_bytes), number(r.dense.arena_bytes),
           self:path("report.html"))
  if r.bytes[2] >= r.bytes[1] then
    self:say("zeros are stored, too; to drop them: cnnrun convert %s -o FILE --encode sparse-csr", r.output)
  end
end

-- ---- the whole pruning ----

-- Returns the net, trained: with `rewind` first for so many epochs, whose net is kept for
-- rewinding, and then as `train` says; without, as it is given.
function Work:trained(net)
  local s = self.schedule
  self.dense = "as given"
  if not s.rewind then return net end
  self.dense = sum(s.rewind, self:says("train", {}))
  self.base = self:once("dense", self.dense, function()
    local early <close> = net:copy()
    if s.rewind > 0 then
      self:train(early, with(s.train, { epochs = s.rewind, policy = "fixed" }), "rewind")
    end
    early:save(self:path("rewind.cnr"))
    self:train(early, s.train or {}, "trained")
    early:save(self:path("trained.cnr"))
    return self:judge(early)
  end)
  self:say("trained: right on %.2f%%", 100 * self.base.top1)
  return loaded(self:path("trained.cnr"), self.options)
end

-- The work from its beginning or where it was stopped.
local function run(schedule, options)
  pruning.check(schedule)
  c.folder(options.folder)
  c.output(options.output, options[1])
  local net = loaded(options[1], options)
  local work = setmetatable({ schedule = schedule, options = options, folder = options.folder,
                              seed = options.seed or 1, validation = options.validation or 0.1,
                              validation_seed = options.validation_seed or 1, states = {}, marks = {} }, Work)
  local test = options.eval or options.data
  if test ~= "" then c.samples(test, "eval") end -- A missing test is reported now, not after the work.
  work.all = pruning.able(net)
  local left
  work.layers, left = pruning.layers(net, schedule)
  work.samples = c.samples(options.data, "train")
  local open = false
  for _, layer in ipairs(work.layers) do open = open or layer.keep == "found" end
  if not schedule.keep and open and (options.no_scan or schedule.scan == false) then
    error("the schedule has shares to be found by the scan: scan = false is not possible", 0)
  end
  work:try(net)
  work.base = work:judge(net)
  work:open_state(options.restart)
  work:say("%s: right on %.2f%% of %d for validation", options[1], 100 * work.base.top1, work.base.n)
  for _, why in ipairs(left) do work:say("left as it is: %s", why) end
  net = work:trained(net)
  local scanned = {}
  if not (options.no_scan or schedule.scan == false) then scanned = work:scan(net) end
  work:choose(scanned)
  local file, rows = work:steps(net)
  work.taken = #rows
  file = work:finish(file)
  local result, pruned = work:results(net, file)
  report.write(work, { scan = scanned, steps = rows, result = result, dense = net, pruned = pruned })
  work:tell_results(result)
end

-- Called by an application: the options are JSON, numbers and texts by the names of cnnrun prune,
-- the net is `model`, and rows go to `tell`.
local function called(text, tell)
  local options = json.decode(text)
  options[1], options.load, options.quiet, options.tell = options.model, options.load or {}, true, tell
  return options
end

---A function main(options) that prunes by this schedule: with the options of cnnrun prune, which runs it,
---or of an application (cnnrun/lab.h).
---@param schedule table
---@return fun(options: table|string, tell?: fun(row: string)): integer?
function M.schedule(schedule)
  return function(options, tell)
    local by_application = type(options) == "string"
    if by_application then options = called(options, tell) end
    if not options.load then error("a schedule, for cnnrun prune: " .. (schedule.about or ""), 0) end
    local good, why = pcall(run, schedule, options)
    if good then return not by_application and 0 or nil end
    -- Without positions in library files.
    why = type(why) == "string" and why:gsub("^[^\n:]*lib/[%w_]+%.lua:%d+: ", "") or why
    return error(why, 0)
  end
end

return M
