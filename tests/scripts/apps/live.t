#!/usr/bin/perl
# A monitor's switches, through HTTP: governor, threshold and policy change the running loop and are told; faces;
# a stream that drops is watched on; where nothing can be set it is said.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../../plugins/gauge-common";
use Camera;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP;
use Monitor;
use Test::More;
use Time::HiRes qw(sleep time);
use Tree;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $data = ($ENV{CNNRUN_SHARED} // "$root/../shared") . '/data';
my $net = "$root/scripts/nets/lenet5.lua";
for my $plugin (qw(object-page source-video draw-cairo)) {
    plan skip_all => "$plugin was not built" unless -e "$build/plugins/$plugin.so";
}
my $dir = tempdir(CLEANUP => 1);
$ENV{CNNRUN_CACHE} = "$dir/cache";
$ENV{CNNRUN_OPENCL} = 'none';

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
# The bounds of the made-up clock.
sub bounds { return join ' ', map { $tree->text("$cpu/$_") =~ s/\s+$//r } qw(scaling_min_freq scaling_max_freq) }
# 1: what is wanted comes within a minute.
sub comes { my ($wanted, $text) = @_; for (1 .. 600) { return 1 if $wanted->(); sleep 0.1 } return 0 }
my $source = Camera->start(30, '320x240') or plan skip_all => 'no ffmpeg, which makes the pictures of a camera';
my $camera = $source->url;

# ---- governors, on knobs that are files ----
my $monitor = Monitor->start($build, $dir, '--sysfs-root', $tree->root, 'monitor', $net, $camera,
                             (qw(--app classify -q --governor), "fixed,at=lowest", "-o"), "$dir/seen.mkv");
my $state = $monitor->until(sub { $_[0]{frame} }) // {};
is($state->{governor}, 'fixed,at=lowest', '--governor is reported');
like($monitor->events($state), qr/governor: fixed,at=lowest(;|$)/, 'as an event, too');
ok(comes(sub { bounds() eq '177000 177000' }), 'and sets the knob');
is($state->{hz}, 480000000, 'the frequency is what the knob tells');
ok(abs(($monitor->until(sub { $_[0]{watts} }) // {})->{watts} - 2.531) < 0.001, 'power is the meter\'s');
$state = $monitor->until(sub { $_[0]{edp} }) // {};
ok(abs($state->{edp} - $state->{watts} / $state->{fps} ** 2) < 1e-3 * $state->{edp}, 'EDP is of a frame');
like($monitor->set('{"governor":"fixed,at=highest"}'), qr/ 202 /, 'another one, with the token');
ok(comes(sub { bounds() eq '543000 543000' }), 'is in force');
ok($monitor->until(sub { $_[0]{governor} eq 'fixed,at=highest' && $monitor->events($_[0]) =~ /governor fixed,at=lowest: \d+ switches? in/ }),
   'is told, and what came of the first');
my $events = $monitor->get('/events', 3000);
like($events, qr/data: \{[^\n]*"governor":"fixed,at=highest"/, 'also to those who get events');
like($monitor->set('{"governor":"none"}', ''), qr/ 401 /, 'without the token nothing changes');
is(bounds(), '543000 543000', 'indeed');
$monitor->set('{"governor":"none"}');
ok(comes(sub { bounds() eq '177000 543000' }), 'none puts back what was found');
$monitor->set('{"governor":"edp"}');
ok($monitor->until(sub { $_[0]{governor} eq 'edp' }), 'edp');
$monitor->set($_) for '{"threshold":0.5}', '{"volume":11}', '{"governor":}';
$state = $monitor->until(sub { $monitor->events($_[0]) =~ /not understood/ }) // {};
like($monitor->events($state), qr/volume: no switch of this name; threshold: this application has none/, 'what makes no sense is reported');
$monitor->until(sub { $_[0]{frame} > 30 });
is($monitor->stop, 130, 'Ctrl-C');
is(bounds(), '177000 543000', 'all is put back');
cmp_ok(scalar(() = `ffprobe -v error -show_entries packet=pts_time -of csv=p=0 $dir/seen.mkv` =~ /\n/g), '>', 10, 'and the recording is whole');

# ---- where nothing can be set ----
my $said = `$build/cnnrun --sysfs-root $dir monitor $net $camera --app classify --governor edp 2>&1`;
ok($? && $said =~ /no plugin finds a knob/, 'a machine without a knob says so at once');
$said = `$build/cnnrun monitor $net $camera --app classify --governor nobody 2>&1`;
ok($? && $said =~ /nobody: there is no policy/, 'no such governor');
$said = `$build/cnnrun monitor $net $camera --app classify --place nowhere 2>&1`;
ok($? && $said =~ /nowhere: no such file, nor a policy/, 'no such policy');

# ---- policies, on a simulated board ----
$monitor = Monitor->start($build, $dir, qw(--board odroid_xu3 monitor), $net, $camera, qw(--app classify -q --place best));
$state = $monitor->until(sub { $_[0]{placed} }, 240) // {};
is($state->{policy}, 'best', '--place is reported');
# The devices with their layers.
sub placed { my $s = shift; return join ' ', map { "$_->{device} $_->{layers}" } @{ $s->{placed} // [] } }
like(placed($state), qr/^sim:gpu\d 3 sim:gpu\d 3 sim:cpu 1$/, 'with what runs where: ' . placed($state));
my $frame = $state->{frame};
$monitor->set('{"policy":"least_energy"}');
$state = $monitor->until(sub { $_[0]{policy} eq 'least_energy' }, 240) // {};
like(placed($state), qr/^sim:gpu2 6 sim:cpu 1$/, 'another one places it anew');
like($monitor->events($state), qr/policy: least_energy \(layers: sim:gpu2 6, sim:cpu 1\);.* policy: least_energy: devices are measured/, 'told before and behind');
ok($monitor->until(sub { $_[0]{frame} > $frame + 10 && $_[0]{found}[0]{label} =~ /^\d$/ }), 'frames are named on');
$monitor->set('{"policy":"none"}');
$state = $monitor->until(sub { $_[0]{policy} eq 'none' }) // {};
is(placed($state), '', 'none takes it back');
$monitor->set('{"governor":"fixed,at=lowest"}');
ok($monitor->until(sub { grep { $_->{name} eq 'gpu' && $_->{hz} == 177e6 } @{ $_[0]{clocks} // [] } }), "the board's clock follows a governor");
is($monitor->stop('TERM'), 143, 'SIGTERM');

# ---- thresholds, and faces ----
SKIP: {
    my $xl = "$data/darknet/yolo-fastest/yolo-fastest-1.1";
    skip 'no shared/data/darknet, images', 4 unless -e "$xl.weights" && -e "$data/images/dog.jpg";
    my $dog = Camera->start(10, '', '-i', "$data/images/dog.jpg", qw(-vf scale=480:360));
    $monitor = Monitor->start($build, $dir, 'monitor', "$xl.cfg,$xl.weights", $dog->url, '-q');
    $state = $monitor->until(sub { @{ $_[0]{found} // [] } > 2 }) // {};
    ok(@{ $state->{found} } > 2, 'boxes: ' . join ' ', map { $_->{label} } @{ $state->{found} });
    my ($best) = sort { $b <=> $a } map { $_->{score} } @{ $state->{found} };
    $monitor->set(sprintf '{"threshold":%.3f}', $best - 0.03);
    $state = $monitor->until(sub { $_[0]{threshold} != 0.3 && @{ $_[0]{found} } == 1 }) // {};
    is(scalar @{ $state->{found} // [] }, 1, 'a higher threshold leaves the best');
    $monitor->set('{"threshold":0.2}');
    ok($monitor->until(sub { @{ $_[0]{found} } > 2 }), 'a lower one brings them back');
    $monitor->set('{"threshold":"1"}');
    ok($monitor->until(sub { $monitor->events($_[0]) =~ /threshold: want 0 to 1/ && $_[0]{threshold} == 0.2 }), 'what is no number changes nothing');
    $monitor->stop;
}
for my $faces ([ultraface => 'onnx/ultraface/version-RFB-320.onnx', 'onnx/ultraface/version-RFB-320.onnx'],
               [mtcnn => 'caffe/mtcnn', 'caffe/mtcnn/det1.caffemodel'], [yunet => 'onnx/yunet/yunet_n_dynamic.onnx', 'onnx/yunet']) {
  SKIP: {
    my ($name, $model, $there) = @$faces;
    my ($file) = glob "$data/$model";
    ($file) = glob "$data/onnx/yunet/*.onnx" if $name eq 'yunet';
    my $picture = "$data/images/ultraface_1.jpg";
    skip "no shared/data/$there, images", 3 unless $file && -e "$data/$there" && -e $picture;
    system(qw(ffmpeg -v error -y -framerate 10 -loop 1 -t 1 -i), $picture, qw(-vf scale=640:-2 -c:v libx264 -preset ultrafast), "$dir/faces.mp4");
    my @lines = map { decode_json($_) } split /\n/, `$build/cnnrun monitor $file $dir/faces.mp4 --app faces --json -o $dir/$name.mp4 2>$dir/err`;
    is(scalar @lines, 10, "$name: every frame");
    cmp_ok(scalar(grep { @{ $_->{found} } > 0 } @lines), '==', 10, 'faces in each: ' . @{ $lines[-1]{found} // [] });
    is(scalar(() = `ffprobe -v error -select_streams v -show_entries packet=pts_time -of csv=p=0 $dir/$name.mp4` =~ /\n/g), 10, 'drawn');
  }
}

# ---- a stream that drops ----
SKIP: {
    skip 'no ffmpeg, which makes the stream', 5 if system('ffmpeg -version >/dev/null 2>&1');
    system(qw(ffmpeg -v error -y -f lavfi -i testsrc2=size=160x120:rate=10:duration=1 -f mpjpeg), "$dir/part.mjpg");
    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5, ReuseAddr => 1) or die;
    my $port = $server->sockport;
    my $pid = fork // die;
    if (!$pid) {
        $SIG{PIPE} = 'IGNORE';
        open my $in, '<:raw', "$dir/part.mjpg" or die;
        my $part = do { local $/; <$in> };
        my @pictures = split /(?=--ffmpeg\r\n)/, $part;
        for my $turn (1 .. 3) { # three times there, in the middle of a picture gone; then for good
            my $client = $server->accept or last;
            while (defined(my $line = <$client>)) { last if $line =~ /^\r?\n$/ }
            $client->autoflush(1);
            print $client "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=ffmpeg\r\n\r\n";
            for my $i (0 .. 8) { print $client $pictures[$i]; sleep 0.05 }
            print $client substr $pictures[9], 0, 1000;
            $client->shutdown(1);
            sleep 0.2;
            close $client;
        }
        exit 0;
    }
    close $server;
    $monitor = Monitor->start($build, $dir, 'monitor', $net, "http://127.0.0.1:$port/camera.mjpg", qw(--app classify --json -o), "$dir/drops.mkv");
    ok(comes(sub { waitpid($pid, 1) }), 'a stream is asked for three times');
    ok(comes(sub { $monitor->said =~ /the stream dropped, trying again/ }), 'that it drops is reported');
    sleep 1;
    is($monitor->stop, 130, 'while it is gone Ctrl-C is heard');
    open my $in, '<', "$dir/lines";
    my @lines = grep { $_->{frame} } map { decode_json($_) } <$in>; # the last tells of the end
    cmp_ok(scalar @lines, '>=', 10, 'frames of each time it was back: ' . @lines);
    my $n = () = `ffprobe -v error -show_entries packet=pts_time -of csv=p=0 $dir/drops.mkv` =~ /\n/g;
    is($n, scalar @lines, 'all of them recorded');
}
done_testing();
