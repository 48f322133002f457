#!/usr/bin/perl
# devicecheck and conform find and name each planted fault, and find none in correct plugins.
use strict;
use warnings;
use File::Temp 'tempdir';
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my ($sound, $devices, $faulty) = map { "$build/tests/conform/$_.so" } qw(sound devices faulty);
plan skip_all => "no $faulty" if grep { !-e } $sound, $devices, $faulty;
my $dir = tempdir(CLEANUP => 1);
$ENV{TMPDIR} = $dir; # what is left there is found below

# Runs a command; returns its status and output.
sub run {
    my @words = @_;
    my $pid = open(my $from, '-|') // die;
    if (!$pid) {
        open STDERR, '>', "$dir/err";
        exec "$build/cnnrun", @words or die;
    }
    my $text = do { local $/; <$from> } // '';
    close $from;
    return ($? >> 8, $text);
}

# The whole text of a file.
sub slurp {
    local (@ARGV, $/) = @_;
    return scalar <>;
}

# ---- devices: the judgement that must fail, and its words ----
my $crash = qr/the process died of \S.* \(signal \d+\)/;
my %devices = (
    empty_copy  => ['copies on the device', qr/after a copy to it: byte 0 of \d+ is/],
    empty_wait  => ['waits',                qr/waited for the mark behind a write, and reads the memory: byte/],
    empty_sync  => ['awaited marks|copies', qr/is 0x|do not come back|$crash/],
    hidden_loss => ['out of bounds',        qr/neither the call nor sync says that it failed/],
    short_write => ['copies',               qr/4097 bytes at offset 1 do not come back: byte 4096/],
    crash       => ['copies',               qr/1023 bytes at offset 0: $crash/],
    hang        => ['cancelled',            qr/cancelled while it works, round 0: the process did not end within \d+ s/],
    abandons    => ['closed while busy',    $crash],
    shared      => ['two threads',          qr/bytes of one stream do not come back while another runs/],
    unchecked   => ['out of memory',        qr/allocation 1 of \d+ fails: $crash/],
    silent      => ['out of bounds',        qr/sync failed \(device failed\) without a text/],
    unitless    => ['describes itself',     qr/concurrency is 0: want the number of its units/],
    lifo        => ['queue order',          qr/a copy that was queued before the next write/],
);
for my $name (sort keys %devices) {
    my ($judgement, $words) = @{ $devices{$name} };
    my @only = $judgement =~ /\|/ ? ('copies') : ($judgement);
    my ($code, $text);
    for my $seconds ($name eq 'hang' ? (3, 15, 75) : 20) { # counts a process's begin, which takes long at times
        ($code, $text) = run('--plugin-dir', $devices, 'devicecheck', $name, '--only', @only, '--timeout', $seconds);
        last if $text =~ /$words/;
    }
    is $code, 1, "$name: exit code 1";
    like $text, qr/^not ok \d+ - device $name: (?:$judgement): .*$words/m, "$name: found and told";
}
{
    my ($code, $text) = run('--plugin-dir', $devices, 'kernelcheck', '--kernel', 'relu_late_run', '--cases', 2);
    like $text, qr/^not ok 1 - relu_late_run on late_run: .*died of/m, 'a job that reads its cnr_run late is found';
    ($code, $text) = run('--plugin-dir', $devices, 'devicecheck', 'late_run');
    is $code, 1, '... by devicecheck too';
    like $text, qr/^not ok \d+ - kernel relu_late_run on late_run: .*died of/m, '... which tries kernels';
    is scalar(() = $text =~ /^not ok/mg), 1, '... and finds nothing else' or diag $text;
}

# ---- what has no fault ----
my ($code, $text) = run('--plugin-dir', $sound, 'devicecheck', 'queue_sound');
is $code, 0, 'a sound device passes' or diag $text;
like $text, qr/^ok \d+ - device queue_sound: waits$/m, '... by all that it has';
like $text, qr/^ok \d+ - kernel relu_queue_sound on queue_sound: /m, '... and its kernel';
($code, $text) = run('devicecheck', 'cpu', '--only', 'copies', '--json');
my @rows = map { decode_json($_) } split /\n/, $text;
is $code, 0, 'the processor\'s copies pass' or diag $text;
is "$rows[0]{kind} $rows[0]{name} $rows[0]{judgement} $rows[0]{result}", 'device cpu copies passed', '... as JSON';
($code, $text) = run('devicecheck', 'npu:3');
is $code, 6, 'a device that is not there is a mistake';
like slurp("$dir/err"), qr/^cnnrun devicecheck: npu:3: no such device; there are: /m, '... told with those that are';
($code, $text) = run('devicecheck', 'cpu', '--only', 'copie');
is $code, 1, 'a judgement that is not there is a mistake';
like slurp("$dir/err"), qr/no judgement "copie"; did you mean "copies"\?/, '... told with the nearest';

# ---- a plugin, all of it ----
# Writes a sample file; returns the words that give it to conform
sub sample {
    my ($name, $text) = @_;
    open my $to, '>', "$dir/$name" or die $!;
    print $to $text;
    close $to;
    return ('--sample', "$dir/$name");
}
my @samples = (sample('a.gray', "gray 00004 00005\n" . 'x' x 20), sample('a.relu', "relu 0000008\n"));
($code, $text) = run('conform', $sound, @samples, '-o', "$dir/report.html");
is $code, 0, 'a plugin without faults passes' or diag $text;
my @kinds = ('encoding halves: hostile bytes', 'importer importer_sound: damaged files', 'kernel relu_queue_sound on queue_sound',
    'knob knob_sound: settings', 'meter meter_sound: readings', 'plugin sound: names', 'source source_sound: samples');
like $text, qr/^ok \d+ - \Q$_\E(?::[^#]*)?$/m, "... $_" for @kinds;
my $page = slurp("$dir/report.html");
like $page, qr/<h1>sound 1\.0<\/h1>/, 'the page names the plugin';
like $page, qr/<tr class="passed">.*?<td>encoding<\/td><td>halves<\/td>/, '... and has its judgements';

my %others = (
    'encoding halves_lossy: loss'                => qr/differ by 0\.7\d* of their root mean square/,
    'encoding halves_over: encoded size'         => qr/encode wrote outside its \d+ bytes/,
    'encoding halves_hole: encoded size'         => qr/encode leaves byte 0 of \d+ as it was/,
    'encoding halves_trusting: hostile bytes'    => qr/damaged in way \d+ of seed 1: $crash/,
    'meter meter_negative: readings'             => qr/board reads -2\.5 watts/,
    'meter meter_falling: readings'              => qr/energy fell from 1000 to 999 microjoules/,
    'knob knob_stuck: settings'                  => qr/was set to 100000000 Hz and reads 600000000 Hz/,
    'knob knob_forgets: settings'                => qr/found at 600000000 Hz, and restore leaves it at 100000000/,
    'knob knob_steps: domains'                   => qr/step 1 is 300000000 Hz, behind 600000000: steps rise/,
    'source source_misshapen: samples'           => qr/a picture of 4 x 5 x 3 has 20 bytes/,
    'source source_trusting: damaged files'      => qr/damaged in way \d+ of seed 1: $crash/,
    'importer importer_trusting: damaged files'  => qr/damaged in way \d+ of seed 1: $crash/,
    'meter meter_leaking: readings'              => qr/it is done \d times, and \d+ blocks are not freed/,
    'knob knob_misreads: domains'                => qr/"600000000" was saved and loaded, and "25769803776" is saved then/,
    'source source_unwritten: samples'           => qr/read again, it gives other bytes: some are never written/,
    'source source_keeping: samples'             => qr/the bytes of a file are not freed/,
    'rewrite rewrite_example: answers'           => qr/it does not change its own example/,
    'device crash: copies'                       => $crash,
    'rewrite rewrite_both: answers'              => qr/output \d+ is off by \S+ from what it is without/,
    'rewrite rewrite_endless: answers'           => qr/it changes without end/,
    'rewrite rewrite_never: answers'             => qr/it changes none of \d+ nets and none of \d+ drawn ones/,
    'kernel dense_over_read on cpu: agrees with the reference' => qr/died of \S/,
    'encoding halves_short: loss'                => qr/element \d+ of \d+, \S+, far above the others, is decoded as 0/,
    'kernel dense_shared on cpu: agrees with the reference' => qr/while items of `parallel` overlap: they share memory/,
    'kernel dense_stale on cpu: agrees with the reference' => qr/output 0: \d+ of \d+ wrong/,
    'kernel dense_small_workspace on cpu: agrees with the reference' => qr/wrote past the end of the workspace/,
);
($code, $text) = run('conform', $faulty, @samples, '-o', "$dir/report.json");
is $code, 1, 'a plugin with faults: exit code 1';
like $text, qr/^not ok \d+ - \Q$_\E: .*$others{$_}/m, $_ for sort keys %others;
my $report = decode_json(slurp("$dir/report.json"));
is $report->{subject}, 'faulty 1.0', 'the report names the plugin';
is $report->{failed}, scalar(grep { $_->{result} eq 'failed' } @{ $report->{findings} }), '... and counts';
is scalar(@{ $report->{findings} }), $report->{judgements}, '... all of its findings';
($code, $text) = run('conform', $sound, '--keep-knobs', '--only', 'settings', '-o', "$dir/report.tap");
like $text, qr/^ok \d+ - knob knob_sound: settings # SKIP knobs are left as they are$/m, 'knobs may be left alone';
like slurp("$dir/report.tap"), qr/^ok 1 - .*^1\.\.\d+\n\z/ms, 'a report as TAP';
($code, $text) = run('conform', $sound, '--keep-knobs', '--only', 'settings', '-o', "$dir/report.txt");
like slurp("$dir/report.txt"), qr/^sound 1\.0: 3 judgements, 0 failed, 2 skipped; .*^skipped  knob knob_sound: settings: knobs are left/ms, '... and as text';
($code, $text) = run('conform', $sound, '-o', "$dir/report.pdf");
isnt $code, 0, 'a report of another ending is refused';
($code, $text) = run('conform', $sound, '--only', 'samples', '--sample', "$dir/report.tap");
like $text, qr/^not ok \d+ - source source_sound: samples: accepts takes none of the files that --sample gives/m, 'samples that nothing takes are told';
($code, $text) = run('conform', "$dir/none.so");
isnt $code, 0, 'a plugin that is not there is a mistake';
is_deeply [glob "$dir/cnnrun-*"], [], 'who dies leaves no folder of damaged files behind';
done_testing;
