-- The pictures that words of the command line name: files, folders, patterns in quotes.
local c = require "cnnrun"
local M = {}

-- A list of { name =, read = function() return tensor end }.
function M.list(words)
  local list = {}
  for _, word in ipairs(words) do
    if c.exists(word) == "file" then
      list[#list + 1] = { name = word, read = function() return c.picture(word) end }
    else
      local samples = c.samples(word)
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
  if n == 1 and output:match("%.[pP][nN][gG]$") and c.exists(output) ~= "folder" then
    return function() return output end
  end
  if c.exists(output) == "file" then
    error(output .. " is a file; several pictures want a folder", 0)
  end
  c.folder(output)
  local folder, used = output:gsub("/+$", ""), {}
  return function(name)
    local stem = M.stem(name)
    used[stem] = (used[stem] or 0) + 1
    if used[stem] > 1 then stem = stem .. "-" .. used[stem] end
    return folder .. "/" .. stem .. ".png"
  end
end

-- Calls work(name, picture, i) for each, tells how far it is when there are several, and goes on
-- after a picture that fails. Gives the exit code.
function M.each(list, work)
  local failed = 0
  for i, entry in ipairs(list) do
    local good, why = pcall(function()
      local picture = entry.read()
      if #list > 1 then c.note(("[%d/%d] %s"):format(i, #list, entry.name)) end
      work(entry.name, picture, i)
    end)
    if not good then
      failed = failed + 1
      c.note(tostring(why))
    end
  end
  if failed > 0 and #list > 1 then c.note(("%d of %d pictures failed"):format(failed, #list)) end
  return failed > 0 and 1 or 0
end

return M
