#!/usr/bin/perl
# The documents' OpenCL kernels agree with the references on the first OpenCL device, whichever plugin opens it,
# and run only where they are named.
use strict;
use warnings;
use JSON::PP;
use Test::More;
use FindBin;
use lib "$FindBin::Bin/../..";
use Programs 'quick';

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-documents.so";

for my $class ('opencl-mali', 'opencl-desktop') {
    local $ENV{CNNRUN_OPENCL_CLASS} = $class;
    my $text = `$build/cnnrun kernelcheck --plugin opencl-documents --device opencl:0 --cases 4 --timeout 200 2>&1`;
    my $code = $? >> 8;
    plan skip_all => 'no OpenCL device' if $code == 6 && $text =~ /no such device/;
    is $code, 0, "on a device of $class they agree with the references" or diag $text;
    like $text, qr/^# 17 kernels and operators, 68 cases, 0 failed, 0 not judged$/m, 'each in some case';
}

my @net = ('scripts/nets/lenet5.lua', '--weights', 'random:1', '--device', 'opencl:0');
# Kernels by operator.
sub kernels {
    my %by = map { $_->{op} => $_->{kernel} } grep { $_->{kernel} } map { decode_json $_ } grep { /^\{/ } `$build/cnnrun show @net --json @_ 2>&1`;
    return \%by;
}
my ($own, $forced) = (kernels(), kernels('--kernel', 'conv=conv_f32_w18_dot', '--kernel', 'dense=dense_f32_w18_scalar'));
unlike join(' ', values %$own), qr/_(?:w18|s16)_/, 'nobody else gets them';
is "@$forced{'conv', 'dense'}", 'conv_f32_w18_dot dense_f32_w18_scalar', 'by name they run';

my $check = `$build/cnnrun kernelcheck --net scripts/nets/lenet5.lua --device opencl:0 --kernel conv_f32_w18_dot --timeout 200 2>&1`;
is $? >> 8, 0, 'LeNet-5\'s convolutions by im2col and dot() are those of the reference' or diag $check;
done_testing;
