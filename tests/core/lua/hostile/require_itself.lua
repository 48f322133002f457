-- want: requires itself
return require "require_itself"
