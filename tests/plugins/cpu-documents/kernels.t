#!/usr/bin/perl
# The documents' loops for the processor agree with the references, and run only where they are named.
use strict;
use warnings;
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";

my $text = `$build/cnnrun kernelcheck --plugin cpu-documents 2>&1`;
is $? >> 8, 0, 'they agree with the references' or diag $text;
like $text, qr/^# 8 kernels and operators, 160 cases, 0 failed, 0 not judged$/m, 'each in some case';

# The kernels of LeNet's layers.
sub kernels {
    my $lines = `$build/cnnrun show scripts/nets/lenet5.lua --weights random:1 --device cpu --json @_ 2>&1`;
    my %by = map { $_->{op} => $_->{kernel} } grep { $_->{kernel} } map { decode_json $_ } grep { /^\{/ } split /\n/, $lines;
    diag $lines if !%by;
    return \%by;
}
my @force = map { ('--kernel', $_) } 'conv=conv_f32_naive', 'dense=dense_f32_w18', 'max_pool=max_pool_f32_w18';
my ($own, $forced) = (kernels(), kernels(@force));
unlike join(' ', values %$own), qr/_(?:w18|naive)\b/, 'nobody else gets them';
is join(' ', map { $forced->{$_} } qw(conv dense max_pool)), 'conv_f32_naive dense_f32_w18 max_pool_f32_w18', 'by name they run';

my $check = `$build/cnnrun kernelcheck --net scripts/nets/lenet5.lua --device cpu --kernel conv_f32_naive 2>&1`;
is $? >> 8, 0, 'LeNet-5\'s convolutions by the loop are those of the reference' or diag $check;
done_testing;
