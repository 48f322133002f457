#!/usr/bin/perl
# Darknet's models: Tiny Darknet's right answers, and detectors with the sizes of their cfg.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Models;
use Test::More;

# The lines of a file.
sub lines { open my $file, '<', $_[0] or die "$_[0]: $!"; return <$file> }

# Its classes have an order of their own: line k of the map is the label of the net's class k.
my @tiny = map { "darknet/tiny-darknet/$_" } qw(tiny.cfg tiny.weights imagenet.labels.list);
with_data('tiny-darknet', [@tiny, 'labels/synset_words.txt', 'imagenet-sample/labels.txt'], sub {
    my $n = 0;
    my %number = map { /(n\d+)/ ? ($1 => $n++) : () } lines(data('labels/synset_words.txt'));
    my @map = map { chomp; $number{$_} // die "$_ is no class" } (lines(data($tiny[2])))[0 .. 999];
    open my $file, '>', "$dir/map.txt" or die;
    print $file "$_\n" for @map;
    close $file;
    isnt join(' ', @map), join(' ', 0 .. 999), 'tiny-darknet: its classes have another order';
    my $net = imported('tiny', data($tiny[0]), data($tiny[1]));
    my $got = right($net, '--data', 'images:' . data('imagenet-sample/labels.txt'), '--resize', 224,
        '--crop', 224, '--class-map', "$dir/map.txt");
    is $got->{n}, 200, 'tiny-darknet: 200 pictures';
    near($got->{top1}, 133, 2, 'tiny-darknet: top-1');
    near($got->{top5}, 177, 2, 'tiny-darknet: top-5');
});

# Strides 32 and 16 of 320 with 3 boxes of 5 numbers and a class's each; 224 / 32 with 5 boxes.
my @detectors = (
    ['yolo-fastest/yolo-fastest-1.1-xl', '', '121_yolo=1x255x10x10 130_yolo=1x255x20x20'],
    ['yolo-fastest/yolo-fastest-1.1', '', '121_yolo=1x255x10x10 130_yolo=1x255x20x20'],
    ['yolo-fastest/yolo-fastest-1.1_body', '', '121_yolo=1x18x10x10 130_yolo=1x18x20x20'],
    ['yolo-lite/coco-trial6', '_653550', '12_region=1x425x7x7'],
    ['yolo-lite/tiny-yolov2-trial3', '', '12_region=1x125x7x7'],
    ['yolo-lite/tiny-yolov2-trial3-noBatch', '', '12_region=1x125x7x7']);
for (@detectors) {
    my ($name, $suffix, $want) = @$_;
    my @files = ("darknet/$name.cfg", "darknet/$name$suffix.weights");
    with_data($name, [@files, 'images/dog.jpg'], sub {
        (my $short = $name) =~ s/.*\///;
        my $net = imported($short, map { data($_) } @files);
        my $got = told($net, data('images/dog.jpg'));
        is shapes($got), $want, "$short on dog.jpg: $want";
        ok @$got && !(grep { !($_->{highest} > 0.3 && $_->{highest} < 3) } @$got),
            "$short: " . join ', ', map { sprintf '%.2f to %.2f', @$_{qw(lowest highest)} } @$got;
    });
}
done_testing;
