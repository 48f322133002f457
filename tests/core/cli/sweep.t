#!/usr/bin/perl
# cnnrun sweep: grid points and random points, seeds, several processes, failures, resuming, statistics.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use JSON::PP;
use Test::More;
use Time::HiRes 'sleep';

my $root = abs_path($0 =~ s{tests/core/[^/]*/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $dir = tempdir(CLEANUP => 1);

# The text of a file; '' if it can't be read.
sub text { open my $in, '<', $_[0] or return ''; local $/; return <$in> // '' }
# Writes a file, given as name and text; dies if it can't.
sub write_to { my ($name, $what) = @_; open my $out, '>', "$dir/$name" or die $!; print $out $what; close $out or die $! }
sub sweep { # exit code, stdout, stderr
    my $out = `$build/cnnrun sweep @_ 2>$dir/err`;
    return ($? >> 8, $out, text("$dir/err"));
}
# The points of a study.
sub points { return map { decode_json($_) } split /\n/, text("$dir/$_[0]/results.jsonl") }
# The head of a CSV file, and its rows, as lists of cells.
sub rows { my ($head, @lines) = map { [split /,/, $_, -1] } split /\n/, text("$dir/$_[0]"); return ($head, @lines) }

# A study whose results can be worked out by hand.
write_to('study.lua', <<'END');
return function(p)
  if p.name == "bad" then error("this point is bad") end
  return { score = p.x * 10 + p.seed, curve = { p.seed, 2 * p.seed }, word = p.name or "none", fine = p.x > 1 }
end
END

# ---- a grid with seeds ----
my ($code, $out, $err) = sweep("$dir/study.lua --grid x=1,2,.5 --grid name=a,b --seeds 1..3 --jobs 3 -o $dir/grid");
is $code, 0, 'a grid' or diag $err;
my @points = points('grid');
is @points, 18, 'a point for each combination and seed';
is_deeply $points[0]{point}, { x => 1, name => 'a', seed => 1 }, 'with its values';
is_deeply $points[17], { %{$points[17]}, point => { x => .5, name => 'b', seed => 3 },
    results => { score => 8, curve => [3, 6], word => 'b', fine => JSON::PP::false } }, '... and its results';
my ($head, @rows) = rows('grid/summary.csv');
is_deeply $head, [qw(x name n), (map { my $m = $_; map { "${m}_$_" } qw(mean sd low high) } qw(curve score))], 'a summary';
is_deeply [@{$rows[0]}[0 .. 3]], [1, 'a', 3, 4], 'of a list the last number counts';
is $rows[0][7], 12, 'the mean over the seeds';
is $rows[0][8], 1, 'the standard deviation';
ok abs($rows[0][9] - (12 - 4.303 / sqrt 3)) < 1e-3 && abs($rows[0][10] - (12 + 4.303 / sqrt 3)) < 1e-3,
    "the interval by Student's t" or diag "@{$rows[0]}";
like $out, qr/^  x  name  n  curve_mean .*\n( *1|  1)  a     3 .*^18 of 18 points are done;/ms, 'a table on the screen' or diag $out;
is scalar(my @all = rows("grid/results.csv")), 19, 'a row a point';
SKIP: {
    skip 'the plugin draw-cairo is not there', 3 unless -e "$build/plugins/draw-cairo.so";
    is_deeply [map { substr text("$dir/grid/$_.png"), 1, 3 } qw(score curve)], ['PNG', 'PNG'], 'pictures';
    for (['svg', qr/^<\?xml|^<svg/], ['pdf', qr/^%PDF-/]) {
        ($code, $out, $err) = sweep("$dir/study.lua --grid x=1,2 --seeds 1..3 --pictures $_->[0] -o $dir/$_->[0]");
        ok $code == 0 && text("$dir/$_->[0]/score.$_->[0]") =~ $_->[1] && !glob("$dir/$_->[0]/*.png"), "pictures as $_->[0]"
            or diag $err;
    }
}

# ---- what lies there is not run again, nor lost ----
($code, $out, $err) = sweep("$dir/study.lua --grid x=1 --grid name=a --seeds 1 -o $dir/grid");
ok $code && $err =~ /grid: has results of these points: --resume goes on/, 'results that lie there are not replaced' or diag $err;
unlink "$dir/grid/points/x=1,name=a,seed=2.json";
my $before = (stat "$dir/grid/points/x=1,name=a,seed=1.json")[1];
($code, $out) = sweep("$dir/study.lua --grid x=1,2,.5,4 --grid name=a --seeds 1..3 --resume --json -o $dir/grid");
is decode_json($out)->{done}, 12, '--resume runs what lacks, of a larger grid too';
is $before, (stat "$dir/grid/points/x=1,name=a,seed=1.json")[1], '... and nothing else';

# ---- a study that is none ----
($code, $out, $err) = sweep("$dir/nowhere.lua --grid x=1,2 -o $dir/none");
ok $code && $err =~ /nowhere\.lua: can't be opened/ && $err !~ /x=1/, 'a study that is not there is told before any point' or diag $err;

# ---- points that fail ----
($code, $out, $err) = sweep("$dir/study.lua --grid x=1 --grid name=good,bad -o $dir/fail --json");
is $code, 1, 'a point that fails is in the exit code';
is_deeply [@{decode_json($out)}{qw(points done failed left)}], [2, 1, 1, 0], '... in the JSON';
is scalar(() = $err =~ /x=1,name=bad,seed=1: cnnrun sweep: \S*study.lua:2: this point is bad/g), 2, '... and told, each time';
like text("$dir/fail/failed/x=1,name=bad,seed=1.txt"), qr/this point is bad/, 'what it said is kept';
write_to('once.lua', <<'END');
local c = require "cnnrun"
return function(p)
  if not c.exists(p[1]) then c.write(p[1], "tried") error("the first time") end
  return { x = 1 }
end
END
($code, $out, $err) = sweep("$dir/once.lua $dir/tried -o $dir/once");
is $code, 0, 'another try may be good' or diag $err;
($code, $out, $err) = sweep("$dir/once.lua $dir/tried2 -o $dir/once0 --retries 0");
is $code, 1, '--retries 0: there is none';
for (['return 3', qr/main returned a number: want a table of results/], ['return { }', qr/no results/],
     ['return { 3 }', qr/a result has no name/], ['return { x = print }', qr/result 'x' is a function/],
     ['return { x = { "a" } }', qr/result 'x': item 1 is no number/]) {
    write_to('odd.lua', "return function(p) $_->[0] end");
    ($code, $out, $err) = sweep("$dir/odd.lua -o $dir/odd --retries 0");
    ok $code == 1 && $err =~ $_->[1], "$_->[0]: told" or diag $err;
}

# ---- points that are drawn ----
my @drawn = map { sweep("$dir/study.lua --grid x=log:.01:100:9 --grid name=a,b --random 40 --random-seed $_ -o $dir/drawn$_");
    [map { $_->{point} } points("drawn$_")] } 1, 2;
is @{$drawn[0]}, 40, 'as many as asked for';
my @x = sort { $a <=> $b } map { $_->{x} } @{$drawn[0]};
ok $x[0] >= .01 && $x[-1] <= 100 && $x[10] < 1 && $x[29] > 1, 'over the whole range, evenly in its logarithm' or diag "@x";
isnt $drawn[0][0]{x}, $drawn[1][0]{x}, 'another seed draws others';
sweep("$dir/study.lua --grid x=log:.01:100:9 --grid name=a,b --random 40 -o $dir/drawn3");
is_deeply [map { $_->{point} } points('drawn3')], $drawn[0], 'the same seed the same';

sweep("$dir/study.lua --grid name=a --grid x=1 --random 7 -o $dir/twice");
is scalar(my @once = rows('twice/results.csv')), 2, 'a point that is drawn again counts once';

# ---- limits ----
write_to('slow.lua', 'return function(p) local n = 0 for i = 1, 1e7 do n = n + i end return { joules = 3, n = n } end');
($code, $out) = sweep("$dir/slow.lua --seeds 1..50 --joules 7 -o $dir/joules --json");
is_deeply [@{decode_json($out)}{qw(done left)}], [3, 47], '--joules: no more once the results add up to it';
($code, $out) = sweep("$dir/slow.lua --seeds 1..2000 --seconds .5 -o $dir/seconds --json");
my $told = decode_json($out);
ok $told->{left} > 0 && $told->{seconds} < 30, '--seconds: no more after so long' or diag $out;

# A parameter's value is no result.
($code, $out, $err) = sweep("$dir/slow.lua --grid joules=100,200,300 --joules 7 -o $dir/named --json");
is decode_json($out)->{done}, 3, 'a parameter called joules is not added up' or diag $err;
($code, $out, $err) = sweep("$dir/slow.lua --seeds 1..50 --metric N -o $dir/metric");
ok $code && $err =~ /--metric: N: the study has no result of that name/ && points('metric') == 0, '--metric: a name that is none is told early'
    or diag $err;

# Results that are there count, wherever in the grid they lie.
write_to('spent.lua', 'return function(p) local n = 0 for i = 1, 3e7 do n = n + i end return { joules = 3, n = n } end');
sweep("$dir/spent.lua --grid x=1,2,3,4 -o $dir/spent");
unlink "$dir/spent/points/x=1,seed=1.json";
($code, $out) = sweep("$dir/spent.lua --grid x=1,2,3,4 --resume --joules 7 -o $dir/spent --json");
is_deeply [@{decode_json($out)}{qw(done left)}], [3, 1], '--joules with --resume: what was spent before counts first';
unlink "$dir/spent/points/x=1,seed=1.json";
($code, $out) = sweep("$dir/spent.lua --grid x=1,2,3,4 --resume --seconds .01 -o $dir/spent --json");
is_deeply [@{decode_json($out)}{qw(done left)}], [4, 0], '--seconds with --resume: results behind the last point that ran are done';
is scalar(points('spent')), 4, '... as many as there are lines';

# ---- the interval of many seeds ----
sweep("$dir/study.lua --grid x=1 --seeds 1..40 --jobs 2 -o $dir/many");
($head, @rows) = rows('many/summary.csv');
my $half = ($rows[0][9] - $rows[0][8]) / 2;
ok abs($half - 2.0227 * sqrt(40 * 41 / 12) / sqrt 40) < 1e-3, 'of 40 seeds, with 39 degrees of freedom' or diag "$half of @{$rows[0]}";

# ---- Ctrl-C and kill -9 ----
write_to('long.lua', 'return function(p) local n = 0 for i = 1, p.seed < 3 and 1e4 or 1e11 do n = n + i end return { n = n } end');
for my $signal (qw(INT KILL)) {
    my $pid = fork // die;
    if (!$pid) {
        open STDERR, '>', "$dir/$signal.err";
        open STDOUT, '>', "$dir/$signal.out";
        exec "$build/cnnrun", qw(sweep --trust), "$dir/long.lua", qw(--seeds 1..5 --jobs 2 --resume -o), "$dir/$signal";
    }
    for (1 .. 200) { last if -e "$dir/$signal/points/seed=2.json"; sleep .1 }
    sleep .3;
    kill $signal => $pid;
    waitpid $pid, 0;
    my $how = $?;
    my $left = 1;
    for (1 .. 100) { # of its children
        $left = grep { text($_) =~ /\Q$dir\E\/long\.lua/ } glob '/proc/[0-9]*/cmdline';
        last unless $left;
        sleep .1;
    }
    is $left, 0, "$signal: no process is left";
    if ($signal eq 'INT') {
        is $how >> 8, 130, '... the exit code tells of it';
        like text("$dir/INT.err"), qr/stopped; --resume goes on/, '... and the message';
        is points('INT'), 2, '... what was done is there';
    }
    ok -e "$dir/$signal/points/seed=1.json" && -e "$dir/$signal/points/seed=2.json", '... and nothing is lost';
}

# ---- mistakes in the words ----
for (['--grid rate', qr/want NAME=VALUES/], ['--pictures gif', qr/--pictures: want png, svg or pdf/], ['--grid 9a=1', qr/the name of letters/], ['--grid seed=1', qr/the name is taken/],
     ['--grid a=log:0:1:3', qr/both ends above 0/], ['--grid a=lin:0:1', qr/want LOW:HIGH:N/], ['--grid a=1,,2', qr/a value is empty/],
     ['--grid a=1 --grid a=2', qr/stands there twice/], ['--seeds 3..1', qr/want FIRST..LAST or N,N/],
     ['--seeds x', qr/want FIRST..LAST or N,N/], ['--random 3', qr/--random draws from what --grid names/],
     ['--grid a=lin:0:1:10000 --grid b=lin:0:1:10000', qr/more than a million points/]) {
    ($code, $out, $err) = sweep("$dir/study.lua $_->[0] -o $dir/none");
    ok $code && $err =~ $_->[1], "$_->[0]: told" or diag $err;
}
($code, $out, $err) = sweep("$dir/study.lua --grid x=1 -o $dir/metric --metric speed");
ok $code && $err =~ /--metric: speed: the study has no result of that name/, 'a result that is not there' or diag $err;
($code, $out, $err) = sweep("$dir/study.lua --grid x=1 -o $dir/grid2");
($code, $out, $err) = sweep("$dir/study.lua --grid x=1 -o $dir/grid2 --resume --metric speed");
ok $code && $err =~ /--metric speed: no such result; there are curve, fine, score, word/, '... nor of points that were run before' or diag $err;
# ---- parameters that nothing reads ----

open my $deaf, '>', "$dir/deaf.lua" or die;
print $deaf "return function(p) return { x = p.a } end\n";
close $deaf;
my $deaf_said = `$build/cnnrun sweep $dir/deaf.lua --grid a=1,2 --grid rate=1,2 -o $dir/deaf 2>&1`;
like($deaf_said, qr/never reads p\.rate/, 'a parameter that the study never reads is named');
unlike($deaf_said, qr/never reads p\.(a|seed)/, 'but none that it reads, and no single seed');
open $deaf, '>', "$dir/all.lua" or die;
print $deaf "return function(p) local n = 0 for _, v in pairs(p) do n = n + v end return { x = n } end\n";
close $deaf;
unlike(`$build/cnnrun sweep $dir/all.lua --grid a=1,2 --grid rate=1,2 -o $dir/all 2>&1`, qr/never reads/, 'a walk over all values reads them');

done_testing;
