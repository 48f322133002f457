-- One step, and no other: "fixed" is the highest, "fixed,at=lowest" the lowest, "fixed,at=480e6" that
-- frequency (numbers below 100000 are megahertz). What lies between two steps is the lower one; nothing is
-- ever above what the machine was found with. All knobs with "all": fixed,all,at=highest.
-- It is what table 5.1 of W18 calls fixed frequencies, and what other policies are compared with.
return {
  step = function(seen)
    local at = seen.options.at or "highest"
    if type(at) == "number" and at < 1e5 then at = at * 1e6 end
    if seen.options.all then return { ["*"] = at } end
    return at
  end,
}
