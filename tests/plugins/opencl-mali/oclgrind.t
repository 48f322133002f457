#!/usr/bin/perl
# Every OpenCL kernel on Oclgrind, an interpreter that tells of accesses out of range, races and wrong calls,
# and of some also values that nobody wrote; and that it tells of those, by kernels made wrong.
# $CNNRUN_CHECK_CASES, $CNNRUN_CHECK_SEED: further than every day.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

my $build = abs_path($ENV{CNNRUN_BUILD} // './build');
my $here = abs_path(dirname($0));
my $root = abs_path("$here/../../..");
my $dir = tempdir(CLEANUP => 1);
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-mali.so";
plan skip_all => 'no oclgrind (package oclgrind)' if system "oclgrind --version >$dir/out 2>&1";
my $warnings = `cc -shared -fPIC -o $dir/shim.so $here/shim.c -ldl 2>&1`;
plan skip_all => "no C compiler, or no CL/cl.h: $warnings" if $?;
delete @ENV{grep { /^(SHIM_|CNNRUN_OPENCL|CNNRUN_KERNEL_DIR|OCLGRIND_)/ } keys %ENV};
$ENV{CNNRUN_OPENCL} = "$dir/shim.so";
$ENV{SHIM_LIBRARY} = 'liboclgrind-rt.so'; # oclgrind says where it is
$ENV{CNNRUN_OPENCL_HALF} = 'emulated'; # it has none
$ENV{SHIM_ALONE} = 1; # its compiler does not survive two programs at once

# What the program says, and what Oclgrind does, which is all that it writes there. Its race detector loses
# count where it has threads.
sub told {
    my ($family, $watched, @words) = @_;
    local $ENV{CNNRUN_OPENCL_CLASS} = $family eq 'nvidia' ? 'opencl-desktop' : 'opencl-mali';
    local $ENV{CNNRUN_OPENCL_TUNE} = $family;
    # programs that are optimised have instructions that it can't follow values through
    my @more = $watched ? ('--uninitialized', '--build-options', '-cl-opt-disable') : ();
    local $ENV{CNNRUN_CACHE} = "$dir/cache" . ($watched ? '-plain' : '');
    my @on = ('oclgrind', '--data-races', '--check-api', '--num-threads', 1, '--max-errors', 20, @more);
    my $code = system 'sh', '-c', 'exec "$@" >"$0/out" 2>"$0/err"', $dir, @on, "$build/cnnrun", @words;
    my ($out, $err) = map { local (@ARGV, $/) = "$dir/$_"; <> // '' } qw(out err);
    return ($code >> 8, $out, $err);
}

my @check = ('kernelcheck', '--device', 'opencl:0', '--cases', $ENV{CNNRUN_CHECK_CASES} // 1, '--seed',
             $ENV{CNNRUN_CHECK_SEED} // 1, '--timeout', 200);
# A test: a run under oclgrind is without fault.
sub clean {
    my ($what, $family, $watched, @words) = @_;
    my ($code, $out, $err) = told($family, $watched, @check, @words);
    ok $code == 0 && $err eq '' && $out =~ /^# \d+ kernels and (?:operators|plans on .*), [1-9]\d* cases, 0 failed/m, $what
        or diag join "\n", "exit $code", (grep { /^(not ok|#)/ } split /\n/, $out), $err;
}

# Kernels of many operators by a few of them; of the rows of tiles, which differ in numbers, some.
my %few = (elementwise_f32 => [qw(add relu prelu)], move_f32 => [qw(transpose slice resize)],
           view_copy => ['reshape'], channel_affine_f32 => [qw(batch_normalization scale_bias)]);
my (undef, $list) = told('pocl', 0, 'plugins', '--json');
my @all = do { my %seen; grep { !$seen{$_}++ } $list =~ /"((?:mali|desktop)_\w+)"/g };
for my $kernel (grep { /^mali_/ } @all) {
    clean($_ ? "$kernel, $_" : $kernel, 'pocl', 0, '--kernel', $kernel, $_ ? ('--op', $_) : ())
        for @{$few{$kernel =~ s/^mali_//r} // ['']};
}
clean("mali_conv_f32_$_, a Mali's numbers", 'mali', 0, '--kernel', "mali_conv_f32_$_")
    for qw(panel0 panel1 panel2 winograd2 winograd4);
my $tiles = $ENV{CNNRUN_CHECK_CASES} ? qr/tile\d/ : qr/f32_tile[0245]|(?:f16|half)_tile0/;
my @own = grep { /^desktop_.*(?:$tiles|_gemv|_softmax_f32|_global_average_pool_f32)$/ } @all;
clean($_, 'nvidia', 0, '--kernel', $_) for @own;
cmp_ok scalar @own, '>=', 10, 'opencl-desktop has kernels of its own';

clean("the documents' kernels", 'pocl', 0, '--plugin', 'opencl-documents');
clean('kernels on the nodes of a net, and its plan', 'nvidia', 0, '-q', '--net', 'tests/kernelcheck/shared.lua');

# It knows nothing of images, and does not survive vectors of 16 and some calls.
clean("$_: no value that nobody wrote", /^desktop/ ? 'nvidia' : 'mali', 1, '--kernel', $_)
    for qw(mali_conv_f32_buffer mali_conv_f32_depthwise mali_conv_f32_panel0 mali_dense_f32_buffer
           mali_average_pool_f32 mali_lrn_f32 mali_softmax_f32 mali_concat_copy desktop_conv_f32_tile5
           desktop_dense_f32_gemv desktop_global_average_pool_f32);

# ---- it does tell ----

mkdir "$dir/kernels";
mkdir "$dir/kernels/common";
$ENV{CNNRUN_KERNEL_DIR} = "$dir/kernels";
for (['softmax', 'mali', 'mali_softmax_f32', 'from\[i \* step\] -', 'from[i * step + (1 << 20)] -', 'Invalid read'],
     ['gemv', 'nvidia', 'desktop_dense_f32_gemv', 'barrier\(CLK_LOCAL_MEM_FENCE\);', '', 'data race'],
     ['softmax', 'mali', 'mali_softmax_f32', 'sum = 0\.0f', 'sum', 'ninitialized']) {
    my ($file, $family, $kernel, $right, $wrong, $report) = @$_;
    my $text = do { local (@ARGV, $/) = "$root/kernels/common/$file.cl"; <> };
    my $changes = $text =~ s/$right/$wrong/g;
    open my $to, '>', "$dir/kernels/common/$file.cl" or die;
    print $to $text;
    close $to;
    my ($code, $out, $err) = told($family, $report =~ /^n/ ? 1 : 0, @check, '--kernel', $kernel);
    ok $changes && $err =~ /$report/, "$file made wrong: $report" or diag "exit $code\n$out$err";
}
done_testing;
