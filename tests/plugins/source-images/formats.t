#!/usr/bin/perl
# Pillow's own test files: read with the right size and mean, or refused if Pillow refuses them.
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

# Files that Pillow refuses and that can be read: size, and three means.
my %more = (
    'bmp_q_pal8oversizepal.bmp' => [127, 64, 119.36, 116.94, 120.47], # a palette of 300 colours, those above 255 unused
    'apng_chunk_no_fctl.png' => [128, 64, 0, 255, 0], # the animation is damaged, not the picture that stands for it
    'hopper_webp.tif' => [128, 128, 89.76, 80.06, 95.49], # by a libtiff that has WebP
);
open my $table, '<', "$folder/expected.csv" or die;
my ($files, $alike, $ended) = (0, 0, 0);
while (my $line = <$table>) {
    chomp $line;
    my ($name, $mode, $w, $h, undef, @mean) = split /,/, $line; # a mode may be "1", for one bit a pixel
    next unless -f "$folder/$name";
    $files++;
    local $ENV{MALLOC_PERTURB_} = 1 + $files % 255; # memory that is not written to shows
    open my $out, '-|', 'timeout', '60', "$build/cnnrun", $script, "$folder/$name" or die;
    my $got = <$out> // '';
    close $out;
    $ended++, diag("$name: ended with " . ($? & 127 || $? >> 8)) if $?;
    my $same;
    ($mode, $w, $h, @mean) = ('more', @{ $more{$name} }) if $more{$name} && $got =~ /^read/;
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
cmp_ok($alike, '>=', 0.99 * $files, "$alike of $files as Pillow has them, or better");
done_testing();
