-- want: wants a plain name
return require "/etc/passwd"
