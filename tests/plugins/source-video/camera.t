#!/usr/bin/perl
# A V4L2 camera, which is one that is preloaded: frames with their times, recorded; one that is pulled out, one that
# hangs. `camera.t --latency` prints how long after a frame its boxes come, over the time of inference.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Handle;
use JSON::PP;
use Test::More;
use Time::HiRes qw(sleep time clock_gettime CLOCK_MONOTONIC);

my $root = $0 =~ s{tests/plugins/source-video/[^/]*$}{}r || './';
my $build = $ENV{CNNRUN_BUILD} // "${root}build";
my $camera = "$build/tests/plugins/source-video/fake-camera.so";
plan skip_all => 'source-video was not built (FFmpeg)' unless -e "$build/plugins/source-video.so";
plan skip_all => "no $camera" unless -e $camera;
system("LD_PRELOAD=$camera true 2>&1 | grep -q .") == 0 and plan skip_all => 'nothing can be preloaded here';
my $net = "${root}scripts/nets/lenet5.lua";
my $dir = tempdir(CLEANUP => 1);
my $log = "$dir/log";
$ENV{CNNRUN_OPENCL} = 'none';
delete $ENV{$_} for grep { /^FAKE_CAMERA/ } keys %ENV;

# What it looks like tells which one it is: so grey is the number, by 50.
my $on = "$dir/on.lua";
open my $out, '>', $on or die;
print $out <<'END';
local json = require "lib.json"
return function(found, frame)
  local grey = math.min(frame.picture[1], frame.picture[3 * 320 + 1])
  print(json.encode { of = frame.number, number = (grey * 219 / 255 / 4 + .5) // 1 % 50 })
end
END
close $out;

# Lines of JSON, each with the moment it came, of a monitor that gets a signal after so many, or so many seconds behind
# the first, which comes within two minutes.
my @away; # why, each time the source was told to be away
# Runs a command until the camera has given enough frames.
sub watch {
    my ($with, $most, $seconds, @words) = @_;
    unlink $log;
    pipe(my $in, my $out) or die;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>&', $out;
        open STDERR, '>', "$dir/err";
        @ENV{qw(LD_PRELOAD FAKE_CAMERA_LOG), keys %$with} = ($camera, $log, values %$with);
        exec "$build/cnnrun", 'monitor', @words, '--json', '--on', $on;
    }
    close $out;
    my ($rest, $number, @lines) = ('');
    my $end = time + 120;
    my $told = 0;
    while (1) {
        my $ready = '';
        vec($ready, fileno $in, 1) = 1;
        if (select $ready, undef, undef, 0.1) {
            sysread($in, $rest, 65536, length $rest) or last;
            my $now = clock_gettime(CLOCK_MONOTONIC);
            while ($rest =~ s/^(.*)\n//) {
                my $line = decode_json($1);
                $number = $line->{number} if $line->{of};
                push @away, $line->{why} if ($line->{source} // '') eq 'away';
                next unless $line->{frame};
                $end = time + $seconds unless @lines;
                push @lines, { %$line, at => $now, number => $number };
            }
        }
        next if $told || (@lines < $most && time < $end);
        kill 'INT', $pid;
        $told = time;
    }
    waitpid $pid, 0;
    my $code = $? >> 8;
    open my $err, '<', "$dir/err";
    return ($code, join('', <$err>), $told && time - $told, @lines);
}

sub taken { # all that were: [its number at the camera, when it was there]
    open my $in, '<', $log or return;
    return map { [split] } <$in>;
}

# The camera's own frames, each with its line: those with "of" came just before.
sub matched {
    my @frames = taken();
    my ($first, @pairs);
    for my $line (@_) {
        my $i = $line->{frame} - 1 + ($first // 0); # the first ones are gone before it is opened
        if (!defined $first) {
            ($first) = grep { $frames[$_] && $frames[$_][0] % 50 == $line->{number} } $i .. $#frames;
            return unless defined $first;
            $first -= $line->{frame} - 1;
            $i = $line->{frame} - 1 + $first;
        }
        push @pairs, [$line, $frames[$i]] if $frames[$i];
    }
    return @pairs;
}

if ((shift // '') eq '--latency') {
    my ($seconds, @words) = @ARGV ? @ARGV : (20);
    @words = ($net, '/dev/video0', qw(--app classify)) unless @words;
    my ($code, $said, $wait, @lines) = watch({}, 1e9, $seconds, @words);
    my @over = sort { $a <=> $b } map { 1000 * ($_->[0]{at} - $_->[1][1] / 1e9) - $_->[0]{ms} }
        grep { defined $_->[0]{ms} && $_->[0]{frame} > 30 } matched(@lines);
    my @ms = sort { $a <=> $b } grep { defined } map { $_->{ms} } @lines;
    printf "%d frames, %d lost; inference %.1f ms; from the frame to its line %.1f ms over that (95%%: %.1f)\n", scalar @lines,
        $lines[-1]{lost}, $ms[$#ms / 2], $over[$#over / 2], $over[$#over * .95] if @over;
    print $said unless @over;
    exit !@over;
}

# ---- frames ----
my ($code, $said, $wait, @lines) = watch({}, 45, 60, $net, '/dev/video0', qw(--app classify -o), "$dir/seen.mkv");
is($code, 130, 'a camera is watched until Ctrl-C') or diag $said;
cmp_ok(scalar @lines, '>=', 45, 'frame by frame: ' . @lines);
my @pairs = matched(@lines);
is(scalar @pairs, scalar @lines, "each is one of the camera's");
is(scalar grep({ $_->[0]{number} != $_->[1][0] % 50 } @pairs), 0, 'as it was');
is(scalar grep({ abs($_->[0]{seconds} - $pairs[0][0]{seconds} - ($_->[1][1] - $pairs[0][1][1]) / 1e9) > 2e-3 } @pairs), 0,
   'at the time that the camera gave it');
cmp_ok($lines[-1]{frame}, '<=', @lines + $lines[-1]{lost}, 'what is not seen is told as lost');
SKIP: {
    skip 'no ffprobe', 1 if system('ffprobe -version >/dev/null 2>&1');
    my @times = `ffprobe -v error -show_entries packet=pts_time -of csv=p=0 $dir/seen.mkv`;
    cmp_ok(@lines - @times, '<=', 1, 'recorded but for one on its way, by the one program that has the camera open');
}

# ---- pulled out ----
($code, $said, $wait, @lines) = watch({ FAKE_CAMERA_GONE => 30 }, 1e9, 6, $net, '/dev/video1', qw(--app classify -o), "$dir/gone.mkv");
is($code, 130, 'one that is pulled out is waited for until Ctrl-C');
like($away[0], qr{/dev/video1.*No such device}, 'and named');
cmp_ok(-s "$dir/gone.mkv", '>', 1000, 'what was recorded stays');

# ---- hangs ----
($code, $said, $wait, @lines) = watch({ FAKE_CAMERA_STALLS => 20 }, 1e9, 4, $net, '/dev/video0', qw(--app classify));
is($code, 130, 'one that gives no frames any more');
cmp_ok($wait, '<', 9, 'still hears Ctrl-C'); # by itself it ends after ten seconds
SKIP: {
    skip 'left out: a camera that hangs is waited for 10 s (CNNRUN_LONG=1)', 2 unless $ENV{CNNRUN_LONG};
    ($code, $said) = watch({ FAKE_CAMERA_STALLS => 20 }, 1e9, 60, $net, '/dev/video0', qw(--app classify));
    is($code, 1, 'and by itself it ends');
    like($said, qr/nothing came in 10 seconds/, 'and says why');
}
# ---- other commands ----
my $lines = `LD_PRELOAD=$camera FAKE_CAMERA_GONE=60 timeout 120 $build/cnnrun run --json $net /dev/video0 2>/dev/null`;
cmp_ok(scalar(() = $lines =~ /"top"/g), '>', 3, 'cnnrun run reads it as well');
done_testing();
