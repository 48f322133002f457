#!/usr/bin/perl
# The live page by axe-core, which the Python package axe-playwright-python brings, in Debian's chromium: no serious
# finding while it is live, while a box is drawn, paused, while the source is away, and behind its end, wide and narrow,
# light and dark; with keys alone; what the page weighs.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../../scripts/apps";
use Browser;
use Camera;
use File::Temp qw(tempdir);
use JSON::PP;
use Monitor;
use Test::More;
use Time::HiRes qw(sleep);

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $data = ($ENV{CNNRUN_SHARED} // "$root/../shared") . '/data';
for my $plugin (qw(object-page source-video draw-cairo)) {
    plan skip_all => "$plugin was not built" unless -e "$build/plugins/$plugin.so";
}
my $program = Browser::program() or plan skip_all => "no chromium: Debian's package of that name is one";
my $axe = $ENV{CNNRUN_AXE} // `python3 -c 'import importlib.util as u; s = u.find_spec("axe_playwright_python"); print(s.submodule_search_locations[0] + "/axe.min.js" if s else "", end="")' 2>/dev/null`;
plan skip_all => 'no axe.min.js: pip install --no-deps axe-playwright-python, or CNNRUN_AXE=FILE' unless $axe && -e $axe;
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_CACHE} = "$dir/cache";
$ENV{CNNRUN_OPENCL} = 'none';
my $xl = "$data/darknet/yolo-fastest/yolo-fastest-1.1";
my $detects = -e "$xl.weights" && -e "$data/images/dog.jpg";
my $camera = Camera->start(10, '480x360', $detects ? ('-i', "$data/images/dog.jpg", qw(-vf scale=480:360)) : ())
    or plan skip_all => 'no ffmpeg, which makes the pictures of a camera';
my @what = $detects ? ("$xl.cfg,$xl.weights") : ("$root/scripts/nets/lenet5.lua", qw(--app classify));
my $source = do { open my $in, '<', $axe or die "$axe: $!"; local $/; <$in> };
my $monitor = Monitor->start($build, $dir, 'monitor', $what[0], $camera->url, '-q', @what[1 .. $#what]);
ok($monitor->port, 'a monitor with a page') or die($monitor->said);
my $browser = Browser->start($program);

sub judge { # rules of WCAG 2.2 A and AA, and what axe calls best practice
    my ($name, $wanted) = @_;
    $browser->js("$source; 0") unless $browser->js('typeof axe === "object"');
    my $found = decode_json($browser->js(<<'END'));
axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify({ rules: r.passes.length + r.violations.length,
  violations: r.violations.map((v) => [v.impact, v.id, v.nodes.map((n) => n.target.join(' ')).join(', ')]) }))
END
    my ($grave, $less) = ('', '');
    for (@{ $found->{violations} }) {
        my $line = join(' ', @$_) . '; ';
        if ($_->[0] =~ /^(serious|critical)$/) { $grave .= $line } else { $less .= $line }
    }
    cmp_ok($found->{rules}, '>', 10, "$name: $found->{rules} rules apply");
    return like($grave, $wanted, $name) if $wanted;
    is($grave, '', "$name: no serious finding" . ($less && ", less: $less"));
}

# ---- what it weighs ----
my $bytes = 0;
for my $path ('/', '/page.js', '/page.css', '/icon.svg') {
    my ($body) = $monitor->get($path) =~ /\r\n\r\n(.*)/s;
    ok(length $body, "$path: " . length $body);
    $bytes += length $body;
}
cmp_ok($bytes, '<', 60_000, "the page weighs $bytes bytes");

# ---- live, on three screens ----
$browser->look(1280, 800, 0, 'light');
$browser->go('http://127.0.0.1:' . $monitor->port . '/#token=abcdefgh');
ok($browser->until("document.getElementById('picture').naturalWidth === 480"), 'it is there');
ok($browser->until("!document.querySelector('.charts').hidden"), 'with charts');
for my $screen ([1280, 800, 0], [390, 844, 1], [320, 640, 1]) {
    for my $scheme (qw(light dark)) {
        $browser->look(@$screen, $scheme);
        judge("$screen->[0] wide, $scheme");
    }
}
is($browser->js("document.documentElement.scrollWidth"), 320, 'nothing is wider than a narrow window');
is($browser->js("[...document.querySelectorAll('main section, .tools button, figure')].filter((e) => e.getClientRects().length)"
   . ".filter((e) => e.getBoundingClientRect().right > 320.5).map((e) => e.id || e.className || e.tagName).join()"), '', 'nor cut off by it');
$browser->js("document.getElementById('picture').removeAttribute('alt')");
judge('what is made wrong is found', qr/^critical image-alt #picture;/);
$browser->js("document.getElementById('picture').alt = 'The newest frame'");

# ---- with keys alone: a box is drawn, moved and left; a frame is held ----
# The id of the element that has the focus
sub active { return $browser->js('document.activeElement.id') }
$browser->js("document.getElementById('full').focus()");
SKIP: {
    skip 'object-tld was not built', 4 unless -e "$build/plugins/object-tld.so";
    $browser->until("!document.getElementById('mark').hidden");
    $browser->key('Tab', 9);
    is(active(), 'mark', 'a key leads to the button that marks');
    $browser->key('Enter', 13);
    $browser->key('ArrowRight', 39);
    like($browser->js("document.getElementById('followed').textContent"), qr/^box at \d+, \d+: /, 'keys move the box, which is said');
    judge('while a box is drawn');
    $browser->key('Enter', 13);
    ok($monitor->until(sub { ref $_[0]{follow} eq 'HASH' }), 'and have it followed');
}
$browser->js("document.getElementById('pause').focus()");
$browser->key('Enter', 13);
is($browser->js("document.getElementById('pause').getAttribute('aria-pressed')"), 'true', 'a key holds the frame');
judge('paused');
$browser->key('Enter', 13);

# ---- away, and back ----
$camera->leave;
ok($browser->until("document.getElementById('link').textContent.includes('the source is away')"), 'a source that goes away is reported');
is($browser->js("document.getElementById('link').getAttribute('role')"), 'status', 'to screen readers, too');
judge('away');
ok($camera->back, 'it comes back');
ok($browser->until("document.getElementById('link').textContent === 'live'"), 'by itself');
like($browser->js("document.getElementById('events').innerText"), qr/the source is back after \d+ s/, 'which is an event');
is($monitor->stop, 130, 'Ctrl-C');
ok($browser->until("document.getElementById('link').classList.contains('bad')"), 'the monitor is gone');
judge('without a monitor');

# ---- ended, without the link ----
my $film = "$dir/film.mp4";
system(qw(ffmpeg -v error -y -f lavfi -i testsrc2=size=320x240:rate=10:duration=1 -c:v libx264), $film);
my $ends = Monitor->start($build, $dir, 'monitor', "$root/scripts/nets/lenet5.lua", $film, qw(--app classify -q));
$browser->js('sessionStorage.clear()');
$browser->go('about:blank');
$browser->go('http://127.0.0.1:' . $ends->port . '/');
ok($browser->until("document.getElementById('link').textContent.includes('has ended')"), 'a source that ends');
judge('ended, locked');
is($ends->stop, 130, 'Ctrl-C');
done_testing();
