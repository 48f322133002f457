#!/usr/bin/perl
# ONNX's own tests with cnnrun verify: exact counts, and two test vectors that are known to differ.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Models;
use Test::More;

# The vectors of these two hold results that wrapped round at 8 bits, made so by NumPy's casts. ONNX's
# text quantises with saturation, which is what we do; later releases of ONNX changed the vectors.
my @wrapped = qw(test_qlinearmatmul_2D_int8_float16 test_qlinearmatmul_3D_int8_float16);

for (['onnx-node', 266, @wrapped], ['onnx-node-opset8', 84], ['onnx-pytorch-operator', 18],
    ['onnx-pytorch-converted', 41], ['onnx-light', 5], ['onnx/mnist', 1]) {
    my ($folder, $count, @known) = @$_;
    with_data($folder, [$folder], sub {
        my ($code, $out, $err) = cnnrun('verify', data($folder));
        my @failed = $out =~ /^not ok \d+ - (?:\S*\/)?([^\/\s]+)$/mg;
        my $good = () = $out =~ /^ok \d+ - (?!.*# SKIP)/mg;
        my $skipped = () = $out =~ /# SKIP/g;
        is $good, $count - @known, "$folder: $good of $count good";
        is $skipped, 0, "$folder: none skipped";
        is_deeply [sort @failed], \@known,
            "$folder: " . (@known ? "only the wrapped vectors fail: @known" : 'none fails')
            or diag $out =~ s/^ok .*\n//gmr;
        is $code, @known ? 1 : 0, "$folder: the exit code says so";
        like $out, qr/\[[\d,]+\]: got -128, want/, "$folder: they are saturated here" if @known;
    });
}

# onnx/mnist on more than its one vector.
with_data('onnx/mnist', ['onnx/mnist/model.onnx', 'mnist'], sub {
    my @words = ('--data', 'mnist:' . data('mnist'), '--limit', 1000);
    my $got = right(data('onnx/mnist/model.onnx'), @words);
    near($got->{top1}, 987, 1, 'onnx/mnist without an import: of 1,000 digits');
});

# ---- models of the wild: they load and answer without an import to a file ----

my $super = 'onnx/super_resolution/super_resolution.onnx';
with_data('super_resolution', [$super, 'images/cat.jpg'], sub {
    my ($code, $out, $err) = cnnrun('run', data($super), data('images/cat.jpg'),
        '--channels', 'gray', '--std', 255, '--json');
    my ($answer) = objects($out);
    is shapes($answer->{outputs} // []), '27=1x1x672x672', 'super_resolution: 3 times as large'
        or diag $err;
});
my $ultraface = 'onnx/ultraface/version-RFB-320.onnx';
with_data('ultraface', [$ultraface, 'images/ultraface_1.jpg'], sub {
    my ($code, $out, $err) = cnnrun('run', data($ultraface), data('images/ultraface_1.jpg'),
        '--mean', 127, '--std', 128, '--json');
    my ($answer) = objects($out);
    is shapes($answer->{outputs} // []), 'boxes=1x4420x4 scores=1x4420x2', 'ultraface: 4,420 priors'
        or diag $err;
});
# Strides 8, 16, 32: of 416, 52 * 52 = 2704, 676 and 169 places, together 3549; of 320, 1600, 400,
# 100.
# (A first output of a column goes into run's list of the best, so YuNet's cls_8 is not told.)
my $yunet = join ' ', 'bbox_16=1x400x4 bbox_32=1x100x4 bbox_8=1x1600x4',
    'cls_16=1x400x1 cls_32=1x100x1', 'kps_16=1x400x10 kps_32=1x100x10 kps_8=1x1600x10 obj_16=1x400x1 obj_32=1x100x1 obj_8=1x1600x1';
my %nets = (
    'onnx/yolox_nano/yolox_nano.onnx' => 'outputs=1x3549x85',
    'onnx/nanodet/nanodet_m.onnx' => '792=1x2704x80 795=1x2704x32 814=1x676x80 817=1x676x32 '
        . '836=1x169x80 839=1x169x32',
    map { ("onnx/yunet/yunet_$_.onnx" => $yunet) } qw(n_320_320 s_320_320 n_dynamic));
for my $net (sort keys %nets) {
    with_data($net, [$net, 'images/person.jpg'], sub {
        my ($code, $out, $err) = cnnrun('run', data($net), data('images/person.jpg'),
            '--channels', 'bgr', '--resize', $net =~ /yunet/ ? '320x320' : '416x416', '--json');
        my ($answer) = objects($out);
        is shapes($answer->{outputs} // []), $nets{$net}, "$net: $nets{$net}" or diag $err;
    });
}
done_testing;
