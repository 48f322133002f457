#!/usr/bin/perl
# Channels in blocks over a whole net: what comes out is what the plain kernels give, with each
# instruction set, for one picture and several, on one thread and three; and layers hand blocks on.
use strict;
use warnings;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
$ENV{CNNRUN_OPENCL} = 'none';

my %steps; # kernels of the whole run, by what was asked
for my $isa ('', 'avx2', 'generic') {
    local $ENV{CNNRUN_CPU_ISA} = $isa;
    delete $ENV{CNNRUN_CPU_ISA} unless $isa;
    for my $how ([1, 1], [1, 3], [3, 3]) {
        my ($batch, $threads) = @$how;
        my $name = ($isa || 'best') . ", $batch of a batch, $threads threads";
        my @lines = split /\n/, `$build/cnnrun --trust --threads $threads tests/plugins/cpu-neon/blocked.lua $batch 2>&1`;
        is($?, 0, "$name: runs") or diag(@lines);
        my @outputs = grep { /\t/ } @lines;
        is(@outputs, 2, "$name: two outputs");
        for (@outputs) {
            my ($n, $off, $most) = split /\t/;
            cmp_ok($most, '>', 0.1, "$name: there is something in $n values");
            cmp_ok($off, '<', 2e-5 * $most, "$name: they are what plain kernels give");
        }
        $steps{"$isa $batch"} = [grep { !/\t/ } @lines];
    }
}
for my $kernel (qw(conv_f32_blocked conv_f32_blocked_depthwise max_pool_f32_blocked resize_f32_blocked
                   average_pool_f32_blocked channelwise_f32_blocked global_average_pool_f32_blocked)) {
    ok((grep { $_ eq $kernel } @{$steps{" 1"}}), "$kernel is taken");
}
# the last convolution's groups are of 20 channels, for which there is no block
is((grep { $_ eq '' || /layout/ } @{$steps{" 1"}}), 1, 'the layout changes once');
is((grep { /^(?:concat|slice)/ } @{$steps{" 1"}}), 0, 'halves and joins of one picture lie in each other');
ok((grep { /concat_f32/ } @{$steps{" 3"}}), 'of several they are copied in blocks');
my @lines = split /\n/, `$build/cnnrun --trust --threads 2 tests/plugins/cpu-neon/blocked.lua 2 layouts 2>&1`;
is($?, 0, 'a net of several layouts runs') or diag(@lines);
for (grep { /\t/ } @lines) {
    my ($n, $off, $most) = split /\t/;
    cmp_ok($most, '>', 0.01, "there is something in $n values");
    cmp_ok($off, '<', 2e-5 * $most, 'they are what plain kernels give');
}
cmp_ok((grep { $_ eq '' || /layout/ } @lines), '>', 1, 'and layouts change');
done_testing;
