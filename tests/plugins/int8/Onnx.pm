# Writes small ONNX models, and draws quantised ones from a seed: nodes between DequantizeLinear and
# QuantizeLinear, or QLinearConv and QLinearMatMul, of u8 and i8, per tensor and per channel.
package Onnx;
use strict;
use warnings;

our %TYPE = (f32 => 1, u8 => 2, i8 => 3, i32 => 6, i64 => 7);
my %PACK = (f32 => 'f<*', u8 => 'C*', i8 => 'c*', i32 => 'l<*', i64 => 'q<*');

# ---- protobuf ----
# A whole number in protobuf's form
sub varint {
    my $v = shift;
    my $out = '';
    while ($v < 0 || $v > 127) {
        $out .= chr(($v & 127) | 128);
        $v = ($v >> 7) & ((1 << 57) - 1);
    }
    return $out . chr $v;
}
# A field of a whole number.
sub number { return varint($_[0] << 3) . varint($_[1]) }
# A field of bytes.
sub bytes { return varint($_[0] << 3 | 2) . varint(length $_[1]) . $_[1] }

# An empty net.
sub new { return bless {nodes => '', weights => '', inputs => '', outputs => '', n => 0, opset => 17}, shift }
# A new name.
sub name { my ($o, $stem) = @_; return $stem . $o->{n}++ }

# A constant; returns its name.
sub weight {
    my ($o, $type, $dims, @values) = @_;
    my $name = $o->name('w');
    $o->{weights} .= bytes(5, join('', map { number(1, $_) } @$dims) . number(2, $TYPE{$type})
        . bytes(8, $name) . bytes(9, pack $PACK{$type}, @values));
    return $name;
}
# An input or output.
sub info {
    my ($name, $type, @dims) = @_;
    my $shape = join '', map { bytes(1, defined $_ ? number(1, $_) : bytes(2, "any")) } @dims;
    return bytes(1, $name) . bytes(2, bytes(1, number(1, $TYPE{$type}) . bytes(2, $shape)));
}
# Adds an input.
sub input { my ($o, @info) = @_; $o->{inputs} .= bytes(11, info(@info)); return $info[0] }
# Adds an output.
sub output { my ($o, @info) = @_; $o->{outputs} .= bytes(12, info(@info)); return }

# A node of one output, whose name it returns; attributes are lists of whole numbers, whole numbers,
# and decimals ("0.1"). "com.microsoft.X" is of that domain.
sub node {
    my ($o, $op, $in, %attrs) = @_;
    my $name = $o->name('v');
    my ($domain, $type) = $op =~ /^(?:(com\.microsoft)\.)?(\w+)$/;
    my $text = join('', map { bytes(1, $_) } @$in) . bytes(2, $name) . bytes(3, "$type.$name") . bytes(4, $type);
    for my $key (sort keys %attrs) {
        my $v = $attrs{$key};
        my $value = ref $v ? join('', map { number(8, $_) } @$v) . number(20, 7)
            : $v =~ /\./ ? varint(2 << 3 | 5) . pack('f<', $v) . number(20, 1) : number(3, $v) . number(20, 2);
        $text .= bytes(5, bytes(1, $key) . $value);
    }
    $text .= bytes(7, $domain) if $domain;
    $o->{nodes} .= bytes(1, $text);
    return $name;
}
# Writes the net.
sub save {
    my ($o, $path) = @_;
    my $graph = $o->{nodes} . bytes(2, 'drawn') . $o->{weights} . $o->{inputs} . $o->{outputs};
    open my $f, '>:raw', $path or die "$path: $!";
    print $f number(1, 8) . bytes(7, $graph) . bytes(8, bytes(1, '') . number(2, $o->{opset}))
        . bytes(8, bytes(1, 'com.microsoft') . number(2, 1));
    close $f or die;
    return;
}

# ---- quantised values: {name, type, scale, zero, dims, sd}, sd: of the numbers that it stands for ----
# A whole number from low to high
sub whole { my ($low, $high) = @_; return $low + int rand($high - $low + 1) }
# One of the words.
sub one_of { return $_[rand @_] }

# The constants of a scale, as names.
sub scale {
    my ($o, $type, $sd, $positive) = @_;
    my $symmetric = $type eq 'i8' && rand() < 0.5;
    my $zero = $symmetric ? 0 : $positive ? ($type eq 'u8' ? 0 : -128) : ($type eq 'u8' ? 128 : 0) + whole(-20, 20);
    # of two alike, means of a few numbers would often be at a tie
    my $scale = unpack 'f', pack 'f', $sd * ($positive && !$symmetric ? 3 : 6) * (0.9 + rand 0.2) / 255;
    return {type => $type, scale => $scale, zero => $zero, sd => $sd,
        names => [$o->weight('f32', [], $scale), $o->weight($type, [], $zero)]};
}
# Adds a QuantizeLinear.
sub quantize {
    my ($o, $real, $dims, $sd, $positive) = @_;
    my $q = $o->scale(one_of(qw(u8 i8)), $sd, $positive);
    $q->{name} = $o->node('QuantizeLinear', [$real, @{$q->{names}}]);
    $q->{dims} = [@$dims];
    return $q;
}
# Adds a DequantizeLinear.
sub dequantize {
    my ($o, $q) = @_;
    return $o->node('DequantizeLinear', [$q->{name}, @{$q->{names}}]);
}

# Weights of so many rows along `axis` of `dims`: names of bytes, scale and zero point, and scales.
sub layer_weights {
    my ($o, $type, $axis, @dims) = @_;
    my ($count, $rows, $each) = (1, $dims[$axis], rand() < 0.5);
    $count *= $_ for @dims;
    my @scale = map { 0.002 + rand 0.01 } 1 .. ($each ? $rows : 1);
    my @zero = map { $type eq 'i8' ? 0 : rand() < 0.5 ? 128 : whole(90, 160) } @scale;
    my $shape = $each ? [$rows] : [];
    return {names => [$o->weight($type, \@dims, map { $type eq 'u8' ? whole(0, 255) : whole(-127, 127) } 1 .. $count),
        $o->weight('f32', $shape, @scale), $o->weight($type, $shape, @zero)], axis => $each ? $axis : undef,
        scales => [map { unpack 'f', pack 'f', $_ } @scale], rows => $rows, type => $type};
}
# Adds a DequantizeLinear of a weight.
sub dequantized_weights {
    my ($o, $w) = @_;
    return $o->node('DequantizeLinear', $w->{names}, defined $w->{axis} ? (axis => $w->{axis}) : ());
}
# Adds a quantised bias.
sub bias {
    my ($o, $x, $w, $sd) = @_;
    my @unit = map { $_ * $x->{scale} } @{$w->{scales}};
    my @whole = map { int(($sd * (rand(2) - 1)) / $unit[@unit > 1 ? $_ : 0]) } 0 .. $w->{rows} - 1;
    return $o->weight('i32', [$w->{rows}], @whole), $o->weight('f32', @unit > 1 ? [scalar @unit] : [], @unit);
}

# Adds a convolution.
sub conv {
    my ($o, $x) = @_;
    my ($n, $c, $h, $wide) = @{$x->{dims}};
    my $depthwise = rand() < 0.25;
    my $group = $depthwise ? $c : $c % 2 == 0 && rand() < 0.2 ? 2 : 1;
    my $m = $depthwise ? $c : $group * whole(1, 20);
    my ($kh, $kw) = rand() < 0.3 ? (1, 1) : map { whole(1, $_ < 3 ? $_ : 3) } $h, $wide;
    my @strides = (whole(1, 2), whole(1, 2));
    my @pads = map { whole(0, $_ - 1) } $kh, $kw, $kh, $kw;
    my $direct = rand() < 0.3; # ONNX Runtime has one type of x and y there, and i8 with i8 only
    my $w = $o->layer_weights($direct && $x->{type} eq 'i8' ? 'i8' : one_of(qw(u8 i8)), 0, $m, $c / $group, $kh, $kw);
    my $sd = $x->{sd} * 0.007 * 74 * sqrt($c / $group * $kh * $kw);
    my @dims = ($n, $m, int(($h + $pads[0] + $pads[2] - $kh) / $strides[0]) + 1,
        int(($wide + $pads[1] + $pads[3] - $kw) / $strides[1]) + 1);
    my %attrs = (kernel_shape => [$kh, $kw], strides => \@strides, pads => \@pads, group => $group);
    my $biased = rand() < 0.7;
    my ($bias, $unit) = $o->bias($x, $w, $sd) if $biased;
    if ($direct) {
        my $y = $o->scale($x->{type}, $sd, 0);
        $y->{name} = $o->node('QLinearConv', [$x->{name}, @{$x->{names}}, @{$w->{names}}, @{$y->{names}},
            $biased ? $bias : ()], %attrs);
        $y->{dims} = \@dims;
        return $y;
    }
    my @in = ($o->dequantize($x), $o->dequantized_weights($w));
    push @in, $o->node('DequantizeLinear', [$bias, $unit], defined $w->{axis} ? (axis => 0) : ()) if $biased;
    my $real = $o->node('Conv', \@in, %attrs);
    my $limit = whole(0, 4);
    $real = $o->node('Relu', [$real]) if $limit == 1;
    $real = $o->node('Clip', [$real, $o->weight('f32', [], 0), $o->weight('f32', [], $sd)]) if $limit == 2;
    $real = $o->node('LeakyRelu', [$real], alpha => '0.1') if $limit == 3;
    $real = $o->node('PRelu', [$real, $o->weight('f32', [$m, 1, 1], map { rand() - 0.2 } 1 .. $m)]) if $limit == 4;
    return $o->quantize($real, \@dims, $sd, $limit == 1 || $limit == 2);
}

# Adds an activation.
sub activation {
    my ($o, $x) = @_;
    my ($op, %attrs) = @{one_of(['Relu'], ['Sigmoid'], ['HardSwish'], ['LeakyRelu', alpha => '0.1'], ['Tanh'])};
    my $real = $o->node($op, [$o->dequantize($x)], %attrs);
    return $o->quantize($real, $x->{dims}, $op eq 'Sigmoid' || $op eq 'Tanh' ? 0.3 : $x->{sd}, 0);
}
# Functions of functions, with numbers that are constants or dequantised.
sub functions {
    my ($o, $x) = @_;
    my $real = $o->dequantize($x);
    for (1 .. whole(2, 4)) {
        my $s = $o->scale('u8', 1, 0);
        my $number = rand() < 0.5 ? $o->weight('f32', rand() < 0.5 ? [] : [1], 0.5 + rand)
            : $o->node('DequantizeLinear', [$o->weight('u8', [], $s->{zero} + whole(10, 90)), @{$s->{names}}]);
        my $op = one_of(qw(Add Mul Div Sub Erf Tanh));
        $real = $o->node($op, $op =~ /[fh]$/ ? [$real] : $op =~ /^[AM]/ && rand() < 0.5 ? [$number, $real] : [$real, $number]);
    }
    return $o->quantize($real, $x->{dims}, 1 + $x->{sd}, 0);
}
# Adds a pooling.
sub pool {
    my ($o, $x) = @_;
    my ($n, $c, $h, $w) = @{$x->{dims}};
    my $op = one_of(qw(MaxPool AveragePool GlobalAveragePool));
    return $o->activation($x) if $op ne 'GlobalAveragePool' && ($h < 2 || $w < 2);
    my %attrs = $op eq 'GlobalAveragePool' ? () : (kernel_shape => [2, 2], strides => [whole(1, 2), whole(1, 2)]);
    my @dims = $op eq 'GlobalAveragePool' ? ($n, $c, 1, 1)
        : ($n, $c, map { int(($x->{dims}[2 + $_] - 2) / $attrs{strides}[$_]) + 1 } 0, 1);
    my $real = $o->node($op, [$o->dequantize($x)], %attrs);
    return $o->quantize($real, \@dims, $x->{sd}, 0);
}
# Of a value with another of its shape, with a number a channel, or with a row.
sub pair {
    my ($o, $x, $other) = @_;
    my $op = one_of(qw(Add Mul));
    my $form = whole(0, 2);
    my $by = $other;
    if ($form == 1) {
        my $s = $o->scale('i8', 1, 0);
        my $w = $x->{dims}[3];
        $by = {%$s, dims => [$w], name => $o->weight('i8', [$w], map { whole(-90, 90) } 1 .. $w)};
    }
    my @in = ($o->dequantize($x), $o->dequantize($by));
    @in = reverse @in if $form == 2;
    my $sd = $op eq 'Add' ? $x->{sd} + $by->{sd} : $x->{sd} * $by->{sd};
    return $o->quantize($o->node($op, \@in), $x->{dims}, $sd, 0);
}
# Adds a concat.
sub concat {
    my ($o, $x, $other) = @_;
    my @dims = @{$x->{dims}};
    $dims[1] += $other->{dims}[1];
    my $real = $o->node('Concat', [$o->dequantize($x), $o->dequantize($other)], axis => 1);
    return $o->quantize($real, \@dims, $x->{sd} > $other->{sd} ? $x->{sd} : $other->{sd}, 0);
}
# Gemm of all but the batch, or MatMul along the last axis.
sub product {
    my ($o, $x) = @_;
    my ($n, $c, $h, $w) = @{$x->{dims}};
    my ($m, $gemm, $turned) = (whole(1, 30), rand() < 0.5, rand() < 0.5);
    my $k = $gemm ? $c * $h * $w : $w;
    my $type = $x->{type} eq 'i8' ? 'i8' : one_of(qw(u8 i8));
    my $weights = $o->layer_weights($type, $gemm && $turned ? (0, $m, $k) : (1, $k, $m));
    my $sd = $x->{sd} * 0.007 * 74 * sqrt $k;
    if (!$gemm) {
        my @dims = ($n, $c, $h, $m);
        if (!defined $weights->{axis} && rand() < 0.5) {
            my $y = $o->scale($x->{type}, $sd, 0);
            $y->{name} = $o->node('QLinearMatMul', [$x->{name}, @{$x->{names}}, @{$weights->{names}}, @{$y->{names}}]);
            $y->{dims} = \@dims;
            return $y;
        }
        return $o->quantize($o->node('MatMul', [$o->dequantize($x), $o->dequantized_weights($weights)]), \@dims, $sd, 0);
    }
    my ($bias, $unit) = $o->bias($x, $weights, $sd);
    my $flat = $o->node('Flatten', [$x->{name}], axis => 1);
    my @in = ($o->node('DequantizeLinear', [$flat, @{$x->{names}}]), $o->dequantized_weights($weights),
        $o->node('DequantizeLinear', [$bias, $unit], defined $weights->{axis} ? (axis => 0) : ()));
    return $o->quantize($o->node('Gemm', \@in, transB => $turned ? 1 : 0), [$n, $m], $sd, 0);
}

# Saves a net of one layer whose input is quantised by its own range, as quantize_dynamic writes it; returns its
# input's dims and 1e-3 in place of a scale.
sub draw_dynamic {
    my ($seed, $path) = @_;
    srand $seed;
    my $o = Onnx->new;
    my $conv = rand() < 0.5;
    my ($m, $k) = (whole(1, 40), whole(1, 3));
    my @dims = $conv ? (whole(1, 2), whole(1, 20), whole(3, 12), whole(3, 12)) : (whole(1, 40), whole(1, 99));
    my $group = $conv && rand() < 0.3 ? $dims[1] : 1;
    $m = $group * whole(1, 2) if $group > 1;
    my $w = $o->layer_weights(one_of(qw(u8 i8)), $conv ? (0, $m, $dims[1] / $group, $k, $k) : (1, $dims[1], $m));
    my ($bytes, $scale, $zero) = map { $o->name('d') } 1 .. 3;
    my $x = $o->input('x', 'f32', @dims);
    $o->{nodes} .= bytes(1, bytes(1, $x) . join('', map { bytes(2, $_) } $bytes, $scale, $zero)
        . bytes(3, 'dynamic') . bytes(4, 'DynamicQuantizeLinear'));
    # ONNX Runtime has one zero point for all weights there
    my $w_zero = $o->weight($w->{type}, [], $w->{type} eq 'u8' ? whole(90, 160) : 0);
    my $sum = $o->node($conv ? 'ConvInteger' : 'MatMulInteger', [$bytes, $w->{names}[0], $zero, $w_zero],
        $conv ? (kernel_shape => [$k, $k], group => $group, pads => [map { whole(0, $k - 1) } 1 .. 4]) : ());
    my $by = $o->node('Mul', [$scale, $o->weight('f32', [], 0.01)]);
    my $real = $o->node('Mul', [$o->node('Cast', [$sum], to => 1), $by]);
    $o->output($real, 'f32', $conv ? ($dims[0], $m, undef, undef) : ($dims[0], $m));
    $o->save($path);
    return (\@dims, 1e-3);
}

# Saves a random net of up to `steps` quantised nodes (conv, activation, pool, pair, concat ...) under `path`; returns
# its input's dims and the last scale.
sub draw {
    my ($seed, $steps, $path) = @_;
    srand $seed;
    my $o = Onnx->new;
    my @dims = (whole(1, 2), one_of(whole(1, 20), 16, 32), whole(2, 12), whole(2, 12));
    my @values = ($o->quantize($o->input('x', 'f32', @dims), \@dims, 1, 0));
    for (1 .. $steps) {
        my $x = $values[-1];
        last if @{$x->{dims}} < 4;
        my @alike = grep { "@{$_->{dims}}" eq "@{$x->{dims}}" } @values;
        my $kind = whole(0, 6);
        push @values, $kind < 2 ? $o->conv($x) : $kind == 2 ? $o->activation($x) : $kind == 3 ? $o->pool($x)
            : $kind == 6 ? $o->functions($x) : $kind == 4 ? $o->pair($x, one_of(@alike)) : $o->concat($x, one_of(@alike));
    }
    push @values, $o->product($values[-1]) if @{$values[-1]{dims}} == 4 && rand() < 0.5;
    my $last = $values[-1];
    my $real = $o->dequantize($last);
    $o->output($real, 'f32', @{$last->{dims}});
    $o->save($path);
    return (\@dims, $last->{scale});
}

1;
