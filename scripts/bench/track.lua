-- How well and how fast the tracker follows: success and precision plots, precision, recall and F at an
-- overlap of .25 over sequences with ground truth, by seed, and times by module as the thesis has them (S16,
-- tables 4.1 and 4.2). Writes track.csv, times.csv, success.png, precision.png.
--
--   cnnrun scripts/bench/track.lua -o FOLDER DIR... [--seeds N] [--set NAME=VALUE]
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
          "groundtruth_rect.txt (x,y,w,h).",
  flags = {
    { "-o, --output FOLDER", "where tables and plots go" },
    { "--seeds COUNT", "runs of each sequence, with the seeds 1 to that (5)" },
    { "--set TEXT", "NAME=VALUE, an option of the tracker; may come again", many = true },
    { "-q, --quiet", "nothing on stderr" },
  },
  least = 1,
}

-- As tracker:times() has them.
local modules = { "view", "flow", "detector", "variance", "ferns", "nearest", "learning", "all" }
local columns = { "sequence", "seed", "f", "precision", "recall", "absent", "false_alarms", "frames" }

local function median(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  return sorted[(#sorted + 1) // 2]
end

local function options_of(words, seed)
  local list = { seed = seed }
  for _, word in ipairs(words or {}) do
    local name, value = word:match("^([%w_]+)=(.+)$")
    list[name or word] = tonumber(value) or error(("--set %s: want NAME=NUMBER"):format(word), 0)
  end
  return list
end

-- Boxes, and of each module the milliseconds a frame.
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

local function work(options)
  local folder, n = options.output or error("where do results go? -o FOLDER", 0), options.seeds or 5
  local rows, times, success, precision = {}, {}, {}, {}
  c.folder(folder)
  for _, dir in ipairs(options) do
    local truth, name = sequence.truth(dir), dir:gsub("/+$", ""):match("[^/]*$")
    if not truth or not truth[1] then error(dir .. ": no gt.txt or groundtruth_rect.txt with a first box", 0) end
    local fs, curves = {}, { {}, {} }
    for seed = 1, n do
      local boxes, ms, size = run(dir, truth, options_of(options.set, seed))
      local j = sequence.judge(boxes, truth)
      rows[#rows + 1] = { name, seed, j.f, j.precision, j.recall, j.absent, j.false_alarms, j.frames }
      fs[seed] = j.f
      for k, v in ipairs(j.success) do curves[1][k] = (curves[1][k] or 0) + v / n end
      for k, v in ipairs(j.distances) do curves[2][k] = (curves[2][k] or 0) + v / n end
      if seed == 1 then
        local row = { name, size }
        for k = 1, #modules do row[k + 2] = median(ms[k]) end
        times[#times + 1] = row
      end
      if not options.quiet then c.note((("%s, seed %d: F %.3f"):format(name, seed, j.f):gsub("(%d),(%d)", "%1.%2"))) end
    end
    table.sort(fs)
    rows[#rows + 1] = { name, "median", fs[(n + 1) // 2] }
    rows[#rows + 1] = { name, "worst", fs[1] }
    local one, two = {}, {}
    for k, v in ipairs(curves[1]) do one[k] = { (k - 1) / 20, v } end
    for k, v in ipairs(curves[2]) do two[k] = { k - 1, v } end
    success[#success + 1] = { one, label = name }
    precision[#precision + 1] = { two, label = name }
  end
  experiment.print(columns, rows)
  print()
  local heads = table.move(modules, 1, #modules, 3, { "sequence", "size" })
  experiment.print(heads, times)
  csv.write(folder .. "/track.csv", columns, rows)
  csv.write(folder .. "/times.csv", heads, times)
  plot.lines(success, { x = "overlap", y = "share of frames", title = "Success", y_range = { 0, 1 } })
    :save(folder .. "/success.png")
  plot.lines(precision, { x = "pixels between the middles", y = "share of frames", title = "Precision",
                          y_range = { 0, 1 } }):save(folder .. "/precision.png")
end

return function(words) return args.main(words, spec, work) end
