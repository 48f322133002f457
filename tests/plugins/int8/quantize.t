#!/usr/bin/perl
# cnnrun quantize: LeNet on all test digits, whole numbers from layer to layer, what the rewrites do
# with branches, and layers that stay float; cnnrun convert --encode int8.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
my $shared = ($ENV{CNNRUN_SHARED} // '../shared') . '/data';
my $pictures = 'tests/plugins/source-images/pictures';
my $dir = tempdir(CLEANUP => 1);
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";

# Exit code, stdout, stderr.
sub run {
    my @words = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/out" or die;
        open STDERR, '>', "$dir/err" or die;
        exec "$build/cnnrun", @words or die;
    }
    waitpid $pid, 0;
    return ($? >> 8, map { local (@ARGV, $/) = ($_); my $t = <>; $t // '' } "$dir/out", "$dir/err");
}
# JSON objects of a text.
sub objects { return map { decode_json($_) } split /\n/, shift }
# Writes a file; returns its path.
sub file {
    my ($name, $text) = @_;
    open my $f, '>', "$dir/$name" or die;
    print $f $text;
    close $f;
    return "$dir/$name";
}
# The plan's operators, in order.
sub operators {
    my ($code, $out) = run('show', '--json', @_);
    return $code ? () : map { $_->{op} // () } objects($out);
}
# Types of the layers' outputs.
sub dtypes {
    my ($code, $out) = run('show', '--json', @_);
    return $code ? () : map { $_->{dtype} // () } objects($out);
}

# ---- branches, pools, relus and a layer in between that cannot be quantised ----
my $net = file('branch.lua', <<'LUA');
local c = require "cnnrun"
return c.net {
  name = "branch",
  input = { "data", shape = { "batch", 3, 32, 32 }, scale = 1 / 255 },
  c.conv2d { "c1", out = 16, kernel = 3, pad = 1 },
  c.relu {},
  c.maxpool { "p1", kernel = 3, stride = 2 },
  c.concat { "join",
    c.seq { "left", c.conv2d { "c", out = 8, kernel = 1 }, c.relu {} },
    c.seq { "right", c.conv2d { "c", out = 8, kernel = 3, pad = 1 }, c.relu {} } },
  c.conv2d { "c2", out = 12, kernel = 3, stride = 2, group = 2 },
  c.maxpool { "p2", kernel = 2, stride = 2 },
  c.relu {},
  c.dense { "d1", out = 20 },
  c.tanh {},
  c.dense { "d2", out = 7 },
}
LUA
my ($code, $out, $err) = run('quantize', '--all', $net, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/branch.cnr", '--json');
is $code, 0, 'a net with branches' or diag $err;
my @lines = $code ? () : objects($out);
my $sum = pop @lines;
is scalar(@lines), 6, 'all six layers are told of' or diag $out;
ok !(grep { !$_->{quantized} || $_->{snr_db} < 20 } @lines), 'each of 8 bits, above 20 dB' or diag $out;
my @snr = sort { $a <=> $b } map { $_->{snr_db} } @lines;
my @ops = operators("$dir/branch.cnr");
is "@ops", 'quantize_linear qlinear_conv max_pool qlinear_conv qlinear_conv concat qlinear_conv '
    . 'max_pool qlinear_dense qlinear_table qlinear_dense dequantize_linear',
    'whole numbers pass through pools, concat, relus and functions';
@ops = operators("$dir/branch.cnr", '--no-rewrite', 'quantized-pass-through');
is scalar(@ops), 12, 'and are stored that way';

my $leaky = file('leaky.lua', <<'LUA');
local c = require "cnnrun"
return c.net { name = "leaky", input = { "data", shape = { 1, 3, 32, 32 }, scale = 1 / 255 },
  c.conv2d { "c1", out = 16, kernel = 3 }, c.leaky_relu { alpha = 0.1 },
  c.conv2d { "c2", out = 12, kernel = 1 }, c.prelu {},
  c.flatten {}, c.dense { "d1", out = 7 }, c.leaky_relu {}, c.dense { "d2", out = 5 } }
LUA
($code, $out, $err) = run('quantize', '--all', $leaky, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/leaky.cnr", '--json');
is join(' ', operators("$dir/leaky.cnr")),
    'quantize_linear qlinear_conv qlinear_conv flatten qlinear_dense qlinear_dense '
    . 'dequantize_linear',
    'leaky relu and prelu are computed by their layers' or diag $err;
@lines = $code ? () : objects($out);
cmp_ok pop(@lines)->{output_snr_db} // 0, '>', 25, 'and make no noise' or diag $out;
is scalar(grep { $_->{quantized} && $_->{snr_db} > 25 } @lines), 4, 'each layer is told of by its own name' or diag $out;

($code, $out) = run('quantize', '--all', $net, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/pairs.cnr", '--no-rewrite', 'quantized-pass-through', '--no-rewrite', 'fold-quantized');
@ops = operators("$dir/pairs.cnr", '--no-rewrite', 'quantized-pass-through', '--no-rewrite', 'fold-quantized');
cmp_ok scalar(grep { $_ eq 'quantize_linear' } @ops), '==', 7, 'switched off, each has its pair';
is join(' ', operators("$dir/pairs.cnr")), join(' ', operators("$dir/branch.cnr")),
    'which planning still cancels';
my @answers = map {
    my ($c, $o) = run('run', "$dir/$_.cnr", "$pictures/alpha.png", '--json');
    $c ? "failed $_" : join ' ', map { "$_->{index}:$_->{score}" } @{(objects($o))[0]{top} // []};
} qw(branch pairs);
like $answers[0], qr/^(\d:[-\d.e]+ ?){5,}$/, 'it runs';
is $answers[0], $answers[1], 'with the same answer to the last bit';

($code, $out) = run('quantize', '--all', $net, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/some.cnr", '--json', '--layers', 'c*');
@ops = operators("$dir/some.cnr");
is scalar(grep { /^qlinear/ } @ops), 2, '--layers takes those named' or diag "@ops";
my $middle = $snr[0] + 0.5;
($code, $out) = run('quantize', '--all', $net, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/loud.cnr", '--json', '--min-snr', $middle);
@lines = $code ? () : objects($out);
pop @lines;
my @float = grep { !$_->{quantized} } @lines;
my @bytes = grep { $_->{quantized} } @lines;
ok @float && @bytes && !(grep { $_->{snr_db} >= $middle } @float)
    && !(grep { $_->{snr_db} < $middle } @bytes), 'layers under --min-snr stay float' or diag $out;
@ops = operators("$dir/loud.cnr");
is scalar(grep { /^qlinear/ } @ops), scalar(@bytes), 'and the others do not';
($code, $out, $err) = run('quantize', '--all', $net, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/none.cnr", '--min-snr', 200);
ok $code && $err =~ /no layer is left to be quantised/ && !-e "$dir/none.cnr", 'none left: an error';
($code, $out, $err) = run('quantize', '--all', $net, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/mse.cnr", '--check', 0, '--method', 'mse', '--json');
is $code ? $err : (objects($out))[-1]{method}, 'mse', '--method says how ranges are made';
($code, $out, $err) = run('quantize', '--all', $net, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/x.cnr", '--method', 'mean');
ok $code && $err =~ /method "mean" is unknown; want auto, minmax/, 'others are refused' or diag $err;
($code, $out, $err) = run('quantize', '--all', $net, '--weights', 'random:3', '-o', "$dir/x.cnr");
ok $code && $err =~ /--data SPEC is missing/, 'without pictures it says so';

# ---- what is faster in floats stays so: one dense layer reads a quarter of its bytes, a thin one
# converts a whole picture for hardly any arithmetic ----
sub timed {
    my ($name, $layer, @words) = @_;
    my $file = file("$name.lua", qq{local c = require "cnnrun"
return c.net { name = "$name", input = { "data", shape = { "batch", 3, 48, 48 }, scale = 1 / 255 }, $layer }
});
    my ($code, $out, $err) = run('quantize', $file, '--weights', 'random:3', '--data', $pictures, '-o',
        "$dir/$name.cnr", '--json', '--limit', 4, '--min-snr', -100, @words);
    diag $err if $code;
    return $code ? ({}, {}, $err) : (objects($out), $err);
}
my ($layer, $told, $said) = timed('thick', 'c.flatten {}, c.dense { "fc", out = 1024 }');
ok $layer->{quantized} ? $layer->{ms_quantized} < $layer->{ms_float} : $layer->{float_for} eq 'time',
    "a layer that is faster in 8 bits has them: $layer->{ms_quantized} ms, $layer->{ms_float} in floats";
my $thin = 'c.conv2d { "thin", out = 3, kernel = 1, group = 3 }';
($layer, $told, $said) = timed('thin', $thin);
is $layer->{float_for}, 'time', "one that is not stays float, and it is told why";
is join(' ', operators("$dir/thin.cnr")), 'conv', 'in the file, too';
ok $told->{layers} == 0 && $told->{float_layers} == 1 && $said =~ /no layer is faster.*--all/,
    'a net without such layers is the float one, with a warning' or diag $said;
($layer) = timed('thin', $thin, '--all');
ok $layer->{quantized} && !defined $layer->{ms_float}, '--all has it in 8 bits, untimed';
($layer) = timed('thin', $thin, '--deterministic');
ok $layer->{quantized}, 'so has --deterministic, since times differ from run to run';

my $svg = "$dir/layers.svg";
($layer, $told) = timed('thin', $thin, '--chart', $svg);
SKIP: {
    skip 'no plugin draw-cairo', 1 unless -e "$build/plugins/draw-cairo.so";
    open my $f, '<', $svg or die "$svg: $!";
    my $drawn = join '', <$f>;
    ok $drawn =~ /thin/ && $drawn =~ /float: time/ || $drawn =~ /<svg/, 'a picture of noise and time by layer';
}
($code, $out, $err) = run('quantize', $net, '--data', $pictures, '-o', "$dir/x.cnr", '--chart', "$dir/x.txt");
ok $code && $err =~ /--chart: wanted a name that ends/, 'of a kind that there is' or diag $err;
is $told->{float_share}, 1, 'the share of layers in floats';
is $told->{weight_bytes_float}, $told->{weight_bytes_quantized}, 'weights of a net that stayed float';

# ---- conversions that are left ----
($code, $out) = run('show', '--json', "$dir/branch.cnr");
my $shown = (objects($out))[-1];
is "$shown->{conversions} $shown->{conversion_pairs}", '2 0', 'show counts conversions, and pairs that cancel out';
($code, $out) = run('show', '--json', "$dir/pairs.cnr", '--no-rewrite', 'quantized-pass-through');
cmp_ok((objects($out))[-1]{conversion_pairs}, '>', 0, 'which are there as long as nothing removes them');
($code, $out) = run('show', "$dir/branch.cnr");
like $out, qr/^2 conversions between floats and 8 bits, 0 of them back at once$/m, 'in text, too';
($code, $out) = run('show', $net);
unlike $out, qr/conversions/, 'a float net has none';
($code, $out) = run('show', '--weights', 'random:1', file('mask.lua', 'local c = require "cnnrun"
local x = c.conv2d { "c", c.input { "data", shape = { 1, 1, 9, 9 } }, out = 4, kernel = 3 }
return c.net { outputs = { c.where { "w", c.greater { "m", x, 0.5 }, x, 0 } } }
'));
unlike $out, qr/conversions/, 'nor has one with masks';

# ---- equalising: what is a channel for all pictures alike; limits in front of means are kept ----
my $open = file('open.lua', 'local c = require "cnnrun"
local x = c.input { "data", shape = { "batch", 3, "h", "w" }, scale = 1 / 255 }
local y = c.transpose { "t", c.conv2d { "c1", x, out = 4, kernel = 3, pad = 1 }, perm = { 0, 2, 3, 1 } }
y = c.conv2d { "c2", c.transpose { "u", c.relu { "r", y }, perm = { 0, 3, 1, 2 } }, out = 10, kernel = 3, pad = 1 }
return c.net { outputs = { c.softmax { "s", c.flatten { "f", c.global_average_pool { "g", y } } } } }
');
for my $i (1 .. 2) {
    my $n = $i == 1 ? 8 : 400;
    file("size$i.ppm", "P6\n$n $n\n255\n" . join '', map { chr($_ * 37 % 251) } 1 .. $n * $n * 3);
}
my @sized = ('--data', 'images:' . file("sized", "$dir/size1.ppm 0\n$dir/size2.ppm 1\n"));
($code, $out, $err) = run('quantize', $open, '--weights', 'random:3', @sized, '-o', "$dir/open.cnr", '--all',
    '--equalize', '--min-snr', -100);
is $code, 0, 'pictures of several sizes can be equalised' or diag $err;
my @limited = (file('limited.lua', 'local c = require "cnnrun"
return c.net { input = { "data", shape = { "batch", 3, 48, 48 }, scale = 1 },
  c.conv2d { "c1", out = 4, kernel = 3, pad = 1 }, c.relu6 { "a" }, c.average_pool { "p", kernel = 48 },
  c.conv2d { "c2", out = 10, kernel = 1 }, c.flatten {} }
'), '--weights', 'random:3', '--data', $pictures, '-o', "$dir/limited.cnr", '--all', '--min-snr', -100, '--json');
my @of = map { my ($c, $o) = run('quantize', @limited, @$_); my ($r) = grep { ($_->{layer} // '') eq 'c2' } objects($o); "$r->{low} $r->{high}" }
    ([], ['--equalize']);
is $of[1], $of[0], 'a limit that some pixels reach is not moved by their mean';

# ---- a budget of points: as few layers as possible stay float ----
my $classes = 'c.conv2d { "c1", out = 8, kernel = 3 }, c.relu {}, c.conv2d { "c2", out = 8, kernel = 3 }, '
    . 'c.global_average_pool {}, c.flatten {}, c.dense { "fc", out = 10 }, c.softmax {}';
($layer, $told) = (timed('loose', $classes, '--all', '--max-drop', 100))[0, -2];
ok $told->{weight_bytes_quantized} < 0.5 * $told->{weight_bytes_float}, 'weights take less room in 8 bits';
ok $told->{agree_low} <= $told->{agree} && $told->{agree} <= $told->{agree_high} && $told->{agree_high} <= 1
    && $told->{agree_low} < $told->{agree_high}, 'agreement has its interval';
is $told->{layers}, 3, 'a budget of 100 points asks for no layer in floats';
cmp_ok $told->{points_lost}, '<=', 100, 'and tells what is lost';
is $told->{held_back}, 4, 'of four pictures none is held back';
my $held = "$dir/held";
mkdir $held or die;
for my $i (1 .. 12) { # each fourth is bright
    open my $f, '>:raw', "$held/$i.ppm" or die;
    print $f "P6\n48 48\n255\n", pack 'C*', map { $i % 4 ? 40 + $i + $_ % 7 : 250 } 1 .. 3 * 48 * 48;
    close $f;
}
file('held/list.txt', join '', map { "$_.ppm 0\n" } 1 .. 12);
my %seen;
for my $words ([], ['--max-drop', 100], ['--correct-bias']) {
    ($code, $out, $err) = run('quantize', '--all', "$dir/loose.lua", '--weights', 'random:3', '--data', "images:$held/list.txt", '-o',
        "$dir/held.cnr", '--json', '--check', 0, '--min-snr', -100, @$words);
    my @told = $code ? () : objects($out);
    diag $err if $code;
    my ($first) = grep { ($_->{layer} // '') eq 'c1' } @told;
    $seen{$words->[0] // ''} = [$first->{high}, $told[-1]{held_back}];
}
is $seen{'--max-drop'}[1], 3, 'of twelve three are, which judge it';
cmp_ok $seen{'--max-drop'}[0], '<', 0.5 * $seen{''}[0], 'and no range is made of them' or diag explain \%seen;
is_deeply $seen{'--correct-bias'}, $seen{'--max-drop'}, 'corrected biases are judged on such, too';
($code, $out, $err) = run('quantize', '--all', file('scores.lua', 'local c = require "cnnrun"
return c.net { input = { "data", shape = { "batch", 3, 48, 48 } }, c.conv2d { "c", out = 8, kernel = 3 } }
'), '--weights', 'random:3', '--data', $pictures, '-o', "$dir/x.cnr", '--max-drop', 1);
ok $code && $err =~ /--max-drop: the net's answers are no classes.*--min-snr/,
    'where answers are no classes there are no points' or diag $err;

# ---- depthwise layers and clipped relus: bytes from end to end, in blocks ----
my $mobile = file('mobile.lua', <<'LUA');
local c = require "cnnrun"
return c.net {
  name = "mobile",
  input = { "data", shape = { "batch", 3, 32, 32 }, scale = 1 / 255 },
  c.conv2d { "c1", out = 16, kernel = 3, pad = 1, stride = 2 },
  c.relu6 {},
  c.conv2d { "dw", out = 16, kernel = 3, pad = 1, group = 16 },
  c.relu6 {},
  c.conv2d { "pw", out = 24, kernel = 1 },
  c.clip { min = 0, max = 6 },
  c.conv2d { "dw5", out = 24, kernel = 5, pad = 2, stride = 2, group = 24 },
  c.clip { min = -1, max = 6 },
  c.conv2d { "last", out = 10, kernel = 8 },
}
LUA
($code, $out, $err) = run('quantize', '--all', $mobile, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/mobile.cnr");
is $code, 0, 'a net of depthwise layers' or diag $err;
@ops = operators("$dir/mobile.cnr");
is "@ops", 'quantize_linear qlinear_conv qlinear_conv qlinear_conv qlinear_conv qlinear_table '
    . 'qlinear_conv dequantize_linear',
    'relu6 and a clip from 0 on become the saturation of bytes, others a table';
($code, $out) = run('bench', "$dir/mobile.cnr", '--device', 'cpu', '--runs', 1, '--profile', '--json');
my @steps = $code ? () : grep { ($_->{op} // '') eq 'qlinear_conv' && $_->{kernel} } objects($out);
is join(' ', map { $_->{kernel} =~ s/qlinear_conv_int8_//r } @steps),
    'blocked depthwise blocked depthwise blocked', 'each has its kernel';
ok !(grep { ($_->{kernel} // $_->{op} // '') =~ /layout/ } $code ? () : objects($out)),
    'and no layout is changed between them' or diag $out;

# ---- residual sums, gates by channel, means: whole numbers between layers ----
my $residual = file('residual.lua', <<'LUA');
local c = require "cnnrun"
local function block(name, n)
  return c.add { name,
    c.conv2d { name .. "a", out = n, kernel = 3, pad = 1 },
    c.conv2d { name .. "b", out = n, kernel = 1 } }
end
return c.net {
  name = "residual",
  input = { "data", shape = { "batch", 3, 32, 32 }, scale = 1 / 255 },
  c.conv2d { "c1", out = 16, kernel = 3, pad = 1, stride = 2 },
  c.hard_swish {},
  block("r1", 16),
  c.relu {},
  c.mul { "gate",
    c.identity { "all" },
    c.seq { "se", c.global_average_pool {}, c.conv2d { "squeeze", out = 16, kernel = 1 },
            c.hard_sigmoid {} } },
  block("r2", 24),
  c.global_average_pool {},
  c.flatten {},
  c.dense { "fc", out = 10 },
}
LUA
($code, $out, $err) = run('quantize', '--all', $residual, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/residual.cnr");
is $code, 0, 'a net of residual blocks' or diag $err;
@ops = operators("$dir/residual.cnr");
is "@ops", 'quantize_linear qlinear_conv qlinear_table qlinear_conv qlinear_conv qlinear_add '
    . 'qlinear_global_average_pool qlinear_conv qlinear_table qlinear_mul qlinear_conv qlinear_conv '
    . 'qlinear_add qlinear_global_average_pool flatten qlinear_dense dequantize_linear', 'sums, gates, functions and means between layers work on bytes';
my @values = map {
    my ($c, $o) = run('run', @$_, "$pictures/alpha.png", '--json');
    $c ? [] : [map { $_->{score} } sort { $a->{index} <=> $b->{index} } @{(objects($o))[0]{top} // []}];
} [$residual, '--weights', 'random:3'], ["$dir/residual.cnr"];
is scalar(@{$values[1]}), scalar(@{$values[0]}), 'it runs';

# ---- a value whose own weights have the names that its scale could have had ----
my $named = file('named.lua', <<'LUA');
local c = require "cnnrun"
return c.net {
  name = "named",
  input = { "data", shape = { "batch", 3, 32, 32 }, scale = 1 / 255 },
  c.conv2d { "c1", out = 8, kernel = 3 }, c.relu {},
  c.batch_normalization { "b" },
  c.conv2d { "c2", out = 8, kernel = 3 },
}
LUA
($code, $out, $err) = run('quantize', '--all', $named, '--weights', 'random:3', '--data', $pictures,
    '-o', "$dir/named.cnr", '--check', 0);
is $code, 0, 'weights called "b.scale" are in nobody\'s way' or diag $err;

# ---- the encoding of weights ----
for my $bits (8, 4) {
    ($code, $out, $err) = run('convert', $net, '--weights', 'random:3', '-o', "$dir/e$bits.cnr",
        '--encode', "int8:bits=$bits");
    ok $code == 0 && $err =~ /6 weights in another encoding/, "convert --encode int8:bits=$bits" or diag $err;
    ($code) = run('check', "$dir/e$bits.cnr");
    is $code, 0, 'the file is sound';
    ($code, $out) = run('run', "$dir/e$bits.cnr", "$pictures/alpha.png", '--json');
    is $code, 0, 'and runs';
}
cmp_ok -s "$dir/e4.cnr", '<', -s "$dir/e8.cnr", '4 bits take less room';
($code, $out, $err) = run('convert', $net, '--weights', 'random:3', '-o', "$dir/x.cnr", '--encode',
    'int8:bits=9');
ok $code && $err =~ /bits.*2.*8/, 'other numbers of bits are refused';

# ---- real digits ----
SKIP: {
    my $spec = "mnist:$shared/mnist";
    skip "no MNIST at $shared/mnist", 9 unless -e "$shared/mnist/t10k-images-idx3-ubyte.gz"
        || -e "$shared/mnist/t10k-images-idx3-ubyte";
    my $lenet = 'scripts/nets/lenet5.lua';
    ($code, $out, $err) = run('quantize', '--all', $lenet, '--data', $spec, '--limit', 100, '--check', 200,
        '-o', "$dir/lenet.cnr", '--json');
    is $code, 0, 'LeNet' or diag $err;
    $sum = (objects($out))[-1];
    cmp_ok $sum->{agree}, '>=', 0.99, 'the command compares it with the float net';
    @ops = operators("$dir/lenet.cnr");
    is "@ops", 'quantize_linear qlinear_conv max_pool qlinear_conv max_pool qlinear_dense '
        . 'qlinear_dense dequantize_linear softmax', 'bytes from the first layer to the last';
    is join(' ', dtypes("$dir/lenet.cnr")), 'u8 u8 u8 u8 u8 u8 u8 f32 f32', 'as their types say';
    my %right;
    for ([float => $lenet], [bytes => "$dir/lenet.cnr"]) {
        ($code, $out) = run('eval', $_->[1], '--data', $spec, '--json', '--batch', 64);
        my $got = $code ? {n => 0, top1 => 0} : (objects($out))[0];
        is $got->{n}, 10000, "$_->[0]: 10,000 digits";
        $right{$_->[0]} = 100 * $got->{top1};
    }
    ok abs($right{float} - $right{bytes}) <= 0.3,
        "top-1 $right{float}% float, $right{bytes}% of 8 bits: within 0.3";
    run('convert', $lenet, '-o', "$dir/l8.cnr", '--encode', 'int8');
    ($code, $out) = run('eval', "$dir/l8.cnr", '--data', $spec, '--json', '--limit', 1000);
    cmp_ok $code ? 0 : (objects($out))[0]{top1}, '>=', 0.98, 'weights stored in 8 bits';
    cmp_ok -s "$dir/lenet.cnr", '<', 0.3 * -s 'scripts/nets/lenet5.cnr', 'a quarter of the file';
}
done_testing;
