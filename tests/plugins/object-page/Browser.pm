# A headless browser (Debian's chromium), controlled by its DevTools protocol over two pipes.
package Browser;
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Handle;
use IO::Select;
use JSON::PP;
use MIME::Base64;
use POSIX qw(dup2);
use Time::HiRes qw(time sleep);

# The path of the browser; undef: there is none.
sub program {
    for my $name (grep { defined } $ENV{CNNRUN_BROWSER}, qw(chromium chromium-browser google-chrome)) {
        my ($found) = grep { -x } $name =~ m{/} ? $name : map { "$_/$name" } split /:/, $ENV{PATH};
        return $found if $found;
    }
    return;
}

# Starts a browser.
sub start {
    my ($class, $program) = @_;
    pipe(my $in, my $ask) or die;
    pipe(my $hear, my $out) or die;
    my $self = bless { dir => tempdir(CLEANUP => 1), ask => $ask, hear => $hear, number => 0, rest => '', events => [] }, $class;
    my $pid = $self->{pid} = fork // die;
    if (!$pid) {
        my ($r, $w) = map { dup2(fileno $_->[0], $_->[1]) } [$in, 20], [$out, 21]; # 3 and 4 may be one of them
        dup2(20, 3);
        dup2(21, 4);
        open STDERR, '>', '/dev/null';
        open STDOUT, '>', '/dev/null';
        exec $program, qw(--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-pipe),
            '--no-proxy-server', '--disable-background-networking', "--user-data-dir=$self->{dir}", 'about:blank';
    }
    close $in;
    close $out;
    $ask->autoflush(1);
    my ($page) = grep { $_->{type} eq 'page' } @{ $self->call('Target.getTargets')->{targetInfos} };
    $self->{session} = $self->call('Target.attachToTarget', { targetId => $page->{targetId}, flatten => JSON::PP::true })->{sessionId};
    $self->call($_) for qw(Page.enable Runtime.enable Network.enable Log.enable DOM.enable);
    return $self;
}

sub read_one { # undef: nothing came
    my ($self, $seconds) = @_;
    my $end = time + $seconds;
    while ($self->{rest} !~ /\0/) {
        return unless IO::Select->new($self->{hear})->can_read($end > time ? $end - time : 0);
        sysread($self->{hear}, $self->{rest}, 1 << 20, length $self->{rest}) or return;
    }
    $self->{rest} =~ s/^([^\0]*)\0//;
    return decode_json($1);
}

# Calls a method of the browser; returns its result.
sub call {
    my ($self, $method, $with) = @_;
    my $id = ++$self->{number};
    my %words = (id => $id, method => $method, params => $with || {});
    $words{sessionId} = $self->{session} if $self->{session};
    print { $self->{ask} } encode_json(\%words), "\0";
    while (my $got = $self->read_one(120)) {
        if (($got->{id} // 0) == $id) {
            die "$method: $got->{error}{message}" if $got->{error};
            return $got->{result};
        }
        push @{ $self->{events} }, $got if $got->{method};
    }
    die "$method: no answer";
}

# The value of a line of JavaScript, or of its promise; dies where it throws.
sub js {
    my ($self, $text) = @_;
    my $r = $self->call('Runtime.evaluate', { expression => $text, returnByValue => JSON::PP::true, awaitPromise => JSON::PP::true });
    die "$text: " . ($r->{exceptionDetails}{exception}{description} // $r->{exceptionDetails}{text}) if $r->{exceptionDetails};
    return $r->{result}{value};
}

# 1 if the JavaScript becomes true within $seconds (60), else 0.
sub until {
    my ($self, $text, $seconds) = @_;
    for (my $end = time + ($seconds // 60); time < $end; sleep 0.1) {
        return 1 if eval { $self->js("!!($text)") }; # a page that is yet to come throws
    }
    return 0;
}

# Events so far, of that method.
sub heard {
    my ($self, $method) = @_;
    return map { $_->{params} } grep { $_->{method} eq $method } @{ $self->{events} };
}

# Opens an address.
sub go { my ($self, $url) = @_; $self->call('Page.navigate', { url => $url }) }

sub look { # as a screen of that size, light or dark
    my ($self, $width, $height, $mobile, $scheme) = @_;
    $self->call('Emulation.setDeviceMetricsOverride', { width => $width, height => $height, deviceScaleFactor => 1,
                                                         mobile => $mobile ? JSON::PP::true : JSON::PP::false });
    $self->call('Emulation.setEmulatedMedia', { features => [{ name => 'prefers-color-scheme', value => $scheme }] });
}

# Presses a key.
sub key {
    my ($self, $key, $code, $shift) = @_;
    my %text = $key eq 'Enter' ? (text => "\r") : length $key == 1 ? (text => $key) : ();
    $self->call('Input.dispatchKeyEvent', { type => $_, key => $key, windowsVirtualKeyCode => $code, modifiers => $shift ? 8 : 0,
                                            $_ eq 'keyDown' ? %text : () }) for qw(keyDown keyUp);
}

sub mouse { # down at one place, up at another
    my ($self, $x0, $y0, $x1, $y1) = @_;
    my %at = (button => 'left', buttons => 1, clickCount => 1);
    $self->call('Input.dispatchMouseEvent', { type => 'mousePressed', x => $x0, y => $y0, %at });
    $self->call('Input.dispatchMouseEvent', { type => 'mouseMoved', x => ($x0 + $x1) / 2, y => ($y0 + $y1) / 2, %at });
    $self->call('Input.dispatchMouseEvent', { type => 'mouseMoved', x => $x1, y => $y1, %at });
    $self->call('Input.dispatchMouseEvent', { type => 'mouseReleased', x => $x1, y => $y1, %at });
}

# Saves a picture of the page.
sub shot {
    my ($self, $path) = @_;
    my $metrics = $self->call('Page.getLayoutMetrics');
    my $size = $metrics->{cssContentSize};
    my $picture = $self->call('Page.captureScreenshot', { captureBeyondViewport => JSON::PP::true,
        clip => { x => 0, y => 0, width => $size->{width}, height => $size->{height}, scale => 1 } });
    open my $out, '>:raw', $path or die "$path: $!";
    print $out decode_base64($picture->{data});
    close $out;
}

# Ends the browser.
sub DESTROY {
    my $self = shift;
    local ($?, $@);
    return unless $self->{pid};
    kill 'TERM', $self->{pid};
    for (1 .. 50) { last if waitpid($self->{pid}, 1); sleep 0.1 }
    kill 'KILL', $self->{pid};
}

1;
