#!/usr/bin/perl
# meter-nvml with a made-up library: counters, power, and drivers that lack functions.
use strict;
use warnings;
use FindBin;
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} || "$FindBin::Bin/../../../build";
my $root = "$build/tests/plugins/meter-nvml";
# What `gauges` prints with a fault.
sub gauges {
    my ($wrong, $more) = @_;
    local $ENV{CNNRUN_FAKE_NVML} = $wrong;
    return scalar `$build/cnnrun gauges --plugin-dir $build/plugins/meter-nvml.so --sysfs-root $root $more 2>&1`;
}
my $out = gauges('', '');
like($out, qr/^nvml +gpu0 +energy +[\d.e+]+ J +feeds opencl:0$/m, 'a counter');
like($out, qr/^nvml +gpu0 power +power +250 W +feeds opencl:0$/m, 'and power beside it');
like($out, qr/^nvml +gpu1 power +power +90 W +feeds opencl:1$/m, 'a card without a counter, nor power at an instant');
like(gauges('mean', ''), qr/^nvml +gpu0 power +power +90 W/m, 'power at an instant where there is such, else the mean');
unlike($out, qr/gpu1 +energy/, 'has none');
unlike(gauges('lost', '-v'), qr/gpu1/, 'a card that is lost');
like(gauges('lost', ''), qr/card 1: GPU is lost/, 'is reported');
like(gauges('start', '-vv'), qr/left out: Driver Not Loaded/, 'a driver that is not there is no mistake');
like(gauges('count', ''), qr/counting the cards: Unknown Error/, 'one that is broken is reported');
like(scalar `$build/cnnrun gauges --plugin-dir $build/plugins/meter-nvml.so --sysfs-root /proc -vv 2>&1`,
    qr/nvml: left out: .*libnvidia-ml/, 'no library is no mistake');

# ---- calls of milliseconds: they are made as seldom as it takes ----

{
    local $ENV{CNNRUN_FAKE_NVML} = 'slow';
    my ($whole) = map { decode_json $_ } grep { /sampler_share/ }
        `$build/cnnrun energy run --json --plugin-dir $build/plugins/meter-nvml.so --sysfs-root $root -- sleep 3 2>/dev/null`;
    cmp_ok($whole->{sampler_share} // 1, '<', 0.01, 'samples take less than a hundredth of a processor');
    cmp_ok(abs(($whole->{joules} // 0) / ($whole->{seconds} // 1) / 340 - 1), '<', 0.1, 'and the joules are those of both cards')
        or diag explain $whole;
}
done_testing;
