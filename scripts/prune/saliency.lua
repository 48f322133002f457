-- Prunes all layers by one threshold on the estimated growth of the loss without a weight. The
-- remaining weights are stored in few bits.
return require "lib.prune".schedule {
  about = "All convolution and dense layers by one threshold on saliency (squares of weight and gradient): " ..
          "2% of all are kept in the end, by cubic steps, trained on at length, and share 32 values a layer.",
  keep = 0.02, least = 0.003,
  criterion = "saliency", saliency = { batches = 16, batch = 32 },
  rates = "cubic", steps = 6,
  train = { epochs = 1, rate = 0.005 },
  finish = { epochs = 11, rate = 0.02, policy = "cosine" },
  encode = "sparse-csr:values=shared,bits=5,code=zstd",
}
