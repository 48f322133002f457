#!/usr/bin/perl
# A detector as Ultralytics exports them, made here: what its file says of itself is used, and boxes
# come back to the picture.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
my $dir = tempdir(CLEANUP => 1);
my $plugins = -x "$build/cnnrun" ? `$build/cnnrun plugins` : '';
plan skip_all => 'no import-onnx' unless $plugins =~ /^import-onnx /m;
plan skip_all => 'no source-images' unless $plugins =~ /^source-images /m;

# ---- protobuf: numbers, and everything else with its length in front ----
sub varint {
    my ($v, $s) = (shift, '');
    do { $s .= chr(($v & 127) | ($v > 127 ? 128 : 0)) } while $v >>= 7;
    return $s;
}
sub number { varint($_[0] << 3) . varint($_[1]) }
sub bytes { varint($_[0] << 3 | 2) . varint(length $_[1]) . $_[1] }
sub dims { join '', map { bytes(1, number(1, $_)) } @_ }
sub port { my $name = shift; bytes(1, $name) . bytes(2, bytes(1, number(1, 1) . bytes(2, dims(@_)))) }

# Planes of 21 cells for 32 x 32 pixels: centre, size, two classes. Cell 3 holds a box.
my @planes = map { [(0) x 21] } 1 .. 6;
$planes[$_][3] = (16, 12, 8, 8, 0.25, 0.75)[$_] for 0 .. 5;
my $tensor = join('', map { number(1, $_) } 1, 6, 21) . number(2, 1) . bytes(8, 'planes') .
    bytes(9, pack 'f<*', map { @$_ } @planes);
my $graph = bytes(1, bytes(1, 'planes') . bytes(2, 'output0') . bytes(4, 'Identity')) .
    bytes(2, 'g') . bytes(5, $tensor) . bytes(11, port('images', 1, 3, 32, 32)) .
    bytes(12, port('output0', 1, 6, 21));
my %says = (task => 'detect', stride => '32', names => qq({0: 'ant', 1: "queen's bee"}));
my $model = number(1, 8) . bytes(7, $graph) . bytes(8, number(2, 13)) .
    join('', map { bytes(14, bytes(1, $_) . bytes(2, $says{$_})) } sort keys %says);
open my $file, '>:raw', "$dir/net.onnx" or die;
print $file $model;
close $file;

# A picture of 28 x 28 pixels fills all of the input.
my $picture = 'scripts/nets/digits/nine.png';
my $text = `$build/cnnrun scripts/apps/detect.lua $dir/net.onnx $picture --json`;
is $?, 0, 'it runs';
my $found = eval { decode_json($text) } // {};
is scalar @{$found->{boxes} // []}, 1, 'one cell scores';
my $box = $found->{boxes}[0];
is $box->{label}, "queen's bee", 'its label is the file\'s';
is "@{$box->{box} // []}", '10.5 7 17.5 14', 'its corners are the picture\'s';
is $box->{score}, 0.75, 'its score is the best class\'s';
system "$build/cnnrun", 'import', "$dir/net.onnx", '-o', "$dir/net.cnr", '-q';
$text = `$build/cnnrun scripts/apps/detect.lua $dir/net.cnr $picture`;
like $text, qr/queen's bee +0\.75 /, 'the native file keeps what was said';
done_testing;
