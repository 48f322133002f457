-- Learning curves: loss on one side, accuracy on the other, by epoch.
--
--   net:train { data = ..., curves = "out.csv" }
--   require "lib.curves".draw("out.csv", "out.png")
local c = require "cnnrun"
local csv = require "lib.csv"
local plot = require "lib.plot"
local M = {}

-- Two plots of the table that training writes: accuracies; and losses with the learning rate
-- relative to its maximum.
---@param path string
---@return lib.plot.Plot accuracy
---@return lib.plot.Plot loss
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
                    { x = "epoch", y = "loss", title = "loss" })
end

-- Draws both into one picture, side by side.
---@param path string
---@param picture string
function M.draw(path, picture)
  local accuracy, loss = M.of(path)
  local left, right = accuracy:picture(), loss:picture()
  local h, w = table.unpack(left:shape())
  local canvas = c.object("canvas", { width = 2 * w, height = h })
  canvas:picture(left, { 0, 0, w, h })
  canvas:picture(right, { w, 0, w, h })
  canvas:pixels():save(picture)
end

return M
