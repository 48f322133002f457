#!/usr/bin/perl
# CNNdroid's files as `cnnrun export` writes them: read back by the importer they give the same answers to the last
# digit; read by CNNdroid's own rules (its parser's: a line a key, all keys of a layer, root_directory first; its
# layers' arithmetic) the same numbers. What the format cannot say is refused, and the layer named.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use JSON::PP;
use POSIX 'ceil';
use Test::More;

my $build = abs_path($ENV{CNNRUN_BUILD} // './build');
plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
plan skip_all => 'the plugin was not built (msgpack)' unless -e "$build/plugins/import-cnndroid.so";
my $tmp = tempdir(CLEANUP => 1);

# The bytes of a file.
sub text { local (@ARGV, $/) = $_[0]; <> }
# Writes a file; returns its path.
sub write_file { open my $f, '>', "$tmp/$_[0]" or die; print $f $_[1]; close $f or die; return "$tmp/$_[0]" }
# Exports a net; returns status and message.
sub export { my ($net, $to) = @_; my $said = `$build/cnnrun export $net --weights random:3 -o $tmp/$to 2>&1`; return ($? >> 8, $said) }

# ---- CNNdroid's parser ----

sub derive_text { # : "text"
    my ($rest) = @_;
    $rest =~ s/^\s+|\s+$//g;
    return $rest =~ /^:\s*"([^"]*)"$/ ? $1 : die "no text: $rest\n";
}
# CNNdroid's reading of a number.
sub derive_number { my ($rest) = @_; $rest =~ s/^\s+|\s+$//g; return $rest =~ /^:\s*(\S+)$/ ? $1 : die "no number: $rest\n" }

my %keys = (convolution => [qw(parameters_file pad stride group)], pooling => [qw(pool pad stride kernel_size)],
            lrn => [qw(norm_region local_size alpha beta)], fullyconnected => ['parameters_file'], softmax => [], relu => []);

# CNNdroid's reading of a layer.
sub derive_layer {
    my @lines = map { s/^\s+|\s+$//gr } @_;
    $lines[0] =~ s/^\{// or $lines[1] =~ s/^\{// or die "no brace\n";
    pop(@lines) eq '}' or die "a layer ends otherwise\n";
    my %layer;
    for (grep { length } @lines) {
        my ($colon, $blank) = (index($_, ':'), index $_, ' ');
        die "a line without colon and blank: $_\n" if $colon < 0 || $blank < 0;
        my $at = $colon < $blank ? $colon : $blank;
        my $rest = substr $_, $at;
        $layer{lc substr $_, 0, $at} = $rest =~ /"/ ? derive_text($rest) : derive_number($rest);
    }
    my $type = lc $layer{type};
    my @known = @{$keys{$type} // die "type $type\n"};
    for my $key (@known) { defined $layer{$key} or die "$type has no $key\n" }
    for my $key (keys %layer) { grep { $_ eq $key } @known, 'type', 'name' or die "$type has $key\n" }
    return \%layer;
}

# CNNdroid's reading of a net file.
sub parse {
    my ($path) = @_;
    my (%net, @lines);
    my $root = $path =~ s{[^/]*$}{}r; # where the phone's folder would be
    @lines = split /\n/, text($path), -1;
    while (defined(my $line = shift @lines)) {
        $line =~ s/^\s+|\s+$//g;
        next if $line eq '';
        if ($line =~ s/^root_directory//i) { $net{root} = derive_text($line); $net{root} =~ m{/$} or die "no folder\n" }
        elsif ($line =~ s/^allocated_ram//i) { ($net{ram} = derive_number($line)) =~ /^\d+$/ or die "no whole number\n" }
        elsif ($line =~ s/^execution_mode//i) { ($net{mode} = derive_text($line)) =~ /^(?:parallel|sequential)$/ or die }
        elsif ($line =~ s/^auto_tuning//i) { ($net{tuning} = derive_text($line)) =~ /^(?:on|off)$/ or die }
        elsif ($line =~ s/^layer//i) {
            my @block = ($line);
            while (@lines) { push @block, shift @lines; last if $block[-1] =~ /\}/ }
            my $layer = derive_layer(@block);
            if ($layer->{parameters_file}) {
                defined $net{root} or die "root_directory comes too late\n";
                $layer->{values} = unpacked("$root$layer->{parameters_file}");
            }
            push @{$net{layers}}, $layer;
        }
        else { die "a line that is not known: $line\n" }
    }
    defined $net{$_} or die "no $_\n" for qw(root ram mode tuning);
    return \%net;
}

# MessagePack: arrays and single floats, which is what its arrays of float take.
sub one {
    my ($data, $at) = @_;
    my $mark = ord substr $$data, $$at++, 1;
    if ($mark == 0xca) { $$at += 4; return unpack 'f>', substr $$data, $$at - 4, 4 }
    my $n = $mark >> 4 == 9 ? $mark & 15 : undef;
    if ($mark == 0xdc) { $n = unpack 'n', substr $$data, $$at, 2; $$at += 2 }
    if ($mark == 0xdd) { $n = unpack 'N', substr $$data, $$at, 4; $$at += 4 }
    defined $n or die sprintf "mark %02x\n", $mark;
    return [map { one($data, $at) } 1 .. $n];
}
# The numbers of a weights file.
sub unpacked {
    my ($data, $at) = (text($_[0]), 0);
    my @all;
    push @all, one(\$data, \$at) while $at < length $data;
    return \@all;
}

# ---- CNNdroid's layers on one picture [channel][row][column] ----

# Places of a pooling, rounded up.
sub rounded_up { my ($n, $pad, $kernel, $stride) = @_; return ceil(($n + 2 * $pad - $kernel) / $stride) + 1 }

# A convolution, in plain Perl.
sub convolution {
    my ($x, $l) = @_;
    my ($weight, $bias) = @{$l->{values}};
    my ($pad, $stride, $group) = @$l{qw(pad stride group)};
    my ($kh, $kw, $each) = (scalar @{$weight->[0][0]}, scalar @{$weight->[0][0][0]}, scalar @{$weight->[0]});
    my ($rows, $columns) = (rounded_up(scalar @{$x->[0]}, $pad, $kh, $stride), rounded_up(scalar @{$x->[0][0]}, $pad, $kw, $stride));
    my @y;
    for my $m (0 .. $#$weight) {
        my $first = int($m / (@$weight / $group)) * $each;
        for my $r (0 .. $rows - 1) { for my $c (0 .. $columns - 1) {
            my $sum = $bias->[$m];
            for my $i (0 .. $each - 1) { for my $k (0 .. $kh - 1) { for my $l (0 .. $kw - 1) {
                my ($p, $q) = ($r * $stride - $pad + $k, $c * $stride - $pad + $l);
                next if $p < 0 || $q < 0;
                $sum += ($x->[$first + $i][$p] // [])->[$q] * $weight->[$m][$i][$k][$l] if defined(($x->[$first + $i][$p] // [])->[$q]);
            } } }
            $y[$m][$r][$c] = $sum;
        } }
    }
    return \@y;
}

# A layer's max or average pooling of planes x: zeros around, windows clipped to picture and zeros.
# Returns the planes.
sub pooling {
    my ($x, $l) = @_;
    my ($pad, $stride, $k) = @$l{qw(pad stride kernel_size)};
    return [map { my $plane = $_;
        my ($h, $w) = (scalar @$plane, scalar @{$plane->[0]});
        [map { my $r = $_; [map { my $c = $_; my @in;
            for my $i ($r * $stride .. $r * $stride + $k - 1) { for my $j ($c * $stride .. $c * $stride + $k - 1) {
                next if $i >= $h + 2 * $pad || $j >= $w + 2 * $pad;
                my ($p, $q) = ($i - $pad, $j - $pad);
                push @in, $p < 0 || $q < 0 || $p >= $h || $q >= $w ? 0 : $plane->[$p][$q];
            } }
            my ($most, $sum) = ($in[0], 0);
            for (@in) { $most = $_ if $_ > $most; $sum += $_ }
            $l->{pool} eq 'max' ? $most : $l->{pool} eq 'ave' ? $sum / @in : die "pool $l->{pool}\n";
        } 0 .. rounded_up($w, $pad, $k, $stride) - 1] } 0 .. rounded_up($h, $pad, $k, $stride) - 1]
    } @$x];
}

# A normalisation, in plain Perl.
sub norm {
    my ($x, $l) = @_;
    $l->{norm_region} eq 'across_channels' or die "CNNdroid computes no other region\n";
    my $half = ($l->{local_size} - 1) / 2;
    my @y;
    for my $c (0 .. $#$x) { for my $r (0 .. $#{$x->[0]}) { for my $q (0 .. $#{$x->[0][0]}) {
        my $sum = 0;
        $sum += $x->[$_][$r][$q] ** 2 for grep { $_ >= 0 && $_ < @$x } $c - $half .. $c + $half;
        $y[$c][$r][$q] = $x->[$c][$r][$q] / (1 + $l->{alpha} / $l->{local_size} * $sum) ** $l->{beta};
    } } }
    return \@y;
}

# The numbers of nested lists.
sub flat { return map { ref $_ ? flat(@$_) : $_ } @_ }
# Relu, in plain Perl.
sub relu { my ($x) = @_; return ref $x ? [map { relu($_) } @$x] : $x > 0 ? $x : 0 }
# A dense layer, in plain Perl.
sub connected {
    my ($x, $l) = @_;
    my @in = flat(@$x);
    my ($weight, $bias) = @{$l->{values}};
    @$weight == @in * @$bias or die "a row of weights for each output is wanted\n";
    return [map { my $o = $_; my $sum = $bias->[$o]; $sum += $weight->[$o * @in + $_] * $in[$_] for 0 .. $#in; $sum } 0 .. $#$bias];
}
# Softmax, in plain Perl.
sub softmax { my ($x) = @_; my $sum = 0; $sum += exp for @$x; return [map { exp($_) / $sum } @$x] }

# The net's answer, in plain Perl.
sub compute {
    my ($net, $x) = @_;
    my %by = (convolution => \&convolution, pooling => \&pooling, lrn => \&norm, fullyconnected => \&connected, softmax => \&softmax, relu => \&relu);
    $x = $by{lc $_->{type}}->($x, $_) for @{$net->{layers}};
    return [flat(@$x)];
}

# ---- nets: answers of the net, of what was read back, and of the reader above ----

my $compare = write_file('compare.lua', <<'END');
local c, json = require "cnnrun", require "lib.json"
return function(words)
  local shape, count, data = {}, 1, {}
  for size in words[3]:gmatch "%d+" do shape[#shape + 1] = tonumber(size) count = count * tonumber(size) end
  for i = 1, count do data[i] = math.sin(i * 1.7) * 2 end
  local x = c.tensor { shape = shape, data = data, dtype = "f32" }
  local own <close> = c.load(words[1], { weights = "random:3" })
  local back <close> = c.load(words[2])
  local function all(t) local list = {} for i = 1, #t do list[i] = t[i] end return list end
  print(json.encode { x = all(x), own = all(own:run { x }), back = all(back:run { x }) })
end
END

# A list in nested lists of this shape.
sub shaped { my ($list, @dim) = @_; return shift @$list if !@dim; my $n = shift @dim; return [map { shaped($list, @dim) } 1 .. $n] }

# A test: the exported net of this Lua text answers as ours, on an input of these sizes.
sub check {
    my ($what, $lua, @dim) = @_;
    my $net = write_file("$what.lua", $lua);
    mkdir "$tmp/$what";
    my ($code, $said) = export($net, "$what/net.def");
    is($code, 0, "$what: it is written") or return diag($said);
    my @size = ('--option', 'shape=' . join ',', @dim); # the files do not say it
    is(system("$build/cnnrun import $tmp/$what/net.def @size -q -o $tmp/$what/back.cnr >$tmp/log 2>&1"), 0, 'it is read back') or return diag(text("$tmp/log"));
    my ($line) = `$build/cnnrun $compare $net $tmp/$what/back.cnr @{[join ',', 1, @dim]} 2>$tmp/log`;
    my $r = eval { decode_json($line // '') } or return fail("$what: " . text("$tmp/log"));
    is_deeply($r->{back}, $r->{own}, 'the importer reads a net with the same answers, all ' . @{$r->{own}} . ' of them');
    my $parsed = eval { parse("$tmp/$what/net.def") } or return fail("by CNNdroid's rules: $@");
    my $y = compute($parsed, shaped([@{$r->{x}}], @dim));
    is(scalar @$y, scalar @{$r->{own}}, 'CNNdroid has as many numbers');
    my $far = 0;
    for (0 .. $#$y) { my $d = abs($y->[$_] - $r->{own}[$_]); $far = $d if $d > $far }
    cmp_ok($far, '<', 2e-5, 'and the same numbers');
    return $parsed;
}

my $all = check('layers', <<'END', 4, 11, 11);
local c = require "cnnrun"
return c.net { name = "layers", input = { "x", shape = { "batch", 4, 11, 11 } },
  c.conv2d { "conv1", out = 6, kernel = 3, stride = 2, pad = 1, groups = 2 }, c.relu {},
  c.lrn { "norm/1", size = 5, alpha = .3, beta = .75 },
  c.maxpool { "pool 1", kernel = 3, stride = 2, pad = 1, ceil_mode = true },
  c.conv2d { "conv2", out = 20, kernel = { 1, 3 }, bias = false },
  c.avgpool { "pool2", kernel = 2, stride = 1, ceil_mode = true }, c.dropout {},
  c.flatten {}, c.dense { "fc1", out = 17 }, c.relu { "again" }, c.dense { "fc2", out = 5 }, c.softmax { "prob" } }
END
if ($all) {
    is(join(' ', map { lc $_->{type} } @{$all->{layers}}),
       'convolution relu lrn pooling convolution pooling fullyconnected relu fullyconnected softmax', 'layers in order');
    is("$all->{root} $all->{ram} $all->{mode} $all->{tuning}", '/sdcard/net/ 1 parallel on', 'and what stands before them');
}
my $odd = check('hanging', <<'END', 2, 9, 8);
local c = require "cnnrun"
return c.net { name = "hanging", input = { "x", shape = { "batch", 2, 9, 8 } },
  c.conv2d { "conv", out = 3, kernel = 3, stride = 2, pads = { 1, 1, 2, 2 } }, c.maxpool { kernel = 2, stride = 2, ceil_mode = true } }
END
is($odd->{layers}[0]{pad}, 1, 'windows that hang over are CNNdroid\'s own') if $odd;
check('long', <<'END', 3, 30, 30);
local c = require "cnnrun"
return c.net { name = "long", input = { "x", shape = { "batch", 3, 30, 30 } },
  c.dense { "wide", out = 30 }, c.relu {}, c.dense { "fc", out = 3 } }
END

my $names = check('names', <<'END', 2, 7, 7);
local c = require "cnnrun"
return c.net { name = "names", input = { "x", shape = { "batch", 2, 7, 7 } },
  c.conv2d { "a/1", out = 2, kernel = 3 }, c.relu { "A_1" }, c.conv2d { "a_1_2", out = 2, kernel = 1 }, c.conv2d { "a.1", out = 2, kernel = 3 } }
END
is(join(' ', map { $_->{name} } @{$names->{layers}}), 'a_1 A_1_2 a_1_2_2 a_1_3', 'each name once, whatever its case: they are names of files') if $names;

# ---- the authors' own files ----

SKIP: {
    my $data = ($ENV{CNNRUN_SHARED} // '../shared') . '/data/cnndroid/cifar10';
    skip 'no shared data (CNNdroid\'s Cifar10)', 2 unless -e "$data/Cifar10_def.txt";
    mkdir "$tmp/cifar10";
    is(system("$build/cnnrun export $data/Cifar10_def.txt -q -o $tmp/cifar10/Cifar10_def.txt >$tmp/log 2>&1"), 0, 'CNNdroid\'s Cifar10') or diag(text("$tmp/log"));
    is(join(' ', grep { text("$data/model_param_conv$_.msg") ne text("$tmp/cifar10/model_param_conv$_.msg") } 1 .. 3), '',
       'its convolutions\' parameters come out byte by byte as its authors wrote them');
}

# ---- pictures ----

my $mean = write_file('mean.lua', <<'END');
local c = require "cnnrun"
return c.net { name = "mean", input = { "x", shape = { 1, 2, 3, 3 }, mean = { 7, 9.5 } }, c.conv2d { "conv", out = 1, kernel = 3 } }
END
mkdir "$tmp/mean";
is((export($mean, 'mean/cut_def.txt'))[0], 0, 'a net with a mean, named as CNNdroid names them');
is(join(' ', flat(unpacked("$tmp/mean/mean.msg"))), join(' ', (7) x 9, (9.5) x 9), 'becomes a picture');

# ---- what it cannot say ----

my $head = "local c = require 'cnnrun'\nreturn c.net { name = 'no', input = { 'x', shape = { 1, 4, 8, 8 } }, ";
for (['c.batch_norm { "bn" }', 'layer bn \(batch_normalization\): CNNdroid has no such layer'],
     ['c.conv2d { "wide", out = 2, kernel = 3, dilation = 2 }', 'layer wide \(conv\): CNNdroid has no dilation'],
     ['c.conv2d { "skew", out = 2, kernel = 3, strides = { 1, 2 } }', 'layer skew \(conv\): CNNdroid has one stride'],
     ['c.conv2d { "cut", out = 2, kernel = 3, stride = 2 }', 'layer cut \(conv\): CNNdroid rounds'],
     ['c.maxpool { "zero", kernel = 3, stride = 1, pad = 1 }', 'layer zero \(max_pool\): CNNdroid pads with zeros'],
     ['c.avgpool { "mean", kernel = 2, stride = 2, pad = 1 }', 'layer mean \(average_pool\): CNNdroid\'s means'],
     ['c.tanh { "t" }', 'layer t \(tanh\)'], ['c.flatten { "end" }', 'ends flat'],
     ['c.relu {}, c.add { c.conv2d { "side", out = 4, kernel = 1 }, c.seq {} }', 'layer side \(conv\): CNNdroid\'s layers stand']) {
    my ($code, $said) = export(write_file('no.lua', "$head $_->[0] }"), 'no.def');
    ok($code != 0 && $said =~ /$_->[1]/, $_->[0]) or diag($said);
}
is(-e "$tmp/no.def", undef, 'and nothing is written');
done_testing;
