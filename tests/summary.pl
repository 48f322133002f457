#!/usr/bin/perl
# Summarises the output of prove --directives for several suites: skipped tests by reason, then as the last line
# "N passed, N failed". Exit status 1: something failed, or nothing ran.
# A reason "left out: ..." is a choice of the test. All other reasons name something that is missing.
# CNNRUN_ROOT_APART=1: what only root can do runs in a suite of its own, so a test that skips it leaves it out.
# An OpenCL device, a browser and ../shared are in the packages or beside the checkout, so whole parts go
# untested where one is missing. With CI=true each of them counts as a failure, unless CNNRUN_ACCEPT_SKIPS
# names it ("opencl browser shared").
use strict;
use warnings;

my @kinds = ( # what is missing, the reasons that say so, what to do
    [opencl => qr/OpenCL device|opencl-headers|CL.cl[.]h|opencl-mali|\boclgrind\b|^opencl\b/i, 'install pocl-opencl-icd and oclgrind'],
    [browser => qr/chromium/i, 'install chromium'],
    [shared => qr/\bshared\b|\bMNIST\b|no digits|no data\b/i, 'put the folder of models and data beside the checkout'],
);
my %accepted = map { $_ => 1 } split /[\s,]+/, $ENV{CNNRUN_ACCEPT_SKIPS} // '';
my ($tests, $suites, $failed, $bad) = (0, 0, 0, 0);
my %skipped; # by reason: tests and whole files
my $for_root = qr/\bonly root\b|\bnot root\b|right to give files away/;
while (<>) {
    if (/^Files=\d+, Tests=(\d+)/) {
        $tests += $1;
        $suites++;
    } elsif (/ Tests: \d+ Failed: (\d+)\)/) { # a program that died may have no failed test
        $failed += $1 || 1;
        $tests++ if !$1;
    } elsif (/^Result: (?!PASS)/) {
        $bad++;
    } elsif (/^ok\b.*?#\s*skip\S*\s*(.*?)\s*$/i) {
        $skipped{reason($1)}[0]++;
    } elsif (/\.\.+ skipped: (.*?)\s*$/) {
        $skipped{reason($1)}[1]++;
    }
}
$failed = $tests += $bad if $bad && !$failed;

# Paths down to the shared data differ by machine and by test; so does the command that a README's line has.
sub reason {
    my ($text) = @_;
    $text =~ s{^\S+\.md:\d+: .*: (?=no |want)}{};
    $text =~ s{\S*/(?=shared\b)}{../}g;
    $text = "left out: $text, in a suite of its own" if $ENV{CNNRUN_ROOT_APART} && $text =~ $for_root;
    return length $text ? $text : '(no reason)';
}
# Numbers of tests and files in words.
sub count { return join ' and ', map { my $n = $_[0][$_]; $n ? "$n " . (qw(test file))[$_] . ($n > 1 ? 's' : '') : () } 0, 1 }

my @order = sort { ($skipped{$b}[1] // 0) <=> ($skipped{$a}[1] // 0) || ($skipped{$b}[0] // 0) <=> ($skipped{$a}[0] // 0) || $a cmp $b }
    keys %skipped;
my @wants = grep { !/^left out: / } @order;
for (['skipped', @wants], ['left out', grep { s/^left out: // } @{ [@order] }]) {
    my ($title, @reasons) = @$_;
    my $of = sub { $skipped{$_[0]} // $skipped{"left out: $_[0]"} };
    my $sum = 0;
    $sum += ($_->[0] // 0) + ($_->[1] // 0) for map { $of->($_) } @reasons;
    print "$title: $sum\n";
    print '    ', count($of->($_)), ": $_\n" for @reasons;
}
for (@kinds) {
    my ($kind, $pattern, $what) = @$_;
    next if $accepted{$kind} || !grep { $_ =~ $pattern } @wants;
    my $is_red = ($ENV{CI} // '') eq 'true';
    print "missing: $kind; $what, or accept it: CNNRUN_ACCEPT_SKIPS=$kind", ($is_red ? ' (a failure, since CI=true)' : ''), "\n";
    $failed++, $tests++ if $is_red;
}
print $tests - $failed, " passed, $failed failed\n";
exit !($suites && !$failed);
