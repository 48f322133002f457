#!/usr/bin/perl
# cnnrun govern: on a tree of knobs until a signal, killed and restored, as advice; recorded, replayed,
# simulated.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../..", "$FindBin::Bin/../../plugins/gauge-common";
use File::Temp qw(tempdir);
use JSON::PP;
use OtherUser;
use Test::More;
use Time::HiRes qw(sleep time);
use Tree;

my $build = $ENV{CNNRUN_BUILD} || "$FindBin::Bin/../../../build";
my $source = "$FindBin::Bin/../../..";
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_CACHE} = "$dir/cache";
# What `govern` prints.
sub said { return scalar `$build/cnnrun govern @_ 2>&1` }
# The first JSON object that `govern` prints.
sub object { return decode_json((grep { /^\{/ } split /\n/, said(@_, '--json'))[0] || '{}') }

my $gpu = 'sys/class/devfreq/gpu';
my $tree = Tree->new(<<END);
$gpu/cur_freq = 480000000
$gpu/min_freq = 177000000
$gpu/max_freq = 543000000
$gpu/available_frequencies = 177000000 350000000 480000000 543000000
$gpu/load = 37\@480000000Hz
END
my $knob = "--plugin-dir $build/plugins/knob-devfreq.so --sysfs-root " . $tree->root;
# The bounds of the made-up GPU's clock, "MIN MAX" in Hz.
sub bounds { return join ' ', map { $tree->text("$gpu/$_") =~ s/\s+$//r } qw(min_freq max_freq) }

# Starts it and waits until it has set something.
sub begin {
    my $pid = fork;
    if (!$pid) {
        open STDOUT, '>', "$dir/out";
        open STDERR, '>&', \*STDOUT;
        exec "$build/cnnrun govern fixed,at=lowest $knob @_";
    }
    my $until = time + 20;
    sleep 0.02 while bounds() ne '177000000 177000000' && time < $until;
    return $pid;
}
my $pid = begin();
is(bounds(), '177000000 177000000', 'a step is set');
kill INT => $pid;
waitpid $pid, 0;
is(bounds(), '177000000 543000000', 'and put back after Ctrl-C');
$pid = begin();
kill KILL => $pid;
waitpid $pid, 0;
is(bounds(), '177000000 177000000', 'who is killed puts back nothing');
like(said("restore $knob"), qr/^1 knob put back as found$/m, 'but restore does');
is(bounds(), '177000000 543000000', 'as it was');
like(said("restore $knob"), qr/^nothing was left set/m, 'once');
$pid = begin();
kill KILL => $pid;
waitpid $pid, 0;
`$build/cnnrun gauges $knob 2>&1`;
is(bounds(), '177000000 543000000', 'as does every other start');

my $told;
for (1 .. 5) { # half a second in which the machine does not stand still
    $told = object("fixed,at=highest $knob --seconds 0.5");
    last if $told->{ticks} >= 4;
}
is($told->{hz}, 480000000, 'what it saw');
cmp_ok($told->{ticks}, '>=', 4, 'ticks of this machine');
is(system("$build/cnnrun govern fixed $knob -- sh -c 'exit 7' >$dir/out 2>&1") >> 8, 7, 'beside a command, whose exit it is');
chmod 0444, map { $tree->root . "/$gpu/$_" } qw(min_freq max_freq);
like(OtherUser::says($build, "CNNRUN_CACHE=/tmp $build/cnnrun govern fixed $knob --seconds 0.3"),
    qr/advice: knobs can't be set here/, 'without permission it is advice, and says so');
chmod 0644, map { $tree->root . "/$gpu/$_" } qw(min_freq max_freq);
like(said("fixed --plugin-dir $build/plugins/knob-devfreq.so --sysfs-root $dir --seconds 1"),
    qr/no plugin finds a knob on this machine/, 'where there is nothing to set');

# played, recorded, replayed
my %row = map { $_ => object("fixed,at=$_ --scene monitor --seconds 200") } 177, 543;
cmp_ok(abs($row{177}{run_seconds} / 3.27789 - 1), '<', 0.005, 'the 177 MHz row of table 5.1, to which it is fitted');
cmp_ok(abs($row{543}{run_seconds} / 1.20785 - 1), '<', 0.005, 'and the 543 MHz row');
$told = object('fixed,at=480 --scene monitor --seconds 200');
cmp_ok(abs($told->{run_seconds} / 1.29283 - 1), '<', 0.04, 'the 480 MHz row: time, predicted');
cmp_ok(abs($told->{watts} / 1.43 - 1), '<', 0.04, 'power');
cmp_ok(abs($told->{edp} / 2.39 - 1), '<', 0.08, 'EDP');
$told = object('default --scene monitor --seconds 200');
cmp_ok(abs($told->{run_seconds} / 1.32383 - 1), '<', 0.12, 'the default row: time');
cmp_ok(abs($told->{watts} / 1.41 - 1), '<', 0.12, 'power');
cmp_ok(abs($told->{load} - 0.8659), '<', 0.03, 'and its load');
like(said("default --scene monitor --seconds 20 -o $dir/t.csv --note 'simulated'"), qr/^frequency /m, 'curves are drawn');
like(said("fixed --replay $dir/t.csv"), qr/^fixed on .*t\.csv: /m, 'a recording is replayed');
like(said("calibrate $source/governors/traces/loop4.csv $source/governors/traces/mail.csv"),
    qr/^threshold \d+: 0 of \d+ windows on the wrong side/m, 'a threshold between two scenes');
my ($narrow, $free) = map { said("calibrate --band $_ $source/governors/traces/loop4.csv $source/governors/traces/mail.csv") =~ /mail .*distance (\d+)/ } (0, 1);
cmp_ok($free, '<', $narrow, '--band: a path that may stray is shorter');
isnt(object('dtw,band=0,threshold=600 --scene monitor --seconds 30')->{hz}, object('dtw,band=1,threshold=600 --scene monitor --seconds 30')->{hz}, 'and so in the policy');
like(said("record --seconds 1"), qr/where to\? want record -o/, 'a recording goes to a file');
like(said("no_such --scene monitor"), qr/there is no policy "no_such"/, 'a policy that is not there');
like(said("fixed --scene no_such"), qr/no_such: no such scene/, 'a scene that is not there');
like(said("fixed --replay $dir/t.csv"), qr/^power\s+unknown: .*--scene NAME --board NAME/m, 'and says that it has no joules');
like(said("fixed --replay $dir/t.csv --scene monitor"), qr/not both/, 'one or the other');
# beside what runs: on a tree, where bounds are put back; on a simulated board, in its time
my $net = "$source/scripts/nets/lenet5.lua --weights random:1";
like(scalar `$build/cnnrun bench $net --runs 3 --sysfs-root @{[$tree->root]} --governor fixed,at=lowest 2>&1`,
    qr/^governor  fixed,at=lowest: \d+ switch/m, 'bench --governor');
is(bounds(), '177000000 543000000', 'puts back');
my %ms;
for my $at (qw(lowest highest)) {
    my $out = `$build/cnnrun bench $net --runs 100 --board odroid_xu3 --device sim:a15 --governor fixed,at=$at 2>&1`;
    ($ms{$at}) = $out =~ /([\d.]+) ms median/;
}
cmp_ok(abs($ms{lowest} / $ms{highest} / (1800 / 700) - 1), '<', 0.05, 'a simulated device is as slow as its clock is set');

# which knob, of which device: never another one's
my $both = Tree->new(<<END);
sys/class/devfreq/gpu/cur_freq = 480000000
sys/class/devfreq/gpu/min_freq = 177000000
sys/class/devfreq/gpu/max_freq = 543000000
sys/class/devfreq/gpu/available_frequencies = 177000000 350000000 480000000 543000000
sys/class/devfreq/gpu/load = 37\@480000000Hz
sys/devices/system/cpu/cpufreq/policy0/related_cpus = 0 1
sys/devices/system/cpu/cpufreq/policy0/affected_cpus = 0 1
sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq = 1500000
sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq = 600000
sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq = 1800000
sys/devices/system/cpu/cpufreq/policy0/scaling_available_frequencies = 600000 1500000 1800000
END
my $beside = "$net --device cpu --sysfs-root @{[$both->root]} --governor fixed,at=lowest";
my $said = `$build/cnnrun bench $beside --runs 3 2>&1`;
like($said, qr/^governor  fixed,at=lowest: \d+ switch\w* of cpu\S* \(feeds cpu\), net on cpu in /m, 'a net on the processor: its knob, by name');
like($said, qr/frequency unknown: no reading falls into the runs/, 'a short run tells no frequency that was read before it');
my ($governed) = map { decode_json $_ } grep { /"policy"/ } `$build/cnnrun bench $beside --runs 3 --json 2>/dev/null`;
is_deeply([@$governed{qw(devices knob_feeds hz)}], ['cpu', 'cpu', undef], 'in JSON, too');
like($governed->{hz_why}, qr/too short/, 'with the reason');
($governed) = map { decode_json $_ } grep { /"policy"/ } `$build/cnnrun bench $net --device cpu --sysfs-root @{[$tree->root]} --governor fixed,at=lowest --runs 3 --json 2>$dir/err`;
is_deeply([@$governed{qw(knob switches)}], [undef, 0], 'where no knob feeds the net\'s device none is set');
like(do { local (@ARGV, $/) = "$dir/err"; <> }, qr/no knob here feeds cpu/, 'with a warning');
($governed) = map { decode_json $_ } grep { /"policy"/ } `$build/cnnrun bench $net --board odroid_xu3 --device sim:a15 --runs 200 --governor fixed,at=lowest --json 2>/dev/null`;
is($governed->{knob}, 'a15', 'a board: the knob of the unit');
ok($governed->{source} eq 'simulated' && $governed->{hz} == 700e6, 'simulated, and the readings are of what was set');

# what was not measured says so
said("record --scene monitor --seconds 2 -o $dir/scene.csv --note 'by hand'");
open my $csv, '<', "$dir/scene.csv" or die;
my $head = join '', grep { /^#/ } <$csv>;
is($head, "# by hand\n# simulated: scene: monitor\n", 'a recorded scene is headed as simulated');
is(object('default --scene monitor --seconds 2')->{source}, 'simulated', 'and its result');
like(said('default --scene monitor --seconds 2'), qr/^default on monitor: 2\.00 s simulated, /m, 'in text');
is(object("fixed $knob --seconds 0.3")->{source}, 'measured', 'this machine is measured');

my @rows = map { decode_json($_) } grep { /^\{/ } split /\n/, `$build/cnnrun $source/scripts/bench/governors.lua --tables --json 2>&1`;
cmp_ok(scalar @rows, '>=', 25, 'the document\'s tables by one command');
is(join(' ', grep { abs($_->{error}) > ($_->{quantity} eq 'EDP' ? .08 : .04) } grep { $_->{row} =~ /fixed 480/ } @rows), '',
    '480 MHz is predicted');
is(scalar(grep { $_->{kind} !~ /^(fitted|predicted|simulated|measured)$/ } @rows), 0, 'each row says what it is');
done_testing;
