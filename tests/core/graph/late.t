#!/usr/bin/perl
# Weights that scales are folded into are made when they are packed: the same answers under a bound of
# memory, where they are made again and again, with nothing folded, and where nothing is packed; and what
# was packed is not kept beside it.
use strict;
use warnings;
use FindBin;
use File::Temp 'tempdir';
use JSON::PP;
use Test::More;

my $root = "$FindBin::Bin/../../..";
my $cnnrun = ($ENV{CNNRUN_BUILD} // "$root/build") . '/cnnrun';
my $dir = tempdir(CLEANUP => 1);

# Writes a file, given as name and text; dies if it can't.
sub put {
    my ($name, $text) = @_;
    open my $f, '>:raw', "$dir/$name" or die "$name: $!";
    print $f $text;
    close $f;
}
put('net.lua', <<'LUA');
local c = require "cnnrun"
local x = c.input { "data", shape = { 1, 3, 24, 24 } }
local y = x
for i = 1, 9 do -- the scale behind the norm is folded, too
    y = c.conv2d { "conv" .. i, out = 256, kernel = 3, pad = 1 } (y)
    y = c.batch_normalization { "norm" .. i } (y)
    y = c.scale_bias { "scale" .. i } (y)
    y = c.relu { "relu" .. i } (y)
end
y = c.softmax { "prob" } (c.flatten { "flat" } (c.global_average_pool { "pool" } (y)))
return c.net { name = "late", inputs = { x }, outputs = { y } }
LUA
put('picture.ppm', "P6\n24 24\n255\n" . join '', map { chr($_ * 37 % 251) } 1 .. 24 * 24 * 3);

# The first JSON row that a command prints; {} if it failed.
sub told {
    my @command = @_;
    open my $p, '-|', $cnnrun, @command, '--json' or die $!;
    my @rows = map { decode_json $_ } <$p>;
    close $p;
    return $? ? {} : $rows[0];
}
is system($cnnrun, '-q', 'convert', "$dir/net.lua", '-o', "$dir/net.cnr", '--weights', 'random:3'), 0,
    'a native file of convolutions with norms and scales';

# The best classes with their scores.
sub scores { return map { [@$_{qw(index score)}] } @{told('run', "$dir/net.cnr", "$dir/picture.ppm", @_)->{top}} }
my @usual = scores();
is scalar @usual, 5, 'it runs';
for (['under a bound', '--memory', '12M'], ['one thread', '--threads', 1], ['nothing folded', '--no-rewrite', 'fold-affine'],
    ['the reference', '--kernel', 'conv=reference'], ['believed', '--no-verify']) {
    my ($how, @options) = @$_;
    my @got = scores(@options);
    my $near = @got == @usual;
    $near &&= $got[$_][0] == $usual[$_][0] && abs($got[$_][1] / $usual[$_][1] - 1) < 1e-3 for 0 .. $#usual;
    ok $near, "the same answer: $how" or diag explain \@got, \@usual;
}

# 256 x 256 filters of 3 x 3, eight times, take 18 MiB; what one kernel packs of them, as show tells.
my $bench = told('bench', "$dir/net.cnr", '--runs', 1, '--no-energy', '--no-verify');
my $small = told('bench', "$root/scripts/nets/lenet5.cnr", '--runs', 1, '--no-energy');
my $mib = 1 << 20;
my $over = ($bench->{peak_rss_bytes} - $small->{peak_rss_bytes} - $bench->{weights_bytes} - $bench->{arena_bytes}) / $mib;
SKIP: {
    skip 'nothing tells what the process took', 1 unless $bench->{peak_rss_bytes} && $small->{peak_rss_bytes};
    cmp_ok $over, '<', 12, sprintf 'no second copy of the weights: %.1f MiB beyond packed ones and arena', $over;
}
# ---- whoever is copied from may go first; a weight that was folded is none to be set ----

put('copy.lua', <<'LUA');
local c = require "cnnrun"
return function(args)
    local net = c.load(args[1])
    local copy = net:copy()
    net:close()
    print(copy:time(1) ~= nil)
end
LUA
is(system("$cnnrun convert $dir/net.lua --weights random:1 -o $dir/net.cnr >$dir/told 2>&1"), 0, 'a file of it');
is(`$cnnrun --trust $dir/copy.lua $dir/net.cnr 2>&1`, "true\n", 'a copy outlives its net');
done_testing;
