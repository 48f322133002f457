#!/usr/bin/perl
# Memory fails once, or from then on, somewhere in a command: the answer and the files are those of an
# undisturbed run, or there is an error that speaks of memory and no file is touched. CNNRUN_SWEEP
# sets how many allocations of each command are tried (12); 0: all of them. Words select commands.
use strict;
use warnings;
no warnings "qw"; # 2,6,6 is one word
use Cwd qw(abs_path);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
my $shared = ($ENV{CNNRUN_SHARED} // '../shared') . '/data';
my $corpus = 'tests/fuzz/corpus';
my $points = $ENV{CNNRUN_SWEEP} // 12;
my $sweep = "$build/tests/hostile/sweep";
plan skip_all => "no $sweep" unless -x $sweep;

# A folder with copies of files, each "from" or "from=to".
sub folder {
    my $dir = tempdir(CLEANUP => 1);
    for (@_) {
        my ($from, $to) = /^(.*)=(.*)$/ ? ($1, $2) : ($_, m{([^/]*)$});
        copy($from, "$dir/$to") or die "$from: $!";
    }
    return $dir;
}
# Of two files in one (tests/fuzz/targets.h): a folder with both under these names.
sub pair {
    my ($path, $first, $second) = @_;
    my $dir = tempdir(CLEANUP => 1);
    open my $in, '<:raw', $path or die "$path: $!";
    local $/;
    my ($n, $rest) = unpack 'x4 V a*', <$in>;
    for ([$first, substr $rest, 0, $n], [$second, substr $rest, $n]) {
        open my $out, '>:raw', "$dir/$_->[0]" or die;
        print $out $_->[1];
        close $out;
    }
    return $dir;
}
# A folder with the digits.
sub digits {
    my @names = qw(zero one two three four five six seven eight nine);
    my $dir = folder(@_, map { "scripts/nets/digits/$_.png" } @names);
    open my $list, '>', "$dir/list.txt" or die;
    print $list "$names[$_].png $_\n" for 0 .. $#names;
    close $list;
    return $dir;
}

my @chosen = @ARGV;
# Sweeps a command, if it was chosen.
sub sweep {
    my ($what, $dir, @words) = @_;
    return if @chosen && !grep { $what =~ /\Q$_/ } @chosen;
    my @command = ($sweep, "$build/plugins", $dir, $points, @words);
    open my $in, '-|', @command or die;
    my @lines = <$in>;
    close $in;
    my $good = ok($? == 0, $what);
    print @lines;
}
# Sweeps a command on real files; skipped without them.
sub real {
    my ($what, $files, @words) = @_;
    my ($missing) = grep { !-e } map { s/=.*//r } @$files;
SKIP: {
        skip "$what: no $missing", 1 if defined $missing;
        sweep("$what, a real one", folder(@$files), @words);
    }
}

my $lenet = folder(glob('scripts/nets/lenet5.*'), 'scripts/nets/digits/five.png');
my @import = ('import', '-o', 'out.cnr');
my $small = digits('tests/hostile/small.lua', 'scripts/nets/lenet5.cnr=out.cnr');
my @small = ('small.lua', '--threads', 1);

sweep('run a script', $lenet, 'run', '--threads', 1, '--json', 'lenet5.lua', 'five.png');
sweep('run a native file', $small, qw(run --threads 1 --json out.cnr five.png));
sweep('show', $lenet, 'show', 'lenet5.lua');
sweep('place', $lenet, qw(place lenet5.lua --weights random:1 --board odroid_xu3,dry --policy best --runs 1 --json --devices sim:gpu4,sim:gpu2));
sweep('govern', $lenet, qw(govern edp --scene monitor --board odroid_xu3 --seconds 2 --json));
my $policy = folder(glob('scripts/nets/lenet5.*'), 'scripts/nets/digits/five.png', 'tests/hostile/policy.lua');
sweep('rows, and a policy that picks', $policy, qw(show lenet5.lua --candidates --policy policy.lua
      --policy-option x=1 --json));
sweep('run by a policy', $policy, qw(run --threads 1 --policy policy.lua --json lenet5.lua five.png));
sweep('train', $small, 'train', @small, qw(--data images:list.txt --epochs 1 --batch 1 --overwrite
      -o out.cnr));
sweep('train, varied, with checkpoints', $small, 'train', @small, '--data', 'images:list.txt,shift=1', qw(--epochs 2
      --batch 1 --overwrite --checkpoint ckpt --checkpoint-every 1e-9 -o out.cnr));
sweep('quantize', $small, 'quantize', @small, qw(--all --weights random:1 --data images:list.txt
      --min-snr 0 -o out.cnr));
sweep('evaluate', $small, 'eval', @small, qw(--weights random:1 --data images:list.txt --json));
sweep('convert', $small, 'convert', 'small.lua', qw(--weights random:1 -o out.cnr));
sweep('convert, encoded', $small, qw(convert small.lua --weights random:1 -o out.cnr),
      '--encode', 'int8');
sweep('convert a native file', folder("$corpus/native/tiny.cnr"), qw(convert tiny.cnr -o out.cnr));
sweep('check', folder("$corpus/native/tiny.cnr"), qw(check tiny.cnr));
sweep('warm', $small, 'warm', @small, qw(--weights random:1 --cache cache));
my $warmed = digits(glob 'scripts/nets/lenet5.*');
system("cd $warmed && '" . abs_path("$build/cnnrun") . "' warm --threads 1 lenet5.lua --cache cache -q >/dev/null");
sweep('compile', $small, 'compile', @small, qw(--weights random:1 -o out.cnrp));
system("cd $warmed && '" . abs_path("$build/cnnrun") . "' compile --threads 1 lenet5.lua -o lenet5.cnrp -q >/dev/null");
sweep('run a compiled model', $warmed, qw(run --threads 1 --json lenet5.cnrp five.png));
sweep('run with a stored plan', $warmed, qw(run --threads 1 --cache cache --json lenet5.lua five.png));
my $change = digits('tests/hostile/small.lua', 'tests/hostile/change.lua');
sweep('a net that a script changes', $change, qw(run --threads 1 change.lua small.lua images:list.txt out.cnr));
my $sensors = folder('tests/hostile/small.lua');
my %sensors = ('hwmon0/name' => 'ina226', 'hwmon0/power1_input' => 2500000, 'hwmon1/name' => 'amd',
               'hwmon1/energy1_input' => 7000000);
make_path("$sensors/sys/class/hwmon/hwmon$_") for 0, 1;
for (sort keys %sensors) {
    open my $out, '>', "$sensors/sys/class/hwmon/$_" or die;
    print $out "$sensors{$_}\n";
    close $out;
}
sweep('the domains of meters', $sensors, qw(energy list --json --sysfs-root .));
sweep('what scripts can say', folder(), qw(lua --json));
sweep('what scripts can say, for editors', folder(), qw(lua --annotations types));
my $plot = folder('tests/hostile/plot.lua');
make_path("$plot/lib");
copy("scripts/lib/$_.lua", "$plot/lib/$_.lua") or die for qw(axis csv figure plot);
sweep('tables and plots', $plot, qw(run plot.lua a.csv a.png a.svg)) if glob "$build/plugins/draw-cairo.so";
sweep('export', $small, 'export', 'small.lua', qw(--weights random:1 -o out.onnx));
sweep('import caffe', pair("$corpus/import-caffe/tiny.pair", 'a.prototxt', 'a.caffemodel'), @import,
      qw(a.prototxt a.caffemodel));
sweep('import darknet', pair("$corpus/import-darknet/tiny.pair", 'a.cfg', 'a.weights'), @import,
      qw(a.cfg a.weights));
sweep('import mxnet', pair("$corpus/import-mxnet/tiny.pair", 'a-symbol.json', 'a-0001.params'),
      @import, qw(a-symbol.json a-0001.params --option shape=2,6,6));
sweep('import onnx', folder("$corpus/import-onnx/tiny.onnx"), @import, 'tiny.onnx');
sweep('import tensorflow', folder("$corpus/import-tensorflow/tiny.pb"), @import, 'tiny.pb');
sweep('import torch7', folder("$corpus/import-torch7/ascii.t7"), @import, 'ascii.t7');
sweep('import numpy', folder('tests/fuzz/tiny.lua', "$corpus/weights/named.npz"),
      qw(convert tiny.lua --weights named.npz -o out.cnr));
real('import caffe', ["$shared/caffe/mtcnn/det1.prototxt", "$shared/caffe/mtcnn/det1.caffemodel"],
     @import, 'det1.prototxt', 'det1.caffemodel');
my $cnndroid = "$shared/cnndroid/cifar10";
real('import cnndroid', ["$cnndroid/Cifar10_def.txt", glob("$cnndroid/*.msg")], @import,
     'Cifar10_def.txt');
my $darknet = "$shared/darknet/yolo-lite/tiny-yolov2-trial3-noBatch";
real('import darknet', ["$darknet.cfg=a.cfg", "$darknet.weights=a.weights"], @import, 'a.cfg',
     'a.weights');
my $mxnet = "$shared/mxnet/lenet/lenet";
real('import mxnet', ["$mxnet-symbol.json", "$mxnet-0001.params"], @import, 'lenet-symbol.json',
     'lenet-0001.params', '--option', 'shape=1,28,28');
real('import onnx', ["$shared/onnx/mnist/model.onnx"], @import, 'model.onnx');
real('import tensorflow', ["$shared/tensorflow/mnist/beginner-graph.pb=a.pb"], @import, 'a.pb');
real('import torch7', ["$shared/torch7/hw1/model.t7"], @import, 'model.t7');
done_testing;
