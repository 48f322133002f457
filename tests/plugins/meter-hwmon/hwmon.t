#!/usr/bin/perl
# meter-hwmon on trees of several boards, and on faulty trees.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../..", "$FindBin::Bin/../gauge-common";
use OtherUser;
use Test::More;
use Tree;

my $here = $FindBin::Bin;
my $build = $ENV{CNNRUN_BUILD} || "$here/../../../build";
my $plugins = "--plugin-dir $build/plugins/meter-hwmon.so";
# What `gauges` prints on a made-up tree.
sub gauges { my ($tree) = @_; return scalar `$build/cnnrun gauges $plugins --sysfs-root @{[$tree->root]} 2>&1` }
# name => [reading, feeds]
sub rows { return map { /^hwmon +(\S.*?) {2,}(?:power|energy) +(\S+ ?\S*)(?: +feeds (\S+))?/ ? ($1 => [$2, $3 || '']) : () } split /\n/, $_[0] }

my $xu3 = Tree->new("$here/odroid-xu3.tree");
is_deeply({rows(gauges($xu3))}, {a15 => ['2.5312 W', 'cpu:big'], a7 => ['0.052 W', 'cpu:little'],
    gpu => ['1.41 W', 'opencl:0'], memory => ['0.115 W', '']}, 'the ODROID-XU3: four domains');
$xu3->line('sys/bus/i2c/drivers/INA231/4-0040/sensor_W = 9.5');
my %two = rows(gauges($xu3));
is_deeply([$two{a15}[0], $two{'a15@4-0040'}[0]], ['2.5312 W', '9.5 W'], 'two buses, one glob: both, apart');
$xu3->put('sys/bus/i2c/drivers/INA231/3-0044/enable', "0\n");
my $clock = "$plugins --plugin-dir $build/tests/core/host/gauges/gauges.so --clock fake-time";
my $said = `$build/cnnrun gauges $clock --sysfs-root @{[$xu3->root]} 2>&1`;
like($said, qr/^hwmon +gpu .*1\.41 W/m, 'one that is off is switched on');
like($xu3->text('sys/bus/i2c/drivers/INA231/3-0044/enable'), qr/^0$/, 'and off again at the end');

my $jetson = Tree->new("$here/jetson-tx2.tree");
is_deeply({rows(gauges($jetson))}, {VDD_SYS_GPU => ['1.373 W', 'opencl:0'],
    VDD_SYS_CPU => ['0.61 W', 'cpu'], VDD_IN => ['4.204 W', '']}, 'Jetson: rails by name');

my $chips = Tree->new("$here/chips.tree");
my %chips = rows(gauges($chips));
is_deeply(\%chips, {'ina231 4-0040' => ['2.531 W', ''], 'ina231 4-0045' => ['0.052 W', ''],
    VDD_GPU => ['6 W', 'opencl:0'], VDD_CPU => ['1 W', 'cpu'], Esocket0 => ['123.457 J', '']},
    'chips: power, volts by amperes, a negative current, a counter before power, no sums')
    or diag explain \%chips;
my ($json) = grep { /4-0040/ } split /\n/, `$build/cnnrun gauges --json $plugins --sysfs-root @{[$chips->root]}`;
like($json, qr/"period_ms":140/, 'the chip says how often it has something new');

# what goes wrong while it is read
my @wrong = (['no number' => "none\n", qr/want a number, got "none"/], ['nothing' => '', qr/holds nothing/],
    ['infinite' => "inf\n", qr/want a number/], ['too much' => "1e300\n", qr/more than can be/]);
for (@wrong) {
    my ($what, $text, $why) = @$_;
    $chips->put('sys/class/hwmon/hwmon10/power1_input', $text);
    my $out = gauges($chips);
    like($out, qr/^hwmon +ina231 4-0045 +power +unread .*$why/m, "a sensor that tells $what is unread");
    like($out, qr/^hwmon +ina231 4-0040 +power +2\.531 W/m, 'and the others go on');
}
unlink $chips->root . '/sys/class/hwmon/hwmon2/in2_input';
is((rows(gauges($chips)))[1] && scalar(keys %{{rows(gauges($chips))}}), 4, 'one without its volts is no sensor');
chmod 0, $chips->root . '/sys/class/hwmon/hwmon10/power1_input';
like(OtherUser::says($build, "$build/cnnrun gauges $plugins --sysfs-root " . $chips->root),
    qr/unread .*Permission denied/, 'EACCES is reported');
my $odd = Tree->new("sys/class/hwmon/hwmon0/name = ina226\nsys/class/hwmon/hwmon0/power1_input = 5\n");
my $bracket = $odd->root . '/a[b]*';
mkdir $bracket or die;
rename $odd->root . '/sys', "$bracket/sys";
like(scalar `$build/cnnrun gauges $plugins --sysfs-root '$bracket' 2>&1`, qr/^hwmon +ina226 hwmon0/m,
    'a root may have any name');
like(gauges(Tree->new("sys/x = 1\n")), qr/no plugin finds a meter/, 'a machine without any');
done_testing;
