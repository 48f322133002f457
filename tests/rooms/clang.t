#!/usr/bin/perl
# clang's warnings are errors too: it parses every C and C++ file with the options that built it, and makes
# nothing. $JOBS: files at once.
use strict;
use warnings;
use JSON::PP;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
plan skip_all => 'clang is missing' unless grep { -x "$_/clang" } split /:/, $ENV{PATH};
plan skip_all => "no $build/compile_commands.json" unless -e "$build/compile_commands.json";
my $entries = decode_json(do { local (@ARGV, $/) = "$build/compile_commands.json"; <> });
my @files = grep { $_->{file} =~ /\.(?:c|cpp)$/ && -e $_->{file} } @$entries;
my $jobs = $ENV{JOBS} // 2;

# What clang says of one file.
sub complaint {
    my ($entry) = @_;
    my $command = $entry->{command} =~ s/ -o \S+//r =~ s/ -c (?=\S+$)/ /r =~ s/^\S*ccache //r;
    $command =~ s/^\S*?(\+\+\S*)? /$1 ? 'clang++ ' : 'clang '/e;
    chdir $entry->{directory} or return "$entry->{directory}: $!";
    open my $pipe, '-|', "exec $command -fsyntax-only 2>&1" or return "$command: $!";
    my $text = do { local $/; <$pipe> };
    return close $pipe ? '' : "$entry->{file}:\n$text";
}

my @pipes;
for my $job (0 .. $jobs - 1) {
    defined(my $child = open $pipes[$job], '-|') or die "fork: $!";
    next if $child;
    for (my $i = $job; $i < @files; $i += $jobs) { print complaint($files[$i]) }
    exit 0;
}
my $said = join '', map { my $pipe = $_; local $/; <$pipe> // '' } @pipes;
cmp_ok scalar @files, '>', 300, 'the build tells what it compiles';
is $said, '', 'clang has nothing to say of ' . @files . ' files';
done_testing;
