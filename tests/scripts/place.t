#!/usr/bin/perl
# Policies of scripts/place: the algorithms on made-up rows, best.lua against enumeration.
use strict;
use warnings;
use FindBin;
my $root = "$FindBin::Bin/../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
exec "$build/cnnrun", "$root/tests/scripts/place.lua", 6, 4;
