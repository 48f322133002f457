-- Reports what cnnrun can use on this machine, what is missing, and the command that installs it:
-- cnnrun doctor [--json]
local c = require "cnnrun"
local args = require "lib.args"
local json = require "lib.json"

local states = { works = "works   ", missing = "missing ", broken = "broken  ", none = "none    " }

-- A row: its subject, its state, what was found, the command that helps (nil: none is known).
local function tell(options, what, state, detail, command)
  if options.json then print(json.encode { what = what, state = state, detail = detail, command = command })
  else
    print(("%s %-12s %s"):format(states[state], what, args.wrap(detail, 78, 22)))
    if command then print((" "):rep(22) .. "> " .. command) end
  end
end

-- ---- libraries and Debian's packages ----

-- Packages whose names differ from the library's by Debian's policy.
local packages = {
  ["libjpeg.so.62"] = "libjpeg62-turbo", ["libOpenCL.so.1"] = "ocl-icd-libopencl1",
  ["libz.so.1"] = "zlib1g", ["libcurl.so.4"] = "libcurl4", ["libcairo.so.2"] = "libcairo2",
}

-- "libavcodec.so.59" -> libavcodec59; a digit before the version gets a hyphen: libpng16-16.
local function package_of(library)
  local name, version = library:match("^([%w_.+-]+)%.so%.(%d+)")
  if packages[library] or not name then return packages[library] end
  return (name .. (name:find("%d$") and "-" or "") .. version):lower():gsub("_", "-")
end

-- The name in a message of the dynamic linker: "libgone.so.1: cannot open shared object file: ..."
local function install(said)
  local package = package_of(said:match("^[^%s:]+%.so[%d.]*") or "")
  return package and "sudo apt install " .. package
end

-- ---- the processor and other devices ----

-- Runs LeNet-5 with its weights on a device.
local function try(device)
  return pcall(function()
    local net <close> = c.load("nets.lenet5", { device = device })
    local p = net:run(c.tensor { shape = { 1, 1, 28, 28 } })
    local sum = 0
    for i = 1, 10 do sum = sum + p[i] end
    if not (math.abs(sum - 1) < 1e-3) then error("its scores add up to " .. sum .. ", want 1", 0) end
  end)
end

-- A device in words: hardware, driver and units.
local function describe(d)
  local parts = { d.hardware, d.driver }
  parts[#parts + 1] = d.concurrency and d.concurrency .. (d.family == "cpu" and " threads" or " units")
  return table.concat(parts, ", ")
end

-- Returns whether nets run on the processor, and the families that were found.
local function devices(options)
  local found, processor = {}, false
  local good, list = pcall(c.devices)
  for _, d in ipairs(good and list or {}) do
    local runs, why = try(d.name)
    found[d.family] = true
    processor = processor or runs and d.family == "cpu"
    tell(options, d.name, runs and "works" or "broken",
         runs and describe(d) or describe(d) .. ": " .. args.plain(why))
  end
  if not good then tell(options, "devices", "broken", args.plain(list)) end
  if not found.cpu then
    tell(options, "cpu", "broken", "no plugin drives the processor: the plugins that came with cnnrun are not found",
         "cnnrun plugins --help")
  end
  return processor, found
end

-- Tells that no OpenCL device was found, and what may be missing.
local function opencl(options, found)
  if found.opencl then return end
  tell(options, "opencl", "missing", "no OpenCL device; PoCL makes one of the processor. A GPU wants its vendor's " ..
       "driver (intel-opencl-icd, mesa-opencl-icd, nvidia-opencl-icd) and a user in the group render",
       "sudo apt install ocl-icd-libopencl1 pocl-opencl-icd")
end

-- ---- plugins ----

-- The build leaves these out if a library's headers are missing; the row says what to install.
local optional = {
  { "videos", "source", "video", "libavformat-dev libavcodec-dev libavdevice-dev libswscale-dev" },
  { "drawing", "object", "canvas", "libcairo2-dev" },
  { "nets drawn", "object", "dot", "libgraphviz-dev" },
  { "live page", "object", "page", "libmicrohttpd-dev libjpeg62-turbo-dev" },
  { "JSON posted", "object", "post", "libcurl4-openssl-dev" },
  { "ONNX", "importer", "onnx", "libprotobuf-c-dev protobuf-c-compiler" },
  { "NumPy", "importer", "numpy", "libzip-dev" },
}
local formats = { { "GIF", "libgif-dev" }, { "TIFF", "libtiff-dev" }, { "WebP", "libwebp-dev" },
                  { "HEIC", "libheif-dev" } }

-- Loaded plugins by what they bring, as by.object.canvas; kinds that none brings are empty tables.
local function by_kind(list)
  local by = setmetatable({}, { __index = function(t, kind) t[kind] = {}; return t[kind] end })
  for _, p in ipairs(list) do
    for kind, names in pairs(p.provides) do
      for _, name in ipairs(names) do by[kind][name] = p end
    end
  end
  return by
end

-- Where a part was not built in: how it is mended (the package to install), and what is wrong.
local function built(what, package)
  return "sudo apt install " .. package .. "   # and build again", "not in this build: " .. what
end

-- Tells which plugins were loaded and which were refused.
local function plugins(options)
  local list, loaded = c.plugins(), {}
  for _, p in ipairs(list) do loaded[p.name] = loaded[p.name] or not p.refused end
  local count = 0
  for _, p in ipairs(list) do
    if p.refused and not loaded[p.name] then
      tell(options, p.name, "broken", p.refused, install(p.refused:match("can't be opened: (.*)") or ""))
    elseif p.lacks then tell(options, p.name, "broken", p.summary .. ": " .. p.lacks, install(p.lacks))
    elseif not p.refused then count = count + 1 end
  end
  tell(options, "plugins", count > 0 and "works" or "broken", count .. " with all their libraries")
  local by = by_kind(list)
  for _, row in ipairs(optional) do
    if not by[row[2]][row[3]] then
      local command, detail = built("what brings " .. row[2] .. " '" .. row[3] .. "'", row[4])
      tell(options, row[1], "missing", detail, command)
    end
  end
  local images = by.source.images
  for _, row in ipairs(images and formats or {}) do
    if not images.summary:find(row[1], 1, true) then
      local command, detail = built("pictures of the format " .. row[1], row[2])
      tell(options, row[1], "missing", detail, command)
    end
  end
end

-- ---- meters and knobs ----

local helper = "sudo systemctl enable --now cnnrun-helper"

-- Tells which meters and knobs can be used.
local function gauges(options)
  local good, list = pcall(c.gauges)
  local counts, shut = { meter = 0, knob = 0 }, { meter = {}, knob = {} }
  for _, g in ipairs(good and list or {}) do
    local kind = g.quantity == "knob" and "knob" or "meter"
    local why = g.error or kind == "knob" and g.writable == false and "may not be set by this user"
    if why then table.insert(shut[kind], g.name .. ": " .. why)
    elseif g.quantity ~= "temperature" then counts[kind] = counts[kind] + 1 end
  end
  for _, kind in ipairs { "meter", "knob" } do
    local n, some = counts[kind], shut[kind]
    if n > 0 then tell(options, kind .. "s", "works", n .. (kind == "meter" and " that can be read" or " that can be set")) end
    for _, line in ipairs(some) do
      local denied = line:find("ermission") or line:find("only root") or line:find("may not be set")
      tell(options, kind .. "s", "missing", line, denied and helper or nil)
    end
    if n + #some == 0 then
      tell(options, kind .. "s", "none", kind == "meter" and "no plugin finds one: energy is unmeasured here"
                                         or "no plugin finds one: frequencies stay as they are")
    end
  end
end

return args.application({
  operands = "", most = 0, without = "each device runs LeNet-5 once, as it is",
  example = "cnnrun doctor",
  about = "Reports what cnnrun can use on this machine, what is missing, and the command that installs it " ..
          "(packages have Debian's names). LeNet-5 is run once on each device.",
  more = "With --json one object on each line: what, state, detail, command.\n" ..
         "States: works; missing: cnnrun does without; broken: it is there and fails; none: the machine\nhas none. " ..
         "The exit code is 1 if the processor can't run nets, else 0.",
}, function(options)
  local processor, found = devices(options)
  opencl(options, found)
  plugins(options)
  gauges(options)
  return processor and 0 or 1
end)
