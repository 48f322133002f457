-- Feeds and workers: order, results, what is lost of a live source, mistakes.
local c = require "cnnrun"
local n = 0
-- Prints one numbered TAP line: ok if `good`, else not ok.
local function ok(good, text)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. text)
end

return function(words)
  local digits, net = words[1], c.load(words[2])
  local samples, numbers, alike, ran = c.samples(digits), {}, 0, 0
  local feed = c.feed(digits)
  ok(not feed:live(), "a folder is not live")
  for frame in feed:each() do
    numbers[#numbers + 1] = frame.number
    if frame.number == 1 then feed:through(net, frame.picture, {}) end
    local batch = net:prepare(frame.picture)
    local want = net:run { batch }
    if frame.outputs then
      ran = ran + 1
      local same = true
      for i = 1, #want do same = same and want[i] == frame.outputs[1][i] end
      alike = alike + (same and 1 or 0)
    end
  end
  ok(#numbers == #samples and numbers[1] == 1 and numbers[#numbers] == #samples, "every picture comes, in order")
  ok(ran == alike, "what ran ahead has the outputs that it has without (" .. ran .. ")")
  ok(feed:next() == nil, "behind the end is nothing")
  feed:apart()
  net:close()
  feed:close()
  ok(not pcall(feed.next, feed), "a closed one is refused")
  local good, why = pcall(c.feed, digits, { from = 1 })
  ok(not good and why:find("times to choose by", 1, true), "a folder has no times to choose by")

  local parts = c.feed(digits, { every = 3 })
  local count = 0
  for _ in parts:each() do count = count + 1 end
  ok(count == (#samples + 2) // 3, "each third")

  if words[3] then -- a camera that gives a hundred a second
    local live, last, lost = c.feed(words[3]), 0, 0
    for frame in live:each() do
      if frame.number - last > 1 then lost = lost + 1 end
      last = frame.number
      if lost > 0 or last > 120 then break end
      for _ = 1, 10000000 do end -- slower than it, wherever this runs
    end
    ok(live:live() and lost > 0, "of a camera the latest comes, others are passed over")
    while live:next() do if live:next(1e-9) == false then break end end
    ok(live:next(10).picture, "who waits a short time only gets false, and later the next frame")
    ok(not pcall(live.next, live, -1), "no time before now")
    live:close()
  end

  local able, canvas = pcall(c.object, "canvas", { width = 8, height = 4 })
  if able then
    local worker = c.worker()
    worker:call(canvas, "fill", { 0, 0, 8, 4 }, { 1, 0, 0 })
    local pixels = worker:call(canvas, "pixels")
    worker:call(canvas, "picture", pixels, { 0, 0, 8, 4 })
    ok(worker:send() == true, "a batch goes")
    ok(not pcall(worker.call, worker, canvas, "picture", pixels, { 0, 0, 8, 4 }), "results are of one batch alone")
    ok(not pcall(worker.call, worker, canvas, "nothing"), "no such method")
    worker:close()
    ok(canvas:pixels()[1] == 255, "what was called is done")
    if words[4] then
      local out, by = c.writer(words[4] .. "/%d.png"), c.worker()
      by:write(out, canvas:pixels())
      by:finish(out)
      by:send()
      by:close()
      ok(c.exists(words[4] .. "/1.png") == "file", "a writer is ended by the worker")
      ok(not pcall(out.write, out, canvas:pixels()), "and takes nothing more")
    end
    local failing = c.worker()
    failing:call(canvas, "fill", { 1 }, { 1, 0, 0 })
    failing:send()
    local fine, text = pcall(failing.close, failing)
    ok(not fine and tostring(text):find("4 numbers", 1, true), "a call that fails is told at the end: " .. tostring(text))
    ok(not pcall(failing.send, failing), "and the worker is closed")
  end
  print("1.." .. n)
end
