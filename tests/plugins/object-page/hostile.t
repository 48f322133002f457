#!/usr/bin/perl
# Hostile HTTP against the live page: requests that were changed at random, half-open connections, clients that read a
# byte a second. `hostile.t 100000 10000` for as many requests and connections, `... SEED` for others.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../scripts/apps";
use Camera;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Monitor;
use Test::More;
use Time::HiRes qw(sleep time);

my ($requests, $connections, $seed) = (shift // 2000, shift // 300, shift // 1);
my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
for my $plugin (qw(object-page source-video draw-cairo)) {
    plan skip_all => "$plugin was not built" unless -e "$build/plugins/$plugin.so";
}
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_OPENCL} = 'none';
$SIG{PIPE} = 'IGNORE';
my $camera = Camera->start(20, '160x120') or plan skip_all => 'no ffmpeg, which makes the pictures of a camera';
my $monitor = Monitor->start($build, $dir, 'monitor', "$root/scripts/nets/lenet5.lua",
                             $camera->url, qw(--app classify -q));
my $port = $monitor->port or die($monitor->said);
ok($monitor->until(sub { $_[0]{frame} }), 'a page') or die($monitor->said);
# A connection to the page.
sub connected { return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 2) }
# How many files the monitor has open.
sub handles { my @all = glob '/proc/' . $monitor->pid . '/fd/*'; return scalar @all }
my ($policy, $before) = ($monitor->state->{policy}, handles());

# ---- requests that are none ----
my $host = "Host: 127.0.0.1:$port\r\n";
my @good = map { s/HOST\n/$host/r =~ s/(?<!\r)\n/\r\n/gr } (
    "GET / HTTP/1.1\nHOST\n\n", "GET /state.json HTTP/1.1\nHOST\nConnection: close\n\n", "HEAD /page.js HTTP/1.1\nHOST\n\n",
    "POST /set HTTP/1.1\nHOST\nAuthorization: Bearer wrongtok\nContent-Length: 17\n\n{\"policy\":\"best\"}",
    "POST /set HTTP/1.1\nHOST\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n", "GET /events HTTP/1.0\n\n",
    "GET /picture.jpg HTTP/1.1\nHOST\nOrigin: http://127.0.0.1:$port\n\n", "OPTIONS * HTTP/1.1\nHOST\n\n",
    "GET /picture.mjpg HTTP/1.1\nHOST\n\n");
my @bits = ("\r\n", "\0", ':', ' ', '%00', "Content-Length: -1\r\n", "Content-Length: 99999999999999999999\r\n", 'A' x 3000, '/../..', "Host: \r\n");
srand $seed;
# A good request with some bytes changed.
sub changed {
    my $text = $good[rand @good];
    for (0 .. rand 7) {
        my ($what, $at) = (int rand 6, int rand(length($text) || 1));
        if ($what == 0 && length $text) { substr($text, $at, 1) = chr int rand 256 }
        elsif ($what == 1) { substr($text, $at, 0) = join '', map { chr int rand 256 } 0 .. rand 30 }
        elsif ($what == 2) { substr($text, $at, 1 + int rand 20) = '' }
        elsif ($what == 3) { substr($text, $at, 0) = $bits[rand @bits] }
        elsif ($what == 4) { $text .= $good[rand @good] }
        else { $text = substr $text, 0, $at }
    }
    return $text;
}
my $refused = 0;
for (1 .. $requests) {
    my $socket = connected() or ++$refused, next;
    syswrite $socket, changed();
    my $ready = '';
    vec($ready, fileno $socket, 1) = 1;
    sysread $socket, my $answer, 2000 if select $ready, undef, undef, 0.002;
}
ok(kill(0, $monitor->pid), "$requests hostile requests, of seed $seed");
my $state = $monitor->until(sub { $_[0]{frame} }) // {};
is($state->{policy}, $policy, 'which changed nothing');
cmp_ok($refused, '<=', $requests / 20, "and had answers ($refused connections were refused)");

# ---- half-open ones, and slow ones ----
my $frame = $state->{frame};
my @slow = map { my $s = connected(); syswrite $s, "GET /picture.mjpg HTTP/1.1\r\n$host\r\n" if $s; $s // () } 1 .. 2;
my ($open, @half) = (0);
for my $i (1 .. $connections) {
    my $socket = connected() or next;
    $open++;
    syswrite $socket, substr "GET /state.json HTTP/1.1\r\n$host", 0, int rand 40;
    push @half, $socket;
    shift @half if @half > 300; # as many at a time
    sysread $_, my $byte, 1 for $i % 300 ? () : @slow;
}
my $other = connected();
cmp_ok($open, '>', $connections / 2, "$open connections that say half of something");
undef @half;
my $seen = $monitor->until(sub { $_[0]{frame} > $frame + 20 }, 30);
ok($seen, 'the loop goes on, and the page answers');
undef @slow;
undef $other;
my $now;
for (1 .. 150) { last if ($now = handles()) <= $before + 1; sleep 0.1 }
cmp_ok($now, '<=', $before + 1, 'all of them are closed again');
is($monitor->stop, 130, 'and it ends as ever');
unlike($monitor->said, qr/Sanitizer|runtime error/, 'with nothing to report');
done_testing();
