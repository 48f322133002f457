#!/usr/bin/perl
# Packs one net into a static program that has its operators, the CPU's kernels for them and its weights, and nothing
# else: no Lua, no dlopen, no plugin files.
use strict;
use warnings;
use Cwd qw(abs_path);
use Digest::SHA;
use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use Getopt::Long qw(:config no_auto_abbrev);
use JSON::PP;
use POSIX qw(strftime);

my $usage = <<'END';
usage: tools/pack.pl NET -o DIR [--name NAME] [--toolchain FILE.cmake] [--weights SPEC] [--quiet]

Writes DIR/NAME, a static program of one net, and DIR/NAME.spdx.json, its bill of materials (SPDX 2.3).
  -o DIR            folder for the results, and for the build (DIR/build)
  --name NAME       the program's name (the net's file without its ending)
  --toolchain FILE  a toolchain of CMake's for another processor, such as tests/cross/aarch64.cmake
  --weights SPEC    weights for the net, as cnnrun takes them (its own)
  --quiet           prints no sizes

Wants cnnrun built in build/ (or CNNRUN_BUILD), CMake and a C compiler with a static C library.
END
# Prints a message and ends.
sub fail { print STDERR "pack.pl: @_\n"; exit 1 }

my ($out, $name, $toolchain, $weights, $quiet, $help);
GetOptions('o|output=s' => \$out, 'name=s' => \$name, 'toolchain=s' => \$toolchain, 'weights=s' => \$weights,
    'quiet' => \$quiet, 'h|help' => \$help) or exit 1;
if ($help) { print $usage; exit 0 }
my $net = shift @ARGV;
fail("expected NET -o DIR; --help tells more") unless defined $net && defined $out && !@ARGV;
my $root = dirname(dirname(abs_path($0)));
my $program = abs_path($ENV{CNNRUN_BUILD} // "$root/build") . '/cnnrun';
fail("no $program: tools/demo.sh builds it") unless -x $program;
fail("$toolchain: no such file") if defined $toolchain && !-e $toolchain;
$name //= basename($net) =~ s/[.,].*//r;
fail("--name $name: expected letters, digits, - and _") unless $name =~ /^\w[\w-]*$/;
make_path("$out/build/pack");
my $dir = abs_path($out);
my $pack = "$dir/build/pack";

# What a command prints; if it fails, this program ends with its code.
sub said {
    open my $pipe, '-|', @_ or fail("$_[0]: $!");
    local $/;
    my $text = <$pipe> // '';
    close $pipe or exit(($? >> 8) || 1);
    return $text;
}
# The lines of JSON that a command prints, decoded.
sub rows { return map { decode_json($_) } split /\n/, said(@_) }
# The text of a file; ends the program where it can't be read.
sub slurp { open my $in, '<', $_[0] or fail("$_[0]: $!"); local $/; return scalar <$in> }
sub put { # unchanged files are left alone, so that nothing is compiled again
    my ($file, $text) = @_;
    return if -e $file && slurp($file) eq $text;
    open my $to, '>', $file or fail("$file: $!");
    print $to $text;
    close $to or fail("$file: $!");
}

# ---- what the net needs ----
my @weights = defined $weights ? ('--weights', $weights) : ();
said($program, 'convert', $net, @weights, '-o', "$pack/model.cnr", '--quiet');
# as it was loaded, and as it is planned
my %op = map { $_ => 1 } split ' ', said($program, '--quiet', "$root/tools/pack/operators.lua", "$pack/model.cnr");
$op{ $_->{op} } = 1 for grep { $_->{op} } rows($program, 'show', "$pack/model.cnr", '--device', 'cpu', '--json');
my (%kernel, %home);
for my $one (sort keys %op) {
    my ($about) = rows($program, 'ops', $one, '--json');
    $home{$one} = $about->{plugin};
    fail("the operator $one is of the plugin $about->{plugin}; expected ops-std or int8") if $about->{plugin} !~ /^(?:ops-std|int8)$/;
    # those for weights as halves are taken only where a plan asks for such weights, which a packed program's does not
    $kernel{ $_->{name} } = 1 for grep { $_->{device} =~ /^cpu/ && $_->{name} !~ /_b?f16_/ } @{ $about->{kernels} };
}
# The names of operators and encodings in the model's file, which is read up to its weights.
my $head = do { open my $in, '<:raw', "$pack/model.cnr" or fail("model.cnr: $!"); read $in, my $text, 1 << 20; $text };
my $structure = substr $head, 0, unpack('x24 Q<', $head) + unpack('x32 Q<', $head);
my %encoded = map { $_ => 1 } grep { index($structure, $_) >= 0 } qw(int8 sparse-csr);

# ---- the plugins' tables ----
my %brings = map { $_->{name} => $_->{provides} } rows($program, 'plugins', '--json');
my (@plugins, @parts);
my $table = slurp("$root/plugins/ops-std/ops_std.c");
my %known = map { $_ => 1 } slurp("$root/plugins/ops-std/ops.inc") =~ /OP\((\w+)\)/g;
my @standard = grep { $home{$_} eq 'ops-std' } sort keys %op;
my @unknown = grep { !$known{$_} } @standard;
fail("plugins/ops-std/ops.inc lacks @unknown") if @unknown;
my $lines = join '', map { "    OP($_)\n" } @standard;
$table =~ s/^#include "ops\.inc"\n/$lines/m or fail('plugins/ops-std/ops_std.c: no line includes ops.inc');
put("$pack/ops_std.c", $table);

my @names = @{ $brings{'cpu-neon'}{kernel} };
my @symbols = slurp("$root/plugins/cpu-neon/kernels.h") =~ /\bX\((neon_\w+)\)/g;
fail(@names . ' kernels of cpu-neon are loaded, kernels.h has ' . @symbols . ': build again') if @names != @symbols;
my @picked = grep { $kernel{ $names[$_] } } 0 .. $#names;
push @parts, map { $names[$_] } @picked;
my $list = join '', map { "    &$symbols[$_],\n" } @picked;
my $kernels = slurp("$root/plugins/cpu-neon/kernels.c");
$kernels =~ s/^#define X\(name\).*?#undef X\n/$list/ms or fail('plugins/cpu-neon/kernels.c: no list of kernels');
put("$pack/kernels.c", $kernels);

# Plugins whose table is a list of items: kernels of the net's operators, operators of the net, encodings of its weights,
# rewrites of a load. Left out where neither an operator nor an encoding is the net's.
for (['int8', 'int8.c'], ['sparse-csr', 'sparse_csr.c']) {
    my ($plugin, $file) = @$_;
    my ($needed, %at) = $encoded{$plugin};
    my $keep = sub {
        my ($kind) = ${ $_[0] } =~ /CNR_KIND_(\w+)/;
        my $name = $brings{$plugin}{ lc $kind }[$at{$kind}++] // fail("plugins/$plugin/$file: more items than are loaded: build again");
        my $kept = $kind eq 'OPERATOR' ? $op{$name} : $kind eq 'KERNEL' ? $kernel{$name} : $kind eq 'ENCODING' ? $encoded{$name}
            : $name !~ /^(?:quantize-layers|equalize-channels)$/; # which only the command quantize asks for
        $needed = 1 if $kind eq 'OPERATOR' && $kept || $kind eq 'KERNEL' && $kept && $plugin eq 'int8' && $name =~ /^qlinear|integer|quantize/;
        push @parts, $name if $kept && $kind eq 'KERNEL';
        return $kept ? ${ $_[0] } : ();
    };
    my @before = @parts;
    my $text = slurp("$root/plugins/$plugin/$file");
    $text =~ s/(?<=items\[\] = \{)(.*?)(?=\};)/join ', ', map { $keep->(\$_) } $1 =~ m{\{CNR_KIND_\w+, &\w+\}}g/se
        or fail("plugins/$plugin/$file: no list of items");
    if ($needed) { push @plugins, $plugin; put("$pack/$file", $text) }
    else { @parts = @before }
}
put("$pack/extra.inc", join '', map { 'EXTRA(' . tr/-/_/r . ")\n" } @plugins);

# ---- the program ----
my @configure = ('cmake', '-S', "$root/tools/pack", '-B', "$dir/build", "-DPACK=$pack", "-DNAME=$name",
    '-DEXTRA=' . join(';', @plugins),
    defined $toolchain ? '-DCMAKE_TOOLCHAIN_FILE=' . abs_path($toolchain) : ());
push @configure, '-DCMAKE_C_COMPILER_LAUNCHER=ccache' if grep { -x "$_/ccache" } split /:/, $ENV{PATH};
for my $command (\@configure, ['cmake', '--build', "$dir/build", '--parallel', $ENV{CNNRUN_JOBS} // 2]) {
    my $log = "$dir/build/log";
    next if system('sh', '-c', 'log=$1; shift; exec "$@" >"$log" 2>&1', 'sh', $log, @$command) == 0;
    my @lines = split /^/m, slurp($log);
    print STDERR @lines > 30 ? @lines[-30 .. -1] : @lines;
    fail("could not be built; $log has all of it");
}
rename "$dir/build/$name", "$dir/$name" or fail("$dir/$name: $!");

# ---- the bill of materials ----
# The SHA-256 of a file
sub digest { return Digest::SHA->new(256)->addfile($_[0])->hexdigest }
my ($compiler, $libc, $licence) = split /\n/, slurp("$dir/build/made-by");
my ($version) = slurp("$root/CMakeLists.txt") =~ /^project\(cnnrun VERSION ([\d.]+)/m;
# An SPDX package for the bill of materials: a reference to a hash of id, name, version (undef:
# unknown), licence and comment; with a file also its SHA-256.
sub package {
    my ($id, $what, $v, $licence, $comment, $file) = @_;
    return { SPDXID => "SPDXRef-$id", name => $what, versionInfo => $v // 'unknown', downloadLocation => 'NOASSERTION',
        filesAnalyzed => JSON::PP::false, licenseConcluded => $licence, licenseDeclared => $licence,
        copyrightText => 'NOASSERTION', comment => $comment,
        $file ? (checksums => [{ algorithm => 'SHA256', checksumValue => digest($file) }]) : () };
}
my $bill = {
    spdxVersion => 'SPDX-2.3', dataLicense => 'CC0-1.0', SPDXID => 'SPDXRef-DOCUMENT', name => $name,
    documentNamespace => "urn:sha256:" . digest("$dir/$name"),
    creationInfo => { created => strftime('%Y-%m-%dT%H:%M:%SZ', gmtime($ENV{SOURCE_DATE_EPOCH} // time)),
        creators => ["Tool: cnnrun-$version"] },
    packages => [
        &package('program', $name, $version, 'NOASSERTION', "static; made by $compiler", "$dir/$name"),
        &package('cnnrun', 'cnnrun', $version, 'MIT', 'the engine; operators: ' . join(' ', sort keys %op) .
            '; kernels: ' . join(' ', @parts)),
        &package('model', basename($net), undef, 'NOASSERTION', 'net and weights, in the native format', "$pack/model.cnr"),
        &package('libc', $libc, undef, $licence, 'linked in, what is used of it'),
    ],
    relationships => [
        { spdxElementId => 'SPDXRef-DOCUMENT', relationshipType => 'DESCRIBES', relatedSpdxElement => 'SPDXRef-program' },
        (map { { spdxElementId => 'SPDXRef-program', relationshipType => $_->[0], relatedSpdxElement => "SPDXRef-$_->[1]" } }
            ['CONTAINS', 'cnnrun'], ['CONTAINS', 'model'], ['STATIC_LINK', 'libc']),
    ],
};
put("$dir/$name.spdx.json", JSON::PP->new->canonical->pretty->encode($bill));
my ($all, $model) = (-s "$dir/$name", -s "$pack/model.cnr");
printf "%s  %d bytes: model %d, code %d\noperators %s\nkernels %s\n", "$out/$name", $all, $model, $all - $model,
    join(' ', sort keys %op), join(' ', @parts) unless $quiet;
