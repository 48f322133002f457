-- The report of an evaluation for the program and for applications (cnnrun/lab.h): text is JSON
-- with `output` (the page to write) and the arguments of lib.eval_report. The net is the caller's.
-- Tensors have an element for each picture: index (from 0), label, answer, share, label's share.
local json = require "lib.json"
local report = require "lib.eval_report"

return function(text, _, net, index, label, answer, share, label_share)
  local about, rows = json.decode(text), {}
  for i = 1, #index do
    rows[i] = { index = index[i] + 1, label = label[i], answer = answer[i], share = share[i],
                label_share = label_share[i] }
  end
  report.write(about.output, net, rows, about)
end
