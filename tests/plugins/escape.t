#!/usr/bin/perl
# The sandbox, seen from outside by strace: a script without --trust tries every protocol, demuxer and device that
# FFmpeg lists, every source, object and writer that is registered, playlists, links, odd names. It opens no file
# and calls no address that its command line does not name. With the name there, the same call works.
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use IO::Socket::INET;
use JSON::PP;
use Test::More;

my $root = "$FindBin::Bin/../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'no strace, which sees what is opened' if system('strace -V >/dev/null 2>&1');
plan skip_all => 'strace may trace nothing here' if system('strace -f -o /dev/null true >/dev/null 2>&1');
my $has_video = -e "$build/plugins/source-video.so";
my $has_ffmpeg = !system('ffmpeg -version >/dev/null 2>&1');
my $dir = tempdir(CLEANUP => 1);
mkdir "$dir/$_" for qw(secret work);
chdir "$dir/work" or die;
mkdir $_ for qw(named out);
$ENV{CNNRUN_OPENCL} = 'none';

# Writes a file, given as name and text; dies if it can't.
sub put { my ($name, $text) = @_; open my $out, '>:raw', $name or die "$name: $!"; print $out $text; close $out; return $name }
# The bytes of a file; '' if it can't be read.
sub slurp { open my $in, '<:raw', $_[0] or return ''; local $/; return scalar(<$in>) // '' }
# A text of Lua with all bytes escaped.
sub quoted { return '"' . join('', map { sprintf '\\x%02x', ord } split //, $_[0]) . '"' }

# ---- what must not be seen, under a name that no other file has ----
my $pixels = "P6\n8 8\n255\n" . pack 'C*', map { $_ % 256 } 1 .. 192;
put("../secret/$_", $pixels) for qw(hidden.ppm hidden.png hidden.txt hidden1.ppm);
put('named/here.ppm', $pixels);
if ($has_ffmpeg) {
    system(qw(ffmpeg -v error -y -f lavfi -i testsrc2=size=32x32:rate=10:duration=1 -c:v mpeg4), '../secret/hidden.mp4');
    system('cp', '../secret/hidden.mp4', 'named/here.mp4');
}
my $secret = "$dir/secret/hidden";

# ---- two servers: the first is named; of both it is known who called ----
# A socket that listens on a free port
sub listen_on { return IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 50, ReuseAddr => 1) // die }
my ($named, $other) = (listen_on(), listen_on());
my ($here, $there) = map { '127.0.0.1:' . $_->sockport } $named, $other;
my $server = fork // die;
if (!$server) {
    $SIG{PIPE} = 'IGNORE';
    my $film = slurp('named/here.mp4');
    my $list = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n%s\n#EXT-X-ENDLIST\n";
    my %at = ('/list.m3u8' => sprintf($list, "http://$there/segment.ts"), '/file.m3u8' => sprintf($list, "file://$secret.mp4"),
              '/key.m3u8' => sprintf("#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"http://$there/key\"\n#EXT-X-TARGETDURATION:1\n%s", "#EXTINF:1,\nx.ts\n#EXT-X-ENDLIST\n"),
              '/list.mpd' => "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\" mediaPresentationDuration=\"PT1S\"><Period><AdaptationSet mimeType=\"video/mp4\"><Representation id=\"1\" bandwidth=\"1000\"><BaseURL>http://$there/x.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>",
              '/list.sdp' => "v=0\no=- 1 1 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video " . $other->sockport . " RTP/AVP 33\n",
              '/list.ffconcat' => "ffconcat version 1.0\nfile '$secret.mp4'\n", '/here.mp4' => $film);
    while (my $client = $named->accept) {
        my ($what, $path) = (<$client> // '') =~ m{^(\w+) (\S+)};
        while (defined(my $line = <$client>)) { last if $line =~ /^\r?\n$/ }
        $path //= '';
        if (($what // '') eq 'DESCRIBE' || $path =~ m{^rtsp:}) { print $client "RTSP/1.0 302 Found\r\nCSeq: 1\r\nLocation: rtsp://$there/x\r\n\r\n" }
        elsif ($path eq '/away') { print $client "HTTP/1.0 302 Found\r\nLocation: http://$there/x.mp4\r\nContent-Length: 0\r\n\r\n" }
        elsif ($path eq '/round') { print $client "HTTP/1.0 302 Found\r\nLocation: /here.mp4\r\nContent-Length: 0\r\n\r\n" }
        else { my $body = $at{$path} // ''; print $client "HTTP/1.0 200 OK\r\nContent-Length: " . length($body) . "\r\n\r\n$body" }
        close $client;
    }
    exit 0;
}
END { chdir '/'; if ($server) { local $?; kill 'KILL', $server; waitpid $server, 0 } }

# ---- attempts: Lua expressions ----
# The names that a list of ffmpeg has
sub ffmpeg_lists { my $what = shift; return $has_ffmpeg ? grep { /^[\w,]+$/ } map { /^\s*(?:[D.E ]{1,3}\s+)?([\w,]+)(?:\s|$)/ ? $1 : () } `ffmpeg -v error -$what` : () }
my @protocols = ffmpeg_lists('protocols');
my @demuxers = map { split /,/ } ffmpeg_lists('demuxers'), ffmpeg_lists('devices');
my @plugins = map { decode_json($_) } `$build/cnnrun plugins --json`;
my @sources = map { @{ $_->{provides}{source} // [] } } @plugins;
my @objects = map { @{ $_->{provides}{object} // [] } } @plugins;
my @specs = map { ("$secret.$_", "../secret/hidden.$_", "named/../../secret/hidden.$_", "file:$secret.$_", "file://$secret.$_") } qw(mp4 ppm png txt);
for my $p (map { ($_, uc) } @protocols, qw(http file data subfile concat crypto cache async fd pipe tee)) {
    push @specs, "$p:$secret.mp4", "$p://$secret.mp4", "$p://$there/x.mp4", "$p:http://$there/x.mp4", "$p+http://$there/x.mp4", "$p+file:$secret.mp4";
}
push @specs, "subfile,,start,0,end,0,,:$secret.mp4", "concat:$secret.mp4|$secret.mp4", "concat:named/here.mp4|$secret.mp4", 'pipe:0', 'fd:0', '-',
    "crypto+file:$secret.mp4", "data:video/mp4;base64,AAAA", "http:\\\\$there/x", " http://$there/x", "http://$here\@$there/x.mp4", "http://$there/#http://$here/here.mp4",
    "named/%2e%2e/secret/hidden.mp4", "$dir/secret/hidden%d.ppm", "$dir/secret/*.ppm", "../secret", "images:../secret", "images:../secret/hidden.txt";
for my $d (@demuxers, qw(lavfi tty)) {
    push @specs, map { "device:$d:$_" } "$secret.txt", "http://$there/x", "movie=$secret.mp4", "movie=http\\\\://$there/x", "movie=filename=$secret.mp4";
    push @specs, "video:device:$d:$secret.txt", "DEVICE:$d:$secret.txt";
}
push @specs, map { ("$_:$secret.ppm", "$_:$dir/secret", "$_:http://$there/x.ppm") } @sources, 'video', 'images';
push @specs, map { "$_,shift=1" } "$secret.ppm", "device:tty:$secret.txt", "http://$there/x.mp4";

# what a folder that is named holds and leads out of it
symlink "$secret.ppm", 'named/link.ppm';
symlink '../../secret', 'named/away';
symlink "$secret.mp4", 'named/link.mp4';
my @ways = ("$secret.mp4", '../../secret/hidden.mp4', "file://$secret.mp4", "http://$there/x.mp4");
my $n = 0;
for my $to (@ways) {
    $n++;
    my %text = (ffconcat => "ffconcat version 1.0\nfile '$to'\n", m3u8 => "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n$to\n#EXT-X-ENDLIST\n",
        sdp => "v=0\no=- 1 1 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video " . $other->sockport . " RTP/AVP 33\n",
        mpd => "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\"><Period duration=\"PT1S\"><AdaptationSet mimeType=\"video/mp4\"><Representation id=\"1\" bandwidth=\"9\"><BaseURL>$to</BaseURL></Representation></AdaptationSet></Period></MPD>",
        txt => "$to 0\n$secret.ppm 0\n../../secret/hidden.ppm 1\n", asx => "<asx><entry><ref href=\"$to\"/></entry></asx>");
    while (my ($kind, $text) = each %text) {
        push @specs, put("named/list$n.$kind", $text), put("named/list$n.$kind.mp4", $text), "video:named/list$n.$kind", "images:named/list$n.$kind";
    }
}
push @specs, qw(named/link.ppm named/away named/away/hidden.ppm named/link.mp4 images:named/away named), "$dir/named/link.mp4", 'named/away/hidden%d.ppm', 'named/l*.ppm';
# what the named server says
push @specs, map { "http://$here/$_" } qw(away list.m3u8 file.m3u8 key.m3u8 list.mpd list.sdp list.ffconcat);
my @named_urls = map { "http://$here/$_" } qw(away list.m3u8 file.m3u8 key.m3u8 list.mpd list.sdp list.ffconcat here.mp4);
push @named_urls, "rtsp://$here/x";
push @specs, "rtsp://$here/x";

my %done;
@specs = grep { !$done{$_}++ } @specs;
my @lua = map { my $s = quoted($_); "{ 'samples', $s }" } @specs;
push @lua, map { my $s = quoted($_); ("{ 'picture', $s }", "{ 'feed', $s }") } grep { !/^http:..\Q$here\E|^rtsp/ && /hidden|\Q$there\E/ && (/^(device|video|http|file|\/|secret|named|images)/) } @specs;
push @lua, map { my $s = quoted($_); ("{ 'train', $s }", "{ 'evaluate', $s }") } "device:tty:$secret.txt", "http://$there/x.mp4", "images:$secret.txt", "$dir/secret", "named/list1.txt";
for my $name (@objects, 'post', 'page', 'nosuch') {
    push @lua, map { "{ 'object', '$name', { $_ } }" } '', "url = 'http://$there/x'", "url = 'http://$here/other'", "url = 'file://$secret.txt'", "url = 'gopher://$there/x'", 'port = 0',
        "port = " . ($other->sockport + 1), "port = 0, address = '0.0.0.0'", "path = '$secret.txt'", "file = '$secret.txt'", "model = '$secret.txt'", "font = '$secret.txt'", "device = '$secret.txt'";
}
for my $end (qw(png mp4 mkv avi gif webm mov m3u8 mpd jpg ts flv ffm sdp rtp txt cnr onnx npy), 'hidden-%d.png') {
    my @to = ("$dir/secret/hidden-new.$end", "../secret/hidden-new.$end", "named/../../secret/hidden-new.$end", "named/away/hidden-new.$end", "http://$there/new.$end", "tcp://$there/new.$end", "rtmp://$there/$end", "tee:$secret-new.$end", "file:$secret-new.$end");
    push @lua, map { my $s = quoted($_); ("{ 'writer', $s }", "{ 'write', $s }", "{ 'save', $s }") } @to;
}
push @lua, map { "{ 'writer', 'out/x.mp4', { from = " . quoted($_) . " } }" } "device:tty:$secret.txt", "http://$there/x.mp4", "$secret.mp4", 'named/link.mp4';
push @lua, map { "{ 'writer', 'out/y.$_' }" } qw(m3u8 mpd jpg ts flv sdp);
push @lua, map { "{ 'gauges', { $_ } }" } "root = '$dir/secret'", "address = '$there'", "address = '$secret.txt'", "root = '$secret.txt'";
push @lua, map { "{ '$_', " . quoted("$secret.txt") . " }" } qw(text script load exists tensor);
push @lua, "{ 'govern', { board = " . quoted("$secret.txt") . " } }", "{ 'govern', { replay = " . quoted("$secret.txt") . " } }", "{ 'govern', { policy = " . quoted("$secret.txt") . " } }",
    "{ 'govern', { scene = " . quoted("$secret.txt") . " } }", "{ 'load', 'nets.lenet5', { weights = " . quoted("$secret.txt") . " } }", "{ 'load', 'nets.lenet5', { labels = " . quoted("$secret.txt") . " } }",
    "{ 'load', 'nets.lenet5', { placed = " . quoted("$dir/secret") . " } }", "{ 'load', 'nets.lenet5', { policy = " . quoted("$secret.txt") . " } }";
put('attempts.lua', "return {\n" . join(",\n", @lua) . "}\n");

# Does each, as far as it goes; told is what came of it.
put('attack.lua', <<'END');
local c = require "cnnrun"
local picture = c.tensor { shape = { 8, 8, 3 }, dtype = "u8" }
local ways = {
  samples = function(spec) local s <close> = c.samples(spec); for _ in s:each(2) do end end,
  picture = function(spec) c.picture(spec) end,
  feed = function(spec) local f <close> = c.feed(spec); f:next() end,
  train = function(spec) c.load("nets.lenet5", { weights = "random:1" }):train { data = spec, epochs = 1, batch = 1, limit = 2 } end,
  evaluate = function(spec) c.load("nets.lenet5", { weights = "random:1" }):evaluate { data = spec } end,
  object = function(name, options) local o <close> = c.object(name, options); if name == "post" then o:send("{}") end end,
  writer = function(spec, options) local w = c.writer(spec, options); w:write(picture); w:close() end,
  write = function(path) c.write(path, "x") end,
  save = function(path) picture:save(path) end,
}
return function()
  for _, a in ipairs(require "attempts") do
    local good, why = pcall(ways[a[1]] or c[a[1]], a[2], a[3])
    print(good and "done" or "refused", a[1], (tostring(a[2]):gsub("[^%g ]", "?")), good and "" or (tostring(why):gsub("%s+", " ")))
  end
end
END

my $quick = system('strace --seccomp-bpf -f -o /dev/null true >/dev/null 2>&1') ? '' : '--seccomp-bpf';
sub traced { # what it opened and whom it called, a line each; its own output goes to the file `to`
    my ($to, @words) = @_;
    unlink 'trace';
    system("timeout 280 strace $quick -f -qq -s 400 -e trace=open,openat,openat2,creat,connect,bind,sendto,sendmsg,execve,rename,link,symlink,mkdir,unlink -o trace " .
           join(' ', map { "'$_'" } "$build/cnnrun", @words) . " >$to 2>err </dev/null");
    return $? >> 8, split /\n/, slurp('trace');
}
# System calls of a trace that reach what is hidden.
sub escapes { return grep { !/AF_UNIX|AF_NETLINK/ && (/hidden/ && !/^\d+ +execve/ || /(connect|bind|sendto|sendmsg)\(.*(sin6?_port)/) } @_ }
my $own = $named->sockport;
my ($code, @seen) = traced('told', '--output', 'out', 'attack.lua', 'named', @named_urls);
my @bad = grep { !/connect\(.*sin_port=htons\($own\).*127\.0\.0\.1/ } escapes(@seen);
is($code, 0, scalar(@lua) . ' attempts: the script comes to its end') or diag slurp('err');
cmp_ok(scalar(@lua), '>', 1000, 'protocols, demuxers, devices, sources, objects, writers') if $has_video && $has_ffmpeg;
is(scalar(@bad), 0, 'no file opened, nobody called beyond the command line') or diag join "\n", @bad[0 .. ($#bad < 20 ? $#bad : 20)];
my @told = split /\n/, slurp('told');
is(scalar(@told), scalar(@lua), 'each was tried');
my @away = grep { /^done/ && /hidden|\Q$there\E/ } @told;
is(scalar(@away), 0, 'and none went through') or diag join "\n", @away[0 .. ($#away < 20 ? $#away : 20)];
$other->blocking(0);
ok(!$other->accept, 'the other server was not called');

# ---- with the name on the command line ----
put('take.lua', <<'END');
local c = require "cnnrun"
return function(args)
  local n = 0
  for _ in c.samples(args[1]):each(3) do n = n + 1 end
  print(n)
end
END
# How many elements the source gives; empty: it is refused.
sub takes { my @words = @_; my $n = `timeout 60 $build/cnnrun take.lua '$words[0]' 2>err`; chomp $n; return $n || slurp('err') }
is(takes('../secret/hidden.ppm'), 1, 'a picture that is named');
is(takes('../secret'), 3, 'a folder') unless $has_video;
is(takes('../secret/*.ppm'), 2, 'a pattern');
put('../secret/list', "hidden.ppm 0\n$secret.txt 1\n");
is(takes('images:../secret/list'), 2, 'a list, and what it names');
put('named/list', "../../secret/hidden.ppm 0\n");
put('list.lua', 'local c = require "cnnrun"; return function(args) for _ in c.samples("images:" .. args[1]):each() do print(1) end end');
like(`$build/cnnrun list.lua named/list 2>&1`, qr/hidden\.ppm' may not be read/, 'one that the script may write does not lead out');
like(`$build/cnnrun --output named list.lua named/list images:named/list 2>&1`, qr/hidden\.ppm' may not be read/, 'by no way');
SKIP: {
    skip 'source-video or ffmpeg is not there', 8 unless $has_video && $has_ffmpeg;
    is(takes('../secret/hidden.mp4'), 3, 'a video');
    is(takes("http://$here/here.mp4"), 3, 'a URL');
    is(takes("http://$here/round"), 3, 'which leads on within its server');
    like(takes("http://$here/away"), qr/leads to http:..\Q$there\E.x\.mp4/, 'and not to another');
    for my $name ('http_capture.mp4', '100%.mp4', 'device:x.mp4', 'rtsp_x', 'video:x.mp4', 'file:x.mp4', 'mnist:x.mp4', 'images:1.mp4', 'x*.mp4', 'a,shift=1.mp4', 'HTTP:') {
        system('cp', 'named/here.mp4', $name);
        is(takes($name), 3, "a file is a file: $name");
    }
    mkdir 'http:';
    system('cp', 'named/here.mp4', 'http:/x.mp4');
    is(takes('http:/x.mp4'), 3, 'one in a folder of that name');
}
SKIP: {
    skip 'object-post was not built', 1 unless -e "$build/plugins/object-post.so";
    put('post.lua', 'local c = require "cnnrun"; return function(args) c.object("post", { url = args[1]:gsub("^%-%-post=", "") }):send("{}") end');
    is(system("$build/cnnrun post.lua --post=http://$here/x 2>err"), 0, 'posted where the command line says') or diag slurp('err');
}
# ---- a plugin that does not tell what it touches ----
SKIP: {
    my $ticks = "$build/tests/core/host/gauges/gauges.so";
    skip "no $ticks", 4 unless -e $ticks;
    put('ticks.lua', 'local c = require "cnnrun"; return function(args) print(#c.samples("ticks:" .. args[1])) end');
    my ($told) = grep { $_->{name} eq 'gauges' } map { decode_json($_) } `$build/cnnrun --plugin-dir $ticks plugins --json`;
    ok($told && !exists $told->{touches}, 'cnnrun plugins has nothing to tell of it');
    my $said = `$build/cnnrun --plugin-dir $ticks ticks.lua 3 2>&1`;
    like($said, qr/plugin gauges may touch anything, since it does not tell what/, 'it gets only what is named in whole');
    is(`$build/cnnrun --plugin-dir $ticks ticks.lua 3 ticks:3 2>&1`, "3\n", 'as here');
    is(`$build/cnnrun --plugin-dir $ticks --trust ticks.lua 3 2>&1`, "3\n", 'or all with --trust');
}
done_testing();
