#!/usr/bin/perl
# Every OpenCL kernel against its operator's reference on the first OpenCL device; programs built once
# are kept in the build folder. $CNNRUN_CHECK_CASES, $CNNRUN_CHECK_SEED: further than every day.
use strict;
use warnings;
use File::Temp 'tempdir';
use Test::More;
use FindBin;
use lib "$FindBin::Bin/../..";
use Programs 'quick';

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-mali.so";

my @words = ('--device', 'opencl:0', '--timeout', 200, '--cases', $ENV{CNNRUN_CHECK_CASES} // 2, '--seed',
             $ENV{CNNRUN_CHECK_SEED} // 1);
my $text = `$build/cnnrun kernelcheck @words 2>&1`;
my $code = $? >> 8;
plan skip_all => 'no OpenCL device' if $code == 6 && $text =~ /no such device/;
is $code, 0, 'all kernels agree with the references'
    or diag join "\n", grep { /^(not ok|#|cnnrun)/ } split /\n/, $text;
like $text, qr/^# \d+ kernels and operators, \d+ cases, 0 failed, 0 not judged$/m,
    'each of them in some case';

# ---- infinite neighbours of a point between them, and neighbours that count for nothing ----
for my $op ('resize', 'upsample') {
    my @between = ('--op', $op, '--kernel', 'mali_move_f32', '--device', 'opencl:0', '--cases', 100, '--timeout', 200);
    $text = `$build/cnnrun kernelcheck @between 2>&1`;
    is $? >> 8, 0, "$op takes infinities as the reference does" or diag $text;
}

# ---- a net whose constant one kernel packs and another reads ----
$text = `$build/cnnrun kernelcheck --net tests/kernelcheck/shared.lua --device opencl:0 -q --timeout 200 2>&1`;
is $? >> 8, 0, 'kernels on the nodes of a net' or diag $text;
like $text, qr/^ok \d+ - the plan on opencl:0: 1 cases$/m, '... and its plan as a whole';

# ---- guards on the device: a kernel that writes, or reads, an element too far ----
my $kernels = tempdir(CLEANUP => 1);
mkdir "$kernels/common";
my %changes = (
    'writes' => [qr/wrote past the end of output 0/, 'if (at == end - 1) out[out_at + end] = 1.0f;'],
    'reads' => [qr/got -?nan/, 'if (at == end - 1 && RANK == 1) out[out_at + at] += 1e-30f * a[a_at + dim.s0];']);
for my $what (sort keys %changes) {
    my ($told, $line) = @{$changes{$what}};
    open my $from, '<', 'kernels/common/elementwise.cl' or die $!;
    my $source = do { local $/; <$from> };
    $source =~ s/(    out\[out_at \+ at\] = chain.*;\n)/$1    $line\n/ or die 'elementwise.cl has changed';
    open my $to, '>', "$kernels/common/elementwise.cl" or die $!;
    print $to $source;
    close $to or die $!;
    local $ENV{CNNRUN_KERNEL_DIR} = $kernels;
    $text = `$build/cnnrun kernelcheck --device opencl:0 --op relu --kernel mali_elementwise_f32 --cases 3 --timeout 200 2>&1`;
    is $? >> 8, 1, "a kernel that $what an element too far is not ok";
    like $text, $told, '... and told';
}
done_testing;
