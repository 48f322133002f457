#!/usr/bin/perl
# A training that is killed repeatedly ends in the same file, bit for bit, as an uninterrupted one; curves
# too.
use strict;
use warnings;
use File::Temp 'tempdir';
use Test::More;
use Time::HiRes qw(sleep time);

my $build = $ENV{CNNRUN_BUILD} || 'build';
my $dir = tempdir(CLEANUP => 1);
my @names = qw(zero one two three four five six seven eight nine);
open my $list, '>', "$dir/list.txt" or die;
print $list "$ENV{PWD}/scripts/nets/digits/$names[$_ % 10].png ", $_ % 10, "\n" for 0 .. 399;
close $list;

# The words of the command that trains the net NAME, with more words.
sub command {
    my ($name, @more) = @_;
    return ("$build/cnnrun", 'train', 'scripts/nets/lenet5.lua', '--data', "images:$dir/list.txt,shift=2,turn=8",
        qw(--epochs 3 --batch 16 --threads 2 --deterministic --overwrite -q), '--eval', '',
        '-o', "$dir/$name.cnr", '--curves', "$dir/$name.csv", @more);
}
sub quietly { # the exit code; what it says goes to $dir/err
    my @words = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/out";
        open STDERR, '>', "$dir/err";
        exec @words or die;
    }
    waitpid $pid, 0;
    return $?;
}
# The whole text of a file; '' if it can't be read.
sub slurp { my ($f) = @_; open my $in, '<:raw', $f or return ''; local $/; return scalar <$in> }
# The curves of a file, without seconds.
sub curves { my $t = slurp($_[0]); $t =~ s/,[^,\n]*$//mg; return $t } # without seconds

my $life = time;
is(quietly(command('whole')), 0, 'a training that nobody disturbs') or diag slurp("$dir/err");
$life = time - $life;
my @check = ('--checkpoint', "$dir/c", '--checkpoint-every', '0.02');
my ($kills, $resumed) = (0, 0);
srand 7;
for (1 .. 40) { # as soon as there is a checkpoint, until one stays; then at any time
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', "$dir/err";
        exec command('killed', @check) or die;
    }
    if ($resumed) { sleep $life * (0.1 + rand 0.7) }
    else { for (1 .. 6000) { last if -e "$dir/c" || -e "$dir/killed.cnr"; sleep 0.01 } }
    kill 'KILL', $pid and $kills++;
    waitpid $pid, 0;
    $resumed++ if -e "$dir/c";
    unlink "$dir/killed.cnr", "$dir/killed.csv" if !$resumed;
    last if -e "$dir/killed.cnr";
}
note "$kills killed, $resumed left a checkpoint";
cmp_ok($resumed, '>=', 1, 'killed ones leave a checkpoint');
is(quietly(command('killed', @check)), 0, 'the last goes on to the end') or diag slurp("$dir/err");
ok(slurp("$dir/whole.cnr") eq slurp("$dir/killed.cnr"), 'the file is the same, bit for bit');
is(curves("$dir/killed.csv"), curves("$dir/whole.csv"), 'so are the curves');
is(scalar(() = slurp("$dir/killed.csv") =~ /\n/g), 4, 'a line an epoch, below the names');
ok(!-e "$dir/c", 'then the checkpoint is gone');

# One left behind is not gone on from by another training, nor when it is damaged.
my $pid = fork // die;
if (!$pid) { open STDOUT, '>', '/dev/null'; exec command('other', @check, '--epochs', 500) or die; }
for (1 .. 1200) { last if -e "$dir/c"; sleep 0.05 }
kill 'KILL', $pid;
waitpid $pid, 0;
isnt(quietly(command('other', @check, '--lr', '0.01')), 0, 'another training is refused');
like(slurp("$dir/err"), qr/checkpoint of another training/, 'and told why');
my $bytes = slurp("$dir/c");
substr($bytes, length($bytes) / 2, 1) ^= "\x01";
open my $out, '>:raw', "$dir/c" or die;
print $out $bytes;
close $out;
isnt(quietly(command('other', @check, '--epochs', 500)), 0, 'a damaged one is refused');
like(slurp("$dir/err"), qr/no whole checkpoint/, 'and told so');
ok(!-e "$dir/other.cnr", 'nothing is written');
SKIP: {
    skip 'draw-cairo was not built', 1 if !-e "$build/plugins/draw-cairo.so";
    like(slurp("$dir/whole.png"), qr/^\x89PNG/, 'curves are drawn');
}
done_testing;
