#!/usr/bin/perl
# Files and folders that the READMEs and the pages about the source name exist: from the top of the tree,
# from the page's own folder, or below core/.
use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';
$root =~ s{(.)/$}{$1};
my %made = ('tests/plugins/ops-std/test_rms_normalization.c' => 'by a recipe', 'SCRIPT.lua' => 'a word that stands for one');

for my $map (qw(README.md core/README.md plugins/README.md kernels/README.md governors/README.md),
             map { "core/docs/$_.md" } qw(source inference rules plans plugins operators kernels devices parts opencl governors)) {
    open my $in, '<', "$root/$map" or die "$map: $!";
    my $text = do { local $/; <$in> };
    my @below = ('', dirname($map) . '/', 'core/', 'core/include/cnnrun/', map({ "core/$_/" } qw(engine common power lab script check program)), 'core/engine/plan/', 'kernels/common/',
                 'plugins/opencl-common/', 'plugins/ops-std/', 'tests/plugins/ops-std/', 'core/script/lua/');
    my ($n, @lost) = 0;
    while ($text =~ m{`([\w./*-]+(?:\.(?:c|h|t|cl|lua|sh|md|inc)|/))`}g) {
        my $path = $1;
        next if $made{$path} || $path =~ m{^build/|^/} || $path =~ /^(?:lua|version)\.h$/;
        my $pattern = $path =~ s/NAME/*/r;
        $n++;
        push @lost, $path if !grep { my @found = glob "$root/$_$pattern"; @found && -e $found[0] } @below;
    }
    is(join(' ', @lost), '', "$map: $n files and folders that it names are there") if $n;
}
# prove executes each script, and a suite ends at the first that it can't execute.
is(join(' ', grep { !-x } split /\n/, `find $root/tests -name '*.t'`), '', 'every script of the tests is executable');
done_testing;
