-- Movement (Sanh et al. 2020): removes weights that training moves towards 0, whatever their size.
-- The scores are summed over all steps.
return require "lib.prune".schedule {
  about = "All layers by one threshold on movement, the running sum of -weight * gradient, by cubic steps.",
  keep = 0.1,
  criterion = function(weight, gradient, state)
    local towards = weight:times(gradient)
    state.sum = state.sum and state.sum:plus(towards, -1) or towards:times(-1)
    return state.sum
  end,
  saliency = { batches = 16, batch = 32 },
  rates = "cubic", steps = 8, scan = false,
  train = { epochs = 1, rate = 0.005 },
  finish = { epochs = 4, rate = 0.01, policy = "cosine" },
}
