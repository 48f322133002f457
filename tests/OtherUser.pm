# Runs the program as an unprivileged user, also when the build is below /root, which others can't enter.
package OtherUser;
use strict;
use warnings;
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin;

use constant UID => 65534;

# Copies a file or a folder with its contents, readable for all; executable files stay executable.
sub copy_for_all {
    my ($from, $to) = @_;
    if (-d $from) {
        make_path($to);
        opendir my $folder, $from or die "$from: $!";
        copy_for_all("$from/$_", "$to/$_") for grep { !/^\.\.?$/ } readdir $folder;
    } else {
        copy($from, $to) or die "$from: $!";
    }
    chmod -x $from ? 0755 : 0644, $to or die "$to: $!";
}

# What a command says. "$build/cnnrun" in it, and plugins by their files ("$build/plugins/NAME.so"), are copies
# in a folder that everybody may enter, with policies and modules of scripts beside them. Who is not root has no
# rights to give up, and runs the command as it is.
sub says {
    my ($build, $command) = @_;
    return scalar `$command 2>&1` if $> != 0;
    my $folder = tempdir('cnnrun-other-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    chmod 0755, $folder;
    make_path("$folder/build/plugins", "$folder/scripts");
    my $source = $FindBin::Bin =~ s{/tests/.*}{}sr;
    my %copies = ("$build/cnnrun" => 'build/cnnrun', "$source/governors" => 'governors', "$source/scripts/lib" => 'scripts/lib');
    $copies{"$build/$1"} = "build/$1" while $command =~ m{\Q$build\E/(plugins/[\w-]+\.so)}g;
    copy_for_all($_, "$folder/$copies{$_}") for keys %copies;
    $command =~ s{\Q$build\E/}{$folder/build/}g;
    my $pid = open(my $out, '-|') // die "fork: $!";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        chdir $folder;
        $( = UID;
        $) = UID . ' ' . UID;
        ($<, $>) = (UID, UID);
        die "still user $< with the rights of $>" if $< != UID || $> != UID;
        exec 'sh', '-c', $command or die "sh: $!";
    }
    local $/;
    my $said = <$out>;
    close $out;
    return $said;
}

1;
