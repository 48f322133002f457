-- want: attempt to index a nil value
_ENV = nil
return print
