#!/usr/bin/perl
# Every command and block of code in every page runs, as it stands there, and prints what the page shows below it
# (numbers may differ). Each page gets a copy of the tree that is thrown away (an overlay mounted over it, seen by
# that shell alone), with the files beside it that its text speaks of; code that a recipe says to write into a file is
# written there. Blocks.pm finds the blocks and says what runs code.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;
use lib dirname(__FILE__);
use Blocks qw(blocks_of code_commands missing_lines);

my $root = abs_path(dirname(__FILE__) . '/../..');
my $build = abs_path($ENV{CNNRUN_BUILD} // "$root/build");
my $shared = ($ENV{CNNRUN_SHARED} // "$root/../shared") . '/data';
plan skip_all => "$build is not below $root/build" unless -x "$build/cnnrun" && $build eq "$root/build";
my $overlay = 'mount -t tmpfs none $0 && mkdir $0/new $0/work && ' .
    "mount -t overlay none -o lowerdir=$root,upperdir=\$0/new,workdir=\$0/work $root && cd $root && ";
my $tmp = tempdir(CLEANUP => 1);
mkdir "$tmp/mount";
# CMake removes this empty folder and makes it again, which a user's overlay does not allow.
rmdir "$build/CMakeFiles/pkgRedirects";
my ($unshare) = grep { system("$_ sh -c '$overlay true' $tmp/mount >/dev/null 2>&1") == 0 }
    'unshare -m', 'unshare -rm';
plan skip_all => 'overlays cannot be mounted here (root, or user namespaces)' unless $unshare;

# Words that stand for something.
my %word = (
    'NET' => 'scripts/nets/lenet5.lua', 'PICTURE' => 'three.png', 'PICTURE...' => 'three.png one.png',
    'SPEC' => 'images:digits.txt', 'MODEL' => 'lenet.prototxt', '[WEIGHTS]' => 'lenet.caffemodel',
    'FILE' => 'written.onnx', 'DIR' => 'folder', 'PATH...' => 'onnx_mnist',
    'FILE...' => 'scripts/nets/lenet5.cnr', 'SHELL' => 'bash', 'COMMAND...' => 'true', 'COMMAND' => 'show', 'NET.cnr' => 'net.cnr',
    'shape=3,224,224' => 'shape=1,28,28', # the small nets that stand for "net"
    'SCRIPT.lua' => 'scripts/apps/classify.lua', 'WORDS...' => 'scripts/nets/lenet5.lua three.png',
    'DEVICE' => 'cpu', 'PLUGIN.so' => 'build/plugins/sparse-csr.so',
    'scripts/nets/NAME.lua' => 'scripts/nets/resnet18.lua', 'picture.png' => 'three.png',
    'STUDENT' => 'scripts/nets/lenet5.lua', '/where/cnnrun/is/installed' => '"$PREFIX"',
    map { ("/where/cnnrun/is/installed/share/cnnrun/$_" => "\"\$PREFIX\"/share/cnnrun/$_") } qw(template-kinds template-npu),
);
# The file that a README means, in the shared data; for all READMEs, or for commands that match.
my @files = (
    [qr/squeezenet/, 'deploy.prototxt' => 'caffe/squeezenet_v1.1/deploy.prototxt',
     'squeezenet_v1.1.caffemodel' => 'caffe/squeezenet_v1.1/squeezenet_v1.1_fp16values.caffemodel'],
    [qr/deploy\.prototxt net\.caffemodel/, 'deploy.prototxt' => 'caffe/squeezenet_v1.1/deploy.prototxt',
     'net.caffemodel' => 'caffe/squeezenet_v1.1/squeezenet_v1.1_fp16values.caffemodel'],
    [qr/squeezenet\.onnx/, 'squeezenet.onnx' => '= cnnrun export scripts/nets/squeezenet_v1_1.lua --weights random:1 -o squeezenet.onnx'],
    [qr/yolox_nano/, 'yolox_nano.onnx' => 'onnx/yolox_nano/yolox_nano.onnx'],
    [qr/\bnet\.onnx/, 'net.onnx' => 'onnx/mnist/model.onnx'],
    [qr/yolo\.cfg/, 'yolo.cfg' => 'darknet/tiny-darknet/tiny.cfg',
     'yolo.weights' => 'darknet/tiny-darknet/tiny.weights'],
    [qr/frozen_graph\.pb/, 'frozen_graph.pb' => 'tensorflow/mobilenet_v1_0.25_224/frozen_graph.pb',
     'mobilenet_v1_0.25_224/frozen_graph.pb' => 'tensorflow/mobilenet_v1_0.25_224/frozen_graph.pb',
     'labels.txt' => 'tensorflow/mobilenet_v1_0.25_224/labels.txt'],
    [qr/net\.t7/, 'net.t7' => 'torch7/lenet5/LeNet5.nn'],
    [qr/net-symbol/, 'net-symbol.json' => 'mxnet/lenet/lenet-symbol.json',
     'net-0001.params' => 'mxnet/lenet/lenet-0001.params'],
    [qr/Cifar10_def/, map { ("Data_Cifar10/$_" => "cnndroid/cifar10/$_", $_ => "cnndroid/cifar10/$_") }
     qw(Cifar10_def.txt labels.txt mean.msg model_param_conv1.msg model_param_conv2.msg
        model_param_conv3.msg model_param_ip1.msg model_param_ip2.msg)],
    [qr/opencv_face/, 'opencv_face_detector_uint8.pb' =>
     'tensorflow/opencv_face_detector/opencv_face_detector_uint8.pb'],
    [qr/film\.mp4/, 'film.mp4' => 'videos/walk.mkv'], [qr/walk\.mp4/, 'walk.mp4' => 'videos/walk.mkv'],
    [qr/synset_words/, 'synset_words.txt' => 'labels/synset_words.txt'],
    [qr/dog\.jpg/, 'dog.jpg' => 'images/dog.jpg'], [qr/cat\.jpg/, 'cat.jpg' => 'images/cat.jpg'],
    [qr/holiday/, 'holiday/a.jpg' => 'images/dog.jpg', 'holiday/b.jpg' => 'images/person.jpg'],
    [qr/\bMODEL\b/, 'lenet.prototxt' => 'caffe/lenet/lenet_deploy.prototxt',
     'lenet.caffemodel' => 'caffe/lenet/lenet_iter_10000.caffemodel'],
    [qr/PATH\.\.\./, 'onnx_mnist/model.onnx' => 'onnx/mnist/model.onnx',
     map { ("onnx_mnist/test_data_set_0/$_" => "onnx/mnist/test_data_set_0/$_") }
     qw(input_0.pb output_0.pb)],
);
# Not run, and why.
my @left_out = (
    [qr{tools/test\.sh}, 'this is run by it'],
    [qr{tools/package\.sh}, 'takes minutes: builds in bare machines'],
    [qr/^cnnrun kernelcheck$/, 'tests/kernelcheck runs it, at counts that fit'],
    [qr{tests/peers/venv|from mxnet|python3 tests/bench/}, 'wants Python packages of other frameworks'],
    [qr{^core/docs/\S+ code python$}, 'tests/bind/python.t runs it'],
    [qr/^apt-get download/, 'tools/test.sh builds so for tests/cross/aarch64.t'],
    [qr/^Tensor x = Tensor|^import network/, 'parts of programs; tests/bind/java.t runs such calls'],
    [qr/^Engine engine = Phone/, "part of a program; tests/bind/android.t compiles such calls against stubs"],
    [qr/^gradle /, "wants Android's development kit"],
    [qr{^tools/pack\.pl|packed/lenet5}, 'takes minutes: CNNRUN_PACK=DIR prove tests/cross/pack.t'],
    [qr{report --trust -o|measured\.lua board\.json|^cnnrun boards board\.lua}, 'takes minutes; tests/scripts/apps/report.t measures for seconds'],
    [qr/cnr_plugin_query_acme/, 'part of a program; tests/outside/outside.t builds and runs linked.c'],
    [qr/^mpirun |^nice .*mpirun/, 'tests/core/group/group.t runs such jobs'],
    [qr/^sbatch /, 'tests/core/group/slurm.t has a controller for it'],
    [qr/^pkg install/, 'wants Termux on a phone'],
    [qr/^pip install|^python -m build/, 'tests/bind/python.t builds the wheel'],
    [qr/^cnnrun govern edp -- /, 'wants a clock that can be set; tests/core/govern has made-up ones'],
    [qr/^tar xf cnnrun/, 'tools/package.sh makes that folder and tries it'],
    [qr/^\$?\s*cnnrun spy\.lua|^cnnrun run: spy/, 'tests/plugins/escape.t tries to escape'],
    [qr/^cnnrun: plugin acme crashed/, 'of a plugin with a mistake; tests/core/host makes such'],
    [qr/kernelcheck --kernel log_softmax_f32_lanes/, 'of a kernel whose arithmetic the reader has yet to write'],
    [qr/^neon_check\(/, 'a line of a file that is made by a recipe'],
    [qr/start = function\(seen, memory\) \.\.\. end/, 'a sketch: the dots stand for code'],
    [qr/^works    cpu/, 'tells what one machine lacks'],
    [qr{perl tests/bench/|package\.sh check}, 'takes minutes'],
    [qr{rtsp://door}, 'wants cameras; tests/scripts/apps/record.t makes some up'],
    [qr/^\[Unit\]|^automation:/, "files of systemd and of Home Assistant"],
    [qr/video0/, 'wants a camera; tests/plugins/source-video/camera.t makes one up'],
    [qr{bench/(?:track|optimum)\.lua|documents/(?:w18|s16|report)\.lua|x19\.lua --table|kernelcheck(?:/nets\.sh| --plugin opencl)|bench/opencl(?:\.sh|_counts)}, 'takes minutes'],
    [qr/--repeat 20/, 'takes minutes'],
    [qr/--data mnist:DIR,shift|small\.cnr -o smaller/, 'trains for minutes, or reads what that wrote'],
    [qr/resnet-18\.t7|nn4\.|candy|resnet50|frozen_inference_graph|Data_AlexNet/, 'that model is not among the shared data'],
);
# A sensor, for machines without one.
my $sensor = 'chip=sensors/sys/class/hwmon/hwmon0; mkdir -p $chip; echo ina226 >$chip/name; ' .
    "echo 2500000 >\$chip/power1_input\n";
# Words that a command is short for, so that it can run alone.
my %whole = (
    'cnnrun boards mine.lua' => "cp scripts/boards/odroid_xu3.lua mine.lua\ncnnrun boards mine.lua",
    'cnnrun ops NAME' => 'cnnrun ops relu',
    'cnnrun energy log' => "${sensor}cnnrun energy log --seconds 0.2 --sysfs-root sensors",
    'cnnrun energy log --csv power.csv --page 8080' =>
        "${sensor}cnnrun energy log --csv power.csv --page 0 --seconds 0.2 --sysfs-root sensors",
    'cnnrun energy log --csv log.csv' =>
        "${sensor}cnnrun energy log --csv log.csv --seconds 0.2 --sysfs-root sensors",
    'cnnrun tune' => 'cnnrun tune NET --cache DIR', 'cnnrun show' => 'cnnrun show NET',
    'cnnrun warm NET' => 'cnnrun warm NET --cache DIR', 'cnnrun cache list' => "cnnrun warm NET --cache DIR\ncnnrun cache list --cache DIR",
    'cnnrun warm scripts/nets/lenet5.lua --cache plans --cache-codec zstd,sodium --cache-key-file key' =>
        "echo secret >key\ncnnrun warm NET --cache plans --cache-codec zstd,sodium --cache-key-file key",
    'cnnrun NET PICTURE --adapt' => 'cnnrun NET PICTURE --adapt --cache DIR',
    'cnnrun warm' => 'cnnrun warm NET --cache DIR', 'cnnrun tune NET' => 'cnnrun tune NET --cache DIR',
    'cnnrun monitor MODEL SOURCE' => 'cnnrun monitor NET three.png --app classify',
    'cnnrun prune NET SCHEDULE --data SPEC -o OUT.cnr' =>
        "echo 'return require \"lib.prune\".schedule { about = \"half of ip1\", layers = { ip1 = 0.5 }, scan = false }' >schedule.lua\n" .
        'cnnrun prune NET schedule.lua --data SPEC -o OUT.cnr',
    'cnnrun prune' => 'cnnrun prune NET lenet5 --data SPEC -o OUT.cnr', 'cnnrun run' => 'cnnrun run NET PICTURE',
    'cnnrun train ... --curves curves.csv' =>
        'cnnrun train NET --data SPEC --epochs 2 -o OUT.cnr --curves curves.csv',
    'cnnrun convert --encode sparse-csr:keep=0.1,values=f16' =>
        'cnnrun convert NET --encode sparse-csr:keep=0.1,values=f16 -o OUT.cnr',
    'cnnrun bench NET --profile --kernel conv=conv_f32_blocked' => 'cnnrun bench ' .
        'scripts/nets/squeezenet_v1_1.lua --weights random:1 --profile --kernel conv=conv_f32_blocked',
    'cnnrun quantize' => 'cnnrun quantize NET --data SPEC -o OUT.cnr',
    'cnnrun compile' => 'cnnrun compile NET -o OUT.cnrp',
    'cnnrun sweep STUDY.lua --grid rate=.01,.1 -o DIR' =>
        "echo 'return function(p) return { top1 = p.rate + p.seed } end' >study.lua\n" .
        'cnnrun sweep study.lua --grid rate=.01,.1 --seeds 1..5 -o DIR',
    'cnnrun sweep STUDY.lua --grid NAME=VALUES --seeds 1..5 -o DIR' =>
        "echo 'return function(p) return { top1 = p.rate + p.seed } end' >study.lua\n" .
        'cnnrun sweep study.lua --grid rate=.01,.1 --seeds 1..5 -o DIR',
    'cnnrun sweep study.lua scripts/nets/lenet5.lua mnist:DIR --grid rate=log:.003:.03:3 --seeds 1..5 --jobs 2 -o out' =>
        "echo 'return function(p) return { top1 = p.rate, loss = { 1, 2 } } end' >study.lua\n" .
        'cnnrun sweep study.lua scripts/nets/lenet5.lua mnist:DIR --grid rate=log:.003:.03:3 --seeds 1..5 --jobs 2 -o out',
    'cnnrun convert --encode int8:bits=4' => 'cnnrun convert NET --encode int8:bits=4 -o OUT.cnr',
    'CNNRUN_KERNEL_DIR=kernels cnnrun run net.lua picture.png --device opencl:0' =>
        'CNNRUN_KERNEL_DIR=kernels cnnrun run NET PICTURE --device opencl:0',
    'cnnrun convert net.lua -o net.cnr' => "cp scripts/nets/lenet5.lua net.lua\n" .
        "cp scripts/nets/lenet5.cnr .\ncnnrun convert net.lua -o net.cnr",
);
# The text with paths of this machine.
sub substituted {
    my $text = shift;
    $text = $whole{$text} // $text;
    my $words = join '|', map { quotemeta } sort { length $b <=> length $a } keys %word;
    $text =~ s/(?<![\w\/.])($words)(?![\w\/])/$word{$1}/g;
    return $text;
}

# Copies of the files that the text speaks of: shell commands, and what is missing.
sub preparation {
    my $text = shift;
    my ($commands, @missing) = ('');
    for my $row (@files) {
        my ($match, %copy) = @$row;
        next unless $text =~ $match;
        for my $to (sort keys %copy) {
            if ($copy{$to} =~ /^= (.*)/) { $commands .= "$1\n"; next }
            push @missing, $copy{$to} unless -e "$shared/$copy{$to}";
            $commands .= "mkdir -p \"\$(dirname $to)\" && cp $shared/$copy{$to} $to\n";
        }
    }
    return ($commands, @missing);
}

system "cmake --install $build --prefix $tmp/prefix >/dev/null" and BAIL_OUT('cmake --install');
my $common = "export PREFIX=$tmp/prefix\n" .
    "export PATH=$root/build:\$PATH\nunset CNNRUN_BUILD\ncp scripts/nets/digits/*.png .\n" .
    'for name in zero one two three; do echo "$name.png $((n++))"; done >digits.txt' . "\n";

my @only = @ARGV; # pages to try alone
my @readmes = grep { my $page = $_; !@only || grep { $page =~ /\Q$_/ } @only } grep { !m{/venv/|^build|/build|/CHANGELOG\.md$} } split /\n/, `cd $root && find . -name '*.md' | sort`;
for my $readme (map { s{^\./}{}r } @readmes) {
    open my $in, '<', "$root/$readme" or die;
    my $text = do { local $/; <$in> };
    my ($script, @ran) = ($common);
    $script .= "cp -r $1 \$0/copy && cd \$0/copy && ln -s $root/scripts scripts\n" if $readme =~ m{^(plugins/template[^/]*)/};
    for my $block (blocks_of($text)) {
        my ($kind, $commands, $line, $of) = @$block;
        my $name = "$readme:$line: " . ($commands =~ /^\s*(.{1,60})/)[0];
        if ($kind eq 'file') {
            $script .= "mkdir -p \"\$(dirname $of)\"\ncat >$of <<'END_OF_FILE'\n$commands\nEND_OF_FILE\n";
            next;
        }
        my ($no) = grep { my $row = $_; grep { $_ =~ $row->[0] } $commands, "$readme $kind " . ($of // '') } @left_out;
        my $write = '';
        if ($kind eq 'code' && !$no) {
            ($write, $commands) = code_commands($commands, $of, scalar @ran);
            if (!$commands) { fail("$name: nothing runs this code; Blocks.pm or the list of what is left out wants a row"); next }
        }
        my ($copies, @missing) = preparation($commands . $write);
        if ($no || @missing || $kind eq 'output' && (!@ran || $ran[-1]{skipped})) {
            my $why = $no ? "left out: $no->[1]: $name" : @missing ? "$name: no $shared/$missing[0]" : "$name: its command is left out";
          SKIP: { skip $why, 1 }
            $ran[-1]{skipped} = 1 if @ran && $kind eq 'run';
            next;
        }
        if ($kind eq 'output') { push @ran, { name => $name, output => $commands, of => $ran[-1]{n} // $ran[-1]{of} }; next }
        my $n = 1 + @ran;
        push @ran, { name => $name, n => $n };
        $script .= "(set -e\n$copies$write" . substituted($commands) . "\n) >$tmp/log.$n 2>&1 </dev/null\n" .
            "echo \$? >$tmp/code.$n\n";
    }
    next unless @ran;
    open my $out, '>', "$tmp/script" or die;
    print $out "# \$0: where the overlay lies\n$script";
    close $out;
    system "$unshare bash -c '$overlay . $tmp/script' $tmp/mount";
    for my $ran (@ran) {
        my $n = $ran->{n} // $ran->{of};
        my $log = do { local (@ARGV, $/) = ("$tmp/log.$n"); -e $ARGV[0] ? <> : '' };
        if (defined $ran->{output}) {
            my @lines = missing_lines($ran->{output}, $log);
            ok !@lines, "$ran->{name} (its output)" or diag "not printed: @lines\nbut:\n" . substr $log, 0, 1500;
            next;
        }
        my $code = do { local (@ARGV, $/) = ("$tmp/code.$n"); -e $ARGV[0] ? <> + 0 : -1 };
        ok $code == 0, $ran->{name} or diag "exit $code\n" . substr $log, -1500;
    }
    unlink glob "$tmp/log.* $tmp/code.*";
}
done_testing;
