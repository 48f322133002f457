-- Random numbers by a seed, the same on every machine.
return function(seed)
  local whole = math.tointeger(seed)
  if not whole or whole < 0 then error("seed: want a whole number from 0 on, got " .. tostring(seed), 0) end
  local state = (whole * 2654435761 + 12345) & 0xffffffff
  -- The next number in [0, 1), by a xorshift of 32 bits.
  local function next()
    state = state ~ (state << 13) & 0xffffffff
    state = state ~ (state >> 17)
    state = (state ~ (state << 5)) & 0xffffffff
    return state / 4294967296
  end
  for _ = 1, 8 do next() end
  local d = {}
  -- A number between low and high, all equally likely.
  function d.from(low, high) return low + (high - low) * next() end
  -- A number between low and high, evenly in its logarithm.
  function d.scale(low, high) return low * (high / low) ^ next() end
  -- A whole number from low to high, both included.
  function d.whole(low, high) return low + math.floor(next() * (high - low + 1)) end
  return d
end
