#!/usr/bin/perl
# Runs a monitor for a long time, with its page open in a browser: slope of memory, file handles, lost and late frames.
#     perl tests/bench/soak.pl [--minutes 60] [--rate 30] [--drops 10] [MODEL [VIDEO]] [-- OPTIONS of monitor]
# The first 90 pictures of VIDEO come again and again, as a camera's would; without one a test picture moves. The camera
# goes away and comes back so many times, for 5 and 45 seconds by turns.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../scripts/apps", "$FindBin::Bin/../plugins/object-page";
use Browser;
use Camera;
use File::Temp qw(tempdir);
use Getopt::Long qw(:config pass_through);
use Monitor;
use Time::HiRes qw(sleep time);

my ($minutes, $rate, $drops) = (60, 30, 0);
my @words = @ARGV;
my ($split) = grep { $words[$_] eq '--' } 0 .. $#words;
my @more = defined $split ? splice(@words, $split) : ();
shift @more;
@ARGV = @words;
GetOptions('minutes=f' => \$minutes, 'rate=i' => \$rate, 'drops=i' => \$drops) or die;
my $root = "$FindBin::Bin/../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $model = shift // "$root/scripts/nets/lenet5.lua";
my $film = shift;
@more = qw(--app classify) if !@more && $model =~ /lenet5\.lua$/;
my $camera = Camera->start($rate, '640x480', $film ? ('-i', $film) : ()) or die 'no ffmpeg, which makes the pictures';
my $dir = tempdir(CLEANUP => 1);
my $monitor = Monitor->start($build, $dir, 'monitor', $model, $camera->url, $drops ? '--json' : '-q', @more);
die $monitor->said unless $monitor->port;
my $program = Browser::program();
my $browser = $program && Browser->start($program);
$browser->go('http://127.0.0.1:' . $monitor->port . '/#token=abcdefgh') if $browser;
print "no chromium: the page is not looked at\n" unless $browser;

sub kilobytes { # that are its own
    open my $in, '<', "/proc/" . $monitor->pid . "/smaps_rollup" or return;
    my %of = map { /^(\w+):\s+(\d+) kB/ ? ($1, $2) : () } <$in>;
    return $of{Private_Dirty};
}
# How many files the monitor has open.
sub handles { my @all = glob "/proc/" . $monitor->pid . "/fd/*"; return scalar @all }

my (@rows, @latency, %before);
my ($begun, $told) = (time, 0);
my ($gone, $due, $back) = (0, $drops ? 60 * $minutes / ($drops + 1) : 1e9, 0); # times; when it goes, or comes back
while (time - $begun < $minutes * 60) {
    sleep 2;
    my $state = $monitor->state;
    my $at = time - $begun;
    if ($back && $at > $back) {
        $camera->back or die "the camera's address is taken\n";
        ($due, $back) = ($gone < $drops ? 60 * $minutes * ($gone + 1) / ($drops + 1) : 1e9, 0);
    } elsif (!$back && $at > $due) {
        $camera->leave;
        $back = $at + ($gone++ % 2 ? 45 : 5);
    }
    my $kb = kilobytes() // last;
    push @rows, [$at, $kb, handles(), $state->{frame} // 0, $state->{lost} // 0];
    push @latency, 1000 * ($state->{latency} - ($state->{inference} // 0)) if $state->{latency};
    $browser->{events} = [] if $browser;
    $browser->js('1') if $browser;
    next if $at < $told;
    $told += 60;
    printf "%5.1f min: %.2f MB, %d handles, frame %d, %d lost\n", $at / 60, $kb / 1024, @{ $rows[-1] }[2 .. 4];
    STDOUT->flush;
}

# ---- results: without the first fifth, in which caches fill ----
my @late = grep { $_->[0] > $minutes * 12 } @rows;
die "too short\n" if @late < 10;
my ($n, $st, $sm) = (scalar @late, 0, 0);
$st += $_->[0], $sm += $_->[1] for @late;
my ($mt, $mm) = ($st / $n, $sm / $n);
my ($tt, $tm) = (0, 0);
$tt += ($_->[0] - $mt) ** 2, $tm += ($_->[0] - $mt) * ($_->[1] - $mm) for @late;
my $slope = $tm / $tt;
my $rest = 0;
$rest += ($_->[1] - $mm - $slope * ($_->[0] - $mt)) ** 2 for @late;
my @sorted = sort { $a <=> $b } @latency;
printf "memory %.2f MB, slope %+.3f MB an hour (standard error %.3f)\n", $mm / 1024, $slope * 3600 / 1024,
    sqrt($rest / ($n - 2) / $tt) * 3600 / 1024;
my ($least, $most) = (sort { $a <=> $b } map { $_->[2] } @late)[0, -1];
printf "handles %d to %d\n", $least, $most;
my @told = grep { /"source"/ } do { open my $in, '<', "$dir/lines"; <$in> };
printf "the source was lost %d times: told %d times, and %d times that it is back\n", $gone,
    scalar(grep { /away/ && !/"again"/ } @told), scalar grep { /"back"/ } @told if $drops;
printf "frames %d in %.1f minutes, %d lost (%.3f%%)\n", $rows[-1][3], $rows[-1][0] / 60, $rows[-1][4], 100 * $rows[-1][4] / ($rows[-1][3] || 1);
printf "latency over inference: median %.1f ms, 95%% %.1f ms, of %d frames looked at\n",
    $sorted[$#sorted / 2], $sorted[$#sorted * .95], scalar @sorted;
exit($monitor->stop == 130 ? 0 : 1);
