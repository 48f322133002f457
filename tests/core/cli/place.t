#!/usr/bin/perl
# cnnrun place on a simulated board: the thesis' devices, set and shares, and what is kept and loaded again.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);

# The rows of `place`, by what they tell.
sub place {
    my @lines = map { decode_json $_ } `$build/cnnrun place @_ --runs 1 --json 2>/dev/null`;
    my %of = map { ("$_->{row} $_->{name}" => $_) } grep { $_->{row} } @lines;
    return { rows => \%of, nodes => { map { $_->{node} => $_->{placed} } grep { $_->{node} } @lines },
             steps => scalar((grep { $_->{steps} } @lines)[0] // undef), end => $lines[-1], code => $? };
}
# A test: within a part of what is wanted.
sub near { my ($is, $want, $part, $what) = @_; ok(defined $is && abs($is / $want - 1) <= $part, $what) or diag($is // 'none', ", want $want") }

# a policy's rows have what was measured on each device just now, and so have the links
open my $look, '>', "$tmp/look.lua" or die $!;
print $look <<'END';
return { place = function(rows, seen)
  local from, links, sum = {}, {}, 0
  for _, r in ipairs(rows) do
    if r.kernel ~= "reference" and not seen.nodes[r.index].with then from[r.ns_from .. " " .. tostring(r.joules_from)] = true end
    if r.device == "sim:gpu4" and r.ns_from == "measured" then sum = sum + r.ns * 1e-9 end
  end
  for _, l in ipairs(seen.links) do links[l.from_where] = true end
  local list = {}
  for k in pairs(from) do list[#list + 1] = k end
  return {}, { rows = table.concat(list, ", "), measured_links = links.measured and not links.guess, ratio = sum / seen.devices[1].seconds }
end }
END
close $look;
my $seen = place("$root/scripts/nets/lenet5.lua --weights random:1 --board odroid_xu3,dry --devices sim:gpu4,sim:gpu2 --policy $tmp/look.lua")->{steps}{steps};
is($seen->{rows}, 'measured measured', 'times and joules of rows are those measured just now');
ok($seen->{measured_links}, 'copies, too');
near($seen->{ratio}, 1, 0.05, 'together they are the time of the net');

my $tiny = "$root/scripts/nets/yolo_v1_tiny.lua --weights random:1 --board odroid_xu3,dry --devices sim:gpu4,sim:gpu2,sim:cpu";
my $set = place("$tiny --policy edp_set");
near($set->{rows}{'device sim:gpu4'}{edp}, 2.81, 0.005, "the GPU's EDP is table 4.1's");
near($set->{rows}{'device sim:cpu'}{edp}, 622.31, 0.001, "and the processor's");
is((grep { ref $_ && $_->{dropped} } @{$set->{steps}{steps}})[0]{dropped}, 'sim:cpu', 'algorithm 4.1 drops the processor');
is($set->{nodes}{conv_7}, 'sim:gpu4 66.7%, sim:gpu2 33.3%', 'algorithm 4.2 shares among the clusters');
near($set->{rows}{'measured measured'}{watts}, 1.22, 0.005, "which draws the document's 1.22 W");
ok(!$set->{end}{kept}, 'no device alone is better');

my $greedy = place("$tiny --policy greedy --always");
near($greedy->{rows}{'measured measured'}{seconds}, 1.211, 0.03, 'greedy: seconds as in the document');
near($greedy->{rows}{'measured measured'}{watts}, 5.44, 0.03, 'watts');
near($greedy->{rows}{'measured measured'}{joules}, 6.59, 0.03, 'joules');
near($greedy->{rows}{'measured measured'}{edp} / $set->{rows}{'measured measured'}{edp}, 3.67, 0.03, 'and the ratio of EDP');

my $all = place("$tiny --policy edp_set --threshold 3");
like($all->{nodes}{conv_7}, qr/sim:cpu/, 'a threshold of 3 keeps the processor');
is($all->{end}{kept}, 'sim:gpu4', 'but the GPU alone is better then, and is kept');

# ---- nets whose layers take along what stands later: shortcuts ----

my $residual = "$root/scripts/nets/resnet18.lua --weights random:1 --board odroid_xu3,dry --devices sim:gpu4,sim:gpu2,sim:cpu";
for (['best', 'edp'], ['fastest', 'seconds'], ['least_energy', 'joules']) {
    my ($policy, $what) = @$_;
    my $got = place("$residual --policy $policy --always");
    my ($least) = sort { $a <=> $b } map { $_->{$what} } grep { $_->{row} eq 'device' } values %{$got->{rows}};
    is($got->{code}, 0, "$policy of a residual net");
    cmp_ok($got->{rows}{'measured measured'}{$what} // 9e9, '<=', 1.001 * $least, "its $what: not above any device's alone");
}

# ---- a card that what is queued reaches late, which nothing sees of a whole net: steps one by one take five times as long ----

open my $card, '>', "$tmp/card.lua" or die;
print $card <<'END';
local all = { { op = "*", gflops = 800, gbytes = 400 } }
return { clock = "simulated", simulate = true, dry = true, name = "card", rails = { { name = "chip", idle = 1 } },
         units = { { name = "gpu", rail = "chip", launch = 5e-6, latency = 2e-4, power = { static = 20 }, classes = all,
                     transfer = { gbytes = 10, seconds = 5e-6 } },
                   { name = "cpu", rail = "chip", host = true, launch = 1e-6, power = { static = 10 },
                     classes = { { op = "*", gflops = 60, gbytes = 20 } } } } }
END
close $card;
my $queued = "$root/scripts/nets/squeezenet_v1_1.lua --weights random:1 --board $tmp/card.lua --policy best --always";
my $steps = `$build/cnnrun bench $root/scripts/nets/squeezenet_v1_1.lua --weights random:1 --board $tmp/card.lua --device sim:gpu --runs 1 --profile --json`;
my $one_by_one = 0;
$one_by_one += $_ for $steps =~ /"step":.*?"ms":([0-9.e+-]+)/g;
for my $what ('edp', 'time', 'energy') {
    my $got = place("$queued --policy-option objective=$what");
    my ($gpu, $is, $said) = @{$got->{rows}}{'device sim:gpu', 'measured measured', 'predicted predicted'};
    cmp_ok($one_by_one, '>', 4e3 * $gpu->{seconds}, 'layers one by one are no net') if $what eq 'edp';
    near($is->{seconds}, $said->{seconds}, 0.03, "$what: the seconds that were predicted");
    near($is->{joules}, $said->{joules}, 0.03, 'and the joules');
    cmp_ok($is->{seconds}, '<=', 1.01 * $gpu->{seconds}, 'it is not split for what no whole net waits for') if $what ne 'energy';
}

# ---- ours, kept in the cache and taken over ----

my $lenet = "$root/scripts/nets/lenet5.lua --weights random:1 --board odroid_xu3,dry --devices sim:gpu4,sim:gpu2,sim:cpu";
mkdir "$tmp/cache";
chmod 0700, "$tmp/cache";
my $best = place("$lenet --policy best --cache $tmp/cache -o $tmp/mine.lua");
my ($alone) = sort { $a <=> $b } map { $_->{edp} } grep { $_->{row} eq 'device' } values %{$best->{rows}};
cmp_ok($best->{rows}{'measured measured'}{edp}, '<=', 1.001 * $alone, 'never worse than the best device alone');
near($best->{rows}{'measured measured'}{edp}, $best->{rows}{'predicted predicted'}{edp}, 0.02, 'as was predicted');
my $again = place("$lenet --policy best --cache $tmp/cache");
ok($again->{end}{found}, 'a second start takes it over');
is_deeply($again->{nodes}, $best->{nodes}, 'with the same devices');
is(scalar(grep { /^device/ } keys %{$again->{rows}}), 0, 'and measures no device alone');
my $ran = `$build/cnnrun bench $root/scripts/nets/lenet5.lua --weights random:1 --board odroid_xu3,dry --runs 1 --profile --cache $tmp/cache 2>&1`;
like($ran, qr/by the placement that cnnrun place keeps/, 'other commands follow it, and say so');
like($ran, qr/conv1 .* sim:gpu4/, 'on its devices');
like(`$build/cnnrun show $root/scripts/nets/lenet5.lua --weights random:1 --board odroid_xu3,dry --cache $tmp/cache 2>&1`, qr/by the placement/, 'show as well');
unlike(`$build/cnnrun bench $root/scripts/nets/lenet5.lua --weights random:1 --board odroid_xu3,dry --runs 1 --device sim:gpu2 --cache $tmp/cache 2>&1`,
       qr/placement/, 'not where another device is asked for');
like(`$build/cnnrun bench $root/scripts/nets/lenet5.lua --weights random:1 --board odroid_xu3,dry,units.1.launch=0.02 --runs 1 --cache $tmp/cache 2>&1`,
     qr/is for other devices or drivers/, 'one that is stale is reported');
my $other = place("$lenet,sim:a15 --policy best --cache $tmp/cache");
ok(!$other->{end}{found}, 'not with other devices');
my $board = place(($lenet =~ s/odroid_xu3,dry/odroid_xu3,dry,units.1.launch=0.01/r) . " --policy best --cache $tmp/cache");
ok(!$board->{end}{found}, 'nor on another board');
like(`$build/cnnrun show $root/scripts/nets/lenet5.lua --board odroid_xu3,dry --policy $tmp/mine.lua 2>&1`, qr/conv1 .* sim:gpu4/,
     'what was written is a policy that others take');

# ---- objectives, limits, and drawn boards ----

for my $seed (1 .. 3) {
    my $board = "$root/scripts/nets/lenet5.lua --weights random:1 --board drawn,seed=$seed,dry";
    my %of;
    for my $what ('time', 'energy', 'edp') {
        my $p = place("$board --policy best --policy-option objective=$what");
        my $key = $what eq 'time' ? 'seconds' : $what eq 'energy' ? 'joules' : 'edp';
        my ($least) = sort { $a <=> $b } map { $_->{$key} } grep { $_->{row} eq 'device' } values %{$p->{rows}};
        my $got = $p->{end}{kept} ? $p->{rows}{"device $p->{end}{kept}"}{$key} : $p->{rows}{'measured measured'}{$key};
        cmp_ok($got, '<=', 1.001 * $least, "drawn board $seed: $what no worse than of one device");
    }
}

# ---- from a script ----

open my $f, '>', "$tmp/place.lua" or die;
print $f <<'END';
local c = require "cnnrun"
return function(args)
  local net = c.load(args[1], { weights = "random:1", device = "sim:gpu4" })
  local p = net:place { policy = "best", runs = 1, policy_options = { objective = "edp" },
                        devices = { "sim:gpu4", "sim:gpu2", "sim:cpu" } }
  print(#p, p[1].name, p.measured.edp <= 1.001 * p[1].edp, p.shares.conv1["sim:gpu4"])
  print(select(2, pcall(net.place, net, { policy = "bset" })))
  print(select(2, pcall(net.place, net, {})))
  print(select(2, pcall(net.place, net, { policy = "/etc/passwd" })))
end
END
close $f;
my $told = `$build/cnnrun --board odroid_xu3,dry $tmp/place.lua $root/scripts/nets/lenet5.lua 2>&1`;
like($told, qr/^3\tsim:gpu4\ttrue\t1/, 'net:place gives rows, and shares by layer');
like($told, qr/bset: no such file/, 'and errors');
like($told, qr/policy: wanted/, 'of what is missing, too');
like($told, qr{/etc/passwd.*may not be read}, 'and reads no file that it may not');

# kept by one script, followed by another that asks for it
open $f, '>', "$tmp/kept.lua" or die;
print $f <<'END';
local c = require "cnnrun"
return function(args)
  local function options(placed) return { weights = "random:1", device = "sim:gpu2", placed = placed } end
  local function runs_on(net) return net:profile { runs = 1 }[1].device end
  local how = { policy = "best", runs = 1, devices = { "sim:gpu4", "sim:gpu2", "sim:cpu" }, folder = args[2] }
  print("first", runs_on(c.load(args[1], options(args[2]))), c.load(args[1], options()):place(how).found)
  print("then", runs_on(c.load(args[1], options(args[2]))), c.load(args[1], options()):place(how).found)
  print("unasked", runs_on(c.load(args[1], options())))
  print(select(2, pcall(c.load, args[1], options("/var"))))
end
END
close $f;
mkdir "$tmp/kept";
chmod 0700, "$tmp/kept";
$told = `$build/cnnrun --board odroid_xu3,dry $tmp/kept.lua $root/scripts/nets/lenet5.lua $tmp/kept 2>&1`;
like($told, qr/^first\tsim:gpu2\tfalse$/m, 'a folder without a placement changes nothing') or diag($told);
like($told, qr/^then\tsim:gpu4\ttrue$/m, 'one that a script kept is followed by the next load');
like($told, qr/^unasked\tsim:gpu2$/m, 'which asks for it');
like($told, qr{/var.*may not be read}, 'of a folder that it may read');

# ---- what is wrong is told ----

my $out = `$build/cnnrun place $lenet --policy bset 2>&1`;
ok($? != 0 && $out =~ /bset: no such file, nor a policy among the installed scripts/, 'a policy that is none');
$out = `$build/cnnrun place $lenet 2>&1`;
ok($? != 0 && $out =~ /want --policy NAME/, 'none at all');
$out = `$build/cnnrun place $lenet --policy best --policy-option objective=least 2>&1`;
ok($? != 0 && $out =~ /want edp, energy or time/, 'a setting that the policy refuses');
$out = `$build/cnnrun place $lenet,sim:none --policy best 2>&1`;
ok($? != 0 && $out =~ /sim:none: no such device/, 'a device that is not there');

done_testing;
