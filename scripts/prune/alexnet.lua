-- AlexNet, pruned as in Hu Wang's thesis (3.3.3): fc6, fc7 and fc8 to 15% of their weights.
return require "lib.prune".schedule {
  about = "AlexNet as in Wang's thesis: fc6, fc7 and fc8 to 15%, by falling shares, trained on in between.",
  layers = { fc6 = 0.15, fc7 = 0.15, fc8 = 0.15 },
  rates = "falling",
  train = { epochs = 1, rate = 0.0005, batch = 64 },
  finish = { epochs = 2, rate = 0.0005, policy = "cosine" },
  encode = "sparse-csr",
}
