#!/usr/bin/perl
# cnnrun prune: its files, messages and plots; killed and resumed it gives the same net; removal of whole
# channels.
use strict;
use warnings;
use File::Temp 'tempdir';
use Test::More;
use Time::HiRes 'sleep';

my $build = $ENV{CNNRUN_BUILD} || 'build';
my $dir = tempdir(CLEANUP => 1);
my @names = qw(zero one two three four five six seven eight nine);
my $drawn = -e "$build/plugins/draw-cairo.so";

# Writes a file, given as path and text; dies if it can't.
sub spew { my ($f, $t) = @_; open my $o, '>:raw', $f or die "$f: $!"; print $o $t; close $o }
# The text of a file; '' if it can't be read.
sub slurp { my ($f) = @_; open my $in, '<:raw', $f or return ''; local $/; return scalar <$in> }
spew("$dir/list.txt", join '', map { "$ENV{PWD}/scripts/nets/digits/$names[$_ % 10].png " . $_ % 10 . "\n" } 0 .. 119);
spew("$dir/few.lua", <<'LUA');
return require "lib.prune".schedule {
  layers = { ip1 = 0.05, ["conv*"] = "found" }, rates = { 0.5, 0.2 },
  scan = { points = 5, shares = { 0.8, 0.4 } },
  train = { epochs = 1, rate = 0.002, batch = 16 }, finish = { epochs = 2, rate = 0.002, batch = 16 },
}
LUA

# The words of the command that prunes into NAME, with more words.
sub command {
    my ($name, @more) = @_;
    return ("$build/cnnrun", 'prune', 'scripts/nets/lenet5.lua', "$dir/few.lua", '--data', "images:$dir/list.txt,shift=1",
        qw(--validation 40 --threads 2 --deterministic --json), '--eval', "images:$dir/list.txt",
        '-o', "$dir/$name.cnr", '--folder', "$dir/$name", @more);
}
# Starts a command; returns its process.
sub run {
    my ($out, @words) = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', $out;
        open STDERR, '>', "$dir/err";
        exec @words or die;
    }
    return $pid;
}
# Runs a command to its end; returns its status.
sub whole { waitpid run("$dir/out", @_), 0; return $? >> 8 }
# The weights of a net.
sub weights {
    my ($net, @names) = @_;
    spew("$dir/look.lua", 'local c = require "cnnrun" return function(a) local n = c.load(a[1]) for i = 2, #a do local t = ' .
        'n:weight(a[i]) print(table.concat(t:shape(), "x"), ("%.4f"):format(t:density())) end end');
    return split /\n/, `$build/cnnrun $dir/look.lua $net @names 2>&1`;
}

is(whole(command('a')), 0, 'prunes by a schedule') or diag slurp("$dir/err");
my @lines = split /\n/, slurp("$dir/out");
is(scalar(grep(/"scan":/, @lines)), 6, 'the scan has a line a layer and share');
is(scalar(grep(/"step":/, @lines)), 3, 'a step has a line');
like($lines[-1], qr/"bytes":\d+.*"kept":0\.\d+.*"test":[01]\.?\d*.*"tested":120.*"validated":40/, 'so has the end');
is((weights("$dir/a.cnr", 'ip1.weight'))[0], "500x800\t0.0500", 'the layer named is as sparse as asked, training or not');
like(slurp("$dir/a/scan.csv"), qr/^layer,keep,accuracy,loss\nconv1,0\.8,/, 'the scan is a table');
is(scalar(() = slurp("$dir/a/steps.csv") =~ /\n/g), 4, 'so are the steps');
my $page = slurp("$dir/a/report.html");
like($page, qr/right in the test.*file, bytes|file, bytes.*right in the test/s, 'the page tells size and accuracy');
like($page, qr/a run, ms.*arena, bytes.*energy/s, 'time, memory, energy');
SKIP: {
    skip 'draw-cairo was not built', 2 if !$drawn;
    like(slurp("$dir/a/$_.png"), qr/^\x89PNG/, "$_ is drawn") for 'scan', 'weights-ip1';
}

# Asked again it knows all of it; killed here and there it comes to the same.
is(whole(command('a')), 0, 'asked again it is done at once');
my $kills = 0;
srand 3;
for (1 .. 60) {
    my $pid = run('/dev/null', command('b'));
    sleep 0.1 + rand 0.4;
    kill 'KILL', $pid and $kills++;
    waitpid $pid, 0;
    last if -e "$dir/b.cnr";
}
is(whole(command('b')), 0, "killed $kills times it goes on to the end") or diag slurp("$dir/err");
ok(slurp("$dir/a.cnr") eq slurp("$dir/b.cnr"), 'to the same net, bit for bit');
my ($first, $second) = map { my $s = slurp("$dir/$_/state.json"); $s =~ s/.*"known"//s; $s } 'a', 'b';
is($second, $first, 'with the same figures on the way');
isnt(whole(command('a', '--seed', 2)), 0, 'another pruning does not go on from it');
like(slurp("$dir/err") . slurp("$dir/out"), qr/belongs to another pruning/, 'and says why');
is(whole(command('a', '--seed', 2, '--restart')), 0, 'unless it is told to begin anew');

spew("$dir/long.lua", slurp("$dir/few.lua") =~ s/epochs = 1/epochs = 100000/r);
my @long = command('stopped');
$long[3] = "$dir/long.lua";
my $pid = run("$dir/out", @long);
for (1 .. 2400) { last if slurp("$dir/stopped/state.json") =~ /"known"/; sleep 0.05 }
kill 'INT', $pid;
waitpid $pid, 0;
is($? >> 8, 130, 'Ctrl-C ends it');
ok(!-e "$dir/stopped.cnr", 'and nothing is written');

# Whole channels: the net shrinks, and what reads them with it; all layers by one threshold.
spew("$dir/few.lua", <<'LUA');
return require "lib.prune".schedule { unit = "channel", layers = { ["conv*"] = 0.5, ip1 = 0.2 }, rates = "once", scan = false,
  train = { epochs = 1, rate = 0.002, batch = 16 } }
LUA
is(whole(command('small')), 0, 'prunes channels') or diag slurp("$dir/err"), slurp("$dir/out");
is(join(' ', weights("$dir/small.cnr", 'conv1.weight', 'conv2.weight', 'ip1.weight', 'ip2.weight') ),
    "10x1x5x5\t1.0000 25x10x5x5\t1.0000 100x400\t1.0000 10x100\t1.0000", 'all shapes follow');
is(system("$build/cnnrun run $dir/small.cnr scripts/nets/digits/three.png >$dir/out 2>&1"), 0, 'and the net runs');
for my $criterion ('magnitude', 'saliency') {
    spew("$dir/few.lua", qq[return require "lib.prune".schedule { keep = 0.1, criterion = "$criterion", rates = "cubic", ] .
        'steps = 2, scan = false, saliency = { batches = 2, batch = 8 }, train = { rate = 0.002, batch = 16 } }');
    is(whole(command($criterion)), 0, "one threshold for all, by $criterion") or diag slurp("$dir/err"), slurp("$dir/out");
    my ($kept) = slurp("$dir/out") =~ /"kept":([0-9.]+),[^\n]*"report"/;
    cmp_ok(abs(($kept // 9) - 0.1), '<', 0.002, 'keeps the share of all');
}
spew("$dir/few.lua", 'return require "lib.prune".schedule { unit = "block", layers = { ip1 = 0.25 }, rates = "once", ' .
    'train = { rate = 0.002, batch = 16 } }');
is(whole(command('block', '--no-scan')), 0, 'blocks of four rows');
spew("$dir/look2.lua", 'local c = require "cnnrun" return function(a) local t, bad = c.load(a[1]):weight("ip1.weight"), 0 ' .
    'for r = 0, 499 do for k = 1, 800 do local z = t[r * 800 + k] == 0 if r % 4 == 0 then bad = bad elseif z ~= ' .
    '(t[(r - r % 4) * 800 + k] == 0) then bad = bad + 1 end end end print(bad, t:density()) end');
is(`$build/cnnrun $dir/look2.lua $dir/block.cnr`, "0\t0.25\n", 'stay or go as one');

# Every schedule that ships runs whole, on LeNet or on a small net with the layers that it names. The
# Channels of the last layer can't be removed.
spew("$dir/three_dense.lua", <<'LUA');
local c = require "cnnrun"
return c.net { name = "three_dense", input = { "data", shape = { "batch", 1, 28, 28 }, scale = 1 / 255 },
  c.conv2d { "conv1", out = 8, kernel = 5, stride = 3 }, c.relu {},
  c.dense { "fc6", out = 96 }, c.relu {}, c.dense { "fc7", out = 64 }, c.relu {}, c.dense { "fc8", out = 10 }, c.softmax {} }
LUA
# The largest share of weights that may be kept. Schedules with 0.9 stop early: forty pictures judge them.
my %max_kept = (movement => 0.11, taylor => 0.11, ticket => 0.11, lenet5 => 0.107, alexnet => 0.2, gradual => 0.9, saliency => 0.021, blocks => 0.9, channels => 0.9);
my %net_for = (alexnet => ["$dir/three_dense.lua", '--weights', 'random:1']);
for my $name (sort map { m{([^/]+)[.]lua$} } glob 'scripts/prune/*.lua') {
    my @words = command("shipped-$name");
    $words[3] = $name;
    splice @words, 2, 1, $net_for{$name}[0] if $net_for{$name};
    push @words, @{$net_for{$name}}[1 .. $#{$net_for{$name}}] if $net_for{$name};
    is(whole(@words, '--data', "images:$dir/list.txt", '--limit', 100), 0, "$name.lua runs") or diag slurp("$dir/err"), slurp("$dir/out");
    my ($kept) = slurp("$dir/out") =~ /"kept":([0-9.]+),[^\n]*"report"/;
    cmp_ok($kept // 9, '<', $max_kept{$name} // 0, 'and keeps few weights');
}
spew("$dir/few.lua", 'return require "lib.prune".schedule { unit = "channel", layers = { ip2 = 0.5 } }');
isnt(whole(command('wrong')), 0, 'the last layer\'s channels, asked for');
like(slurp("$dir/err"), qr/ip2: its channels can't be removed/, 'are refused');

spew("$dir/few.lua", 'return require "lib.prune".schedule { layers = { nowhere = 0.5 } }');
isnt(whole(command('wrong')), 0, 'a layer that is not there');
like(slurp("$dir/err") . slurp("$dir/out"), qr/no 'nowhere'/, 'is named');
isnt(whole("$build/cnnrun", qw(prune scripts/nets/lenet5.lua nosuch --data x -o), "$dir/x.cnr"), 0, 'so is a schedule');
like(slurp("$dir/err"), qr/nosuch.*no such schedule/, 'that is not there');
spew("$dir/few.lua", 'return require "lib.prune".schedule { layers = { ip1 = 0.5 }, rate = "once" }');
isnt(whole(command('wrong')), 0, 'a word that no schedule has');
is(slurp("$dir/err"), "cnnrun prune: $dir/few.lua: the schedule has the key 'rate', which is unknown\n", 'is named alone');
spew("$dir/few.lua", 'return require "lib.prune".schedule { layers = { ip1 = 0.5 }, rates = { 2 } }');
isnt(whole(command('wrong')), 0, 'a share of 2');
like(slurp("$dir/err"), qr/rates: want a share above 0, at most 1, got 2/, 'is refused');

# What the program's options say of nets holds for all that a schedule loads.
spew("$dir/few.lua", 'return require "lib.prune".schedule { layers = { ip1 = 0.5 }, rates = "once", ' .
    'train = { rate = 0.002, batch = 16 } }');
for (['--memory-limit', '1K', qr/memory/], ['--policy', "$dir/none.lua", qr/none\.lua/], ['--kernel', 'ip1=nosuch', qr/nosuch/],
    ['--device', 'nosuch', qr/nosuch: no such device/], ['--memory', '5M', qr/no place here/], ['--eval', 'images:none', qr/none/]) {
    my ($option, $value, $text) = @$_;
    isnt(whole(command('held', '--no-scan', $option, $value)), 0, "$option $value");
    like(slurp("$dir/err"), $text, 'is reported');
}
for (['--kernel', 'ip1=dense_f32_dot'], ['--arithmetic', 'fp16'], ['--weights-type', 'fp16'], ['--fallback', 'cpu'],
    ['--policy', 'best', '--policy-option', 'objective=time'], ['--no-verify'], ['--memory-limit', '1G']) {
    is(whole(command('held', '--no-scan', '--restart', @$_)), 0, "@$_ holds for what is loaded") or diag slurp("$dir/err");
}
done_testing;
