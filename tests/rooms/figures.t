#!/usr/bin/perl
# Figures in README.md and core/docs/: a number with a unit that was measured has in its section the command that makes
# it, the date and the machine, or says that it is simulated, and so the same on every machine. Rows below name those that are settings or definitions, and so are true anywhere.
use strict;
use warnings;
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';
chdir $root or die "$root: $!";
my $unit = qr/(?:ns|µs|us|ms|s|min|seconds|minutes|hours|KB|MB|GB|KiB|MiB|GiB|bytes|MHz|GHz|W|J|%|x(?! \d)|fps|GFLOPS|times|points)(?!\w|\.\d)/;
my $figure = qr/(?<![\w.:,-])(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?: to \d+)?(?:-| )?$unit/;
my @settings = (
    [qr/(?:every|each) 0\.1 s\b/, 'the period of the tick'], [qr/V\^2 GHz/, 'a unit'], [qr/95%/, 'the level of an interval'],
    [qr/a band of 25%/, "the policy's own setting"], [qr/^\s*[\d.]+%\s+\w.*/, 'an answer of a net'],
    [qr/500 million instructions, 5 seconds, 256 MiB|million instructions and 256 MiB/, 'bounds of the sandbox'],
    [qr/17 points/, 'points of a body'], [qr/300,000 instructions, 10 ms|more than 24 MiB/, 'bounds of a step'], [qr/guards of 4096 bytes/, 'the size of a guard'],
    [qr/\d Cortex-A\d+.*/, 'arithmetic from data sheets'], [qr/less than 2 GB/, 'of memory'],
);

# Measured figures of a section that lacks a command, a date or a machine.
sub unproven {
    my ($section) = @_;
    my $has = $section =~ /\b20\d\d-\d\d-\d\d\b/ && $section =~ /`[^`\n]*(?:cnnrun|tools|tests|python3|perl|prove)[^`\n]*`|^ {4}(?:build\/)?(?:cnnrun|tools|tests)/m
        && $section =~ /\b(?:cores?|threads?|AVX|H100|H200|qemu|bare (?:Debian|machine)|two-core)\b/;
    return if $has || $section =~ /\bthe\s+same\s+on\s+every\s+machine\b/ && $section =~ /\bsimulated\b/;
    my @found;
    for my $line (split /\n/, $section) {
        my $prose = $line =~ s/`[^`]*`//gr;
        $prose =~ s/$_->[0]//mg for @settings;
        push @found, "$1: $line" while $prose =~ /($figure)/g;
    }
    return @found;
}

is scalar(my @two = unproven("A run takes 5 ms and 3.2 MB.\n")), 2, 'finds figures without a proof';
is scalar(my @none = unproven("A run takes 5 ms (`cnnrun bench NET`, 2026-11-20, two cores).\n")), 0, 'and none that has one';
is scalar(my @one = unproven("A run takes 5 ms (`cnnrun bench NET`, two cores).\n")), 1, 'a date is wanted';
for my $page ('README.md', glob 'core/docs/*.md') {
    open my $in, '<', $page or die "$page: $!";
    my @sections = split /^(?=#+ )/m, do { local $/; <$in> };
    is join("\n", map { unproven($_) } @sections), '', $page;
}
done_testing;
