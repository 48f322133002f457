#!/usr/bin/perl
# Torch7's models: right answers on the digits, and inputs of the sizes that their layers imply.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Models;
use Test::More;

my @digits = ('--data', 'mnist:' . data('mnist'), '--limit', 1000);
with_data('lenet5', ['torch7/lenet5/LeNet5.nn', 'mnist'], sub {
    my $net = imported('lenet5', data('torch7/lenet5/LeNet5.nn'), '--scale', '0.00390625');
    my $got = right($net, @digits);
    near($got->{top1}, 991, 1, "lenet5: $got->{top1} of $got->{n} digits");
});
with_data('hw1', ['torch7/hw1/model.t7', 'mnist'], sub {
    my $net = imported('hw1', data('torch7/hw1/model.t7'), '--option', 'shape=1,28,28',
        '--scale', '0.00392156863');
    my $got = right($net, @digits);
    cmp_ok $got->{top1}, '>=', 965, "hw1: $got->{top1} of $got->{n} digits";
});
with_data('bumper', ['torch7/bumper/model.net', 'torch7/bumper/test.jpg'], sub {
    my $net = imported('bumper', data('torch7/bumper/model.net'));
    my ($code, $out) = cnnrun('show', $net);
    like $out, qr/16x252x252.*32x7x7.*1x1568.*1x2\b/s, 'bumper: shapes from 3 x 256 x 256 on';
});
done_testing;
