#!/usr/bin/perl
# Videos in and out: frames, times and sound are kept; rotated, uneven, odd and broken ones; pipes, HTTP,
# devices.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../scripts/apps";
use Camera;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP;
use Test::More;
use Time::HiRes qw(sleep);

my $root = $0 =~ s{tests/plugins/source-video/[^/]*$}{}r || './';
my $build = $ENV{CNNRUN_BUILD} // "${root}build";
my $shared = ($ENV{CNNRUN_SHARED} // "${root}../shared") . '/data';
my $script = "${root}tests/plugins/source-video/frames.lua";
my $net = "${root}scripts/nets/lenet5.lua";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'source-video was not built (FFmpeg)' unless -e "$build/plugins/source-video.so";
plan skip_all => 'no ffmpeg, which makes the videos' if system('ffmpeg -version >/dev/null 2>&1');
my $dir = tempdir(CLEANUP => 1);

# Makes a video by ffmpeg.
sub make {
    my ($name, @words) = @_;
    system('ffmpeg', '-v', 'error', '-y', @words, "$dir/$name") == 0 or diag("ffmpeg: $name");
    return "$dir/$name";
}

# frames(video, [path]): runs frames.lua, which writes the frames to the second path, too. Returns a list of references
# [number (from 1), seconds, height, width, red, green, blue], one a frame, with the colours (0 to 255) of the pixel a
# quarter from the corner.
sub frames {
    my @words = @_;
    open my $out, '-|', 'timeout', '300', "$build/cnnrun", $script, @words or die;
    my @lines = map { [split] } <$out>;
    close $out;
    return @lines;
}

sub probe { # times (and sizes, of sound) of the packets, sorted
    my ($file, $kind) = @_;
    my $what = $kind eq 'v' ? 'pts_time' : 'pts_time,size';
    my @lines = `ffprobe -v error -select_streams $kind -show_entries packet=$what -of csv=p=0 '$file'`;
    chomp @lines;
    return [sort { (($a =~ /^([\d.-]+)/)[0] // 0) <=> (($b =~ /^([\d.-]+)/)[0] // 0) } @lines];
}

my @picture = qw(-f lavfi -i testsrc2=size=320x240:rate=30:duration=2);
my @sound = qw(-f lavfi -i sine=duration=2);
my @h264 = qw(-c:v libx264 -preset ultrafast);
my $whole = make('whole.mp4', @picture, @sound, @h264, qw(-c:a aac));

# ---- in ----
my @got = frames($whole);
is(scalar @got, 60, 'every frame comes');
is($got[0][1], '0.000000', 'the first at 0');
is($got[59][1], '1.966667', 'the last at its time');
is_deeply([map { $_->[0] } @got], [1 .. 60], 'in order');

my $halves = make('halves.mp4', qw(-f lavfi -i color=red:size=160x240:rate=10:duration=1),
                  qw(-f lavfi -i color=blue:size=160x240:rate=10:duration=1 -filter_complex hstack), @h264);
my $turned = make('turned.mp4', '-i', $halves, qw(-c copy -metadata:s:v rotate=90));
my @upright = frames($turned);
is("@{$upright[0]}[2, 3]", '320 240', 'one that lies on its side is turned upright');
ok($upright[3][6] > 200 && $upright[3][4] < 60, "as ffmpeg turns it");

my $uneven = make('uneven.mkv', @picture, '-vf', "select='not(mod(n,7))+lt(mod(n,5),2)'", qw(-vsync vfr), @h264);
is_deeply([map { sprintf '%.3f', $_->[1] } frames($uneven)],
          [map { sprintf '%.3f', $_ } @{ probe($uneven, 'v') }], 'uneven times are told as they are');

my $odd = make('odd.mkv', qw(-f lavfi -i testsrc2=size=322x242:rate=10:duration=1),
               '-vf', 'format=bgr0,scale=321:241', qw(-c:v ffv1));
my @odd = frames($odd);
is("@{$odd[0]}[2, 3]", '241 321', 'odd sizes');

# A hole in the middle of the pictures' data.
{
    open my $in, '<:raw', $whole or die;
    my $data = do { local $/; <$in> };
    my $at = index($data, 'mdat') + 60000;
    substr($data, $at + $_, 1) = chr(($_ * 97 + 13) % 256) for 0 .. 2500;
    open my $out, '>:raw', "$dir/broken.mp4" or die;
    print $out $data;
    close $out;
    my $said = `$build/cnnrun $script $dir/broken.mp4 2>&1 >$dir/lines`;
    open my $lines, '<', "$dir/lines" or die;
    my $n = () = <$lines>;
    is($?, 0, 'broken frames in the middle are survived');
    cmp_ok($n, '>', 40, "most frames come all the same ($n of 60)");
    like($said, qr/broken/, 'and it is reported');
    open $out, '>:raw', "$dir/cut.mp4" or die;
    print $out substr($data, 0, 3000);
    close $out;
    isnt(system("$build/cnnrun $script $dir/cut.mp4 >/dev/null 2>$dir/err"), 0, 'half a file is refused');
    my $cut = make('cut.mkv', '-i', $whole, qw(-c copy));
    truncate $cut, (-s $cut) / 2;
    my @most = frames($cut);
    cmp_ok(scalar @most, '>', 5, 'of one without an index what is there comes');
}
isnt(system("$build/cnnrun $script $dir/none.mp4 >/dev/null 2>$dir/err"), 0, 'no such file');

my $piped = make('piped.mkv', '-i', $whole, qw(-c copy));
is(scalar(() = `$build/cnnrun $script - <$piped` =~ /\n/g), 60, 'standard input');
is(scalar(() = `cat $piped | $build/cnnrun $script /dev/stdin` =~ /\n/g), 60, 'which a pipe is by its path, too');
my $camera = Camera->start(100, '640x480');
is(scalar(frames($camera->url)), 200, 'a camera that never ends');
{
    my $still = make('still-%03d.png', @picture, qw(-frames:v 7));
    my @seven = frames("video:$still");
    is(scalar @seven, 7, 'pictures with numbers');
    is($seven[1][1], '0.040000', 'are 25 a second');
    my $gif = make('seven.gif', @picture, qw(-r 10 -frames:v 7));
    is(scalar(frames("video:$gif")), 7, 'all pictures of a GIF, if it is asked for');
}

# A server of one file at a time, or of those of a folder, in a process of its own.
sub serve {
    my ($file, $times, $stream) = @_;
    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5, ReuseAddr => 1) or die;
    my $port = $server->sockport;
    my $pid = fork // die;
    return ($pid, $port) if $pid;
    for (1 .. $times) {
        my $client = $server->accept or last;
        my ($name) = <$client> =~ m{/([\w.]+)};
        open my $in, '<:raw', -d $file ? "$file/$name" : $file or die;
        my $data = do { local $/; <$in> };
        while (defined(my $line = <$client>)) { last if $line =~ /^\r?\n$/ }
        print $client "HTTP/1.0 200 OK\r\nContent-Length: " . length($data) . "\r\n\r\n" unless $stream;
        print $client "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace\r\n\r\n" if $stream;
        local $SIG{PIPE} = 'IGNORE';
        print $client $data;
        close $client;
    }
    exit 0;
}
{
    my ($pid, $port) = serve($piped, 1);
    is(scalar(frames("http://127.0.0.1:$port/piped.mkv")), 60, 'over HTTP');
    kill 'KILL', $pid;
    waitpid $pid, 0;
    ($pid, $port) = serve(make('one.jpg', @picture, qw(-frames:v 1)), 3);
    is(scalar(frames("http://127.0.0.1:$port/one.jpg")), 1, 'a picture, once');
    kill 'KILL', $pid;
    waitpid $pid, 0;
    # a playlist without an end has a length of its own
    make('live.m3u8', @picture, qw(-frames:v 20 -c:v mpeg2video -f hls -hls_flags omit_endlist));
    ($pid, $port) = serve($dir, 20);
    my $from = "$dir/from.lua";
    open my $code, '>', $from or die;
    print $code 'return function(a) require("cnnrun").samples(a[1], nil, { from = 1 }) end';
    close $code;
    like(`timeout 20 $build/cnnrun --trust $from http://127.0.0.1:$port/live.m3u8 2>&1`,
         qr/no beginning and no end/, 'a playlist that goes on is live, however long it is now');
    kill 'KILL', $pid;
    waitpid $pid, 0;
    # a stream of pictures that drops after some, and is back
    my $mjpeg = make('stream.mpjpeg', @picture, qw(-frames:v 20 -f mpjpeg));
    ($pid, $port) = serve($mjpeg, 1000, 1);
    my $reader = open my $lines, '-|', "exec $build/cnnrun $script http://127.0.0.1:$port/x.mjpg 2>$dir/err" or die;
    my @times;
    local $SIG{ALRM} = sub { kill 'KILL', $reader };
    alarm 120;
    while (<$lines>) {
        push @times, (split)[1];
        kill 'INT', $reader if @times == 50;
    }
    alarm 0;
    close $lines;
    kill 'KILL', $pid;
    waitpid $pid, 0;
    cmp_ok(scalar @times, '>', 25, 'a stream that drops is opened again (' . @times . ' frames)');
    ok(!grep({ $times[$_] < $times[$_ - 1] } 1 .. $#times), 'and its times go on');
}

# ---- out ----
frames($whole, "$dir/again.mp4");
is_deeply(probe("$dir/again.mp4", 'v'), probe($whole, 'v'), 'a new video has the times of the old one');
is_deeply(probe("$dir/again.mp4", 'a'), probe($whole, 'a'), 'and its sound');
my @again = frames("$dir/again.mp4");
ok(!grep({ my $i = $_; grep { abs($again[$i][$_] - $got[$i][$_]) > 40 } 4 .. 6 } 0, 20, 50), 'and its pictures');
frames($uneven, "$dir/again.mkv");
is_deeply(probe("$dir/again.mkv", 'v'), probe($uneven, 'v'), 'uneven times stay');
frames($odd, "$dir/odd.mp4");
is(scalar(frames("$dir/odd.mp4")), 10, 'odd sizes can be written');
frames($turned, "$dir/upright.mp4");
is("@{(frames(\"$dir/upright.mp4\"))[0]}[2, 3]", '320 240', 'what was turned is upright');
frames($whole, "$dir/again.$_") for qw(webm avi gif);
is(scalar @{ probe("$dir/again.$_", 'v') } >= 60, 1, "as .$_") for qw(webm avi);
is(scalar @{ probe("$dir/again.gif", 'v') }, 60, 'as .gif');
ok(!glob("$dir/.*.cnnrun-tmp"), 'nothing is left beside them');

# ---- the commands ----
my @lines = map { decode_json($_) } `$build/cnnrun run --json --every 10 --from 1 $net $whole`;
is(scalar @lines, 3, 'run: each tenth of the second second');
is_deeply([map { sprintf '%.3f', $_->{seconds} } @lines], ['1.000', '1.333', '1.667'], 'with times');
is(scalar(() = `$build/cnnrun run --json --to 0.5 $net $whole` =~ /\n/g), 15, 'run: up to a time');
SKIP: {
    skip 'draw-cairo was not built', 9 unless -e "$build/plugins/draw-cairo.so";
    is(system("$build/cnnrun classify $net $whole -q --json -o $dir/named.mp4 >$dir/json"), 0, 'classify draws one');
    open my $json, '<', "$dir/json" or die;
    my @json = map { decode_json($_) } <$json>;
    is(scalar @json, 60, 'a line a frame');
    is($json[30]{frame}, 31, 'with its number');
    is_deeply(probe("$dir/named.mp4", 'v'), probe($whole, 'v'), 'times kept');
    is_deeply(probe("$dir/named.mp4", 'a'), probe($whole, 'a'), 'sound kept');
    system("$build/cnnrun classify $net - -q --json -o $dir/named.mkv <$piped >$dir/json");
    is(scalar @{ probe("$dir/named.mkv", 'v') }, 60, 'one is drawn of standard input, which is read once');
    make('still-%03d.png', @picture, qw(-frames:v 7));
    system("$build/cnnrun classify $net '$dir/still-%03d.png' -q -o $dir/numbered.mp4 >$dir/json");
    is(scalar @{ probe("$dir/numbered.mp4", 'v') }, 7, 'and of pictures with numbers');
    system("$build/cnnrun classify $net $dir/seven.gif -q -o $dir/moves.mp4 >$dir/json");
    is_deeply(probe("$dir/moves.mp4", 'v'), [map { sprintf '%.6f', $_ / 10 } 0 .. 6], 'and of a GIF, at its times');
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', '/dev/null';
        exec "$build/cnnrun", 'classify', $net, $camera->url, '-q', '-o', "$dir/stopped.mp4";
    }
    for (1 .. 1200) { # until some of it is written, of what has no end
        sleep 0.1;
        last if grep { -s $_ > 50000 } glob "$dir/.*.cnnrun-tmp";
    }
    kill 'INT', $pid;
    waitpid $pid, 0;
    my $n = @{ probe("$dir/stopped.mp4", 'v') };
    cmp_ok($n, '>', 5, "Ctrl-C leaves a whole file of what was drawn ($n frames)");
}

SKIP: {
    my @films = glob("$shared/videos/*.m*");
    skip 'no shared/data/videos', 1 unless @films;
    for my $film (@films) {
        my @first = frames($film, "$dir/film.mp4");
        is_deeply([map { sprintf '%.3f', $_ } @{ probe("$dir/film.mp4", 'v') }],
                  [map { sprintf '%.3f', $_->[1] } @first], "$film: times kept");
    }
}
done_testing();
