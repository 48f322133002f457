#!/usr/bin/perl
# meter-powercap: packages, their parts, duplicates, and permissions.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../..", "$FindBin::Bin/../gauge-common";
use OtherUser;
use Test::More;
use Tree;

my $build = $ENV{CNNRUN_BUILD} || "$FindBin::Bin/../../../build";
my $command = "$build/cnnrun gauges --plugin-dir $build/plugins/meter-powercap.so";
# Two packages of a server; the first one's registers are there by memory, too.
my $tree = Tree->new(<<'END');
sys/class/powercap/intel-rapl/enabled = 1
sys/class/powercap/intel-rapl:0/name = package-0
sys/class/powercap/intel-rapl:0/energy_uj = 5000000
sys/class/powercap/intel-rapl:0/max_energy_range_uj = 262143328850
sys/class/powercap/intel-rapl:0:0/name = core
sys/class/powercap/intel-rapl:0:0/energy_uj = 3000000
sys/class/powercap/intel-rapl:0:1/name = dram
sys/class/powercap/intel-rapl:0:1/energy_uj = 1000000
sys/class/powercap/intel-rapl:1/name = package-1
sys/class/powercap/intel-rapl:1/energy_uj =| 7000000
sys/class/powercap/intel-rapl-mmio:0/name = package-0
sys/class/powercap/intel-rapl-mmio:0/energy_uj = 5000000
sys/class/powercap/dtpm/x = 1
END
my $out = `$command --sysfs-root @{[$tree->root]} 2>&1`;
like($out, qr/^powercap +package-0 +energy +5 J +feeds cpu$/m, 'a package');
like($out, qr/^powercap +package-1 +energy +7 J +feeds cpu$/m, 'another, without a newline');
like($out, qr/^powercap +package-0\/core +energy +3 J/m, 'a part of it');
like($out, qr/^powercap +package-0\/dram +energy +1 J/m, 'and the memory beside it');
is(scalar(() = $out =~ /package-0 /g), 1, 'what is there twice counts once');
chmod 0, glob($tree->root . '/sys/class/powercap/*/energy_uj');
like(OtherUser::says($build, "$command --sysfs-root " . $tree->root),
    qr/package-0 +energy +unread .*only root may read it/, 'who may not read is told so');
done_testing;
