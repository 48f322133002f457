#!/usr/bin/perl
# Other people's files: no reader waits for a pipe or reads a device, no link beside a net leads out
# of its folder, nothing kept is believed that others could have written.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Copy;
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use POSIX qw(mkfifo);
use Test::More;
use Time::HiRes qw(time sleep);

my $build = abs_path($ENV{CNNRUN_BUILD} // './build');
my $nets = abs_path('scripts/nets');
my $dir = abs_path(tempdir(CLEANUP => 1));
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
umask 022;
$ENV{HOME} = "$dir/home";
mkdir $ENV{HOME};
$ENV{CNNRUN_CACHE} = '';

# Runs the program and returns both outputs and the exit code (256: it had to be killed).
sub told {
    my @words = @_;
    my $pid = fork // die;
    if (!$pid) {
        chdir $dir;
        open STDIN, '<', '/dev/null' or die;
        open STDOUT, '>', "$dir/told" or die;
        open STDERR, '>>&', \*STDOUT or die;
        exec "$build/cnnrun", @words or die;
    }
    my $killed = 0;
    local $SIG{ALRM} = sub { kill KILL => $pid; $killed = 1 };
    alarm 60;
    waitpid $pid, 0;
    alarm 0;
    my $code = $killed ? 256 : $? & 127 ? 1000 + ($? & 127) : $? >> 8;
    local (@ARGV, $/) = ("$dir/told");
    return (scalar(<>) // '', $code);
}

# Writes a file with a mode.
sub spill {
    my ($name, $text, $mode) = @_;
    open my $file, '>', "$dir/$name" or die "$name: $!";
    print $file $text;
    close $file;
    chmod $mode, "$dir/$name" if defined $mode;
    return "$dir/$name";
}

my @lenet = ("$nets/lenet5.lua", '--device', 'cpu');
my $digit = "$nets/digits/three.png";
my $tiny = 'c.net { name = "tiny", input = { "data", shape = { 1, 1, 28, 28 } }, c.flatten {}, ' .
    'c.dense { "fc", out = 2 }, c.softmax {}, %s }';
# A tiny net.
sub tiny { 'local c = require "cnnrun"' . "\nreturn " . sprintf($tiny, shift) . "\n" }

# ---- pipes, and what has no end ----
mkfifo("$dir/fifo$_", 0600) or die for '', '.lua', '.cnr', '.onnx', '.png', '.npy', '.npz', '.pb',
    '.caffemodel', '.prototxt', '.cfg', '.params', '.t7', '.so', '.txt', '.npy2';
make_path("$dir/pictures", "$dir/mnist", "$dir/arrays", "$dir/plugs", "$dir/case/test_data_set_0");
symlink "$dir/fifo", "$dir/$_" or die "$_: $!"
    for 'pictures/a.png', 'mnist/t10k-images-idx3-ubyte', 'mnist/t10k-labels-idx1-ubyte',
    'arrays/a.npy', 'plugs/a.so', 'case/model.onnx', 'case/test_data_set_0/input_0.pb';
symlink '/dev/zero', "$dir/zero$_" or die for '.lua', '.cnr', '.onnx', '.png', '.npy';
spill('list.txt', "fifo.png 0\n");
spill('labels.lua', tiny('labels = "fifo.txt"'));
spill('weights.lua', tiny('weights = "fifo.cnr"'));
spill('require.lua', "require 'fifo'\n" . tiny(''));
spill('net.txt', qq{layer { root_directory: "."\n type: "Convolution" name: "a" parameters_file: "fifo" }\n});
spill('read.lua', 'local c = require "cnnrun"; return function(a) print(c.text(a)) end');

for my $words (
    (map { ['show', "fifo$_"] } '', '.lua', '.cnr', '.onnx', '.caffemodel', '.prototxt', '.cfg', '.t7'),
    (map { ['import', "fifo$_", '-o', 'x.cnr'] } '.onnx', '.prototxt', '.params', '.npy', '.npz', '.txt'),
    (map { ['show', "zero$_"] } '.lua', '.cnr', '.onnx'),
    ['check', 'fifo.cnr'], ['check', 'zero.cnr'], ['fifo.lua'],
    ['run', @lenet, 'fifo.png'], ['run', @lenet, 'zero.png'], ['run', @lenet, 'pictures'],
    ['eval', @lenet, '--data', 'mnist:mnist'], ['eval', @lenet, '--data', 'images:list.txt'],
    ['eval', @lenet, '--data', 'images:fifo.txt'],
    ['run', "$nets/lenet5.lua", '--weights', 'fifo.cnr', $digit],
    ['run', "$nets/lenet5.lua", '--weights', 'arrays', $digit],
    ['run', "$nets/lenet5.lua", '--weights', 'fifo.npz', $digit],
    ['show', 'labels.lua'], ['show', 'require.lua'],
    ['run', 'weights.lua', $digit], ['show', 'net.txt'],
    ['run', @lenet, '--mean', 'fifo.npy', $digit], ['verify', 'case'], ['verify', 'fifo.onnx'],
    ['plugins', '--check', 'fifo.so'], ['read.lua', 'fifo'], ['read.lua', 'zero.png'],
) {
    my ($text, $code) = told(@$words);
    my $name = join ' ', map { s/^\Q$nets\E/nets/r } @$words;
    ok $code > 0 && $code < 128, "refused: $name" or diag("code $code: $text");
}
for my $words (['plugins', '--plugin-dir', 'plugs'], ['run', @lenet, $digit]) {
    local $ENV{CNNRUN_CACHE} = "$dir/pipes";
    make_path("$dir/pipes");
    mkfifo("$dir/pipes/tuning.jsonl", 0600);
    my ($text, $code) = told(@$words);
    is $code, 0, "a pipe is passed over: $words->[0]" or diag($text);
}

# ---- links beside a net ----
make_path("$dir/gift/data", "$dir/private", "$dir/apps");
spill('private/secret', "TOPSECRET\n");
spill('private/mod.lua', 'return "TOPSECRET"');
copy("$nets/lenet5.cnr", "$dir/private/w.cnr") or die;
symlink '../private/secret', "$dir/gift/labels";
symlink '../private/w.cnr', "$dir/gift/w.cnr";
symlink '../private/mod.lua', "$dir/gift/mod.lua";
symlink '../private', "$dir/gift/dir";
symlink '../../private/secret', "$dir/gift/data/in";
symlink '../../private/made', "$dir/gift/data/out";
symlink '../../private/made.npy', "$dir/gift/data/out.npy";
spill('gift/a.lua', tiny('labels = "labels"'));
spill('gift/b.lua', tiny('labels = "dir/secret"'));
spill('gift/c.lua', tiny('weights = "w.cnr"'));
spill('gift/d.lua', "local m = require 'mod'\n" . tiny(''));
for my $net ('a', 'b', 'c', 'd') {
    my ($text, $code) = told('run', "gift/$net.lua", $net eq 'c' ? () : ('--weights', 'random:1'), $digit);
    ok $code > 0 && $code < 128 && $text !~ /TOPSECRET/ && $text =~ /folder/, "gift/$net.lua: refused"
        or diag("code $code: $text");
}
symlink 'real.txt', "$dir/gift/near";
spill('gift/real.txt', "NEAR\nOTHER\n");
spill('gift/e.lua', tiny('labels = "near"'));
my ($text, $code) = told('run', 'gift/e.lua', '--weights', 'random:1', $digit);
ok $code == 0 && $text =~ /NEAR/, 'a link within the folder is followed' or diag($text);
($text, $code) = told('run', '--trust', 'gift/a.lua', '--weights', 'random:1', $digit);
ok $code == 0 && $text =~ /TOPSECRET/, 'with --trust any is' or diag($text);

spill('gift/app.lua', <<'END');
local c = require "cnnrun"
return function(args)
  local what, where = args[1], args[2]
  if what == "text" then print(c.text(where))
  elseif what == "exists" then print("IS " .. c.exists(where))
  elseif what == "save" then c.tensor { shape = { 2 }, data = { 1, 2 } }:save(where)
  elseif what == "folder" then c.folder(where)
  elseif what == "load" then c.load(where)
  elseif what == "picture" then c.picture(where) end
end
END
for my $case (['text', 'gift/data/in'], ['exists', 'gift/data/in'], ['save', 'gift/data/out.npy'],
    ['folder', 'gift/data/out'], ['folder', 'gift/dir/new'], ['load', 'gift/w.cnr'],
    ['picture', 'gift/data/in'], ['text', 'gift/labels'], ['save', 'gift/dir/x.npy']) {
    # a word of the command line names the folder, and the script goes through a link in it
    my ($what, $path) = @$case;
    my $script = do { local (@ARGV, $/) = ("$dir/gift/app.lua"); <> };
    spill('apps/run.lua', $script =~ s/args\[1\], args\[2\]/"$what", "$path"/r);
    my ($told, $code) = told('apps/run.lua', 'gift');
    ok $code > 0 && $code < 128 && $told !~ /TOPSECRET|IS file/ && $told =~ /link/,
        "an application is refused: $what $path" or diag("code $code: $told");
}
is join(' ', sort map { s{.*/}{}r } glob "$dir/private/*"), 'mod.lua secret w.cnr', 'nothing was written there';
($text, $code) = told('gift/app.lua', 'text', 'gift/data/in');
ok $code == 0 && $text =~ /TOPSECRET/, 'a link that the user names is followed' or diag($text);

# ---- external data: as caches of downloads have it, and out of them ----
SKIP: {
    # ir_version, a graph with one Identity of an initializer whose data lies in FILE
    sub field { my ($n, $data) = @_; chr($n << 3 | 2) . chr(length $data) . $data }
    my $entry = sub { field(13, field(1, $_[0]) . field(2, $_[1])) };
    my $model = sub {
        my $tensor = "\x08\x04\x10\x01" . field(8, 'w') . $entry->('location', shift) . "\x70\x01";
        my $type = field(2, field(1, "\x08\x01" . field(2, field(1, "\x08\x04"))));
        my $node = field(1, 'w') . field(2, 'y') . field(4, 'Identity');
        my $graph = field(1, $node) . field(2, 'g') . field(5, $tensor) . field(12, field(1, 'y') . $type);
        return "\x08\x08" . field(7, $graph) . field(8, "\x10\x0d");
    };
    skip 'import-onnx is not there', 4 unless `$build/cnnrun plugins` =~ /^import-onnx /m;
    make_path("$dir/hub/blobs", "$dir/hub/snapshots/1");
    spill('hub/blobs/aa', $model->('model.onnx_data'));
    spill('hub/blobs/bb', pack 'f<4', 1 .. 4);
    symlink '../../blobs/aa', "$dir/hub/snapshots/1/model.onnx";
    symlink '../../blobs/bb', "$dir/hub/snapshots/1/model.onnx_data";
    my ($text, $code) = told('import', 'hub/snapshots/1/model.onnx', '-o', 'hub.cnr');
    is $code, 0, 'links within one cache are followed' or diag($text);
    spill('gift/m.onnx', $model->('data/in'));
    ($text, $code) = told('import', 'gift/m.onnx', '-o', 'm.cnr');
    ok $code > 0 && $code < 128 && $text =~ /leads out/, 'out of the folder of a model they are not'
        or diag("code $code: $text");
    spill('gift/f.onnx', $model->('fifo'));
    mkfifo("$dir/gift/fifo", 0600);
    ($text, $code) = told('import', 'gift/f.onnx', '-o', 'm.cnr');
    ok $code > 0 && $code < 128 && $text =~ /pipe/, 'and no pipe is read' or diag("code $code: $text");
}

# ---- what is kept between runs ----
my @warm = ('run', '-v', '-v', @lenet, '--cache', "$dir/cache", $digit);
($text, $code) = told(@warm);
my ($plan) = glob "$dir/cache/*.plan";
ok $code == 0 && $plan, 'a plan is kept' or diag($text);
($text) = told(@warm);
like $text, qr/: hit/, 'and taken over';
my $is_root = $> == 0;
for my $case (
    ['a plan that others may write', sub { chmod 0666, $plan }, sub { chmod 0600, $plan }],
    ['a folder that others may write', sub { chmod 0777, "$dir/cache" }, sub { chmod 0700, "$dir/cache" }],
    ['a plan of somebody else', sub { chown 65534, 65534, $plan }, sub { chown $>, $) + 0, $plan }],
    ['a folder of somebody else', sub { chown 65534, 65534, "$dir/cache" },
        sub { chown $>, $) + 0, "$dir/cache" }],
    ['a link for a plan', sub { rename $plan, "$dir/p"; symlink "$dir/p", $plan },
        sub { unlink $plan; rename "$dir/p", $plan }],
    ['a link for the folder', sub { rename "$dir/cache", "$dir/c"; symlink "$dir/c", "$dir/cache" },
        sub { unlink "$dir/cache"; rename "$dir/c", "$dir/cache" }],
    ['a pipe for a plan', sub { rename $plan, "$dir/p"; mkfifo($plan, 0600) },
        sub { unlink $plan; rename "$dir/p", $plan }],
) {
    my ($what, $do, $undo) = @$case;
    SKIP: {
        skip "$what: only root gives files away", 1 if $what =~ /somebody/ && !$is_root;
        $do->();
        my ($text, $code) = told(@warm);
        ok $code == 0 && $text !~ /: hit/ && $text =~ /three|3/, "$what: not believed" or diag("$code: $text");
        $undo->();
    }
}
done_testing;
