#!/usr/bin/perl
# --kernel NODE=NAME, and kernels in c.load: the layer runs with that kernel, or there is an error.
use strict;
use warnings;
use Test::More;

my $root = $0 =~ s{tests/core/cli/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} || "$root/build";
my $net = "$root/scripts/nets/lenet5.lua";
my $work = `mktemp -d`;
chomp $work;
END { system 'rm', '-rf', $work if $work }
# Runs the program; returns output and status.
sub run { my $out = `$build/cnnrun @_ 2>&1`; return ($out, $? >> 8) }
# The kernel of a node in the JSON; '' if it is not there.
sub kernel_of { my ($out, $node) = @_; return $out =~ /"node":"$node"[^}]*"kernel":"([^"]*)"/ ? $1 : '' }

my ($free) = run("show --json --device cpu --no-rewrite fuse $net");
my ($forced, $code) = run("show --json --device cpu --no-rewrite fuse --kernel conv1=reference $net");
is($code, 0, 'a node is forced') or diag($forced);
isnt(kernel_of($free, 'conv1'), 'reference', 'which would have had another');
is(kernel_of($forced, 'conv1'), 'reference', 'to what was asked for');
is(kernel_of($forced, 'conv2'), kernel_of($free, 'conv2'), 'and it alone');
($forced) = run("show --json --device cpu --no-rewrite fuse --kernel conv=reference $net");
is(kernel_of($forced, $_), 'reference', "by its operator: $_") for 'conv1', 'conv2';
($forced) = run("show --json --device cpu --no-rewrite fuse --kernel conv\@cpu=reference $net");
is(kernel_of($forced, 'conv1'), 'reference', 'on a device that is named');
($forced) = run("show --json --device cpu --no-rewrite fuse --kernel conv\@sim:gpu4=reference --board odroid_xu3,dry $net");
is(kernel_of($forced, 'conv1'), kernel_of($free, 'conv1'), 'and on that one alone');
($forced) = run("show --json --device cpu --no-rewrite fuse --kernel conv=reference --kernel conv1\@cpu=" . kernel_of($free, 'conv1') . " $net");
is(kernel_of($forced, 'conv1'), kernel_of($free, 'conv1'), 'what is said of the node and the device goes before the operator');
is(kernel_of($forced, 'conv2'), 'reference', 'which the others follow');
my ($none, $missing) = run("show --device cpu --kernel conv\@npu:7=reference $net");
is($missing, 6, 'a device that is not there');
like($none, qr/npu:7/, 'is named') or diag($none);
my ($out, $failed) = run("run --kernel conv9=reference $net $root/scripts/nets/digits/three.png");
is($failed, 6, 'a node that is not there');
like($out, qr/no node or operator "conv9" is in the net; did you mean conv/, 'is reported');
($out, $failed) = run("run --kernel conv1=gemm9 $net $root/scripts/nets/digits/three.png");
like($out, qr/it has no kernel "gemm9"/, 'and so is a kernel');
($out, $failed) = run("run --kernel conv1 $net $root/scripts/nets/digits/three.png");
like($out, qr/want NODE=KERNEL/, 'and half a word');

open my $script, '>', "$work/force.lua" or die;
print $script <<'END';
local c = require "cnnrun"
return function(args)
  local free = c.load(args[1], { device = "cpu" }):picture(args[2]):topk(1)[1]
  local forced = c.load(args[1], { device = "cpu", kernels = { "conv=reference" } }):picture(args[2]):topk(1)[1]
  print("same", free.index == forced.index, math.abs(free.score - forced.score) < 1e-5)
  print(pcall(c.load, args[1], { kernels = { "conv9=x" } }))
end
END
close $script;
($out) = run("$work/force.lua $net $root/scripts/nets/digits/three.png");
like($out, qr/false\t.*no node or operator "conv9"/, 'a script forces too') or diag($out);
like($out, qr/^same\ttrue\ttrue/m, 'with the same answer');
done_testing;
