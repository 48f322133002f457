#!/usr/bin/perl
# Random weights: activations of deep nets neither vanish nor overflow, so their softmax tells classes apart
# without being certain.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Models;
use Test::More;

for my $net (qw(resnet101 mobilenet_v2 shufflenet_v2 squeezenet_v1_1)) {
    my ($code, $out, $err) = cnnrun('run', "scripts/nets/$net.lua", 'scripts/nets/digits/three.png',
        '--weights', 'random:1', '--channels', 'rgb', '--json', '--top', 1000);
    my ($answer) = objects($out);
    my @scores = map { $_->{score} } @{$answer->{top} // []};
    is scalar @scores, 1000, "$net: a thousand classes" or diag $err;
    ok @scores && $scores[0] < 0.5 && $scores[0] > 1.0001 * $scores[-1] && $scores[-1] > 0,
        sprintf '%s: from %.2g to %.2g', $net, @scores[-1, 0] if @scores;
}
done_testing;
