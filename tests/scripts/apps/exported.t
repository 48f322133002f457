#!/usr/bin/perl
# Nets as Ultralytics exports them (boxes, masks, points) and one that has a class for each place, made here: what
# their files say of themselves is used, and boxes, masks and points come back to the picture.
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
# A whole number in protobuf's form
sub varint {
    my ($v, $s) = (shift, '');
    do { $s .= chr(($v & 127) | ($v > 127 ? 128 : 0)) } while $v >>= 7;
    return $s;
}
# A field of a whole number.
sub number { varint($_[0] << 3) . varint($_[1]) }
# A field of bytes.
sub bytes { varint($_[0] << 3 | 2) . varint(length $_[1]) . $_[1] }
# A shape.
sub dims { join '', map { bytes(1, number(1, $_)) } @_ }
# An input or output.
sub port { my $name = shift; bytes(1, $name) . bytes(2, bytes(1, number(1, 1) . bytes(2, dims(@_)))) }

# A net for 32 x 32 pixels whose outputs are always these: [name, dims, numbers].
sub make {
    my ($path, $says, @outputs) = @_;
    my ($nodes, $values, $ports) = ('', '', '');
    for (@outputs) {
        my ($name, $dims, $numbers) = @$_;
        $nodes .= bytes(1, bytes(1, "$name.value") . bytes(2, $name) . bytes(4, 'Identity'));
        $values .= bytes(5, join('', map { number(1, $_) } @$dims) . number(2, 1) . bytes(8, "$name.value") .
            bytes(9, pack 'f<*', @$numbers));
        $ports .= bytes(12, port($name, @$dims));
    }
    my $graph = $nodes . bytes(2, 'g') . $values . bytes(11, port('images', 1, 3, 32, 32)) . $ports;
    my $model = number(1, 8) . bytes(7, $graph) . bytes(8, number(2, 13)) .
        join('', map { bytes(14, bytes(1, $_) . bytes(2, $says->{$_})) } sort keys %$says);
    open my $file, '>:raw', $path or die;
    print $file $model;
    close $file;
}

# Planes of 21 cells: centre, size, and what else there is. Cell 3 holds a box.
sub planes {
    my @values = @_;
    return ['output0', [1, scalar @values, 21], [map { my $v = $_; map { $_ == 3 ? $v : 0 } 0 .. 20 } @values]];
}
my $names = qq({0: 'ant', 1: "queen's bee"});
make("$dir/net.onnx", { task => 'detect', stride => '32', names => $names }, planes(16, 12, 8, 8, 0.25, 0.75));

# A picture of 28 x 28 pixels fills all of the input.
my $picture = 'scripts/nets/digits/nine.png';
my $text = `$build/cnnrun scripts/apps/detect.lua $dir/net.onnx $picture --json`;
is $?, 0, 'it runs';
like `$build/cnnrun $dir/net.onnx $picture 2>&1`, qr/^outputs as numbers; .*cnnrun detect NET PICTURE/m, 'the command for numbers names the application';
my $found = eval { decode_json($text) } // {};
is scalar @{$found->{boxes} // []}, 1, 'one cell scores';
my $box = $found->{boxes}[0];
is $box->{label}, "queen's bee", 'its label is the file\'s';
is "@{$box->{box} // []}", '10.5 7 17.5 14', 'its corners are the picture\'s';
is $box->{score}, 0.75, 'its score is the best class\'s';
system "$build/cnnrun", 'import', "$dir/net.onnx", '-o', "$dir/net.cnr", '-q';
$text = `$build/cnnrun scripts/apps/detect.lua $dir/net.cnr $picture`;
like $text, qr/queen's bee +0\.75 /, 'the native file keeps what was said';

# ---- masks: two prototypes of 8 x 8 cells, the first above 0 in the left half ----
my @left = map { $_ % 8 < 4 ? 1 : -1 } 0 .. 63;
make("$dir/masks.onnx", { task => 'segment', stride => '32', names => $names }, planes(16, 16, 16, 16, 0.25, 0.75, 1, 0),
     ['output1', [1, 2, 8, 8], [@left, (1) x 64]]);
# What `detect` finds, as decoded JSON; an empty table where it fails.
sub detect { my $out = `$build/cnnrun detect @_ $picture --json`; return eval { decode_json($out) } // {} }
my $b = detect("$dir/masks.onnx")->{boxes}[0];
is "@{$b->{box} // []}", '7 7 21 21', 'a box with a mask';
is $b->{label}, "queen's bee", 'whose coefficients are no classes';
is $b->{area}, 98, 'its left half is covered';
my @rows = @{$b->{mask} // []};
is((grep { $_->[0] < 6.9 || $_->[2] > 14.1 || $_->[1] < 6.9 || $_->[3] > 21.1 } @rows), 0, 'and nothing else');
$b = detect("$dir/masks.onnx", '--classes', 'ant');
is scalar @{$b->{boxes}}, 0, 'no ant is there';

# ---- points ----
make("$dir/pose.onnx", { task => 'pose', stride => '32', names => "{0: 'person'}", kpt_shape => '[17, 3]' },
     planes(16, 16, 32, 32, 0.9, map { ($_, 2 * $_ - 1, 1) } 1 .. 17));
$b = detect("$dir/pose.onnx")->{boxes}[0];
is scalar @{$b->{points} // []}, 17, 'the points of a person';
is "@{$b->{points}[7] // []}", '7 13.1', 'come back to the picture';

# ---- a class for each place: the left half is 2, a quarter 1 ----
my @planes = map { my $class = $_; map { my ($x, $y) = ($_ % 8, int $_ / 8);
    ($x < 4 ? 2 : $y < 4 ? 1 : 0) == $class ? 3 : 0 } 0 .. 63 } 0 .. 4;
make("$dir/places.onnx", {}, ['out', [1, 5, 8, 8], \@planes]);
my @regions = @{detect("$dir/places.onnx")->{boxes} // []};
is join('; ', map { "$_->{label} $_->{score} @{$_->{box}} $_->{area}" } @regions),
   'class 2 0.5 0 0 14 28 392; class 0 0.25 14 14 28 28 196; class 1 0.25 14 0 28 14 196', 'a region for each class';
open my $labels, '>', "$dir/labels" or die;
print $labels "wall\nsky\nroad\nman\nsea\n";
close $labels;
is join(' ', map { $_->{label} } @{detect("$dir/places.onnx", '--labels', "$dir/labels", '--classes', 'road,sky')->{boxes} // []}), 'road sky', 'by name';
my $said = `$build/cnnrun classify $dir/places.onnx $picture 2>&1`;
ok($? >> 8 == 1 && $said =~ /places\.onnx is a segmentation net: cnnrun detect/, 'which is no classifier');
SKIP: {
    skip 'draw-cairo was not built', 3 unless $plugins =~ /^draw-cairo /m;
    for my $net (qw(masks pose places)) {
        system("$build/cnnrun detect $dir/$net.onnx $picture -o $dir/$net.png >/dev/null");
        ok(-s "$dir/$net.png", "$net drawn");
    }
}
done_testing;
