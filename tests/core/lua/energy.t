#!/usr/bin/perl
# c.energy(function): what it took by a tree of made-up sensors, repeated until they can tell; and energy
# of what nets do.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../plugins/gauge-common";
use Test::More;
use Tree;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} || "$root/build";
my $tree = Tree->new("$root/tests/plugins/meter-hwmon/odroid-xu3.tree");
my $empty = Tree->new("sys/x = 1\n");
my $n = 0;
# Runs a script on made-up sensors; returns its output.
sub script {
    my ($text, $where, @words) = @_;
    my $path = $tree->root . '/script' . ++$n . '.lua';
    open my $out, '>', $path or die;
    print $out "local c = require 'cnnrun'\nreturn function(args)\n$text\nend\n";
    close $out;
    my $said;
    for (1 .. 5) { # where the machine stood still, sensors were not read for long enough to tell
        $said = `$build/cnnrun --sysfs-root @{[$where->root]} $path @words 2>&1`;
        last if $where == $empty || $said !~ /unmeasured|on a nil value|\tfalse\n/;
    }
    return $said;
}
my $work = <<'END';
local calls = 0
local e = c.energy(function() calls = calls + 1 for i = 1, 2e5 do end end)
END
my $out = script("$work print(e.source, e.rounds == calls, calls > 1, e.rounds * e.seconds >= 1, #e.domains)\n" .
    'print(("%.4f %.4f"):format(e.watts, e.joules / e.seconds), math.abs(e.edp - e.joules * e.seconds) < 1e-12)
     print(e.domains[1].name, e.domains[1].feeds, e.domains[1].meter, e.domains[1].joules < e.joules, e.samples >= 20)
     print(math.abs(e.joules_net) < 1e-6, ("%.4f"):format(e.idle_watts))', $tree);
is($out, "measured\ttrue\ttrue\ttrue\t4\n4.1082 4.1082\ttrue\na15\tcpu:big\thwmon\ttrue\ttrue\ntrue\t4.1082\n",
    'a function, repeated until sensors could tell');
$out = script('local e = c.energy(function() end, { rounds = 3, no_idle = true })
    print(e.source, e.joules, e.watts, e.rounds, e.idle_watts, #e.domains)', $empty);
is($out, "unmeasured\tnil\tnil\t3\tnil\t0\n", 'without a meter: nil, not 0');
$out = script("print(pcall(c.energy, function() error('it broke', 0) end, { no_idle = true }))
    $work print(e.source)", $tree);
like($out, qr/^false\tit broke\nmeasured$/m, "the function's error is the result's, and nothing is left behind");
like(script('c.energy(3)', $tree), qr/function expected/, 'what is no function');
like(script('c.energy(function() end, { round = 3 })', $tree), qr/round.*did you mean.*rounds/s, 'a key that is none');
like(script('c.energy(function() local e = c.energy(function() end, { no_idle = true }) print(e.source) end, { no_idle = true })', $tree),
    qr/^measured$/m, 'one in another');

# ---- nets ----
my $net = "local net = c.load(args[1], { weights = 'random:1', device = 'cpu' })\n";
my $lenet = "$root/scripts/nets/lenet5.lua";
$out = script($net . <<'END', $tree, $lenet);
local p = net:profile { runs = 2, energy = true }
local all = 0
for _, row in ipairs(p) do all = all + row.joules end
print(("%.4f"):format(p.energy.watts), math.abs(all / p.energy.joules - 1) < 1e-6, p.joules_by)
p = net:profile { runs = 2 }
print(p.energy, p[1].joules, p.joules_by)
END
is($out, "4.1082\ttrue\ttime\nnil\tnil\tnil\n", 'net:profile { energy = true }');
SKIP: {
    my $mnist = "$root/../shared/data/mnist";
    skip '../shared/data/mnist is not here', 1 unless -d $mnist;
    $out = script($net . <<'END', $tree, $lenet, "mnist:$mnist");
local e = net:evaluate { data = args[2], limit = 50, energy = true }
print(e.energy.rounds >= 50 and e.energy.rounds % 50, e.energy.source, net:evaluate { data = args[2], limit = 10 }.energy)
print(net:train { data = args[2], limit = 100, epochs = 1, energy = true }.energy.source)
END
    is($out, "0\tmeasured\tnil\nmeasured\n", 'net:evaluate, net:train');
}
done_testing;
