#!/bin/sh
# Functions that scripts prune with: parts of tensors, nets of other sizes, encoded weights, the validation
# part.
build=${CNNRUN_BUILD:-build}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
i=0; while [ $i -lt 60 ]; do for d in zero:0 one:1 two:2; do echo "$PWD/scripts/nets/digits/${d%:*}.png ${d#*:}"; done; i=$((i + 1)); done >"$dir/list.txt"
cat >"$dir/test.lua" <<'EOF'
local c = require "cnnrun"
local n = 0
local function ok(good, what)
  n = n + 1
  print((good and "ok " or "not ok ") .. n .. " - " .. what)
end
local function list(t)
  local all, count = {}, 1
  for _, size in ipairs(t:shape()) do count = count * size end
  local flat = t:reshaped { count }
  for i = 1, count do all[i] = ("%g"):format(flat[i]) end
  return table.concat(all, " ")
end
local function fails(what, why, f, ...)
  local good, text = pcall(f, ...)
  ok(not good and tostring(text):find(why, 1, true), what .. (good and "" or ": " .. tostring(text):gsub("\n", " ")))
end
return function(args)
  local t = c.tensor { shape = { 4, 2 }, data = { 1, -9, 2, 1, 3, 1, 4, -1 } }
  ok(list(t:pruned(0.25)) == "0 -9 0 0 0 0 4 0", "the largest elements stay")
  ok(list(t:pruned(0.5, { block = 2 })) == "0 -9 0 1 3 0 4 0", "or blocks of rows, column by column")
  ok(list(t:pruned(0.25, { block = 3 })) == "0 0 0 0 0 0 4 0", "the last one may be shorter")
  local by = c.tensor { shape = { 4, 2 }, data = { 8, 7, 6, 5, 4, 3, 2, 1 } }
  ok(list(t:pruned(0.5, { by = by })) == "1 -9 2 1 0 0 0 0", "by what another tensor says")
  fails("which has its shape", "same shape", t.pruned, t, 0.5, { by = c.tensor { shape = { 2 }, data = { 1, 2 } } })
  fails("no block of 0", "block", t.pruned, t, 0.5, { block = 0 })
  ok(t:density(1) == 0.5 and t:density() == 1, "the density above a size")
  local norms = t:norms()
  ok(#norms == 4 and math.abs(norms[1] - 82 ^ 0.5) < 1e-12 and math.abs(norms[3] - 10 ^ 0.5) < 1e-12, "norms by row")
  ok(list(t:taken(1, { 4, 1 })) == "4 -1 1 -9" and list(t:taken(2, { 2 })) == "-9 1 1 -1", "parts along an axis")
  fails("that are there", "1 to 4", t.taken, t, 1, { 5 })
  fails("along one that is", "axis", t.taken, t, 3, { 1 })

  local net = c.load("nets.lenet5")
  local one = { 2, 3, 5 }
  local small = net:resized { attributes = { conv1 = { out = 3 } }, weights = {
    ["conv1.weight"] = net:weight "conv1.weight":taken(1, one), ["conv1.bias"] = net:weight "conv1.bias":taken(1, one),
    ["conv2.weight"] = net:weight "conv2.weight":taken(2, one) } }
  ok(small:layers()[2].sizes[2] == 3 and #net:weight "conv1.weight":shape() == 4, "a net of other sizes")
  ok(net:weight "conv1.weight":shape()[1] == 20, "is one of its own")
  small:save(args[2])
  ok(c.load(args[2]):weight "conv2.weight":shape()[2] == 3, "and is written so")
  ok(small:train { data = args[1], epochs = 1, batch = 10 }.epochs == 1, "and trained")
  fails("what does not fit together is told", "out is 20", net.resized, net,
        { weights = { ["conv1.weight"] = net:weight "conv1.weight":taken(1, one) } })
  fails("so is a weight that is not there", "no such weight", net.resized, net, { weights = { x = t } })
  fails("an attribute", "no attribute", net.resized, net, { attributes = { conv1 = { turns = 3 } } })
  fails("a layer", "no such layer", net.resized, net, { attributes = { conv9 = { out = 3 } } })

  local part = net:evaluate { data = args[1], validation = 0.25 }
  local other = net:evaluate { data = args[1], validation = 0.25, validation_seed = 2 }
  ok(part.n == 45 and other.n == 45 and part.loss ~= other.loss, "only the part that training judges by, by its seed")
  local trained = net:copy():train { data = args[1], epochs = 1, rate = 0, validation = 0.25 }
  ok(trained.validated == 45 and math.abs(trained.best - part.top1) < 1e-12, "which is the same part")

  local sparse = net:copy()
  sparse:set_weight("ip1.weight", net:weight "ip1.weight":pruned(0.1))
  local before = sparse:evaluate { data = args[1] }
  local count, dense, packed = sparse:encode("sparse-csr", "ip1")
  ok(count == 1 and packed < dense / 2, "weights in another encoding")
  ok(math.abs(sparse:evaluate { data = args[1] }.loss - before.loss) < 1e-5, "give the same answers")
  fails("one that is known", "no encoding of that name", sparse.encode, sparse, "nosuch")
  local kind, bytes = c.exists(args[2])
  ok(kind == "file" and bytes > 100000, "what a file takes")
  print("1.." .. n)
end
EOF
if [ ! -e "$build/plugins/sparse-csr.so" ]; then echo "1..0 # SKIP sparse-csr was not built"; exit 0; fi
"$build/cnnrun" "$dir/test.lua" "images:$dir/list.txt" "$dir/small.cnr"
