#!/usr/bin/perl
# The live page among many bad clients: a good one is answered in milliseconds, bad ones are dropped, memory is bounded.
# `crowd.t SLOW NEVER SILENT` for other numbers than those of every day: the long way is `crowd.t 1000 50 10000`, which
# opens 500 connections a process, so that no limit of descriptors is in its way.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../scripts/apps";
use Camera;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use List::Util qw(min);
use Monitor;
use POSIX ();
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Test::More;
use Time::HiRes qw(sleep time);

my ($slow, $never, $silent) = (shift // 300, shift // 20, shift // 1000);
my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
for my $plugin (qw(object-page source-video draw-cairo)) {
    plan skip_all => "$plugin was not built" unless -e "$build/plugins/$plugin.so";
}
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_OPENCL} = 'none';
$SIG{PIPE} = 'IGNORE';
my $camera = Camera->start(20, '640x480') or plan skip_all => 'no ffmpeg, which makes the pictures of a camera';
my $monitor = Monitor->start($build, $dir, 'monitor', "$root/scripts/nets/lenet5.lua",
                             $camera->url, qw(--app classify -q));
my $port = $monitor->port or die($monitor->said);
ok($monitor->until(sub { $_[0]{frame} }), 'a page') or die($monitor->said);
my $host = "Host: 127.0.0.1:$port\r\n";

# A connection to the page.
sub connected {
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 20) or return;
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, 4096;
    return $socket;
}

# Processes of up to 500 connections each. Each says a letter once all are open, and runs until it is killed.
my @crowd;
# A child that makes many connections.
sub crowd {
    my ($count, $first, $each_second) = @_;
    while ($count > 0) {
        my $n = min(500, $count);
        $count -= $n;
        pipe my $from, my $to or die;
        my $pid = fork // die;
        push @crowd, { pid => $pid, from => $from } and next if $pid;
        alarm 600;
        $SIG{TERM} = sub { POSIX::_exit(0) }; # the monitor is not this one's to stop
        my @open = map { my $s = connected(); syswrite $s, $first if $s; $s // () } 1 .. $n;
        syswrite $to, 'o';
        while (1) {
            sleep 1;
            next unless $each_second;
            for my $s (@open) { # who is dropped comes again
                next if defined syswrite $s, $each_second;
                $s = connected() // $s;
                syswrite $s, $first;
            }
        }
    }
}

# Seconds until the whole answer is there; undef: there is none.
sub answered {
    my $begin = time;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 10) or return;
    syswrite $socket, "GET /state.json HTTP/1.1\r\n${host}Connection: close\r\n\r\n";
    my $got = '';
    while (time < $begin + 10) {
        my $ready = '';
        vec($ready, fileno $socket, 1) = 1;
        select $ready, undef, undef, 10;
        sysread $socket, $got, 65536, length $got or last;
    }
    return $got =~ /^HTTP\/1.1 200 .*\}$/s ? time - $begin : undef;
}

sub status { # a number of the process's own page in /proc
    my $key = shift;
    open my $in, '<', '/proc/' . $monitor->pid . '/status' or return 0;
    return (grep { s/^$key:\s*(\d+).*/$1/s } <$in>)[0] // 0;
}

# How many files the monitor has open.
sub handles { my @all = glob '/proc/' . $monitor->pid . '/fd/*'; return scalar @all }

# Seconds until the page answers.
sub measured {
    my ($what, $rounds) = @_;
    my (@took, $none);
    for (1 .. $rounds) {
        my $took = answered();
        defined $took ? push @took, $took : $none++;
        last if ($none // 0) > 2; # ten seconds each
        sleep 0.03;
    }
    @took = sort { $a <=> $b } @took;
    my ($median, $worst) = @took ? @took[@took / 2, -1] : (99, 99);
    note(sprintf '%s: answered in %.2f ms, at worst %.1f ms; %d were not', $what, 1000 * $median, 1000 * $worst, $none // 0);
    return ($median, $worst, $none // 0);
}

measured('alone', 50);
my ($before, $handles) = (status('VmRSS'), handles());
crowd($slow, "GET /state.json HTTP/1.1\r\n${host}X-Slow: ", 'a');
crowd($never, "GET /picture.mjpg HTTP/1.1\r\n$host\r\n", '');
crowd($silent, '', '');
my ($median, $worst, $none) = measured('while they come', 50);
is($none, 0, 'a good client is answered while they come');
sysread $_->{from}, my $letter, 1 for @crowd;
($median, $worst, $none) = measured("$slow slow, $never that never read, $silent silent", 150);
is($none, 0, 'and when they are there');
cmp_ok($median, '<', 0.05, 'within 50 ms by the median');
cmp_ok($worst, '<', 1, 'and in less than a second at worst');

my $kept = handles() - $handles;
cmp_ok($kept, '<=', 256 + 64, "$kept of all are still connected");
for (@crowd) { kill TERM => $_->{pid}; waitpid $_->{pid}, 0 }
my $most = status('VmHWM');
note("memory: $before kB before, $most kB at most");
cmp_ok($most - $before, '<', 50_000, 'memory is bounded');
cmp_ok($most, '<', 100_000, 'and small') unless grep { /sanitize/i } $monitor->said, $ENV{CNNRUN_BUILD} // '';
# ---- who sends a byte a second, or a body that does not come, is dropped, though nobody else comes ----
my @alone = map { my $s = connected(); syswrite $s, $_; $s } "GET /state.json HTTP/1.1\r\n${host}X: ",
    "POST /set HTTP/1.1\r\n${host}Content-Length: 20\r\n\r\n", 'G', "GET /picture.mjpg HTTP/1.1\r\n$host\r\n";
my @names = ('headers', 'a body', 'a request line', 'no reading');
my $begin = time;
my %gone;
while (time < $begin + 25 && keys %gone < @alone) {
    for my $i (0 .. $#alone) {
        next if $gone{$i};
        if ($i == 3) { # its end shows behind all that lies there
            my ($here, $there) = map { sprintf ':%04X', $_ } $alone[$i]->sockport, $port;
            my $line = grep { /$here \S+$there / } `grep ' 01 ' /proc/net/tcp`;
            $gone{$i} = time - $begin unless $line;
        } else { $gone{$i} = time - $begin unless defined syswrite $alone[$i], 'a' }
    }
    sleep 0.5;
}
for my $i (0 .. $#alone) { ok($gone{$i}, sprintf '%s a byte at a time: dropped after %.0f s', $names[$i], $gone{$i} // -1) }

is($monitor->stop, 130, 'and it ends as ever');
unlike($monitor->said, qr/Sanitizer|runtime error/, 'with nothing to report');
done_testing();
