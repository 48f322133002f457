-- The pictures that words of the command line name: files, folders, quoted patterns, videos.
local c = require "cnnrun"
local args = require "lib.args"
local M = {}

local written = {} -- File extensions of pictures that can be written.
for kind in ("png jpg jpeg jpe jfif bmp dib ppm pgm pnm tif tiff webp"):gmatch "%w+" do written[kind] = true end

-- Whether a path names a picture that can be written, by its extension.
function M.is_picture(path) return written[(path:lower():match("%.(%w+)$"))] or false end

-- Refuses a picture in the place of the model.
function M.refuse(model)
  if M.is_picture(model) or M.is_video(model) then
    error("the model comes first; " .. model .. " is a picture", 0)
  end
end

local kinds = {} -- Containers that videos are written to, and read from.
for kind in ("mp4 m4v mov mkv webm avi gif"):gmatch "%w+" do kinds[kind] = true end

-- Whether a path names a video, by its extension.
function M.is_video(path) return kinds[(path:lower():match("%.(%w+)$"))] or false end

-- The word for its source: numbered pictures (frame-%03d.png) are a video, and so is a GIF if the
-- output is one. A list of pictures must be named as one, since what it names is read.
function M.spec(word, output)
  if word:lower():match "%.txt$" and c.exists(word) == "file" then
    error(("%s: a list of pictures is named images:%s"):format(word, word), 0)
  end
  local moves = output and (M.is_video(output) or output:match "%%0?%d*d") and word:lower():match "%.gif$"
  local numbered = word:match "%%0?%d*d" and not c.exists(word)
  if (moves or numbered) and not word:match "^%w+:" then return "video:" .. word end
  return word
end

-- The frames or pictures that --every, --from and --to choose, as c.samples takes it.
function M.choice(options)
  for _, name in ipairs { "from", "to" } do
    local v = options[name]
    if v and not (v >= 0 and v < 1e9) then error(("--%s %g: want seconds of the video, from 0 on"):format(name, v), 0) end
  end
  if options.from and options.to and options.to <= options.from then
    error(("--to %g: want more than --from %g"):format(options.to, options.from), 0)
  end
  if options.every and options.every < 1 then error(("--every %d: want 1 or more"):format(options.every), 0) end
  return { every = options.every or 1, from = options.from, to = options.to }
end

-- True: an address of a picture, by its ending; what comes from there is no video, though a video's
-- source reads it.
local function is_picture_url(word) return word:match "^%a+://" and M.is_picture((word:gsub("[?#].*$", ""))) end

-- The first frame of a source, which was named so.
local function first_frame(samples, name)
  for _, picture in samples:each() do return picture end
  error(name .. ": nothing that can be decoded as a picture came from there", 0)
end

-- A list of { name =, read = function() return tensor end }; a video has `frames`, its samples. A
-- file that is not found fails when it is read. `choice`: which of them, as c.samples takes it;
-- `output`: where to.
function M.list(words, choice, output)
  local list = {}
  for _, named in ipairs(words) do
    local word = M.spec(named, output)
    local good, samples = pcall(c.samples, word, nil, choice)
    if not good then
      local why = samples
      list[#list + 1], samples = { name = word, why = why, read = function() error(why, 0) end }, {}
    elseif #samples < 0 and is_picture_url(word) then
      local source = samples
      list[#list + 1], samples = { name = word, read = function() return first_frame(source, word) end }, {}
    elseif #samples < 0 then
      list[#list + 1], samples = { name = named, source = word, frames = samples }, {}
    elseif #samples == 1 and c.exists(word) ~= "folder" and not word:find "[*?%[:]" then
      list[#list + 1] = { name = word, read = function() return (samples:at(1)) end }
      goto next
    end
    for i = 1, #samples do
      local entry = { name = word .. " #" .. i }
      entry.read = function() -- The names in a folder are known when they are read.
        local picture, _, name = samples:at(i)
        entry.name = name
        return picture
      end
      list[#list + 1] = entry
    end
    ::next::
  end
  return list
end

-- The name of a picture, or of a frame of a video.
function M.title(name, about)
  if not about then return name end
  return ("%s #%d%s"):format(name, about.frame,
    about.seconds and (" %.3f s"):format(about.seconds) or "")
end

-- A path's last name without its ending: "folder/three.jpg" gives "three".
function M.stem(name)
  local file = name:match("[^/]*$")
  return file:match("^(.+)%.%w+$") or file
end

-- The place for drawn pictures: one file for one picture or video, else a folder, which is made if
-- needed. Returns a function from an entry of the list to a path.
function M.places(output, list)
  local is_file, n = output:match("%.(%w+)$") and c.exists(output) ~= "folder", #list
  local video = list[1] and list[1].frames
  if is_file and n > 1 then error("-o " .. output .. ": several pictures need a folder", 0) end
  if is_file and not video and not M.is_picture(output) then
    if list[1] and list[1].why then error(list[1].why, 0) end -- It may have been a video.
    error("-o " .. output .. ": pictures are written as .png, .jpg, .bmp, .ppm, .tif or .webp", 0)
  end
  if is_file and video and not M.is_video(output) and not output:find("%", 1, true) then
    error("-o " .. output .. ": videos are written as .mp4, .mkv, .webm, .mov, .avi or .gif, or as " ..
          "pictures, frames-%04d.png", 0)
  end
  if not is_file then c.folder(output) end
  local folder, used = output:gsub("/+$", ""), {}
  return function(entry)
    local stem, path = M.stem(entry.name), output
    local ending = not entry.frames and ".png" or
                   M.is_video(entry.name) and entry.name:match("%.%w+$") or ".mp4"
    used[stem] = (used[stem] or 0) + 1
    if used[stem] > 1 then stem = stem .. "-" .. used[stem] end
    if not is_file then path = folder .. "/" .. stem .. ending end
    c.output(path, entry.name)
    return path
  end
end

-- Saves the contents of boxes into a folder, which is made. Returns a function of a picture's name,
-- the picture, its frame, its boxes and label(box).
function M.crops(folder)
  c.folder(folder)
  local used = {}
  return function(name, picture, about, found, label)
    local shape, stem = picture:shape(), M.stem(name)
    if not about then
      used[stem] = (used[stem] or 0) + 1
      if used[stem] > 1 then stem = stem .. "-" .. used[stem] end
    end
    if about then stem = ("%s-%06d"):format(stem, about.frame) end
    for i, b in ipairs(found) do
      local x0, y0 = math.max(0, math.floor(b.x0)), math.max(0, math.floor(b.y0))
      local x1, y1 = math.min(shape[2], math.ceil(b.x1)), math.min(shape[1], math.ceil(b.y1))
      if x1 > x0 and y1 > y0 then
        local kind = label(b):gsub("[^%w]+", "-")
        local crop = picture:region({ y0 + 1, x0 + 1, 1 }, { y1 - y0, x1 - x0, shape[3] })
        crop:save(("%s/%s-%d-%s.png"):format((folder:gsub("/+$", "")), stem, i, kind))
      end
    end
  end
end

-- Calls work(name, picture, about) for each frame, about = { frame =, seconds = }. `quiet`: as below.
local function each_frame(entry, quiet, work)
  local n = 0
  for i, picture, _, _, seconds in entry.frames:each() do
    work(entry.name, picture, { frame = i, seconds = seconds })
    n = i
    if not quiet and i % 100 == 0 then
      c.note(("%s: frame %d, %.1f s"):format(entry.name, i, seconds or 0))
    end
  end
  if n == 0 then error("it has no frames, or none in that part", 0) end
end

-- Calls work(name, picture, about) for each picture and each frame (`about` for frames only). With
-- several pictures it reports progress unless `quiet`, and continues after a picture that fails.
-- begin(entry) and finish(entry) are called around the calls of an entry. Returns the exit code.
function M.each(list, quiet, work, begin, finish)
  local failed, code = 0, 0
  for i, entry in ipairs(list) do
    local good, why = pcall(function()
      local picture = entry.read and entry.read()
      if #list > 1 and not quiet then c.note(("[%d/%d] %s"):format(i, #list, entry.name)) end
      begin(entry)
      if entry.frames then each_frame(entry, quiet, work) else work(entry.name, picture) end
      finish(entry)
    end)
    if not good then
      failed = failed + 1
      code = code > 0 and code or c.exit_code(why)
      why = args.plain(why)
      local named = why:find(entry.name, 1, true)
      c.note(named and why or entry.name .. ": " .. why)
    end
  end
  if failed > 0 and #list > 1 then c.note(("%d of %d pictures failed"):format(failed, #list)) end
  return code
end

return M
