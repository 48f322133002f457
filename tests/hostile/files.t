#!/usr/bin/perl
# What the README promises of files: whole or not at all. Full disks, limits, links, pipes, inputs
# that are outputs, two writers. CNNRUN_WRITERS sets how often two tune at a time (2).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Hostile;
use POSIX qw(mkfifo);
use Test::More;

plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my ($code, $out, $err);
my $work = "$dir/work";
mkdir $work or die;

# Sound files of every kind.
my @random = ($net, '--weights', 'random:1');
run('convert', @random, '-o', "$dir/net.cnr");
my $onnx = has_plugin('import-onnx');
run('export', "$dir/net.cnr", '-o', "$dir/net.onnx") if $onnx;
my $pictures = has_plugin('source-images');
spew("$dir/tensor.lua", <<'LUA');
local c = require "cnnrun"
return function(args) c.tensor { shape = { 500, 300 } }:save(args[1]) end
LUA
spew("$dir/picture.lua", <<'LUA');
local c = require "cnnrun"
return function(args)
  local noise, state = {}, 1
  for i = 1, 200 * 200 * 3 do
    state = state * 1103515245 + 12345 & 0x7fffffff
    noise[i] = state >> 16 & 255
  end
  c.tensor { shape = { 200, 200, 3 }, dtype = "u8", data = noise }:save(args[1])
end
LUA
my @digits = sort glob 'scripts/nets/digits/*.png';
my %digit = (zero => 0, one => 1, two => 2, three => 3, four => 4, five => 5, six => 6, seven => 7,
    eight => 8, nine => 9);
use Cwd qw(abs_path);
spew("$dir/list", join '', map { m{([a-z]+)\.png} ? abs_path($_) . " $digit{$1}\n" : () } @digits);

# name, words; OUT is what is written
my @writers = (
    ['convert', 'convert', @random, '-o', 'OUT'],
    $onnx ? (['import', 'import', "$dir/net.onnx", '-o', 'OUT'],
        ['export', 'export', "$dir/net.cnr", '-o', 'OUT.onnx']) : (),
    $pictures ? (['quantize', 'quantize', '--all', @random, '--data', "images:$dir/list", qw(--limit 2 -o OUT)],
        ['train', 'train', $net, '--data', "images:$dir/list", qw(--epochs 1 --batch 2 -o OUT)],
        ['picture', "$dir/picture.lua", 'OUT.png']) : (),
    ['tensor', "$dir/tensor.lua", 'OUT.npy'],
);
# The words with the output's path in place of OUT.
sub words_for {
    my ($to, @words) = @_;
    return map { s/^OUT/$to/r } @words;
}
my $lua_error = 11; # an error that a script lets pass is the script's
# The status with which the command refuses.
sub code_of { my ($words) = @_; return "@$words" =~ /\.lua OUT/ ? $lua_error : 3 }

# ---- nowhere to write ----

# A test: a command fails and leaves all files.
sub fails_cleanly {
    my ($what, $place, $before, @writer) = @_;
    my ($name, @words) = @writer;
    # whatever it would write is there, and good for something
    my @targets = map { /^OUT(.*)/ ? "$place/a$1" : () } @words;
    spew($_, 'what was there') for @targets;
    # train replaces no file that it can't judge, unless told so
    push @words, '--overwrite' if $name eq 'train';
    my ($code, $out, $err) = run({before => $before}, words_for("$place/a", @words));
    my $kept = !grep { slurp($_) ne 'what was there' } @targets;
    my $left = listing($place);
    ok $code == code_of(\@words) && $err =~ $what && $kept &&
        $left eq join(' ', sort map { m{([^/]*)$} } @targets), "$name: $what"
        or diag "exit $code, stderr: $err, left: $left";
    unlink @targets;
}

for my $writer (@writers) {
    my ($name, @words) = @$writer;
    my $sh = "$dir/limited.sh";
    spew($sh, "#!/bin/sh\nulimit -f 8\nexec $build/cnnrun \"\$@\"\n");
    chmod 0755, $sh;
    my @real = words_for("$work/a", @words, $name eq 'train' ? '--overwrite' : ());
    my @targets = map { /^OUT(.*)/ ? "$work/a$1" : () } @words;
    spew($_, 'what was there') for @targets;
    my $text = `@{[join ' ', map { "'$_'" } $sh, @real]} 2>&1 >/dev/null`;
    my $code = $?;
    my $kept = !grep { slurp($_) ne 'what was there' } @targets;
    ok $code >> 8 == code_of(\@words) && !($code & 127) && $text =~ /File too large/ &&
        $kept && listing($work) eq join(' ', sort map { m{([^/]*)$} } @targets),
        "$name under ulimit -f: an error, and what was there stays"
        or diag "exit $code: $text, left: @{[listing($work)]}";
    unlink @targets;
}

SKIP: {
    my $disk = "$dir/disk";
    mkdir $disk;
    skip 'no small disk: not root, or mounting is forbidden', scalar @writers
        if $> != 0 || system("mount -t tmpfs -o size=64k tmpfs $disk 2>/dev/null") != 0;
    fails_cleanly(qr/No space left on device/, $disk, undef, @$_) for @writers;
    system "umount $disk";
}
SKIP: {
    skip 'no /dev/full', 2 unless -c '/dev/full';
    ($code, $out, $err) = run('convert', @random, '-o', '/dev/full');
    ok $code == 3 && $err =~ /not a regular file/ && -c '/dev/full', 'a device is not replaced';
    ($code, $out, $err) = run({out => '/dev/full'}, 'ops');
    ok $code == 3 && $err =~ /output: can't write: No space left/, 'results that can\'t be written';
}

# ---- names that are no files, links ----

mkfifo("$work/pipe", 0600) or die;
for my $writer (@writers) {
    my ($name, @words) = @$writer;
    next if $name =~ /^(tensor|picture|export)$/;
    ($code, $out, $err) = run({before => sub { alarm 30 }}, words_for("$work/pipe", @words));
    ok $code == 3 && $err =~ /not a regular file/ && -p "$work/pipe", "$name: a pipe is refused";
    ($code, $out, $err) = run(map { $_ eq 'OUT' ? '-' : $_ } @words);
    ok $code == 1 && $err =~ m{standard output} && $out eq '' && !-e '-', "$name: so is -"
        or diag "exit $code: $err";
}
unlink "$work/pipe";
mkdir "$work/far";
for my $writer (@writers) {
    my ($name, @words) = @$writer;
    next if $name =~ /^(tensor|picture|export)$/;
    symlink 'far/target', "$work/link";
    spew("$work/far/target", '') if $name ne 'convert';
    chmod 0640, "$work/far/target";
    ($code, $out, $err) = run(words_for("$work/link", @words));
    my $mode = (stat "$work/far/target")[2] // 0;
    ok $code == 0 && -l "$work/link" && -s "$work/far/target" > 1000 &&
        ($name eq 'convert' || ($mode & 0777) == 0640) && listing("$work/far") eq 'target',
        "$name: a link's target is replaced and keeps its mode" or diag "exit $code: $err";
    unlink "$work/link", "$work/far/target";
}
rmdir "$work/far";

# ---- inputs ----

# A test: an output that is the input is refused.
sub is_refused {
    my ($name, $input, @words) = @_;
    my $before = slurp($input);
    link $input, "$work/hard";
    symlink $input, "$work/soft";
    for my $as ($input, "$work/hard", "$work/soft") {
        my ($code, $out, $err) = run(words_for($as, @words));
        ok $code == 1 && $err =~ /is an input/ && slurp($input) eq $before && $out eq '',
            "$name: an input is no output" or diag "exit $code: $err";
    }
    unlink "$work/hard", "$work/soft";
}
is_refused('convert', "$dir/net.cnr", 'convert', "$dir/net.cnr", '-o', 'OUT');
is_refused('convert', "$dir/net.cnr", 'convert', $net, '--weights', "$dir/net.cnr", '-o', 'OUT');
is_refused('import', "$dir/net.onnx", 'import', "$dir/net.onnx", '-o', 'OUT') if $onnx;
is_refused('import', "$dir/list", 'import', "$dir/net.onnx", '--labels', "$dir/list", '-o', 'OUT')
    if $onnx;
is_refused('export', "$dir/net.cnr", 'export', "$dir/net.cnr", '-o', 'OUT');
if ($pictures) {
    is_refused($_, "$dir/list", $_, $net, '--weights', 'random:1', '--data', "images:$dir/list", '-o',
        'OUT') for qw(train quantize);
}
SKIP: {
    skip "no $shared/caffe/lenet", 3 if !-d "$shared/caffe/lenet" || !has_plugin('import-caffe');
    my $weights = "$dir/lenet.caffemodel";
    spew($weights, slurp("$shared/caffe/lenet/lenet_iter_10000.caffemodel"));
    is_refused('import with weights apart', $weights, 'import', "$shared/caffe/lenet/lenet_deploy.prototxt",
        $weights, '-o', 'OUT');
}

# ---- a command that fails late ----

if ($pictures) {
    my @lines = split /^/, slurp("$dir/list");
    spew("$dir/broken.png", 'none');
    spew("$dir/late", join '', @lines[0 .. 2], "$dir/broken.png 1\n");
    spew("$work/q.cnr", slurp("$dir/net.cnr"));
    ($code, $out, $err) = run('quantize', @random, '--data', "images:$dir/late",
        qw(--limit 2 --check 9 -o), "$work/q.cnr");
    ok $code != 0 && $err =~ /broken\.png/ && slurp("$work/q.cnr") eq slurp("$dir/net.cnr"),
        'quantize fails before it replaces' or diag "exit $code: $err";
    unlink "$work/q.cnr";
}

# ---- two writers ----

my $times = $ENV{CNNRUN_WRITERS} // 2;
spew("$dir/one.lua", <<'LUA');
local c = require "cnnrun"
return c.net { input = { "data", shape = { 1, 64, 16, 16 } }, c.conv2d { "a", out = 64, kernel = 3 } }
LUA
spew("$dir/two.lua", <<'LUA');
local c = require "cnnrun"
return c.net { input = { "data", shape = { 1, 48, 18, 18 } }, c.conv2d { "b", out = 64, kernel = 3 } }
LUA
# The rows of a record.
sub rows { return map { /"key":"([^"]*)","kernel":"([^"]*)"/ ? "$1 $2" : () } split /\n/, slurp(shift) // '' }
my (%of, $lost, $failed) = ((), 0, 0);
for my $n (qw(one two)) {
    run('tune', "$dir/$n.lua", qw(--weights random:1 --cache), "$work/c-$n");
    $of{$n} = [rows("$work/c-$n/tuning.jsonl")];
}
SKIP: {
    skip 'no layer has several kernels here', 1 unless @{$of{one}} && @{$of{two}};
    for my $time (1 .. $times) {
        my @children = map {
            start({out => '/dev/null', err => '/dev/null'}, 'tune', "$dir/$_.lua",
                qw(--weights random:1 --cache), "$work/both$time")
        } qw(one two);
        for (@children) { waitpid $_, 0; $failed++ if $? }
        my %there = map { $_ => 1 } rows("$work/both$time/tuning.jsonl");
        $lost++ if grep { !$there{$_} } @{$of{one}}, @{$of{two}};
        $failed++ if listing("$work/both$time") =~ /cnnrun-tmp/;
    }
    ok !$lost && !$failed, "two that tune at a time, $times times: no row is lost"
        or diag "$lost lost, $failed failed";
}
my @children = map {
    start({out => '/dev/null', err => '/dev/null'}, 'convert', $net, '--weights', "random:$_", '-o',
        "$work/same.cnr")
} 1 .. 4;
my $bad = 0;
for (@children) { waitpid $_, 0; $bad++ if $? }
is $bad, 0, 'four write one file';
is +(run('check', "$work/same.cnr"))[0], 0, 'which is one of theirs';
ok listing($work) !~ /cnnrun-tmp/, 'and the only one';
done_testing;
