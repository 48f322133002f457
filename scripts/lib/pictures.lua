-- The pictures that words of the command line name: files, folders, patterns in quotes.
local c = require "cnnrun"
local args = require "lib.args"
local M = {}

-- The word in front of them is no picture.
function M.refuse(model)
  local ending = model:lower():match("%.(%w+)$")
  if ending == "png" or ending == "jpg" or ending == "jpeg" then
    error("the model comes first; " .. model .. " is a picture", 0)
  end
end

-- A list of { name =, read = function() return tensor end }; what cannot be found fails when it
-- is read.
function M.list(words)
  local list = {}
  for _, word in ipairs(words) do
    if c.exists(word) == "file" then
      list[#list + 1] = { name = word, read = function() return c.picture(word) end }
    else
      local good, samples = pcall(c.samples, word)
      if not good then
        local why = samples
        list[#list + 1], samples = { name = word, read = function() error(why, 0) end }, {}
      end
      for i = 1, math.max(0, #samples) do
        local entry = { name = word .. " #" .. i }
        entry.read = function() -- a folder's names are known when they are read
          local picture, _, name = samples:at(i)
          entry.name = name
          return picture
        end
        list[#list + 1] = entry
      end
    end
  end
  return list
end

-- "folder/three.jpg" -> "three"
function M.stem(name)
  local file = name:match("[^/]*$")
  return file:match("^(.+)%.%w+$") or file
end

-- Where the drawn pictures go: one file for one picture, else a folder, made when it is not there.
-- Gives a function from a picture's name to a path.
function M.places(output, n)
  local is_file = output:match("%.(%w+)$") and c.exists(output) ~= "folder"
  if is_file and n > 1 then error("-o " .. output .. ": several pictures want a folder", 0) end
  if is_file and not output:lower():match("%.png$") then
    error("-o " .. output .. ": pictures are written as .png", 0)
  end
  if not is_file then c.folder(output) end
  local folder, used = output:gsub("/+$", ""), {}
  return function(name)
    local stem, path = M.stem(name), output
    used[stem] = (used[stem] or 0) + 1
    if used[stem] > 1 then stem = stem .. "-" .. used[stem] end
    if not is_file then path = folder .. "/" .. stem .. ".png" end
    c.output(path, name)
    return path
  end
end

-- Calls work(name, picture) for each, tells how far it is when there are several unless `quiet`,
-- and goes on after a picture that fails. Gives the exit code.
function M.each(list, quiet, work)
  local failed = 0
  for i, entry in ipairs(list) do
    local good, why = pcall(function()
      local picture = entry.read()
      if #list > 1 and not quiet then c.note(("[%d/%d] %s"):format(i, #list, entry.name)) end
      work(entry.name, picture)
    end)
    if not good then
      failed = failed + 1
      why = args.plain(why)
      local named = why:find(entry.name, 1, true)
      c.note(named and why or entry.name .. ": " .. why)
    end
  end
  if failed > 0 and #list > 1 then c.note(("%d of %d pictures failed"):format(failed, #list)) end
  return failed > 0 and 1 or 0
end

return M
