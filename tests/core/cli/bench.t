#!/usr/bin/perl
# cnnrun bench: shares of a device's peak, a product of matrices, a trace of a run.
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

# The JSON lines of `cnnrun bench`.
sub lines { map { decode_json $_ } `$build/cnnrun bench @_ --json 2>/dev/null` }

my ($product) = lines('--gemm 32,48,64 --threads 1 --runs 3');
is($product->{product}, '32,48,64', 'a product of matrices');
is($product->{threads}, 1, 'with the threads that are asked for');
cmp_ok(abs($product->{gflops} / (2 * 32 * 48 * 64 / $product->{ms_min} / 1e6) - 1), '<', 1e-6, 'its GFLOP/s');
cmp_ok($product->{share}, '>', 0, 'as a share of what the device can do');
my ($ours) = lines('--gemm 512,512,1024 --board odroid_xu3,library=ch3,dry --device sim:gpu4 --runs 2');
is($ours->{energy_source}, 'simulated', 'a product has joules, where something measures them');
ok(abs($ours->{edp} - $ours->{joules} * $ours->{ms_median} * 1e-3) < 1e-6 * $ours->{edp}, 'and their product with the time');
ok(abs($ours->{edp} - .729) < .001, 'on W18\'s board that of its table 3.1') or diag($ours->{edp});
my ($none) = lines('--gemm 32,48,64 --threads 1 --runs 1 --no-energy');
is($none->{joules}, undef, '--no-energy asks for none');
like(`$build/cnnrun bench --gemm 1,2 2>&1`, qr/--gemm: wanted M,N,K/, 'three sizes are wanted');
like(`$build/cnnrun bench --gemm 1,2,3 $net 2>&1`, qr/want one of them/, 'and no net beside them');
like(`$build/cnnrun bench 2>&1`, qr/which net/, 'but one of both');

my @steps = grep { defined $_->{step} } lines("$net --device cpu --runs 2 --profile --trace $tmp/t.json");
my ($conv) = grep { $_->{op} eq 'conv' } @steps;
ok($conv->{peak_share} > 0 && defined $conv->{read_share}, 'a layer, as shares of what the device can do');

# What is read out of memory: by the caches that the machine tells of, here a made-up one's.
sub memory_bytes { # KiB of the only cache
    my $cache = "$tmp/$_[0]/sys/devices/system/cpu/cpu0/cache/index0";
    system('mkdir', '-p', $cache);
    for (['level', 1], ['type', 'Data'], ['size', "$_[0]K"]) {
        open my $f, '>', "$cache/$_->[0]" or die;
        print $f "$_->[1]\n";
    }
    local $ENV{CNNRUN_SYSFS_ROOT} = "$tmp/$_[0]";
    return map { $_->{node} => $_ } grep { defined $_->{step} } lines("$net --device cpu --runs 2 --profile");
}
my %small = memory_bytes(64);
my %large = memory_bytes(65536);
cmp_ok($small{ip1}{memory_bytes}, '>', 500 * 800 * 4, 'the weights of a layer come from memory where caches are small');
cmp_ok($small{prob}{memory_bytes}, '==', 0, 'what was computed just before does not');
is(scalar(grep { $_->{memory_bytes} } values %large), 0, 'nothing does where all fits');

# Shares are of what the kernel does, or say why they are not.
my @all = grep { defined $_->{step} } lines("$root/scripts/nets/resnet18.lua --weights random:1 --device cpu --runs 1 --profile");
my @wino = grep { $_->{kernel} =~ /winograd/ } @all;
my @direct = grep { $_->{kernel} !~ /winograd/ && $_->{gflops} } @all;
ok(@wino && !grep({ $_->{kernel_gflops} > 0.75 * $_->{gflops} || $_->{kernel_gflops} < 0.2 * $_->{gflops} } @wino),
   'Winograd multiplies less than the definition');
ok(@direct && !grep({ abs($_->{kernel_gflops} / $_->{gflops} - 1) > 1e-6 } @direct), 'a direct convolution does not');
ok(!grep({ !$_->{share_note} && (($_->{peak_share} // 0) > 1 || ($_->{read_share} // 0) > 1) } @all),
   'no share is above 1 without a word');
my $text = `$build/cnnrun bench $root/scripts/nets/resnet18.lua --weights random:1 --device cpu --runs 1 --profile 2>/dev/null`;
unlike($text, qr/\b(?:100\.[1-9]|10[1-9]|1[1-9]\d|[2-9]\d\d|\d{4,})(?:\.\d)?%/, 'nor printed');
like($text, qr/^peak: .*own arithmetic, of \d+\.\d GFLOPS.*\n.*GB\/s/m, 'the text says what they are of');
ok($text !~ /^ .*>100%/m || $text =~ /^>100%: above what the device measured/m, 'and what more than that means');

# The device measures f32: bytes are multiplied faster.
system("$build/cnnrun quantize $root/scripts/nets/lenet5.lua --data $root/scripts/nets/digits -o $tmp/bytes.cnr --check 0 --all -q >/dev/null");
my ($bytes) = grep { ($_->{op} // '') eq 'qlinear_conv' } lines("$tmp/bytes.cnr --device cpu --runs 2 --profile");
ok($bytes->{gflops} > 0 && !exists $bytes->{peak_share} && $bytes->{share_note} =~ /f32/, 'other types have no share of it');
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
