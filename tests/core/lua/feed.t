#!/usr/bin/perl
# Feeds and workers of scripts.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../scripts/apps";
use Camera;
use File::Temp qw(tempdir);

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $camera = -e "$build/plugins/source-video.so" && Camera->start(100, '64x48');
my $failed = system "$build/cnnrun", "$FindBin::Bin/feed.lua", "$root/scripts/nets/digits", "$root/scripts/nets/lenet5.lua",
    $camera ? ($camera->url, tempdir(CLEANUP => 1)) : ();
exit($failed ? 1 : 0);
