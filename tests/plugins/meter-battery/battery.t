#!/usr/bin/perl
# meter-battery: power, or current times voltage of either sign; never during charging.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../gauge-common";
use Test::More;
use Tree;

my $build = $ENV{CNNRUN_BUILD} || "$FindBin::Bin/../../../build";
my $tree = Tree->new(<<'END');
sys/class/power_supply/AC/type = Mains
sys/class/power_supply/BAT0/type = Battery
sys/class/power_supply/BAT0/status = Discharging
sys/class/power_supply/BAT0/power_now = 8400000
sys/class/power_supply/battery/type = Battery
sys/class/power_supply/battery/status = Discharging
sys/class/power_supply/battery/current_now = -420000
sys/class/power_supply/battery/voltage_now = 4000000
sys/class/power_supply/mouse/type = Battery
sys/class/power_supply/mouse/scope = Device
sys/class/power_supply/mouse/status = Discharging
sys/class/power_supply/mouse/power_now = 1
END
# What `gauges` prints on a made-up tree.
sub gauges { return scalar `$build/cnnrun gauges --plugin-dir $build/plugins/meter-battery.so --sysfs-root @{[$tree->root]} 2>&1` }
my $out = gauges();
like($out, qr/^battery +BAT0 +power +8\.4 W/m, 'power');
like($out, qr/^battery +battery +power +1\.68 W/m, 'a negative current by its voltage');
unlike($out, qr/mouse|AC/, 'neither mains nor a mouse');
$tree->put('sys/class/power_supply/battery/current_now', "420000\n");
like(gauges(), qr/^battery +battery +power +1\.68 W/m, 'a positive one is the same');
for my $status ('Charging', 'Full', 'Not charging') {
    $tree->put('sys/class/power_supply/BAT0/status', "$status\n");
    like(gauges(), qr/^battery +BAT0 +power +unread .*status is "$status"/m, "$status: unread");
}
unlink $tree->root . '/sys/class/power_supply/battery/status';
like(gauges(), qr/^battery +battery +power +unread .*No such file/m, 'no status: unread');
done_testing;
