#!/usr/bin/perl
# Board files: their fitted parameters are what the fit finds, what is told as predicted is, and the
# sums of lib/board.lua are the simulator's.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);

# Writes a file; returns its path.
sub write_file { open my $f, '>', "$tmp/$_[0]" or die; print $f $_[1]; close $f; return "$tmp/$_[0]" }
# A test: both numbers agree.
sub near { my ($is, $want, $what) = @_; ok(abs($is - $want) <= 2e-6 * abs($want) + 5e-6, $what) or diag("$is, want $want") }
# Median milliseconds of a bench.
sub median { my $out = `$build/cnnrun bench --runs 1 --warm 0 --json @_ 2>&1`; return $out =~ /"ms_median":([0-9.e+-]+)/ ? $1 : die $out }

# ---- the fit, and what deleting a row changes ----

my @lines = map { decode_json $_ } `$build/cnnrun $root/scripts/boards/fit.lua --json`;
is($?, 0, 'every board holds what the fit finds');
my %row = map { $_->{row} => $_ } grep { $_->{row} } @lines;
my @predicted = grep { $_->{kind} eq 'predicted' } values %row;
cmp_ok(scalar @predicted, '>=', 9, 'rows that are predicted');
is(scalar(grep { $_->{changes} > 1e-9 } @predicted), 0, 'deleting any of them changes no parameter');
is(scalar(grep { $_->{kind} eq 'fitted' && $_->{changes} < 1e-3 } values %row), 0,
   'deleting any row that was fitted changes one');
for my $what ('seconds', 'watts', 'joules') {
    my $r = $row{"W18 fig 4.7, greedy, $what"};
    is($r->{kind}, 'predicted', "greedy's $what are predicted");
    cmp_ok(abs $r->{error}, '<', 0.03, "within 3%");
}
my $ratio = $row{'W18 fig 4.7, EDP of greedy over that of our work'};
ok($ratio->{kind} eq 'predicted' && abs $ratio->{error} < 0.03, 'and the ratio of EDP');
my %kinds = map { $_->{kind} => 1 } grep { $_->{parameter} } @lines;
is(join(' ', sort keys %kinds), 'assumed data sheet fitted', 'each parameter says what it is');
is(scalar(grep { $_->{parameter} && !length $_->{of} } @lines), 0, 'and of whom, or why');

# no board has more parameters than fitted rows
for my $board ('odroid_xu3', 'odroid_xu3,library=ch3', 'odroid_xu3,library=ch3_scalar', 'snapdragon_820', 'htc_one_m9', 'adreno_330') {
    my @own = grep { $_->{board} eq $board } @lines;
    my (%values, $rows);
    for (@own) {
        $values{ ($_->{of} =~ s/, (?:clusters as|which W18|for what|as im2col).*//r) . ' ' . ($_->{parameter} =~ /(\w+)$/)[0] } = 1
            if $_->{parameter} && $_->{kind} eq 'fitted';
        $rows++ if $_->{row} && $_->{kind} eq 'fitted';
    }
    cmp_ok(scalar keys %values, '<=', $rows, "$board: " . keys(%values) . " parameters of $rows rows");
}

# a recipe that uses what it says that it predicts is found out; so is a board with another value
mkdir "$tmp/boards";
system "cp $root/scripts/boards/*.lua $tmp/boards/";
my $fit = do { local (@ARGV, $/) = "$root/scripts/boards/fit.lua"; <> };
my $recipes = do { local (@ARGV, $/) = "$root/scripts/boards/recipes.lua"; <> };
my $cheat = $recipes =~ s/"W18 fig 4.7, our work, joules" \},/"W18 fig 4.7, greedy, joules" },/r;
isnt($cheat, $recipes, 'a recipe that cheats');
write_file('boards/recipes.lua', $cheat);
write_file('fit.lua', $fit);
my $out = `cd $tmp && $build/cnnrun fit.lua odroid_xu3 2>&1`;
like($out, qr/the fit disagrees with: odroid_xu3/, 'is found out');
my $xu3 = do { local (@ARGV, $/) = "$root/scripts/boards/odroid_xu3.lua"; <> };
mkdir "$tmp/other";
mkdir "$tmp/other/boards";
system "cp $root/scripts/boards/*.lua $tmp/other/boards/";
write_file('other/boards/odroid_xu3.lua', $xu3 =~ s/fitted\(2\.5688/fitted(2.6688/r);
write_file('other/fit.lua', $fit);
$out = `cd $tmp/other && $build/cnnrun fit.lua odroid_xu3 2>&1`;
like($out, qr/disagrees with: odroid_xu3/, 'as a board is that holds another value');

# ---- the sums in Lua are the simulator's ----

my $sums = write_file('sums.lua', <<'END');
local board, nets = require "lib.board", require "boards.nets"
return function(args)
  local b = require("boards." .. args[1])
  if type(b) == "function" then b = b { seed = tonumber(args[2]) } end
  local layers = args[3] == "tiny" and nets.table_4_2() or
    { nets.conv(3, 64, 16, 64, 3, 1), nets.pool(16, 64), nets.conv(16, 32, 24, 32, 3), nets.pool(24, 32), nets.dense(24 * 256, 50, 1) }
  local shares = {}
  for i = 4, #args, 2 do shares[#shares + 1] = { unit = args[i], share = tonumber(args[i + 1]) } end
  print(string.format("%.9g %.9g", board.run(b, layers, shares)))
end
END
my $body = <<'END';
local c = require "cnnrun"
return c.net { input = { shape = { 1, 3, 64, 64 } }, place = PLACE,
  c.conv { "c1", out = 16, kernel = 3, pad = 1 }, c.relu { "r1" }, c.maxpool { "p1", kernel = 2, stride = 2 },
  c.conv { "c2", out = 24, kernel = 3, pad = 1 }, c.maxpool { "p2", kernel = 2, stride = 2 }, c.dense { "fc", out = 50 }, c.relu { "r2" } }
END
my $small = write_file('small.lua', $body =~ s/PLACE/nil/r) . ' --weights random:1';
my $cut = write_file('cut.lua', $body =~ s/PLACE/{ ["*"] = { axis = 1, ["sim:gpu4"] = 0.6, ["sim:gpu2"] = 0.3, ["sim:cpu"] = 0.1 } }/r) . ' --weights random:1';
for my $seed (1 .. 6) {
    for my $unit ('big', 'little') {
        my ($seconds) = split ' ', `$build/cnnrun $sums drawn $seed small $unit 1`;
        near(median("$small --board drawn,seed=$seed,dry --device sim:$unit"), $seconds * 1e3, "drawn board $seed, $unit: seconds");
    }
}
my ($seconds) = split ' ', `$build/cnnrun $sums odroid_xu3 - small cpu 0.1 gpu2 0.3 gpu4 0.6`;
my $parts = median("$cut --board odroid_xu3,dry");
ok($parts <= $seconds * 1e3 && $parts > 0.98 * $seconds * 1e3,
   'layers in three parts: the longest of each and what a split costs, or less, since nobody waits for all') or diag("$parts, $seconds");
near(median("$root/scripts/nets/yolo_v1_tiny.lua --weights random:1 --board odroid_xu3,dry --device sim:gpu4"), 1900,
     "the GPU takes the 1.9 s of the document");

# ---- drawn boards ----

my @gauges = map { scalar `$build/cnnrun gauges --board drawn,seed=$_` } 5, 5, 6;
is($gauges[0], $gauges[1], 'a seed is a board');
isnt($gauges[0], $gauges[2], 'another seed another');
like(`$build/cnnrun gauges --board drawn,seed=x 2>&1`, qr/seed: want a whole number/, 'and no seed is reported');

done_testing;
