-- A lottery ticket with rewinding (Frankle et al. 2020): prunes by magnitude, restores the weights of
-- an early epoch, and trains again.
return require "lib.prune".schedule {
  about = "The net is trained, pruned, set back to its state after one epoch and trained again, in turns.",
  keep = 0.1, rates = { 0.5, 0.25 }, scan = false,
  rewind = 1,
  train = { epochs = 3, rate = 0.02, policy = "cosine" },
}
