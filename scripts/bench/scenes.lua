-- Writes generated sequences with ground truth (lib/scenes.lua) to folders for track.lua: pictures,
-- gt.txt with the boxes, and effects.txt with the events. The same seed gives the same scene.
--
--   cnnrun scripts/bench/scenes.lua -o FOLDER [PICTURE_OR_VIDEO...] [--count N] [--seed N]
local c = require "cnnrun"
local args = require "lib.args"
local pictures = require "lib.pictures"
local scenes = require "lib.scenes"
local kinds = require "lib.scene_kinds"

local spec = {
  usage = "scripts/bench/scenes.lua -o FOLDER [PICTURE_OR_VIDEO...]",
  about = "Objects and backgrounds are cut from the pictures, and backgrounds are the videos' frames; without any, " ..
          "both are noise and shapes. Effects: " .. table.concat(scenes.effects, ", ") .. ".",
  flags = {
    { "-o, --output FOLDER", "where a folder for each scene goes" },
    { "--count COUNT", "scenes (20)" },
    { "--seed COUNT", "of the first one (1); the next has the next" },
    { "--frames COUNT", "of each (120)" },
    { "--effects LIST", "exactly these in every scene: turn,light (default: each drawn with .4)" },
    { "--kind NAME", "every scene is of this hard kind, or all: each kind in turn (" .. table.concat(kinds.names, ", ") .. ")" },
    { "-q, --quiet", "nothing on stderr" },
  },
}

-- Formats v, which is 0 or more, with two decimals and a point in any locale.
local function decimal(v) return ("%d.%02d"):format(math.floor(v), math.floor(v % 1 * 100)) end

-- The benchmark: makes scenes and writes them with their boxes.
local function work(options)
  local folder = options.output or error("-o FOLDER is missing: the folder for scenes", 0)
  local files, videos, effects = {}, {}, nil
  for _, path in ipairs(options) do
    local list = pictures.is_video(path) and videos or files
    list[#list + 1] = path
  end
  for word in (options.effects or ""):gmatch("[^,]+") do
    effects = effects or {}
    if not table.concat(scenes.effects, " "):find(word, 1, true) then
      error(("--effects %s: want some of %s"):format(word, table.concat(scenes.effects, ", ")), 0)
    end
    effects[#effects + 1] = word
  end
  local names = " " .. table.concat(kinds.names, " ") .. " all "
  if options.kind and not names:find(" " .. options.kind .. " ", 1, true) then
    error(("--kind %s: want all, or one of %s"):format(options.kind, table.concat(kinds.names, ", ")), 0)
  end
  c.folder(folder)
  for k = 0, (options.count or 20) - 1 do
    local seed = (options.seed or 1) + k
    local kind = options.kind == "all" and kinds.names[k % #kinds.names + 1] or options.kind
    local scene = scenes.draw(seed, { frames = options.frames, effects = effects, pictures = #files > 0 and files or nil,
                                      videos = videos, kind = kind })
    local happens = (kind and kind .. " " or "") .. table.concat(scene.effects, " ")
    local dir, lines = ("%s/made_%04d"):format(folder, seed), {}
    c.folder(dir)
    local writer = c.writer(dir .. "/%05d.png")
    scene:each(function(frame, picture, box)
      writer:write(picture)
      lines[frame] = box and table.concat({ decimal(box[1]), decimal(box[2]), decimal(box[1] + box[3]),
                                            decimal(box[2] + box[4]) }, ",") or "NaN,NaN,NaN,NaN"
    end)
    writer:close()
    c.write(dir .. "/gt.txt", table.concat(lines, "\n") .. "\n")
    c.write(dir .. "/effects.txt", happens .. "\n")
    if not options.quiet then c.note(dir .. ": " .. happens) end
  end
end

return function(words) return args.main(words, spec, work) end
