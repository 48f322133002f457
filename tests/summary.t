#!/usr/bin/perl
# tests/summary.pl on made-up output of prove: failures, skips with their reasons, and what fails in CI.
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

my $dir = tempdir(CLEANUP => 1);
delete @ENV{qw(CI CNNRUN_ACCEPT_SKIPS CNNRUN_ROOT_APART)};
# (exit status, lines) for a log
sub summary {
    open my $out, '>', "$dir/log" or die;
    print $out @_;
    close $out;
    my @lines = split /\n/, `$^X '$FindBin::Bin/summary.pl' $dir/log`;
    return ($? >> 8, @lines);
}
my $pass = "ok\nAll tests successful.\nFiles=2, Tests=30,  1 wallclock secs\nResult: PASS\n";
is_deeply([summary($pass, $pass)], [0, 'skipped: 0', 'left out: 0', '60 passed, 0 failed'], 'two suites that passed');
is_deeply([summary('')], [1, 'skipped: 0', 'left out: 0', '0 passed, 0 failed'], 'nothing ran');
is_deeply([(summary($pass, "tests/a.t (Wstat: 256 (exited 1) Tests: 9 Failed: 2)\nFiles=1, Tests=9, x\nResult: FAIL\n"))[0, -1]],
    [1, '37 passed, 2 failed'], 'two failed');
is_deeply([(summary($pass, "tests/a.t (Wstat: 11 Tests: 9 Failed: 0)\nFiles=1, Tests=9, x\nResult: FAIL\n"))[0, -1]],
    [1, '39 passed, 1 failed'], 'a program that died');
is_deeply([(summary($pass, "Result: exit status 2\n"))[0, -1]], [1, '0 passed, 31 failed'], 'a suite that could not be run');

my $whole = "tests/a.t .. skipped: no OpenCL device\nbuild/tests/test_b .. \nok 1 - OpenCL # SKIP no OpenCL device\nok\n";
my $browser = "tests/c.t .......... skipped: no chromium: Debian's package of that name is one\n";
my $data = "ok 3 - x # skip no /root/a/tests/../../shared/data/mnist\nok 4 # SKIP no /b/../shared/data/mnist\n" .
    "ok 7 # skip README.md:9: build/cnnrun run: no /b/../shared/data/images/dog.jpg\n";
my $small = "ok 5 - y # SKIP one core\nok 6 - no skip # TODO later\n";
is_deeply([summary($whole, $browser, $data, $small, $pass)], [0, 'skipped: 7',
    '    1 test and 1 file: no OpenCL device',
    "    1 file: no chromium: Debian's package of that name is one",
    '    2 tests: no ../shared/data/mnist', '    1 test: no ../shared/data/images/dog.jpg', '    1 test: one core', 'left out: 0',
    'missing: opencl; install pocl-opencl-icd and oclgrind, or accept it: CNNRUN_ACCEPT_SKIPS=opencl',
    'missing: browser; install chromium, or accept it: CNNRUN_ACCEPT_SKIPS=browser',
    'missing: shared; put the folder of models and data beside the checkout, or accept it: CNNRUN_ACCEPT_SKIPS=shared',
    '30 passed, 0 failed'], 'reasons by their counts; a person is told what is missing');
my $choice = "ok 2 # skip left out: takes minutes\nok 3 # skip left out: the OpenCL compiler is slow\n";
my $root_only = "ok 2 # skip a plan: only root gives files away\n";
is_deeply([summary($choice, $root_only, $pass)], [0, 'skipped: 1', '    1 test: a plan: only root gives files away', 'left out: 2',
    '    1 test: takes minutes', '    1 test: the OpenCL compiler is slow', '30 passed, 0 failed'], 'what tests leave out is no want');
{
    local $ENV{CNNRUN_ROOT_APART} = 1;
    is_deeply([(summary($root_only, $pass))[1 .. 3]], ['skipped: 0', 'left out: 1',
        '    1 test: a plan: only root gives files away, in a suite of its own'], 'nor what a suite of its own runs');
}
$ENV{CI} = 'true';
for (['a device' => $whole], ['the browser' => $browser], ['the data' => $data]) {
    my ($status, @lines) = summary($_->[1], $pass);
    is_deeply([$status, $lines[-1]], [1, '30 passed, 1 failed'], "$_->[0] that is missing fails CI");
}
is_deeply([(summary($small, $pass))[0, -1]], [0, '30 passed, 0 failed'], 'other reasons do not');
$ENV{CNNRUN_ACCEPT_SKIPS} = 'opencl,browser';
is_deeply([(summary($whole, $browser, $pass))[0, -1]], [0, '30 passed, 0 failed'], 'what is accepted does not');
is_deeply([(summary($whole, $browser, $data, $pass))[0, -1]], [1, '30 passed, 1 failed'], 'the rest does');

# A reason that a test gives for want of one of the three is known to be one.
my ($known, @unknown) = (0);
my $root = "$FindBin::Bin/..";
for my $line (`grep -rnEi 'skip' '$root/tests' --include='*.t' --include='*.pm' --include='test_*.c' --include='*.h'`) {
    next if $line =~ m{tests/summary[.]} || $line !~ /skip(?:_all)?\b[^'"]*(?:(["'])[^"']*\1, *)?(["'])([^'"]*)/;
    my $reason = $3;
    next if $reason =~ /^left out: /;
    next unless $reason =~ /\bOpenCL\b(?!.*compiler)|chrom|browser|shared/i;
    delete $ENV{CNNRUN_ACCEPT_SKIPS};
    (summary("ok 1 # SKIP $reason\n", $pass))[0] ? $known++ : push @unknown, $line;
}
cmp_ok($known, '>=', 25, 'reasons for want of one of the three');
is("@unknown", '', 'every such reason in the tests is one of them');
done_testing;
