-- Fits the boards' parameters to the documents' rows and lists the remaining rows as predictions:
--   cnnrun scripts/boards/fit.lua [--json] [BOARD...]
-- It fails if a board's file has another value than the fit, or if a row that is listed as
-- predicted influences any parameter.
local fit = require "lib.fit"
local json = require "lib.json"
local recipes = require "boards.recipes"
local rows = require "boards.rows"

-- Says for a recipe's entry whether its rows and fitted parameters still agree with what the board
-- has; returns that.
local function check(entry, say)
  local good = true
  local told, found = fit.judge(entry.recipe, rows)
  local off, path = fit.differ(entry.recipe.board, found)
  say { board = entry.name, rows = told, parameters = entry.recipe.board.parameters, off = off, path = path, found = found }
  for _, row in ipairs(told) do good = good and row.kind == row.meant end
  return good and off < 1e-6
end

-- Prints the check's result as lines.
local function print_report(r)
  print(string.format("%s: %d parameters, %g from what the fit finds%s", r.board, #r.parameters, r.off,
                      r.off > 1e-6 and " (" .. r.path .. ")" or ""))
  for _, row in ipairs(r.rows) do
    print(string.format("  %-10s %-68s %10.5g %10.5g %+6.1f%%", row.kind, row.row, row.document, row.ours, row.error * 100))
  end
end

-- Prints the check's rows and parameters, a line of JSON each.
local function print_json(r)
  for _, row in ipairs(r.rows) do
    row.board = r.board
    print(json.encode(row))
  end
  for _, p in ipairs(r.parameters) do
    print(json.encode { board = r.board, parameter = p.path, kind = p.kind, of = p.of, value = type(p.value) == "number" and p.value or nil,
                        found = p.kind == "fitted" and fit.get(r.found, p.path) or nil })
  end
end

return function(words)
  local options = { json = false, boards = {} }
  for _, word in ipairs(words) do
    if word == "--json" then options.json = true
    else options.boards[#options.boards + 1] = word end
  end
  local bad, known = {}, {}
  for _, entry in ipairs(recipes) do
    known[entry.name] = true
    local wanted = #options.boards == 0
    for _, name in ipairs(options.boards) do wanted = wanted or name == entry.name end
    if wanted and not check(entry, options.json and print_json or print_report) then bad[#bad + 1] = entry.name end
  end
  for _, name in ipairs(options.boards) do
    if not known[name] then error("no fit for a board '" .. name .. "'", 0) end
  end
  if #bad > 0 then error("the fit disagrees with: " .. table.concat(bad, ", "), 0) end
end
