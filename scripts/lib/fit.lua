-- Fits parameters of boards to rows of documents, one row for each step, and checks which rows are
-- predicted: rows that can be deleted without changing any parameter.
local fit = {}

-- A deep copy of a table of tables and values.
function fit.copy(t)
  if type(t) ~= "table" then return t end
  local out = {}
  for k, v in pairs(t) do out[k] = fit.copy(v) end
  return out
end

-- The x above 0 at which f(x) is `goal`; f is monotonic. False position (Illinois) on logarithms,
-- since seconds as a function of a rate are nearly a line there; bisection where that makes little
-- progress.
function fit.solve(f, goal)
  -- How far f(e^u) is from the goal, as the difference of logarithms.
  local function off(u) return math.log(f(math.exp(u))) - math.log(goal) end
  local low, high = math.log(1e-12), math.log(1e12)
  local at_low, at_high = off(low), off(high)
  for i = 1, 200 do
    local width = high - low
    if width < 1e-12 then break end
    local u = (low + high) / 2
    local sure = at_low ~= at_high and math.abs(at_low) < math.huge and math.abs(at_high) < math.huge
    if sure and i % 4 ~= 0 then u = (low * at_high - high * at_low) / (at_high - at_low) end
    local at = off(u)
    if math.abs(at) < 1e-14 then return math.exp(u) end
    if (at < 0) == (at_low < 0) then
      low, at_low, at_high = u, at, at_high / 2
    else
      high, at_high, at_low = u, at, at_low / 2
    end
  end
  return math.exp((low + high) / 2)
end

-- The parts of a path such as "units.1.power", whole numbers as such.
local function parts_of(path)
  local parts = {}
  for part in path:gmatch("[^.]+") do parts[#parts + 1] = math.tointeger(part) or part end
  return parts
end

-- The value at a path such as "a.b.1".
function fit.get(t, path)
  for _, part in ipairs(parts_of(path)) do t = t[part] end
  return t
end

-- Sets the value at a path in t, whose tables on the way exist.
local function set(t, path, value)
  local parts = parts_of(path)
  for i = 1, #parts - 1 do t = t[parts[i]] end
  t[parts[#parts]] = value
end

-- The values of a list of rows by name, without the row of name `without`.
function fit.rows(list, without)
  local rows = {}
  for _, row in ipairs(list) do
    if row.name ~= without then rows[row.name] = row.value end
  end
  return rows
end

-- The board with every fitted parameter fitted again: recipe = { board =, steps = { { rows = {
-- name... }, function(b, value...) } ... }, predict = { { row, function(b) return value end } ... }
-- }. Parameters start at 1, so that a step without its row is noticed.
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

-- The largest relative difference of the fitted parameters of two boards, and the path of that
-- parameter.
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

-- Whether a step uses the row. A step gets only the rows that it names, so a row without a step
-- changes nothing.
local function named(recipe, name)
  for _, step in ipairs(recipe.steps) do
    for _, row in ipairs(step.rows) do
      if row == name then return true end
    end
  end
  return false
end

-- The recipe's rows for a board as it is, without fitting: calls say(row, value) for each.
function fit.tell(recipe, b, say)
  for _, step in ipairs(recipe.steps) do
    for i, name in ipairs(step.rows) do say(name, step.tell[i](b)) end
  end
  for _, p in ipairs(recipe.predict or {}) do say(p[1], p[2](b)) end
end

-- Returns a list of { row, document, ours, error, changes, kind, meant }, and the fitted board.
-- error: relative; meant: the row's role in the list. changes: the largest relative change of a
-- fitted parameter if the row is deleted. kind: "fitted" if that is above 1e-9, else "follows" if
-- that is its role, else "predicted".
function fit.judge(recipe, list)
  local out, all = {}, fit.run(recipe, fit.rows(list))
  local roles = {}
  for _, row in ipairs(list) do roles[row.name] = row.role end
  -- A row: the document's number, ours, and what changed it.
  local function judge(name, ours)
    local document, role = fit.rows(list)[name], roles[name]
    local changes = named(recipe, name) and fit.differ(all, fit.run(recipe, fit.rows(list, name))) or 0
    out[#out + 1] = { row = name, document = document, ours = ours, error = ours / document - 1,
                      changes = changes, meant = role,
                      kind = changes > 1e-9 and "fitted" or role == "follows" and role or "predicted" }
  end
  for _, step in ipairs(recipe.steps) do
    for i, name in ipairs(step.rows) do judge(name, step.tell[i](all)) end
  end
  for _, p in ipairs(recipe.predict or {}) do judge(p[1], p[2](all)) end
  return out, all
end

return fit
