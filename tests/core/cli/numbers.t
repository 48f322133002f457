#!/usr/bin/perl
# Every option that takes a number refuses anything else, and names the option; the options are read from
# its help. A negative number is refused too, unless the option's help allows it.
use strict;
use warnings;
use FindBin;
use File::Temp qw(tempdir);
use Test::More;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_OPENCL} = 'none';
$ENV{CNNRUN_CACHE} = '';
my $net = "$root/scripts/nets/lenet5.lua";
my $digits = "$dir/digits.txt";
open my $list, '>', $digits or die;
my $i = 0;
print $list "$root/scripts/nets/digits/$_.png ", $i++, "\n" for qw(zero one two three four five six seven eight nine);
close $list;

# What each command is given besides, so that it gets as far as its options.
my %given = (
    run => [$net, "$root/scripts/nets/digits/one.png"], bench => [$net], show => [$net], warm => [$net, '--cache', "$dir/cache"], tune => [$net],
    eval => [$net, '--data', "images:$digits"], train => [$net, '--data', "images:$digits", '-o', "$dir/out.cnr", '--epochs', 1],
    place => [$net, '--policy', 'best'], quantize => [$net, '--data', "images:$digits", '-o', "$dir/q.cnr"],
    convert => [$net, '-o', "$dir/c.cnr"], export => [$net, '-o', "$dir/e.onnx"], verify => [$net], energy => ['watch'],
    govern => ['fixed,at=lowest'], kernelcheck => ['--op', 'relu'], prune => ["$root/scripts/prune/lenet5.lua"]);
# Their arguments; BYTES take a unit, too.
my $number = qr/^(?:N|X|K|R|A|W|DB|SECONDS|DEGREES|BYTES|LIST|HxW\|N|M,N,K|S,\.\.)$/;
# Why a value may be taken: a pattern of command and option, and of values.
my @good = ([qr/^\S+ --mean$/, qr/./, 'a file or a picture'],
            [qr/^quantize --min-snr$/, qr/^-1$/, 'decibels'],
            [qr/^place --threshold$/, qr/^-1$/, 'what a policy makes of it is its own']);

# And seeds, which are whole numbers from 0 on wherever they are given.
my @seeds = (map({ ['run', $net, "$root/scripts/nets/digits/one.png", "--weights=random:$_"] } qw(abc -1 1.5 nan 9223372036854775808)),
             map({ ['govern', 'fixed,at=lowest', '--board', 'odroid_xu3', '--seconds', 1, "--scene=loop,seed=$_"] } qw(-1 1.5 nan inf 1e300)));

my ($asked, @passed, @silent) = (0);
for my $command (sort keys %given) {
    my $help = `$build/cnnrun help $command`;
    my %options;
    while ($help =~ /^ +(?:-\w, )?(--[a-z0-9-]+) (\S+)/mg) {
        my ($name, $argument) = ($1, $2);
        $options{$name} = $argument if $argument =~ $number;
    }
    for my $option (sort keys %options) {
        for my $value ('abc', 'nan', 'inf', '-1', '1e999', '', '1x') {
            next if grep { "$command $option" =~ $_->[0] && $value =~ $_->[1] } @good;
            my $pid = open my $said, '-|';
            if (!$pid) {
                open STDERR, '>&', \*STDOUT;
                open STDIN, '<', '/dev/null';
                chdir $dir;
                exec 'timeout', 20, "$build/cnnrun", $command, @{ $given{$command} }, "$option=$value";
            }
            local $/;
            my $text = <$said> // '';
            close $said;
            $asked++;
            my $bare = $option =~ s/^--//r;
            if ($? == 0 || $? >> 8 == 124) { push @passed, "$command $option=$value" }
            elsif ($text !~ /\Q$bare\E/) { push @silent, "$command $option=$value: $text" }
        }
    }
}
cmp_ok($asked, '>', 200, "$asked uses of options");
is(join("\n", @passed), '', 'what is no number is taken by none');
is(join("\n", @silent), '', 'and each error names its option');
for my $words (@seeds) {
    my $pid = open my $said, '-|';
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        chdir $dir;
        exec 'timeout', 60, "$build/cnnrun", @$words;
    }
    local $/;
    my $text = <$said> // '';
    close $said;
    ok($? && $? >> 8 != 124, "$words->[0] $words->[-1] is refused");
    like($text, qr/seed|random:/, 'and the seed named') or diag($text);
}
done_testing();
