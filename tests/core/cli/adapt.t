#!/usr/bin/perl
# cnnrun --adapt: what it tries and decides, over several starts; sets of devices on a simulated board, by what they
# measure; nets that ask for it themselves.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use JSON::PP;
use List::Util qw(max);

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $tmp = tempdir(CLEANUP => 1);
my $seven = "$root/scripts/nets/digits/seven.png";
$ENV{CNNRUN_CACHE} = '';
$ENV{CNNRUN_OPENCL} = 'none';

# The JSON lines of `cnnrun run`.
sub runs { map { decode_json($_) } grep { /^\{/ } `timeout -s KILL 60 $build/cnnrun run @_ --json 2>$tmp/err` }
# Writes a file; returns its path.
sub spill { my ($name, $text) = @_; open my $f, '>', "$tmp/$name" or die; print $f $text; close $f; return "$tmp/$name" }

# ---- this machine: no figure is a fixed one here ----
my @first = runs("$root/scripts/nets/lenet5.lua", $seven, "--adapt --cache $tmp/cache --repeat 60");
is(scalar @first, 60, 'sixty runs');
is_deeply([keys %{{ map { $_->{top}[0]{index} => 1 } @first }}], [7], 'each has the right answer');
my ($settled) = grep { $first[$_]{adapt}{phase} eq 'settled' } 0 .. $#first;
ok(defined $settled && $settled < 60, "it is settled within 60 runs: $settled");
is($first[0]{adapt}{trying}, 'default', 'the first run is the default');
cmp_ok($first[-1]{adapt}{cost_of_default}, '<=', 1, 'what is decided costs no more than the default');
my @second = runs("$root/scripts/nets/lenet5.lua", $seven, "--adapt --cache $tmp/cache --repeat 3");
is_deeply([map { "$_->{adapt}{phase} $_->{adapt}{followed}" } @second], [('settled 1') x 3], 'the next start follows it');
is($second[0]{adapt}{decided}, $first[-1]{adapt}{decided}, 'and nothing else');
is((runs("$root/scripts/nets/lenet5.lua", $seven, "--adapt --cache $tmp/cache --threads 1"))[0]{adapt}{reason},
    "the environment, or a run's time, changed", 'with other threads it learns anew');

# ---- a simulated board: times and joules are its model's, to which nothing adds noise ----
my $tiny = "$root/scripts/nets/yolo_v1_tiny.lua --weights random:1";
my $board = "--board odroid_xu3,dry --devices sim:gpu4,sim:gpu2,sim:cpu";
my @board = runs($tiny, $seven, "$board --adapt --cache $tmp/board --repeat 36");
my $end = $board[-1]{adapt};
is("$end->{phase} $end->{by}", 'settled edp', 'a board with meters is judged by EDP');
is("@{$end->{devices}}", 'sim:gpu4 sim:gpu2', 'the two GPUs are kept: the processor costs more than it saves');
cmp_ok($end->{cost_of_default}, '<', 0.8, "for $end->{cost_of_default} of the default's EDP");
cmp_ok($end->{stopped}, '>=', 1, 'slow devices were stopped');
my $default = $board[0]{adapt}{run_ms};
cmp_ok(max(map { $_->{adapt}{run_ms} } grep { !/gpu2$/ } @board) / $default, '<', 3.5, 'no run took longer than a stopped trial and a default');
my ($follow) = runs($tiny, $seven, "$board --adapt --cache $tmp/board");
is("$follow->{adapt}{phase} @{$follow->{adapt}{devices}}", 'settled sim:gpu4 sim:gpu2', 'the next start runs by that set');
cmp_ok(abs($follow->{adapt}{run_ms} / $end->{chosen_ms} - 1), '<', 1e-3, 'as fast as it was measured');
my ($placed) = grep { ($_->{row} // '') eq 'measured' } map { decode_json($_) }
    `$build/cnnrun place $tiny $board --policy best --runs 1 --json 2>/dev/null`;
cmp_ok($end->{cost} / $placed->{edp}, '<', 1.02, "its EDP, $end->{cost} J s, is that of placement by measuring every device whole");

# ---- who asks for it ----
my $script = do { open my $f, '<', "$root/scripts/nets/lenet5.lua" or die; local $/; <$f> };
(my $asks = $script) =~ s/c\.net\s*\{/c.net { adapt = true,/;
my ($run) = runs(spill('asks.lua', $asks), $seven, '--weights random:1');
is($run->{adapt}{phase}, 'default', 'adapt = true in a net: it adapts unasked');
($run) = runs("$tmp/asks.lua", $seven, '--weights random:1 --deterministic');
is($run->{adapt}, undef, 'but not where no clock may choose');
(my $wrong = $script) =~ s/c\.net\s*\{/c.net { adapt = 7,/;
runs(spill('wrong.lua', $wrong), $seven, '--weights random:1');
like(do { open my $f, '<', "$tmp/err"; local $/; <$f> }, qr/adapt: want true or false/, 'another value is a mistake');
runs("$root/scripts/nets/lenet5.lua", $seven, '--adapt --deterministic');
like(do { open my $f, '<', "$tmp/err"; local $/; <$f> }, qr/deterministic/, '--adapt --deterministic is refused');

# ---- a policy's numbers ----
for (['"much"', qr/rules\.lua:1: adapt\.stop: want a number/], ['0.1', qr/adapt\.stop is 0\.1: want 1 to 1000/]) {
    my $rules = spill('rules.lua', "return { place = function() end, adapt = { stop = $_->[0] } }\n");
    runs("$root/scripts/nets/lenet5.lua", $seven, "--adapt --policy $rules");
    like(do { open my $f, '<', "$tmp/err"; local $/; <$f> }, $_->[1], "adapt.stop = $_->[0] is told");
}
done_testing;
