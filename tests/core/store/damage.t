#!/usr/bin/perl
# A .cnr with damaged weights neither runs nor is written to a new file as valid. Digests are compared when
# data is first read, and not if nothing reads it.
use strict;
use warnings;
use Digest::SHA qw(sha256);
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
my $dir = tempdir(CLEANUP => 1);
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $five = 'scripts/nets/digits/five.png';

# Exit code, stdout, stderr.
sub run {
    my @words = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/out" or die;
        open STDERR, '>', "$dir/err" or die;
        exec "$build/cnnrun", @words or die;
    }
    waitpid $pid, 0;
    return ($? >> 8, map { local (@ARGV, $/) = ($_); my $t = <>; $t // '' } "$dir/out", "$dir/err");
}
# The bytes of a file.
sub bytes { local (@ARGV, $/) = (shift); binmode ARGV; my $t = <>; return $t }
# Writes the text to a file; dies if it can't.
sub write_to { my ($to, $text) = @_; open my $f, '>:raw', $to or die; print $f $text; close $f }

my ($code, $out, $err) = run('convert', 'scripts/nets/lenet5.lua', '-o', "$dir/sound.cnr");
is($code, 0, 'a sound net') or diag($err);
my $sound = bytes("$dir/sound.cnr");
my $data = unpack 'Q<', substr $sound, 40, 8;

# Turns a bit in the data of the first weight whose name fits and tells which.
my %where;
for (my $at = $data; $at < length $sound && keys %where < 8; $at += 64) {
    my $broken = $sound;
    substr($broken, $at, 1) ^= "\x10";
    write_to("$dir/probe.cnr", $broken);
    my (undef, undef, $told) = run('check', "$dir/probe.cnr");
    my ($name) = $told =~ /(\S+) is damaged/ or next;
    $where{$name} //= $at;
    my %skip = ('conv2.weight' => 25000 * 4, 'ip1.weight' => 400000 * 4, 'ip2.weight' => 5000 * 4,
                'conv1.weight' => 500 * 4);
    $at += int(($skip{$name} // 64) / 64) * 64 - 64 if $at == $where{$name};
}
# Damages one place of a file and tells what reads it.
sub damaged {
    my ($name, $file) = @_;
    my $text = $sound;
    substr($text, $where{$name}, 1) ^= "\x10";
    write_to("$dir/$file", $text);
    return "$dir/$file";
}
my @names = ('conv1.weight', 'conv1.bias', 'conv2.weight', 'ip1.weight');
ok($where{$_}, "$_ is found in the file") for @names;

my (undef, $answer) = run('run', '--json', "$dir/sound.cnr", $five);
$answer =~ s/"ms":[^,]*,//;
for my $name (@names[0, 1, 3]) {
    my $file = damaged($name, 'broken.cnr');
    my %command = (
        run => ['run', $file, $five],
        bench => ['bench', '--runs', 1, $file],
        warm => ['warm', $file, '--cache', "$dir/warmed"],
        convert => ['convert', $file, '-o', "$dir/to.cnr"],
        'convert --encode' => ['convert', $file, '--encode', 'int8', '-o', "$dir/to.cnr"],
        export => ['export', $file, '-o', "$dir/to.onnx"],
        'run --weights' => ['run', 'scripts/nets/lenet5.lua', '--weights', $file, $five],
        'convert --weights' => ['convert', 'scripts/nets/lenet5.lua', '--weights', $file, '-o',
                                "$dir/to.cnr"],
    );
    for my $reader (sort keys %command) {
        next if $reader eq 'convert --encode' && $name !~ /ip1/;
        ($code, $out, $err) = run(@{$command{$reader}});
        ok($code == 4 && $err =~ /broken\.cnr.*damaged/ && !-e "$dir/to.cnr" && !-e "$dir/to.onnx",
           "$name damaged: $reader refuses") or diag("$code: $err");
        unlink "$dir/to.cnr", "$dir/to.onnx";
    }
    ok(!glob("$dir/warmed/*.plan"), "$name damaged: and no plan is stored");
}
my $file = damaged('ip1.weight', 'broken.cnr');
is((run('show', $file))[0], 0, 'show reads no weights');
is((run('run', '--no-verify', $file, $five))[0], 0, '--no-verify runs what there is');
is((run('run', '--no-verify', 'scripts/nets/lenet5.lua', '--weights', $file, $five))[0], 0,
   'filled by it, too');
is((run('convert', '--no-verify', $file, '-o', "$dir/believed.cnr"))[0], 0, 'and writes it');
is((run('check', "$dir/believed.cnr"))[0], 0, 'as its own');

# Files of before have no fingerprints: their digests are compared.
my $old = bytes('scripts/nets/lenet5.cnr');
is(unpack('Q<', substr $old, 88, 8), 0, 'lenet5.cnr has none');
is((run('run', 'scripts/nets/lenet5.cnr', $five))[0], 0, 'which runs');
substr($old, length($old) - 5000, 1) ^= "\x10";
write_to("$dir/old.cnr", $old);
is((run('run', "$dir/old.cnr", $five))[0], 4, 'and does not once it is damaged');

# Whose fingerprints are right and digests are others': it runs, and nobody finds it under those.
{
    my $forged = $sound;
    my ($at, $bytes) = unpack 'Q<Q<', substr $forged, 24, 16;
    my $own = sha256(substr $sound, $where{'conv2.weight'}, 25000 * 4);
    my $digest = index $forged, $own;
    ok($digest > 0, 'the digest of conv2.weight is found');
    substr($forged, $digest, 1) ^= "\x10";
    substr($forged, 56, 32) = sha256(substr $forged, $at, $bytes);
    substr($forged, 96, 32) = sha256(substr $forged, 0, 96);
    write_to("$dir/forged.cnr", $forged);
    is((run('run', "$dir/forged.cnr", $five))[0], 0, 'a digest alone is wrong: data is that which was written');
    ($code, $out, $err) = run('run', "$dir/forged.cnr", $five, '--cache', "$dir/others");
    ok($code == 4 && $err =~ /damaged/, 'no plan is stored under it') or diag("$code: $err");
    ok(!glob("$dir/others/*.plan"), 'indeed');
    is((run('check', "$dir/forged.cnr"))[0], 4, 'check tells') ;
    is((run('convert', "$dir/forged.cnr", '-o', "$dir/to.cnr"))[0], 4, 'and it is not written anew');
}

# From a script.
for (['', 1], [', { verify = false }', 0]) {
    my ($option, $fails) = @$_;
    write_to("$dir/main.lua", <<~"LUA");
        local c = require "cnnrun"
        return function(args) c.load(args[1]$option):picture(args[2]) end
        LUA
    my ($code, undef, $told) = run("$dir/main.lua", "$dir/broken.cnr", $five);
    ok($fails ? $code && $told =~ /damaged/ : !$code, "c.load(file$option)") or diag($told);
}

# Plans that were stored while the file was sound read no weight that was packed; what kernels read as
# it lies is compared.
my @cached = ('--cache', "$dir/cache", '--json');
is((run('run', @cached, "$dir/sound.cnr", $five))[0], 0, 'a plan is stored');
my ($stored) = glob "$dir/cache/*.plan";
copy("$dir/sound.cnr", "$dir/was.cnr");
copy(damaged('ip1.weight', 'broken.cnr'), "$dir/sound.cnr");
is((run('run', @cached, "$dir/sound.cnr", $five))[0], 4, 'damage where the kernel reads the file: no');
copy(damaged('conv2.weight', 'broken.cnr'), "$dir/sound.cnr");
($code, $out, $err) = run('run', '-v', @cached, "$dir/sound.cnr", $five);
$out =~ s/"ms":[^,]*,|,"cache":"hit"//g;
like($err, qr/hit/, 'damage where the plan has a blob');
is($out, $answer, 'which was made of sound weights: the same answer');
unlink $stored;
is((run('run', @cached, "$dir/sound.cnr", $five))[0], 4, 'without the plan it is refused');
ok(!-e $stored, 'and none is stored');
# A stored blob that is damaged is prepared again, of the weights: these must be sound.
copy("$dir/was.cnr", "$dir/sound.cnr");
run('run', @cached, "$dir/sound.cnr", $five);
my $plan = bytes($stored);
substr($plan, length($plan) - 4096, 1) ^= "\x10";
write_to($stored, $plan);
copy("$dir/broken.cnr", "$dir/sound.cnr");
($code, undef, $err) = run('run', @cached, "$dir/sound.cnr", $five);
ok($code == 4, 'plan and file damaged: refused') or diag("$code: $err");
done_testing;
