#!/usr/bin/perl
# The kernels whose tiles follow the vectors, by the instruction sets that this machine would not choose by itself.
# $CNNRUN_CHECK_CASES: more.
use strict;
use warnings;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $cases = $ENV{CNNRUN_CHECK_CASES} // 3;
my $list = `$build/cnnrun plugins --json 2>/dev/null`;
my @kernels = do { my %seen; grep { !$seen{$_}++ } $list =~ /"(\w+_(?:blocked(?:_depthwise)?|winograd(?:_2x2)?|gemm|dot|packed))"/g };
@kernels = grep { !/^(?:adreno|desktop|mali|channelwise)_|_grad_|_w18_/ } @kernels;
cmp_ok scalar @kernels, '>', 8, 'there are kernels';
for my $isa (qw(avx2 generic)) {
    my $told = `$build/cnnrun devices --cpu-isa $isa 2>&1`;
    unless ($told =~ /^cpu .*?^\s+isa\s+$isa$/ms) {
        note "this machine has no $isa";
        next;
    }
    my @wrong;
    for my $kernel (@kernels) {
        my $text = `$build/cnnrun kernelcheck --timeout 200 --cpu-isa $isa --kernel $kernel --device cpu --cases $cases 2>&1`;
        push @wrong, $kernel, grep { /^(not ok|#|cnnrun)/ } split /\n/, $text unless $? == 0 && $text =~ /, 0 failed/;
    }
    ok !@wrong, "$isa: " . @kernels . ' kernels' or diag join "\n", @wrong;
}
my $text = `$build/cnnrun bench scripts/nets/lenet5.lua --weights random:1 --cpu-isa sse9 2>&1`;
ok $? && $text =~ /no instruction set "sse9" here: there are .*generic/, 'one that is not there is refused' or diag $text;
done_testing;
