-- Doubles each parameter of a class of the ODROID-XU3's chapter 3, on the GPU and on the processor, and compares the rows
-- that move with those that name what the class is for. Prints TAP.
local board = require "lib.board"
local fit = require "lib.fit"

local spec = "odroid_xu3,library=ch3"
-- By class: patterns of the rows that must move; all others must stay.
local nets = { "LeNet%-5", "AlexNet" }
local moves = {
  gemm = { "product", "table 3.1" }, matmul = {}, im2col = { "im2col" }, ["*pool*"] = { "pooling", table.unpack(nets) }, relu = { "ReLU" },
  ["conv*"] = nets, dense = { "dense over SpMV", table.unpack(nets) }, spmv = { "SpMV" }, lrn = { "AlexNet" }, ["*"] = nets,
}

-- The rows that fit.tell gives for a board: a table of values by name.
local function rows_of(recipe, b)
  local rows = {}
  fit.tell(recipe, b, function(name, value) rows[name] = value end)
  return rows
end

-- True: a name matches one of the patterns.
local function fits(name, patterns)
  for _, pattern in ipairs(patterns) do
    if name:find(pattern) then return true end
  end
end

-- Whether the row tells of the unit: rows of the GPU alone stay where they are when the processor changes, and the reverse.
local function is_of(name, unit)
  local cpu, gpu = name:find "CPU", name:find "GPU" or name:find "float4"
  return unit == "cpu" and cpu or unit ~= "cpu" and gpu
end

return function()
  local recipe
  for _, entry in ipairs(require "boards.recipes") do
    if entry.name == spec then recipe = entry.recipe end
  end
  local before, n = rows_of(recipe, board.load(spec)), 0
  for _, unit in ipairs { "gpu4", "cpu" } do
    for i, class in ipairs(board.named(board.load(spec).units, unit).classes) do
      local b, lost, wrong = fit.copy(board.load(spec)), {}, {}
      local changed = board.named(b.units, unit).classes[i]
      local key = changed.gflops and "gflops" or "gbytes"
      changed[key] = 2 * changed[key]
      for name, value in pairs(rows_of(recipe, b)) do
        local moved = math.abs(value / before[name] - 1) > 1e-9
        local should = fits(name, moves[class.op]) and is_of(name, unit)
        if moved and not should then wrong[#wrong + 1] = name end
        if should and not moved and not name:find "watts" then lost[#lost + 1] = name end
      end
      n = n + 1
      table.sort(lost)
      table.sort(wrong)
      print(("%s %d - %s of %s's class %s: rows move that should"):format(#lost + #wrong == 0 and "ok" or "not ok", n, key, unit, class.op))
      if #lost > 0 then print("# should move: " .. table.concat(lost, "; ")) end
      if #wrong > 0 then print("# should not: " .. table.concat(wrong, "; ")) end
    end
  end
  print("1.." .. n)
end
