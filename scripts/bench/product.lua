-- A net with one matrix product, of m x k by k x n. `cnnrun bench --gemm M,N,K` loads it.
local c = require "cnnrun"
local a, b = c.input { "a", shape = { "m", "k" } }, c.input { "b", shape = { "k", "n" } }
return c.net { name = "product", inputs = { a, b }, outputs = { c.gemm { "product" } (a, b) } }
