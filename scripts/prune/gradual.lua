-- Prunes all layers by one threshold, in large steps at first and small ones in the end. Stops when
-- accuracy falls by more than half a percentage point.
return require "lib.prune".schedule {
  about = "All convolution and dense layers by one threshold on weights, each by its own scale: 3% of all are " ..
          "kept in the end, by cubic steps; stops when more than half a point is lost.",
  keep = 0.03,
  criterion = "magnitude",
  rates = "cubic", steps = 10,
  train = { epochs = 1, rate = 0.003 },
  finish = { epochs = 6, rate = 0.01, policy = "cosine" },
  stop = 0.5,
}
