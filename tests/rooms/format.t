#!/usr/bin/perl
# All C is as clang-format writes it by .clang-format (the frozen headers of old ABIs apart).
use strict;
use warnings;
use File::Find;
use File::Temp 'tempdir';
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';
plan skip_all => 'clang-format is not installed' if system('clang-format --version >/dev/null 2>&1') != 0;

# Lines of files that are not formatted.
sub ill_formatted {
    my %lines;
    while (my @some = splice @_, 0, 50) {
        open my $in, '-|', 'sh', '-c', 'clang-format --dry-run "$@" 2>&1', '-', @some or die $!;
        while (<$in>) { $lines{"$1:$2"} = 1 if /^(\S+?):(\d+):\d+: warning: code should be clang-formatted/ }
    }
    return join "\n", sort keys %lines;
}

my @files;
for my $folder (qw(core plugins kernels tests)) {
    find({ wanted => sub { push @files, $_ if /\.[ch]$/ && !m{/frozen/} }, no_chdir => 1 }, "$root/$folder");
}
cmp_ok(scalar @files, '>', 500, 'C files are found');
is(ill_formatted(@files), '', 'all of them are formatted (clang-format -i FILE mends one)');

my $dir = tempdir(CLEANUP => 1);
system('cp', "$root/.clang-format", $dir) == 0 or die 'cp';
open my $out, '>', "$dir/bad.c" or die $!;
print $out "int  a;\n";
close $out;
is(ill_formatted("$dir/bad.c"), "$dir/bad.c:1", 'a file that is not formatted is found');
done_testing;
