# Shared by the tests of this folder: runs the program under limits, and lists folders.
package Hostile;
use strict;
use warnings;
use Exporter 'import';
use File::Temp qw(tempdir);
use JSON::PP ();
use POSIX ();
use Time::HiRes ();
our @EXPORT = qw($build $shared $dir $net run start finish slurp spew objects listing has_plugin);

our $build = $ENV{CNNRUN_BUILD} // './build';
our $shared = ($ENV{CNNRUN_SHARED} // '../shared') . '/data';
our $dir = tempdir(CLEANUP => 1);
our $net = 'scripts/nets/lenet5.lua';

# The whole text of a file; undef: there is none.
sub slurp {
    my ($path) = @_;
    open my $in, '<:raw', $path or return undef;
    local $/;
    return scalar <$in> // '';
}

# Writes a file, given as path and text; dies if it can't.
sub spew {
    my ($path, $text) = @_;
    open my $out, '>:raw', $path or die "$path: $!";
    print $out $text or die;
    close $out or die "$path: $!";
}

# Begins `cnnrun WORDS`; a reference in front may say {before => sub run in the child, out => FILE}.
sub start {
    my %how = ref $_[0] ? %{+shift} : ();
    my @words = @_;
    my $pid = fork // die;
    return $pid if $pid;
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP PIPE); # whatever the test was started with
    open STDIN, '<', '/dev/null' or die;
    open STDOUT, '>', $how{out} // "$dir/.out" or die;
    open STDERR, '>', $how{err} // "$dir/.err" or die;
    $how{before}->() if $how{before};
    exec "$build/cnnrun", @words or die;
}

# (exit code, or 128 and more for a signal; stdout; stderr)
sub finish {
    my ($pid) = @_;
    waitpid $pid, 0;
    my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    return ($code, slurp("$dir/.out") // '', slurp("$dir/.err") // '');
}

# Runs a command to its end; returns what it did.
sub run { return finish(start(@_)) }

# Parses each line of a text as a JSON object; undef if one is not.
sub objects {
    my @list = map { eval { JSON::PP::decode_json($_) } } split /\n/, shift;
    return (grep { ref ne 'HASH' } @list) ? undef : \@list;
}

# Everything in a folder, hidden files too.
sub listing {
    my ($folder) = @_;
    opendir my $d, $folder or return '';
    return join ' ', sort grep { !/^\.\.?$/ } readdir $d;
}

# True: a plugin is installed.
sub has_plugin {
    my ($name) = @_;
    our $plugins //= `$build/cnnrun plugins`;
    return $plugins =~ /^\Q$name\E /m;
}

1;
