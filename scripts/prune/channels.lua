-- Prunes whole channels: layers become smaller, so all kernels are faster. The scan finds how many.
return require "lib.prune".schedule {
  about = "Whole channels of convolution and dense layers, as many of each layer as the scan finds that it can lose alone " ..
          "within two points; the net shrinks.",
  unit = "channel",
  scan = { points = 2 },
  rates = "cubic", steps = 5,
  train = { epochs = 1, rate = 0.003 },
  finish = { epochs = 6, rate = 0.01, policy = "cosine" },
  stop = 1,
}
