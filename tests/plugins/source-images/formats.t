#!/usr/bin/perl
# Files that Pillow tests itself with: read with its size and mean, or refused where it refuses.
use strict;
use warnings;
use FindBin;
use Test::More;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $folder = ($ENV{CNNRUN_SHARED} // "$root/../shared") . '/data/formats';
my $script = "$FindBin::Bin/formats.lua";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => "no shared/data/formats" unless -r "$folder/expected.csv";

open my $table, '<', "$folder/expected.csv" or die;
my ($files, $alike, $ended) = (0, 0, 0);
while (my $line = <$table>) {
    chomp $line;
    my ($name, $mode, $w, $h, undef, @mean) = split /,/, $line; # a mode may be "1", for one bit a pixel
    next unless -f "$folder/$name";
    $files++;
    open my $out, '-|', 'timeout', '60', "$build/cnnrun", $script, "$folder/$name" or die;
    my $got = <$out> // '';
    close $out;
    $ended++, diag("$name: ended with " . ($? & 127 || $? >> 8)) if $?;
    my $same;
    if ($mode =~ /^refused/) { $same = $got =~ /^refused/ }
    elsif ($got =~ /^read (\d+) (\d+) (\S+) (\S+) (\S+)/) {
        my @got = ($3, $4, $5);
        my $size = $1 == $w && $2 == $h || $1 == $h && $2 == $w; # turned upright
        $same = $size && !grep { abs($got[$_] - $mean[$_]) > 2 } 0 .. 2;
    }
    $same ? $alike++ : diag("$name: want $mode @{[grep { defined } $w, $h, @mean]}, got $got");
}
cmp_ok($files, '>', 100, 'files to read');
is($ended, 0, 'none ended the program');
cmp_ok($alike, '>=', 0.93 * $files, "$alike of $files as Pillow has them");
done_testing();
