#!/usr/bin/perl
# cnnrun bench: shares of what the device can do, a product of matrices, a run as a trace.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
my $net = "$root/scripts/nets/lenet5.lua --weights random:1";

sub lines { map { decode_json $_ } `$build/cnnrun bench @_ --json 2>/dev/null` }

my ($product) = lines('--gemm 32,48,64 --threads 1 --runs 3');
is($product->{product}, '32,48,64', 'a product of matrices');
is($product->{threads}, 1, 'with the threads that are asked for');
cmp_ok(abs($product->{gflops} / (2 * 32 * 48 * 64 / $product->{ms_min} / 1e6) - 1), '<', 1e-6, 'its GFLOP/s');
cmp_ok($product->{share}, '>', 0, 'as a share of what the device can do');
like(`$build/cnnrun bench --gemm 1,2 2>&1`, qr/--gemm: wanted M,N,K/, 'three sizes are wanted');
like(`$build/cnnrun bench --gemm 1,2,3 $net 2>&1`, qr/want one of them/, 'and no net beside them');
like(`$build/cnnrun bench 2>&1`, qr/which net/, 'but one of both');

my @steps = grep { defined $_->{step} } lines("$net --device cpu --runs 2 --profile --trace $tmp/t.json");
my ($conv) = grep { $_->{op} eq 'conv' } @steps;
ok($conv->{peak_share} > 0 && $conv->{read_share} > 0, 'a layer, as shares of what the device can do');
ok(!grep({ exists $_->{peak_share} } grep { defined $_->{step} } lines("$net --board odroid_xu3,dry --device sim:gpu4 --runs 1 --profile")),
   'of a made-up machine nothing is measured');

open my $in, '<', "$tmp/t.json" or die;
my $trace = decode_json do { local $/; <$in> };
my @ran = grep { $_->{ph} eq 'X' && $_->{tid} > 0 } @{$trace->{traceEvents}};
my ($run) = grep { $_->{ph} eq 'X' && $_->{tid} == 0 } @{$trace->{traceEvents}};
is(scalar @ran, scalar @steps, 'the trace has each step');
is(scalar(grep { $_->{ts} < 0 || $_->{ts} + $_->{dur} > $run->{dur} + 1 } @ran), 0, 'within the run');
is((grep { $_->{ph} eq 'M' && $_->{tid} == 1 } @{$trace->{traceEvents}})[0]{args}{name}, 'cpu', 'a row a device');

done_testing;
