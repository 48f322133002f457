#!/usr/bin/perl
# cnnrun energy, and energy of running nets: on a tree of made-up sensors, with sensors that fail during the
# run.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../plugins/gauge-common";
use JSON::PP;
use POSIX ();
use Test::More;
use Tree;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} || "$root/build";
my $work = `mktemp -d`;
chomp $work;
END { system 'rm', '-rf', $work if $work }
delete $ENV{XDG_RUNTIME_DIR};
my $tree = Tree->new("$root/tests/plugins/meter-hwmon/odroid-xu3.tree");
my $watts = 2.5312 + 0.052 + 1.41 + 0.115;
my $here = '--sysfs-root ' . $tree->root;
my $net = "$root/scripts/nets/lenet5.lua --weights random:1 --device cpu";
# JSON lines of a text.
sub lines { return map { decode_json $_ } split /\n/, join '', @_ }
# A test: within a part of what is wanted.
sub near { my ($got, $want, $part, $what) = @_; ok(defined $got && abs($got - $want) <= $part * abs $want, $what) or diag(defined $got ? "got $got, want $want" : 'got nothing') }
# Repeats a measurement that a stalled machine spoiled: with no reading for too long there is
# nothing to judge.
sub tried {
    my ($good, $command) = @_;
    my @got;
    for (1 .. 5) {
        @got = lines(`$command`);
        last if $good->(@got);
    }
    return @got;
}
# The measured ones of the lines.
sub whole { return grep { ($_->{energy_source} // '') eq 'measured' } @_ }

# ---- list ----
my $out = `$build/cnnrun energy list $here 2>&1`;
like($out, qr/^a15 +hwmon +power +any time +2\.5312 W +feeds cpu:big$/m, 'a domain, its kind, its period, what it feeds');
is(scalar(split /\n/, $out), 4, 'four of them');
my @list = lines(`$build/cnnrun energy list $here --json`);
is_deeply([map { $_->{domain} } @list], [qw(a15 a7 gpu memory)], 'as JSON');
$out = `$build/cnnrun energy list --sysfs-root $work 2>&1`;
isnt($?, 0, 'without a meter');
like($out, qr/unmeasured: no plugin finds a meter here/, 'all is unmeasured');
$out = `$build/cnnrun energy lits 2>&1`;
like($out, qr/want list, log, watch or run, got "lits"; did you mean list/, 'a word that is none');

# ---- run ----
my $told;
for (1 .. 5) {
    $out = `$build/cnnrun energy run $here -- sh -c 'echo said; sleep 0.3; exit 5' 2>$work/err`;
    $told = do { open my $f, '<', "$work/err" or die; local $/; <$f> };
    last if $? >> 8 != 5 || $told !~ /unmeasured/;
}
is($? >> 8, 5, "a command's exit code is kept");
is($out, "said\n", 'and what it says');
$out = $told;
like($out, qr/^energy +[\d.]+ J in all, [\d.e-]+ net of idle, 4\.108 W, EDP [\d.]+ J s$/m, 'joules, watts, EDP');
like($out, qr/of the whole machine, measured: \d+ samples/, 'of the whole machine, and how it was come by');
like($out, qr/^  a15 +[\d.]+ J +2\.531 W +EDP [\d.]+ J s  idle 2\.531 W \+- 0  feeds cpu:big$/m, 'by domain');
my ($whole, @domains) = tried(\&whole, "$build/cnnrun energy run $here --json -- sleep 0.3");
near($whole->{watts}, $watts, 1e-3, 'watts');
near($whole->{joules}, $watts * $whole->{seconds}, 1e-3, 'joules');
near($whole->{edp}, $whole->{joules} * $whole->{seconds}, 1e-9, 'EDP');
is($whole->{energy_source}, 'measured', 'measured');
cmp_ok($whole->{samples}, '>=', 4 * 2, 'samples');
is(scalar @domains, 4, 'an object a domain');
$out = `$build/cnnrun energy run $here -- $work/nothing 2>&1`;
is($? >> 8, 127, 'a command that is not there');
like($out, qr/nothing: can't be started: No such file/, 'is reported');
$out = `$build/cnnrun energy run 2>&1`;
like($out, qr/a command is missing: cnnrun energy run -- COMMAND/, 'no command');
# a signal reaches the command; what it took until then is told
my $pid;
for (1 .. 5) {
    $pid = open my $run, '-|';
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        exec "exec $build/cnnrun energy run $here -- sh -c 'trap \"echo caught; exit 9\" TERM; echo begun; while :; do sleep 0.05; done'";
    }
    while (<$run>) { last if /begun/ }
    kill 'TERM', $pid;
    $out = do { local $/; <$run> };
    close $run;
    last if $out !~ /unmeasured/;
}
is($? >> 8, 9, 'a signal is passed on, and the command ends as it likes');
like($out, qr/caught.*energy +[\d.]+ J/s, 'what it took is reported');
($whole) = lines(`$build/cnnrun energy run --sysfs-root $work --json -- true`);
is($whole->{energy_source}, 'unmeasured', 'without a meter');
ok(!defined $whole->{joules} && !defined $whole->{edp}, 'it is null, not 0');

# ---- log, and the counter ----
my ($log, @rows);
for (1 .. 5) {
    $out = `$build/cnnrun energy log $here --csv $work/log.csv --counter $work/counter --seconds 0.5 2>&1`;
    open $log, '<', "$work/log.csv" or die;
    last if (@rows = <$log>) > 5 && $rows[-1] =~ /^0/;
}
is($?, 0, 'a log');
is($rows[0], "time_s,a15_W,a7_W,gpu_W,memory_W,a15_J,a7_J,gpu_J,memory_J\n", 'has names');
cmp_ok(scalar @rows, '>=', 3, 'and a line each 50 ms');
my @last = split /,/, $rows[-1];
near($last[1], 2.5312, 1e-6, 'watts');
near($last[5], 2.5312 * $last[0], 0.02, 'joules so far');
my $counter = decode_json(`cat $work/counter`);
is_deeply([map { $_->{name} } @{$counter->{domains}}], [qw(a15 a7 gpu memory)], 'the counter');
ok(!$counter->{running}, 'says that nobody counts any more');
near($counter->{domains}[0]{joules}, $last[5], 1e-5, 'and what it came to');
# a chip that has something new each 400 ms is read as often, and at the end
my $slow = Tree->new("sys/class/hwmon/hwmon0/name = ina231\nsys/class/hwmon/hwmon0/power1_input = 5000000\nsys/class/hwmon/hwmon0/update_interval = 400\n" .
                     "sys/class/hwmon/hwmon1/name = ina226\nsys/class/hwmon/hwmon1/power1_input = 1000000\n");
my ($patient, $quick);
my ($all) = tried(sub {
    ($patient) = grep { ($_->{domain} // '') =~ /231/ } @_;
    ($quick) = grep { ($_->{domain} // '') =~ /226/ } @_;
    return whole(@_) && $quick->{samples} > 10;
}, "$build/cnnrun energy log --sysfs-root @{[$slow->root]} --csv $work/slow.csv --seconds 1 --json");
cmp_ok($patient->{samples}, '<=', 5, 'a slow sensor is read at its own pace');
cmp_ok($quick->{samples}, '>', $patient->{samples}, 'the others as often as ever');
near($patient->{joules}, 5 * $all->{seconds}, 0.1, 'and its joules are of all that time');
# while it runs, others read; Ctrl-C ends it and keeps what there is
mkdir "$work/run" or die;
$pid = fork;
if (!$pid) {
    $ENV{XDG_RUNTIME_DIR} = "$work/run";
    open STDOUT, '>', "$work/out";
    open STDERR, '>&', \*STDOUT;
    exec "exec $build/cnnrun energy log $here --csv $work/long.csv";
}
my (@seen, %moments);
for (1 .. 3000) {
    select undef, undef, undef, 0.02;
    my $text = -e "$work/run/cnnrun-energy.json" ? `cat $work/run/cnnrun-energy.json` : '';
    next unless $text;
    my $now = decode_json($text); # never half of one
    next unless $now->{running};
    push @seen, $now->{domains}[0]{joules};
    last if ++$moments{$now->{time_ns}} && keys %moments > 8 && $seen[-1] > $seen[0];
}
kill 'INT', $pid;
waitpid $pid, 0;
is($?, 0, 'Ctrl-C ends a log, which is no error');
cmp_ok($seen[-1], '>', $seen[0], 'the counter goes on while others read it');
open $log, '<', "$work/long.csv" or die;
cmp_ok(scalar(() = <$log>), '>', 5, 'and the log is there');
$out = `$build/cnnrun energy log $here --csv $work/no/such/log.csv --seconds 0.1 2>&1`;
isnt($?, 0, 'a log that can not be written');
like($out, qr{no/such}, 'is reported');

# ---- watch ----
my @watched = tried(sub { defined $_[0]{watts}{gpu} }, "$build/cnnrun energy watch $here --seconds 0.3 --json");
near($watched[0]{watts}{gpu}, 1.41, 1e-6, 'readings as they come');
$out = `$build/cnnrun energy watch $here --seconds 0.3 2>&1`;
like($out, qr/^\d+\.\d+ s  a15 2\.531 W  a7 0\.052 W  gpu 1\.410 W  memory 0\.115 W$/m, 'a line a second where there is no terminal');
SKIP: {
    skip 'script(1) is not here', 1 if system('command -v script >/dev/null 2>&1') != 0;
    for (1 .. 5) { # drawn over what was drawn before
        $out = `LC_ALL=C.UTF-8 script -qc "$build/cnnrun energy watch $here --seconds 0.3" /dev/null </dev/null`;
        last if $out =~ /\e\[5A/;
    }
    like($out, qr/\e\[5A.*a15 +\xe2\x96\x88/s, 'curves in one');
}
SKIP: {
    skip 'draw-cairo was not built', 2 unless -e "$build/plugins/draw-cairo.so";
    $out = `$build/cnnrun energy watch $here --seconds 0.3 --plot $work/curves.svg 2>&1`;
    is($?, 0, 'a picture of it') or diag($out);
    cmp_ok(scalar(() = join('', `cat $work/curves.svg`) =~ /stroke-width:1\.6/g), '>=', 4, 'with all curves');
    ok(-s "$work/curves.csv", 'and the numbers beside it');
}

# ---- where nets run ----
my ($bench, @rest) = tried(sub { whole(@_) && $_[0]{rounds} / $_[0]{fps} >= 0.99 },
    "$build/cnnrun bench $net $here --runs 3 --profile --json");
near($bench->{watts}, $watts, 1e-3, 'bench: watts');
near($bench->{fps_per_watt}, $bench->{fps} / $bench->{watts}, 1e-9, 'FPS per watt');
my ($gpu) = grep { ($_->{domain} // '') eq 'gpu' } @rest;
near($gpu->{fps_per_watt}, $bench->{fps} / $gpu->{watts}, 1e-9, 'by domain, too');
near($bench->{joules} * $bench->{fps}, $bench->{watts}, 1e-6, 'joules of a run');
cmp_ok($bench->{rounds} / $bench->{fps}, '>=', 0.99, 'runs go on for 20 periods');
my @steps = grep { defined $_->{step} } @rest;
my $sum = 0;
$sum += $_->{joules} for @steps;
near($sum, $bench->{joules}, 1e-6, "the steps' are the run's");
is($steps[0]{joules_by}, 'time', 'and how they were come by');
my ($plain) = lines(`$build/cnnrun bench $net $here --runs 3 --no-energy --json`);
ok(!defined $plain->{energy_source} && !defined $plain->{joules}, '--no-energy asks none');
like(scalar `$build/cnnrun bench $net --sysfs-root $work --runs 1`, qr/^energy +unmeasured: no plugin/m, 'none is reported');
my @ran = tried(sub { defined $_[1]{watts} },
    "$build/cnnrun run $root/scripts/nets/lenet5.lua --weights random:1 $root/scripts/nets/digits/three.png --energy $here --json");
near($ran[1]{watts}, $watts, 1e-2, 'run --energy');
SKIP: {
    my $mnist = "$root/../shared/data/mnist";
    skip '../shared/data/mnist is not here', 3 unless -d $mnist;
    my ($eval) = tried(\&whole, "$build/cnnrun eval $net --data mnist:$mnist --limit 100 $here --json");
    near($eval->{watts}, $watts, 1e-2, 'eval');
    ok($eval->{rounds} >= 100 && $eval->{rounds} % 100 == 0, "a picture's, all of them as often as it takes");
    my @train = tried(\&whole, qq{$build/cnnrun train $net --data mnist:$mnist --limit 200 --epochs 1 -o $work/t.cnr --overwrite --eval "" $here --json --quiet});
    my ($end) = grep { $_->{output} } @train;
    near($end->{watts}, $watts, 1e-2, 'train');
}

# ---- a baseline that was taken under load ----
my $busy = Tree->new("sys/class/hwmon/hwmon0/name = ina226\nsys/class/hwmon/hwmon0/power1_input = 09000000\n");
my $draws = $busy->root . '/sys/class/hwmon/hwmon0/power1_input';
# Sets the watts that the made-up sensor shows.
sub draw { my ($watts) = @_; open my $f, '+<', $draws or die; printf $f "%08d\n", $watts * 1e6 } # in place: it is open
# Runs a command for which the sensor shows 9 watts.
sub busy_run { my ($options, $command) = @_; draw(9); return lines(`$build/cnnrun energy run --sysfs-root @{[$busy->root]} $options --json -- sh -c '$command'`) }
# The shell command that sets the watts.
sub set_to { sprintf "echo %08d 1<>$draws", 1e6 * shift }
my $rest;
($whole, $rest) = busy_run('', set_to(3) . '; sleep 0.6');
ok(exists $whole->{joules_net} && !defined $whole->{joules_net} && !defined $whole->{idle_watts}, 'less than before: nothing is net of that');
cmp_ok($whole->{joules}, '>', 1, 'joules are reported');
like($whole->{net_unmeasured}, qr/^the baseline was taken under load: 9 W before the run, 3 W after it/, 'and why it is not');
ok(!defined $rest->{joules_net} && $rest->{net_unmeasured} eq $whole->{net_unmeasured} && $rest->{energy_source} eq 'measured', 'by domain, too');
($whole) = busy_run('', set_to(12) . '; sleep 0.6; ' . set_to(3));
cmp_ok($whole->{watts}, '>', 9, 'more than before');
like($whole->{net_unmeasured}, qr/under load: 9 W before the run, 3 W after it/, 'but less behind, where the other work is over');
($whole) = busy_run('', set_to(12) . '; sleep 0.6; ' . set_to(10));
near($whole->{joules_net}, ($whole->{watts} - 9) * $whole->{seconds}, 1e-6, 'what is warm draws more behind, which is no fault');
ok(!exists $whole->{net_unmeasured}, 'nothing is said then');
($whole) = busy_run('--idle 2', set_to(3) . '; sleep 0.6');
near($whole->{joules_net}, ($whole->{watts} - 2) * $whole->{seconds}, 1e-6, '--idle: net of what is reported');
is($whole->{idle_watts}, 2, 'which is shown');
($whole) = busy_run('--idle 50', 'sleep 0.2');
like($whole->{net_unmeasured}, qr/^idle power was given as 50 W, but only 9 W are drawn/, 'unless it can not be');
$out = `$build/cnnrun energy run --sysfs-root @{[$busy->root]} -- sh -c '@{[set_to(3)]}; sleep 0.4' 2>&1`;
like($out, qr/^energy +[\d.]+ J in all, [\d.]+ W,.*^ +net of idle unmeasured: the baseline was taken under load/ms, 'people are told');
# behind other work what is drawn goes down for a while: it is waited for; where this machine itself is so busy
# that the program is late, the fall is over when it looks, or goes on behind it, so another time may do
for (1 .. 3) {
    draw(9);
    $pid = fork;
    if (!$pid) {
        for (1 .. 12) { draw(9 - $_ / 2); select undef, undef, undef, 0.1 }
        POSIX::_exit(0);
    }
    ($whole) = lines(`$build/cnnrun energy run --sysfs-root @{[$busy->root]} --json -- sleep 0.3`);
    waitpid $pid, 0;
    last if defined $whole->{idle_watts};
}
near($whole->{idle_watts}, 3, 0.1, 'a baseline that did not hold still is taken again');
near($whole->{joules_net} + 1, 1, 0.05, 'and nothing is net of it');
draw(9);
open my $script, '>', "$work/regions.lua" or die;
print $script <<'LUA';
local c = require "cnnrun"
local function nap() local till = c.now() + .3 while c.now() < till do end end
return function()
  for _, options in ipairs { { idle_watts = 1 }, { idle_watts = 50 }, { idle_behind = true } } do
    local e = c.energy(nap, options)
    print(e.joules_net and ("%.3f"):format(e.joules_net / e.seconds), e.idle_watts, e.why)
  end
end
LUA
close $script;
is(scalar `$build/cnnrun --trust --sysfs-root @{[$busy->root]} $work/regions.lua 2>&1`,
   "8.000\t1.0\tnil\nnil\tnil\tidle power was given as 50 W, but only 9 W are drawn\n0.000\t9.0\tnil\n", 'from Lua');

# ---- a sensor that stops, and one whose counter stands ----
my $stop = Tree->new("sys/class/hwmon/hwmon0/name = ina226\nsys/class/hwmon/hwmon0/power1_input = 1000000\n" .
    "sys/class/hwmon/hwmon1/name = amd\nsys/class/hwmon/hwmon1/energy1_input = 5\n");
my $power = $stop->root . '/sys/class/hwmon/hwmon0/power1_input';
($whole, @domains) = lines(`$build/cnnrun energy run --sysfs-root @{[$stop->root]} --json -- sh -c 'sleep 0.2; : > $power; sleep 0.2'`);
is($whole->{energy_source}, 'unmeasured', 'a sensor that stops');
my %by = map { $_->{domain} =~ s/ .*//r => $_ } @domains;
like($by{ina226}{error}, qr/holds nothing/, 'is reported');
like($by{amd}{error}, qr/counter does not move/, 'and so is a counter that stands');

# ---- one of two that fails meanwhile, and one that can't be read at all ----
my $two = Tree->new("sys/class/hwmon/hwmon0/name = cpu_sensor\nsys/class/hwmon/hwmon0/power1_input = 1000000\n" .
    "sys/class/hwmon/hwmon1/name = gpu_sensor\nsys/class/hwmon/hwmon1/power1_input = 7000000\n");
my $dies = $two->root . '/sys/class/hwmon/hwmon1/power1_input';
my $half = "$build/cnnrun energy run --sysfs-root @{[$two->root]}";
($whole, @domains) = lines(`$half --json -- sh -c 'sleep 0.2; : > $dies; sleep 0.2'`);
is($whole->{energy_source}, 'unmeasured', 'a total that lacks a domain is none');
ok(!defined $whole->{joules} && !defined $whole->{watts}, 'nor are there joules of it');
is($whole->{missing}, 'gpu_sensor hwmon1', 'the domain is named');
ok(scalar(grep { $_->{domain} =~ /^cpu_sensor/ && abs($_->{watts} - 1) < 0.01 && !$_->{summed} } @domains), 'the other one is told by itself');
($whole) = lines(`$half --json -- sleep 0.3`);
is($whole->{missing}, 'gpu_sensor hwmon1', 'one that can\'t be read from the beginning on is named');
ok($whole->{energy_source} eq 'measured' && abs($whole->{watts} - 1) < 0.01, 'the rest is a sum without it');
like(scalar `$half -- sleep 0.3 2>&1`, qr/of the whole machine but gpu_sensor hwmon1, measured/, 'in text, too');

# ---- times, frames and joules of the same runs; a simulated machine's say so ----
($whole) = tried(\&whole, "$build/cnnrun bench $net $here --runs 3 --json");
is($whole->{runs}, $whole->{rounds}, 'bench: times are of all runs that joules are of');
cmp_ok($whole->{runs}, '>', 3, 'which go on until sensors tell');
($whole, @domains) = lines(`$build/cnnrun bench $root/scripts/nets/lenet5.lua --weights random:1 --board odroid_xu3 --runs 3 --json`);
is($whole->{energy_source}, 'simulated', 'a board\'s joules are simulated');
is(scalar(grep { !$_->{simulated} } $whole, @domains), 0, 'and so is each object');
is((grep { $_->{joules} } @domains)[0]{energy_source}, 'simulated', 'by domain');
$out = `$build/cnnrun bench $root/scripts/nets/lenet5.lua --weights random:1 --board odroid_xu3 --runs 3`;
like($out, qr/of the whole machine, simulated: /, 'in text');
like($out, qr/^simulated +times, .* clock of odroid_xu3$/m, 'times, too');
done_testing;
