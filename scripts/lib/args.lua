-- Parses a command line: flags with their help; the other words in order.
--
--   local options = args.parse(words, {
--     usage = "detect.lua MODEL PICTURE...", about = "Finds things in pictures.",
--     flags = { { "-o, --output PATH", "where pictures go" }, { "--json", "results as JSON" },
--               { "--score NUMBER", "at least this score" } } })
--   options[1], options.output, options.json, options.score
--
-- args.main(words, spec, work) also runs the program: work(options) returns the exit code, and an
-- error in it becomes a message of one line.
--
-- args.application(spec, work) is what an application returns. Then the program itself parses the
-- words, with the options that commands share (`nets`, `pictures`: which of them besides the
-- general ones), and reports errors with its own exit codes. options.load has those for nets, for
-- c.load. `refused`: { ["--weights"] = "why it has no use here" }; `without`: why none of the
-- options for nets has a use.
--
-- A flag followed by a word in capitals takes a value; NUMBER and COUNT (whole, not negative) are
-- checked. With `many = true` in its row it may be repeated, and its option is a list. Returns nil
-- and an exit code after --help or a mistake.
local c = require "cnnrun"
local M = {}

M.mistake = 1 -- the exit code of a wrong argument, as the program's own

-- Rows of the spec's flags in order, and the same by name.
local function rows_of(spec)
  local rows, by = {}, {}
  for _, flag in ipairs(spec.flags or {}) do
    local short, long, value = flag[1]:match("^(%-%a), (%-%-[%w-]+) ?(%u*)"), nil, nil
    if short then long, value = flag[1]:match("(%-%-[%w-]+) ?([%u|]*)")
    else long, value = flag[1]:match("^(%-%-[%w-]+) ?([%u|]*)") end
    local row = { text = flag[1], help = flag[2], value = value ~= "" and value or nil,
                  many = flag.many, key = long:sub(3):gsub("%-", "_") }
    rows[#rows + 1] = row
    by[long] = row
    if short then by[short] = row end
  end
  return rows, by
end

-- Returns text as one string, broken at blanks into lines of at most `width` (a longer word stands
-- alone) with newlines between; each line but the first has `indent` more spaces in front, which do
-- not count. Blanks become single spaces.
function M.wrap(text, width, indent)
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    if line ~= "" and #line + 1 + #word > width then
      lines[#lines + 1] = line
      line = word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n" .. (" "):rep(indent))
end

-- ---- applications: the program parses their words ----

-- The flags in the form that the library wants.
local function application_flags(spec)
  local flags = {}
  for i, row in ipairs((rows_of(spec))) do
    flags[i] = { name = row.text:match("%-%-[%w-]+"), letter = row.text:match("^%-(%a)"), argument = row.value,
                 help = row.help, repeats = row.many }
  end
  local refused, names = { ["--group"] = "processes share the work of train, eval, prune, tune and sweep" }, {}
  for name, why in pairs(spec.refused or {}) do refused[name] = why end
  for name in pairs(refused) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do flags[#flags + 1] = { name = name, refused = refused[name] } end
  return flags
end

-- The table that the library runs as an application.
function M.application(spec, work)
  return { operands = spec.operands, about = M.wrap(spec.about, 95, 0), example = spec.example,
           details = spec.more, nets = spec.nets, pictures = spec.pictures, without = spec.without,
           least = spec.least, most = spec.most, flags = application_flags(spec), main = function(options)
    options.load = options.load or {}
    local good, result = pcall(work, options)
    if good then return result end
    error(M.plain(result), 0)
  end }
end

-- Prints the help: usage, purpose and flags.
local function help(spec, rows)
  print("usage: cnnrun " .. spec.usage .. "\n")
  print(M.wrap(spec.about, 90, 0) .. "\n")
  for _, row in ipairs(rows) do
    print(("  %-25s %s"):format(row.text, M.wrap(row.help, 68, 28)))
  end
  print(("  %-25s %s"):format("-h, --help", "this text"))
  if spec.more then print("\n" .. spec.more) end
end

-- The value of a flag from its word; nil and a message: it is wrong.
local function read(row, word, value)
  if not row.value then
    if value then return nil, word .. " takes no value" end
    return true
  end
  if not value then return nil, word .. ": want " .. row.value end
  local number = tonumber(value)
  if row.value == "NUMBER" then return number, word .. ": want a number, got " .. value end
  if row.value ~= "COUNT" then return value end
  number = number and math.tointeger(number)
  if not number or number < 0 then return nil, word .. ": want a whole number, got " .. value end
  return number
end

-- Options from words; nil and an exit code: they are wrong, or help was asked for.
function M.parse(words, spec)
  local rows, by = rows_of(spec)
  local options, only_words, i = {}, false, 1
  -- Tells what is wrong; returns nil and the exit code.
  local function wrong(text)
    c.note((words[0] or "script") .. ": " .. text)
    c.note("--help lists all options")
    return nil, M.mistake
  end
  while i <= #words do
    local word = words[i]
    if only_words or word == "-" or word:sub(1, 1) ~= "-" then
      options[#options + 1] = word
    elseif word == "--" then
      only_words = true
    elseif word == "--help" or word == "-h" then
      help(spec, rows)
      return nil, 0
    else
      local name, value = word:match("^(%-%-[^=]+)=(.*)$")
      local row = by[name or word]
      if not row then return wrong("no flag " .. (name or word)) end
      if row.value and not value then
        i = i + 1
        value = words[i]
      end
      local got, why = read(row, name or word, value)
      if got == nil then return wrong(why) end
      if row.many then
        options[row.key] = options[row.key] or {}
        table.insert(options[row.key], got)
      else
        options[row.key] = got
      end
    end
    i = i + 1
  end
  if #options < (spec.least or 0) then return wrong("usage: cnnrun " .. spec.usage) end
  return options
end

-- The text of an error without the place in the script that raised it, since the mistake is usually
-- in the user's files.
function M.plain(why)
  local text = tostring(why)
  local plain = text:gsub("^[^\n:]+%.lua:%d+: ", "")
  return plain:match "^attempt to " and text or plain
end

-- Runs work with the parsed options; returns the exit code.
function M.main(words, spec, work)
  local options, code = M.parse(words, spec)
  if not options then return code end
  local good, result = pcall(work, options)
  if good then return result end
  c.note((words[0] or "script") .. ": " .. M.plain(result))
  return M.mistake
end

return M
