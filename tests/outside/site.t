#!/usr/bin/perl
# The site of the documentation: it is made of every page, with reference pages; links within lead to pages and to
# headings there; it is searched, and fits a phone.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Find;
use File::Temp 'tempdir';
use FindBin;
use lib "$FindBin::Bin/../plugins/object-page";
use Browser;
use JSON::PP;
use Test::More;
use Time::HiRes qw(sleep);

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
my (@broken, %text);
# The text of a page.
sub text_of {
    my $page = shift;
    return $text{$page} //= do { open my $in, '<', $page or die "$page: $!"; local $/; <$in> };
}
for my $page (@pages) {
    my $text = text_of($page);
    while ($text =~ /(?:href|src)="([^"#?:]*\.(?:html|css|js|png|svg)|)(?:#([^"]+))?"/g) {
        my ($link, $anchor) = ($1, $2);
        my $to = $link eq '' ? $page : $link =~ m{^/} ? "$dir/site$link" : ($page =~ s{[^/]*$}{}r) . $link;
        if (!-e $to) { push @broken, "$page: $link"; next }
        push @broken, "$page: $link#$anchor" if defined $anchor && $to =~ /html$/ && text_of($to) !~ /(?:id|name)="\Q$anchor\E"/;
    }
}
is join("\n", @broken), '', 'links within lead to pages and headings';
my %has = ('commands.html' => 'cnnrun kernelcheck', 'lua.html' => 'c.load', 'python.html' => 'Net.topk', 'c/engine.html' => 'cnr_load', 'operators.html' => 'conv');
for my $name (sort keys %has) {
    open my $in, '<', "$dir/site/reference/$name" or do { fail($name); next };
    like do { local $/; <$in> }, qr/\Q$has{$name}\E/, "reference/$name";
}
my $index = do { local (@ARGV, $/) = ("$dir/site/search/search_index.json"); <> };
like $index, qr/Winograd/, 'and searched';

# ---- in a browser: the search, and a phone's width ----
SKIP: {
    my $program = Browser::program() or skip "no chromium: Debian's package of that name is one", 3;
    my $server = open my $told, '-|', 'exec python3 -u -m http.server --bind 127.0.0.1 --directory ' . "$dir/site 0 2>/dev/null"
        or skip 'no python3', 3;
    my ($port) = <$told> =~ /port (\d+)/ or skip 'no server', 3;
    my $browser = Browser->start($program);
    my $go = sub {
        $browser->call('Page.navigate', { url => "http://127.0.0.1:$port/$_[0]" });
        for (1 .. 200) { last if eval { $browser->js("document.readyState == 'complete' && location.pathname == '/' + '$_[0]'.split('?')[0]") }; sleep 0.05 }
    };
    $go->('index.html?q=winograd');
    my $found = 0;
    for (1 .. 200) { last if $found = $browser->js("document.querySelectorAll('#mkdocs-search-results article').length"); sleep 0.05 }
    cmp_ok $found, '>', 0, 'the search finds pages';
    $browser->call('Emulation.setDeviceMetricsOverride', { width => 360, height => 740, deviceScaleFactor => 2, mobile => JSON::PP::true });
    my (@wide, @small);
    for my $page (map { s{^\Q$dir\E/site/}{}r } grep { !/404|search/ } @pages) {
        $go->($page);
        my $width = $browser->js('document.documentElement.scrollWidth');
        push @wide, "$page: $width" if $width > 360;
        push @small, $page if $browser->js("parseFloat(getComputedStyle(document.querySelector('[role=main] p, [role=main]')).fontSize)") < 14;
    }
    is "@wide", '', @pages . ' pages fit 360 pixels';
    is "@small", '', 'in letters of 14 pixels or more';
    kill TERM => $server;
    close $told;
}
done_testing;
