-- Measures accuracy and speed of the tracker on sequences with ground truth, by seed: success and
-- precision plots; precision, recall and F at an overlap of .25; and times by module as in the thesis
-- (S16, tables 4.1 and 4.2). Writes track.csv, summary.csv, times.csv, success.png, precision.png.
--
--   cnnrun scripts/bench/track.lua -o FOLDER DIR... [--seeds N] [--set NAME=VALUE] [--try NAME=VALUE,...]
local c = require "cnnrun"
local args = require "lib.args"
local csv = require "lib.csv"
local experiment = require "lib.experiment"
local follow = require "lib.follow"
local plot = require "lib.plot"
local sequence = require "lib.sequence"

local spec = {
  usage = "scripts/bench/track.lua -o FOLDER DIR...",
  about = "DIR: a folder of pictures with gt.txt (x1,y1,x2,y2 a line, NaN: out of view) or " ..
          "groundtruth_rect.txt (x,y,w,h). false_present: the share of the frames without the object in which a box is " ..
          "given. Made sequences (scripts/bench/scenes.lua) count together as one; effects.txt lists their events.",
  flags = {
    { "-o, --output FOLDER", "where tables and plots go" },
    { "--seeds COUNT", "runs of each sequence (5)" },
    { "--first COUNT", "the first run's seed (1); the next has the next" },
    { "--set TEXT", "NAME=VALUE, an option of the tracker; repeatable", many = true },
    { "--try LIST", "NAME=VALUE,NAME=VALUE on top of those as one configuration, or defaults; repeatable. Each " ..
      "sequence is then judged with the configuration that does best on the others (left_out)", many = true },
    { "-q, --quiet", "nothing on stderr" },
  },
  least = 1,
}

-- As tracker:times() returns them.
local modules = { "view", "flow", "detector", "variance", "ferns", "nearest", "learning", "all" }
local columns = { "sequence", "options", "seed", "f", "precision", "recall", "false_present", "false_alarms", "frames" }
local summary = { "sequence", "options", "f_median", "f_worst", "false_present", "left_out", "left_out_options" }

-- The median of a list, which stays as it is; nil: it is empty.
local function median(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  return sorted[(#sorted + 1) // 2]
end

-- The mean of a list; nil: it is empty.
local function mean(list)
  local sum = 0
  for _, v in ipairs(list) do sum = sum + v end
  return #list > 0 and sum / #list or nil
end

-- The tracker's options from words and one try.
local function options_of(words, try, seed)
  local list = { seed = seed }
  -- Reads one NAME=NUMBER.
  local function take(flag, word)
    local name, value = word:match("^([%w_]+)=(.+)$")
    list[name or word] = tonumber(value) or error(("%s %s: want NAME=NUMBER"):format(flag, word), 0)
  end
  for _, word in ipairs(words or {}) do take("--set", word) end
  if try ~= "defaults" then
    for word in try:gmatch("[^,]+") do take("--try", word) end
  end
  return list
end

-- Returns the boxes, the milliseconds of each module for each frame, and the size of the pictures.
local function run(folder, truth, options)
  local boxes, ms, size = {}, {}, nil
  for k = 1, #modules do ms[k] = {} end
  local tracker = c.object("tld", options)
  local led = follow.start(tracker, truth[1])
  follow.each(folder, nil, function(frame, picture, _, why)
    if frame > #truth then return end
    boxes[frame] = led:frame(picture, why).box or false
    if not picture then return end
    local shape = picture:shape()
    size = ("%dx%d"):format(shape[2], shape[1])
    if frame == 1 then return end
    local t = tracker:times()
    local parts = { t[1], t[2], t[3] + t[4] + t[5], t[3], t[4], t[5], t[6], t[7] }
    for k, v in ipairs(parts) do ms[k][frame - 1] = v end
  end)
  return boxes, ms, size
end

-- ---- results ----

-- Returns the group of a sequence, which is added if missing, and the text of effects.txt. Each sequence is
-- a group of its own; all generated sequences form one.
local function group_of(groups, dir, name)
  local made = c.exists(dir .. "/effects.txt") == "file"
  local key = made and "made" or name
  if not groups[key] then
    groups[key] = { name = key, tries = {}, effects = {} }
    groups[#groups + 1] = groups[key]
  end
  return groups[key], made and c.text(dir .. "/effects.txt") or nil
end

-- For a configuration in a group: the median and the least of the seeds' mean F, and the mean rate of false
-- presents.
local function figures(try)
  local fs = {}
  for k, list in ipairs(try.by_seed) do fs[k] = mean(list) end
  return median(fs), math.min(table.unpack(fs)), mean(try.present)
end

-- Index of the configuration with the best mean F over all groups except `left`.
local function best_of(groups, n, left)
  local best, value
  for k = 1, n do
    local list = {}
    for _, group in ipairs(groups) do
      if group ~= left then list[#list + 1] = (figures(group.tries[k])) end
    end
    local now = mean(list)
    if now and (not value or now > value) then best, value = k, now end
  end
  return best
end

-- Rows of the summary: each group, and all together.
local function summary_of(groups, tries)
  local rows, all = {}, best_of(groups, #tries)
  for _, group in ipairs(groups) do
    local left = #groups > 1 and best_of(groups, #tries, group) or nil
    for k, name in ipairs(tries) do
      local middle, worst, present = figures(group.tries[k])
      local row = { group.name, name .. (#tries > 1 and k == all and " (all in)" or ""), middle, worst, present or "" }
      if #tries > 1 and left and k == all then row[6], row[7] = (figures(group.tries[left])), tries[left] end
      rows[#rows + 1] = row
    end
    for _, effect in ipairs(group.effects) do
      rows[#rows + 1] = { group.name .. ": " .. effect, #group.effects[effect] .. " runs", mean(group.effects[effect]) }
    end
  end
  return rows
end

-- Counts a sequence's result f in its group under each of its effects, which are words.
local function note_effects(group, text, f)
  for effect in (text or ""):gmatch("%S+") do
    if not group.effects[effect] then
      group.effects[effect] = {}
      group.effects[#group.effects + 1] = effect
    end
    table.insert(group.effects[effect], f)
  end
end

-- Writes the drawn curves into the folder, as success.png and precision.png.
local function draw(folder, success, precision)
  plot.lines(success, { x = "overlap", y = "share of frames", title = "Success", y_range = { 0, 1 } })
    :save(folder .. "/success.png")
  plot.lines(precision, { x = "distance of the centres in pixels", y = "share of frames", title = "Precision",
                          y_range = { 0, 1 } }):save(folder .. "/precision.png")
end

-- Adds a group's curves, sums over n tries, to both figures as means, the first time that the group
-- comes.
local function add_curves(group, success, precision, curves, n)
  -- One curve for all made sequences would hide the others: the first one stands for them.
  if group.drawn then return end
  group.drawn = true
  local one, two = {}, {}
  for k, v in ipairs(curves[1]) do one[k] = { (k - 1) / 20, v / n } end
  for k, v in ipairs(curves[2]) do two[k] = { k - 1, v / n } end
  success[#success + 1] = { one, label = group.name }
  precision[#precision + 1] = { two, label = group.name }
end

-- The benchmark: the trackers over all sequences; writes its report into options.output.
local function work(options)
  local folder, n = options.output or error("-o FOLDER is missing: the folder for results", 0), options.seeds or 5
  local tries, first = options.try or { "defaults" }, options.first or 1
  local rows, times, success, precision, groups = {}, {}, {}, {}, {}
  c.folder(folder)
  for _, dir in ipairs(options) do
    local truth, name = sequence.truth(dir), dir:gsub("/+$", ""):match("[^/]*$")
    if not truth or not truth[1] then error(dir .. ": no gt.txt or groundtruth_rect.txt with a first box", 0) end
    local group, effects = group_of(groups, dir, name)
    for t, try in ipairs(tries) do
      local results = group.tries[t] or { by_seed = {}, present = {} }
      group.tries[t] = results
      local curves = { {}, {} }
      for seed = 1, n do
        local boxes, ms, size = run(dir, truth, options_of(options.set, try, first + seed - 1))
        local j = sequence.judge(boxes, truth)
        rows[#rows + 1] = { name, try, first + seed - 1, j.f, j.precision, j.recall, j.absent and 1 - j.absent or "",
                            j.false_alarms, j.frames }
        results.by_seed[seed] = results.by_seed[seed] or {}
        table.insert(results.by_seed[seed], j.f)
        if j.absent then table.insert(results.present, 1 - j.absent) end
        if t == 1 then note_effects(group, effects, j.f) end
        for k, v in ipairs(j.success) do curves[1][k] = (curves[1][k] or 0) + v end
        for k, v in ipairs(j.distances) do curves[2][k] = (curves[2][k] or 0) + v end
        if seed == 1 and t == 1 and not group.timed then
          group.timed = true
          local row = { name, size }
          for k = 1, #modules do row[k + 2] = median(ms[k]) end
          times[#times + 1] = row
        end
        if not options.quiet then
          c.note((("%s, %s, seed %d: F %.3f"):format(name, try, first + seed - 1, j.f):gsub("(%d),(%d%d%d)$", "%1.%2")))
        end
      end
      if t == 1 then add_curves(group, success, precision, curves, n) end
    end
  end
  local short, heads = summary_of(groups, tries), table.move(modules, 1, #modules, 3, { "sequence", "size" })
  experiment.print(columns, rows)
  print()
  experiment.print(summary, short)
  print()
  experiment.print(heads, times)
  csv.write(folder .. "/track.csv", columns, rows)
  csv.write(folder .. "/summary.csv", summary, short)
  csv.write(folder .. "/times.csv", heads, times)
  draw(folder, success, precision)
end

return function(words) return args.main(words, spec, work) end
