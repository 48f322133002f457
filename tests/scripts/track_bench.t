#!/usr/bin/perl
# Generated scenes with known truth (scripts/bench/scenes.lua), and the tracker judged on them
# (scripts/bench/track.lua).
use strict;
use warnings;
use Cwd qw(abs_path);
use Digest::SHA;
use File::Temp qw(tempdir);
use Test::More;

my $root = abs_path($0 =~ s{tests/scripts/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
plan skip_all => 'the plugin object-tld is missing' unless -e "$build/plugins/object-tld.so";
my $work = tempdir(CLEANUP => 1);
chdir $work or die;

# Runs a script; returns output and status.
sub script {
    my ($words) = @_;
    my $out = `$build/cnnrun $root/scripts/bench/$words 2>$work/err`;
    return ($out, read_file("$work/err"), $? >> 8);
}
# The text of a file; '' if it can't be read.
sub read_file {
    open my $in, '<', $_[0] or return '';
    local $/;
    return <$in> // '';
}
# A digest of all files of a folder.
sub digest {
    my $all = Digest::SHA->new(256);
    $all->add(read_file($_)) for sort glob("$_[0]/*");
    return $all->hexdigest;
}

my ($out, $err, $code) = script('scenes.lua -o a --count 2 --seed 5 --frames 6 --effects turn,occlusion');
is $code, 0, 'scenes are drawn without any data' or diag $err;
my @boxes = map { [split /,/] } split /\n/, read_file('a/made_0005/gt.txt');
is scalar(@boxes), 6, 'a box a frame';
ok $boxes[0][0] >= 0 && $boxes[0][2] <= 320 && $boxes[0][3] <= 240 && $boxes[0][2] - $boxes[0][0] > 10,
    "within the picture: @{$boxes[0]}";
is scalar(() = glob 'a/made_0005/*.png'), 6, 'a picture a frame';
is read_file('a/made_0006/effects.txt'), "turn occlusion\n", 'and what happens there';
script('scenes.lua -o b --count 1 --seed 5 --frames 6 --effects turn,occlusion -q');
is digest('b/made_0005'), digest('a/made_0005'), 'the same seed draws the same';
isnt digest('a/made_0006'), digest('a/made_0005'), 'another one another scene';
script('scenes.lua -o cut --count 1 --frames 2 -q a/made_0005/00001.png');
is scalar(() = glob 'cut/*/*.png'), 2, 'objects are cut from pictures';
($out, $err, $code) = script('scenes.lua -o c --effects spin');
ok $code != 0 && $err =~ /--effects spin: want some of scale/, 'an effect that there is not is reported';
script('scenes.lua -o hard --kind all --count 2 --seed 5 --frames 2 --effects turn,occlusion -q');
is read_file('hard/made_0006/effects.txt'), "large turn occlusion\n", 'a hard kind of scenes is told with what happens';
@boxes = map { [split /,/, (split /\n/, read_file("hard/made_000$_/gt.txt"))[0]] } 5, 6;
ok $boxes[0][2] - $boxes[0][0] < 19 && $boxes[1][2] - $boxes[1][0] > 100, 'of a small and a large object';
($out, $err, $code) = script('scenes.lua -o c --kind spin');
ok $code != 0 && $err =~ /--kind spin: want all, or one of small/, 'a kind that there is not is reported';
($out, $err, $code) = script('scenes.lua');
ok $code != 0 && $err =~ /-o FOLDER/, 'so is a folder that is missing';

script('scenes.lua -o plain --count 2 --frames 8 --effects light -q');
rename 'plain/made_0001', 'plain/one';
unlink 'plain/one/effects.txt';
($out, $err, $code) = script('track.lua -o r plain/one plain/made_0002 --seeds 2 --first 11 --try defaults --try anchor=1,search=0 -q');
is $code, 0, 'the tracker is judged' or diag $err;
my @rows = map { [split /,/] } split /\n/, read_file('r/track.csv');
is scalar(@rows), 1 + 2 * 2 * 2, 'a row for each sequence, configuration and seed';
is join(' ', sort map { $_->[-7] } @rows[1 .. $#rows]), join(' ', (11) x 4, (12) x 4), 'by the seeds asked for';
my $summary = read_file('r/summary.csv');
like $summary, qr/^sequence,options,f_median,f_worst,false_present,left_out,left_out_options$/m, 'a summary';
like $summary, qr/^made,/m, 'made scenes count as one';
like $summary, qr/^made: light,2 runs,/m, 'and by what happens there';
ok -s 'r/success.png' && -s 'r/times.csv', 'with plots and times';
($out, $err, $code) = script('track.lua -o r plain/one --try anchor=x');
ok $code != 0 && $err =~ /--try anchor=x: want NAME=NUMBER/, 'a bad configuration is reported';
done_testing;
