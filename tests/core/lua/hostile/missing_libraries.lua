-- want: ok
for _, name in ipairs { "io", "os", "debug", "package", "load", "loadfile", "dofile", "loadstring",
                        "collectgarbage", "_G" } do
  assert(not pcall(function() return _ENV[name] end), name)
end
assert(string.dump == nil)
