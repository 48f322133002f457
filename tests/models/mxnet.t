#!/usr/bin/perl
# MXNet's models: digits, and MTCNN's three stages import as they come.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Models;
use Test::More;

my @lenet = map { data("mxnet/lenet/lenet-$_") } 'symbol.json', '0001.params';
with_data('lenet', ['mxnet/lenet/lenet-0001.params', 'mnist'], sub {
    my $net = imported('lenet', @lenet, '--option', 'shape=1,28,28', '--scale', '0.00392156863');
    my $got = right($net, '--data', 'mnist:' . data('mnist'), '--limit', 2000);
    cmp_ok $got->{top1}, '>=', 1840, "lenet: $got->{top1} of $got->{n} digits";
});
for (['det1'], ['det2', 'shape=3,24,24'], ['det3', 'shape=3,48,48'], ['det4', 'shape=15,24,24']) {
    my ($name, $shape) = @$_;
    my @files = map { "mxnet/mtcnn/$name-$_" } 'symbol.json', '0001.params';
    with_data($name, [@files], sub {
        imported($name, (map { data($_) } @files), $shape ? ('--option', $shape) : ());
    });
}
done_testing;
