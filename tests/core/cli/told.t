#!/usr/bin/perl
# A thing that is asked for and is missing gives an error with a remedy; nothing else is taken in its place.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
my $dir = tempdir(CLEANUP => 1);
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";

# Writes a file; returns its path.
sub put {
    my ($name, $text) = @_;
    open my $file, '>', "$dir/$name" or die;
    print $file $text;
    close $file;
    return "$dir/$name";
}
# Runs a command; returns status, output and messages.
sub run {
    my @words = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/out" or die;
        open STDERR, '>', "$dir/err" or die;
        exec "$build/cnnrun", @words or die;
    }
    waitpid $pid, 0;
    my @texts = map { local (@ARGV, $/) = ($_); my $t = <>; $t // '' } "$dir/out", "$dir/err";
    return ($? >> 8, @texts);
}
# A test: it fails with such a message.
sub refused {
    my ($what, $like, @words) = @_;
    my ($code, $out, $err) = run(@words);
    ok $code != 0 && $err =~ $like, $what or diag "$code\n$out$err";
}
my $head = "local c = require 'cnnrun'\n";

# ---- scripts ----
my $plott = put('plott.lua', "${head}return function(a) c.plott{}; print 'went on' end\n");
refused('c.plott in an experiment', qr/plott\.lua:2: the module cnnrun has no 'plott'/, $plott);
my $lode = put('lode.lua', "${head}return function(a) local l = c.loadd; print 'went on' end\n");
refused('c.loadd: with a suggestion', qr/no 'loadd' \(did you mean 'load'\?\)/, $lode);
my $split = put('split.lua', "${head}return function(a) print(#c.samples(a[1], a[2])) end\n");
refused('c.samples(x, "banana")', qr/no split 'banana': want 'train' or 'eval'/, $split, $dir, 'banana');
refused('c.samples(x, "trian")', qr/did you mean 'train'/, $split, $dir, 'trian');

# ---- places ----
my $net = sub { "${head}return c.net { input = { 'data', shape = { 1, 4, 4, 4 } }, place = { $_[0] },\n" .
    "  c.conv2d { 'conv1', out = 4, kernel = 1 }, c.relu { 'act' }, c.conv2d { 'conv2', out = 4, kernel = 1 } }\n" };
refused('a place for no layer', qr/place\.convv1: no layer is called so; did you mean conv1\?/,
    'show', '--weights', 'none', put('place.lua', $net->('convv1 = "cpu"')));
refused('a pattern for no layer', qr/place\.pool\*: no layer/,
    'show', '--weights', 'none', put('place.lua', $net->('["pool*"] = "cpu"')));
my ($code, $out, $err) = run('show', '--weights', 'none', put('place.lua', $net->('["conv*"] = "cpu"')));
is $code, 0, 'conv* is a pattern' or diag $err;
refused('and means those layers', qr/nosuch/, 'show', '--weights', 'none',
    put('place.lua', $net->('["conv*"] = "nosuch:0"')));

# ---- options of importers ----
my %file = (caffe => ['net.prototxt', "name: 'n'\ninput: 'data'\ninput_shape { dim: 1 dim: 1 dim: 2 dim: 2 }\n"],
    darknet => ['net.cfg', "[net]\nwidth=8\nheight=8\nchannels=3\n[avgpool]\n"]);
my $help = (run('help', 'import'))[1];
($code, $out) = run('plugins', '--json');
my %rows = map { my $o = eval { decode_json($_)->{options} }; %{$o || {}} } split /\n/, $out;
my @importers = map { my $l = eval { decode_json($_)->{provides}{importer} }; @{$l || []} } split /\n/, $out;
cmp_ok scalar @importers, '>=', 1, scalar(@importers) . ' importers';
for my $importer (@importers) {
    ok ref $rows{$importer}, "$importer says what it takes";
    like $help, qr/^  \Q$importer\E/m, "help import lists $importer";
    my $model = put(@{$file{$importer} // ['some.file', 'x']});
    refused("$importer: an option that it has not", qr/$importer: no option "sahpe"/, 'import', $model,
        '-o', "$dir/out.cnr", '--format', $importer, '--option', 'sahpe=1,2,3');
    ok !-e "$dir/out.cnr", "$importer: and nothing is written";
    next unless grep /^shape=/, @{$rows{$importer} // []};
    refused("$importer: with a suggestion", qr/did you mean "shape"/, 'import', $model, '-o',
        "$dir/out.cnr", '--format', $importer, '--option', 'sahpe=1,2,3');
}
like $help, qr/shape=/, 'with their options';

# ---- errors name the file once ----
if (grep { $_ eq 'caffe' } @importers) {
    my $model = put('bad.prototxt', "layer { name: 'x' type: 'Nosuch' bottom: 'data' top: 'x' }\n");
    (undef, undef, $err) = run('import', $model, '-o', "$dir/out.cnr");
    my $times = () = $err =~ /bad\.prototxt/g;
    is $times, 1, 'an import error names the file once' or diag $err;
}

# ---- pictures ----
my $pic = put('pic.lua', "${head}return c.net { input = { 'data', shape = { 'n', 3, 8, 8 } },\n" .
    "  c.global_average_pool {}, c.dense { 'fc', out = 4 }, c.softmax {} }\n");
my @bench = ('bench', $pic, '--weights', 'random:1', '--runs', '1');
refused("torchvision's mean and std in parts of 1", qr/pixels from 0 to 1.*want them times 255 \(123\.675 and 58\.395\).*torchvision/,
    @bench, '--mean', '0.485,0.456,0.406', '--std', '0.229,0.224,0.225');
($code, undef, $err) = run(@bench, '--preset', 'torchvision');
is $code, 0, '--preset torchvision' or diag $err;
refused('--preset of no name', qr/none is called "torchvison"; there are: .*torchvision/, @bench, '--preset', 'torchvison');
($code, undef, $err) = run(@bench, '--crop', '6');
ok $code == 0 && $err =~ /--crop: 6 x 6 is scaled to the net's 8 x 8/, '--crop unlike the net: a warning' or diag $err;
($code, $out) = run(@bench, '--crop', '6', '--json');
my ($told) = map { $_->{warnings} } grep { $_->{warnings} } map { eval { decode_json($_) } // {} } split /\n/, $out;
like "@{$told // []}", qr/--crop: 6 x 6 is scaled to the net's 8 x 8/, 'and a field of its result in --json' or diag $out;
($code, $out) = run(@bench, '--crop', '8', '--json');
unlike $out, qr/"warnings"/, 'which is not there where nothing is odd';
my $odd = put('odd.lua', "${head}return c.net { labels = { 'a', 'b', 'c' },\n" .
    "  input = { 'data', shape = { 1, 3, 8, 8 }, mean = { .485, .456, .406 }, std = { .229, .224, .225 } },\n" .
    "  c.global_average_pool {}, c.flatten {}, c.dense { 'fc', out = 4 }, c.softmax {} }\n");
($code, $out, $err) = run('bench', $odd, '--weights', 'random:1', '--runs', '1', '--json');
($told) = map { $_->{warnings} } grep { $_->{warnings} } map { eval { decode_json($_) } // {} } split /\n/, $out;
like "@{$told // []}", qr/3 labels, and the net tells 4 classes apart.*pixels from 0 to 1/s,
    'what a net brings: labels and units are told with its results' or diag "$out$err";
like $err, qr/warning: .*3 labels.*warning: .*pixels from 0 to 1/s, 'and when it is loaded';
($code, undef, $err) = run(@bench, '--crop', '8');
is $err =~ /--crop/, '', 'and like it: none';
my $same = put('same.lua', "${head}return function(a)\n  local p = c.tensor { shape = { 8, 8, 3 }, dtype = 'u8' }\n" .
    "  local net, set = c.load(a[1], { weights = 'random:1' }), c.load(a[1], { weights = 'random:1', preset = 'torchvision' })\n" .
    "  local x, y = net:prepare(p, { preset = 'torchvision', mean = 0 }), set:prepare(p)\n" .
    "  print(string.format('%.4f %.4f %.4f', x[1], y[1], net:prepare(p)[1]))\n" .
    "  print(pcall(function() return net:prepare(p, { mean = .485, std = .229 }) end))\nend\n");
($code, $out, $err) = run($same, $pic);
like $out, qr/^0\.0000 -2\.1179 0\.0000$/m, 'a preset in scripts; what is said besides goes before it' or diag $err;
like $out, qr/pixels from 0 to 1/, 'and units that can not be';

# ---- applications ----
use FindBin;
my $apps = "$FindBin::Bin/../../../scripts/apps";
my $digit = "$FindBin::Bin/../../../scripts/nets/digits/three.png";
my $planes = put('planes.lua', "${head}return c.net { input = { 'data', shape = { 1, 3, 64, 64 } },\n" .
    "  c.conv2d { 'conv1', out = 6, kernel = 16, stride = 16 } }\n");
refused('--family: another than the net is of', qr/--family yolov8: this net is of the family fastestdet/,
    "$apps/detect.lua", "$planes,random:1", $digit, '--family', 'yolov8');
refused('--family of no name', qr/no family 'yolov'; there are /, "$apps/detect.lua", "$planes,random:1", $digit, '--family', 'yolov');
($code, undef, $err) = run("$apps/detect.lua", "$planes,random:1", $digit, '--family', 'fastestdet');
is $code, 0, 'its own is taken' or diag $err;
refused('classify: 3 labels for 4 classes', qr/three\.txt has 3 names, the net 4 classes: if its first class has no name, use --background 1/,
    "$apps/classify.lua", "$pic,random:1", $digit, '--labels', put('three.txt', "a\nb\nc\n"));
($code, undef, $err) = run("$apps/classify.lua", "$pic,random:1", $digit, '--labels', "$dir/three.txt", '--background', '1');
is $code, 0, 'with one before them they are right' or diag $err;

# ---- memory that activations, inputs and outputs may take ----
my $wide = put('wide.lua', "${head}return c.net { input = { 'data', shape = { 'n', 3, 64, 64 } },\n" .
    "  c.conv2d { 'conv1', out = 8, kernel = 3 }, c.relu {} }\n");
my @wide = ('bench', $wide, '--weights', 'random:1', '--runs', '1', '--symbol');
refused('a session above --memory-limit', qr/\b(\d+) bytes \(.*MB\) of memory are needed, and the limit is 1048576$/m,
    @wide, 'n=16', '--memory-limit', '1M');
my ($needed) = (run(@wide, 'n=16', '--memory-limit', '1M'))[2] =~ /(\d+) bytes/;
cmp_ok $needed // 0, '>=', 16 * 4 * (2 * 3 * 64 * 64 + 8 * 62 * 62), 'the figure holds input, batch and output';
($code, undef, $err) = run(@wide, 'n=16', '--memory-limit', $needed // 1);
is $code, 0, 'and is enough' or diag $err;
refused('a byte less is not', qr/the limit is/, @wide, 'n=16', '--memory-limit', ($needed // 2) - 1);
refused('and by itself a share of what there is', qr/the limit is \d+, three quarters of what there is.*--memory-limit/,
    @wide, 'n=300000000');
my $bound = put('bound.lua', "${head}return function(a)\n  local net, roomy = c.load(a[1], { weights = 'random:1', memory_limit = 1000 }), c.load(a[1], { weights = 'random:1', memory_limit = 100000 })\n" .
    "  print(pcall(function() return net:run { data = c.tensor { shape = { 1, 3, 64, 64 } } } end))\n" .
    "  local p = c.tensor { shape = { 64, 64, 3 }, dtype = 'u8' }\n" .
    "  print(pcall(function() return roomy:prepare(p, { resize = 200 }) end))\n" .
    "  print(pcall(c.load, a[1], { memory_limit = 'much' }))\nend\n");
($code, $out, $err) = run($bound, $wide);
like $out, qr/^false\t.*the limit is 1000$/m, 'memory_limit of a script' or diag $err;
like $out, qr/^false\t.*picture.*120000 bytes.*the limit is 100000$/m, 'bounds its pictures on the way too' or diag $out;
like $out, qr/want memory_limit: most bytes/, 'and is a number of bytes';
SKIP: {
    my $asan = `grep -c 'SANITIZE[^=]*=.*address' $build/CMakeCache.txt`;
    skip 'left out: addresses are not to be limited under the sanitiser', 1 if $asan > 0;
    $err = `ulimit -v 3000000; $build/cnnrun @wide n=10000 2>&1`;
    like $err, qr/the limit is 2304000000, three quarters/, "the share of a process's address space" or diag $err;
}

# ---- labels ----
if (grep { $_ eq 'caffe' } @importers) {
    my $model = put('four.prototxt', "input: 'data'\ninput_shape { dim: 1 dim: 4 dim: 1 dim: 1 }\n" .
        "layer { name: 's' type: 'Softmax' bottom: 'data' top: 's' }\n");
    refused('3 labels for 4 classes', qr/3 labels, and the net tells 4 classes apart/, 'import', $model, '-o',
        "$dir/four.cnr", '--labels', put('three.txt', "a\nb\nc\n"));
    ok !-e "$dir/four.cnr", 'nothing is written';
    ($code, undef, $err) = run('import', $model, '-o', "$dir/four.cnr", '--labels', put('four.txt', "a\nb\nc\nd\n\n"));
    is $code, 0, '4 and an empty line are taken' or diag $err;
}

# ---- networks of very many layers ----
my $deep = put('deep.lua', "${head}local l = { input = { 'data', shape = { 1, 4 } } }\n" .
    "for i = 1, 20000 do l[i] = c.relu {} end\nreturn c.net(l)\n");
my $asan = `grep -c 'SANITIZE[^=]*=.*address' $build/CMakeCache.txt`;
SKIP: {
    skip 'left out: addresses are not to be limited under the sanitiser', 1 if $asan > 0;
    is system("ulimit -v 600000; $build/cnnrun show $deep --json >/dev/null 2>$dir/err"), 0,
        '20,000 layers are planned in 600 MB' or diag `head -c 300 $dir/err`;
}

done_testing;
