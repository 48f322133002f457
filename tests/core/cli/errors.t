#!/usr/bin/perl
# How the program ends: exit codes of signals and scripts, errors as JSON, commands whose stdout is only JSON.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../hostile";
use Cwd qw(abs_path);
use Hostile;
use Test::More;
use Time::HiRes qw(sleep);

plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my ($code, $out, $err, $list);

# ---- signals ----

# It says a line on stderr, which is not kept back, when it has begun.
spew("$dir/busy.lua", <<'LUA');
local c = require "cnnrun"
return function() c.note "busy" while true do end end
LUA
# Starts a command and stops it by a signal; returns its status and messages.
sub stopped {
    my ($signal, @words) = @_;
    unlink "$dir/.err";
    my $pid = start(@words);
    for (1 .. 2400) { last if -s "$dir/.err"; sleep 0.05 }
    kill $signal => $pid;
    return finish($pid);
}
for (['INT', 130], ['TERM', 143], ['HUP', 129]) {
    my ($signal, $want) = @$_;
    ($code, $out, $err) = stopped($signal, "$dir/busy.lua");
    ok $code == $want && $err =~ /cnnrun.*(cancel|stop)/, "a script ends with $want by SIG$signal"
        or diag "exit $code: $err";
}
($code, $out, $err) = stopped('INT', "$dir/busy.lua", '--json');
my @lines = split /\n/, $out;
$list = objects($lines[-1] // '');
ok $code == 130 && $list && $list->[0]{error}{code} == 130, 'with --json the error says so'
    or diag $out;

# What nobody polls for is ended all the same, with its code.
spew("$dir/long.lua", <<'LUA');
local c = require "cnnrun"
c.note "busy"
return c.net { input = { "data", shape = { 1, 5000 } }, c.dense { "a", out = 10000 },
  c.dense { "b", out = 5000 } }
LUA
for (1 .. 5) { # or until it is not done before the signal comes
    ($code, $out, $err) = stopped('INT', 'convert', "$dir/long.lua", '--trust', '--weights', 'random:1',
        '-o', "$dir/long.cnr");
    last if $code;
    unlink "$dir/long.cnr";
}
ok $code == 130 || $code == 2, 'so does work that nobody looks up from' or diag "exit $code: $err";
ok !grep({ /cnnrun-tmp/ } split / /, listing($dir)), 'and leaves nothing';
SKIP: {
    my $case = "$dir/case";
    skip 'no ONNX importer', 4 unless has_plugin('import-onnx');
    mkdir $case;
    run('convert', $net, '--weights', 'random:1', '-o', "$dir/net.cnr");
    run('export', "$dir/net.cnr", '-o', "$case/model.onnx");
    ($code, $out, $err) = run('verify', $case, '--json');
    $list = objects($out);
    ok $list && @$list == 2 && $list->[0]{outcome} eq 'skipped' && $list->[0]{why} =~ /test_data_set/ &&
        $list->[1]{skipped} == 1 && $list->[1]{failed} == 0, 'verify --json' or diag $out;
    mkdir "$case/test_data_set_0";
    ($code, $out, $err) = run('verify', $case, '--json');
    $list = objects($out);
    ok $code == 1 && $list && $list->[0]{outcome} eq 'failed' && $list->[0]{case} eq 'case' &&
        $list->[1]{failed} == 1, 'a case that fails' or diag $out;
    ($code, $out, $err) = run('verify', $case);
    ok $code == 1 && $out =~ /^not ok 1 - case$/m && $out =~ /^1\.\.1$/m, 'without, it is TAP';
    spew("$dir/rms.lua", <<'LUA');
local c = require "cnnrun"
return c.net { input = { "x", shape = { 2, 8 } }, c.layer_normalization { "n", centred = false, bias = false } }
LUA
    ($code, $out, $err) = run('export', "$dir/rms.lua", '--weights', 'random:1', '-o', "$dir/rms.onnx");
    ok $code == 5 && $err =~ /node n .*no RMS normalisation/ && !-e "$dir/rms.onnx", 'what ONNX has no operator for';
}

# ---- scripts ----

for ([0, 0], [7, 7], [255, 255], [256, 11], [-1, 11], [1 << 40, 11]) {
    my ($said, $want) = @$_;
    spew("$dir/code.lua", "return function() return $said end\n");
    ($code, $out, $err) = run("$dir/code.lua");
    ok $code == $want && ($want != 11 || $err =~ /main returned \Q$said\E/),
        "a script's $said ends with $want" or diag "exit $code: $err";
}

# ---- errors as JSON ----

spew("$dir/notes.txt", "no net\n");
my @mistakes = (
    [['evla', '--json', 'x'], 1, qr/did you mean eval/],
    [['--json'], 1, qr/says nothing to do/],
    [['eval', $net, '--json', '--limti', '3'], 1, qr/did you mean --limit/],
    [['eval', '--json', $net], 1, qr/--data SPEC is missing/],
    [['eval', '--json'], 1, qr/something is missing/],
    [['--json', 'show', 'no-such.cnr'], 6, qr/No such file|no such file/],
    [['no/such/net.lua', '--json'], 6, qr/no such file/],
    [['show', '--json', $net, '--weights', 'random:x'], 1, qr/SEED/],
    [['import', "$dir/notes.txt", '--json', '-o', "$dir/x.cnr"], 5, qr/no importer knows/],
    [['run', $net, '--weights', 'random:1', 'no-such.png', '--json'], 6, qr/no such file/i],
    [['check', 'no-such.cnr', '--json'], 6, undef],
    [['convert', $net, '--weights', 'random:1', '--json', '-o', "$dir/no/x.cnr"], 6, qr/No such file/],
);
for my $mistake (@mistakes) {
    my ($words, $want, $text) = @$mistake;
    ($code, $out, $err) = run(@$words);
    $list = objects($out);
    my $error = $list && @$list == 1 ? $list->[0]{error} : undef;
    my $good = ref $error eq 'HASH' && $error->{code} == $want && defined $error->{place} &&
        (!$text || $error->{text} =~ $text) && $err ne '';
    $good = $list && @$list == 1 && defined $error if !$text; # check says it in its own object
    ok $good && $code == $want, "cnnrun @$words" =~ s/\Q$dir\E/DIR/gr or diag "exit $code: $out$err";
}
spew("$dir/fail.lua", "return function() error('that went \"wrong\"') end\n");
($code, $out, $err) = run("$dir/fail.lua", '--json');
$list = objects($out);
ok $code == 11 && $list && @$list == 1 && $list->[0]{error}{text} =~ /went "wrong"/, 'a script that fails'
    or diag $out;
($code, $out, $err) = run("$dir/fail.lua");
is $out, '', 'without --json stdout holds nothing';

# ---- the help says it ----

($code, $out) = run('help', 'exit');
like $out, qr/130.*143/, 'the help tells the codes of signals';
like $out, qr/\{"error"/, 'and how errors are reported';
done_testing;
