#!/usr/bin/perl
# Nets in the forms that exporters write (Ultralytics, torchvision, TensorFlow, DETR's, segmentation), made here with
# known answers: what their files say of themselves is used, and boxes, masks and points come back to the picture.
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
# An input or output: name, type, dims.
sub port { my ($name, $type) = (shift, shift); bytes(1, $name) . bytes(2, bytes(1, number(1, $type) . bytes(2, dims(@_)))) }

my %types = (f32 => 1, i64 => 7, f16 => 10);

# Numbers as bytes; halves of numbers that need no rounding.
sub packed {
    my ($type, @numbers) = @_;
    return pack 'q<*', @numbers if $type eq 'i64';
    return pack 'f<*', @numbers if $type eq 'f32';
    return pack 'v*', map {
        my $bits = unpack 'V', pack 'f<', $_;
        $_ ? $bits >> 16 & 0x8000 | ((($bits >> 23 & 255) - 112) << 10) | ($bits >> 13 & 1023) : 0
    } @numbers;
}

# A net for 32 x 32 pixels whose outputs are always these: [name, dims, numbers, type]. $says: metadata, and _input: the
# picture's dims, _type: its type, _more: name of a second input of two integers.
sub make {
    my ($path, $says, @outputs) = @_;
    my ($nodes, $values, $ports) = ('', '', '');
    for (@outputs) {
        my ($name, $dims, $numbers, $type) = @$_;
        $type //= 'f32';
        $nodes .= bytes(1, bytes(1, "$name.value") . bytes(2, $name) . bytes(4, 'Identity'));
        $values .= bytes(5, join('', map { number(1, $_) } @$dims) . number(2, $types{$type}) . bytes(8, "$name.value") .
            bytes(9, packed($type, @$numbers)));
        $ports .= bytes(12, port($name, $types{$type}, @$dims));
    }
    my ($size, $type, $more) = map { delete $says->{$_} } qw(_input _type _more);
    my $graph = $nodes . bytes(2, 'g') . $values . bytes(11, port('images', $types{$type // 'f32'}, @{ $size // [1, 3, 32, 32] })) .
        ($more ? bytes(11, port($more, 7, 1, 2)) : '') . $ports;
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

# ---- a picture of 40 x 20 pixels: in the middle of 32 x 32 (scale .8, 8 rows above), or stretched to it ----
open my $wide, '>:raw', "$dir/wide.ppm" or die;
print $wide "P6\n40 20\n255\n", chr(90) x 2400;
close $wide;
$picture = "$dir/wide.ppm";
# What is found by such a net: label, score, corners, and of each that has them points, turned corners, the mask's area.
sub found {
    my ($says, @outputs) = @_; # Outputs are lists, each [name, dims, numbers, type].
    my @options = @{ delete $says->{_options} // [] };
    make("$dir/form.onnx", $says, @outputs);
    return join '; ', map {
        my $b = $_;
        join ' ', $b->{label}, $b->{score}, @{ $b->{box} },
            (map { my $list = $b->{$_}; $list ? "$_ " . join(',', map { join '/', map { $_ // '-' } @$_ } @$list) : () } qw(points corners)),
            defined $b->{area} ? "area $b->{area}" : ();
    } @{ detect("$dir/form.onnx", @options)->{boxes} // [] };
}
# The numbers in rows of so many columns, others 0.
sub rows { my ($n, $each, @rows) = @_; return ['output0', [1, $n, $each], [map { $rows[$_] && @{ $rows[$_] } ? @{ $rows[$_] } : (0) x $each } 0 .. $n - 1]] }
# A plane of prototypes for each list's size, 8 x 8: 1 in the left half, -1 elsewhere; then one of 1.
my $protos = ['output1', [1, 2, 8, 8], [@left, (1) x 64]];
my @said = (names => $names, stride => 32);
my $bee = "queen's bee 0.75 10 5 30 15";
is found({ task => 'detect', @said }, planes(16, 16, 16, 8, 0.25, 0.75)), $bee, 'YOLOv8: the border is left out';
is found({ task => 'detect', @said, _type => 'f16' }, [@{ planes(16, 16, 16, 8, 0.25, 0.75) }, 'f16']), $bee, 'in 16-bit floats';
is found({ task => 'detect', @said }, rows(21, 6, [], [16, 16, 16, 8, 0.25, 0.75])), $bee, 'with cells before planes';
is found({ task => 'segment', @said }, rows(21, 8, [16, 16, 16, 8, 0.25, 0.75, 1, 0]), $protos), "$bee area 100", 'with masks, too';
is found({ task => 'segment', @said }, rows(63, 9, [16, 16, 16, 8, 1, 0.25, 0.75, 1, 0]), $protos), "$bee area 100",
   'YOLOv5 with masks';
is found({ task => 'obb', @said }, planes(16, 16, 8, 16, 0.25, 0.75, 1.5707964)), "$bee corners 30/5,30/15,10/15,10/5",
   'a turned box';
is found({ task => 'obb', @said }, rows(9, 7, [16, 16, 8, 16, 0.75, 1, 1.5707964])), "$bee corners 30/5,30/15,10/15,10/5",
   'a turned box that is ready';
is found({ task => 'segment', @said }, rows(9, 8, [8, 12, 24, 20, 0.75, 1, -1, 0], [0, 8, 8, 12, 0.5, 0, 0, 1]), $protos),
   "$bee area 100; ant 0.5 0 0 10 5 area 50", 'boxes that are ready, with masks';
is found({ task => 'pose', @said, kpt_shape => '[2, 3]' }, rows(9, 12, [8, 12, 24, 20, 0.75, 1, 16, 16, 0.9, 8, 12, 0.1])),
   "$bee points 20/10,-/-", 'boxes that are ready, with points';
is found({ task => 'detect', @said, description => 'Ultralytics rtdetr-l model' }, rows(9, 6, [.5, .5, .5, .5, .75, 1])), $bee,
   'RT-DETR of Ultralytics: parts of a picture that is stretched';
is found({}, ['output', [2, 7], [0, 8, 12, 24, 20, 1, 0.75, 0, 8, 12, 24, 20, 0, 0.25]]), 'class 1 0.75 10 5 30 15',
   'YOLOv7 with suppression';

# Queries: the third of 100, with "nothing" last, and the last of 300.
my @hundred = map { $_ == 2 ? (log 3, log 12, 0) : (0, 0, 5) } 0 .. 99;
my @places = map { $_ == 2 ? (.5) x 4 : (.1) x 4 } 0 .. 99;
is found({}, ['logits', [1, 100, 3], \@hundred], ['pred_boxes', [1, 100, 4], \@places], ['last_hidden_state', [1, 100, 8], [(0) x 800]]),
   "class 1 0.75 10 5 30 15", 'DETR: the best class besides nothing';
is found({}, ['1531', [1, 300, 2], [map { $_ == 299 ? (-9, log 3) : (-9, -9) } 0 .. 299]], ['1532', [1, 300, 4], [(.5) x 1200]]),
   "class 1 0.75 10 5 30 15", 'RT-DETR: each class by itself, outputs without names';

# ---- corners, classes and scores in outputs of their own ----
my @plane = map { $_ % 32 < 16 ? .9 : .1 } 0 .. 1023;
is found({}, ['boxes', [2, 4], [8, 8, 24, 24, 0, 0, 9, 9]], ['labels', [2], [2, 1], 'i64'], ['scores', [2], [.75, .25]], ['masks', [2, 1, 32, 32], [@plane, @plane]]),
   "class 1 0.75 10 5 30 15 area 100", 'torchvision: the background is 0; masks of the whole picture';
is found({}, ['2546', [2, 4], [8, 8, 24, 24, 0, 0, 9, 9]], ['2547', [2], [2, 1], 'i64'], ['2548', [2], [.75, .25]]),
   "class 1 0.75 10 5 30 15", 'without names';
is found({ _input => [1, 32, 32, 3] }, ['detection_boxes', [1, 2, 4], [.25, .25, .75, .75, (0) x 4]], ['detection_classes', [1, 2], [2, 0]],
         ['detection_scores', [1, 2], [.75, 0]], ['num_detections', [1], [1]],
         ['detection_masks', [1, 2, 4, 4], [((0, 0, 1, 1) x 4), (0) x 16]]),
   "class 1 0.75 10 5 30 15 area 100", "TensorFlow's detection API: rows before columns, masks of the box";
is found({}, ['num_dets', [1, 1], [1], 'i64'], ['det_boxes', [1, 2, 4], [8, 8, 24, 24, (0) x 4]], ['det_scores', [1, 2], [.75, 0]],
         ['det_classes', [1, 2], [1, 0], 'i64']), "class 1 0.75 10 5 30 15", 'classes from 0 on';
is found({ _more => 'orig_target_sizes' }, ['labels', [1, 2], [1, 0], 'i64'], ['boxes', [1, 2, 4], [8, 8, 24, 24, (0) x 4]],
         ['scores', [1, 2], [.75, 0]]), "class 1 0.75 10 5 30 15", 'a second input for the size';
like `$build/cnnrun monitor $dir/form.onnx $picture --json`, qr/"label":"class 1"/, 'which a monitor fills, too';

# ---- classes of places, of a picture that is stretched ----
my $halves = 'class 1 0.5 0 0 20 20 area 400; class 2 0.5 20 0 40 20 area 400';
my @map = map { $_ % 8 < 4 ? 1 : 2 } 0 .. 63;
is found({}, ['logits', [1, 4, 8, 8], [map { my $k = $_; map { $_ == $k ? 5 : 0 } @map } 0 .. 3]]), $halves, 'a quarter of the size';
is found({ _input => [1, 32, 32, 3] }, ['softmax', [1, 8, 8, 4], [map { my $k = $_; map { $_ == $k ? 1 : 0 } 0 .. 3 } @map]]), $halves,
   'classes last';
is found({}, ['classes', [1, 8, 8], \@map, 'i64']), $halves, 'the classes themselves';
is found({ _options => ['--family segmentation'] }, ['sigmoid', [1, 1, 8, 8], [map { $_ % 8 < 4 ? .2 : .7 } 0 .. 63]]),
   'class 1 0.5 20 0 40 20 area 400', 'one plane, where that is said';
$picture = 'scripts/nets/digits/nine.png';

SKIP: {
    skip 'draw-cairo was not built', 4 unless $plugins =~ /^draw-cairo /m;
    make("$dir/turned.onnx", { task => 'obb', @said }, planes(16, 16, 8, 16, 0.25, 0.75, 0.5));
    for my $net (qw(masks pose places turned)) {
        system("$build/cnnrun detect $dir/$net.onnx $picture -o $dir/$net.png >/dev/null");
        ok(-s "$dir/$net.png", "$net drawn");
    }
}
done_testing;
