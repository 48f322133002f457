-- Learning curves: loss on one side, accuracy on the other, by epoch; metrics on a third.
--
--   net:train { data = ..., curves = "out.csv" }
--   require "lib.curves".draw("out.csv", "out.png")
local c = require "cnnrun"
local csv = require "lib.csv"
local plot = require "lib.plot"
local M = {}

local known = { epoch = true, loss = true, train_accuracy = true, accuracy = true, rate = true, seconds = true }

-- A line for each column that is a metric's; nil without such.
local function metrics_of(path)
  local rows, columns = csv.read(path)
  local series = {}
  for _, name in ipairs(columns) do
    local line = {}
    for _, row in ipairs(rows) do
      if type(row[name]) == "number" then line[#line + 1] = { row.epoch, row[name] } end
    end
    if not known[name] and #line > 0 then series[#series + 1] = { line, label = name } end
  end
  if #series > 0 then return plot.lines(series, { x = "epoch", y = "metric", title = "metrics", whole = "x" }) end
end

-- Plots of the table that training writes: accuracies; losses with the learning rate relative to
-- its maximum; metrics, if there are any.
---@param path string
---@return lib.plot.Plot accuracy
---@return lib.plot.Plot loss
---@return lib.plot.Plot? metrics
function M.of(path)
  local trained, judged, loss, rate, most = {}, {}, {}, {}, 0
  for _, row in ipairs(csv.read(path)) do
    trained[#trained + 1] = { row.epoch, row.train_accuracy }
    loss[#loss + 1] = { row.epoch, row.loss }
    rate[#rate + 1] = { row.epoch, row.rate }
    most = math.max(most, row.rate)
    if type(row.accuracy) == "number" then judged[#judged + 1] = { row.epoch, row.accuracy } end
  end
  local high = 0
  for _, point in ipairs(loss) do high = math.max(high, point[2]) end
  for _, point in ipairs(rate) do point[2] = most > 0 and point[2] / most * high or 0 end
  local series = { { trained, label = "training" } }
  if #judged > 0 then series[2] = { judged, label = "validation" } end
  return plot.lines(series, { x = "epoch", y = "right", title = "accuracy" }),
         plot.lines({ { loss, label = "loss" }, { rate, label = "rate, scaled", dash = { 4, 3 } } },
                    { x = "epoch", y = "loss", title = "loss" }), metrics_of(path)
end

-- Draws them into one picture, side by side.
---@param path string
---@param picture string
function M.draw(path, picture)
  local plots = { M.of(path) }
  local h, w = table.unpack(plots[1]:picture():shape())
  local canvas = c.object("canvas", { width = #plots * w, height = h })
  for i, one in ipairs(plots) do canvas:picture(one:picture(), { (i - 1) * w, 0, w, h }) end
  canvas:pixels():save(picture)
end

return M
