#!/usr/bin/perl
# cnnrun monitor records parts into a folder of limited size; a full disk; sources that fail and return.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Camera;
use File::Temp qw(tempdir);
use JSON::PP;
use Monitor;
use Test::More;
use Time::HiRes qw(sleep time);

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $net = "$root/scripts/nets/lenet5.lua";
for my $plugin (qw(source-video draw-cairo)) {
    plan skip_all => "$plugin was not built" unless -e "$build/plugins/$plugin.so";
}
plan skip_all => 'no ffmpeg, which makes the videos' if system('ffmpeg -version >/dev/null 2>&1');
my $dir = tempdir(CLEANUP => 1);
my $film = "$dir/film.mp4";
system(qw(ffmpeg -v error -y -f lavfi -i testsrc2=size=320x240:rate=20:duration=3 -f lavfi -i sine=duration=3),
       qw(-c:v libx264 -preset ultrafast -c:a aac), $film);

my @common = ("$build/cnnrun", 'monitor', $net, $film, qw(--app classify));
# JSON lines of a text.
sub lines { map { decode_json($_) } split /\n/, shift }
# Frames of a video.
sub frames_of { my ($file) = @_; return scalar(() = `ffprobe -v error -select_streams v -show_entries packet=pts_time -of csv=p=0 $file` =~ /\n/g) }
# A test: these words are refused.
sub wrong { my ($words, $text) = @_; my $said = `@common $words 2>&1`; ok($? >> 8 == 1 && $said =~ $text, $words) or diag($said) }

# ---- parts ----
my @told = lines(scalar `@common --json -o $dir/parts --segment 1`);
my @parts = map { $_->{segment} } grep { $_->{segment} } @told;
is(scalar @parts, 3, 'three parts of three seconds');
is_deeply([map { frames_of($_) } @parts], [20, 20, 20], 'with a second each');
is(scalar(grep { `ffprobe -v error -select_streams a -show_entries packet=pts_time -of csv=p=0 $_` =~ /\d/ } @parts), 3, 'and the sound');
is_deeply([sort @parts], [sort glob "$dir/parts/*"], 'all that is in the folder');
like($parts[0], qr{/monitor-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.mp4$}, 'named by the time');
wrong('--segment 1', qr/--segment: -o names the folder/);
wrong("--segment 1 -o $dir/x.mp4", qr/--segment: -o names the folder/);
wrong("--segment 0.1 -o $dir/x", qr/--segment: want 1 to 86400 seconds/);
wrong("--segment one -o $dir/x", qr/--segment: wanted a number, got "one"/);
wrong("-o $dir/x --segment-limit 5G", qr/--segment-limit: want --segment SECONDS, too/);
wrong("-o $dir/x --segment 5 --segment-limit 5", qr/--segment-limit 5: want a size of 1M or more, such as 500M or 20G/);

# ---- a folder that is held to a size ----
my $noise = "$dir/noise.mp4";
system(qw(ffmpeg -v error -y -f lavfi -i), 'testsrc2=size=320x240:rate=20:duration=4,noise=alls=30:allf=t', qw(-c:v libx264 -preset ultrafast -crf 20), $noise);
mkdir "$dir/held";
for ('monitor-notes.txt', 'monitor-2020-01-01-00-00-00.mp4') { open my $other, '>', "$dir/held/$_"; print $other 'x' x 100 }
utime 1e9, 1e9, "$dir/held/monitor-2020-01-01-00-00-00.mp4";
@told = lines(scalar `$build/cnnrun monitor $net $noise --app classify --json -o $dir/held --segment 1 --segment-limit 1M`);
my @removed = map { $_->{removed} } grep { $_->{removed} } @told;
my $sum = 0;
$sum += -s for glob "$dir/held/monitor-2*.mp4";
ok($sum > 0 && $sum <= 1 << 20, "a folder holds no more than it may: $sum bytes");
is($removed[0], "$dir/held/monitor-2020-01-01-00-00-00.mp4", 'the oldest part goes first');
cmp_ok(scalar @removed, '>', 1, 'others behind it: ' . scalar @removed);
ok(-e "$dir/held/monitor-notes.txt", "what isn't a part stays");

# ---- a disk that takes no more ----
sub limited { # what it says, and its code; files grow to that many bytes and no further
    my ($bytes, @words) = @_;
    my $pid = open my $out, '-|';
    if (!$pid) {
        open STDERR, '>', "$dir/err";
        $SIG{XFSZ} = 'IGNORE';
        exec 'bash', '-c', "ulimit -f $bytes; exec \"\$@\"", 'bash', @words;
    }
    my $text = do { local $/; <$out> } // '';
    close $out;
    return ($text, $? >> 8);
}
my ($text, $code) = limited(20, @common, qw(--json -o), "$dir/full.mp4");
@told = lines($text);
is(scalar(grep { $_->{frame} } @told), 60, 'where a recording fails, frames are looked at on');
my ($lost) = grep { $_->{not_recorded} } @told;
like($lost->{not_recorded} // '', qr/full\.mp4: .*File too large/, 'it is reported');
is($code, 3, 'and so is the exit code');
ok(!-e "$dir/full.mp4", 'half a file is none');
($text, $code) = limited(20, @common, qw(--json -o), "$dir/fuller", qw(--segment 1));
my ($again) = grep { $_->{not_recorded} } lines($text);
is($again->{again}, 5, 'parts are tried again in some seconds');
is(join(' ', glob "$dir/fuller/* $dir/fuller/.m*"), '', 'and nothing is left of the one that failed');

# ---- a file that is gone when it is to begin again ----
my $pid = open my $looped, '-|', "exec @common --json --loop 2>$dir/err" or die;
my ($frames, @away, $back) = (0);
while (my $line = <$looped>) {
    my $got = decode_json($line);
    rename $film, "$film.gone" if ($got->{frame} // 0) == 30;
    push @away, $got if ($got->{source} // '') eq 'away';
    rename "$film.gone", $film if @away == 2 && -e "$film.gone";
    $back = $got if ($got->{source} // '') eq 'back';
    last if $back && $got->{frame} && ++$frames == 10;
}
kill 'INT', $pid;
close $looped;
is_deeply([map { $_->{again} } @away], [1, 2], 'pauses grow');
like($away[0]{why} // '', qr/film\.mp4: .*No such file/, 'why is reported');
cmp_ok($back->{after} // 0, '>=', 2, 'and that it is back');
is($frames, 10, 'with frames');

# ---- a camera that goes away ----
SKIP: {
    skip 'object-page was not built (libmicrohttpd)', 6 unless -e "$build/plugins/object-page.so";
    my $camera = Camera->start(20, '320x240');
    my $monitor = Monitor->start($build, $dir, 'monitor', $net, $camera->url, qw(--app classify --json --segment 60 -o), "$dir/camera");
    $monitor->until(sub { $_[0]{frame} && $_[0]{frame} > 20 });
    $camera->leave;
    my $state = $monitor->until(sub { $_[0]{away} }) // {};
    like($state->{away}{why} // '', qr/no picture for \d+ s|refused/, 'that it is away is in the state');
    $monitor->set('{"threshold":2}');
    ok($monitor->until(sub { $monitor->events($_[0]) =~ /threshold: / }), 'the page is answered meanwhile');
    $camera->back;
    my $last = $state->{frame};
    $state = $monitor->until(sub { !$_[0]{away} && $_[0]{frame} > $last + 10 }) // {};
    like($monitor->events($state), qr/the source is back after \d+ s.*the source is away: /, 'both are events');
    is($monitor->stop, 130, 'Ctrl-C');
    open my $in, '<', "$dir/lines";
    is(join(' ', map { $_->{source} // () } map { decode_json($_) } <$in>) =~ s/(away )+/away /r, 'away back', 'and lines');
    is(scalar(grep { frames_of($_) > 5 } glob "$dir/camera/*.mp4"), 2, 'a part before, and one behind');
}
done_testing;
