#!/usr/bin/perl
# The site of the documentation: it is made of every page, with reference pages, and its links within lead somewhere.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Find;
use File::Temp 'tempdir';
use Test::More;

my $root = abs_path($0 =~ s{tests/outside/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'mkdocs is not there' unless grep { -x "$_/mkdocs" } split /:/, $ENV{PATH};
plan skip_all => 'no clone: git knows no pages' unless `cd $root && git ls-files README.md 2>/dev/null` =~ /README/;
my $dir = tempdir(CLEANUP => 1);
my $said = `$root/tools/site.pl $build/cnnrun $dir/site 2>&1`;
is $?, 0, 'it is made' or diag $said;

my @pages;
find({ no_chdir => 1, wanted => sub { push @pages, $_ if /\.html$/ } }, "$dir/site");
cmp_ok scalar @pages, '>', 30, 'of all pages';
my @broken;
for my $page (@pages) {
    open my $in, '<', $page or die;
    my $text = do { local $/; <$in> };
    while ($text =~ /(?:href|src)="([^"#?:]+\.(?:html|css|js|png|svg))(?:#[^"]*)?"/g) {
        my $link = $1;
        my $to = $link =~ m{^/} ? "$dir/site$link" : ($page =~ s{[^/]*$}{}r) . $link;
        push @broken, "$page: $link" unless -e $to;
    }
}
is join("\n", @broken), '', 'links within lead to pages';
my %has = ('commands.html' => 'cnnrun kernelcheck', 'lua.html' => 'c.load', 'python.html' => 'Net.topk', 'c/engine.html' => 'cnr_load', 'operators.html' => 'conv');
for my $name (sort keys %has) {
    open my $in, '<', "$dir/site/reference/$name" or do { fail($name); next };
    like do { local $/; <$in> }, qr/\Q$has{$name}\E/, "reference/$name";
}
my $index = do { local (@ARGV, $/) = ("$dir/site/search/search_index.json"); <> };
like $index, qr/Winograd/, 'and searched';
done_testing;
