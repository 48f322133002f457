#!/usr/bin/perl
# scripts/bench/placement.lua: chapter 4's rows, what is predicted of them, and the simulator's own.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);

my @rows = map { decode_json $_ } `$build/cnnrun --board odroid_xu3,dry $root/scripts/bench/placement.lua --json --net $root/scripts/nets/yolo_v1_tiny.lua -o $tmp/figures`;
is($?, 0, 'it runs');
my %row = map { $_->{row} => $_ } @rows;
is(scalar(grep { $_->{kind} !~ /^(fitted|predicted|measured)$/ } @rows), 0, 'each row is fitted, predicted or measured');
is($row{'W18 4.4, device set'}{ours}, 'gpu4 gpu2', 'the set is the document\'s');
for my $what ('seconds', 'watts', 'joules') {
    my $r = $row{"W18 fig 4.7, greedy, $what"};
    ok($r->{kind} eq 'predicted' && abs $r->{error} < 0.03, "greedy's $what: predicted within 3%") or diag explain $r;
}
my $ratio = $row{'W18 fig 4.7, EDP of greedy over that of our work'};
ok($ratio->{kind} eq 'predicted' && abs $ratio->{error} < 0.03, 'the ratio of EDP as well');
my @measured = grep { $_->{kind} eq 'measured' } @rows;
is(scalar @measured, 6, 'the simulator ran all three');
is(scalar(grep { abs $_->{error} > 0.03 } @measured), 0, 'to the same numbers');
is(scalar(grep { /^W18 fig 4\.[456], / } keys %row), 72, 'figures 4.4 to 4.6 by layer, both strategies');
cmp_ok($row{'W18 fig 4.4, Conv1, greedy'}{ours}, '>', $row{'W18 fig 4.4, Conv1, our work'}{ours},
       'as in figure 4.4, a layer of few maps takes greedy longer');
is(join(' ', map { s{.*/}{}r } sort glob "$tmp/figures/*.svg"), 'fig-4-4.svg fig-4-5.svg fig-4-6.svg fig-4-7.svg', 'the figures are drawn');

done_testing;
