# A monitor with a page, in a process of its own: starts it, sends HTTP requests and settings, stops it.
package Monitor;
use strict;
use warnings;
use IO::Socket::INET;
use JSON::PP;
use Time::HiRes qw(sleep time);

# Arguments of `cnnrun`; stdout goes to $dir/lines, stderr to $dir/err.
sub start {
    my ($class, $build, $dir, @words) = @_;
    my $self = bless { dir => $dir, token => 'abcdefgh', pid => fork // die }, $class;
    if (!$self->{pid}) {
        open STDERR, '>', "$dir/err";
        open STDOUT, '>', "$dir/lines";
        exec "$build/cnnrun", @words, qw(--page 0 --token), $self->{token};
    }
    for (1 .. 1200) {
        sleep 0.1;
        ($self->{port}) = $self->said =~ m{http://127\.0\.0\.1:(\d+)/#token=$self->{token}};
        last if $self->{port} || waitpid($self->{pid}, 1);
    }
    return $self;
}

# The page's port.
sub port { return $_[0]{port} }
# The process's id.
sub pid { return $_[0]{pid} }

# What it wrote to stderr.
sub said {
    my $self = shift;
    open my $in, '<', "$self->{dir}/err" or return '';
    local $/;
    return scalar(<$in>) // '';
}

# The raw answer to a request (HOST stands for its address), up to so many bytes.
sub ask {
    my ($self, $request, $bytes) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 20) or return '';
    $request =~ s/\n/\r\n/g;
    $request =~ s/HOST/127.0.0.1:$self->{port}/g;
    print $socket $request;
    my ($got, $end) = ('', time + 40);
    while (time < $end && length $got < ($bytes // 1e9)) {
        my $ready = '';
        vec($ready, fileno $socket, 1) = 1;
        last unless select $ready, undef, undef, 20;
        sysread($socket, my $part, 65536) or last;
        $got .= $part;
    }
    return $got;
}

# The page's answer to a GET.
sub get {
    my ($self, $path, $bytes, $more) = @_;
    return $self->ask("GET $path HTTP/1.1\nHost: HOST\nConnection: close\n" . ($more // '') . "\n", $bytes);
}

# The page's answer to a POST.
sub set {
    my ($self, $body, $more) = @_;
    $more //= "Authorization: Bearer $self->{token}\n";
    return $self->ask("POST /set HTTP/1.1\nHost: HOST\nConnection: close\nContent-Length: " . length($body) . "\n$more\n$body", 100);
}

sub state { # {}: there is none yet
    my $self = shift;
    my ($text) = $self->get('/state.json') =~ /\r\n\r\n(\{.*\})/s;
    return $text ? decode_json($text) : {};
}

# Waits for a wanted state and returns it; undef: it did not come.
sub until {
    my ($self, $wanted, $seconds) = @_;
    for (my $end = time + ($seconds // 120); time < $end; sleep 0.1) {
        my $state = $self->state;
        return $state if $wanted->($state);
    }
    return;
}

# The events of a state, newest first.
sub events { return join '; ', map { $_->{text} } @{ $_[1]{events} // [] } }

# Its exit code after Ctrl-C, or after another signal.
sub stop {
    my ($self, $signal) = @_;
    return unless $self->{pid};
    kill $signal // 'INT', $self->{pid};
    waitpid delete $self->{pid}, 0;
    return $? >> 8;
}

# Ends the monitor.
sub DESTROY { local ($?, $@); $_[0]->stop('KILL') }

1;
