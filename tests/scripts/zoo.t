#!/usr/bin/perl
# The zoo: every net builds and has the figures of scripts/nets/README.md, which equal the published ones.
use strict;
use warnings;
use Test::More;

my $root = $0 =~ s{tests/scripts/[^/]*$}{}r || '.';
my $build = $ENV{CNNRUN_BUILD} || "$root/build";

# The number that a text such as "1.2 M" means; a text that is none, as it is.
sub number {
    my ($text) = @_;
    $text =~ s/[,*]//g;
    return $text =~ /^([\d.]+) ([MG])$/ ? $1 * ($2 eq 'M' ? 1e6 : 1e9) : $text;
}

my %rows;
open(my $table, '<', "$root/scripts/nets/README.md") or die $!;
while (<$table>) {
    my @cells = map { s/^\s+|\s+$//gr } split /\|/;
    $rows{ $cells[1] } = [ @cells[ 2 .. 5 ] ] if @cells > 5 && $cells[2] =~ /^\d/;
}
my @nets = map { m{([^/]+)\.lua$} } glob("$root/scripts/nets/*.lua");
is_deeply([ sort keys %rows ], [ sort @nets ], 'the table has a row for each net');

my @lines;
for my $net (@nets) {
    my ($parameters, $macs, $published, $published_macs) = map { number($_) } @{ $rows{$net} };
    my $shown = `$build/cnnrun show $root/scripts/nets/$net.lua`;
    my ($p, $m) = $shown =~ /parameters (\d+), MACs (\d+)/;
    is($p, $parameters, "$net: parameters") or next;
    is($m, $macs, "$net: MACs");
    is($parameters, $published, "$net: parameters as published") if $published ne '-';
    my $near = $rows{$net}[3] =~ /\*/ ? 0.12 : 0.005; # other pictures; rounded figures
    cmp_ok(abs($macs / $published_macs - 1), '<', $near, "$net: MACs as published")
        if $published_macs ne '-';
    open(my $script, '<', "$root/scripts/nets/$net.lua") or die $!;
    push @lines, scalar(() = <$script>);
}
@lines = sort { $a <=> $b } @lines;
cmp_ok($lines[ @lines / 2 ], '<', 40, "median length of a net's script: $lines[@lines / 2] lines");
done_testing();
