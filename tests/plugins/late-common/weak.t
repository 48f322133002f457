#!/usr/bin/perl
# A plugin's second module is checked like the plugin: a module that others can change is not loaded. If the
# module is missing, its package is named.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;

my $root = $0 =~ s{tests/plugins/late-common/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'source-images has no second module here' unless -e "$build/plugins/source-images/codecs.so";

my $dir = tempdir(CLEANUP => 1);
mkdir "$dir/source-images";
my %copy = ('source-images.so' => 0755, 'source-images/codecs.so' => 0755);
for (keys %copy) { system('cp', "$build/plugins/$_", "$dir/$_") == 0 or die }
open my $script, '>', "$dir/read.lua" or die;
print $script "local c = require 'cnnrun'\nreturn function(args) print(table.concat(c.picture(args[1]):shape(), ' ')) end\n";
close $script;
# the smallest TIFF: two grey pixels
open my $picture, '>:raw', "$dir/a.tif" or die;
print $picture 'II', pack('v V v', 42, 8, 8),
    map({ pack 'v v V V', @$_ } [256, 3, 1, 2], [257, 3, 1, 1], [258, 3, 1, 8], [259, 3, 1, 1], [262, 3, 1, 1],
        [273, 4, 1, 110], [278, 3, 1, 1], [279, 4, 1, 2]), pack('V', 0), "\x40\x80";
close $picture;

# Reads the picture by the program; returns its exit code and what it printed, errors included.
sub reads {
    my $text = `$build/cnnrun run --trust --plugin-dir $dir --plugin-order source-images $dir/read.lua $dir/a.tif 2>&1`;
    return ($? >> 8, $text);
}
my ($code, $text) = reads();
is $code, 0, 'a sound one comes in' or diag $text;
for (['codecs.so', 'source-images/codecs.so', 0777], ['its folder', 'source-images', 0777]) {
    my ($name, $path, $mode) = @$_;
    my $was = (stat "$dir/$path")[2] & 0777;
    chmod $mode, "$dir/$path";
    ($code, $text) = reads();
    isnt $code, 0, "$name can be written by anyone: it stays out";
    like $text, qr{source-images/codecs\.so: it or its folder can be written by anyone}, 'and why is told' or diag $text;
    chmod $was, "$dir/$path";
}
chmod 0777, "$dir/source-images.so", "$dir/source-images/codecs.so";
($code, $text) = reads();
is $code, 0, 'who lets a weak plugin in is warned of that, and gets all of it' or diag $text;
like $text, qr/source-images\.so: the file can be written by anyone/, 'once';
unlink "$dir/source-images/codecs.so";
($code, $text) = reads();
isnt $code, 0, 'without its second module';
like $text, qr/codecs\.so: this part of the plugin is not installed \(in Debian: cnnrun-source-images\)/,
    'the package is named' or diag $text;
done_testing;
