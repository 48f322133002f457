-- lib.plot and lib.axis, told as TAP by plot.t; pictures go to args.output.
local c = require "cnnrun"
local axis, plot = require "lib.axis", require "lib.plot"

local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, what)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. what)
end
-- A test: both are equal.
local function is(got, want, what)
  ok(got == want, what)
  if got ~= want then print(("# got  %s\n# want %s"):format(got, want)) end
end
-- A test: f fails with such a message.
local function fails(pattern, what, f, ...)
  local good, why = pcall(f, ...)
  ok(not good and why:find(pattern) ~= nil, what)
  if good or not why:find(pattern) then print("# " .. tostring(why)) end
end

-- The texts of a list's entries in one text, with `offset` (optional) behind them.
local function texts(list, offset)
  local words = {}
  for _, t in ipairs(list) do words[#words + 1] = t.text end
  return table.concat(words, " ") .. (offset and " " .. offset or "")
end

-- Tests: ticks of axes.
local function ticks()
  is(texts(axis.linear(0, 1, 5)), "0.0 0.2 0.4 0.6 0.8 1.0", "round numbers, with the digits of the step")
  is(texts(axis.linear(-3, 21, 5)), "0 5 10 15 20", "those within the range")
  is(texts(axis.linear(-.1, .1, 4)), "−0.10 −0.05 0.00 0.05 0.10", "a true minus, and none at 0")
  is(texts(axis.linear(0, 3e6, 4)), "0 1 2 3 ×10⁶", "millions")
  is(texts(axis.linear(0, 2e-5, 4)), "0 5 10 15 20 ×10⁻⁶", "millionths")
  is(texts(axis.linear(1e9, 1e9 + 4, 4)), "1.000000000 1.000000001 1.000000002 1.000000003 1.000000004 ×10⁹",
     "small steps far from 0")
  is(texts(axis.logarithmic(.01, 100, 6)), "0.01 0.1 1 10 100", "decades")
  is(texts(axis.logarithmic(1e-6, 1, 3)), "10⁻⁶ 10⁻⁴ 10⁻² 10⁰", "few of many")
  is(texts(axis.logarithmic(1, 20, 6)), "1 2 5 10 20", "more within one")
  is(texts(axis.logarithmic(2, 3, 4)), texts(axis.linear(2, 3, 4)), "a part of one is as good as linear")
  is(axis.text(1e-7) .. axis.text(-2.5) .. axis.text(-0.0, 1), "1×10⁻⁷−2.50.0", "single numbers")
  for _, range in ipairs { { 0, 1 }, { -7.3, 12.9 }, { 1e-12, 3e-12 }, { 5, 5.0001 }, { -1e15, 1e15 } } do
    for most = 1, 12 do
      local list = axis.linear(range[1], range[2], most)
      local good = #list <= most + 1
      for i, t in ipairs(list) do
        good = good and t.at >= range[1] - 1e-6 * math.abs(range[1]) and t.at <= range[2] * (1 + 1e-6) and
               (i == 1 or t.text ~= list[i - 1].text)
      end
      if not good or most == 12 then
        ok(good, ("%g to %g: at most %d ticks, inside, none like the next"):format(range[1], range[2], most))
      end
    end
  end
end

-- How many pixels of a picture are nearly of a colour.
local function count(picture, r, g, b)
  local found = 0
  for i = 1, #picture, 3 do
    if math.abs(picture[i] - r) + math.abs(picture[i + 1] - g) + math.abs(picture[i + 2] - b) < 12 then
      found = found + 1
    end
  end
  return found
end

-- Nothing is cut at the edge: the outermost pixels are white.
local function framed(picture)
  local shape = picture:shape()
  local h, w = shape[1], shape[2]
  for y = 0, h - 1 do
    for x = 0, w - 1, (y == 0 or y == h - 1) and 1 or w - 1 do
      for k = 1, 3 do
        if picture[(y * w + x) * 3 + k] ~= 255 then return false end
      end
    end
  end
  return true
end

-- Tests: drawn plots.
local function pictures(folder)
  local rows, other = {}, {}
  for i = 1, 9 do rows[i], other[i] = { i, i * i }, { i, 40 - 3 * i } end
  local p = plot.lines({ { rows, label = "one" }, { other, label = "two" } },
                       { x = "x", y = "y", title = "A title", width = 300, height = 200, scale = 1 })
  local picture = p:picture()
  is(tostring(picture), "u8[200,300,3]", "as large as asked for")
  ok(count(picture, 0, 0x72, 0xb2) > 150 and count(picture, 0xd5, 0x5e, 0) > 150, "both lines are there")
  ok(framed(picture), "and nothing is cut")
  local bare = plot.lines({ { rows } }, { width = 300, height = 200, scale = 1 }):picture()
  is(count(bare, 0xd5, 0x5e, 0), 0, "one line is one colour")
  p:save(folder .. "/lines.png"):save(folder .. "/lines.svg")
  is(tostring(c.picture(folder .. "/lines.png")), "u8[200,300,3]", "a .png")
  ok(c.text(folder .. "/lines.svg"):find("<svg.*</svg>%s*$") ~= nil, "a .svg")
  fails("a .png, a .svg or a .pdf", "nothing else", p.save, p, folder .. "/lines.gif")
  fails("may not be written", "nowhere else", p.save, p, folder .. "-other.png")

  local many = {}
  for i = 1, 14 do many[i] = { { { 1, i }, { 2, i } }, label = "a long name of series " .. i } end
  ok(framed(plot.lines(many, { scale = 1 }):picture()), "a legend of many lies outside, whole")
  for _, case in ipairs {
    { "very large", { { 1e300, 1 }, { 1.5e300, 2 } } }, { "very small", { { 1e-300, 1 }, { 2e-300, 2 } } },
    { "one point", { { 3, 3 } } }, { "no point", {} }, { "all the same", { { 1, 7 }, { 2, 7 } } },
    { "gaps", { { 1, 1 }, { 2, 0 / 0 }, { 3, math.huge }, { 4, 2 } } } } do
    ok(framed(plot.lines({ { case[2] } }, { scale = 1 }):picture()), case[1])
  end
  ok(framed(plot.lines({ { { { 1, 1e-9 }, { 10, 1 }, { 1000, 0 } } } }, { log = "xy", scale = 1 }):picture()),
     "logarithms")
  ok(framed(plot.scatter({ { rows, label = "points" } }, { x_range = { 2, 5 }, scale = 1 }):picture()),
     "points, in a range")
  local bars = { { "first", 3 }, { "a long name of a layer/with parts", -1 }, { "third", 0 } }
  ok(framed(plot.bars(bars, { y = "y", scale = 1 }):picture()), "bars")
  ok(framed(plot.bars(bars, { x = "x", horizontal = true, scale = 1 }):picture()), "bars that lie")
  for i = 1, 40 do bars[i] = { "name of layer " .. i, i, 2 * i } end
  ok(framed(plot.bars(bars, { labels = { "cpu", "other" }, scale = 1 }):picture()), "many bars")
  ok(framed(plot.bars(bars, { labels = { "cpu", "other" }, horizontal = true, log = "x", scale = 1 }):picture()),
     "many that lie, on a logarithmic axis")
  local t = c.tensor { shape = { 50, 20 } }
  for i = 1, #t do t[i] = math.sin(i) end
  ok(framed(plot.histogram(t, { scale = 1 }):picture()), "a tensor's numbers")
  ok(framed(plot.histogram({ t, { 1, 2, 3 } }, { labels = { "a", "b" }, log = "y", scale = 1 }):picture()),
     "two lists")
  ok(framed(plot.heat(t, { value = "sine", scale = 1 }):picture()), "a map of a tensor")
  local heat = plot.heat({ { 0, 1 }, { 2, 0 / 0 } }, { rows = { "a", "b" }, values = false, scale = 1 }):picture()
  ok(count(heat, 0x44, 0x01, 0x54) > 500 and count(heat, 0xfd, 0xe7, 0x25) > 500 and
     count(heat, 204, 204, 204) > 500, "the colours of the smallest, the largest, and of none")

  fails("no option 'titel'", "an unknown option", plot.lines, { { rows } }, { titel = "x" })
  fails("series 1: row 2: want { x, y }", "a row that is none", plot.lines, { { { { 1, 2 }, { 3 } } } })
  fails("series 1: want { rows", "a series without rows", plot.scatter, { { label = "x" } })
  fails("row 1: want { name, value }", "bars without values", plot.bars, { { "a" } })
  fails("want numbers", "a histogram of nothing", plot.histogram, {})
  fails("two dimensions", "a map of four", plot.heat, c.tensor { shape = { 1, 2, 3, 4 } })
  fails("a range: want", "a range the wrong way round", plot.lines, { { rows } }, { x_range = { 2, 1 } })
end

return function(args)
  ticks()
  if pcall(c.object, "canvas", { width = 1, height = 1 }) then pictures(args.output)
  else print("# SKIP no pictures: the plugin draw-cairo is not there") end
  print("1.." .. n)
end
