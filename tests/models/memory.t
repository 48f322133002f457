#!/usr/bin/perl
# Memory of known nets: the arena against its lower bound; SqueezeNet's time is printed only.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Models;
use Test::More;

for my $net (qw(alexnet squeezenet_v1_1 resnet50 vgg16 googlenet)) {
    my ($code, $out, $err) = cnnrun('show', "scripts/nets/$net.lua", '--weights', 'none', '--json');
    my ($whole) = grep { exists $_->{arena_bytes} } objects($out);
    my ($arena, $bound) = map { $whole->{$_} // 0 } qw(arena_bytes arena_bound_bytes);
    ok $code == 0 && $bound > 0 && $arena >= $bound && $arena <= 1.05 * $bound,
        "$net: arena $arena bytes, bound $bound, $whole->{weights_bytes} of weights" or diag $err;
    # No plan takes less than its largest value.
    my @dims = grep { defined } map { $_->{dims} } objects($out);
    my @sizes = map { my $n = 4; $n *= $_ for @$_; $n } @dims;
    my ($largest) = sort { $b <=> $a } @sizes;
    cmp_ok $bound, '>=', $largest, "$net: the bound holds its largest value, $largest";
}

my ($code, $out, $err) = cnnrun('bench', 'scripts/nets/squeezenet_v1_1.lua', '--weights',
    'random:1', '--threads', 1, '--runs', 10, '--json');
my ($bench) = objects($out);
ok $code == 0 && $bench && $bench->{ms_min} > 0, sprintf 'squeezenet_v1_1, one picture, one '
    . 'thread: %.1f ms at best, %.1f in the middle', @{$bench // {}}{qw(ms_min ms_median)} or diag $err;
done_testing;
