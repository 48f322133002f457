#!/usr/bin/perl
# Every row of the tables for GPUs with local memory of their own, on what OpenCL device there is: the
# numbers are forced. Programs built once are kept in the build folder. $CNNRUN_CHECK_CASES: more.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib "$FindBin::Bin/../..";
use Programs 'quick';

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-desktop.so";
$ENV{CNNRUN_OPENCL_CLASS} = 'opencl-desktop';
$ENV{CNNRUN_OPENCL_TUNE} = 'nvidia';

my $list = `$build/cnnrun plugins --json 2>/dev/null`;
my @kernels = do { my %seen; grep { !$seen{$_}++ } $list =~ /(desktop_\w+_(?:tile\d?|gemv))\b/g };
# rows of halves differ by how they load alone: of those one, but in the long way
@kernels = grep { !/_f16_tile[1-9]/ } @kernels unless $ENV{CNNRUN_CHECK_CASES};
cmp_ok scalar @kernels, '>', 8, 'there are rows';
for my $kernel (@kernels) {
    my @words = ('--device', 'opencl:0', '--kernel', $kernel, '--cases', $ENV{CNNRUN_CHECK_CASES} // 1,
                 '--timeout', 200); # compilers are slow beside others
    my $text = `$build/cnnrun kernelcheck @words 2>&1`;
    my $code = $? >> 8;
    plan skip_all => 'no OpenCL device' if $code == 6 && $text =~ /no such device/;
    ok $code == 0 && $text =~ /, 0 failed, 0 not judged$/m, $kernel
        or diag join "\n", grep { /^(not ok|#|cnnrun)/ } split /\n/, $text;
}
done_testing;
