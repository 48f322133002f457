#!/usr/bin/perl
# cnnrun track: boxes, JSON, drawings, saved models; frames that are broken or of another size; wrong options.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use Test::More;

my $root = abs_path($0 =~ s{tests/scripts/apps/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
my $data = ($ENV{CNNRUN_SHARED} || "$root/../../shared") . '/data/tld/06_car';
$data = "$root/../shared/data/tld/06_car" unless -d $data;
plan skip_all => 'the plugin object-tld is missing' unless -e "$build/plugins/object-tld.so";
my $work = tempdir(CLEANUP => 1);
chdir $work or die;

# stdout, stderr, exit code
sub track {
    my ($words) = @_;
    my $out = `$build/cnnrun track $words 2>$work/err`;
    my $code = $? >> 8;
    open my $in, '<', "$work/err" or die;
    my $err = do { local $/; <$in> } // '';
    return ($out, $err, $code);
}
# The boxes of JSON lines.
sub boxes { map { /"box":\[([^]]*)\]/ ? [split /,/, $1] : undef } split /\n/, $_[0] }

my ($out, $err, $code) = track('--help');
is $code, 0, '--help';
$out = `$build/cnnrun help track`;
like $out, qr/nn_threshold=0\.65 .*authors: 0\.65; document:/s, 'tells options with both values where they differ';
($out, $err, $code) = track('/no/such --box 1,2,30,40');
ok $code != 0 && $err =~ m{/no/such}, 'a source that is not there is named';
for my $box ('1,2,3', '1,2,3,x', '') {
    ($out, $err, $code) = track("/no/such --box '$box'");
    ok $code != 0 && $err =~ /X,Y,WIDTH,HEIGHT/, "--box '$box' is told";
}
($out, $err, $code) = track('/no/such');
ok $code != 0 && $err =~ /--box/, 'nothing to follow is reported';

SKIP: {
    skip "no $data", 24 unless -d $data;
    mkdir 'short';
    # copies: what is written through a link would change the data itself
    copy(sprintf("$data/%05d.jpg", $_), sprintf('short/%05d.jpg', $_)) for 1 .. 40;
    ($out, $err, $code) = track('short --box 142,125,90,39 --json --save model.tld -o drawn');
    is $code, 0, 'a folder is followed' or diag($err);
    my @lines = split /\n/, $out;
    is scalar @lines, 40, 'an object a frame, the first included';
    is $lines[0], '{"box":[142,125,90,39],"confidence":1,"frame":1}', 'which is the box that was given';
    my @seen = boxes($out);
    is scalar(grep { $_ } @seen), 40, 'the car is seen in all of them';
    ok abs($seen[39][0] + 41) < 12 && abs($seen[39][2] - 90) < 18, "and where it is: @{$seen[39]}";
    is scalar(() = glob 'drawn/*.png'), 40, 'a picture is drawn a frame';
    my ($plain) = track('short --box 142,125,90,39 --json');
    for my $how ('--device cpu', '--compare', '--device cpu --compare') {
        is +(track("short --box 142,125,90,39 --json $how"))[0], $plain, "$how: the same boxes";
    }
  SKIP: {
        skip 'no OpenCL device', 2 unless grep { /^opencl:0 / } `$build/cnnrun devices 2>/dev/null`;
        for my $how ('--device opencl:0', '--device opencl:0 --compare') {
            is +(track("short --box 142,125,90,39 --json $how"))[0], $plain, "$how: the same boxes";
        }
    }
    open my $lua, '>', 'states.lua' or die;
    print $lua <<'END';
local c = require "cnnrun"
return function(words)
  local t, picture = c.object("tld", { candidates = 5 }), c.picture(words[1])
  t:init(picture, { 142, 125, 90, 39 })
  local function told(method, ...) print((select(2, pcall(method, t, ...)))) end
  local n = t:windows():shape()[1]
  local votes = c.tensor { shape = { n } }
  told(t.candidates, votes)
  t:prepare(picture)
  told(t.candidates, c.tensor { shape = { 3 } })
  told(t.compared, c.tensor { shape = { 5, 400 } })
  local patches, known = t:candidates(votes)
  print(patches:shape()[1], known:shape()[1], known:shape()[2])
  told(t.compared, c.tensor { shape = { 5, 399 } })
  local box, confidence = t:compared(c.tensor { shape = { 5, 400 } })
  print(#box:shape(), confidence > 0)
  told(t.compared, c.tensor { shape = { 5, 400 } })
end
END
    close $lua;
    like scalar `$build/cnnrun states.lua short/00001.jpg 2>&1`, qr/\A.*prepare comes first\n.*one for each of the \d+ windows\n.*candidates comes first
5\t400\t225\n.*want f32, 5 x 400\n1\ttrue\n.*candidates comes first\n\z/, 'stages in order, of the right sizes';
    open $lua, '>', 'smallest.lua' or die;
    print $lua <<'END';
local c = require "cnnrun"
return function(words)
  local picture = c.picture(words[1])
  for _, try in ipairs { { 18, 20 }, { 18, 20, 1 }, { 12, 60 }, { 80, 40 } } do
    local t, least = c.object("tld", { shrink = try[3] or .5 }), math.huge
    t:init(picture, { 150, 120, try[1], try[2] })
    local w = t:windows()
    for i = 3, #w, 4 do least = math.min(least, w[i], w[i + 1]) end
    print(math.tointeger(least))
  end
end
END
    close $lua;
    is scalar `$build/cnnrun smallest.lua short/00001.jpg 2>&1`, "9\n18\n12\n28\n", 'windows of a small object are as small as half of it';
    my ($few) = track('short/00001.jpg short/00002.jpg short/00003.jpg --box 142,125,90,39 --json --threads 1');
    is scalar(split /\n/, $few), 3, 'pictures one by one are frames, too';
  SKIP: {
        skip 'source-video was not built', 1 unless -e "$build/plugins/source-video.so";
        my @made = track('short --box 142,125,90,39 -q -o short.mp4');
        ok $made[2] == 0 && -s 'short.mp4', 'a folder becomes a video' or diag($made[1]);
    }
    is((track('short --box 142,125,90,39 --json --set threads=3'))[0], $out, 'the same with three threads');
    isnt((track('short --box 142,125,90,39 --json --seed 7'))[0], $out, 'not the same by another seed');
    ($out, $err, $code) = track('short --json --model model.tld');
    @seen = boxes($out);
    ok $code == 0 && (grep { $_ } @seen) >= 38, 'what was learnt finds it without a box';
    ($out, $err, $code) = track('short --json --model model.tld --box 142,125,90,39');
    ok $code == 0 && (grep { $_ } boxes($out)) == 40, 'or from a box on';
    ($out, $err, $code) = track('short --model short/00001.jpg');
    ok $code != 0 && $err =~ /no tracker's model/, 'a model that is none is reported';
    ($out, $err, $code) = track('short --box 142,125,90,39 --save short/00001.jpg');
    ok $code != 0 && -s 'short/00001.jpg' < 10000, 'a model does not overwrite a frame';
    ($out, $err, $code) = track('short --box 500,125,90,39');
    ok $code != 0 && $err =~ /320 x 240/, 'a box outside is told, and how large the picture is';
    ($out, $err, $code) = track('short --box 142,125,90,39 --set nn=1');
    ok $code != 0 && $err =~ /no option 'nn'/, 'so is an option that there is not';

    unlink sprintf('short/%05d.jpg', $_) for 10, 20;
    open my $broken, '>', 'short/00010.jpg' or die;
    print $broken "no picture";
    close $broken;
    copy((glob "$root/scripts/nets/digits/*.png")[0], 'short/00020.png');
    ($out, $err, $code) = track('short --box 142,125,90,39 --json');
    @lines = split /\n/, $out;
    @seen = boxes($out);
    is scalar @lines, 40, 'a broken frame and one of another size are survived';
    ok !$seen[9] && $lines[9] =~ /"error"/ && $err =~ /frame 10/ && $code == 4, 'the broken one is reported';
    ok !$seen[19], 'nothing is seen in the other';
    ok $seen[12] && $seen[30], 'and it goes on behind both';
}
done_testing;
