#!/usr/bin/perl
# tools/package.sh without its bare machines: its help, its errors, what it checks in a folder for other
# machines, the source tarball, and the contents of the wheel.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use Test::More;

my $root = abs_path($0 =~ s{tests/outside/[^/]*$}{}r || '.');
my $build = abs_path($ENV{CNNRUN_BUILD} || 'build');
my $dir = tempdir(CLEANUP => 1);

# What tools/package.sh prints.
sub package_sh { return scalar `$root/tools/package.sh @_ 2>&1` }

# Help and mistakes.
my $usage = package_sh('--help');
is($?, 0, '--help');
for my $command (qw(debian portable source check reproduce)) {
    like($usage, qr/package\.sh \[?$command\b/, "it names $command");
    like(package_sh($command, '--help'), qr/^usage: tools\/package\.sh \[?$command\b/, "$command --help");
    is($?, 0, 'which is no mistake');
}
like(package_sh('buster'), qr/^package\.sh: buster: expected a command, bookworm or trixie$/m, 'another release is refused');
is($? >> 8, 2, 'by exit status 2');
like(package_sh('reproduce', 'wheels'), qr/^package\.sh: reproduce: wheels: expected bookworm, trixie, portable or source$/m,
    'and another kind');
like(package_sh('portable', 'now'), qr/^package\.sh: portable: unexpected: now$/m, 'and a word too many');

# A folder for older systems.
like(package_sh('check', "$dir/none"), qr/expected \[--glibc VERSION\] FOLDER/, 'check wants a folder');
isnt($?, 0, 'and fails without');
SKIP: {
    skip 'no C compiler or readelf', 10 if system('cc --version >/dev/null 2>&1 && readelf --version >/dev/null 2>&1');
    mkdir "$dir/$_" for qw(tree tree/lib);
    open my $c, '>', "$dir/says.c" or die;
    print $c "#include <stdio.h>\nint says(const char *s);\nint says(const char *s) { return puts(s); }\n";
    close $c;
    my $cc = "cd $dir && cc -shared -fPIC says.c";
    system("$cc -o tree/lib/libsays.so.1 -Wl,-soname,libsays.so.1") == 0 or die;
    my $seen = package_sh('check', '--glibc', '99.0', "$dir/tree");
    is($?, 0, 'a library that wants glibc alone is accepted');
    like($seen, qr/^1 programs and libraries want glibc [\d.]+ \(\w+, in lib\/libsays\.so\.1\)$/, 'and said to be');
    like(package_sh('check', '--glibc', '2.1', "$dir/tree"),
        qr/^lib\/libsays\.so\.1: wants puts of glibc 2\.\d+(\.\d+)?; expected at most 2\.1$/m, 'a newer symbol is found');
    is($? >> 8, 1, 'and fails');

    system("$cc -o tree/lib/uses.so -Wl,--no-as-needed tree/lib/libsays.so.1 '-Wl,-rpath,\$ORIGIN/../lib'") == 0 or die;
    package_sh('check', '--glibc', '99.0', "$dir/tree");
    is($?, 0, 'what lies in the folder may be wanted');
    rename "$dir/tree/lib/libsays.so.1", "$dir/libsays.so.1";
    like(package_sh('check', '--glibc', '99.0', "$dir/tree"),
        qr/^lib\/uses\.so: wants libsays\.so\.1, which is neither in the folder nor glibc's$/m, 'what does not lie there may not');
    is($? >> 8, 1, 'and fails');
    rename "$dir/libsays.so.1", "$dir/tree/lib/libsays.so.1";
    system("$cc -o tree/lib/uses.so '-Wl,-rpath,/usr/local/lib'") == 0 or die;
    like(package_sh('check', '--glibc', '99.0', "$dir/tree"),
        qr/^lib\/uses\.so: searches \/usr\/local\/lib; expected paths that begin with \$ORIGIN$/m, 'a fixed path is found');
    is($? >> 8, 1, 'and fails');
    unlink glob "$dir/tree/lib/*";
    like(package_sh('check', "$dir/tree"), qr/expected programs or libraries, found none/, 'an empty folder is no good one');
}

# What git archive writes knows its commit, away from git.
SKIP: {
    my $commit = -e "$root/.git" ? `git -C $root rev-parse HEAD 2>/dev/null` : '';
    chomp $commit;
    skip 'the source is no git checkout', 2 unless $commit;
    mkdir "$dir/archive";
    system("git -C $root archive HEAD core/cmake | tar -x -C $dir/archive") == 0 or die;
    system("cmake -DSOURCE=$dir/archive -DOUT=$dir/commit.h -P $dir/archive/core/cmake/Commit.cmake") == 0 or die;
    open my $h, '<', "$dir/commit.h" or die;
    is(scalar <$h>, sprintf("#define CNRI_COMMIT \"%.12s\"\n", $commit), 'the commit of an archive');
    system("cmake -DSOURCE=$root -DOUT=$dir/here.h -P $root/core/cmake/Commit.cmake") == 0 or die;
    open $h, '<', "$dir/here.h" or die;
    like(scalar <$h>, qr/"[0-9a-f]{12}(-dirty)?"/, 'and of a checkout');
}

# Flags that name folders are no part of a build's description, or it would be another in another folder.
SKIP: {
    my $flags = '-DCMAKE_C_FLAGS=-ffile-prefix-map=' . "$dir=.";
    my $configured = system("cmake -S $root -B $dir/build -G Ninja -DCNNRUN_TESTS=OFF '$flags -O1' >$dir/log 2>&1") == 0;
    ok($configured, 'a build with mapped folders is configured') or skip 'it is not', 1;
    open my $h, '<', "$dir/build/built/cnnrun/built.h" or die;
    like(join('', <$h>), qr/CNRI_FLAGS "-O1 -O2 -g1"/, 'and described without their names');
}

# The wheel's libraries.
SKIP: {
    skip "no $build/libcnnrun.so.1", 5 unless -e "$build/libcnnrun.so.1";
    skip 'no setuptools', 5 if system('python3 -c "import setuptools" 2>/dev/null');
    mkdir "$dir/licences";
    system("echo free >$dir/licences/libfree");
    my $copy = "cd $root/core/bind/python && PYTHONDONTWRITEBYTECODE=1 python3 -c 'import pathlib, setup, sys; "
        . "setup.copy_runtime(*map(pathlib.Path, sys.argv[1:]))' $build";
    is(system("$copy $dir/own >$dir/log 2>&1"), 0, 'libraries are copied beside the module');
    ok(scalar(grep { !/libcnnrun/ } glob "$dir/own/_lib/*.so*"), 'with those of the system that they need');
    local $ENV{CNNRUN_AUDITWHEEL} = 1;
    local $ENV{CNNRUN_LICENCES} = "$dir/licences";
    is(system("$copy $dir/bare >$dir/log 2>&1"), 0, 'a wheel for auditwheel is filled');
    is_deeply([map { s{.*/}{}r } glob "$dir/bare/_lib/*.so*"], ['libcnnrun.so.1'], 'CNNRUN_AUDITWHEEL leaves those to auditwheel');
    ok(-s "$dir/bare/_lib/licences/libfree", 'and licences go along');
}

# The services, judged by systemd in a root of their own.
SKIP: {
    my ($systemd) = `systemd-analyze --version 2>/dev/null` =~ /^systemd (\d+)/;
    skip 'no systemd-analyze of 250 or later', 2 unless ($systemd // 0) >= 250;
    skip "no $build/cnnrun-helper.service", 2 unless -e "$build/cnnrun-helper.service";
    my $units = "$dir/root/etc/systemd/system";
    system("mkdir -p $units $dir/root/usr/bin && cp /bin/true $dir/root/usr/bin/cnnrun && "
        . "sed 's|^ExecStart=[^ ]*|ExecStart=/usr/bin/cnnrun|' $build/cnnrun-helper.service >$units/cnnrun-helper.service && "
        . "cp '$root/tools/debian/cnnrun-services.cnnrun-monitor\@.service' $units/cnnrun-monitor\@door.service && "
        . "for unit in network multi-user sysinit basic shutdown; do echo '[Unit]' >$units/\$unit.target; done") == 0 or die;
    is(`systemd-analyze verify --man=no --root=$dir/root $_ 2>&1`, '', "systemd has nothing to say of $_")
        for 'cnnrun-helper.service', 'cnnrun-monitor@door.service';
}
done_testing;
