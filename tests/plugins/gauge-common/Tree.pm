# Makes trees of files as below /sys from lists:
#   # a comment
#   sys/class/hwmon/hwmon0/name = ina231     with a newline behind it, as the kernel writes
#   sys/class/hwmon/hwmon0/curr1_input =| 12 without
#   sys/class/hwmon/hwmon0/device -> ../../4-0040
package Tree;
use strict;
use warnings;
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);

# Makes a tree from files of lists, or from lines.
sub new {
    my ($class, @lists) = @_;
    my $self = bless { root => tempdir('cnnrun-tree-XXXXXX', TMPDIR => 1, CLEANUP => 1) }, $class;
    chmod 0755, $self->{root};
    for my $list (@lists) {
        my $text = $list;
        if ($list !~ /\n/) {
            open my $in, '<', $list or die "$list: $!";
            local $/;
            $text = <$in>;
        }
        $self->line($_) for split /\n/, $text;
    }
    return $self;
}

# Path of the made-up tree.
sub root { return $_[0]{root} }

# Makes the file that a line describes.
sub line {
    my ($self, $line) = @_;
    return if $line =~ /^\s*(#|$)/;
    my ($path, $how, $text) = $line =~ /^(\S+)\s+(=\||=|->)\s?(.*)$/ or die "not a line of a tree: $line";
    my $full = "$self->{root}/$path";
    make_path($full =~ s{/[^/]*$}{}r);
    if ($how eq '->') {
        symlink $text, $full or die "$full: $!";
        return;
    }
    $self->put($path, $how eq '=' ? "$text\n" : $text);
}

# Rewrites an attribute in place, as a driver would.
sub put {
    my ($self, $path, $text) = @_;
    open my $out, '>', "$self->{root}/$path" or die "$path: $!";
    print $out $text;
    close $out;
}

# The text of a file of the tree.
sub text {
    my ($self, $path) = @_;
    open my $in, '<', "$self->{root}/$path" or die "$path: $!";
    local $/;
    return scalar <$in>;
}

1;
