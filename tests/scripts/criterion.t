#!/usr/bin/perl
# Keys of a pruning schedule: criteria, rewinding, statistics of batches, mistakes found first, corrections.
use strict;
use warnings;
use File::Temp 'tempdir';
use Test::More;

my $build = $ENV{CNNRUN_BUILD} || 'build';
my $dir = tempdir(CLEANUP => 1);
my @names = qw(zero one two three four five six seven eight nine);

# Writes a file, given as path and text; dies if it can't.
sub spew { my ($f, $t) = @_; open my $o, '>:raw', $f or die "$f: $!"; print $o $t; close $o }
# The text of a file; '' if it can't be read.
sub slurp { my ($f) = @_; open my $in, '<:raw', $f or return ''; local $/; return scalar <$in> }
spew("$dir/list.txt", join '', map { "$ENV{PWD}/scripts/nets/digits/$names[$_ % 10].png " . $_ % 10 . "\n" } 0 .. 79);
spew("$dir/small.lua", <<'LUA');
local c = require "cnnrun"
return c.net { name = "small", input = { "data", shape = { "batch", 1, 28, 28 }, scale = 1 / 255 },
  c.maxpool { kernel = 2, stride = 2 }, c.conv2d { "conv1", out = 8, kernel = 3, stride = 2 },
  c.batch_normalization { "bn1" }, c.relu {}, c.dense { "ip1", out = 32 }, c.batch_normalization { "bn2" }, c.relu {},
  c.dense { "ip2", out = 10 }, c.softmax {} }
LUA
my $spec = "images:$dir/list.txt,shift=1";
my @same = ('--data', $spec, qw(--threads 2 --deterministic --json --eval), '');
is(system("$build/cnnrun train $dir/small.lua @same[0 .. 4] --eval '' --epochs 8 --batch 16 -q -o $dir/small.cnr >$dir/out 2>&1"), 0,
    'a net with batch normalisation') or diag slurp("$dir/out");

# Prunes by this schedule into $name.cnr and returns the exit code; told() gives the output.
sub prune {
    my ($name, $schedule, @more) = @_;
    spew("$dir/one.lua", "return require 'lib.prune'.schedule { scan = false, $schedule }");
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/out";
        open STDERR, '>', "$dir/err";
        exec "$build/cnnrun", 'prune', "$dir/small.cnr", "$dir/one.lua", @same, '--validation', 20, '-o', "$dir/$name.cnr",
            '--folder', "$dir/$name", @more or die;
    }
    waitpid $pid, 0;
    return $? >> 8;
}
# Returns the number named $word in the JSON line of pruning step $n of the last run; -1: there is none.
sub step { my ($n, $word) = @_; return (slurp("$dir/out") =~ /"$word":([0-9.]+)[^\n]*"step":$n\b/)[0] // -1 }
# Returns stdout and stderr of the last run.
sub told { return join '', map { slurp("$dir/$_") } 'out', 'err' }

my $train = 'train = { rate = 0.01, batch = 16 }';
my $two = 'layers = { ip1 = 0.2 }, rates = { 0.5 }';

# A criterion that is a function.
is(prune('size', "$two, $train"), 0, 'by size') or diag told();
is(prune('own', "$two, $train, saliency = { batches = 1 }, criterion = function(w) return w:times(w):plus(w:times(w), 1) end"), 0,
    'by a function of weights') or diag told();
ok(slurp("$dir/size.cnr") eq slurp("$dir/own.cnr"), 'that is as large as they are: the same net');
my $moved = 'saliency = { batches = 2, batch = 8 }, criterion = function(w, g, state) local t = w:times(g) ' .
    'state.n = (state.n or 0) + 1 state.sum = state.sum and state.sum:plus(t, -1) or t:times(-1) return state.sum end';
is(prune('moved', "$two, $train, $moved"), 0, 'by movement, of any sign') or diag told();
ok(slurp("$dir/size.cnr") ne slurp("$dir/moved.cnr"), 'another net');
cmp_ok(abs((slurp("$dir/out") =~ /"kept":([0-9.]+)[^\n]*"step":2/)[0] - slurp_kept('size', 2)), '<', 1e-9, 'of as many weights');
# Returns the share of weights that step $n kept, as the steps.csv of folder $name has it.
sub slurp_kept { my ($name, $n) = @_; return (slurp("$dir/$name/steps.csv") =~ /^$n,([0-9.]+)/m)[0] }

# A corrected schedule goes on with what still follows: step 1, with what its criterion remembered.
sub inode { return (stat "$dir/$_[0]")[1] }
my $first = inode('moved/step-1.cnr');
is(prune('moved', "layers = { ip1 = 0.1 }, rates = { 0.5 }, $train, $moved"), 0, 'with another end') or diag told();
is(inode('moved/step-1.cnr'), $first, 'the first step is not taken again');
is(prune('fresh', "layers = { ip1 = 0.1 }, rates = { 0.5 }, $train, $moved"), 0, 'the same from the beginning') or diag told();
ok(slurp("$dir/moved.cnr") eq slurp("$dir/fresh.cnr"), 'comes to the same net, bit for bit');
my $last = inode('moved/step-0.cnr');
is(prune('moved', "layers = { ip1 = 0.1 }, rates = { 0.5 }, $train, $moved, finish = { rate = 0.001, batch = 16 }"), 0, 'with a finish');
is(inode('moved/step-0.cnr'), $last, 'no step is taken again') or diag told();
is(prune('moved', "layers = { ip1 = 0.1 }, rates = { 0.5 }, train = { rate = 0.02, batch = 16 }, $moved"), 0, 'trained otherwise') or diag told();
isnt(inode('moved/step-1.cnr'), $first, 'all steps are');

# Statistics of batches follow from the weights that are left.
my $heavy = 'layers = { conv1 = 0.3, ip1 = 0.1 }, rates = "once", train = { rate = 0, batch = 16 }';
is(prune('stale', "$heavy, recalibrate = false"), 0, 'cut hard, statistics as they were') or diag told();
my $stale = step(1, 'cut');
is(prune('anew', $heavy), 0, 'cut hard, statistics anew') or diag told();
cmp_ok(step(1, 'cut'), '>', $stale, "right more often before training: $stale, " . step(1, 'cut'));
spew("$dir/look.lua", <<'LUA');
local c = require "cnnrun"
return function(args)
  local net, sum, pictures = c.load(args[1]), nil, {}
  local samples = c.samples(args[2], "train")
  for i = 1, #samples do pictures[i] = samples:at(i) end
  local small = c.load(c.net { name = "front", input = { "data", shape = { "batch", 1, 28, 28 }, scale = 1 / 255 },
    c.maxpool { kernel = 2, stride = 2 }, c.conv2d { "conv1", out = 8, kernel = 3, stride = 2 } }, { weights = "random:1" })
  for _, name in ipairs { "conv1.weight", "conv1.bias" } do small:set_weight(name, net:weight(name)) end
  local y = small:run { small:prepare(table.unpack(pictures)) }
  local shape, mean = y:shape(), 0
  local plane = shape[3] * shape[4]
  local flat = y:reshaped { shape[1] * shape[2] * plane }
  for n = 0, shape[1] - 1 do for i = 1, plane do mean = mean + flat[n * shape[2] * plane + i] end end
  print(("%.5f %.5f"):format(mean / plane / shape[1], net:weight "bn1.mean"[1]))
end
LUA
my ($mean, $kept) = split ' ', `$build/cnnrun $dir/look.lua $dir/anew/step-1.cnr images:$dir/list.txt 2>&1`;
cmp_ok(abs($mean - $kept), '<', 0.2 * abs $mean, "the mean is that of the data ($mean, $kept)");

# Rewinding: the net's own loop comes to the same.
is(prune('ticket', "layers = { ip1 = 0.2 }, rates = \"once\", rewind = 1, recalibrate = false, $train"), 0, 'a ticket with rewinding') or diag told();
spew("$dir/loop.lua", <<'LUA');
local c = require "cnnrun"
return function(args)
  local net, name = c.load(args[1]), "ip1.weight"
  local how = { data = args[2], validation = 20, validation_seed = 1, seed = 1, policy = "fixed", epochs = 1, rate = 0.01, batch = 16 }
  net:train(how)
  local early = net:copy()
  net:train(how)
  local cut = net:weight(name):pruned(0.2)
  early:set_weight(name, early:weight(name):pruned(cut:density(), { by = cut }))
  early:mask(name, true)
  early:train(how)
  local got, off = c.load(args[3]), 0
  for _, weight in ipairs(early:weights()) do
    for _, norm in ipairs(got:weight(weight):plus(early:weight(weight), -1):norms()) do off = math.max(off, norm) end
  end
  print(off, got:weight(name):density())
end
LUA
my $by_hand = `$build/cnnrun $dir/loop.lua $dir/small.cnr $spec $dir/ticket/step-1.cnr 2>&1`;
like($by_hand, qr/^[0-9.e-]+\s0\.\d+$/, 'a loop by hand');
cmp_ok((split ' ', $by_hand)[0], '<', 1e-5, "comes to the same weights ($by_hand)");

# What is wrong in a schedule is found before anything is judged.
for (["$two, criterion = 'movements'", qr/criterion: want magnitude, saliency or a function, got movements/],
    ["$two, train = { epoch = 1 }", qr/train: no option 'epoch' \(did you mean 'epochs'/],
    ["$two, train = { epochs = 0.5 }", qr/train\.epochs: want a whole number from 1 on, got 0\.5/],
    ["$two, finish = { optimizer = 'nosuch' }", qr/finish: nosuch: no such optimiser/],
    ["$two, unit = 'rows'", qr/unit: want element, block, channel, got rows/],
    ["layers = { ip1 = 0.2 }, rates = 'never'", qr/rates: want falling, cubic, once or a table, got never/],
    ["$two, steps = 1.5", qr/steps: want a whole number/], ["$two, rewind = -1", qr/rewind: want a whole number from 0 on/],
    ["$two, rewind = 1, unit = 'channel'", qr/rewind: removed channels/], ["$two, saliency = { batchs = 3 }", qr/saliency has the key 'batchs'/],
    ["$two, encode = 'nosuch'", qr/nosuch: no encoding of that name/], ["$two, stop = -1", qr/stop: want points/],
    ["$two, criterion = function(w) return 7 end", qr/criterion: want a tensor of the weight's shape for ip1, got 7/],
    ["$two, criterion = function(w) return w:taken(1, { 1 }) end", qr/for ip1, got one of 1,/],
    ["$two, criterion = function(w) error 'not today' end", qr/not today/]) {
    my ($schedule, $text) = @$_;
    isnt(prune('wrong', $schedule), 0, $schedule);
    like(slurp("$dir/err"), $text, 'is reported');
    ok(!-e "$dir/wrong/state.json", 'and no work was begun');
}
done_testing;
