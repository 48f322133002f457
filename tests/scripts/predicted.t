#!/usr/bin/perl
# Placements: what was predicted of a plan against what playing it takes, and that no plan is kept which is worse
# than the best device alone. A few by default; with CNNRUN_LONG=1 all policies, nets and boards:
#   CNNRUN_LONG=1 tests/scripts/predicted.t [BOARD...]
use strict;
use warnings;
use Test::More;
use FindBin;
use JSON::PP;
use List::Util qw(max min);

my $root = "$FindBin::Bin/../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $long = $ENV{CNNRUN_LONG};
my @nets = $long ? qw(lenet5 cifar10_quick alexnet squeezenet_v1_1 mobilenet_v1 mobilenet_v2 resnet18 googlenet tiny_yolo_voc)
                 : qw(lenet5);
my @policies = $long ? grep { $_ ne 'joint' } map { m{([^/]+)\.lua$} } sort glob "$root/scripts/place/*.lua" : qw(greedy fastest cnndroid best);
my @boards = $long ? (qw(odroid_xu3 jetson_tk1 htc_one_m9 snapdragon_820 adreno_330), map { "drawn,seed=$_" } 2, 5, 12, 33, 71)
                   : ('jetson_tk1', 'drawn,seed=71');
@boards = @ARGV if @ARGV;

my ($worst, $n, %what) = (1, 0);
# What a policy makes small.
sub objective { return { fastest => 'seconds', least_energy => 'joules' }->{$_[0]} // 'edp' } # as the policies say

# What `place` predicts and measures.
sub place {
    my ($board, $net, $policy) = @_;
    my @lines = map { decode_json $_ } grep { /^\{/ } `$build/cnnrun place $root/scripts/nets/$net.lua --weights random:1 --board $board,dry --runs 1 --policy $policy --json 2>&1`;
    my %row = map { $_->{row} => $_ } grep { $_->{row} } @lines;
    my @alone = grep { ($_->{row} // '') eq 'device' } @lines;
    return fail("$board, $net, $policy: placed") unless $row{predicted} && $row{measured} && $row{chosen};
    my $ratio = $row{measured}{seconds} / $row{predicted}{seconds};
    my $off = max($ratio, 1 / $ratio);
    my $by = objective($policy);
    my $best = min(map { $_->{$by} } @alone);
    ok($off <= 1.3, "$board, $net, $policy: played over predicted is within 1.3") or diag $ratio;
    ok($row{chosen}{$by} <= $best * (1 + 1e-12), 'and what is chosen is no worse than the best device alone') or diag "$row{chosen}{$by} against $best";
    ($worst, $what{worst}) = ($off, "$board, $net, $policy") if $off > $worst;
    $n++;
    $what{over_2_percent}++ if $off > 1.02;
}

for my $board (@boards) {
    for my $net (@nets) { place($board, $net, $_) for @policies }
}
place('jetson_tk1', 'squeezenet_v1_1', 'fastest') unless $long; # joins that are but views on one device
diag(sprintf "%d placements, worst ratio %.3f (%s), over 1.02: %d", $n, $worst, $what{worst} // '', $what{over_2_percent} // 0) if $long;

done_testing;
