#!/usr/bin/perl
# Open sizes of a net are bound alike for a picture in cnr_run_picture, in prepare and run of a script, and in
# the program.
use strict;
use warnings;
use Compress::Zlib qw(compress crc32);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
my $dir = tempdir(CLEANUP => 1);
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";

# 7 high, 11 wide, every value its own: a sum tells crops, scalings and swapped sides apart.
sub chunk { my $body = join '', @_; pack('N', length($body) - 4) . $body . pack 'N', crc32($body) }
my $rows = join '', map { my $y = $_; pack 'C*', 0, map { $y * 33 + $_ } 1 .. 33 } 0 .. 6;
open my $file, '>:raw', "$dir/picture.png" or die;
print $file "\x89PNG\r\n\x1a\n", chunk('IHDR', pack 'NNC5', 11, 7, 8, 2, 0, 0, 0),
    chunk('IDAT', compress($rows)), chunk('IEND');
close $file;
my $sum = 0;
$sum += $_ for 1 .. 7 * 11 * 3;
`$build/cnnrun plugins` =~ /source-images/ or plan skip_all => 'nothing reads pictures';

# name, shape, further lines of the net; the shape that comes out; the sum, where it is plain.
my @nets = (
    ['nhwc', '"n", "h", "w", 3', '', '1,7,11,3', $sum],
    ['nchw', '"n", 3, "h", "w"', '', '1,3,7,11', $sum],
    ['hwc', '"h", "w", 3', '', '7,11,3', $sum],
    ['chw', '3, "h", "w"', '', '3,7,11', $sum],
    ['channels', '"n", "c", "h", "w"', '', '1,3,7,11', $sum],
    ['grey', '"n", "h", "w", 1', '', '1,7,11,1'],
    ['wide', '"n", 4, "w", 3', '', '1,4,11,3'],
    ['resized', '"n", "h", "w", 3', 'resize = { 5, 9 },', '1,5,9,3'],
    ['shorter', '"n", "h", "w", 3', 'resize = 14,', '1,14,22,3'],
    ['cropped', '"n", "h", "w", 3', 'crop = 6,', '1,6,6,3'],
    ['same', '"n", "s", "s", 3', 'resize = { 6, 6 },', '1,6,6,3'],
);
for (@nets) {
    my ($name, $shape, $more) = @$_;
    open my $net, '>', "$dir/$name.lua" or die;
    print $net "local c = require 'cnnrun'\nreturn c.net { name = '$name', ",
        "input = { 'data', shape = { $shape }, $more }, c.relu {} }\n";
    close $net;
}
my $script = dirname(__FILE__) . '/sizes.lua';
my @lines = split /\n/, `$build/cnnrun $script $dir/picture.png @{[map { "$dir/$_->[0].lua" } @nets]}`;
is scalar @lines, 2 * @nets, 'the script ran' or BAIL_OUT 'no answers';
for (@nets) {
    my ($name, undef, undef, $want, $total) = @$_;
    my ($easy, $prepared) = splice @lines, 0, 2;
    my $json = `$build/cnnrun run $dir/$name.lua $dir/picture.png --json`;
    my $out = eval { decode_json($json)->{outputs}[0] } // {};
    my $n = 1;
    $n *= $_ for @{$out->{dims} // []};
    my $program = sprintf 'f32[%s] %.0f', join(',', @{$out->{dims} // []}), $n * ($out->{average} // 0);
    is $easy, $prepared, "$name: cnr_run_picture gives what prepare and run give";
    is $program, $prepared, "$name: so does the program";
    like $prepared, qr/^f32\[$want\]/, "$name: the sizes";
    is $prepared, "f32[$want] $total", "$name: the whole picture, once" if defined $total;
}

# Inputs that no picture has the form of: sounds, videos.
for (['sound', '1, 40, 101', 3], ['video', '1, 3, 8, 16, 16', 5]) {
    my ($name, $shape, $n) = @$_;
    open my $net, '>', "$dir/$name.lua" or die;
    print $net "local c = require 'cnnrun'\nreturn c.net { name = '$name', input = { 'data', shape = { $shape } }, c.relu {} }\n";
    close $net;
    like `$build/cnnrun detect $dir/$name.lua $dir/picture.png 2>&1`, qr/input data has $n sizes/, "detect: a $name is no picture";
}
like `$build/cnnrun run $dir/video.lua $dir/picture.png 2>&1`, qr/up to 4 sizes, this input has 5/, 'run: nor is a video';

# Sizes that are asked for hold, wherever they are asked for.
my $asked = `$build/cnnrun run $dir/nhwc.lua $dir/picture.png --symbol h=4 --symbol w=5 --json`;
is_deeply eval { decode_json($asked)->{outputs}[0]{dims} }, [1, 4, 5, 3], 'the program: --symbol';
open $file, '>', "$dir/asked.lua" or die;
print $file "local c = require 'cnnrun'\nreturn function(a)\n",
    "  local net = c.load(a[1], { sizes = { h = 4, w = 5 } })\n",
    "  print(net:picture(a[2])); print(net:run { net:prepare(c.picture(a[2])) })\nend\n";
close $file;
is `$build/cnnrun $dir/asked.lua $dir/nhwc.lua $dir/picture.png`, "f32[1,4,5,3]\nf32[1,4,5,3]\n",
    'scripts: sizes';
is `$build/cnnrun $dir/asked.lua $dir/nchw.lua $dir/picture.png`, "f32[1,3,4,5]\nf32[1,3,4,5]\n",
    'and with channels first';
done_testing;
