#!/usr/bin/perl
# Text for people is written by one file (core/common/people/say.c, by core/engine/base/say.c): no other object of core/ uses the C
# library's functions for that.
use strict;
use warnings;
use Test::More;

my $build = $ENV{CNNRUN_BUILD} || 'build';
# Files that write for no eyes, each with its reason.
my %excused = (
    'engine/base/say.c' => 'the writer itself',
    'engine/base/output.c' => 'what a file holds is data',
    'program/front/help.c' => 'help: our own words',
    'program/cli/cmd_completions.c' => 'man page and completions: our own words, for other programs too',
    'check/judge/worker.c' => 'lines for the parent process, which tells them',
);
my %writes;
for (`find $build/core/CMakeFiles -name '*.o' -exec nm -uA {} +`) {
    next unless m{[.]dir/(.*)[.]o:\s+U (?:__)?((?:v?[fd]?printf(?:_chk)?|f?putc|f?puts|putchar|fwrite|perror|psignal))\b};
    $writes{$1} = $2 if -e "core/$1"; # objects of sources that are gone stay in a build folder
}
is(join(' ', sort keys %writes), join(' ', sort keys %excused), 'cnri_say writes, beside the files named here')
    or diag(map { "$_ uses $writes{$_}\n" } grep { !$excused{$_} } sort keys %writes);
done_testing;
