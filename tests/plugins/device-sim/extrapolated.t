#!/usr/bin/perl
# Operators without figures in a board take the time of its nearest class, and results say so.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
# What a command prints.
sub run { my $out = `$build/cnnrun @_ 2>&1`; return $out }
# Writes a file; returns its path.
sub write_file { open my $f, '>', "$tmp/$_[0]" or die; print $f $_[1]; close $f; return "$tmp/$_[0]" }
# Writes a board; returns its path.
sub board {
    my ($name, $classes) = @_;
    return write_file("$name.lua", <<"END");
return { clock = "simulated", simulate = true, dry = true, rails = { { name = "chip", idle = 1 } },
  units = { { name = "gpu", rail = "chip", host = true, launch = 0, power = { static = 1 }, classes = { $classes } } } }
END
}
my $head = 'local c = require "cnnrun"' . "\n" . 'return c.net { input = { shape = { 1, 64, 32, 32 } }, ';
my $conv = write_file('conv.lua', $head . 'c.conv { "x", out = 64, kernel = 3, pad = 1, bias = false }, c.relu { "r" }, c.maxpool { "p", kernel = 2, stride = 2 } }') . ' --weights random:1';
my $how = '--device sim:gpu --no-rewrite fuse';
my $known = board('known', '{ op = "conv*", gflops = 1 }, { op = "*", gbytes = 10 }');
my $bytes = board('bytes', '{ op = "dense", gflops = 1 }, { op = "*", gbytes = 10 }');
my $none = board('none', '{ op = "dense", gflops = 1, gbytes = 5 }');

# Milliseconds of each layer on a board.
sub ms { my $out = run("bench $conv --board $_[0] $how --runs 1 --warm 0 --profile --json"); return { map { /"node":"(\w+)".*?"ms":([\d.e+-]+).*?"extrapolated":(\w+)/ ? ($1 => [$2, $3]) : () } split /\n/, $out } }
my ($k, $b, $n) = map { ms($_) } $known, $bytes, $none;
is($k->{x}[1], 'false', 'a class that the board has is not extrapolated');
is($b->{x}[1], 'true', 'one of bytes alone is, for products');
cmp_ok(abs($b->{x}[0] / $k->{x}[0] - 1), '<', 1e-3, 'which take as long as by the nearest class') or diag "$b->{x}[0], $k->{x}[0]";
is("$b->{r}[1] $b->{p}[1]", 'false false', 'but not for what only moves data');
is($n->{p}[1], 'true', 'where no class fits, for that as well');
cmp_ok($n->{p}[0], '>', 0, 'which takes time');
like(run("bench $conv --board $bytes $how --runs 1 --profile"), qr/^ *\d+ +x .* extrapolated$/m, 'a line says so');
like(run("show $conv --board $bytes $how --candidates"), qr/^\* simulated .* extrapolated/m, 'show --candidates, too');
like(run("show $conv --board $bytes $how --candidates --json"), qr/"node":"x".*"extrapolated":true/, 'in JSON');
like(run("place $conv --board $bytes --policy fastest --runs 1"), qr/^ +x +sim:gpu.* extrapolated$/m, 'place names the layer');
like(run("place $conv --board $bytes --policy fastest --runs 1 --json"), qr/"node":"x","placed":"sim:gpu","extrapolated":true/, 'in JSON');
my $gemm = "bench --gemm 64,64,64 --runs 1 --device sim:gpu --board";
like(run("$gemm $bytes"), qr/GFLOPS, extrapolated$/m, 'a product of matrices says so');
like(run("$gemm $bytes --json"), qr/"extrapolated":true/, 'in JSON');
like(run("bench $conv --board $bytes $how --runs 1"), qr/GFLOPS, extrapolated$/m, 'so does a net as a whole');
like(run("bench $conv --board $bytes $how --runs 1 --json"), qr/^\{"net".*"extrapolated":true/m, 'in JSON');
like(run("bench $conv --board $known $how --runs 1 --json"), qr/^\{"net".*"extrapolated":false/m, 'one whose classes the board has does not');

done_testing;
