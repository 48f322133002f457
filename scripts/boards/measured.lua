-- Tables of the results of `cnnrun report`, and a board description made from them:
--   cnnrun scripts/boards/measured.lua board.json [MORE.json...] [-o board.lua]
local c = require "cnnrun"
local args = require "lib.args"
local json = require "lib.json"

-- The report in a file of `cnnrun report`; throws if it is none.
local function read(path)
  local good, report = pcall(json.decode, c.text(path))
  if not good or type(report) ~= "table" or report.report ~= 1 or type(report.nets) ~= "table" or
     type(report.devices) ~= "table" then
    error(path .. ": is no report; expected a file that cnnrun report -o wrote", 0)
  end
  report.machine = tostring(report.machine):gsub("[|%c]", " ")
  for i, row in ipairs(report.nets) do
    if type(row) ~= "table" or type(row.net) ~= "string" or type(row.ms_median or 0) ~= "number" then
      error(("%s: nets[%d]: expected a net's name and numbers"):format(path, i), 0)
    end
  end
  for i, device in ipairs(report.devices) do
    if type(device) ~= "table" or type(device.name) ~= "string" then
      error(("%s: devices[%d]: expected a device's name"):format(path, i), 0)
    end
  end
  return report
end

-- ---- the table ----

-- A row's time as text for a table: "" without a row, or why there is no time.
local function cell(row)
  if not row then return "" end
  if not row.ms_median then return row.error and "failed" or "no time" end
  return ("%.2f ms"):format(row.ms_median) .. (row.joules and (", %.3g J"):format(row.joules) or "")
end

-- A row for each net, a column for each machine and device.
local function print_table(reports)
  local heads, columns, names = {}, {}, {}
  for _, report in ipairs(reports) do
    for _, device in ipairs(report.devices) do
      local by = {}
      for _, row in ipairs(report.nets) do
        if row.device == device.name then by[row.net] = row end
        if not names[row.net] then names[row.net], names[#names + 1] = true, row.net end
      end
      heads[#heads + 1] = report.machine .. (report.simulated and ", simulated, " or ", ") .. device.name
      columns[#columns + 1] = by
    end
  end
  print("| net | " .. table.concat(heads, " | ") .. " |")
  print("|---|" .. ("---|"):rep(#heads))
  for _, name in ipairs(names) do
    local cells = {}
    for i, by in ipairs(columns) do cells[i] = cell(by[name]) end
    print("| " .. name .. " | " .. table.concat(cells, " | ") .. " |")
  end
  for _, report in ipairs(reports) do
    local s = report.sustained
    if s then
      print(("\n%s: %s on %s takes %.2f times as long at the end of %.0f s."):format(
        report.machine, s.net, s.device, s.slower, s.rows[#s.rows].seconds))
    end
    if not report.complete then print("\n" .. report.machine .. ": the report was stopped before its end.") end
  end
end

-- ---- the board ----

-- Sums over a device's kernels by the class of their operator.
local function classes(report, device)
  local sums = { { op = "conv*" }, { op = "dense" }, { op = "*" } }
  for _, sum in ipairs(sums) do sum.ms, sum.flops, sum.bytes = 0, 0, 0 end
  for _, row in ipairs(report.nets) do
    for _, k in ipairs(row.device == device.name and row.kernels or {}) do
      local sum = k.op:find "^conv" and sums[1] or k.op == "dense" and sums[2] or sums[3]
      sum.ms, sum.flops, sum.bytes = sum.ms + k.ms, sum.flops + k.flops, sum.bytes + k.bytes
    end
  end
  return sums
end

-- The median of the list, which is sorted then; 0: it is empty.
local function middle(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- Watts above idle while nets run on the device, and idle watts; nil: there was no meter.
local function watts(report, device)
  local work, idle = {}, {}
  for _, row in ipairs(report.nets) do
    if row.device == device.name and row.joules_net then
      work[#work + 1] = math.max(0, row.joules_net / row.ms_median * 1000)
      idle[#idle + 1] = row.idle_watts
    end
  end
  return middle(work), middle(idle)
end

-- Lua text that says that a value was fitted to a row of that report.
local function fitted(value, from) return ("fitted(%.6g, %q)"):format(value, "cnnrun report: " .. from) end

-- Line of the board's description for a class of operators: gbytes for "*" (all others), gflops
-- else, as fitted rates; nil: nothing was measured.
local function class_text(sum)
  if sum.op == "*" then
    if sum.ms == 0 or sum.bytes == 0 then return nil end
    local rate = fitted(sum.bytes / sum.ms / 1e6, "bytes of values over seconds")
    return ("      { op = \"*\", gbytes = %s },"):format(rate)
  end
  if sum.ms == 0 or sum.flops == 0 then return nil end
  return ("      { op = %q, gflops = %s },"):format(sum.op, fitted(sum.flops / sum.ms / 1e6, "arithmetic over seconds"))
end

-- The unit that has the program's memory: the processor, or without it the first unit of the
-- report.
local function host_of(report)
  for _, device in ipairs(report.devices) do
    if device.family == "cpu" then return device end
  end
  return report.devices[1]
end

-- Lua text of a unit of the board, from the report's measurements of a device; nil: no net ran on
-- it.
local function unit_text(report, device)
  local lines, work = {}, watts(report, device)
  for _, sum in ipairs(classes(report, device)) do lines[#lines + 1] = class_text(sum) end
  if #lines == 0 then return nil end
  local launch = device.launch_us and fitted(device.launch_us / 1e6, "launch_us") or
                 'assumed(10e-6, "waking threads")'
  local name = device.name:gsub("^sim:", ""):gsub("%W", "_")
  local out = { ("    { name = %q, title = %q, cores = %d,"):format(name, device.hardware or device.name,
                                                                   device.concurrency or 1) }
  if device == host_of(report) then out[#out + 1] = "      host = true," end
  out[#out + 1] = "      launch = " .. launch .. ", rail = \"board\","
  out[#out + 1] = "      classes = {"
  for _, line in ipairs(lines) do out[#out + 1] = "  " .. line end
  out[#out + 1] = "      },"
  if device.to_device_gbs then
    out[#out + 1] = "      transfer = { gbytes = " .. fitted(device.to_device_gbs, "to_device_gbs") .. " },"
  end
  local power = work and fitted(work, "median watts above idle") or 'assumed(0, "no meter was there")'
  out[#out + 1] = "      power = { dynamic = " .. power .. " } },"
  return table.concat(out, "\n")
end

-- Lua text of a board's description, with its units and idle power, from the report; throws if no
-- net ran.
local function board_text(report, name)
  local units, idle = {}, nil
  for _, device in ipairs(report.devices) do
    local _, rest = watts(report, device)
    units[#units + 1], idle = unit_text(report, device), idle or rest
  end
  if #units == 0 then error("the report has no net that ran: nothing describes its devices", 0) end
  local rail = idle and fitted(idle, "idle watts") or 'assumed(0, "no meter was there")'
  return table.concat({
    ("-- %s, as cnnrun report measured it. No voltages are known, so there are no clocks."):format(
      report.machine),
    'local board = require "lib.board"', "local fitted, assumed = board.fitted, board.assumed", "",
    "return board.new {", ("  name = %q, machine = %q,"):format(name, report.machine),
    "  rails = { { name = \"board\", idle = " .. rail .. " } },",
    "  units = {", table.concat(units, "\n"), "  },", "}", "",
  }, "\n")
end

return args.application({
  operands = "REPORT.json...", least = 1, without = "it reads reports, no net runs",
  about = "Tables of what cnnrun report measured, and a board description made of it.",
  flags = { { "-o, --output BOARD", "a board description, of one report: a .lua for --board" } },
}, function(options)
  local reports = {}
  for i = 1, #options do reports[i] = read(options[i]) end
  if options.output then
    if #reports > 1 then error("--output: of one report; got " .. #reports, 0) end
    c.output(options.output, table.unpack(options))
    local name = options.output:match "([^/]+)%.lua$"
    if not name then error("--output " .. options.output .. ": wanted a name that ends in .lua", 0) end
    c.write(options.output, board_text(reports[1], name))
  end
  if options.json then
    for _, report in ipairs(reports) do print(json.encode(report)) end
  else print_table(reports) end
  return 0
end)
