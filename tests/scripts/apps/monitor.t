#!/usr/bin/perl
# cnnrun monitor: every frame of a file, the latest of a camera; recorded, ended by a signal; its live page.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Camera;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP;
use Monitor;
use Test::More;
use Time::HiRes qw(sleep time);

my $root = $0 =~ s{tests/scripts/apps/[^/]*$}{}r || './';
my $build = $ENV{CNNRUN_BUILD} // "${root}build";
my $data = ($ENV{CNNRUN_SHARED} // "${root}../shared") . '/data';
my $net = "${root}scripts/nets/lenet5.lua";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
for my $plugin (qw(source-video draw-cairo)) {
    plan skip_all => "$plugin was not built" unless -e "$build/plugins/$plugin.so";
}
plan skip_all => 'no ffmpeg, which makes the videos' if system('ffmpeg -version >/dev/null 2>&1');
my $dir = tempdir(CLEANUP => 1);
my $film = "$dir/film.mp4";
system(qw(ffmpeg -v error -y -f lavfi -i testsrc2=size=320x240:rate=30:duration=2 -f lavfi -i sine=duration=2),
       qw(-c:v libx264 -preset ultrafast -c:a aac), $film);

# JSON lines of a text.
sub lines { map { decode_json($_) } split /\n/, shift }
# The times of the packets of a kind ("v", "a") in a video, as lines in the order of text.
sub packets { my ($file, $kind) = @_; return join '', sort `ffprobe -v error -select_streams $kind -show_entries packet=pts_time -of csv=p=0 $file` }

# ---- a file ----
my @frames = lines(scalar `$build/cnnrun monitor $net $film --app classify --json -o $dir/out.mp4`);
is($?, 0, 'a video is watched to its end');
is(scalar @frames, 60, 'frame by frame');
is_deeply([map { $_->{frame} } @frames], [1 .. 60], 'none is passed over');
ok($frames[-1]{found}[0]{label} =~ /^\d$/, 'each says what is seen');
cmp_ok(scalar(grep { $_->{ms} } @frames), '>', 50, 'nearly all ran ahead, on a thread of their own');
is(packets("$dir/out.mp4", 'v'), packets($film, 'v'), 'the recording has the times');
is(packets("$dir/out.mp4", 'a'), packets($film, 'a'), 'and the sound');
is(scalar lines(scalar `$build/cnnrun monitor $net $film --app classify --json --every 10 --from 1`), 3, 'parts of it');
{
    open my $on, '>', "$dir/on.lua" or die;
    print $on "return function(found, frame) if frame.number % 20 == 0 then frame.tell { n = frame.number, best = found[1][1] } end\n",
              "  if frame.number == 40 then frame.save('$dir/saved.png') end end\n";
    close $on;
    my @told = lines(scalar `$build/cnnrun --output $dir monitor $net $film --app classify -q --on $dir/on.lua`);
    is_deeply([map { $_->{n} } @told], [20, 40, 60], '--on hears of each frame');
    ok(-s "$dir/saved.png", 'and saves one where it may');
    mkdir "$dir/folder";
    open $on, '>', "$dir/on.lua" or die;
    print $on "return function(found, frame) if frame.number == 5 then frame.save(frame.folder .. '/five.jpg') end end\n";
    close $on;
    my $said = `$build/cnnrun monitor $net $film --app classify -q --on $dir/on.lua --output $dir/folder 2>&1`;
    ok($? == 0 && -s "$dir/folder/five.jpg", 'and below the folder of --output behind it') or diag($said);
}
SKIP: {
    skip 'object-post was not built (libcurl)', 1 unless -e "$build/plugins/object-post.so";
    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die;
    my $pid = fork // die;
    if (!$pid) {
        my $client = $server->accept or exit 1;
        my $got = '';
        while ($got !~ /\}$/) { sysread($client, my $part, 4096) or last; $got .= $part }
        open my $out, '>', "$dir/posted" or die; # there before the answer: then we are ended
        print $out $got;
        close $out;
        print $client "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        exit 0;
    }
    my $port = $server->sockport;
    close $server;
    system("$build/cnnrun", 'monitor', $net, $film, qw(--app classify -q --to 0.5 --post), "http://127.0.0.1:$port/seen");
    kill 'TERM', $pid;
    waitpid $pid, 0;
    open my $in, '<', "$dir/posted";
    like(join('', <$in>), qr{^POST /seen .*application/json.*\{"seconds":[\d.]+,"text":"now \d"\}$}s, '--post tells an address');
}
my $said = `$build/cnnrun monitor $net $dir/none.mp4 --app classify 2>&1`;
ok($? && $said =~ /none\.mp4/, 'no such video');
$said = `$build/cnnrun monitor $net $film --app nose 2>&1`;
ok($? && $said =~ /want detect, faces or classify/, 'no such application');
SKIP: {
    my $xl = "$data/darknet/yolo-fastest/yolo-fastest-1.1-xl";
    skip 'no shared/data/darknet, images', 2 unless -e "$xl.weights" && -e "$data/images/dog.jpg";
    system(qw(ffmpeg -v error -y -loop 1 -t 2 -i), "$data/images/dog.jpg", qw(-vf scale=640:480 -r 10 -c:v libx264), "$dir/dog.mp4");
    my $events = `$build/cnnrun monitor $xl.cfg,$xl.weights $dir/dog.mp4`;
    my @came = $events =~ /(\w+) \d+ came/g;
    is("@{[sort @came]}", 'bicycle car dog', 'what stands still comes once');
    unlike($events, qr/went/, 'and stays');
}

{
    my $begun = time;
    my @paced = lines(scalar `$build/cnnrun monitor $net $film --app classify --json --pace real`);
    cmp_ok(time - $begun, '>=', 1.9, 'at its own pace two seconds take two seconds');
    ok(@paced > 10 && $paced[-1]{frame} + $paced[-1]{lost} >= 60, 'of which every frame is seen or counted');
    my $pid = open my $looped, '-|', "exec $build/cnnrun monitor $net $film --app classify --json --loop" or die;
    my ($last, $n) = ({}, 0);
    while (my $line = <$looped>) {
        $last = decode_json($line);
        last if ++$n == 100;
    }
    kill 'INT', $pid;
    close $looped;
    is($last->{frame}, 100, 'a loop goes on behind the last frame');
    cmp_ok($last->{seconds}, '>', 2, 'and so do the seconds');
}
SKIP: {
    my $xl = "$data/darknet/yolo-fastest/yolo-fastest-1.1-xl";
    skip 'no shared/data/darknet, images', 1 unless -e "$xl.weights" && -e "$data/images/person.jpg";
    system(qw(ffmpeg -v error -y -loop 1 -t 1 -i), "$data/images/person.jpg", qw(-vf scale=640:424 -r 10 -c:v libx264), "$dir/person.mp4");
    my $said = `$build/cnnrun monitor $xl.cfg $xl.weights $dir/person.mp4 -q --classes person --on ${root}scripts/on/person.lua -o $dir/came --save-crops $dir/crops 2>&1`;
    my @came = map { s{.*/}{}r } glob "$dir/came/* $dir/crops/*";
    like("@came", qr/^person-1\.jpg person\.mp4-?\S*-1-person-?1?\.png$|^person-1\.jpg person-000003-1-person\.png$/, 'a person who comes is written') or diag($said);
}

# ---- a camera, and its page ----
SKIP: {
    skip 'object-page was not built (libmicrohttpd)', 1 unless -e "$build/plugins/object-page.so";
    my $camera = Camera->start(30, '320x240');
    my $monitor = Monitor->start($build, $dir, 'monitor', $net, $camera->url,
                                 qw(--app classify -o), "$dir/camera.mp4");
    my $port = $monitor->port;
    ok($port, 'the page tells its address');
    my $state = $monitor->until(sub { $_[0]{frame} }) // {};
    is($state->{width}, 320, 'the state is JSON');
    is($state->{app}, 'classify', 'of this application');
    like($monitor->get('/'), qr{200 OK.*Content-Security-Policy: default-src 'none'.*<!doctype html>}s, 'the page');
    unlike($monitor->get('/') . $monitor->get('/page.js') . $monitor->get('/page.css'), qr{(src|href|url|fetch)\s*[=(]\s*["']?https?:}, 'loads nothing from elsewhere');
    my $picture; # drawn on another thread, it may come behind the state
    for (1 .. 200) {
        last if ($picture = $monitor->get('/picture.jpg')) !~ /^HTTP\S+ 503/;
        sleep 0.2;
    }
    like($picture, qr{image/jpeg.*\xff\xd8\xff}s, 'the newest picture');
    my $stream = $monitor->get('/picture.mjpg', 100000);
    cmp_ok(scalar(() = $stream =~ /--frame\r\nContent-Type: image\/jpeg/g), '>', 1, 'pictures one behind the other');
    cmp_ok(scalar(() = $monitor->get('/events', 5000) =~ /event: state\ndata: \{/g), '>', 1, 'states as events');
    like($monitor->get('/nothing'), qr/^HTTP\S+ 404/, 'nothing else');
    like($monitor->ask("GET /state.json HTTP/1.1\nHost: evil.example:$port\n\n", 100), qr/^HTTP\S+ 421/, 'another name of ours gets nothing');
    like($monitor->get('/state.json', 100, "Origin: http://evil.example\n"), qr/^HTTP\S+ 403/, "nor do others' pages");
    like($monitor->set('{"threshold":1}', ''), qr/^HTTP\S+ 401/, 'changes want the token');
    like($monitor->set('{"threshold":1}', "Authorization: Bearer abcdefgi\n"), qr/^HTTP\S+ 401/, 'the right one');
    like($monitor->set('{"governor":"/etc/passwd"}'), qr/^HTTP\S+ 202/, 'and are taken with it');
    like($monitor->set('x' x 5000), qr/^HTTP\S+ 413/, 'unless they are long');
    ok($monitor->until(sub { $monitor->events($_[0]) =~ /governor: none of the choices/ }), 'what is no choice is refused, and told');
  SKIP: {
        skip 'object-tld was not built', 6 unless -e "$build/plugins/object-tld.so";
        my $until = sub {
            my ($wish, $there) = @_;
            $monitor->set(qq({"follow":$wish}));
            return $monitor->until($there) // {};
        };
        my $told = sub { my ($what) = @_; return sub { $monitor->events($_[0]) =~ $what } };
        is($state->{follow}, JSON::PP::false, 'nothing is followed');
        ok($until->('[1,2,"x"]', $told->(qr/follow: want \[x, y/))->{frame}, 'what is no box is reported');
        ok($until->('[5000,5,30,30]', $told->(qr/want x, y.*320 x 240/))->{frame}, 'so is one outside the picture');
        my $seen = $until->('[40,30,90,70]', sub { ref $_[0]{follow} eq 'HASH' })->{follow};
        ok($seen->{lost} || @{$seen->{box}} == 4 && $seen->{confidence} > 0, 'a box is followed, or lost');
        is($until->('false', $told->(qr/nothing any more/))->{follow}, JSON::PP::false, 'until it is enough');
        ok($until->('"all"', $told->(qr/follow: want \[x, y, width, height\], or false/))->{frame}, 'a text is no box');
    }
    # many who say nothing, and two who read slowly
    my @silent = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 1) } 1 .. 100;
    my $frame = $monitor->state->{frame} // 0;
    ok($monitor->until(sub { $_[0]{frame} > $frame + 10 }), 'a hundred who say nothing do no harm');
    undef @silent;
    is($monitor->stop, 130, 'Ctrl-C ends it');
    my $n = () = `ffprobe -v error -select_streams v -show_entries packet=pts_time -of csv=p=0 $dir/camera.mp4` =~ /\n/g;
    cmp_ok($n, '>', 5, "with a whole file ($n frames)");
}
done_testing();
