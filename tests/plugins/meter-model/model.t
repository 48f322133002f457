#!/usr/bin/perl
# meter-model: watts from frequency, voltage and load, by a board file; always marked as estimated.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../gauge-common";
use Test::More;
use Tree;

my $here = $FindBin::Bin;
my $build = $ENV{CNNRUN_BUILD} || "$here/../../../build";
my $plugins = "--plugin-dir $build/plugins/meter-model.so --plugin-dir $build/plugins/meter-hwmon.so";
my $tree = Tree->new(<<'END');
proc/stat = cpu  1 2 3 4
sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq = 1300000
sys/class/devfreq/11800000.mali/cur_freq = 600000000
sys/class/devfreq/11800000.mali/load = 37@600000000Hz
sys/class/hwmon/hwmon0/name = ina226
sys/class/hwmon/hwmon0/power1_input = 2000000
END
# What `gauges` prints on a board.
sub gauges { my ($board) = @_; return scalar `$build/cnnrun gauges $plugins --sysfs-root @{[$tree->root]} $board 2>&1` }
my $out = gauges("--board $here/board.lua");
# idle: 1.0 V by 0.05 A and 0.2 W; half of its highest step's volts lie in the middle
like($out, qr/^board-model +a15 +power +0\.25 W +feeds cpu:big \(estimated\)$/m, 'processors that rest');
# 0.37 of 1.2 W, and 0.1 W
like($out, qr/^board-model +gpu4 +power +0\.544 W +feeds opencl:0 \(estimated\)$/m, 'a unit by its load');
unlike($out, qr/npu/, 'nothing that this machine lacks');
like($out, qr/^hwmon +rail +power +2 W +feeds cpu:big$/m, "what the board says of a meter's domain");
$tree->put('sys/class/devfreq/11800000.mali/cur_freq', "177000000\n");
$tree->put('sys/class/devfreq/11800000.mali/load', "100@177000000Hz\n");
# 1.2 W * (0.8^2 * 177) / (1.0^2 * 600) + 0.1 W
like(gauges("--board $here/board.lua"), qr/^board-model +gpu4 +power +0\.32656 W/m, 'at its lowest step');

# Load: between opening and reading, /proc/stat goes on.
my $pid = fork;
if (!$pid) {
    my ($busy, $rest) = (100, 100);
    while (1) {
        $busy += 3;
        $rest += 1;
        my $line = "cpu4 $busy 0 0 $rest 0 0 0 0 0 0\ncpu5 $busy 0 0 $rest 0 0 0 0 0 0\ncpu6 0 0 0 $busy 0\n";
        open my $f, '>', $tree->root . '/proc/stat.new' or exit;
        print $f $line;
        close $f;
        rename $tree->root . '/proc/stat.new', $tree->root . '/proc/stat';
        select undef, undef, undef, 0.002;
    }
}
for (1 .. 600) { last if $tree->text('proc/stat') =~ /^cpu5 1[1-9]/m; select undef, undef, undef, 0.05 }
# 0.75 * (2 * 1.3 + 0.1) W and 0.25 W
my ($energy, $a15) = ('');
for (1 .. 10) { # a writer that does not get its turn for 50 ms is processors that rest
    $energy = `$build/cnnrun energy run $plugins --sysfs-root @{[$tree->root]} --board $here/board.lua --json -- sleep 0.5 2>/dev/null`;
    ($a15) = $energy =~ /"domain":"a15".*?"watts":([\d.]+)/;
    last if defined $a15 && abs($a15 - 2.275) < 0.15;
}
kill 'KILL', $pid;
waitpid $pid, 0;
ok(defined $a15 && abs($a15 - 2.275) < 0.15, 'processors by their load') or diag($energy);

# a board that ships: the ODROID-XU3, by the watts of its own table 4.1
{
    my $xu3 = Tree->new(<<'END');
proc/device-tree/model = Hardkernel Odroid XU3
proc/stat = cpu  1 2 3 4
sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq = 1300000
sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq = 1800000
sys/class/devfreq/11800000.gpu/cur_freq = 600000000
END
    my $ask = sub { scalar `$build/cnnrun gauges $plugins --sysfs-root @{[$xu3->root]} --board odroid_xu3 2>&1` };
    my $told = $ask->();
    # four of six cores at the highest step: 0.0977 * 4 / 6 + 0.7097 W
    like($told, qr/^board-model +gpu4 +power +0\.7748\d* W +feeds opencl:0 \(estimated\)$/m, 'the board that ships: its GPU');
    like($told, qr/^board-model +a15 +power +0 W +feeds cpu:big/m, 'and its processors, which rest');
    $xu3->put('proc/device-tree/model', "another\n");
    unlike($ask->(), qr/board-model/, 'but not of another machine');
}

like(gauges(''), qr/^hwmon +ina226/m, 'without a board nothing is estimated');
unlike(gauges(''), qr/estimated/, 'at all');
open my $bad, '>', $tree->root . '/bad.lua' or die;
print $bad 'return { model = { { name = "x", frequency = "/proc/stat", steps = { { mhz = 5 } } } } }';
close $bad;
like(gauges('--board ' . $tree->root . '/bad.lua'), qr{bad\.lua: model\.1\.steps\.1\.volts: missing: want a number in V}, 'a board without volts');
done_testing;
