#!/usr/bin/perl
# Import rows of a plugin: the template's row for ONNX, import and export; TensorFlow, Caffe.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use JSON::PP;
use Test::More;

my $root = abs_path($0 =~ s{tests/guests/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
my $plugin = "$build/tests/guests/template/template.so";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => "no $plugin" unless -e $plugin;
my $dir = tempdir(CLEANUP => 1);
my $digit = "$root/scripts/nets/digits/three.png";

# Runs the program; returns status and output.
sub cnnrun { my $out = `$build/cnnrun @_ 2>$dir/err`; return ($? >> 8, $out) }
# What it wrote to stderr.
sub said { open my $in, '<', "$dir/err" or return ''; local $/; return <$in> // '' }
# The bytes of a file; dies if it can't be read.
sub slurp { open my $in, '<:raw', shift or die; local $/; return <$in> }
# Writes a file; returns its path.
sub spew { my ($name, $what) = @_; open my $to, '>:raw', "$dir/$name" or die $!; print $to $what; close $to or die; return "$dir/$name" }
# The best classes of a net as a list; "none" and what was said: it did not run.
sub top {
    my (undef, $out) = cnnrun("run --json --top 9 @_ $digit --plugin-dir $plugin");
    my $json = eval { decode_json($out) } or return ['none', said()];
    return [map { sprintf '%d %.5f', $_->{index}, $_->{score} } @{$json->{top}}];
}
# Writes a net with this layer.
sub net_with { return spew($_[0], <<"END") }
local c = require "cnnrun"
return c.net { name = "rows", input = { "x", shape = { 1, 1, 28, 28 }, scale = 1 / 255 },
  c.soft_threshold { threshold = $_[1] }, c.average_pool { kernel = 14, stride = 14 }, c.flatten {} }
END

# ---- ONNX ----
my $net = net_with('net.lua', 0.25);
my ($code, $out) = cnnrun("export $net -o $dir/net.onnx --plugin-dir $plugin");
is $code, 0, 'a net with the plugin\'s operator is exported' or diag said();
my $file = slurp("$dir/net.onnx");
ok index($file, 'com.example') >= 0 && index($file, 'Shrinkage') >= 0 && index($file, 'lambd') >= 0,
    '... as a node of its domain, with the names that the row gives';
is_deeply top("$dir/net.onnx --scale 0.003921568627"), top($net), 'and imported again: the same answer';
isnt top($net)->[0], top(net_with('other.lua', 0.5))->[0], '... which depends on the attribute';
($code) = cnnrun("show $dir/net.onnx");
ok $code && said() =~ /operators of the domain "com\.example" are not supported/, 'without the plugin it is refused' or diag said();
spew('odd.onnx', $file =~ s/lambd/lambx/r);
($code) = cnnrun("show $dir/odd.onnx --plugin-dir $plugin");
ok $code && said() =~ /odd\.onnx/ && said() =~ /lambx/, 'an attribute that the operator does not have is told' or diag said();
spew('type.onnx', $file =~ s/Shrinkage/Shrinkagf/r);
($code) = cnnrun("show $dir/type.onnx --plugin-dir $plugin");
ok $code && said() =~ /com\.example/, 'and a type that has no row' or diag said();

# ---- Caffe ----
my $prototxt = spew('net.prototxt', <<'END');
name: "rows"
input: "data"
input_shape { dim: 1 dim: 1 dim: 28 dim: 28 }
layer { name: "shrink" type: "Shrinkage" bottom: "data" top: "shrink" }
layer { name: "pool" type: "Pooling" bottom: "shrink" top: "pool" pooling_param { pool: AVE kernel_size: 14 stride: 14 } }
END
($code, $out) = cnnrun("show --json $prototxt --plugin-dir $plugin");
like $out, qr/"op":"soft_threshold"/, 'a Caffe layer of the plugin' or diag said();
($code) = cnnrun("show $prototxt");
ok $code && said() =~ /"Shrinkage" is not supported/, '... refused without it' or diag said();

# ---- TensorFlow: two nodes, written by hand ----
# A field of protobuf
sub field { my ($n, $wire, $what) = @_; return chr($n << 3 | $wire) . $what }
# A field of bytes.
sub bytes { my ($n, $what) = @_; return field($n, 2, chr(length $what) . $what) }
# An attribute of TensorFlow.
sub attr { my ($key, $value) = @_; return bytes(5, bytes(1, $key) . bytes(2, $value)) }
my $shape = join '', map { bytes(2, field(1, 0, chr $_)) } 1, 28, 28, 1;
my $graph = bytes(1, bytes(1, 'x') . bytes(2, 'Placeholder') . attr('dtype', field(6, 0, chr 1)) . attr('shape', bytes(7, $shape))) .
    bytes(1, bytes(1, 'y') . bytes(2, 'Shrinkage') . bytes(3, 'x') . attr('lambd', field(4, 5, pack 'f<', 0.25)) . attr('T', field(6, 0, chr 1)));
my $pb = spew('net.pb', $graph);
($code, $out) = cnnrun("show --json $pb --plugin-dir $plugin");
like $out, qr/"op":"soft_threshold"/, 'a TensorFlow node of the plugin' or diag said();
($code) = cnnrun("show $pb");
ok $code && said() =~ /Shrinkage/, '... refused without it' or diag said();

# ---- a row that leads nowhere ----
($code, $out) = cnnrun("plugins --check $plugin");
is $code, 0, 'the plugin has no problems' or diag $out, said();
done_testing;
