-- Taylor criterion (Molchanov et al. 2019): the square of the first-order change of the loss without
-- a weight.
return require "lib.prune".schedule {
  about = "All layers by one threshold on (weight * gradient)^2, a running mean over batches, by cubic steps.",
  keep = 0.1,
  criterion = function(weight, gradient, state)
    local change = weight:times(gradient)
    change = change:times(change)
    state.mean = state.mean and state.mean:times(0.9):plus(change, 0.1) or change
    return state.mean
  end,
  saliency = { batches = 16, batch = 32 },
  rates = "cubic", steps = 8, scan = false,
  train = { epochs = 1, rate = 0.005 },
  finish = { epochs = 4, rate = 0.01, policy = "cosine" },
}
