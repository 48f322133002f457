-- Fitting parameters of boards to rows of documents, one row a step, and judging what is predicted: a
-- row that can be deleted without any parameter changing.
local fit = {}

function fit.copy(t)
  if type(t) ~= "table" then return t end
  local out = {}
  for k, v in pairs(t) do out[k] = fit.copy(v) end
  return out
end

-- The x above 0 at which f(x), which rises or falls all the way, is `goal`.
function fit.solve(f, goal)
  local low, high = 1e-12, 1e12
  local rises = f(high) > f(low)
  while high > low * (1 + 1e-12) do
    local x = (low * high) ^ 0.5
    if x <= low or x >= high then break end
    if (f(x) < goal) == rises then low = x else high = x end
  end
  return (low * high) ^ 0.5
end

local function parts_of(path)
  local parts = {}
  for part in path:gmatch("[^.]+") do parts[#parts + 1] = math.tointeger(part) or part end
  return parts
end

function fit.get(t, path)
  for _, part in ipairs(parts_of(path)) do t = t[part] end
  return t
end

local function set(t, path, value)
  local parts = parts_of(path)
  for i = 1, #parts - 1 do t = t[parts[i]] end
  t[parts[#parts]] = value
end

-- rows by name; `without` is left out.
function fit.rows(list, without)
  local rows = {}
  for _, row in ipairs(list) do
    if row.name ~= without then rows[row.name] = row.value end
  end
  return rows
end

-- The board with every fitted parameter found anew: recipe = { board =, steps = { { rows = { name... },
-- function(b, value...) } ... }, predict = { { row, function(b) return value end } ... } }. Parameters
-- start at 1, so that a step whose row is gone shows.
function fit.run(recipe, rows)
  local b = fit.copy(recipe.board)
  for _, p in ipairs(b.parameters) do
    if p.kind == "fitted" then set(b, p.path, 1) end
  end
  for _, step in ipairs(recipe.steps) do
    local values, missing = {}, false
    for i, name in ipairs(step.rows) do
      values[i] = rows[name]
      missing = missing or values[i] == nil
    end
    if not missing then step[1](b, table.unpack(values)) end
  end
  return b
end

-- The largest relative difference of the fitted parameters of two boards, and whose it is.
function fit.differ(a, b)
  local most, path = 0, ""
  for _, p in ipairs(a.parameters) do
    if p.kind == "fitted" then
      local x, y = fit.get(a, p.path), fit.get(b, p.path)
      local d = x == y and 0 or math.abs(x - y) / math.max(math.abs(x), math.abs(y))
      if d > most then most, path = d, p.path end
    end
  end
  return most, path
end

-- Every row that the recipe speaks of: { name, document, ours, error, kind, changes }.
-- "predicted" is what the recipe predicts and the deletion proves.
function fit.judge(recipe, list)
  local out, all = {}, fit.run(recipe, fit.rows(list))
  local function judge(name, ours, is_fit)
    local document = fit.rows(list)[name]
    local changes = fit.differ(all, fit.run(recipe, fit.rows(list, name)))
    out[#out + 1] = { row = name, document = document, ours = ours, error = ours / document - 1,
                      changes = changes, kind = changes > 1e-9 and "fitted" or "predicted", meant = is_fit and "fitted" or "predicted" }
  end
  for _, step in ipairs(recipe.steps) do
    for i, name in ipairs(step.rows) do judge(name, step.tell[i](all), true) end
  end
  for _, p in ipairs(recipe.predict or {}) do judge(p[1], p[2](all), false) end
  return out, all
end

return fit
