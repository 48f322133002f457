#!/usr/bin/perl
# cnnrun show -o draws the plan: shapes, devices, kernels, times; without the plugin it writes text for
# Graphviz.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Temp qw(tempdir);

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);
my $net = "$root/scripts/nets/lenet5.lua";

# The text of a file; empty: there is none.
sub text { my ($name) = @_; open my $f, '<:raw', "$tmp/$name" or return ''; local $/; return <$f> }
# Runs `show`; returns status and output.
sub show { my ($words) = @_; my $said = `cd $tmp && $build/cnnrun show $words 2>&1`; return ($? >> 8, $said) }

my ($code, $said) = show("$net -o net.dot");
is("$code$said", '0', 'text for Graphviz needs no plugin');
my $dot = text('net.dot');
like($dot, qr/n0 \[label="conv1\\nconv\\nconv_f32_\w+", color="#1f77b4", fillcolor="#cfe2f3"\]/, 'device and kernel by colour');
like($dot, qr/n0 -> n1 \[label="1x20x24x24 f32"\]/, 'shapes on edges');
like($dot, qr/label="relu1\\nrelu", style="rounded,dashed"/, 'a layer that another computes');
like($dot, qr/d0 \[[^]]*label="cpu"/, 'a legend');
unlike($dot, qr/width=\d.*%/, 'no times unasked');
like((show("$net -o net.dot --batch 4"))[1] . text('net.dot'), qr/v\d+ -> n0 \[label="4x1x28x28 f32"\]/, 'of the batch that is asked for');

is((show("$net -o net.dot --profile"))[0], 0, 'with times');
my @widths = text('net.dot') =~ /\\n[\d.]+ ms, ([\d.]+%", .*width=[\d.]+)\]/g;
is(scalar @widths, 7, 'of each layer that runs');
my ($sum, $wide) = (0, 1);
for (@widths) { my ($p, $w) = /^([\d.]+)%.*width=([\d.]+)$/; $sum += $p; $wide &&= abs(1 + $p * .08 - $w) < .02 }
cmp_ok(abs($sum - 100), '<', 1, 'whose shares are the whole') or diag $sum;
ok($wide, 'and whose widths follow from them');
is((show("$root/scripts/nets/squeezenet_v1_1.lua -o sq.dot --profile"))[0], 0, 'weights that are not there are made up');

open my $f, '>', "$tmp/odd.lua" or die;
print $f qq{local c = require "cnnrun"\nreturn c.net { input = { 'a"\\\\]\\n<x>', shape = { 1, 4 } }, c.relu { name = 'q" URL="x' } }\n};
close $f;
show("odd.lua -o odd.dot");
like(text('odd.dot'), qr/label="q\\" URL=\\"x/, 'names stay names');

is((show("$net -o net.gif"))[0], 1, 'another format is refused');
for ("--profile", "-o x.svg --dot", "-o x.svg --candidates") {
    is((show("$net $_"))[0], 1, "refused: $_");
}

SKIP: {
    skip 'the plugin draw-graphviz is not built', 4 unless -e "$build/plugins/draw-graphviz.so";
    ($code, $said) = show("$net -o net.svg");
    is("$code$said", '0', 'a picture');
    like(text('net.svg'), qr/<svg.*conv_f32_.*20x24x24.*<\/svg>/s, 'SVG');
    show("$net -o net.png");
    like(text('net.png'), qr/^\x89PNG/, 'PNG');
    show("$net -o net.html");
    like(text('net.html'), qr/^<!doctype html>.*<title>net<\/title>.*<svg.*<\/svg>/s, 'a page');
}
done_testing;
