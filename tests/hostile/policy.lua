-- The last row of each node, and what it saw.
return {
  place = function(rows, seen)
    local last = {}
    for _, r in ipairs(rows) do last[r.node] = r end
    return last, { seen.net, seen.options, nodes = #seen.nodes }
  end,
}
