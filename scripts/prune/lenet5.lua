-- LeNet-5, pruned as in Hu Wang's thesis (3.3.2): ip1 to 5% and ip2 to 10% of their weights, in
-- steps of 5%.
return require "lib.prune".schedule {
  about = "LeNet-5 as in Wang's thesis: ip1 to 5%, ip2 to 10%, by falling shares, trained on in between.",
  layers = { ip1 = 0.05, ip2 = 0.10 },
  rates = "falling",
  train = { epochs = 1, rate = 0.003 },
  finish = { epochs = 6, rate = 0.01, policy = "cosine" },
  encode = "sparse-csr",
}
