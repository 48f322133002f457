#!/usr/bin/perl
# cnnrun helper and the plugin that asks it: a knob that only root may set is set, within its bounds, and put back
# when its client goes or is killed; clients that send anything else are shown out.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../plugins/gauge-common";
use File::Temp qw(tempdir);
use IO::Socket::UNIX;
use Test::More;
use Time::HiRes qw(sleep time);
use Tree;

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
sub bounds { return join ' ', map { $tree->text("$gpu/$_") =~ s/\s+$//r } qw(min_freq max_freq) }
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
kill TERM => $helper;
waitpid $helper, 0;
is(bounds(), '177000000 543000000', 'when it ends, all is put back');
ok(!-e $path, 'and the socket is gone');
done_testing;
