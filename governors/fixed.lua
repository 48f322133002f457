-- One step only: "fixed" is the highest, "fixed,at=lowest" the lowest, "fixed,at=480e6" that
-- frequency (numbers below 100000 are megahertz). Between two steps, the lower one is taken; the
-- policy never exceeds the step found on the machine. With "all" it sets every knob:
-- fixed,all,at=highest. Table 5.1 of W18 calls this fixed frequencies; other policies are compared
-- with it.
return {
  step = function(seen)
    local at = seen.options.at or "highest"
    if type(at) == "number" and at < 1e5 then at = at * 1e6 end
    if seen.options.all then return { ["*"] = at } end
    return at
  end,
}
