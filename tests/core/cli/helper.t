#!/usr/bin/perl
# cnnrun helper and the plugin that uses it: a knob that only root may set is set within its bounds, and
# restored when its client ends or is killed. Clients that send anything else are disconnected.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../plugins/gauge-common";
use File::Temp qw(tempdir);
use IO::Socket::UNIX;
use Test::More;
use Time::HiRes qw(sleep time);
use Tree;

alarm 200;
my $build = $ENV{CNNRUN_BUILD} || "$FindBin::Bin/../../../build";
my $dir = tempdir(CLEANUP => 1);
my $path = "$dir/socket";
my $gpu = 'sys/class/devfreq/gpu';
my $tree = Tree->new(<<END);
$gpu/cur_freq = 480000000
$gpu/min_freq = 177000000
$gpu/max_freq = 543000000
$gpu/available_frequencies = 177000000 350000000 480000000 543000000
END
# Both bounds; a file that is being written is empty for a moment.
sub bounds {
    my @texts;
    for my $try (1 .. 100) {
        @texts = map { $tree->text("$gpu/$_") =~ s/\s+$//r } qw(min_freq max_freq);
        last unless grep { $_ eq '' } @texts;
        select undef, undef, undef, 0.01;
    }
    return "@texts";
}
# Waits up to 20 seconds for a function to be true.
sub wait_for { my ($what) = @_; my $until = time + 20; sleep 0.02 while !$what->() && time < $until }

my $helper = fork;
if (!$helper) {
    $ENV{CNNRUN_CACHE} = "$dir/root";
    open STDERR, '>', "$dir/said";
    exec "$build/cnnrun", 'helper', '--socket', $path, '--plugin-dir', "$build/plugins/knob-devfreq.so", '--sysfs-root', $tree->root;
}
wait_for(sub { -S $path });
ok(-S $path, 'it listens');
is((stat $path)[2] & 0777, 0600, 'to its owner alone, where there is no group');

$ENV{CNNRUN_HELPER} = $path;
$ENV{CNNRUN_CACHE} = "$dir/user";
my $client = "$build/cnnrun %s --plugin-dir $build/plugins/knob-helper.so --sysfs-root $dir";
like(scalar(sprintf($client, 'gauges') =~ s/^(.*)$/`$1 2>&1`/er), qr/^as-root +gpu +knob +480 MHz/m, 'its knobs are listed');
my $pid = fork;
if (!$pid) {
    open STDOUT, '>', "$dir/out";
    exec sprintf($client, 'govern fixed,at=lowest');
}
wait_for(sub { bounds() eq '177000000 177000000' });
is(bounds(), '177000000 177000000', 'a policy sets through it');
kill KILL => $pid;
waitpid $pid, 0;
wait_for(sub { bounds() eq '177000000 543000000' });
is(bounds(), '177000000 543000000', 'a client that is killed is gone, and all is put back');

my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path);
print $socket "set 0 350000000 -1\n";
is(scalar <$socket>, "ok\n", 'asked by hand');
is(bounds(), '350000000 350000000', 'it is set');
my $other = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path);
print $other "set 0 480000000 -1\n";
like(scalar <$other>, qr/^no -\d+ another client sets the knobs$/, 'one client sets at a time');
print $other 'x' x 1000;
is(scalar <$other>, undef, 'who sends no lines is shown out');
is(bounds(), '350000000 350000000', 'which changes nothing for others');
for (1 .. 200) {
    my $fuzz = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path) or last;
    print $fuzz join '', map { chr int rand 256 } 1 .. int rand 400;
    close $fuzz;
}
print $socket "hello\n";
is(scalar <$socket>, "ok 0 1\n", 'nor does anything else that is sent');

# ---- many clients ----
# A connection to the helper
sub dialled { return IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path) }
# The helper's answer to hello, a line; '': it can't be reached.
sub hello { my $s = dialled() or return ''; print $s "hello\n"; return scalar(<$s>) // '' }
my @idle = map { dialled() } 1 .. 100;
sleep 1.2;
is(hello(), "ok 0 1\n", '100 idle clients lock nobody out');
print $socket "hello\n";
is(scalar <$socket>, "ok 0 1\n", 'nor is the one evicted that has set something');
my $half = dialled();
print $half 'hel';
my $begin = time;
is(scalar <$half>, undef, 'who does not end its line is shown out');
cmp_ok(time - $begin, '<', 10, 'soon');
SKIP: {
    skip 'only root can connect as another user', 1 if $>;
    my $open = 0;
    my @busy = map { my $s = dialled(); print $s "hello\n" if $s; $s ? ($s) : () } 1 .. 64;
    chmod 0666, $path;
    chmod 0755, $dir;
    local $SIG{PIPE} = 'IGNORE';
    print $_ "hello\n" for @busy;
    my $said = qx(setpriv --reuid 65534 --regid 65534 --clear-groups timeout 20 perl -MIO::Socket::UNIX -e '
        my \$s = IO::Socket::UNIX->new(Peer => shift); print {\$s} "hello\n"; print scalar <\$s>' $path 2>&1);
    is($said, "ok 0 1\n", 'nor do 64 busy ones of one user lock another out');
}
undef @idle;

# ---- the socket's file ----
sub listens { # what a helper says that shall listen at a path and can't, or undef
    my $at = shift;
    my $pid = open my $said, '-|';
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        $ENV{CNNRUN_CACHE} = "$dir/root2";
        exec 'timeout', 20, "$build/cnnrun", 'helper', '--socket', $at, '--plugin-dir', "$build/plugins/knob-devfreq.so", '--sysfs-root', $tree->root;
    }
    local $/;
    my $text = <$said>;
    close $said;
    return $? >> 8 == 124 ? undef : $text;
}
open my $file, '>', "$dir/precious";
print $file "kept\n";
close $file;
like(listens("$dir/precious"), qr/precious: is there and is no socket/, 'a regular file is no place to listen at');
is(-s "$dir/precious", 5, 'and stays');
symlink 'precious', "$dir/link";
like(listens("$dir/link"), qr/is no socket/, 'nor is a link');
ok(-l "$dir/link", 'which stays');
mkdir "$dir/folder";
like(listens("$dir/folder"), qr/is no socket/, 'nor a folder');
like(listens($path), qr/another process listens there/, 'nor where another listens');
is(hello(), "ok 0 1\n", 'which goes on');
rename $path, "$dir/moved";
open $file, '>', $path;
print $file "new\n";
close $file;
kill TERM => $helper;
waitpid $helper, 0;
is(-s $path, 4, 'a file that took its name meanwhile stays when it ends');
unlink $path;
$path = "$dir/moved";
$helper = fork;
if (!$helper) {
    $ENV{CNNRUN_CACHE} = "$dir/root";
    open STDERR, '>', "$dir/said";
    exec "$build/cnnrun", 'helper', '--socket', $path, '--plugin-dir', "$build/plugins/knob-devfreq.so", '--sysfs-root', $tree->root;
}
wait_for(sub { hello() });
is(hello(), "ok 0 1\n", 'a stale socket is replaced');
kill TERM => $helper;
waitpid $helper, 0;
is(bounds(), '177000000 543000000', 'when it ends, all is put back');
ok(!-e $path, 'and the socket is gone');
done_testing;
