#!/usr/bin/perl
# Real and simulated devices have different clocks: using both together is refused, with their names.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
my $net = "$root/scripts/nets/lenet5.lua --weights random:1";
my $digit = "$root/scripts/nets/digits/three.png";
my $board = '--board odroid_xu3,dry';

# What a command prints.
sub run { my $out = `$build/cnnrun @_ 2>&1`; return $out }
# Writes a file; returns its path.
sub write_file { open my $f, '>', "$tmp/$_[0]" or die; print $f $_[1]; close $f; return "$tmp/$_[0]" }
# A test: a command is refused, and the message has these names.
sub refused {
    my ($what, $names, $command) = @_;
    my $out = $command =~ /\.lua .*\.lua/ ? run($board, $command) : run($command, $board); # a script's words are its own
    my ($real, $simulated) = @$names;
    ok($? != 0, "$what: an error");
    like($out, qr/$real: a real device beside \Q$simulated\E, which is simulated.*name devices of one kind/s, 'which names both');
    unlike($out, qr/measured|predicted|\d ms\b/, 'and tells no time');
}

# ---- both in one set ----

my @both = ('cpu', 'sim:gpu4');
for my $order ('cpu,sim:gpu4', 'sim:gpu4,sim:cpu,cpu') {
    refused("place on $order", \@both, "place $net --policy best --devices $order");
    refused("bench on $order", \@both, "bench $net --devices $order");
    refused("show --candidates on $order", \@both, "show $net --candidates --devices $order");
    refused("tune on $order", \@both, "tune $net --cache $tmp/cache --devices $order");
    refused("run on $order", \@both, "run $net $digit --devices $order");
}
my $wish = write_file('wish.lua', <<'NET');
local c = require "cnnrun"
return c.net { input = { shape = { 1, 8 } }, place = { b = "cpu" }, c.dense { "a", out = 8 }, c.dense { "b", out = 8 } }
NET
refused("a net's own wish", \@both, "bench $wish --weights random:1");
my $policy = write_file('mixed.lua', 'return { devices = { "sim:gpu4", "cpu" }, place = function() return {} end }');
refused("a policy's own devices", \@both, "bench $net --policy $policy");
my $script = write_file('place.lua', <<'SCRIPT');
local c = require "cnnrun"
return function(args)
  local net = c.load(args[1], { weights = "random:1" })
  net:place { policy = "best", devices = { "cpu", "sim:gpu4" } }
end
SCRIPT
refused('a script', \@both, "$script $root/scripts/nets/lenet5.lua");

# ---- one alone that the board's clock does not measure ----

for my $command ("bench $net --device cpu", "place $net --policy best --devices cpu", "tune $net --cache $tmp/cache --device cpu") {
    my $out = run($command, $board);
    ok($? != 0 && $out =~ /cpu: a real device can't be timed by a simulated board's clock; leave --board out/, "$command: refused") or diag $out;
}

# ---- what stays as it is ----

like(run("run $net $digit --device cpu $board"), qr/%/, 'a real device answers beside a board');
like(run("bench $net --runs 1 $board --devices sim:gpu4,sim:cpu"), qr/ms/, "the board's devices are timed together");
like(run("bench $net --runs 1 --device cpu"), qr/ms/, 'and the real one without a board');
mkdir "$tmp/$_" for 'proc', 'proc/device-tree';
write_file('proc/device-tree/model', "Hardkernel Odroid XU3\0");
$ENV{CNNRUN_SYSFS_ROOT} = $tmp;
like(run("bench $net --runs 1 --device cpu $board"), qr/ms/, 'on the machine that the board describes nothing is simulated, so that it is timed');

done_testing;
