#!/usr/bin/perl
# RTSP, from a server of forty lines: MPEG-TS over RTP, interleaved on TCP, in its own time. Read, and watched on when
# the server hangs up in the middle.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP;
use Test::More;
use Time::HiRes qw(sleep);

my $root = $0 =~ s{tests/plugins/source-video/[^/]*$}{}r || './';
my $build = $ENV{CNNRUN_BUILD} // "${root}build";
my $net = "${root}scripts/nets/lenet5.lua";
plan skip_all => 'source-video was not built (FFmpeg)' unless -e "$build/plugins/source-video.so";
plan skip_all => 'no ffmpeg, which makes the video' if system('ffmpeg -version >/dev/null 2>&1');
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_OPENCL} = 'none';
system(qw(ffmpeg -v error -y -f lavfi -i testsrc2=size=160x120:rate=25:duration=4 -c:v libx264 -preset ultrafast -g 10 -bf 0
          -f mpegts), "$dir/film.ts") == 0 or plan skip_all => 'ffmpeg has no H.264';

# Starts a server that plays `part` (0 to 1) of the file to each of $times clients; returns its process and port.
sub serve {
    my ($times, $part) = @_;
    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5, ReuseAddr => 1) or die;
    my $port = $server->sockport;
    my $pid = fork // die;
    return ($pid, $port) if $pid;
    $SIG{PIPE} = 'IGNORE';
    open my $in, '<:raw', "$dir/film.ts" or die;
    my $data = do { local $/; <$in> };
    for (1 .. $times) {
        my $client = $server->accept or last;
        $client->autoflush(1);
        answer($client, $port) or next;
        my ($number, $all) = (0, int($part * length($data) / 1316));
        for my $i (0 .. $all - 1) {
            my $rtp = pack('CCnNN', 0x80, 33, $number++, $i * 90000 * 4 / (length($data) / 1316), 7) . substr $data, $i * 1316, 1316;
            print $client '$', pack('Cn', 0, length $rtp), $rtp or last;
            sleep 4 / (length($data) / 1316) / 2; # twice as fast as it is
        }
        sleep 0.2;
        close $client;
    }
    exit 0;
}

# Answers the requests of a client; returns 1 after PLAY, 0 if the client has gone before.
sub answer {
    my ($client, $port) = @_;
    while (defined(my $line = <$client>)) {
        my ($what) = $line =~ /^(\w+) rtsp:/ or next;
        my $cseq = 0;
        while (defined($line = <$client>)) {
            $cseq = $1 if $line =~ /^CSeq: (\d+)/i;
            last if $line =~ /^\r?\n$/;
        }
        my %more = (OPTIONS => "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n", PLAY => "Session: 1\r\n",
                    SETUP => "Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n");
        my $sdp = $what eq 'DESCRIBE' ? join '', map { "$_\r\n" } 'v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=film', 'c=IN IP4 0.0.0.0',
            't=0 0', 'm=video 0 RTP/AVP 33', 'a=control:track' : '';
        print $client "RTSP/1.0 200 OK\r\nCSeq: $cseq\r\n", $more{$what} // '',
            $sdp ? ("Content-Type: application/sdp\r\nContent-Length: " . length($sdp) . "\r\n") : '', "\r\n", $sdp;
        return 1 if $what eq 'PLAY';
    }
    return 0;
}

# Returns what the monitor has written to stderr so far; "" if there is no such file.
sub said { open my $in, '<', "$dir/err" or return ''; local $/; return scalar(<$in>) // '' }

# Runs the monitor until it has said $drops times that the stream dropped, at most two minutes, and interrupts it;
# returns exit code, stderr and frames.
sub watch {
    my ($port, $drops) = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/lines" or die;
        open STDERR, '>', "$dir/err" or die;
        exec "$build/cnnrun", 'monitor', $net, "rtsp://127.0.0.1:$port/film", qw(--app classify --json);
    }
    for (1 .. 1200) { last if $drops <= (() = said() =~ /dropped, trying again/g); sleep 0.1 }
    kill 'INT', $pid;
    waitpid $pid, 0;
    my $code = $? >> 8;
    open my $in, '<', "$dir/lines" or die;
    return ($code, said(), grep { $_->{frame} } map { decode_json($_) } <$in>);
}

my ($pid, $port) = serve(1, 1);
my ($code, $said, @frames) = watch($port, 1);
kill 'KILL', $pid;
waitpid $pid, 0;
cmp_ok($frames[-1]{frame} // 0, '>', 50, 'a stream over RTSP: ' . ($frames[-1]{frame} // 0) . ' frames of 100') or diag $said;
my @back = grep { $frames[$_]{seconds} <= $frames[$_ - 1]{seconds} } 1 .. $#frames;
is(scalar @back, 0, 'in order');
like($said, qr/dropped, trying again/, 'it ends, and is asked for again');
($pid, $port) = serve(3, 0.5);
($code, $said, @frames) = watch($port, 3);
kill 'KILL', $pid;
waitpid $pid, 0;
my $drops = () = $said =~ /dropped, trying again/g;
cmp_ok($drops, '>=', 2, "a server that hangs up in the middle is called again ($drops times)") or diag $said;
cmp_ok($frames[-1]{frame} // 0, '>', 35, 'frames of all calls: ' . ($frames[-1]{frame} // 0));
@back = grep { $frames[$_]{seconds} <= $frames[$_ - 1]{seconds} } 1 .. $#frames;
is(scalar @back, 0, 'whose times go on');
my $none = `timeout 30 $build/cnnrun monitor $net rtsp://127.0.0.1:1/film --app classify 2>&1`;
ok($? && $none =~ m{rtsp://127\.0\.0\.1:1/film: can't be opened: Connection refused}, 'nobody there') or diag $none;
done_testing();
