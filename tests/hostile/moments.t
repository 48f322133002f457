#!/usr/bin/perl
# Killed, or asked to stop, at moments spread over each command's life: what is there is whole, no
# worse than what was there, and nothing is left over after the next run.
# CNNRUN_MOMENTS sets how many moments a command and signal (2); CNNRUN_MOMENTS_OF picks commands.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cwd qw(abs_path);
use Hostile;
use Test::More;
use Time::HiRes qw(time sleep);

plan skip_all => "no $build/cnnrun" unless -x "$build/cnnrun";
my $moments = $ENV{CNNRUN_MOMENTS} // 2;
my $work = "$dir/work";
my %digit = (zero => 0, one => 1, two => 2, three => 3, four => 4, five => 5, six => 6, seven => 7,
    eight => 8, nine => 9);
spew("$dir/list", join '', map { m{([a-z]+)\.png} ? abs_path($_) . " $digit{$1}\n" : () }
    sort glob 'scripts/nets/digits/*.png');
run('convert', $net, '--weights', 'random:1', '-o', "$dir/old.cnr");
run('export', "$dir/old.cnr", '-o', "$dir/net.onnx") if has_plugin('import-onnx');
my $pictures = has_plugin('source-images');

# What is written, in $work, and whether it is good: a .cnr that check finds sound.
sub sound {
    my ($file) = @_;
    return system("$build/cnnrun check '$file' >/dev/null 2>&1") == 0;
}
# Right answers of a net on the digits; undefined: it did not run.
sub accuracy {
    my ($code, $out) = run('eval', shift, '--json', '--data', "images:$dir/list");
    my $list = objects($out);
    return $code == 0 && $list && @$list ? $list->[0]{top1} : -1;
}
# In a record all lines are whole, and what was measured once stays.
sub whole_record {
    my $text = slurp("$work/tuning.jsonl") // '';
    return $text eq '' || ($text =~ /\n\z/ && objects($text));
}

my @commands = (
    {name => 'convert', words => ['convert', $net, qw(--weights random:2 -o), "$work/net.cnr"],
        file => 'net.cnr'},
    has_plugin('import-onnx') ? {name => 'import', file => 'net.cnr',
        words => ['import', "$dir/net.onnx", '-o', "$work/net.cnr"]} : (),
    $pictures ? ({name => 'quantize', file => 'net.cnr',
        words => ['quantize', '--all', $net, '--weights', 'random:1', '--data', "images:$dir/list", '-o',
            "$work/net.cnr"]},
        {name => 'train', file => 'net.cnr', judged => 1,
        words => ['train', $net, '--data', "images:$dir/list", qw(--epochs 30 --batch 5 --lr 0.01 -o),
            "$work/net.cnr"]}) : (),
    {name => 'warm', words => ['warm', $net, qw(--weights random:1 --cache), $work], cache => 1},
    {name => 'tune', words => ['tune', $net, qw(--weights random:1 --again --cache), $work], cache => 1},
);

# Makes the work folder anew.
sub begin_again {
    my ($c) = @_;
    mkdir $work;
    unlink glob "$work/* $work/.cnnrun* $work/.*tmp";
    spew("$work/net.cnr", $c->{old}) if $c->{file};
}

# Says what is wrong with the files that are left: "" for nothing.
sub wrong {
    my ($c) = @_;
    my $code;
    if ($c->{file}) {
        my $now = slurp("$work/net.cnr");
        return 'gone' if !defined $now;
        return '' if $now eq $c->{old};
        return 'broken' if !sound("$work/net.cnr");
        return 'worse' if $c->{judged} && accuracy("$work/net.cnr") < $c->{before} - 1e-9;
        return '';
    }
    return 'a broken record' if !whole_record();
    # what is kept is taken or made again without a word
    my ($exit, $out, $err) = run('warm', $net, qw(--weights random:1 --cache), $work, '--json');
    return "warm fails: $err" if $exit;
    return "a broken plan: $out" if $out =~ /"origin":"stale: (?!tuning)/;
    return '';
}

# Files that were left behind.
sub leftovers { return join ' ', grep { /tmp|part|lock/ } split / /, listing($work) }

for my $c (@commands) {
    next if $ENV{CNNRUN_MOMENTS_OF} && " $ENV{CNNRUN_MOMENTS_OF} " !~ / $c->{name} /;
    $c->{old} = slurp("$dir/old.cnr") if $c->{file};
    $c->{before} = accuracy("$dir/old.cnr") if $c->{judged};
    my @lives;
    for (1 .. 3) {
        begin_again($c);
        my $begun = time;
        my ($code, $out, $err) = run(@{$c->{words}});
        push @lives, time - $begun;
        is $code, 0, "$c->{name} by itself" or diag $err if $_ == 1;
    }
    my $life = (sort { $a <=> $b } @lives)[1];
    for my $signal ('KILL', 'INT') {
        my (@bad, %codes);
        for my $i (0 .. $moments - 1) {
            begin_again($c);
            my $pid = start(@{$c->{words}});
            sleep $life * ($i + 0.5) / $moments;
            kill $signal => $pid;
            my ($code, $out, $err) = finish($pid);
            $codes{$code}++;
            my $where = sprintf '%s at %.3f of %.3f s', $signal, $life * ($i + 0.5) / $moments, $life;
            push @bad, "$where: code $code: $err"
                unless $code == 0 || $code == ($signal eq 'KILL' ? 137 : 130);
            push @bad, "$where: leaves " . leftovers() if $signal eq 'INT' && leftovers();
            my $wrong = wrong($c);
            push @bad, "$where: $wrong" if $wrong;
            ($code, $out, $err) = run(@{$c->{words}});
            push @bad, "$where: the next run fails: $code $err" if $code;
            push @bad, "$where: left over after the next run: " . leftovers() if leftovers();
            $wrong = wrong($c);
            push @bad, "$where: after the next run: $wrong" if $wrong;
        }
        ok !@bad, sprintf '%s: SIG%s at %d moments of %.2f s (ended with %s)', $c->{name}, $signal,
            $moments, $life, join ', ', map { "$_: $codes{$_}" } sort keys %codes;
        diag "$_" for @bad[0 .. ($#bad < 4 ? $#bad : 4)];
    }
}
done_testing;
