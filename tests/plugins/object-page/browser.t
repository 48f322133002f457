#!/usr/bin/perl
# The live page in a headless browser: at a phone's and a desk's width, light and dark; charts with data, names for
# all that has none to see, contrast, what keys reach; switches that switch. CNNRUN_SHOTS=DIR keeps screenshots.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../gauge-common", "$FindBin::Bin/../../scripts/apps";
use Browser;
use Camera;
use File::Temp qw(tempdir);
use JSON::PP;
use Monitor;
use Test::More;
use Time::HiRes qw(sleep);
use Tree;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $data = ($ENV{CNNRUN_SHARED} // "$root/../shared") . '/data';
for my $plugin (qw(object-page source-video draw-cairo)) {
    plan skip_all => "$plugin was not built" unless -e "$build/plugins/$plugin.so";
}
my $program = Browser::program() or plan skip_all => "no chromium: Debian's package of that name is one";
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_CACHE} = "$dir/cache";
$ENV{CNNRUN_OPENCL} = 'none';

# knobs and a meter that are files
my $cpu = 'sys/devices/system/cpu/cpufreq/policy0'; # feeds the device that the net runs on
my $tree = Tree->new(<<END);
$cpu/related_cpus = 0 1
$cpu/affected_cpus = 0 1
$cpu/scaling_cur_freq = 480000
$cpu/scaling_min_freq = 177000
$cpu/scaling_max_freq = 543000
$cpu/scaling_available_frequencies = 177000 350000 480000 543000
sys/class/hwmon/hwmon0/name = ina231
sys/class/hwmon/hwmon0/power1_input = 2531000
sys/class/hwmon/hwmon0/update_interval = 140
END
my $xl = "$data/darknet/yolo-fastest/yolo-fastest-1.1";
my $detects = -e "$xl.weights" && -e "$data/images/dog.jpg";
my $camera = Camera->start(10, '480x360', $detects ? ('-i', "$data/images/dog.jpg", qw(-vf scale=480:360)) : ())
    or plan skip_all => 'no ffmpeg, which makes the pictures of a camera';
my @what = $detects
    ? ("$xl.cfg,$xl.weights", $camera->url)
    : ("$root/scripts/nets/lenet5.lua", $camera->url, qw(--app classify));
my $monitor = Monitor->start($build, $dir, '--sysfs-root', $tree->root, 'monitor', @what, '-q');
ok($monitor->port, 'a monitor with a page') or die($monitor->said);
my $browser = Browser->start($program);
$browser->look(1280, 800, 0, 'light');
$browser->go('http://127.0.0.1:' . $monitor->port . '/#token=abcdefgh');

# ---- it shows something ----
ok($browser->until("document.getElementById('link').textContent === 'live'"), 'it is connected');
ok($browser->until("document.getElementById('picture').naturalWidth === 480"), 'the picture is shown');
is($browser->js('location.href'), 'http://127.0.0.1:' . $monitor->port . '/', 'the token is taken out of the address');
is($browser->js("sessionStorage.getItem('token')"), 'abcdefgh', 'and kept');
is($browser->js("document.querySelectorAll('input[type=password], input[type=text]').length"), 0, 'nothing looks like a login');
for my $chart (0 .. 5) {
    my $look = <<END;
(() => { const f = document.querySelectorAll('.charts figure')[$chart], v = f.querySelector('figcaption span').textContent,
  lines = [...f.querySelectorAll('polyline')]; return [f.querySelector('figcaption').firstChild.textContent, v,
  lines.map((l) => l.points.length).reduce((a, b) => Math.max(a, b), 0)]; })()
END
    my ($name, $value, $points);
    for (1 .. 600) {
        ($name, $value, $points) = @{ $browser->js($look) };
        last if $value =~ /\d/ && $points > 5;
        sleep 0.1;
    }
    ok($value =~ /\d/ && $points > 5, "chart of $name: $value, $points points");
}
$browser->until("document.getElementById('found').innerText.match(/\\d/)");
my $found = $browser->js("document.getElementById('found').innerText");
like($found, $detects ? qr/dog \d/ : qr/^\d/, 'what is found is listed');

# ---- four screens ----
my $contrast = <<'END';
(() => {
  const parse = (c) => c.match(/[\d.]+/g).map(Number);
  const over = (a, b) => { const t = a.length > 3 ? a[3] : 1; return [0, 1, 2].map((i) => a[i] * t + b[i] * (1 - t)); };
  const ground = (e) => e ? over(parse(getComputedStyle(e).backgroundColor), ground(e.parentElement)) : [255, 255, 255];
  const light = (c) => c.map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
  const poor = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.matches('input, select');
    if (!own || !e.getClientRects().length) continue;
    const g = ground(e), a = light(over(parse(getComputedStyle(e).color), g)), b = light(g);
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) poor.push(`${e.tagName}#${e.id} "${e.textContent.slice(0, 20)}" ${ratio.toFixed(2)}`);
  }
  return poor.join('; ');
})()
END
for my $screen ([1280, 800, 0], [390, 844, 1], [320, 640, 1]) {
    for my $scheme (qw(light dark)) {
        $browser->look(@$screen, $scheme);
        sleep 0.5;
        my $name = "$screen->[0] wide, $scheme";
        cmp_ok($browser->js('document.documentElement.scrollWidth'), '<=', $screen->[0], "$name: nothing is wider than the screen");
        is($browser->js($contrast), '', "$name: text has a contrast of 4.5 and more");
        my $small = $browser->js(<<'END');
[...document.querySelectorAll('button, input, select')].filter((e) => e.getClientRects().length)
  .filter((e) => e.getBoundingClientRect().height < 24).map((e) => e.id).join()
END
        is($small, '', "$name: what is pressed is no smaller than 24 pixels");
        $browser->shot("$ENV{CNNRUN_SHOTS}/$screen->[0]-$scheme.png") if $ENV{CNNRUN_SHOTS};
    }
}
my $dark = $browser->js("getComputedStyle(document.body).backgroundColor");
$browser->look(1280, 800, 0, 'light');
isnt($browser->js("getComputedStyle(document.body).backgroundColor"), $dark, 'dark is not light');

# ---- without eyes ----
is($browser->js("[...document.images].filter((i) => !i.alt).length"), 0, 'pictures have words');
my @nameless;
for my $node (@{ $browser->call('Accessibility.getFullAXTree')->{nodes} }) {
    my ($role, $name) = map { $node->{$_}{value} // '' } qw(role name);
    push @nameless, "$role " . substr encode_json($node->{properties}), 0, 200 if !$node->{ignored} && $name eq '' && $role =~ /^(button|combobox|slider|textbox|image|img|link|list|region|listbox)$/;
}
is("@nameless", '', 'all that can be used, and each chart, has a name');
is($browser->js("document.documentElement.lang"), 'en', 'it says its language');
is($browser->js("[...document.querySelectorAll('h1, h2')].map((h) => h.tagName).join()"), 'H1,H2,H2,H2', 'headings in order');

# ---- without a mouse ----
my @stops;
$browser->js("document.body.focus()");
for (1 .. 20) {
    $browser->key('Tab', 9);
    my $stop = $browser->js("(() => { const e = document.activeElement; return e === document.body ? '' : e.id || e.className || e.tagName; })()");
    last if $stop eq '';
    push @stops, $stop;
}
my @wanted = ('skip', qw(pause snapshot full found events), $detects ? qw(threshold classes) : (), qw(governor policy SUMMARY));
is_deeply([grep { !/^(mark|let-go)$/ } @stops], \@wanted, 'keys reach everything, in order: ' . join ' ', @stops);
$browser->js("document.getElementById('governor').focus()");
$browser->key('Tab', 9);
isnt($browser->js("getComputedStyle(document.activeElement).outlineStyle"), 'none', 'what has the keys is seen');

# ---- switches ----
# The bounds of the made-up clock
sub bounds { return join ' ', map { $tree->text("$cpu/$_") =~ s/\s+$//r } qw(scaling_min_freq scaling_max_freq) }
# Chooses an entry of a list.
sub choose { $browser->js("(() => { const s = document.getElementById('$_[0]'); s.value = '$_[1]'; s.dispatchEvent(new Event('change')); })()") }
choose('governor', 'fixed,at=lowest');
ok($monitor->until(sub { $_[0]{governor} eq 'fixed,at=lowest' }), 'a governor is chosen');
ok($browser->until("document.getElementById('events').innerText.includes('governor: fixed')"), 'it is told on the page');
for (1 .. 600) { last if bounds() eq '177000 177000'; sleep 0.1 }
is(bounds(), '177000 177000', 'and sets the knob');
choose('governor', 'none');
for (1 .. 600) { last if bounds() eq '177000 543000'; sleep 0.1 }
is(bounds(), '177000 543000', 'none puts back what was found');
choose('policy', 'fastest');
ok($browser->until("document.getElementById('placed').textContent.includes('layers')"), 'a policy is chosen, and what runs where is reported');
SKIP: {
    skip 'no shared/data/darknet, images: nothing has a threshold', 2 unless $detects;
    $browser->js("(() => { const t = document.getElementById('threshold'); t.value = 1; t.dispatchEvent(new Event('input')); t.dispatchEvent(new Event('change')); })()");
    ok($browser->until("document.getElementById('found').innerText.trim() === 'nothing'"), 'with a threshold of 1 nothing is found');
    is($monitor->state->{threshold}, 1, 'and it is reported');
}
SKIP: {
    skip 'no shared/data/darknet, images: there is one class', 3 unless $detects;
    my $only = sub { $browser->js("(() => { const t = document.getElementById('classes'); t.value = '$_[0]'; t.dispatchEvent(new Event('change')); })()") };
    $monitor->set('{"threshold":0.3}');
    $only->('dog');
    ok($monitor->until(sub { my ($s) = @_; ($s->{classes} // '') eq 'dog' && !grep { $_->{label} ne 'dog' } @{ $s->{found} } }), 'one class alone');
    $only->('dgo');
    ok($browser->until("document.getElementById('events').innerText.includes('did you mean dog?')"), 'a class that there is not is reported');
    $only->('');
    ok($monitor->until(sub { !defined $_[0]{classes} && @{ $_[0]{found} } > 1 }), 'all of them again');
}

# ---- what is done with the picture ----
$browser->js("document.getElementById('pause').click()");
ok($browser->until("document.getElementById('picture').src.includes('picture.jpg')"), 'a picture is held');
is($browser->js("document.getElementById('pause').getAttribute('aria-pressed')"), 'true', 'which the button says');
$browser->js("document.getElementById('pause').click()");
ok($browser->until("document.getElementById('picture').src.includes('picture.mjpg')"), 'and let go');
$browser->js("document.getElementById('snapshot').click()");
ok($browser->until("document.getElementById('answer').textContent.match(/saved as cnnrun-.*\\.jpg/)"), 'one is saved');
is($browser->js("[...document.querySelectorAll('#pause, #snapshot, #full, #mark, .charts figcaption, .switches label')]"
   . ".filter((e) => !e.title).map((e) => e.id || e.textContent).join()"), '', 'words are explained where one points at them');
like($browser->js("document.querySelector('#events li span:last-child').textContent"), qr/^\d\d:\d\d:\d\d$/, 'events have the time of the day');
like($browser->js("document.title"), qr/^\d.* FPS . .* . cnnrun monitor$/, 'the title says what it is');

$browser->js("sessionStorage.setItem('token', 'wrongwrong')");
choose('policy', 'none');
ok($browser->until("document.getElementById('answer').textContent.includes('token')"), 'without the token nothing is changed');
ok($browser->js("!document.getElementById('locked').hidden && document.getElementById('policy').disabled"), 'and what to open is said');

# ---- nothing else is asked for, nothing breaks ----
my @elsewhere = grep { $_ !~ m{^(http://127\.0\.0\.1:\d+/|data:,)} } map { $_->{request}{url} } $browser->heard('Network.requestWillBeSent');
is("@elsewhere", '', 'nothing is loaded from elsewhere');
my @broken = map { $_->{exceptionDetails}{exception}{description} } $browser->heard('Runtime.exceptionThrown');
is("@broken", '', 'no line of its script throws');
my @logged = grep { !/401/ } map { $_->{entry}{text} } $browser->heard('Log.entryAdded');
is("@logged", '', 'the browser has nothing to complain of');
is($monitor->stop, 130, 'the monitor is ended');
ok($browser->until("document.getElementById('link').classList.contains('bad')"), 'and the page says so');

# ---- a machine without gauges, and a file that ends ----
SKIP: {
    my $film = "$dir/film.mp4";
    skip 'no ffmpeg, which makes the film', 12 if system(qw(ffmpeg -v error -y -f lavfi -i testsrc2=size=320x240:rate=30:duration=1 -c:v libx264), $film);
    mkdir "$dir/bare";
    my $ends = Monitor->start($build, $dir, '--sysfs-root', "$dir/bare", 'monitor', "$root/scripts/nets/lenet5.lua", $film, qw(--app classify --json));
    $browser->look(1280, 800, 0, 'light');
    $browser->go('http://127.0.0.1:' . $ends->port . '/');
    ok($browser->until("document.getElementById('link').textContent.includes('the source has ended')"), 'the page stays when the source ends, and says so');
    ok($browser->until("document.getElementById('picture').naturalWidth === 320"), 'with its last frame');
    like($browser->js("document.title"), qr/^ended/, 'the title says it, too');
    is($ends->state->{frame}, 30, 'which is the last one');
    ok($browser->js("!document.getElementById('locked').hidden && document.getElementById('again').disabled"), 'without the link nothing can be set');
    is($browser->js("[...document.querySelectorAll('#governor-row, #threshold-row, #classes-row')].filter((e) => e.getClientRects().length).length"), 0,
       'settings without a source are hidden');
    is($browser->js("[...document.querySelectorAll('.charts figure')].filter((f) => f.getClientRects().length && /Power|Frequency|EDP/.test(f.textContent)).length"), 0,
       'and charts');
    my $name = 'after the end';
    $browser->shot("$ENV{CNNRUN_SHOTS}/ended.png") if $ENV{CNNRUN_SHOTS};
    is($browser->js($contrast), '', "$name: text has a contrast of 4.5 and more");
    $browser->go('about:blank'); # to another fragment of the same page nothing is loaded
    $browser->go('http://127.0.0.1:' . $ends->port . '/#token=abcdefgh');
    ok($browser->until("!document.getElementById('again').hidden && !document.getElementById('again').disabled"), 'with it, it can');
    $browser->js("document.getElementById('again').click()");
    ok($ends->until(sub { $_[0]{frame} == 60 && $_[0]{ended} }), 'such as to play it again');
    is($ends->stop, 130, 'Ctrl-C ends it');
    open my $lines, '<', "$dir/lines" or die;
    is(scalar(grep { /"frame"/ } <$lines>), 60, 'each frame was told');
}
done_testing();
