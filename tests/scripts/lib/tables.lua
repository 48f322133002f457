-- lib.csv and lib.json, told as TAP by tables.t; args[1] and args[2] are files to write.
local c = require "cnnrun"
local csv, json = require "lib.csv", require "lib.json"

local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, what)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. what)
end
-- A test: both are equal.
local function is(got, want, what)
  ok(got == want, what)
  if got ~= want then print(("# got  %q\n# want %q"):format(got, want)) end
end
-- A test: f fails with such a message.
local function fails(pattern, what, f, ...)
  local good, why = pcall(f, ...)
  ok(not good and why:find(pattern) ~= nil, what)
  if good or not why:find(pattern) then print("# " .. tostring(why)) end
end

return function(args)
  -- csv
  is(csv.encode({ "a", "b" }, { { 1, 2.5 }, { "x,y", 'say "hi"' }, { "two\nlines", true } }),
     'a,b\n1,2.5\n"x,y","say ""hi"""\n"two\nlines",true\n', "fields that need quotes have them")
  is(csv.encode({ "a", "b" }, { { a = .1, b = 1e-300 }, { b = 1 / 3 } }),
     "a,b\n0.1,1e-300\n,0.3333333333333333\n", "rows by name; all digits, and no more")
  is(csv.encode({ "a" }, { { 0 / 0 }, { -math.huge }, { -7 }, { " x" } }), 'a\nnan\n-inf\n-7\n" x"\n',
     "what is no number; spaces at the ends")
  local rows, columns = csv.decode('\u{feff}name,v,"odd, ""name"""\r\n"a\r\nb",1e3,\r\n"007",-.5,x')
  is(#rows .. #columns .. columns[3], '23odd, "name"', "records end at CR LF, at LF, at the end")
  is(rows[1][1], "a\r\nb", "a field of two lines")
  is(rows[1].v + rows[2].v, 999.5, "numbers, by name as well")
  is(rows[2].name .. rows[1][3], "007", "what is quoted is a text, and nothing is an empty one")
  fails("record 2: 1 fields, and 2 names", "a row too short is told", csv.decode, "a,b\n1\n")
  fails("a quote is not closed", "an open quote, too", csv.decode, 'a\n"b')
  fails("want a comma", "and what stands behind one", csv.decode, 'a\n"b"c')
  csv.write(args[1], { "keep", "top1" }, { { .5, .98 }, { .1, .91 } })
  rows = csv.read(args[1])
  ok(#rows == 2 and rows[2].keep == .1 and rows[2][2] == .91, "written and read again")
  fails("may not be written", "no other file", csv.write, args[1] .. ".x", { "a" }, {})

  -- json
  is(json.encode { a = { 1, 2.5, "q\"\n\127é" }, b = { n = 0 }, c = 0 / 0, d = true, e = {} },
     '{"a":[1,2.5,"q\\u0022\\u000a\\u007fé"],"b":[],"c":null,"d":true,"e":{}}', "values as text")
  is(json.encode { 1 / 3, .1, 3.0 }, "[0.3333333333333333,0.1,3]", "numbers with all their digits")
  is(json.encode({ 1 / 3 }, 3), "[0.333]", "or with so many")
  is(json.encode "\xff", '"?"', "what is no UTF-8")
  local loop = {}
  loop[1] = loop
  fails("inside itself", "a table in itself", json.encode, loop)
  fails("a function value", "a function", json.encode, { print })
  fails("want texts", "odd keys", json.encode, { [true] = 1 })
  local v = json.decode ' { "a" : [1, -2.5e3, true, false, null, []], "\\u00e9\\ud83d\\ude00\\n" : "\127" } '
  ok(v.a[1] == 1 and math.type(v.a[1]) == "integer" and v.a[2] == -2500 and v.a[3] and v.a[4] == false and
     v.a[5] == json.null and v.a[6].n == 0 and #v.a == 6, "a text as values")
  is(v["é😀\n"], "\127", "letters by their numbers")
  is(json.encode(json.decode '{"b":[1,null,{}],"a":"\\ud800"}'), '{"a":"\u{fffd}","b":[1,null,{}]}',
     "there and back")
  for _, bad in ipairs { "", "[1,]", "[1 2]", "{a:1}", '{"a" 1}', "01", "1.", ".5", "+1", "nul", '"a\n"', '"\\x"',
                         '"\\u12"', "[1", '"a', "1 2", "nan", "1e", ("["):rep(200), "0x10" } do
    fails("byte %d+: want", "refused: " .. bad:sub(1, 8):gsub("\n", " "), json.decode, bad)
  end
  json.write(args[2], { rows = rows })
  is(json.read(args[2]).rows[1][1], .5, "written and read again")
  print("1.." .. n)
end
