#!/usr/bin/perl
# Every common option in every application: accepted, or refused with a reason.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $root = $0 =~ s{tests/scripts/apps/[^/]*$}{}r || './';
my $build = abs_path($ENV{CNNRUN_BUILD} // "${root}build");
my $net = abs_path("${root}scripts/nets/lenet5.lua");
my $one = abs_path("${root}scripts/nets/digits/one.png");
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $dir = tempdir(CLEANUP => 1);

# stdout, stderr, exit code
sub program {
    my @words = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/out";
        open STDERR, '>', "$dir/err";
        exec "$build/cnnrun", @words;
    }
    waitpid $pid, 0;
    my $code = $? >> 8;
    my ($out, $err) = map { open my $in, '<', "$dir/$_"; local $/; scalar(<$in>) // '' } qw(out err);
    return ($out, $err, $code);
}

my ($options) = program(qw(help options));
my @options = $options =~ /^  (?:-\w, )?(--[\w-]+)/gm;
my ($applications) = (program('help'))[0] =~ /^applications: (.*)$/m;
my @applications = split ' ', $applications;
cmp_ok(scalar @options, '>', 30, 'the options are listed: ' . scalar @options);
cmp_ok(scalar @applications, '>', 8, "and the applications: @applications");

# A value that parses; what it does is not asked here.
my %flags = map { $_ => 1 } qw(--json --verbose --quiet --deterministic --adapt --no-inplace --no-share --no-verify --no-cache --trust --letterbox);
my %values = ('--threads' => 1, '--memory' => '1G', '--memory-limit' => '1G', '--cache-limit' => '1G', '--symbol' => 'a=1',
              '--weights-type' => 'fp16', '--arithmetic' => 'f32', '--channels' => 'rgb', '--cache' => "$dir/cache", '--cache-policy' => 'fifo',
              '--cpu-isa' => 'generic', '--sysfs-root' => '/', '--hang-ms' => 90000, '--mode' => 'reference');
# An option as words, with a value unless it is a flag.
sub words { my ($option) = @_; return $flags{$option} ? $option : ($option, $values{$option} // 'x') }

for my $application (@applications) {
    my (@lost, $taken, $refused);
    my ($out, $err, $code) = program($application, (map { words($_) } @options), '--help');
    if ($code == 0 && $out =~ /^usage: cnnrun $application/) {
        ($taken, $refused) = (scalar @options, 0);
    } else {
        for my $option (@options) {
            ($out, $err, $code) = program($application, words($option), '--help');
            if ($code == 0 && $out =~ /^usage: cnnrun $application/) { $taken++ }
            elsif ($code == 1 && $err =~ /^cnnrun $application: \Q$option\E has no use here: \w.{10}/) { $refused++ }
            else { push @lost, "$option: $code $err" }
        }
    }
    is("@lost", '', sprintf '%s: %d taken, %d refused with a reason', $application, $taken // 0, $refused // 0);
}

# What they do: in the words of the program, with its codes.
my $classified = (program('classify', $net, $one))[0];
like($classified, qr/^ *9\d\.\d% +1$/m, 'a digit');
is((program('classify', $net, $one, qw(--threads 1 --memory-limit 1G --device cpu --deterministic --cpu-isa generic)))[0], $classified,
   'the same with one thread, by generic kernels');
is((program(qw(--threads 1 --device cpu classify), $net, $one))[0], $classified, 'options in front of the application');
is((program('classify', $net, '--weights', $net =~ s/lua$/cnr/r, $one))[0], $classified, 'weights by an option');
is((program('classify', $net, $net =~ s/lua$/cnr/r, $one))[0], $classified, 'and behind the net');
my %plan; # by the options of planning
for my $words ('', '--no-inplace', '--no-share', '--mode reference') {
    $plan{$words} = (program('show', $net, '--no-rewrite', 'fuse', split(' ', $words), '--json'))[0];
    ($plan{"$words arena"}) = $plan{$words} =~ /"arena_bytes":(\d+)/;
}
cmp_ok($plan{'--no-share arena'}, '>', $plan{' arena'}, 'without sharing values take more memory');
cmp_ok($plan{'--no-inplace arena'}, '>=', $plan{' arena'}, 'without results in place of operands not less');
is(() = $plan{'--mode reference'} =~ /"kernel":"(?!reference")/g, 0, 'the reference mode has no other kernel');
my ($told) = (program('classify', $net, $one, qw(--mode reference)))[0];
is($told, $classified, 'and the same answer');
my $nowhere = "$one/cache"; # a file is no folder
is(() = (program('run', $net, $one, '--cache', $nowhere))[1] =~ /warning: cache: nothing is kept: \Q$nowhere\E/g, 1, 'one warning');
is(() = (program('run', $net, $one, '--cache', $nowhere))[1] =~ /warning/g, 1, 'and no other');
my @cases = (
    [11, qr/^cnnrun run: nope: no board .*\.lua\) or one of: adreno_330, .*odroid_xu3/, 'run', $net, $one, qw(--board nope)],
    [3, qr/--cache: can't be written/, 'warm', $net, '--cache', $nowhere],
    [1, qr/--mode: reference needs a device with host memory: want --device cpu or none, got opencl:0|opencl:0: no such device/, 'run', $net, $one,
     qw(--mode reference --device opencl:0)],
    [9, qr/limit is 100/, 'classify', $net, $one, qw(--memory-limit 100)],
    [6, qr/cpu:nope: no such device/, 'classify', $net, $one, qw(--device cpu:nope)],
    [1, qr/unknown option --threds; did you mean --threads\?/, 'classify', $net, $one, qw(--threds 1)],
    [1, qr/unknown option --labells; did you mean --labels\?/, 'detect', $net, $one, qw(--labells x)],
    [1, qr/--conf 25: want a number from 0 to 1/, 'detect', $net, $one, qw(--conf 25)],
    [1, qr/--threshold has no use here: the minimum score is --conf/, 'monitor', $net, $one, qw(--threshold 0.5)],
    [1, qr/a folder is taken for MTCNN's three nets/, 'detect', $dir, $one],
    [1, qr/--top: wanted a whole number/, 'classify', $net, $one, qw(--top many)],
    [1, qr/--top 1000: want 1 to 100 classes/, 'classify', $net, $one, qw(--top 1000)],
    [1, qr/--weights-type: wanted one of f32 fp16/, 'classify', $net, $one, qw(--weights-type f12)],
    [6, qr/none\.lua: no such file/, 'classify', "$dir/none.lua", $one],
    [6, qr/no\.png/, 'classify', $net, "$dir/no.png"],
    [6, qr/none\.csv/, 'power', "$dir/none.csv", "$dir/x.svg"],
    [1, qr/one word too many/, 'power', 'a', 'b', 'c'],
    [1, qr/something is missing: cnnrun classify NET/, 'classify', $net],
    [1, qr/--mean x\.png: want a number for each channel/, 'classify', $net, $one, qw(--mean x.png)],
);
for my $case (@cases) {
    my ($wanted, $text, @words) = @$case;
    my ($out, $err, $code) = program(@words);
    my $said = join ' ', map { s{.*/}{}r } @words;
    ok($code == $wanted && $err =~ $text, "$said: $wanted") or diag("$code: $err");
}
my ($out, $err, $code) = program('classify', "$dir/none.lua", $one, '--json');
is_deeply(eval { decode_json($out) }, { error => { code => 6, place => "$dir/none.lua", text => 'no such file' } }, 'an error is an object, too');
($out, $err, $code) = program('detect', $net, '0');
like($err, qr/cnnrun classify NET PICTURE/, 'a net of another task is told before the camera is opened');
SKIP: {
    skip 'source-video was not built, or there is a camera', 1 if !-e "$build/plugins/source-video.so" || -e '/dev/video0';
    chdir $dir or die;
    ($out, $err, $code) = program('classify', $net, '0');
    ok($code && $err =~ m{0: no camera is here: there is no /dev/video0}, '0 is the first camera, which is not here');
}
# Sources as people name them.
open my $list, '>', "$dir/list.txt" or die;
print $list "$one\n$one\n";
close $list;
($out, $err, $code) = program('classify', $net, "images:$dir/list.txt");
is($code == 0 && (() = $out =~ /one\.png/g), 2, 'a list of pictures without classes') or diag $err;
($out, $err, $code) = program('track', "$dir/list.txt", '--box', '1,1,9,9');
like($err, qr{list\.txt: a list of pictures is named images:}, 'which is named as one');
($out, $err, $code) = program('classify', $net, $one, '--from', '-1');
like($err, qr/--from -1: want seconds of the video, from 0 on/, 'a time before the start');
($out, $err, $code) = program('monitor', $net, "${root}scripts/nets/lenet5.cnr", qw(--app classify));
like($err, qr{no source reads this|no such file}, 'a net in the place of the pictures');
unlike($err, qr/nil value/, 'is reported, and is no fault of the program');

done_testing;
