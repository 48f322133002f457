#!/usr/bin/perl
# Kernels that normalise, resize and reduce rows, and those of recurrent layers, on nodes drawn with several seeds and on
# each instruction set. Among these cases are infinities in a row whose mean is asked for too (seed 2, case 71), an
# infinite cell without peepholes (lstm, seed 3, case 8) and thirty steps of a chaotic rnn (seed 3, case 15).
use strict;
use warnings;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $cases = $ENV{CNNRUN_CHECK_CASES} // 72;
for my $isa (qw(avx512 avx2 generic)) {
    next unless `$build/cnnrun devices --cpu-isa $isa 2>&1` =~ /^cpu .*?^\s+isa\s+$isa$/ms;
    for my $kernel (map { "${_}_f32" } qw(layer_normalization instance_normalization group_normalization resize upsample)) {
        my $text = `$build/cnnrun kernelcheck --cpu-isa $isa --kernel $kernel --device cpu --seed 2 --cases $cases 2>&1`;
        ok $? == 0 && $text =~ /, $cases cases, 0 failed/, "$isa: $kernel" or diag $text;
    }
    for my $kernel (qw(lstm_f32_packed gru_f32_packed rnn_f32_packed reduce_sum_f32 reduce_l2_f32 grid_sample_f32
                       split_bytes)) {
        my $text = `$build/cnnrun kernelcheck --cpu-isa $isa --kernel $kernel --device cpu --seed 3 --cases 30 2>&1`;
        ok $? == 0 && $text =~ /, 30 cases, 0 failed/, "$isa: $kernel" or diag $text;
    }
    my $text = `$build/cnnrun kernelcheck --cpu-isa $isa --kernel conv_f32_winograd_volume --device cpu --seed 2 --cases 30 2>&1`;
    ok $? == 0 && $text =~ /, ([1-9]\d*) cases, 0 failed/, "$isa: volumes by Winograd's method" or diag $text;
}
done_testing;
