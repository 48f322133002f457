#!/usr/bin/perl
# Every OpenCL kernel against its operator's reference on the first OpenCL device; programs built once
# are kept in the build folder. $CNNRUN_CHECK_CASES, $CNNRUN_CHECK_SEED: further than every day.
use strict;
use warnings;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-mali.so";
$ENV{CNNRUN_CACHE} //= "$build/opencl-cache";
$ENV{POCL_CACHE_DIR} //= "$build/opencl-cache/pocl";

my @words = ('--device', 'opencl:0', '--timeout', 200, '--cases', $ENV{CNNRUN_CHECK_CASES} // 2, '--seed',
             $ENV{CNNRUN_CHECK_SEED} // 1);
my $text = `$build/cnnrun kernelcheck @words 2>&1`;
my $code = $? >> 8;
plan skip_all => 'no OpenCL device' if $code == 6 && $text =~ /no such device/;
is $code, 0, 'all kernels agree with the references'
    or diag join "\n", grep { /^(not ok|#|cnnrun)/ } split /\n/, $text;
like $text, qr/^# \d+ kernels and operators, \d+ cases, 0 failed, 0 not judged$/m,
    'each of them in some case';
done_testing;
