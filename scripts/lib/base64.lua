-- Base64: bytes as letters, for JSON.
local M = {}

local letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- The bytes of a string in base64, with = at the end.
function M.encode(bytes)
  local parts = {}
  for i = 1, #bytes, 3 do
    local a, b, c = bytes:byte(i, i + 2)
    local n = a << 16 | (b or 0) << 8 | (c or 0)
    local four = {}
    for k = 1, 4 do
      local v = n >> 6 * (4 - k) & 63
      four[k] = letters:sub(v + 1, v + 1)
    end
    if not c then four[4] = "=" end
    if not b then four[3] = "=" end
    parts[#parts + 1] = table.concat(four)
  end
  return table.concat(parts)
end

return M
