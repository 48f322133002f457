#!/usr/bin/perl
# Memory runs out at the first, second ... allocation, from then on or once: plugins load completely or fail
# with a reason.
use strict;
use warnings;
use Test::More;

# the leak checker dies in its own search of the libraries' thread-local storage where this is on
$ENV{ASAN_OPTIONS} //= 'intercept_tls_get_addr=0';
my $root = $0 =~ s{tests/core/host/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} || "$root/build";

# stdout, stderr and exit code (128 and more: by a signal) with the n-th allocation failing
sub run {
    my ($n, $once) = @_;
    my $out = `CNNRUN_FAIL_ALLOC@{[$once // '']}=$n $build/cnnrun plugins --json 2>/tmp/cnnrun-hostile-$$`;
    my $code = $? >> 8 | ($? & 127 ? 128 : 0);
    open my $in, '<', "/tmp/cnnrun-hostile-$$" or die;
    local $/;
    my $err = <$in> // '';
    unlink "/tmp/cnnrun-hostile-$$";
    return ($out, $err, $code);
}

my ($whole, undef, $fine) = run(0);
is($fine, 0, 'with memory, plugins are listed');
my (undef, undef, $code) = run(1);
if ($code == 0) {
SKIP: { skip 'left out: only builds with -DCNNRUN_HOSTILE=ON heed CNNRUN_FAIL_ALLOC', 1 }
    done_testing;
    exit;
}

my ($n, $out, $err, @bad) = (0);
do {
    ($out, $err, $code) = run(++$n);
    my $told = $code == 0 || $err =~ /memory/;
    push @bad, "allocation $n: exit code $code: $err" if $code >= 23 || !$told || $err =~ /Sanitizer/;
} while ($code != 0 && $n < 2000 && @bad < 5);
ok(!@bad, "memory ran out at $n allocations, and each time that was the reason given")
    or diag(join "\n", @bad);
is($out, $whole, 'with enough of it nothing is missing');

my $step = 1 + int($n / 60);
@bad = ();
for (my $k = 1; $k < $n; $k += $step) {
    ($out, $err, $code) = run($k, '_ONCE');
    my $good = $code == 0 ? $out eq $whole : $code < 23 && $err =~ /memory/ && $err !~ /Sanitizer/;
    push @bad, "allocation $k alone: exit code $code: $err" unless $good;
}
ok(!@bad, 'one allocation that fails: all plugins are there, or memory was the reason')
    or diag(join "\n", @bad[0 .. ($#bad < 4 ? $#bad : 4)]);
done_testing;
