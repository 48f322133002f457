#!/usr/bin/perl
# Policies in Lua, from the program, scripts and nets, on two clusters of cores that are a tree of fixtures: no
# device is needed. What they pick runs; what throws, loops, allocates or makes no sense leaves the default
# plan, told once, with its line; a plan that is stored knows whose it is.
use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $net = 'scripts/nets/lenet5.lua';
my $picture = 'scripts/nets/digits/seven.png';
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_OPENCL} = 'none';
$ENV{CNNRUN_CACHE} = '';

# Writes a file; returns its path.
sub put { my ($path, $text) = @_; open my $f, '>', $path or die "$path: $!"; print $f $text; close $f; $path }
# Writes a policy; returns its path.
sub policy { put("$dir/$_[0].lua", $_[1]) }
# Output and messages of a command.
sub said { my $out = `@_ 2>$dir/err`; open my $f, '<', "$dir/err" or die; local $/; return ($out, <$f>) }
sub rows { # of --candidates, and the line of the net
    my @lines = map { decode_json($_) } split /\n/, `$build/cnnrun show $net --json --candidates @_`;
    my $end = pop @lines;
    return ($end, @lines);
}

# two clusters: four little cores, four big ones
my $root = "$dir/odroid";
make_path("$root/proc", "$root/sys/devices/system/cpu");
put("$root/sys/devices/system/cpu/possible", "0-7\n");
put("$root/proc/cpuinfo", join '', map {
    my ($part, $capacity) = $_ < 4 ? ('0xc07', 448) : ('0xc0f', 1024);
    make_path("$root/sys/devices/system/cpu/cpu$_");
    put("$root/sys/devices/system/cpu/cpu$_/cpu_capacity", "$capacity\n");
    "processor\t: $_\nBogoMIPS\t: 26.00\nCPU implementer\t: 0x41\nCPU architecture: 8\n" .
        "CPU variant\t: 0x0\nCPU part\t: $part\nCPU revision\t: 4\n\n" } 0 .. 7);
$ENV{CNNRUN_SYSFS_ROOT} = $root;

# ---- the recipe of core/docs/scripting.md: the faster of two devices for each layer ----

my $readme = do { local $/; open my $f, '<', 'core/docs/scripting.md' or die; <$f> };
my ($recipe) = $readme =~ /## Policies.*?```lua\n(.*?)```/s;
ok $recipe, 'core/docs/scripting.md shows a policy' or BAIL_OUT('no recipe');
cmp_ok scalar(grep { /\S/ } split /\n/, $recipe), '<=', 10, 'of ten lines at most';
my $recipe_file = policy('recipe', $recipe);
my ($end, @rows) = rows('--policy', $recipe_file, '--devices', 'cpu:big,cpu:little');
is $end->{failure}, undef, 'it is followed';
my %least;
for my $r (@rows) { $least{$r->{node}} = $r->{ns} if !defined $least{$r->{node}} || $r->{ns} < $least{$r->{node}} }
my @taken = grep { $_->{chosen} } @rows;
is scalar(grep { $_->{ns} > $least{$_->{node}} && $_->{by} eq 'policy' } @taken), 0, 'each layer has its fastest row';

# ---- rows ----

($end, @rows) = rows('--devices', 'cpu:big,cpu:little', 'conv1');
is_deeply [sort keys %{$rows[0]}],
    [sort qw(node op kernel device takes layout_in layout_out encodings ns ns_from joules joules_from
             mhz bytes flops score splits chosen by why share extrapolated)], 'a row says all that is promised';
is scalar(grep { $_->{chosen} } @rows), 1, 'one is taken';
my ($one) = grep { $_->{chosen} } @rows;
is "$one->{device} $one->{by}", 'cpu:big score', 'on the first device, by score';
like $one->{why}, qr/./, 'and it is said why';
is_deeply [sort { $a cmp $b } keys %{{map { $_->{device} => 1 } @rows}}], ['cpu:big', 'cpu:little'],
    'rows of both devices';
is scalar(@{$end->{links}}), 2, 'and a link each way';
($end, @rows) = rows('--kernel', 'conv2=reference', 'conv2');
is +(grep { $_->{chosen} } @rows)[0]{by}, 'forced', 'what is forced';
($end, @rows) = rows('--deterministic', 'conv2');
is +(grep { $_->{chosen} } @rows)[0]{by}, 'deterministic', 'what no clock chose';
my ($out, $err) = said("$build/cnnrun show $net --candidates konv1");
like $err, qr/konv1: .*no such node; did you mean conv1/, 'a node that is not there';
($out, $err) = said("$build/cnnrun show $net conv1");
like $err, qr/wants --candidates/, 'a node without --candidates';
($out) = said("$build/cnnrun show $net --candidates");
like $out, qr/^conv1 \(conv\)\n\* \S+ .*score: /m, 'and a table for people';
like $out, qr/^relu1 \(relu\), computed with ip1$/m, 'where what is fused stands';

# ---- mistakes leave the default plan, and are told once ----

my $run = "$build/cnnrun run --json --devices cpu:big,cpu:little $net $picture";
my $usual = decode_json((said($run))[0])->{top}[0]{index};
# A test: the policy fails with this message, and the default plan is used.
sub falls_back {
    my ($name, $text, $line, $what) = @_;
    my $file = policy($name, $text);
    my ($out, $err) = said("$build/cnnrun run --json --devices cpu:big,cpu:little --policy $file $net $picture $picture");
    my @told = $err =~ /policy: (.*)/g;
    is scalar(@told), 1, "$name: told once" or diag $err;
    like $told[0] // '', qr/^\Q$name.lua:$line\E: .*$what.*; the default plan stands/, 'with its line, and why';
    my ($top) = $out =~ /^(\{.*)/;
    is eval { decode_json($top)->{top}[0]{index} }, $usual, 'and the net runs';
}
falls_back('throws', "return {\n  place = function()\n    error 'I never choose'\n  end }", 3, 'I never choose');
falls_back('loops', "return { place = function()\n  while true do end\nend }", 2, 'longer than it may');
falls_back('loops_at_once', "while true do end", 1, 'longer than it may');
falls_back('allocates', "return { place = function()\n  local t = {}\n" .
           "  for i = 1, 1e9 do t[i] = { i } end\nend }", 1, 'more memory');
falls_back('syntax', "return {\n  place = functoin() end }", 2, 'expected');
falls_back('no_place', 'return { choose = 1 }', 1, "no function 'place'");
falls_back('no_table', 'return 1', 1, 'want a table');
falls_back('unknown', "return { place = function() return { konv1 = 'cpu:big' } end }", 1,
           "'konv1'.*did you mean 'conv1'");
falls_back('device', "return { place = function() return { conv1 = 'mars' } end }", 1, 'no rows of device "mars"');
falls_back('other_row', "return { place = function(rows) return { conv1 = rows[#rows] } end }", 1,
           'row of another node');
falls_back('copied', "return { place = function(rows)\n  local r = {}\n" .
           "  for k, v in pairs(rows[1]) do r[k] = v end\n  return { [r.node] = r } end }", 1, 'want one of the rows');
falls_back('shares', "return { place = function()\n  return { conv1 = { ['cpu:big'] = 0.6, ['cpu:little'] = 0.6 } } end }",
           1, '1 in all');
falls_back('nan', "return { place = function()\n  return { conv1 = { ['cpu:big'] = 0/0, ['cpu:little'] = 1 } } end }",
           1, 'from 0 to 1');
falls_back('axis', "return { place = function()\n  return { prob = { axis = 5, ['cpu:big'] = 0.5, ['cpu:little'] = 0.5 } } end }",
           1, "can't be split");
falls_back('number', 'return { place = function() return 7 end }', 1, 'place returns number');
falls_back('list', 'return { place = function() return { 7 } end }', 1, 'returns a list');
falls_back('files', "return { place = function()\n  require 'cnnrun'\nend }", 2, 'reads no files');
falls_back('globals', "return { place = function()\n  x = 1\nend }", 2, "'x' is assigned as a global");
($out, $err) = said("$run --policy $dir/absent.lua");
is $? >> 8, 6, 'a file that is not there is an error';
like $err, qr/absent\.lua: can't be opened/, 'and named';
($out, $err) = said("$run --policy $recipe_file --policy-option threshold");
like $err, qr/threshold: want NAME=VALUE/, 'so is an option without a value';
($out, $err) = said("$run --devices cpu:mars");
like $err, qr/cpu:mars: no such device/, 'and a device that is not there';

# ---- what it sees; what it shows ----

my $seer = policy('seer', <<'LUA');
return { devices = { "cpu:big", "cpu:little" }, place = function(rows, seen)
  local a, b, first
  for _, r in ipairs(rows) do
    if r.node == "conv1" and r.device == "cpu:big" then a = a or r end
    if r.node == "pool1" and r.device == "cpu:big" then first = first or r end
    if r.node == "pool1" and r.device == "cpu:little" then b = b or r end
  end
  local names = {}
  for i, d in ipairs(seen.devices) do names[i] = d.name end
  return { conv1 = { ["cpu:big"] = 0.75, ["cpu:little"] = 0.25 }, pool1 = b, ip1 = "cpu:little" },
    { devices = names, options = seen.options, near = seen.between(a, first), far = seen.between(a, b),
      inputs = seen.nodes[2].inputs, splits = seen.nodes[1].splits, nodes = #seen.nodes, axes = seen.nodes[1].axes }
end }
LUA
($end, @rows) = rows('--policy', $seer, '--policy-option', 'threshold=0.5', '--policy-option', 'objective=edp');
my $notes = $end->{notes};
is_deeply $notes->{devices}, ['cpu:big', 'cpu:little'], 'it sees the devices that it names';
is_deeply $notes->{options}, {threshold => 0.5, objective => 'edp'}, 'its options';
ok $notes->{near} == 0 && $notes->{far} > 0, 'what lies between two rows';
is_deeply [$notes->{inputs}, $notes->{nodes}], [[1], 8], 'and the net';
ok $notes->{splits} && grep({ $_ == 1 } @{$notes->{axes}}), 'with what can be split, and along which axes';
my %share = map { ("$_->{node} $_->{device}" => $_->{share}) } grep { $_->{chosen} } @rows;
is_deeply [@share{'conv1 cpu:big', 'conv1 cpu:little', 'pool1 cpu:little'}], [0.75, 0.25, 1],
    'shares, a row and a device are followed';
is +(grep { $_->{chosen} && $_->{node} eq 'ip1' } @rows)[0]{takes}, 2, 'what follows a node goes along';
is decode_json((said("$run --policy $seer"))[0])->{top}[0]{index}, $usual, 'and the answer is the same';

# what the whole net takes on each device alone: its least rows and what lies between them, or as the options say
my $alone = policy('alone', <<'LUA');
return { devices = { "cpu:big", "cpu:little" }, place = function(rows, seen)
  local shown = { with = {} }
  for i, node in ipairs(seen.nodes) do shown.with[node.name] = node.with end
  for _, d in ipairs(seen.devices) do
    local at, ns, before = 1, 0, nil
    while at <= #seen.nodes do -- which follow each other
      local least
      for _, r in ipairs(rows) do
        if r.index == at and r.device == d.name and (not least or r.ns < least.ns) then least = r end
      end
      ns, at = ns + least.ns + (before and seen.between(before, least) or 0), at + least.takes
      before = least
    end
    shown[d.name] = { seconds = d.seconds, ns = ns, joules = d.joules }
  end
  return nil, shown
end }
LUA
$notes = (rows('--policy', $alone))[0]{notes};
for my $device ('cpu:big', 'cpu:little') {
    my $is = $notes->{$device};
    ok $is->{ns} > 0 && abs($is->{seconds} * 1e9 / $is->{ns} - 1) < 1e-9 && !defined $is->{joules}, "$device alone: its rows";
}
is $notes->{with}{relu1}, 'ip1', 'a node tells with which other it goes along';
$notes = (rows('--policy', $alone, '--policy-option', 'seconds@cpu:big=2', '--policy-option', 'joules@cpu:big=3'))[0]{notes};
is_deeply [@{$notes->{'cpu:big'}}{'seconds', 'joules'}], [2, 3], 'as it was measured';
ok $notes->{'cpu:little'}{seconds} < 1, 'which nothing says of the other';

# ---- stored plans ----

# Where the plan of a run came from, as its log says (or the whole log).
sub origin {
    my ($out, $err) = said("$build/cnnrun run -v --cache $dir/cache --json $net $picture @_");
    return $err =~ /\.plan: (.*)/ ? $1 : $err;
}
like origin('--policy', $seer), qr/^miss/, 'a plan by a policy is stored';
is origin('--policy', $seer), 'hit', 'and taken over';
like origin('--policy', $seer, '--policy-option', 'x=1'), qr/^stale: policy changed/, 'not for other options';
put($seer, do { local $/; open my $f, '<', $seer or die; <$f> . "\n-- changed\n" });
like origin('--policy', $seer), qr/^stale: policy changed/, 'nor for another text';
is origin('--policy', $seer), 'hit', 'which has its own then';
like origin('--policy', "$dir/throws.lua"), qr/^miss/, 'one that fails';
like origin('--policy', "$dir/throws.lua"), qr/^miss/, 'has none stored';

# ---- from scripts, and with a net ----

my $experiment = put("$dir/ask.lua", <<'LUA');
local c = require "cnnrun"
return function(args)
  local net = c.load(args[1], { policy = args[2], policy_options = { threshold = 2 }, devices = { "cpu:big", "cpu:little" } })
  local rows, said = net:candidates("conv1")
  for _, r in ipairs(rows) do
    if r.chosen then print(r.node, r.device, r.by, r.share) end
  end
  print(said.policy, said.failure, said.notes)
  print(pcall(net.candidates, net, "nonsense"))
end
LUA
($out, $err) = said("$build/cnnrun $experiment $net $seer");
like $out, qr/^conv1\tcpu:big\tscore\t0.75\nconv1\tcpu:little\tscore\t0.25\n/, 'c.load takes a policy; net:candidates() shows it';
like $out, qr/"threshold":2/, 'with options';
like $out, qr/false\t.*no node 'nonsense'/, 'a node that is not there';
policy('own', "return { devices = { 'cpu:little' }, place = function(rows, seen)\n" .
       "  local all = {}\n  for _, n in ipairs(seen.nodes) do all[n.name] = 'cpu:little' end\n  return all end }");
my $own = put("$dir/net.lua", <<'LUA');
local c = require "cnnrun"
return c.net { input = { "x", shape = { 1, 2, 6, 6 } }, policy = "own.lua",
  c.conv2d { "conv", out = 4, kernel = 3 }, c.relu { "act" } }
LUA
# The devices that run layers, sorted, in one text.
sub devices { join ' ', sort keys %{{map { $_->{device} => 1 } grep { $_->{device} }
              map { decode_json($_) } grep { /"device"/ } split /\n/, `$build/cnnrun show --json @_`}} }
is devices($own, '--weights', 'random:1'), 'cpu:little', 'a net brings its own';
is devices($own, '--weights', 'random:1', '--policy', $recipe_file, '--devices', 'cpu:big'), 'cpu:big',
    'for which another may be said';
system("$build/cnnrun convert $own -o $dir/net.cnr --weights random:1 >$dir/log 2>&1") == 0 or diag `cat $dir/log`;
is devices("$dir/net.cnr"), 'cpu:little', 'it goes with the net to a file';
put("$dir/bad.lua", "local c = require 'cnnrun'\nreturn c.net { input = { 'x', shape = { 1, 2 } },\n" .
    "  policy = 'absent.lua', c.relu {} }");
($out, $err) = said("$build/cnnrun show $dir/bad.lua");
like $err, qr/bad\.lua:2: policy: .*absent\.lua/, 'a policy that is not beside it is a mistake of the net';
done_testing;
