-- want: the error is a table value
error({ 1, 2, 3 })
