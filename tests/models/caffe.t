#!/usr/bin/perl
# Caffe's models: right answers on real pictures, and outputs of the shapes their prototxt implies.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Models;
use Test::More;

# prototxt and caffemodel in a folder of caffe/.
sub pair { return map { data("caffe/$_[0]/$_") } @_[1, 2] }
# Paths of files in Caffe's folder.
sub needs { my $folder = shift; return [map { "caffe/$folder/$_" } @_] }

# ---- classifiers ----

my @lenet = ('lenet', 'lenet_deploy.prototxt', 'lenet_iter_10000.caffemodel');
with_data('lenet', [@{needs(@lenet)}, 'mnist'], sub {
    my $net = imported('lenet', pair(@lenet), '--scale', '0.00390625');
    my $got = right($net, '--data', 'mnist:' . data('mnist'), '--limit', 2000);
    cmp_ok $got->{top1}, '>=', 1974, "lenet: $got->{top1} of $got->{n} digits (98.7%)";
    near($got->{top1}, 1974, 2, 'lenet: and no more than its weights know');
});

my @squeezenets = (
    # OpenCV's DNN module gives 133 and 172 for v1.0 on the same pictures.
    ['squeezenet_v1.1', 'squeezenet_v1.1_fp16values.caffemodel', 132, 173],
    ['squeezenet_v1.0_deepcompression', 'squeezenet_v1.0_decompressed.caffemodel', 135, 171]);
my @imagenet = ('--mean', '104,117,123', '--channels', 'bgr', '--resize', 256, '--crop', 227,
    '--labels', data('labels/synset_words.txt'));
for (@squeezenets) {
    my ($name, $weights, $top1, $top5) = @$_;
    my @files = ($name, 'deploy.prototxt', $weights);
    my @labels = ('imagenet-sample/labels.txt', 'labels/synset_words.txt');
    with_data($name, [@{needs(@files)}, @labels], sub {
        my $net = imported($name, pair(@files), @imagenet);
        my $got = right($net, '--data', 'images:' . data('imagenet-sample/labels.txt'));
        is $got->{n}, 200, "$name: 200 pictures";
        near($got->{top1}, $top1, 2, "$name: top-1");
        near($got->{top5}, $top5, 2, "$name: top-5");
    });
}
with_data('tabby', [@{needs('squeezenet_v1.1', 'deploy.prototxt')}, 'images/cat.jpg'], sub {
    my ($code, $out) = cnnrun('run', "$dir/squeezenet_v1.1.cnr", data('images/cat.jpg'), '--json');
    my ($answer) = objects($out);
    my ($best, $next) = map { "$_->{label} $_->{score}" } @{$answer->{top}}[0, 1];
    ok $best =~ /tabby.*0\.31/ && $next =~ /tiger cat.*0\.30/, "cat.jpg: $best; $next";
});

for (['quick', 'iter_5000', 737], ['full', 'iter_70000', 790]) {
    my ($name, $weights, $top1) = @$_;
    my @files = ('cifar10', "cifar10_$name.prototxt", "cifar10_${name}_$weights.caffemodel");
    with_data("cifar10_$name", [@{needs(@files, 'mean.binaryproto')}, 'cifar10-jpg/test'], sub {
        my $net = imported("cifar10_$name", pair(@files), '--channels', 'rgb', '--mean',
            data('caffe/cifar10/mean.binaryproto'));
        my $got = right($net, '--data', data('cifar10-jpg/test'));
        is $got->{n}, 1000, "cifar10_$name: 1,000 pictures";
        near($got->{top1}, $top1, 5, "cifar10_$name: top-1");
    });
}

# ---- shapes that follow from the prototxt ----

# Runs an imported net on a picture and compares "name=sizes"; gives the outputs by name.
sub shaped {
    my ($net, $picture, $want, @sizes) = @_;
    my $answers = outputs("$dir/$net.cnr", data("images/$picture"), @sizes);
    is shapes($answers), $want, "$net on $picture: $want";
    return map { $_->{name} => $_ } @$answers;
}

# No padding: 12 - 2 = 10, pooled by 2 to 5, - 2 = 3, - 2 = 1; at 45 x 60 the same way 43, 22 (ceil),
# 20, 18 and 58, 29, 27, 25. det2 to det4 end in dense layers.
my @mtcnn = (
    [['conv4-2=1x4x1x1 prob1=1x2x1x1', 12, 12], ['conv4-2=1x4x18x25 prob1=1x2x18x25', 45, 60]],
    [['conv5-2=1x4 prob1=1x2', 24, 24]], [['conv6-2=1x4 conv6-3=1x10 prob1=1x2', 48, 48]],
    [[join(' ', map { "fc5_$_=1x2" } 1 .. 5), 24, 24]]);
for my $i (1 .. 4) {
    my @files = ('mtcnn', "det$i.prototxt", "det$i.caffemodel");
    with_data("det$i", [@{needs(@files)}, 'images/mtcnn_test.jpg'], sub {
        imported("det$i", pair(@files), '--mean', '127.5', '--scale', '0.0078125');
        for (@{$mtcnn[$i - 1]}) {
            my %got = shaped("det$i", 'mtcnn_test.jpg', @$_);
            my @numbers = map { (@{$_->{low}}, @{$_->{high}}) } values %got;
            ok @numbers && !(grep { !(abs $_ < 10) } @numbers), "det$i: moderate numbers";
        }
    });
}

# Strides 8, 16, 32, 64 of 240 x 320 with 3, 2, 2, 3 boxes each: 40*30*3 + 20*15*2 + 10*8*2 + 5*4*3.
is 40 * 30 * 3 + 20 * 15 * 2 + 10 * 8 * 2 + 5 * 4 * 3, 4420, 'ultraface has 4,420 priors';
for my $name (qw(RFB slim)) {
    my @files = ('ultraface', "$name-320.prototxt", "$name-320.caffemodel");
    my @pictures = ('ultraface_1.jpg', 'ultraface_12.jpg', 'eagle.jpg');
    with_data("ultraface-$name", [@{needs(@files)}, map { "images/$_" } @pictures], sub {
        imported("ultraface-$name", pair(@files), qw(--mean 127 --std 128 --channels rgb));
        for my $picture (@pictures) {
            my %got = shaped("ultraface-$name", $picture, 'boxes=1x4420x4 scores=1x4420x2');
            my $score = sprintf '%.3f', $got{scores}{high}[1] // -1;
            my $there = $picture =~ /face/;
            ok $there ? $score > 0.9 : abs($score - 0.3) <= 0.3,
                "ultraface-$name on $picture: " . ($there ? 'a face' : 'none') . ", $score";
        }
    });
}

# A net that enlarges: the sizes, and a picture of 0 to 1 stays about there, with some contrast.
sub larger {
    my ($net, $picture, $want) = @_;
    my $got = told("$dir/$net.cnr", data("images/$picture"));
    is shapes($got), $want, "$net on $picture: $want";
    my ($low, $high) = map { $got->[0]{$_} // 9 } qw(lowest highest);
    ok $low > -0.3 && $high < 1.3 && $high - $low > 0.5, "$net: from $low to $high";
}

# detection_output has a row of 7 numbers for each code found; a cat has none.
my @qr = ('wechat_qrcode', 'detect.prototxt', 'detect.caffemodel');
with_data('wechat-detect', [@{needs(@qr)}, 'images/cat_gray.jpg'], sub {
    imported('wechat-detect', pair(@qr), '--std', 255);
    my $got = told("$dir/wechat-detect.cnr", data('images/cat_gray.jpg'));
    is shapes($got), 'detection_output=1x1x0x7', 'wechat-detect on cat_gray.jpg: no code';
});
# A transposed convolution of kernel 3, stride 2, pad 1 makes 447 of 224.
my @sr = ('wechat_qrcode', 'sr.prototxt', 'sr.caffemodel');
with_data('wechat-sr', [@{needs(@sr)}, 'images/cat_gray.jpg'], sub {
    imported('wechat-sr', pair(@sr), '--std', 255);
    larger('wechat-sr', 'cat_gray.jpg', 'fc=1x1x447x447');
});
# 90, less 2 for each of 12 convolutions, 66; kernel 4, stride 2, pad 3 makes 65 * 2 + 4 - 6.
my @waifu = ('waifu2x_upresnet10', 'scale2.0x_model.prototxt', 'scale2.0x_model.json.caffemodel');
with_data('waifu2x', [@{needs(@waifu)}, 'images/cat.jpg'], sub {
    imported('waifu2x', pair(@waifu), '--std', 255);
    larger('waifu2x', 'cat.jpg', '/conv_post=1x3x128x128');
});
done_testing;
