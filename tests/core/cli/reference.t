#!/usr/bin/perl
# The option tables as a man page and completions: every command and option is in each of them, and
# each shell takes what it is given. Options may stand before the command.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;

my $build = $ENV{CNNRUN_BUILD} // './build';
my $cnnrun = "$build/cnnrun";
my $dir = tempdir(CLEANUP => 1);
plan skip_all => "no $cnnrun" unless -x $cnnrun;

my %options; # of each command, as `help COMMAND` and "help options" tell
my @commands = grep { $_ ne 'help' } `$cnnrun help commands` =~ /^  ([a-z]+) +\S/mg;
cmp_ok scalar @commands, '>=', 15, 'there are commands';
my %group = `$cnnrun help options` =~ /^(\w+):\n((?:  .*\n)+)/mg; # by title
$_ = [/^  (?:-\w, )?(--[a-z0-9-]+)/mg] for values %group;
is_deeply [sort keys %group], [qw(general nets pictures processes)], 'help options lists what commands have in common';
cmp_ok scalar @{$group{nets}} + @{$group{pictures}}, '>=', 23, 'those of nets and pictures';
for my $command (@commands) {
    my $help = `$cnnrun help $command`;
    $options{$command} = [$help =~ /^  (?:-\w, )?(--[a-z0-9-]+)/mg];
    my @groups = $help =~ /^Also the options of these groups: (.*) \(cnnrun help options\)$/m ? split /, /, $1 : ();
    my $several = $command =~ /^(?:train|eval|prune|tune|sweep)$/ ? ' processes' : '';
    is "@groups", $help =~ /nets, pictures/ ? "general nets pictures$several" : 'general',
        "help $command names the groups that it takes";
    my @shared = map { @{$group{$_} || []} } @groups;
    my %own = map { $_ => 1 } @{$options{$command}};
    is join(' ', grep { $own{$_} } @shared), '', 'and does not repeat them';
    push @{$options{$command}}, @shared;
}

my %text = map { my $form = $_; ($form, scalar `$cnnrun completions $form`) } qw(bash zsh fish);
$text{man} = `$cnnrun help --man`;
my %of = ( # the part of the text that is this command's, with what all share
    man => sub { my ($c) = @_; $text{man} =~ /^\.SS "cnnrun $c .*?(?=^\.S[SH])/ms; "$&" .
        ($text{man} =~ /^\.SS "options: general".*/ms ? $& : '') },
    bash => sub { $text{bash} =~ /^    $_[0]\)\n.*?;;/ms ? $& : '' },
    zsh => sub { $text{zsh} =~ /^$_[0]\)\n.*?;;$/ms ? $& : '' },
    fish => sub { join '', $text{fish} =~ /^.*seen_subcommand_from $_[0]'.*\n/mg },
);
for my $form (sort keys %text) {
    my @missing;
    for my $command (@commands) {
        my $part = $of{$form}->($command);
        for my $option (@{$options{$command}}) {
            next if $option eq '--help' && $form =~ /man|fish/;
            my $shown = $form eq 'man' ? $option =~ s/-/\\-/gr : $form eq 'fish' ?
                '-l ' . substr $option, 2 : $option;
            push @missing, "$command $option" unless $part =~ /\Q$shown\E\b/;
        }
    }
    is_deeply \@missing, [], "$form: every option of every command";
}

# Writes a file; returns its path.
sub spill { my ($name, $text) = @_; open my $f, '>', "$dir/$name" or die; print $f $text; "$dir/$name" }
# True: the program is installed.
sub have { my $name = shift; grep { -x "$_/$name" } split /:/, $ENV{PATH} }
my $bash = spill('cnnrun.bash', $text{bash});
my $complete = sub { # what bash offers behind these words
    my $words = join ' ', map { "'$_'" } @_;
    my $n = $#_;
    [sort split ' ', `bash -c 'source $bash; COMP_WORDS=($words); COMP_CWORD=$n; _cnnrun;
        printf "%s\\n" "\${COMPREPLY[@]}"'`];
};
is_deeply $complete->('cnnrun', 'kernelc'), ['kernelcheck'], 'bash: commands';
is_deeply $complete->('cnnrun', 'classi'), ['classify'], 'bash: applications';
like $text{$_}, qr/\bdetect\b/, "$_: applications" for qw(zsh fish);
is_deeply $complete->('cnnrun', 'train', '--epo'), ['--epochs'], 'bash: options';
is_deeply $complete->('cnnrun', 'run', '--channels', 'b'), ['bgr'], 'bash: values';
is_deeply $complete->('cnnrun', '--json', 'train', '--epo'), ['--epochs'],
    'bash: behind an option before the command';
for (['zsh', 'zsh -n'], ['fish', 'fish --no-execute']) {
    my ($shell, $check) = @$_;
  SKIP: {
        skip "$shell is not there", 1 unless have($shell);
        is system("$check " . spill("cnnrun.$shell", $text{$shell})), 0, "$shell takes its file";
    }
}
SKIP: {
    skip 'man is not there', 1 unless have('man');
    my $page = spill('cnnrun.1', $text{man});
    my $said = `LC_ALL=C.UTF-8 MANROFFSEQ= man --warnings -E UTF-8 -l $page 2>&1 >/dev/null`;
    is $said, '', 'man has no complaint';
}
like `$cnnrun completions tcsh 2>&1`, qr/wanted bash, zsh or fish, got "tcsh"/, 'another shell is reported';
is $? >> 8, 1, 'and is an error';

# options before the command
my $net = 'scripts/nets/lenet5.lua';
my $plain = `$cnnrun show $net --json --threads 1`;
for my $words ("--json show --threads 1 $net", "--quiet --json show --threads 1 $net", "--json --threads 1 show $net",
               "-q --json --threads=1 show $net", "--json --plugin-dir $build/plugins --threads=1 show $net") {
    is `$cnnrun $words`, $plain, "cnnrun $words";
}
is `$cnnrun --top 1 --json $net scripts/nets/digits/three.png` =~ /"index": ?3/, 1,
    'a net without a command still takes options before it';
like `$cnnrun --jsno show $net 2>&1`, qr/--jsno/, 'an unknown one is reported';
done_testing;
