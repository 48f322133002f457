# Shared by the tests of real models: runs the program as a user does, and finds the data.
package Models;
use strict;
use warnings;
use Exporter 'import';
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

our @EXPORT = qw(cnnrun data objects imported right outputs told shapes near with_data $dir);
our $dir = tempdir(CLEANUP => 1);
my $build = $ENV{CNNRUN_BUILD} // './build';
my $shared = ($ENV{CNNRUN_SHARED} // '../shared') . '/data';
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";

# The place of a file of the shared data.
sub data { return "$shared/$_[0]" }

# Runs a block of tests, or skips it and names the first missing file.
sub with_data {
    my ($name, $needs, $tests) = @_;
    my ($missing) = grep { !-e data($_) } @$needs;
  SKIP: {
        skip "$name: no data: $missing", 1 if defined $missing;
        $tests->();
    }
}

# Runs the program; returns exit code, stdout, stderr.
sub cnnrun {
    my @words = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', "$dir/stdout" or die;
        open STDERR, '>', "$dir/stderr" or die;
        exec "$build/cnnrun", @words or die;
    }
    waitpid $pid, 0;
    my ($code, $signal) = ($? >> 8, $? & 127);
    my @texts = map { local (@ARGV, $/) = ($_); my $t = <>; $t // '' } "$dir/stdout", "$dir/stderr";
    diag "cnnrun @words: exit $code, signal $signal\n$texts[1]" if $signal;
    return ($signal ? 128 + $signal : $code, @texts);
}

# All lines of a text as JSON objects, without lines that are not JSON.
sub objects { return grep { ref eq 'HASH' } map { eval { decode_json($_) } } split /\n/, shift }

# Imports with these words into a file of that name; returns its path.
sub imported {
    my ($name, @words) = @_;
    my $net = "$dir/$name.cnr";
    my ($code, $out, $err) = cnnrun('import', @words, '-o', $net);
    ok $code == 0 && -s $net, "import of $name" or diag "exit $code\n$err";
    return $net;
}

# Evaluates a net: the number of right pictures, as { n, top1, top5 }; a run that fails is told and
# gives none.
sub right {
    my ($net, @words) = @_;
    my ($code, $out, $err) = cnnrun('eval', $net, @words, '--json');
    diag "eval of $net: exit $code\n$err" if $code;
    my ($answer) = objects($out);
    return { n => 0, top1 => -1, top5 => -1 } unless $answer && $answer->{n};
    my $n = $answer->{n};
    return { n => $n, map { $_ => int($answer->{$_} * $n + 0.5) } qw(top1 top5) };
}

# "name=1x2x3 ..." of outputs, sorted by name.
sub shapes { return join ' ', sort map { "$_->{name}=" . join 'x', @{$_->{dims}} } @{$_[0]} }

# Runs a net on a picture, cut to sizes where they follow; a list of { name, dims, low, high }, the
# latter two the extremes at each place of the last axis.
sub outputs {
    my ($net, @words) = @_;
    (my $script = __FILE__) =~ s/Models\.pm$/outputs.lua/;
    my ($code, $out, $err) = cnnrun($script, $net, @words);
    diag "outputs of $net: exit $code\n$err" if $code;
    my @list;
    for (split /\n/, $out) {
        my ($name, $dims, $low, $high) = split /\t/;
        push @list, { name => $name, dims => [split /x/, $dims], low => [split / /, $low],
            high => [split / /, $high] };
    }
    return \@list;
}

# The program's output about a net's outputs for a picture: a list of { name, dims, lowest, highest }.
sub told {
    my ($net, $picture) = @_;
    my ($code, $out, $err) = cnnrun('run', $net, $picture, '--json');
    diag "run of $net: exit $code\n$err" if $code;
    my ($answer) = objects($out);
    return $answer->{outputs} // [];
}

# Tests that a number is within `slack` of the wanted one; the test's name has both.
sub near {
    my ($got, $want, $slack, $name) = @_;
    return ok(abs($got - $want) <= $slack + 1e-9, "$name: $got (wanted $want +- $slack)");
}

1;
