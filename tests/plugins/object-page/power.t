#!/usr/bin/perl
# W18's Power Monitor: cnnrun energy log --page. A curve of each domain in a window, which may be closed while the log
# goes on. CNNRUN_SHOTS=DIR keeps a screenshot.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../gauge-common", "$FindBin::Bin/../../scripts/apps";
use Browser;
use File::Temp qw(tempdir);
use JSON::PP;
use Monitor;
use Test::More;
use Time::HiRes qw(sleep);
use Tree;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
plan skip_all => 'object-page was not built' unless -e "$build/plugins/object-page.so";
my $dir = tempdir(CLEANUP => 1);
my $tree = Tree->new("$root/tests/plugins/meter-hwmon/odroid-xu3.tree");
my @here = ('--sysfs-root', $tree->root);

my $log = bless { dir => $dir, token => 'none', pid => fork // die }, 'Monitor';
if (!$log->{pid}) {
    open STDERR, '>', "$dir/err";
    open STDOUT, '>', "$dir/lines";
    exec "$build/cnnrun", qw(energy log), @here, '--csv', "$dir/power.csv", qw(--page 0);
}
for (1 .. 600) {
    last if ($log->{port}) = $log->said =~ m{^live page: http://127\.0\.0\.1:(\d+)/$}m or waitpid($log->pid, 1);
    sleep .1;
}
ok($log->port, 'a log with a page') or die($log->said);
my $state = $log->until(sub { ($_[0]{energies}[0]{value} // 0) > .5 });
is(join(' ', map { "$_->{name} " . ($_->{value} // 'unread') } @{ $state->{rails} }), 'a15 2.5312 a7 0.052 gpu 1.41 memory 0.115',
   'the page is told the watts of each domain');
is_deeply([map { $_->{name} } @{ $state->{energies} }], [qw(a15 a7 gpu memory)], 'and their joules so far');
like($log->set('{"threshold":0.5}'), qr/^HTTP\S+ 401/, 'nothing can be set');

SKIP: {
    my $program = Browser::program() or skip "no chromium: Debian's package of that name is one", 1;
    my $browser = Browser->start($program);
    $browser->look(900, 600, 0, 'light');
    $browser->go('http://127.0.0.1:' . $log->port . '/');
    my $charts = "[...document.querySelectorAll('.charts figure')].filter((f) => f.getClientRects().length)";
    ok($browser->until("$charts.length === 2"), 'two charts: watts and joules');
    is($browser->js("$charts.map((f) => f.querySelectorAll('polyline').length).join(' ')"), '4 4', 'with a curve for each domain');
    like($browser->js("${charts}[0].querySelector('figcaption').textContent"), qr/^Powera15 2\.5, a7 0\.052, gpu 1\.4, memory 0\.1[12] W$/, 'and its watts now');
    is($browser->js("document.querySelector('.view').getClientRects().length"), 0, 'there is no picture');
    ok($browser->until("Number(${charts}[0].querySelector('polyline').getAttribute('points').split(' ').length) > 15"), 'at more than a point a second');
    my $axe = $ENV{CNNRUN_AXE} // `python3 -c 'import importlib.util as u; s = u.find_spec("axe_playwright_python"); print(s.submodule_search_locations[0] + "/axe.min.js" if s else "", end="")' 2>/dev/null`;
    SKIP: {
        skip 'no axe.min.js: pip install --no-deps axe-playwright-python, or CNNRUN_AXE=FILE', 1 unless $axe && -e $axe;
        my $source = do { open my $in, '<', $axe or die "$axe: $!"; local $/; <$in> };
        $browser->js("$source; 0");
        is($browser->js("axe.run(document).then((r) => r.violations.filter((v) => /serious|critical/.test(v.impact)).map((v) => v.id).join())"),
           '', 'axe has no serious finding');
    }
    $browser->shot("$ENV{CNNRUN_SHOTS}/power.png") if $ENV{CNNRUN_SHOTS};
}
my $before = $log->state->{now};
ok($log->until(sub { $_[0]{now} > $before + 1 }), 'the log goes on when the window is closed');
is($log->stop, 0, 'Ctrl-C ends it');
cmp_ok(scalar(my @rows = do { open my $in, '<', "$dir/power.csv" or die; <$in> }), '>', 20, 'and the file has a line each 50 ms');

for (['nowhere:x', qr/--page: want PORT or ADDRESS:PORT, got nowhere:x/], ['1.2.3.4:1', qr/1\.2\.3\.4/]) {
    my $said = `$build/cnnrun energy watch @here --seconds 0.1 --page $_->[0] 2>&1`;
    ok($? != 0 && $said =~ $_->[1], "--page $_->[0] is refused") or diag($said);
}
done_testing;
