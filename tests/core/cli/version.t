#!/usr/bin/perl
# cnnrun --version: one line; with --json all that a bug report needs, also what plugins lack.
use strict;
use warnings;
use Test::More;
use FindBin;
use File::Copy;
use File::Temp qw(tempdir);
use JSON::PP;

my $root = "$FindBin::Bin/../../..";
my $build = $ENV{CNNRUN_BUILD} // "$root/build";
my $tmp = tempdir(CLEANUP => 1);

# What --version --json tells.
sub report { my @lines = `$build/cnnrun --version --json @_ 2>$tmp/err`; return @lines == 1 ? decode_json($lines[0]) : {} }

my $line = `$build/cnnrun --version`;
like($line, qr/^cnnrun \d+\.\d+\.\d+\n$/, 'a line for people');

my $all = report();
is($?, 0, 'and an object with --json');
is("cnnrun $all->{version}\n", $line, 'of the same version');
SKIP: {
    my $commit = -e "$root/.git" ? `git -C $root rev-parse --short=12 HEAD 2>/dev/null` : '';
    chomp $commit;
    skip 'the source is no git checkout', 1 unless $commit;
    like($all->{commit}, qr/^[0-9a-f]{12}(-dirty)?$/, 'the commit that it was built from');
}
like($all->{build}{compiler}, qr/^\w+ \d/, 'compiler');
ok(defined $all->{build}{$_}, $_) for qw(flags type);
like($all->{lua}, qr/^Lua 5\.4\.\d/, 'Lua');
ok($all->{system}{$_}, "system: $_") for qw(kernel architecture libc processors memory_bytes);
my ($cpu) = grep { $_->{name} eq 'cpu' } @{ $all->{devices} };
ok($cpu->{$_}, "processor: $_") for qw(hardware isa threads driver);
my %plugins = map { $_->{name} => $_ } @{ $all->{plugins} };
ok($plugins{'cpu-neon'}{version} && !$plugins{'cpu-neon'}{refused}, 'plugins with their versions');
is_deeply([grep { $_->{lacks} } values %plugins], [], 'no plugin of this build lacks a library');
is(ref $all->{$_}, 'ARRAY', $_) for qw(meters knobs);
ok(-d $all->{folders}{$_}, "folder: $_") for qw(program scripts);
ok(scalar(grep { m{/plugins$} } @{ $all->{folders}{plugins} }), 'folders of plugins');

{
    local $ENV{CNNRUN_OPENCL} = 'none';
    is(report()->{environment}{CNNRUN_OPENCL}, 'none', 'variables that change what it does');
}

# A plugin that is refused, and one whose second module wants a library that is not there.
SKIP: {
    skip 'no compiler', 3 if system("cc --version >/dev/null 2>&1");
    mkdir "$tmp/$_" for qw(plugins plugins/object-post);
    copy("$build/plugins/object-post.so", "$tmp/plugins/object-post.so")
        or skip 'the plugin object-post is not built', 3;
    open my $f, '>', "$tmp/gone.c" or die;
    print $f "int gone(void); int gone(void) { return 1; }\n";
    close $f;
    system("cd $tmp && cc -shared -fPIC -Wl,-soname,libgone.so.7 -o libgone.so gone.c && "
        . "echo 'int gone(void); int want(void); int want(void) { return gone(); }' >want.c && "
        . "cc -shared -fPIC -o plugins/object-post/post.so want.c -L. -lgone && echo no >plugins/odd.so") == 0 or die;
    chmod 0755, "$tmp/plugins/$_" for qw(object-post.so odd.so);
    my %of = map { $_->{file} => $_ } @{ report("--plugin-dir $tmp/plugins --plugin-order object-post")->{plugins} };
    like($of{"$tmp/plugins/object-post.so"}{lacks}, qr/^libgone\.so\.7: cannot open/, 'the library that lacks');
    ok($of{"$tmp/plugins/odd.so"}{refused}, 'why a plugin is refused');
    is(-s "$tmp/err", 0, 'said once') or diag `cat $tmp/err`;
}

like(`$build/cnnrun --version --help`, qr/bug report/, '--help');
done_testing;
