#!/usr/bin/perl
# Simulated boards: answers are the references', time and joules are the model's, splits run at once.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
my $lenet = "$root/scripts/nets/lenet5.lua --weights random:1";

# What a command prints.
sub run { my $out = `$build/cnnrun @_ 2>&1`; return $out }
# A test: both numbers agree.
sub near { my ($is, $want, $what) = @_; ok(abs($is - $want) <= 1e-6 * abs($want) + 1e-9, $what) or diag("$is, want $want") }
# Writes a file; returns its path.
sub write_file { open my $f, '>', "$tmp/$_[0]" or die; print $f $_[1]; close $f; return "$tmp/$_[0]" }
# Median milliseconds of a bench.
sub median { my $out = run("bench --runs 3 --warm 0 --json @_"); return $out =~ /"ms_median":([0-9.e+-]+)/ ? $1 : "none: $out" }

# ---- a board that can be worked out by hand: no arithmetic counts but the dense layer's ----

my $unit = 'cores = 1, rail = "chip", classes = { { op = "dense", gflops = 1 }, { op = "*", gflops = 0, gbytes = 0 } }';
my $board = write_file('two.lua', <<"END");
return { clock = "simulated", simulate = true, dry = false, name = "two",
  rails = { { name = "chip", idle = 0.5 }, { name = "memory", per_byte = 1e-9 } },
  clocks = { { name = "core", at = 1000, steps = { { mhz = 500, volts = 1 }, { mhz = 1000, volts = 2 } } } },
  heat = { ambient = 20, ohms = 0, tau = 0.001, limit = 0 },
  units = { { name = "fast", launch = 0.001, latency = 0, clock = "core", power = { static = 1, dynamic = 8 }, $unit },
            { name = "near", launch = 0.001, host = true, power = { static = 2 }, $unit,
              split = { seconds = 0.002, joules = 0.5 } } } }
END
my $net = write_file('net.lua', <<'END');
local c = require "cnnrun"
return c.net { input = { shape = { 1, 1000 } }, c.dense { "fc", out = 1000, bias = false }, c.relu { "r" } }
END
$net .= ' --weights random:1';

my $out = run("gauges --board $board");
like($out, qr/sim-meter +chip +energy/, 'rails are meters');
like($out, qr/sim-knob +core +knob +1000 MHz +feeds sim:fast 500 to 1000 MHz/, 'clocks are knobs');

# 2 MFLOP of the dense layer and 1000 of the relu at 1 GFLOP/s behind a launch of 1 ms
near(median("$net --board $board --device sim:fast"), 3.001, 'seconds are the launch and the arithmetic');
near(median("$net --board $board,clocks.1.at=500 --device sim:fast"), 5.002, 'and at half the frequency');
near(median("$net --board $board --device sim:fast --no-rewrite fuse"), 4, 'a layer more is a launch more');
near(median("$net --board $board,units.1.latency=0.01 --device sim:fast --no-rewrite fuse"), 14, 'what is queued behind other work waits for no latency');
my $each = run("bench $net --board $board,units.1.latency=0.01 --device sim:fast --no-rewrite fuse --runs 1 --profile --json");
my @each = $each =~ /"step":.*?"ms":([0-9.e+-]+)/g;
near($each[0] + $each[1], 24, 'each step alone does');

my $script = write_file('energy.lua', <<'END');
local c = require "cnnrun"
return function(args)
  local net = c.load(args[1], { device = args[2], weights = "random:1" })
  local x = c.tensor { shape = { 1, 1000 }, dtype = "f32" }
  local function joules(name)
    for _, g in ipairs(c.gauges()) do
      if g.name == name and g.quantity == "energy" then return g.value, g.time end
    end
  end
  net:run { x }
  local a, from = joules "chip"
  local m = joules "memory"
  for _ = 1, 100 do net:run { x } end
  local b, to = joules "chip"
  print(string.format("%.6f %.6f %.6f", to - from, b - a, joules "memory" - m))
end
END
my ($seconds, $joules, $memory) = split ' ', run("--board $board $script $tmp/net.lua sim:fast");
near($seconds, 0.3001, 'a hundred runs take a hundred times as long') or diag($seconds);
near($joules, 0.3001 * (0.5 + 9), 'joules: idle, and static and dynamic while it works');
cmp_ok(abs($memory - 100 * 4.008e-3), '<', 1e-5, 'bytes cost joules, too');

# ---- answers ----

my $want = run("run $lenet $root/scripts/nets/digits/three.png --device cpu");
$want =~ s/^.*?\n//;
SKIP: {
    skip 'no picture', 3 unless -e "$root/scripts/nets/digits/three.png";
    for my $device ('sim:fast', 'sim:near') {
        my $got = run("run $lenet $root/scripts/nets/digits/three.png --board $board --device $device");
        $got =~ s/^.*?\n//;
        $got =~ s/^simulated .*\n//m; # the clock, told behind answers
        is($got, $want, "$device gives the answers that the processor gives");
    }
    isnt(run("run $lenet $root/scripts/nets/digits/three.png --board $board,dry --device sim:fast"), $want,
         'dry: nothing computes');
}

# ---- a split layer: its parts run at once ----

my $split = write_file('split.lua', <<'END');
local c = require "cnnrun"
return c.net { input = { shape = { 1, 1000 } }, place = { fc = { axis = 1, ["sim:fast"] = 0.5, ["sim:near"] = 0.5 } },
               c.dense { "fc", out = 1000, bias = false } }
END
near(median("$split --weights random:1 --board $board --device sim:near"), 4,
     'half the arithmetic, and what a split costs, once: the parts are at work together');
near(median("$split --weights random:1 --board $board,units.2.split.seconds=0 --device sim:near"), 2,
     'without that cost, the half');

like(run("show $split --board $board"), qr/copies between devices \d+ \(\d+ bytes, \d+\.\d+ ms expected\)/, 'show tells what is copied');
like(run("show $split --board $board"), qr/sim:fast\s+-> sim:near\s+2000 bytes\s+\d+\.\d+ ms \(guess\)/, 'and that its time is a guess');
{
    my $cache = tempdir(CLEANUP => 1);
    run("tune $split --weights random:1 --board $board --devices sim:fast,sim:near --cache $cache");
    like(run("show $split --board $board --cache $cache --json"),
         qr/"to":"sim:near","bytes":2000,"ms":[\d.e-]+,"ms_from":"recorded","simulated":true\}/, 'or measured, where tune has it on record');
}
like(run("show $split --board $board --json"), qr/\{"transfer":"fc","from":"sim:fast","to":"sim:near","bytes":2000,"ms":[\d.e-]+,"ms_from":"guess","simulated":true\}/, 'each copy');
like(run("bench $split --weights random:1 --board $board --profile --json"),
     qr/"op":"\(copy\)".*"from":"sim:fast","to":"sim:near","bytes":2000,.*"simulated":true\}/, 'bench --profile too, with its time');

near(median("$split --weights random:1 --board $board,units.1.launch=0,units.2.launch=0,units.2.split.seconds=0 --device sim:near"), 1,
     'where nothing else counts, half of the 2 ms that one takes');

like(run("kernelcheck --kernel simulated --device sim:fast --op conv --cases 10 --board $board"), qr/# 1 kernels.*, 0 failed, 0 not judged/,
     'the kernel is judged as others are');
like(run("bench $net --board $board,units.1.launch=1e300 --device sim:fast --runs 1 --warm 0"), qr/two\.lua: units\.1\.launch: want a number in s, 0 to 60, got 1e\+300/, 'absurd numbers are reported');

# ---- heat ----

my $heat = write_file('heat.lua', <<'END');
local c = require "cnnrun"
return function(args)
  local net, x = c.load(args[1], { device = args[2], weights = "random:1" }), c.tensor { shape = { 1, 1000 }, dtype = "f32" }
  for _ = 1, 200 do
    local from = c.now()
    net:run { x }
    print(string.format("%.6f", c.now() - from))
  end
end
END
my $hot = "$board,heat.ohms=5,heat.limit=50";
like(run("gauges --board $board,heat.ohms=5"), qr/board +temperature +20/, 'at first, the temperature around it');
my %took = map { $_ => 1 } split ' ', run("--trust --board $hot $heat $tmp/net.lua sim:fast");
is(join(' ', sort keys %took), '0.003001 0.005002', 'above the limit clocks go down, and up again');
near(median("$net --board $board,heat.ohms=5 --device sim:fast --runs 300"), 3.001, 'without a limit, they do not');

# ---- what is wrong is told ----

# A test: a board of this text is refused.
sub wrong {
    my ($text, $like, $what) = @_;
    my $file = write_file('bad.lua', $text);
    my $out = run("gauges --board $file");
    ok($? != 0, "$what ends with an error");
    like($out, $like, "$what is told");
}
wrong('return 7', qr/bad\.lua.*number value, want a table/s, 'a board that is no table');
wrong('return { a = print }', qr/a: want a number, a text or a table, got a function/, 'a function in it');
wrong('local t = {} t.t = t return t', qr/in each other/, 'a table in itself');
wrong('local t = {} for i = 1, 30000 do t[i] = i end return t', qr/more than 20000/, 'one without end');
wrong('while true do end', qr/longer than it may/, 'a loop');
$out = run("gauges --board $board,units.1.lunch=3");
ok($? != 0 && $out =~ /no value "units\.1\.lunch"; did you mean units\.1\.launch/, 'a value that it has not is reported');
$out = run("gauges --board odroid_xu4");
ok($? != 0 && $out =~ /odroid_xu4: no board of that name: .*odroid_xu3/, 'and a board that there is not');
$out = run("bench $net --board $board,units.1.rail=none --device sim:fast");
ok($? != 0 && $out =~ /two\.lua: units\.1\.rail: want the name of one of rails, got "none"/, 'and a name that nothing has');

# ---- a board that is this machine is not simulated ----

mkdir "$tmp/proc";
mkdir "$tmp/proc/device-tree";
write_file('proc/device-tree/model', "Two 1.0\0");
my $auto = write_file('auto.lua', qq{return { clock = "simulated", simulate = "auto", machine = "Two", rails = { { name = "chip" } },
  units = { { name = "fast", launch = 0, host = true, power = { static = 1 }, $unit } } }});
unlike(`CNNRUN_SYSFS_ROOT=$tmp $build/cnnrun gauges --board $auto 2>&1`, qr/sim-meter/, 'a board that is this machine is not simulated');
like(run("gauges --board $auto"), qr/sim-meter/, 'on another it is');

done_testing;
