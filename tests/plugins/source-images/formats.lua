-- Prints a line a picture: width, height and the means of red, green and blue, or why it was refused.
local c = require "cnnrun"
return function(words)
  for _, path in ipairs(words) do
    local good, picture = pcall(c.picture, path)
    if good then
      local shape, sums = picture:shape(), { 0, 0, 0 }
      local channels, pixels = shape[3], shape[1] * shape[2]
      for i = 1, #picture do
        local k = (i - 1) % channels + 1
        sums[k] = sums[k] + picture[i]
      end
      local green, blue = channels == 3 and 2 or 1, channels == 3 and 3 or 1
      print(("read %d %d %.2f %.2f %.2f"):format(shape[2], shape[1], sums[1] / pixels,
        sums[green] / pixels, sums[blue] / pixels))
    else
      print("refused " .. tostring(picture):gsub("%s+", " "))
    end
  end
end
