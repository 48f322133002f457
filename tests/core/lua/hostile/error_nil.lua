-- want: the error is a nil value
error()
