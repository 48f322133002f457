#!/usr/bin/perl
# Quantised ONNX models run in whole numbers: drawn nets of nodes between DequantizeLinear and
# QuantizeLinear beside the same nets with fold-quantized switched off, and beside ONNX Runtime where
# Python has it. What export writes of them gives the same answers.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp qw(tempdir);
use JSON::PP;
use Onnx;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => "no $build/plugins/import-onnx.so" unless -e "$build/plugins/import-onnx.so";
my $dir = tempdir(CLEANUP => 1);
my $nets = $ENV{CNNRUN_NETS} // 60;
my $first = $ENV{CNNRUN_SEED} // 1;

# Writes a file; returns its path.
sub file {
    my ($name, $text) = @_;
    open my $f, '>:raw', "$dir/$name" or die;
    print $f $text;
    close $f;
    return "$dir/$name";
}
sub npy { # floats in a file
    my ($name, $dims, @values) = @_;
    my $head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" . join('', map {"$_,"} @$dims) . '), }';
    $head .= ' ' x (63 - (length($head) + 10) % 64) . "\n";
    return file($name, "\x93NUMPY\x01\x00" . pack('v', length $head) . $head . pack 'f<*', @values);
}
# Floats of a file.
sub floats {
    open my $f, '<:raw', "$dir/$_[0]" or return;
    local $/;
    my $text = <$f>;
    return unpack 'f<*', substr $text, 10 + unpack 'v', substr $text, 8, 2;
}
# How many differ by more than one step, and by more than two (or are not there).
sub apart {
    my ($step, $a, $b) = @_;
    return (1e9, 1e9) if @$a != @$b || !@$a;
    my @off = map { abs($a->[$_] - $b->[$_]) / $step } 0 .. $#$a;
    return (scalar(grep { !($_ < 1.01) } @off), scalar grep { !($_ < 2.01) } @off);
}

my (@drawn, @lines);
for my $seed ($first .. $first + $nets - 1) {
    my $dynamic = $seed % 6 == 0;
    my ($dims, $step) = $dynamic ? Onnx::draw_dynamic($seed, "$dir/$seed.onnx")
        : Onnx::draw($seed, 1 + $seed % 5, "$dir/$seed.onnx");
    my $count = 1;
    $count *= $_ for @$dims;
    npy("$seed.in.npy", $dims, map { rand(2) + rand(2) + rand(2) - 3 } 1 .. $count);
    push @drawn, {seed => $seed, step => $step, dynamic => $dynamic};
    push @lines, $seed;
}
# What `cnnrun quantize` makes of drawn nets, too.
my $pictures = 'tests/plugins/source-images/pictures';
my @quantized;
for my $seed (1 .. 5) {
    srand 77 * $seed;
    my ($a, $b, $k, $m) = map { Onnx::whole(@$_) } [2, 20], [2, 20], [1, 3], [3, 40];
    my $act = Onnx::one_of(qw(relu relu6 tanh hard_swish leaky_relu prelu));
    my $net = file("q$seed.lua", <<"LUA");
local c = require "cnnrun"
return c.net {
  name = "drawn",
  input = { "data", shape = { 1, 3, 32, 32 }, scale = 1 / 255 },
  c.conv2d { "c1", out = $a, kernel = 3, stride = 2, pad = 1 }, c.$act {},
  c.add { c.seq { c.conv2d { "c2", out = $a, kernel = $k == 2 and 3 or $k, pad = $k == 1 and 0 or $k // 2, group = $a }, c.relu {},
                  c.conv2d { "c3", out = $a, kernel = 1 } }, c.seq {} },
  c.concat { c.seq { c.conv2d { "c4", out = $b, kernel = 1 }, c.relu {} }, c.seq { c.maxpool { kernel = 3, stride = 1, pad = 1 } } },
  c.conv2d { "c5", out = $m, kernel = 3 },
  c.global_average_pool {},
  c.dense { "d1", out = $m }, c.relu {}, c.dense { "d2", out = 9 },
}
LUA
    my $said = qx($build/cnnrun quantize --all --min-snr -100 --check 0 $net --weights random:$seed --data $pictures -o $dir/q$seed.cnr 2>&1)
        . qx($build/cnnrun export $dir/q$seed.cnr -o $dir/q$seed.onnx 2>&1);
    ok !$?, "quantised net $seed is exported" or diag $said;
    npy("q$seed.in.npy", [1, 3, 32, 32], map { rand } 1 .. 3 * 32 * 32);
    push @quantized, "q$seed";
}
# Each net three times: as it is read, with the rewrite off, and after export and import.
my $script = file('all.lua', <<'LUA');
local c = require "cnnrun"
return function(args)
  local dir = args[1]
  for i = 2, #args do
    local seed, x = args[i], c.tensor(dir .. "/" .. args[i] .. ".in.npy")
    local function answer(file, how, out, again)
      local net = c.load(file, how)
      net:run({ x }):save(dir .. "/" .. seed .. "." .. out .. ".npy")
      if again then net:export(again) end
      net:close()
    end
    local again = dir .. "/" .. seed .. ".again.onnx"
    if seed:sub(1, 1) == "q" then answer(dir .. "/" .. seed .. ".cnr", {}, "own") end
    answer(dir .. "/" .. seed .. ".onnx", {}, "folded", again)
    answer(again, {}, "again")
    answer(dir .. "/" .. seed .. ".onnx", { no_rewrite = { "fold-quantized", "quantized-pass-through" } }, "plain")
  end
end
LUA
my $out = qx($build/cnnrun --trust $script $dir @lines @quantized 2>&1);
is $?, 0, "$nets drawn nets run, folded and not" or diag $out;

# Operators of a net.
sub operators {
    my $file = shift;
    return map { $_->{op} // () } map { decode_json($_) } split /\n/, qx($build/cnnrun show --json $file);
}
my ($off, $far, $values, $lost, @pairs) = (0, 0, 0, 0);
for my $net (@drawn) {
    my @got = floats("$net->{seed}.folded.npy");
    my ($one, $two) = apart($net->{step}, \@got, [floats("$net->{seed}.plain.npy")]);
    $off += $one;
    $far += $two;
    $values += @got;
    note "seed $net->{seed}: $one of ", scalar(@got), ' differ by more than a step' if $one;
    ($one, $two) = apart($net->{step}, \@got, [floats("$net->{seed}.again.npy")]);
    $lost += $one;
    my @ops = operators("$dir/$net->{seed}.onnx");
    push @pairs, $net->{seed} if !$net->{dynamic} && grep { /^(quantize|dequantize)_linear$/ } @ops[1 .. $#ops - 1];
}
ok $off <= $values / 1000 && !$far, "$off of $values answers differ by more than one step, $far by more than two";
is $lost, 0, 'nor after export';
is "@pairs", '', 'nothing is dequantised in between';

# The step of a quantised net's output: what its answers are multiples of.
sub step_of {
    my @at = sort { $a <=> $b } @_;
    my ($least) = sort { $a <=> $b } grep { $_ > 1e-9 } map { $at[$_] - $at[$_ - 1] } 1 .. $#at;
    return $least // 1;
}
for my $name (@quantized) {
    my @own = floats("$name.own.npy");
    my ($one) = apart(step_of(@own), \@own, [floats("$name.folded.npy")]);
    is $one, 0, "$name: the same answers after export";
}

# ---- ONNX Runtime ----
my ($python) = grep { $_ && !system "$_ -c 'import onnxruntime, numpy' 2>/dev/null" } $ENV{CNNRUN_PYTHON},
    'tests/peers/venv/bin/python', 'python3';
SKIP: {
    skip 'left out: no Python with onnxruntime, which is a peer', 2 + @quantized unless $python;
    my $peer = file('peer.py', <<'PY');
import sys
import numpy as np
import onnxruntime as ort

folder = sys.argv[1]
for name in sys.argv[2:]:
    o = ort.SessionOptions()
    o.log_severity_level = 4
    o.intra_op_num_threads = 1
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession("%s/%s.onnx" % (folder, name), o, providers=["CPUExecutionProvider"])
    x = np.load("%s/%s.in.npy" % (folder, name.split(".")[0]))
    y = session.run(None, {session.get_inputs()[0].name: x})[0]
    np.save("%s/%s.peer.npy" % (folder, name), y.astype("f4"))
PY
    $out = qx($python $peer $dir @lines @quantized 2>&1);
    is $?, 0, 'ONNX Runtime runs them' or diag $out;
    ($off, $far) = (0, 0);
    for my $net (@drawn) {
        my ($one, $two) =
            apart($net->{step}, [floats("$net->{seed}.folded.npy")], [floats("$net->{seed}.peer.npy")]);
        $off += $one;
        $far += $two;
        note "seed $net->{seed}: $one, $two" if $one;
    }
    ok $off <= $values / 1000 && !$far, "$off of $values differ from its by more than one step, $far by more than two";
    for my $name (@quantized) {
        my @own = floats("$name.own.npy");
        my ($one) = apart(step_of(@own), \@own, [floats("$name.peer.npy")]);
        is $one, 0, "$name: ONNX Runtime has the answers that we have";
    }
}
done_testing;
