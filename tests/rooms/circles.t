#!/usr/bin/perl
# Files of a library that use each other, by the symbols of their objects: strongly connected files.
# CIRCLES=1 prints which symbols close each circle.
use strict;
use warnings;
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || './';
my $build = $ENV{CNNRUN_BUILD} || 'build';
my ($most_circles, $most_files) = (3, 7); # what is left

# Object => { objects of the same target that define what it uses }.
sub uses_in {
    my ($folder) = @_;
    my (%home, %wants, %uses);
    for (`find $folder -name '*.o' -exec nm -A {} +`) {
        my ($file, $type, $symbol) = m{[.]dir/(.*)[.]c[.]o:\S*\s+([A-Z]) (\S+)$} or next;
        next unless -e "${root}core/$file.c"; # objects of files that are gone stay in a build
        $file =~ s{^\w+/}{}; # the library
        if ($type eq 'U') { push @{$wants{$file}}, $symbol }
        else { $home{$symbol} = $file }
    }
    for my $file (keys %wants) {
        for my $symbol (@{$wants{$file}}) {
            my $other = $home{$symbol} // next;
            push @{$uses{$file}{$other}}, $symbol if $other ne $file;
        }
    }
    return \%uses;
}

# Sets of files each of which reaches all others.
sub circles {
    my ($uses) = @_;
    my (%reach, %done, @found);
    for my $from (keys %$uses) {
        my @next = $from;
        while (defined(my $file = pop @next)) {
            push @next, grep { !$reach{$from}{$_}++ } keys %{$uses->{$file} // {}};
        }
    }
    for my $file (sort keys %reach) {
        next if $done{$file} || !$reach{$file}{$file};
        my @circle = grep { $reach{$_}{$file} } sort keys %{$reach{$file}};
        $done{$_} = 1 for @circle;
        push @found, \@circle;
    }
    return @found;
}

is(join('|', map { "@$_" } circles({ a => { b => 1 }, b => { c => 1 }, c => { b => 1, d => 1 } })), 'b c', 'a circle is found');
my ($circles, $files) = (0, 0);
for my $folder (sort glob "$build/core/CMakeFiles/cnnrun-*-objects.dir $build/core/CMakeFiles/cnnrun.dir") {
    my $uses = uses_in($folder);
    for my $circle (circles($uses)) {
        my %in = map { $_ => 1 } @$circle;
        $circles++;
        $files += @$circle;
        note("@$circle");
        next unless $ENV{CIRCLES}; # which symbols close them
        for my $file (@$circle) {
            diag("    $file -> $_: @{$uses->{$file}{$_}}") for grep { $in{$_} } sort keys %{$uses->{$file}};
        }
    }
}
cmp_ok($circles, '<=', $most_circles, "circles of files, no more than $most_circles");
cmp_ok($files, '<=', $most_files, "files in them, no more than $most_files");
done_testing;
