#!/usr/bin/perl
# LeNet on an OpenCL device, and with layers split between it and the processor: the answers are the
# processor's, digit by digit. DIGITS says how many (100 of the 10,000).
use strict;
use warnings;
use File::Temp qw(tempdir);

my $build = $ENV{CNNRUN_BUILD} || "build";
my $data = ($ENV{CNNRUN_SHARED} || "../shared") . "/data";
my $digits = $ENV{DIGITS} || 100;
my $dir = tempdir(CLEANUP => 1);
my $n = 0;
$ENV{CNNRUN_CACHE} ||= "$build/opencl-cache";
$ENV{POCL_CACHE_DIR} ||= "$build/opencl-cache/pocl";

# Prints one TAP line.
sub ok($$) {
    my ($good, $what) = @_;
    $n++;
    print $good ? "ok $n - $what\n" : "not ok $n - $what\n";
    return $good;
}

# Ends the test.
sub finish { print "1..$n\n"; exit 0 }

# Skips the test.
sub skip_all {
    $n++;
    print "ok $n - LeNet by OpenCL # SKIP $_[0]\n";
    finish();
}

# Standard output of the program; the exit status in $?. Errors go to the file "err".
sub cnnrun {
    open my $pipe, "-|", "sh", "-c", 'exec "$@" 2>"$0"', "$dir/err", "$build/cnnrun", @_ or die;
    local $/;
    my $text = <$pipe>;
    close $pipe;
    return defined $text ? $text : "";
}

# The text of a file.
sub slurp { local (@ARGV, $/) = ($_[0]); my $text = <>; return defined $text ? $text : "" }
# Writes a file, given as path and text; dies if it can't.
sub spit { open my $file, ">", $_[0] or die; print $file $_[1]; close $file }

# The scores of the first digits: a list of { class => score }.
sub scores {
    my @list;
    open my $pipe, "-|", "sh", "-c", 'exec "$@" 2>"$0"', "$dir/err", "$build/cnnrun", "run", @_,
        "mnist:$data/mnist:test", "--json", "--top", "10" or die;
    while (@list < $digits && defined(my $line = <$pipe>)) {
        my %one = $line =~ /"index":(\d+),.*?"score":([-+.\de]+)/g;
        push @list, \%one;
    }
    close $pipe;
    return \@list;
}

# The same best class for each digit, scores alike within float's rounding over some hundred terms.
sub same {
    my ($got, $want, $what) = @_;
    my ($worst, $wrong) = (0, 0);
    for my $i (0 .. $#$want) {
        my (%g, %w) = %{$got->[$i] || {}};
        %w = %{$want->[$i]};
        my ($x) = sort { $w{$b} <=> $w{$a} } keys %w;
        my ($y) = sort { $g{$b} <=> $g{$a} } keys %g;
        $wrong++ if !defined $y || $x ne $y;
        for my $k (keys %w) {
            my $off = defined $g{$k} ? abs($g{$k} - $w{$k}) : 1;
            $worst = $off if $off > $worst;
        }
    }
    ok(@$want == $digits && $wrong == 0 && $worst < 2e-5, "$what: $digits answers are the cpu's")
        or print "# $wrong differ; scores by at most $worst\n";
}

skip_all("no LeNet at $data/caffe/lenet") if !-e "$data/caffe/lenet/lenet_iter_10000.caffemodel";
skip_all("no MNIST at $data/mnist") if !glob("$data/mnist/t10k-images*");
cnnrun("import", "$data/caffe/lenet/lenet_deploy.prototxt",
       "$data/caffe/lenet/lenet_iter_10000.caffemodel", "--scale", "0.00390625", "-o",
       "$dir/lenet.cnr");
ok($? == 0, "LeNet is imported");
my $table = cnnrun("show", "$dir/lenet.cnr", "--device", "opencl:0");
skip_all("no OpenCL device") if $? && slurp("$dir/err") =~ /no such device/;

# ---- wholly on the device ----

ok($? == 0 && $table !~ /^\S+\s+\S+\s.*\scpu\s/m, "no layer is left to the cpu")
    or print "# $table";
my $images = do {
    local $ENV{CNNRUN_OPENCL_CLASS} = "opencl-adreno";
    local $ENV{CNNRUN_OPENCL_TUNE} = "adreno";
    cnnrun("show", "$dir/lenet.cnr", "--device", "opencl:0");
};
ok($images =~ /conv_f32_image/ && $images =~ /dense_f32_image/, "weights lie in images where that suits");
ok($table !~ /copies between devices [1-9]/, "nothing goes to the host between layers");
my $want = scores("$dir/lenet.cnr", "--device", "cpu");
same(scores("$dir/lenet.cnr", "--device", "opencl:0"), $want, "opencl:0");

# ---- split ----

# Writes a net with this placement.
sub net {
    my ($place) = @_;
    spit("$dir/split.lua", <<"END");
local c = require "cnnrun"
return c.net {
  name = "split", weights = "lenet.cnr",
  input = { "data", shape = { "batch", 1, 28, 28 }, channels = "gray", scale = 1 / 256 },
  place = { $place },
  c.conv2d  { "conv1", out = 20, kernel = 5 },
  c.maxpool { "pool1", kernel = 2, stride = 2 },
  c.conv2d  { "conv2", out = 50, kernel = 5 },
  c.maxpool { "pool2", kernel = 2, stride = 2 },
  c.dense   { "ip1", out = 500 },
  c.relu    { "relu1" },
  c.dense   { "ip2", out = 10 },
  c.softmax { "prob" },
}
END
    return "$dir/split.lua";
}
my @cases = (
    ["conv2 along output channels", 'conv2 = { axis = 1, cpu = 0.3, ["opencl:0"] = 0.7 }'],
    ["conv2 along rows", 'conv2 = { axis = 2, cpu = 0.4, ["opencl:0"] = 0.6 }'],
    ["pool1 along rows, all else on opencl:0",
     '["*"] = "opencl:0", pool1 = { axis = 2, cpu = 0.6, ["opencl:0"] = 0.4 }'],
    ["three layers, each along another axis",
     'conv1 = { axis = 2, cpu = 0.5, ["opencl:0"] = 0.5 }, conv2 = { axis = 3, cpu = 0.5, ' .
     '["opencl:0"] = 0.5 }, ip1 = { axis = 1, cpu = 0.9, ["opencl:0"] = 0.1 }'],
);
for my $case (@cases) {
    my ($what, $place) = @$case;
    my $net = net($place);
    my $shown = cnnrun("show", $net, "--device", "cpu");
    ok($shown =~ /opencl:0\+cpu|cpu\+opencl:0/, "$what: both have a part") or print "# $shown";
    same(scores($net, "--device", "cpu"), $want, $what);
}
cnnrun("show", net('conv2 = { axis = 1, cpu = 0.5, ["opencl:0"] = 0.6 }'), "--device", "cpu");
ok($? != 0 && slurp("$dir/err") =~ /split\.lua:2: place\.conv2: want/,
   "shares that don't sum to 1");
cnnrun("show", net('prob = { axis = 1, cpu = 0.5, ["opencl:0"] = 0.5 }'), "--device", "cpu");
ok($? != 0 && slurp("$dir/err") =~ /not split along axis 1/,
   "an axis that softmax can't be split on");

# ---- programs: kept on disk, replaced when damaged, built from other sources ----

sub built { # how many programs were built, and what the log says
    my $text = cnnrun("show", "$dir/lenet.cnr", "--device", "opencl:0", "-vv");
    my $log = slurp("$dir/err");
    my $misses = () = $log =~ /cache miss/g;
    return ($misses, $log, $?);
}
$ENV{CNNRUN_CACHE} = "$dir/cache/deep";
my ($first) = built();
my ($second) = built();
ok($first > 3 && $second == 0, "the second start builds nothing ($first, $second)");
my @kept = glob("$dir/cache/deep/*.clbin");
my @others = grep { !/\.(clbin|drivers)$/ } glob("$dir/cache/deep/*");
ok(@kept == $first && !@others, "a file a program, nothing half-written");
my $whole = slurp($kept[0]);
spit($kept[0], substr($whole, 0, length($whole) - 7));
spit($kept[1], "cnnrun");
spit($kept[2], slurp($kept[2]) ^ ("\0" x 200 . "\1"));
my ($third, $log) = built();
ok($third == 3 && $log =~ /damaged/, "damaged files are misses ($third)");
my ($fourth) = built();
ok($fourth == 0, "and are replaced");
chmod 0666, $kept[0];
my $given = chown 65534, 65534, $kept[1]; # only root gives files away
($third, $log) = built();
ok($third == 1 + $given && $log =~ /others could have written it/,
   "what others could have written is not run ($third)");
($fourth) = built();
ok($fourth == 0, "and replaced too");

mkdir "$dir/kernels";
mkdir "$dir/kernels/common";
my $right = slurp("kernels/common/softmax.cl") || slurp("../kernels/common/softmax.cl");
if ($right) { # timing keeps no kernel whose answers are others than the reference's
    (my $wrong = $right) =~ s{/ sum;}{/ sum * 1.5f;}g;
    spit("$dir/kernels/common/softmax.cl", $wrong);
    local $ENV{CNNRUN_KERNEL_DIR} = "$dir/kernels";
    cnnrun("tune", "$dir/lenet.cnr", "--devices", "opencl:0", "--no-energy", "--cache", "$dir/tuned");
    ok($? == 0 && slurp("$dir/err") =~ /softmax_f32 is not the reference's answer: not kept/,
       "a kernel that is wrong is not kept, and that is told") or print "# " . slurp("$dir/err");
    ok(slurp("$dir/tuned/tuning.jsonl") !~ /(mali|adreno|desktop)_softmax_f32/, "it is not on record");
}
spit("$dir/kernels/common/softmax.cl", "__kernel void softmax(int n) {\n    n = nothing;\n}\n");
$ENV{CNNRUN_KERNEL_DIR} = "$dir/kernels";
my ($fifth, $words, $status) = built();
ok($status != 0 && $words =~ m{kernels/common/softmax\.cl:2}, "a mistake is told with its line")
    or print "# $words";
finish();
