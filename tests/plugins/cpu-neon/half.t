#!/usr/bin/perl
# --weights-type on the processor: kernels that store weights as halves take what they can where that is
# asked for, and nothing else; who asks in vain is told; answers stay what they were.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $dir = tempdir(CLEANUP => 1);
my @lenet = ('scripts/nets/lenet5.lua', '--device', 'cpu');

# Status and output of a command.
sub told {
    my $text = `$build/cnnrun @_ 2>&1`;
    return ($? >> 8, $text);
}

# Writes a net; returns its path.
sub write_net {
    my ($name, $layers, $shape) = @_;
    open my $file, '>', "$dir/$name.lua" or die $!;
    print $file "local c = require 'cnnrun'\nreturn c.net { name = '$name',\n",
        "  input = { 'data', shape = { 'batch', $shape } },\n  $layers }\n";
    close $file;
    return ("$dir/$name.lua", '--weights', 'random:1', '--device', 'cpu');
}

# Bytes of weights that a text tells.
sub weights_bytes { $_[0] =~ /weights (\d+) bytes/ ? $1 : die $_[0] }

my ($code, $plain) = told('show', @lenet);
is $code, 0, 'a net is planned' or diag $plain;
unlike $plain, qr/_b?f16_/, 'with weights as they are';
for (['fp16', 'f16'], ['bf16', 'bf16']) {
    my ($type, $kernel) = @$_;
    my ($code, $text) = told('show', @lenet, '--weights-type', $type);
    my @halves = $text =~ /(?:conv|dense)_${kernel}_/g;
    is "$code " . @halves, '0 4', "$type: all convolutions and dense layers" or diag $text;
    cmp_ok weights_bytes($text), '<', 0.51 * weights_bytes($plain), "$type: half of the bytes";
    unlike $text, qr/no kernel there/, "$type: and no warning";
}

# 3x3 windows, for which Winograd's are the fastest; and few weights, which stay floats.
my @net = write_net('small', "c.conv2d { 'a', out = 64, kernel = 3, pad = 1 }, c.conv2d { 'b', out = 64, "
    . "kernel = 3, pad = 1 },\n  c.conv2d { 'c', out = 64, kernel = 3, pad = 1, group = 64 },", '64, 28, 28');
($code, my $text) = told('show', @net);
like $text, qr/winograd/, 'unasked the fastest kernel';
($code, $text) = told('show', @net, '--weights-type', 'bf16');
like $text, qr/^a .*_bf16_winograd.*^b .*_bf16_winograd.*^c .*f32_\w*depthwise/ms, 'asked, what stores halves, where there is one'
    or diag $text;
($code, $text) = told('show', @net, '--weights-type', 'bf16', '--kernel', 'b=conv_f32_winograd');
like $text, qr/^a .*_bf16_.*^b .*_f32_winograd/ms, 'a kernel that is asked for by name stays';

my @bare = write_net('bare', 'c.relu {}, c.softmax {}', '10');
for my $command ('show', 'bench') {
    ($code, $text) = told($command, @bare, '--weights-type', 'fp16');
    is $code, 0, "$command: nothing to store is no error";
    my @warnings = $text =~ /no kernel there stores weights of this net as fp16: they stay as they are/g;
    is scalar @warnings, 1, "$command: and is told, once" or diag $text;
}
($code, $text) = told('bench', @bare, '--weights-type', 'bf16', '--json', '-q');
like $text, qr/"warnings":\["[^"]*as bf16/, 'as JSON, too' or diag $text;

# What fp16 can't hold is an error, whatever the kernel; the other types can.
my @large = write_net('large', "c.conv2d { 'a', out = 64, kernel = 3, pad = 1 }, c.dense { 'b', out = 40 },", '64, 28, 28');
open my $change, '>', "$dir/change.lua" or die $!;
print $change <<'LUA';
local c = require "cnnrun"
return function(args)
  for i, name in ipairs { "a.weight", "b.weight" } do
    local net = c.load(args[1], { weights = "random:1" })
    local weight = net:weight(name)
    weight[1] = -7e4
    net:set_weight(name, weight)
    net:save(args[i + 1])
  end
end
LUA
close $change;
($code, $text) = told("$dir/change.lua", "$dir/large.lua", "$dir/a.cnr", "$dir/b.cnr");
is $code, 0, 'nets with a large weight' or diag $text;
for my $name ('a', 'b') {
    my @bench = ('bench', "$dir/$name.cnr", '--runs', 1, '--no-energy', '--weights-type');
    for my $kernel ('', $name eq 'a' ? ('--kernel a=conv_f16_winograd') : ()) {
        ($code, $text) = told(@bench, 'fp16', $kernel);
        ok $code && $text =~ /\b$name: its weight -70000 is none in fp16/, "$name: a weight past fp16's $kernel" or diag $text;
    }
    ($code, $text) = told(@bench, 'bf16');
    is $code, 0, "$name: bf16 holds it" or diag $text;
}

my @digit = 'scripts/nets/digits/three.png';
for my $isa (qw(generic avx2 avx512)) {
    next unless `$build/cnnrun devices --cpu-isa $isa 2>&1` =~ /^cpu .*?^\s+isa\s+$isa$/ms;
    for my $type (qw(f32 fp16 bf16)) {
        local $ENV{CNNRUN_CPU_ISA} = $isa;
        my ($code, $text) = told('run', @lenet, '--weights-type', $type, '--json', @digit);
        my ($top) = $text =~ /"top"\s*:\s*\[\s*\{[^}]*"(?:index|class)"\s*:\s*"?(\d+)/;
        is $top, 3, "$isa, $type: a three is a three" or diag $text;
    }
}
# --arithmetic bf16: products of bf16 where the processor has them, else a warning or weights stored so.
my @wide = write_net('wide', 'c.conv2d { "one", out = 32, kernel = 1 }, c.conv2d { "three", out = 32, kernel = 3, pad = 1 }', '32, 9, 9');
($code, my $products) = told('show', @wide, '--arithmetic', 'bf16');
is $code, 0, 'bf16 arithmetic is planned' or diag $products;
unlike +(told('show', @wide))[1], qr/bf16/, 'only where it is asked for';
my $has = do { local (@ARGV, $/) = '/proc/cpuinfo'; (<> // '') =~ /avx512_bf16/ };
SKIP: {
    skip 'this processor has no AVX512-BF16', 2 unless $has;
    like $products, qr/conv_bf16_products/, 'by products of bf16' or diag $products;
    my $text = `$build/cnnrun kernelcheck --arithmetic bf16 --device cpu --cases 12 2>&1`;
    ok $? == 0 && $text =~ /conv_bf16_products on cpu: 12 cases/ && $text =~ /, 0 failed/, 'which kernelcheck judges' or diag $text;
}
unlike +(told('show', @wide, '--arithmetic', 'bf16', '--cpu-isa', 'avx2'))[1], qr/conv_bf16_products/, 'never by narrower instructions';
done_testing;
