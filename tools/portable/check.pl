#!/usr/bin/perl
# What the programs and libraries below a folder want of a system. Prints the newest version of glibc that a symbol
# wants; fails where that is newer than --glibc VERSION (default: 2.31), where a library is wanted that is neither
# below the folder nor glibc's, and where one is searched for at a fixed path.
#   tools/package.sh check [--glibc VERSION] FOLDER
use strict;
use warnings;
use File::Find;

my $limit = '2.31';
if (@ARGV >= 2 && $ARGV[0] eq '--glibc') { (undef, $limit) = splice @ARGV, 0, 2 }
@ARGV == 1 && -d $ARGV[0] && $limit =~ /^\d+(\.\d+)+$/
    or die "check: expected [--glibc VERSION] FOLDER, got: @ARGV\n";
my $folder = shift;

# True if version $x is newer than $y.
sub is_newer {
    my @x = split /\./, shift;
    my @y = split /\./, shift;
    for (0 .. ($#x > $#y ? $#x : $#y)) {
        my $order = ($x[$_] // 0) <=> ($y[$_] // 0);
        return $order > 0 if $order;
    }
    return 0;
}

my (%has, @files);
find({ no_chdir => 1, wanted => sub {
    return unless -f $_;
    $has{ s{.*/}{}r } = 1;
    return if -l $_;
    open my $file, '<:raw', $_ or die "check: $_: $!\n";
    my $magic = '';
    read $file, $magic, 4;
    push @files, $_ if $magic eq "\x7fELF";
} }, $folder);
@files or die "check: $folder: expected programs or libraries, found none\n";

my ($newest, $newest_of, $problems) = ('0', 'nothing', 0);
# Prints a problem and counts it.
sub problem { print "@_\n"; $problems++ }
for my $file (sort @files) {
    my $name = $file =~ s{^\Q$folder\E/*}{}r;
    open my $read, '-|', 'readelf', '-W', '-d', '--dyn-syms', $file or die "check: readelf: $!\n";
    while (<$read>) {
        if (/ UND (\S+?)\@+GLIBC_([\d.]+)/) {
            ($newest, $newest_of) = ($2, "$1, in $name") if is_newer($2, $newest);
            problem("$name: wants $1 of glibc $2; expected at most $limit") if is_newer($2, $limit);
        } elsif (/\(NEEDED\).*\[(.*)\]/) {
            problem("$name: wants $1, which is neither in the folder nor glibc's")
                unless $has{$1} || $1 =~ /^(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux.*)$/;
        } elsif (/\((?:RPATH|RUNPATH)\).*\[(.*)\]/) {
            for my $path (split /:/, $1) {
                problem("$name: searches $path; expected paths that begin with \$ORIGIN") unless $path =~ /^\$ORIGIN/;
            }
        }
    }
    close $read or die "check: readelf failed on $file\n";
}
printf "%d programs and libraries want glibc %s (%s)\n", scalar @files, $newest, $newest_of;
exit($problems ? 1 : 0);
