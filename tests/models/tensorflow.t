#!/usr/bin/perl
# TensorFlow's frozen graphs: right answers, the 8-bit graph is reported, control flow is refused by name.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Models;
use Test::More;

for (['lenet5_mnist_frozen', 1000, 988, 1, '--option', 'shape=28,28,1'],
    ['k210_mnist', 1000, 942, 1], ['beginner-graph', 2000, 1778, 2]) {
    my ($name, $n, $want, $slack, @words) = @$_;
    with_data($name, ["tensorflow/mnist/$name.pb", 'mnist'], sub {
        my $net = imported($name, data("tensorflow/mnist/$name.pb"), '--std', 255, @words);
        my $got = right($net, '--data', 'mnist:' . data('mnist'), '--limit', $n);
        is $got->{n}, $n, "$name: $n digits";
        near($got->{top1}, $want, $slack, "$name: " . $got->{top1} * 100 / $n . '%');
    });
}

my $mobilenet = 'tensorflow/mobilenet_v1_0.25_224';
my @needs = ("$mobilenet/labels.txt", 'imagenet-sample/labels.txt');
my @words = ('--mean', '127.5', '--std', '127.5', '--labels', data("$mobilenet/labels.txt"));
my @eval = ('--data', 'images:' . data('imagenet-sample/labels.txt'), '--crop', '0.875',
    '--class-map', 'offset:1');
with_data('mobilenet', ["$mobilenet/frozen_graph.pb", @needs], sub {
    my $got = right(imported('mobilenet', data("$mobilenet/frozen_graph.pb"), @words), @eval);
    is $got->{n}, 200, 'mobilenet: 200 pictures';
    ok $got->{top1} >= 118 && $got->{top1} <= 124, "mobilenet: top-1 $got->{top1} (118 to 124)";
    ok $got->{top5} >= 163 && $got->{top5} <= 168, "mobilenet: top-5 $got->{top5} (163 to 168)";
});
# TensorFlow itself, given the same pixels, gets 111 and 165 of this file too (121 and 163 of pixels that
# its own resizing made).
with_data('mobilenet in 8 bits', ["$mobilenet/quantized_graph.pb", @needs], sub {
    my $got = right(imported('quantized', data("$mobilenet/quantized_graph.pb"), @words), @eval);
    is $got->{n}, 200, 'mobilenet in 8 bits: 200 pictures';
    ok $got->{top1} >= 108 && $got->{top5} >= 162, "mobilenet in 8 bits: top-1 $got->{top1}, top-5 $got->{top5}";
});

with_data('mtcnn', ['tensorflow/mtcnn/mtcnn.pb'], sub {
    my ($code, $out, $err) = cnnrun('import', data('tensorflow/mtcnn/mtcnn.pb'), '-o',
        "$dir/mtcnn.cnr");
    ok $code != 0 && !-e "$dir/mtcnn.cnr", 'mtcnn: refused, nothing written';
    like $err, qr/nodes? $_ \(the first: pnet\/\S*\): control flow/, "mtcnn: its $_ nodes named"
        for qw(Enter Exit Switch Merge NextIteration LoopCond TensorArrayV3);
});

my $face = 'tensorflow/opencv_face_detector/opencv_face_detector_uint8.pb';
with_data('opencv_face_detector', [$face, 'images/ultraface_12.jpg'], sub {
    my $net = imported('face', data($face), '--option', 'shape=300,300,3', '--channels', 'bgr', '--mean', '104,177,123');
    # Maps of 38, 19, 10, 5, 5, 5 places a side with 4, 6, 6, 6, 4, 4 boxes each.
    my $boxes = 38 * 38 * 4 + (19 * 19 + 10 * 10 + 5 * 5) * 6 + 2 * 5 * 5 * 4;
    my $got = outputs($net, data('images/ultraface_12.jpg'));
    is shapes($got), "mbox_conf_flatten=1x" . 2 * $boxes . " mbox_loc=1x" . 4 * $boxes,
        "opencv_face_detector: $boxes boxes";
    my ($scores) = grep { $_->{name} eq 'mbox_conf_flatten' } @$got;
    my @sure = grep { $_ % 2 && $scores->{high}[$_] > 0.9 } 0 .. 2 * $boxes - 1;
    ok @sure >= 1 && @sure < 500, 'opencv_face_detector: ' . @sure . ' boxes are faces';
});
done_testing;
