#!/usr/bin/perl
# clang's warnings are errors too: it parses every C and C++ file with the options that built it, and makes
# nothing. Files of the same options share a process, since starting clang takes longer than most files.
# $JOBS: processes at once.
use strict;
use warnings;
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => 'clang is missing' unless grep { -x "$_/clang" } split /:/, $ENV{PATH};
plan skip_all => "no $build/compile_commands.json" unless -e "$build/compile_commands.json";
my $entries = decode_json(do { local (@ARGV, $/) = "$build/compile_commands.json"; <> });
my $jobs = $ENV{JOBS} // 2;

my (%files, %seen); # files of each folder and command
for my $entry (grep { $_->{file} =~ /\.(?:c|cpp)$/ && -e $_->{file} } @$entries) {
    my $command = $entry->{command} =~ s/ -o \S+//r =~ s/ -c \S+$//r =~ s/^\S*ccache //r =~ s/ -D\w+_EXPORTS(?= )//r;
    $command =~ s/^\S*?(\+\+\S*)? /$1 ? 'clang++ ' : 'clang '/e;
    push @{$files{"$entry->{directory}\n$command"}}, $entry->{file} unless $seen{"$command $entry->{file}"}++;
}
my (@parts, $parsed); # some files of one command
for my $key (sort keys %files) {
    my @all = @{$files{$key}};
    $parsed += @all;
    push @parts, [$key, splice @all, 0, 20] while @all;
}

# The end of a command that parses: its status and what it says.
sub result {
    my ($command) = @_;
    open my $pipe, '-|', "exec $command 2>&1" or return (0, "$command: $!");
    my $text = do { local $/; <$pipe> } // '';
    return (close $pipe, $text);
}

# What clang says of some files.
sub complaint {
    my ($key, @some) = @_;
    my ($folder, $command) = split /\n/, $key;
    chdir $folder or return "$folder: $!";
    my ($good, $text) = result("$command -fsyntax-only $some[0] -###"); # the driver starts a process for each file
    my ($compiler) = $text =~ /^ ("[^"]*" "-cc1" .*) "\Q$some[0]\E"$/m or return "$some[0]: $text";
    ($good, $text) = result("$compiler @some");
    return $good ? '' : "$text(of @some)\n";
}

my @pipes;
for my $job (0 .. $jobs - 1) {
    defined(my $child = open $pipes[$job], '-|') or die "fork: $!";
    next if $child;
    for (my $i = $job; $i < @parts; $i += $jobs) { print complaint(@{$parts[$i]}) }
    exit 0;
}
my $said = join '', map { my $pipe = $_; local $/; <$pipe> // '' } @pipes;
cmp_ok $parsed, '>', 300, 'the build tells what it compiles';
is $said, '', "clang has nothing to say of $parsed files";
done_testing;
