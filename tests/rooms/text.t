#!/usr/bin/perl
# What people read goes through one writer (core/base/say.c): nothing else in core/ writes text.
use strict;
use warnings;
use File::Find;
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';

# Files that write for no eyes, each with its reason.
my %excused = (
    'core/base/say.c' => 'the writer itself',
    'core/base/output.c' => 'what a file holds is data',
    'core/cli/reference.c' => 'help, man page and completions: our own words, for other programs too',
    'core/check/worker.c' => 'lines for the parent process, which tells them',
);

my $writer = qr/(?<![\w.>])(v?f?printf|v?dprintf|f?putc|f?puts|putchar|fwrite|perror|psignal)\s*\(/;

# Calls of functions that write, as "line: what"; comments are blanked.
sub writers_in {
    my ($text) = @_;
    $text =~ s{("(?:[^"\\\n]|\\.)*")|(/\*.*?\*/)}{defined $1 ? '""' : $2 =~ s/[^\n]//gr}gse;
    my (@found, $number);
    for my $line (split /\n/, $text) {
        $number++;
        push @found, "$number: $1" if $line =~ $writer;
    }
    return @found;
}

is(join(' ', writers_in("a;\nprintf(\"x\"); /* puts(1) */\nfwrite(b, 1, n, f);\nsnprintf(a, n, b);")),
    '2: printf 3: fwrite', 'a writer is found where there is one');

my (@files, %seen);
find({ wanted => sub { push @files, $_ if /\.[ch]$/ }, no_chdir => 1 }, "$root/core");
cmp_ok(scalar @files, '>', 30, 'the core has files to look through');
for my $file (sort @files) {
    my $name = $file =~ s{^\Q$root\E/?}{}r =~ s{^\./}{}r;
    next if $name =~ m{^core/include/};
    local (@ARGV, $/) = ($file);
    my @found = writers_in(scalar <>);
    $seen{$name} = 1 if @found;
    next if $excused{$name} || !@found;
    fail("$name says text with cnri_say");
    diag("$name:$_") for @found;
}
ok(!(grep { !$seen{$_} } keys %excused), 'every excuse is needed')
    or diag(join ', ', grep { !$seen{$_} } keys %excused);
done_testing;
