#!/usr/bin/perl
# The core without plugins: it starts, reports that there are none, and searches only the documented folders.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;

my $root = $0 =~ s{tests/rooms/[^/]*$}{}r || '.';
my $build = abs_path($ENV{CNNRUN_BUILD} || "$root/build");
my $nets = abs_path("$root/scripts/nets");
my $sound = "$build/tests/core/host/broken/sound.so";
my $home = tempdir(CLEANUP => 1);
delete $ENV{CNNRUN_PLUGIN_PATH};
umask 022;

# A program alone in its folder has no plugins around it.
make_path("$home/bin");
copy("$build/cnnrun", "$home/bin/cnnrun") or BAIL_OUT("$build/cnnrun: $!");
chmod 0755, "$home/bin/cnnrun";
my $program = "$home/bin/cnnrun";

# stdout, stderr and exit code of a command
sub run {
    my ($command) = @_;
    my $out = `cd $home && $command 2>$home/stderr`;
    my $code = $? >> 8 | ($? & 127) << 8;
    open my $in, '<', "$home/stderr" or die;
    local $/;
    my $err = <$in>;
    return ($out, $err // '', $code);
}

# plugin name -> what `plugins --json` says of it
sub plugins {
    my ($command) = @_;
    my ($out, $err, $code) = run($command);
    diag($err) if $code;
    my %seen; # the first of a name: later ones are told to be duplicates
    for my $plugin (map { decode_json($_) } split /\n/, $out) {
        $seen{ $plugin->{name} } //= $plugin;
    }
    return %seen;
}

my ($probe) = run("$program plugins --json");
plan skip_all => 'plugins are installed where this build looks for them' if length $probe;

my ($out, $err, $code) = run("$program plugins");
is($code, 0, 'without plugins, plugins is no failure');
is($out, '', 'lists nothing');
like($err, qr/no plugins were found/, 'and says so');
($out, $err, $code) = run("$program ops");
is($code, 0, 'nor is ops');
like($err, qr/no plugin has brought any operators/, 'which says so too');
($out, $err, $code) = run("$program ops conv");
cmp_ok($code, '>', 0, 'an operator is not found');
cmp_ok($code, '<', 128, 'without a crash');
like($err, qr/no such operator/, 'as it says');
SKIP: {
    skip 'no scripts/nets/lenet5.lua', 2 if !$nets || !-e "$nets/lenet5.lua";
    ($out, $err, $code) = run("$program show $nets/lenet5.lua");
    ok($code > 0 && $code < 128, 'a net can not be shown') or diag("code $code");
    like($err, qr/\S/, 'and the reason is given');
    diag("a net without plugins: $err");
}

# The current folder is never searched, nor what the environment gives relative to it.
make_path("$home/plugins", "$home/here");
copy($sound, "$home/$_") for qw(sound.so plugins/sound.so here/sound.so);
is_deeply({ plugins("$program plugins --json") }, {}, 'the current folder is not searched');
($out, $err) = run("CNNRUN_PLUGIN_PATH=plugins::. $program plugins -v");
is($out, '', 'nor by a relative path of the environment');
like($err, qr/want absolute paths/, 'which is reported') or diag($err);

# Where it does search.
my %found = plugins("CNNRUN_PLUGIN_PATH=/no/such:$home/here $program plugins --json");
is_deeply($found{sound}{provides}, { operator => ['test_sound'] }, 'the environment is searched');
%found = plugins("$program plugins --json --plugin-dir here");
is($found{sound}{refused}, undef, 'a folder that was named may be relative');
make_path("$home/bin/plugins");
copy($sound, "$home/bin/plugins/sound.so");
%found = plugins("$program plugins --json");
is($found{sound}{file}, abs_path("$home/bin/plugins/sound.so"), 'plugins/ beside the program');
%found = plugins("$program plugins --json --plugin-dir $home/here");
is($found{sound}{file}, abs_path("$home/here/sound.so"), 'after what was named')
    or diag(explain(\%found));
unlink "$home/bin/plugins/sound.so";

# The installed folder is searched, and there what others can change is refused.
my $installed = "$home/lib/cnnrun/plugins";
make_path($installed);
copy($sound, "$installed/sound.so");
%found = plugins("$program plugins --json");
ok(exists $found{sound} && !defined $found{sound}{refused}, '../lib/cnnrun/plugins');
chmod 0666, "$installed/sound.so";
%found = plugins("$program plugins --json");
like($found{sound}{refused} // '', qr/the file can be written by anyone/, 'a file anyone can write');
chmod 0644, "$installed/sound.so";
chmod 0777, $installed;
%found = plugins("$program plugins --json");
like($found{sound}{refused} // '', qr/its folder can be written by anyone/, 'a folder anyone can');
chmod 0755, $installed;
SKIP: {
    skip 'only root can give files away', 1 if $> != 0;
    chown 4242, 4242, "$installed/sound.so";
    %found = plugins("$program plugins --json");
    like($found{sound}{refused} // '', qr/belongs to another user/, "another user's file");
}

# --check judges one file.
my $broken = "$build/tests/core/host/broken";
($out, $err, $code) = run("$program plugins --check $sound");
is($code, 0, 'a sound plugin is judged sound');
like($out, qr/^sound 1\.2$/m, 'and shown');
($out, $err, $code) = run("$program plugins --check $broken/wrong_magic.so");
is($code, 7, 'a broken one gives the exit code of a version mismatch');
like($err, qr/wrong magic/, 'with the reason');
($out, $err, $code) = run("$program plugins --check $home/none.so");
cmp_ok($code, '>', 0, 'a missing one fails');
done_testing;
