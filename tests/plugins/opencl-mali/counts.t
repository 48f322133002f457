#!/usr/bin/perl
# What GPUs that are not here would be asked for: tests/bench/opencl_counts.pl finds every family of Malis and
# Adrenos within its limits, on a net with layers of all kinds; and kernels made worse beyond them.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

my $build = abs_path($ENV{CNNRUN_BUILD} // './build');
my $root = abs_path(dirname($0) . '/../../..');
my $dir = tempdir(CLEANUP => 1);
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'the plugin was not built (opencl-headers)' unless -e "$build/plugins/opencl-mali.so";
plan skip_all => 'no oclgrind (package oclgrind)' if system "oclgrind --version >$dir/out 2>&1";
plan skip_all => 'no clang with amdgcn (package clang)' if system 'clang --print-targets 2>&1 | grep -q amdgcn';
$ENV{CNNRUN} = "$build/cnnrun";

# Writes a file, given as path and text; dies if it can't.
sub write_file {
    my ($path, $text) = @_;
    open my $to, '>', $path or die "$path: $!";
    print $to $text;
    close $to;
}
write_file("$dir/net.lua", <<'END');
local c = require "cnnrun"
return c.net {
  name = "kinds",
  input = { "data", shape = { "batch", 3, 56, 56 }, channels = "rgb" },
  c.conv2d { "wide", out = 16, kernel = 7, stride = 2, pad = 3 }, c.relu {},
  c.conv2d { "square", out = 16, kernel = 3, pad = 1 }, c.relu {},
  c.conv2d { "strided", out = 24, kernel = 3, stride = 2, pad = 1 },
  c.conv2d { "depthwise", out = 24, kernel = 3, pad = 1, groups = 24 },
  c.conv2d { "pointwise", out = 64, kernel = 1 }, c.relu {},
  c.maxpool { "pool", kernel = 2, stride = 2 },
  c.conv2d { "small", out = 32, kernel = 5, pad = 2 },
  c.dense { "dense", out = 40 },
  c.softmax { "prob" },
}
END
# Status and output of the counts.
sub counts {
    my $text = `perl $root/tests/bench/opencl_counts.pl @_ $dir/net.lua 2>&1`;
    return ($? >> 8, $text);
}

for my $family (qw(midgard mali31 mali adreno3 adreno4 adreno adreno7)) {
    my ($code, $text) = counts($family);
    my @kernels = $text =~ /^(?:conv|dense|depthwise|pool|softmax)\w* .*\d$/mg;
    ok $code == 0 && @kernels >= 6, "$family: " . @kernels . ' kernels are within their limits' or diag $text;
}

mkdir "$dir/kernels";
mkdir "$dir/kernels/common";
$ENV{CNNRUN_KERNEL_DIR} = "$dir/kernels";
for (['mali', 'conv_panel', '"unroll 1"', '"unroll"', 'scratch'],
     ['mali', 'softmax', 'float largest', 'barrier(CLK_LOCAL_MEM_FENCE); float largest', 'barriers'],
     ['mali', 'dense_packed', '\* K \+ k\]', '* K + k] + x[k] + x[k + 1]', 'bytes'],
     ['adreno', 'conv_packed', 'READ4\(weight, nearest, .*\)', '(real4)(1.0f)', 'images']) {
    my ($family, $file, $right, $wrong, $what) = @$_;
    my $text = do { local (@ARGV, $/) = "$root/kernels/common/$file.cl"; <> };
    my $changes = $text =~ s/$right/$wrong/g;
    write_file("$dir/kernels/common/$file.cl", $text);
    my ($code, $told) = counts($family);
    ok $changes && $code == 1 && $told =~ /^beyond its limit: $family: \w+.*: $what \d/m,
        "$file made worse: $what" or diag "exit $code: $told";
    unlink "$dir/kernels/common/$file.cl";
}
done_testing;
