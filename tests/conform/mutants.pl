#!/usr/bin/perl
# Mutants of the example plugins: one statement dropped, one constant or operator changed, drawn by seed. Prints which of
# them `cnnrun conform` finds, and shows the others, so that a person can decide whether they change behaviour.
# A mutant is found if a judgement fails within 300 s. One whose judging is cut there without a finding is told apart: on a
# busy machine it says nothing. Run by hand; takes minutes.
#     tests/conform/mutants.pl [--seed N] [--count N] [--build DIR] [--keep DIR] [--jobs N]
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use Getopt::Long;
use POSIX ();

my $root = abs_path($0 =~ s{tests/conform/[^/]*$}{}r || '.');
my ($seed, $count, $build, $keep, $jobs) = (1, 200, "$root/build", '', 1);
GetOptions('seed=i' => \$seed, 'count=i' => \$count, 'build=s' => \$build, 'keep=s' => \$keep, 'jobs=i' => \$jobs) or exit 1;
$| = 1;
my $dir = $keep || tempdir(CLEANUP => 1);
mkdir $dir;
srand $seed;

# Sources to mutate, each with the target that builds its plugin.
my $flags = "-O1 -fPIC -shared -fvisibility=hidden -w -I$root/core/include -I$build/include";
my @plugins = (
    {name => 'template', sources => [glob "$root/plugins/template/*.c"], build => "cc -std=c11 $flags -I$root/plugins/template"},
    (map { { name => "c-" . s{.*/|[.]c$}{}gr, sources => [$_], build => "cc -std=gnu11 $flags" } } glob "$root/plugins/template-kinds/c/*.c"),
    (map { { name => "cpp-" . s{.*/|[.]cpp$}{}gr, sources => [$_], build => "c++ -std=c++17 $flags -I$root/core/bind/cpp/include -pthread" } }
        glob "$root/plugins/template-kinds/cpp/*.cpp"),
    {name => 'npu', sources => ["$root/plugins/template-npu/npu.cpp"], build => "c++ -std=c++17 $flags -pthread"},
);

# The whole text of a file.
sub slurp { local (@ARGV, $/) = shift; <> }

# Executable lines of functions: no tables, no texts for people.
sub lines_of {
    my @line = split /^/, shift;
    my ($depth, $table, @places) = (0, 0);
    for my $i (0 .. $#line) {
        my $code = $line[$i] =~ s{//.*|/\*.*?\*/}{}gr;
        $table = 1 if $depth == 0 && $code =~ /=\s*\{|\[\]\s*=/;
        push @places, $i
            if $depth > 0 && !$table && $code =~ /;\s*$/ && $code !~ /^\s*(?:\*|#|\(void\)|static |const char)|summary|help|fail\(/;
        $depth += () = $code =~ /\{/g;
        $depth -= () = $code =~ /\}/g;
        $table = 0 if $depth == 0;
    }
    return (\@line, \@places);
}

# The text with 1 added to one of its whole numbers, at random; undef: it has none.
sub raised {
    my ($text, @at) = @_;
    push @at, [$-[1], $+[1] - $-[1], $1] while $text =~ /(?<![\w.'"])(\d+)(?![\w.'"])/g;
    my $one = @at ? $at[rand @at] : return;
    substr $text, $one->[0], $one->[1], $one->[2] + 1;
    return $text;
}

# Mutations of a line; each returns the new line, or nothing if it does not apply.
my @ways = (
    ['statement dropped', sub { $_[0] =~ /^\s*(?:return|break|continue|\}|case)|^\s*\w[\w:<>, ]*[ \*&]+\w+(?:\[.*\])?\s*(?:=|;|\{)/ ? undef : $_[0] =~ s/\S.*;/;/r }],
    ['constant raised', \&raised],
    ['+ becomes -', sub { my $t = $_[0]; $t =~ s/ \+ / - / ? $t : undef }],
    ['- becomes +', sub { my $t = $_[0]; $t =~ s/ - / + / ? $t : undef }],
    ['< becomes <=', sub { my $t = $_[0]; $t =~ s/ < / <= / ? $t : undef }],
    ['* becomes +', sub { my $t = $_[0]; $t =~ s/ \* / + / ? $t : undef }],
    ['condition turned', sub { my $t = $_[0]; $t =~ s/\bif \((.*?)\) /if (!($1)) / ? $t : undef }],
);

my $samples = "$root/plugins/template-kinds/samples";
# Judges the plugin of a folder; returns 0 if it is found, 1 if not, 2 if judging was cut. A mutated knob writes to the board
# that it finds.
sub judge {
    my ($work, $name) = @_;
    system("cp -r $samples/root $work/root") == 0 or die;
    my $given = "--sysfs-root $work/root " . join ' ', map { "--sample $_" } glob "$samples/a.*";
    my $code = system("timeout -k 1 300 $build/cnnrun conform $work/$name.so $given >$work/report 2>&1");
    my $found = slurp("$work/report") =~ /^not ok|did not load|refused/m;
    system("rm -rf $work") if !$keep;
    return $found ? 0 : $code >> 8 == 124 || $code >> 8 == 137 ? 2 : 1;
}

my %running; # what is judged, by process
# Waits until fewer than that many are judged.
sub await_fewer {
    my ($most) = @_;
    while (keys %running >= $most && %running) {
        my $pid = wait;
        my $what = delete $running{$pid} // next;
        my $how = $? >> 8;
        if ($how == 0) { $main::caught++ } elsif ($how == 2) { $main::cut++ } else { push @main::missed, $what }
        printf "%s %s\n", ('caught', 'MISSED', 'cut')[$how], $what;
    }
}

our ($made, $caught, $cut, $broken, @missed) = (0, 0, 0, 0);
my %seen;
my @sources = map { my $plugin = $_; map { [$plugin, $_] } @{$plugin->{sources}} } @plugins;
for (my $try = 0; $made < $count && $try < 40 * $count; $try++) {
    my ($plugin, $source) = @{$sources[rand @sources]};
    my ($line, $places) = lines_of(slurp($source));
    next unless @$places;
    my $at = $places->[rand @$places];
    my $way = $ways[rand @ways];
    my $new = $way->[1]->($line->[$at]);
    next if !defined $new || $new eq $line->[$at] || $seen{"$source $at $new"}++;
    my $work = "$dir/$made";
    await_fewer($jobs);
    system("rm -rf $work && mkdir -p $work") == 0 or die;
    my @changed = @$line;
    $changed[$at] = $new;
    (my $file = $source) =~ s{.*/}{};
    open my $out, '>', "$work/$file" or die; print $out @changed; close $out or die;
    my @files = map { $_ eq $source ? "$work/$file" : $_ } @{$plugin->{sources}};
    if (system("$plugin->{build} @files -o $work/$plugin->{name}.so 2>/dev/null") != 0) { $broken++; next }
    $made++;
    my $what = sprintf '%s:%d: %s: %s', $file, $at + 1, $way->[0], $new =~ s/^\s+|\s+$//gr;
    my $pid = fork // die;
    if (!$pid) { POSIX::_exit(judge($work, $plugin->{name})) }
    $running{$pid} = $what;
}
await_fewer(1);
printf "\n%d mutants (seed %d), %d caught, %d not, %d cut; %d more did not build\n", $made, $seed, $caught, scalar @missed, $cut, $broken;
