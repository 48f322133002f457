-- want: ok
for _, name in ipairs { "../x", "/etc/passwd", "a/b", ".", "..", "a..b", ".a", "a.", "", "a\0b", "x y",
                        "%s" } do
  assert(not pcall(require, name), name)
end
