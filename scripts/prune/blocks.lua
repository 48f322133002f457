-- Like gradual.lua, but prunes blocks of four rows, which sparse kernels multiply faster.
return require "lib.prune".schedule {
  about = "All convolution and dense layers in blocks of 4 outputs by one threshold, to 10%.",
  layers = { ["*"] = 0.10 },
  unit = "block",
  rates = "cubic", steps = 8,
  train = { epochs = 1, rate = 0.003 },
  finish = { epochs = 6, rate = 0.01, policy = "cosine" },
  stop = 0.5,
}
