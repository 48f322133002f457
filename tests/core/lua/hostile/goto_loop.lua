-- want: longer than it may
::again:: goto again
