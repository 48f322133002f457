-- All layers by one threshold on what the loss would grow by without a weight.
return require "lib.prune".schedule {
  about = "All convolution and dense layers by one threshold on saliency (squares of weight and gradient): 2% " ..
          "of all are kept in the end, by cubic steps; stops when more than half a point is lost.",
  keep = 0.02,
  criterion = "saliency", saliency = { batches = 16, batch = 32 },
  rates = "cubic", steps = 12,
  train = { epochs = 1, rate = 0.003 },
  finish = { epochs = 6, rate = 0.01, policy = "cosine" },
  stop = 0.5,
}
